use super::*;

fn rules(args: &RulesArgs) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = run(args, &mut out, &mut err).unwrap();
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

#[test]
fn the_table_has_a_line_per_rule() {
    let (code, out, err) = rules(&RulesArgs::default());
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out.lines().count(), 1 + all_rules().len());
}

#[test]
fn json_names_the_schema_and_keeps_to_the_protocol() {
    let args = RulesArgs { protocol: Some("ag-ui".into()), json: true, ..RulesArgs::default() };
    let (_, out, _) = rules(&args);
    let value: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["schema"], "banister.rules/v1");
    let rules = value["rules"].as_array().unwrap();
    assert!(!rules.is_empty() && rules.iter().all(|rule| rule["protocol"] == "agui"));
}

#[test]
fn one_rule_is_shown_in_full() {
    let args = RulesArgs { code: Some("aep-req-20".into()), ..RulesArgs::default() };
    let (code, out, _) = rules(&args);
    assert_eq!(code, 0);
    assert!(out.starts_with("AEP-REQ-20  AEP 0.1\nlevel:  error\n"), "{out}");
}

#[test]
fn an_opt_in_rule_says_so() {
    let (_, rule) = all_rules().into_iter().find(|(_, rule)| rule.opt_in).unwrap();
    let code = Some(rule.code.to_owned());
    let (_, out, _) = rules(&RulesArgs { code: code.clone(), ..RulesArgs::default() });
    assert!(out.contains("opt-in: checked with --strict or --deny\n"), "{out}");
    let (_, out, _) = rules(&RulesArgs { code, json: true, ..RulesArgs::default() });
    let value: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["rules"][0]["opt_in"], true);
    let (_, out, _) = rules(&RulesArgs::default());
    let row = out.lines().find(|line| line.starts_with(rule.code)).unwrap();
    assert!(row.contains(" opt-in "), "{row}");
}

#[test]
fn unknown_names_are_usage_errors_with_a_hint() {
    for (args, hint) in [
        (
            RulesArgs { code: Some("AEP-RQE-20".into()), ..RulesArgs::default() },
            "did you mean AEP-REQ-20?",
        ),
        (RulesArgs { protocol: Some("http".into()), ..RulesArgs::default() }, "aaep, agui, aep"),
        (
            RulesArgs {
                protocol: Some("aep".into()),
                code: Some("AGUI-EVT-01".into()),
                json: true,
            },
            "belongs to another protocol",
        ),
    ] {
        let (code, out, err) = rules(&args);
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(err.contains(hint), "{err}");
    }
}

#[test]
fn what_is_like_no_rule_gets_no_hint() {
    for code in ["NOPE", "", "AEP", "something else entirely"] {
        let (_, _, err) = rules(&RulesArgs { code: Some(code.into()), ..RulesArgs::default() });
        assert_eq!(err, format!("error: unknown rule {code:?}\n"));
    }
}

#[test]
fn a_requirement_without_a_rule_of_its_own_is_found_in_the_coverage() {
    for code in ["AAEP-6.1-R2", "aaep-d3", "AEP-9.9-metrics"] {
        let (status, _, err) =
            rules(&RulesArgs { code: Some(code.into()), ..RulesArgs::default() });
        assert_eq!(status, 2);
        assert!(err.contains("see docs/reference/coverage.md"), "{err}");
    }
}
