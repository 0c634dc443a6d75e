use banister_events::event::Protocol;

use super::*;

fn schemas(args: &SchemaArgs) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = run(args, &mut out, &mut err).unwrap();
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

fn of(protocol: &str) -> SchemaArgs {
    SchemaArgs { protocol: protocol.into(), ..SchemaArgs::default() }
}

#[test]
fn every_listed_schema_can_be_printed() {
    for protocol in Protocol::ALL {
        let (code, out, err) = schemas(&of(protocol.name()));
        assert_eq!((code, err.as_str()), (0, ""));
        assert_eq!(out.lines().count(), schema::all(protocol).len());
        for name in out.lines() {
            let kind = name.rsplit('/').next().unwrap().trim_end_matches(".schema.json").to_owned();
            let (code, out, err) = schemas(&SchemaArgs { kind: Some(kind), ..of(protocol.name()) });
            assert_eq!((code, err.as_str()), (0, ""), "{name}");
            assert!(serde_json::from_str::<Value>(&out).unwrap().is_object(), "{name}");
        }
    }
}

#[test]
fn the_list_as_json_names_its_schema() {
    let (_, out, _) = schemas(&SchemaArgs { json: true, ..of("aaep") });
    let list: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&list["schema"], &list["protocol"]),
        (&json!("banister.schema/v1"), &json!("aaep"))
    );
    assert_eq!(list["schemas"].as_array().unwrap().len(), schema::all(Protocol::Aaep).len());
}

#[test]
fn all_of_them_are_written_as_files() {
    let dir = tempfile::tempdir().unwrap();
    let (code, out, _) = schemas(&SchemaArgs { out: Some(dir.path().join("new")), ..of("aaep") });
    assert_eq!((code, out.as_str()), (0, ""));
    for (name, schema) in schema::all(Protocol::Aaep) {
        let content = std::fs::read(dir.path().join("new").join(name)).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&content).unwrap(), schema);
    }
}

#[test]
fn unknown_names_are_usage_errors_with_a_hint() {
    let typo = SchemaArgs { kind: Some("agent.tool.invokd".into()), ..of("aaep") };
    for (args, hint) in
        [(typo, "did you mean agent.tool.invoked?"), (of("http"), "aaep, agui, aep")]
    {
        let (code, out, err) = schemas(&args);
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(err.contains(hint), "{err}");
    }
    let (_, _, err) = schemas(&SchemaArgs { kind: Some("nope".into()), ..of("aaep") });
    assert_eq!(err, "error: unknown type \"nope\"\n");
}
