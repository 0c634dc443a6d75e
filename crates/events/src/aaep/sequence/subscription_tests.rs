use serde_json::{Value, json};

use super::*;
use crate::check::time::rfc3339;
use crate::check::with_document;

/// Everything found in a stream, as code and pointer.
fn codes(messages: &[Value]) -> Vec<(&'static str, String)> {
    let mut subscriptions = Subscriptions::default();
    let mut findings = Vec::new();
    for message in messages {
        feed(&mut subscriptions, message, &mut findings);
    }
    subscriptions.finish(&mut findings);
    findings.into_iter().map(|finding| (finding.rule.code, finding.pointer)).collect()
}

fn feed(subscriptions: &mut Subscriptions, message: &Value, findings: &mut Vec<Finding>) {
    with_document(message, |document| {
        let object = document.root();
        let name = text(object, "type").unwrap();
        if name.contains(':') {
            let nanos = text(object, "timestamp").and_then(|time| rfc3339(&time));
            let nanos = nanos.map(|moment| moment.nanos);
            subscriptions.event(Type::parse(&name), object, nanos, findings);
        } else {
            subscriptions.message(&name, object, findings);
        }
    });
}

fn request(capabilities: Value) -> Value {
    let mut message =
        json!({"type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "ears"});
    message["capabilities"] = capabilities;
    message
}

fn accepted(id: &str, honoured: Value) -> Value {
    let mut message = json!({"type": "subscription.accepted", "subscription_id": id,
        "aaep_version": "1.0.0", "producer": {"agent_id": "cook"}});
    message["honored_capabilities"] = honoured;
    message
}

fn rejected(message: &str) -> Value {
    json!({"type": "subscription.rejected", "reason_code": "unknown", "reason_message": message})
}

fn renegotiate(id: &str, capabilities: Value) -> Value {
    let mut message = json!({"type": "subscription.renegotiate", "subscription_id": id});
    message["capabilities"] = capabilities;
    message
}

fn close(id: &str) -> Value {
    json!({"type": "subscription.close", "subscription_id": id, "reason_code": "done",
        "reason_message": "Bye."})
}

fn reply(id: &str) -> Value {
    json!({"type": "confirmation.reply", "reply_token": "rpl_1", "decision": "accept",
        "subscription_id": id, "timestamp": "2026-03-01T12:00:00Z"})
}

/// An event this many milliseconds after noon.
fn event(kind: &str, millis: u32) -> Value {
    let (minute, second, milli) = (millis / 60_000, millis / 1000 % 60, millis % 1000);
    json!({"type": format!("aaep:agent.{kind}"), "producer": {"agent_id": "cook"},
        "timestamp": format!("2026-03-01T12:{minute:02}:{second:02}.{milli:03}Z")})
}

const WIDER_CODE: &str = "AAEP-5.4.4-R1";

/// Which capabilities of an answer are wider than asked.
fn widened(asked: Value, honoured: Value) -> Vec<String> {
    let found = codes(&[request(asked), accepted("sub_1", honoured)]);
    let wider = |(code, pointer): (&str, String)| {
        assert_eq!(code, WIDER_CODE);
        pointer.strip_prefix("/honored_capabilities/").unwrap().to_owned()
    };
    found.into_iter().map(wider).collect()
}

#[test]
fn an_answer_within_what_was_asked_passes() {
    let asked = json!({"max_events_per_second": 4, "languages": ["en-GB", "de"],
        "coalesce_boundaries": ["word", "sentence"], "supported_conformance_levels": [1, 2],
        "supported_extensions": ["https://a.example/v1"], "supports_confirmation_reply": true,
        "accept_signed_manifests_only": false,
        "event_filters": {"include": ["aaep:agent.tool.*"], "exclude": ["aaep:agent.tool.invoked"]}});
    assert_eq!(widened(asked.clone(), asked.clone()), [""; 0]);
    assert_eq!(widened(asked.clone(), json!({})), [""; 0]);
    assert_eq!(widened(json!({}), asked.clone()), [""; 0]);
    let less = json!({"max_events_per_second": 4.0, "languages": ["EN-gb"],
        "coalesce_boundaries": ["word"], "supported_conformance_levels": [2.0],
        "supported_extensions": [], "supports_confirmation_reply": false,
        "accept_signed_manifests_only": true,
        "event_filters": {"include": ["aaep:agent.tool.completed"], "exclude": []}});
    assert_eq!(widened(asked, less), [""; 0]);
}

#[test]
fn each_capability_that_is_wider_is_told() {
    for (name, asked, honoured) in [
        ("max_events_per_second", json!(4), json!(5)),
        ("languages", json!(["en"]), json!(["en", "fr"])),
        ("coalesce_boundaries", json!(["sentence"]), json!(["word"])),
        ("supported_conformance_levels", json!([1]), json!([1, 2])),
        ("supported_extensions", json!([]), json!(["https://a.example/v1"])),
        ("supports_confirmation_reply", json!(false), json!(true)),
        ("supports_clarification_reply", json!(false), json!(true)),
        ("accept_signed_manifests_only", json!(true), json!(false)),
        (
            "event_filters",
            json!({"exclude": ["aaep:agent.progress.updated"]}),
            json!({"exclude": []}),
        ),
        (
            "event_filters",
            json!({"include": ["aaep:agent.tool.*"]}),
            json!({"include": ["aaep:agent.tool.*", "aaep:agent.output.streaming"]}),
        ),
    ] {
        let mut answer = accepted("sub_1", json!({name: honoured}));
        answer["manifest_uri"] = json!("https://a.example/manifest");
        let found = codes(&[request(json!({name: asked})), answer]);
        assert_eq!(found, [(WIDER_CODE, format!("/honored_capabilities/{name}"))], "{name}");
    }
}

#[test]
fn a_language_and_its_region_are_one_in_either_direction() {
    assert_eq!(widened(json!({"languages": ["en"]}), json!({"languages": ["en-US"]})), [""; 0]);
    assert_eq!(
        widened(json!({"languages": ["zh-Hant-TW"]}), json!({"languages": ["zh"]})),
        [""; 0]
    );
    assert_eq!(
        widened(json!({"languages": ["en-US"]}), json!({"languages": ["en-GB"]})),
        ["languages"]
    );
    assert_eq!(widened(json!({"languages": ["en"]}), json!({"languages": ["enm"]})), ["languages"]);
}

#[test]
fn filters_are_compared_by_what_passes_and_not_by_how_they_are_written() {
    let filters = |filters: Value| json!({"event_filters": filters});
    let same = |asked: Value, honoured: Value| {
        assert_eq!(widened(filters(asked), filters(honoured)), [""; 0]);
    };
    same(
        json!({"exclude": ["aaep:agent.tool.invoked"]}),
        json!({"exclude": ["aaep:agent.tool.*"]}),
    );
    same(
        json!({"exclude": ["aaep:agent.tool.*"]}),
        json!({"exclude": ["aaep:agent.tool.invoked", "aaep:agent.tool.completed"]}),
    );
    same(
        json!({"exclude": ["aaep:agent.progress.updated"]}),
        json!({"include": ["aaep:agent.session.*"], "exclude": []}),
    );
    same(
        json!({"include": ["aaep:agent.tool.*"]}),
        json!({"include": ["https://aaep-protocol.org/types/agent.tool.*"]}),
    );
    same(json!({"exclude": ["aaep:agent.awaiting.*"]}), json!({"exclude": []}));
    same(json!({"include": ["aaep:agent.tool.*"]}), json!({"exclude": []}));
    same(json!({"include": []}), json!({"include": ["*"]}));
    same(json!({"include": ["aaep:agent.tool.*"]}), json!({"include": []}));
    // Patterns without a meaning are not judged.
    same(json!({"exclude": ["*.updated"]}), json!({"exclude": []}));
    same(json!({"include": ["https://*"]}), json!({"include": ["*"]}));
    same(json!({"exclude": ["aaep:agent.*"]}), json!({"exclude": ["*.*"]}));
    let many: Vec<String> = (0..300).map(|index| format!("acme:t{index}")).collect();
    same(json!({"exclude": ["aaep:agent.*"]}), json!({"exclude": many}));
}

#[test]
fn an_answer_that_could_belong_to_two_requests_is_not_judged() {
    let narrow = || request(json!({"max_events_per_second": 1}));
    let found = codes(&[
        narrow(),
        request(json!({})),
        accepted("sub_1", json!({"max_events_per_second": 9})),
        accepted("sub_2", json!({"max_events_per_second": 9})),
    ]);
    assert_eq!(found, []);
    // Even when the first one has been answered, the second stays in doubt.
    let found = codes(&[
        request(json!({})),
        narrow(),
        rejected("No."),
        accepted("sub_1", json!({"max_events_per_second": 9})),
    ]);
    assert_eq!(found, []);
    // An answered request leaves no doubt.
    let found = codes(&[
        request(json!({})),
        rejected("No."),
        narrow(),
        accepted("sub_1", json!({"max_events_per_second": 9})),
    ]);
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_second_copy_of_an_answer_is_not_taken_for_the_answer_to_something_else() {
    let wide = || accepted("sub_1", json!({"max_events_per_second": 9}));
    let asked = || request(json!({"max_events_per_second": 9}));
    let narrow = json!({"max_events_per_second": 1});
    assert_eq!(codes(&[asked(), wide(), request(narrow.clone()), wide()]), []);
    assert_eq!(codes(&[asked(), wide(), renegotiate("sub_1", narrow.clone()), wide()]), []);
    let found = codes(&[
        asked(),
        wide(),
        renegotiate("sub_1", narrow.clone()),
        wide(),
        accepted("sub_1", json!({"max_events_per_second": 2})),
    ]);
    assert_eq!(found, [(WIDER_CODE, "/honored_capabilities/max_events_per_second".to_owned())]);
    // The copy of a rejection does not end the subscription whose terms are to change.
    let found = codes(&[
        asked(),
        wide(),
        event("state.changed", 0),
        request(json!({})),
        rejected("No."),
        renegotiate("sub_1", narrow),
        rejected("No."),
        event("state.changed", 60_000),
    ]);
    assert_eq!(found, []);
}

#[test]
fn capabilities_too_large_to_keep_are_not_judged() {
    let long = "x".repeat(LONGEST);
    let asked = json!({"max_events_per_second": 1, "acme": {"note": long}});
    assert_eq!(widened(asked, json!({"max_events_per_second": 9})), [""; 0]);
}

#[test]
fn a_demand_for_a_signed_manifest_is_met_or_refused() {
    let demand = || request(json!({"accept_signed_manifests_only": true}));
    let code = ("AAEP-5.3.1.12-R1", "/signed_manifest".to_owned());
    assert_eq!(codes(&[demand(), accepted("sub_1", json!({}))]), [code]);
    for (name, value) in [
        ("signed_manifest", json!("a.b.c")),
        ("manifest_uri", json!("https://a.example/m")),
        ("producer", json!({"agent_id": "cook", "manifest_uri": "https://a.example/m"})),
    ] {
        let mut answer = accepted("sub_1", json!({}));
        answer[name] = value;
        assert_eq!(codes(&[demand(), answer]), [], "{name}");
    }
    assert_eq!(codes(&[demand(), rejected("No.")]), []);
    let other = request(json!({"accept_signed_manifests_only": false}));
    assert_eq!(codes(&[other, accepted("sub_1", json!({}))]), []);
    let two = [demand(), demand(), accepted("sub_1", json!({})), rejected("No.")];
    assert_eq!(codes(&two), [], "it is not known which one was accepted");
}

#[test]
fn what_has_no_answer_at_the_end_is_noted() {
    let silent = [("AAEP-9.5.1-3", String::new())];
    assert_eq!(codes(&[request(json!({}))]), silent);
    assert_eq!(codes(&[request(json!({})), request(json!({})), rejected("No.")]), silent);
    let start = [request(json!({})), accepted("sub_1", json!({}))];
    let then = |messages: &[Value]| codes(&[&start, messages].concat());
    let terms = ("AAEP-5.7-R2", String::new());
    assert_eq!(then(&[renegotiate("sub_1", json!({}))]), [terms]);
    assert_eq!(then(&[renegotiate("sub_2", json!({}))]), [], "of a subscription never seen");
    assert_eq!(then(&[renegotiate("sub_1", json!({})), close("sub_1")]), []);
    assert_eq!(then(&[renegotiate("sub_1", json!({})), rejected("No.")]), []);
    let answer = accepted("sub_1", json!({"max_events_per_second": 1}));
    assert_eq!(then(&[renegotiate("sub_1", json!({"max_events_per_second": 1})), answer]), []);
}

#[test]
fn new_terms_are_compared_with_what_was_asked_for_anew() {
    let start = [request(json!({"max_events_per_second": 9})), accepted("sub_1", json!({}))];
    let narrow = json!({"max_events_per_second": 1});
    let wide = accepted("sub_1", json!({"max_events_per_second": 2}));
    let then = |messages: &[Value]| codes(&[&start, messages].concat()).len();
    assert_eq!(then(&[renegotiate("sub_1", narrow.clone()), wide.clone()]), 1);
    let twice = [renegotiate("sub_1", json!({})), renegotiate("sub_1", narrow.clone())];
    assert_eq!(then(&[&twice[..], std::slice::from_ref(&wide)].concat()), 0, "which one is it?");
    let between = [renegotiate("sub_1", narrow), request(json!({})), wide, rejected("No.")];
    assert_eq!(then(&between), 0, "the id may be used again for the request");
}

const FILTERED_CODE: &str = "AAEP-5.3.1.7-R1";

#[test]
fn what_a_renegotiation_leaves_out_stays_as_it_was() {
    let first = json!({"languages": ["en"], "max_events_per_second": 2});
    let pace = || renegotiate("sub_1", json!({"pace_wpm": 180}));
    let then = |honoured: Value| {
        let asked = [request(first.clone()), accepted("sub_1", first.clone())];
        codes(&[asked.as_slice(), &[pace(), accepted("sub_1", honoured)]].concat())
    };
    let wider = |name: &str| ("AAEP-5.4.4-R1", format!("/honored_capabilities/{name}"));
    let wide = json!({"languages": ["en", "de"], "max_events_per_second": 500, "pace_wpm": 180});
    assert_eq!(then(wide.clone()), [wider("max_events_per_second"), wider("languages")]);
    assert_eq!(then(json!({"pace_wpm": 180})), []);
    assert_eq!(then(json!({"languages": ["en"], "pace_wpm": 180})), []);
    // Nobody saw the request, but the first answer tells what was agreed on.
    let found = codes(&[accepted("sub_1", first.clone()), pace(), accepted("sub_1", wide)]);
    assert_eq!(found.len(), 2);
    // What is asked for anew may be wider.
    let more = json!({"languages": ["en", "de"], "pace_wpm": 180});
    let anew =
        [request(first.clone()), accepted("sub_1", first), renegotiate("sub_1", more.clone())];
    assert_eq!(codes(&[anew.as_slice(), &[accepted("sub_1", more)]].concat()), []);
}

#[test]
fn terms_last_over_a_renegotiation_that_does_not_name_them() {
    let shut = json!({"event_filters": {"exclude": ["aaep:agent.progress.updated"]}});
    let pace = json!({"pace_wpm": 180});
    let progress = event("progress.updated", 9000);
    let messages = |asked: &Value, honoured: &Value| {
        codes(&[
            request(shut.clone()),
            accepted("sub_1", shut.clone()),
            renegotiate("sub_1", asked.clone()),
            accepted("sub_1", honoured.clone()),
            progress.clone(),
        ])
    };
    let told = [("AAEP-5.3.1.7-R1", "/type".to_owned())];
    assert_eq!(messages(&pace, &pace), told);
    let included = json!({"event_filters": {"include": ["aaep:*"]}});
    assert_eq!(messages(&included, &included), told);
    let open = json!({"event_filters": {"include": ["aaep:*"], "exclude": []}});
    assert_eq!(messages(&open, &open), []);
}

#[test]
fn a_version_above_the_one_asked_for_is_told() {
    for (asked, given, found) in [
        ("1.0.0", "1.0.0", 0),
        ("1.0.0", "1.0.2", 0),
        ("1.3.0", "1.0.0", 0),
        ("99.99.99", "1.0.0", 0),
        ("1.0.0", "1.3.0", 1),
    ] {
        let (mut question, mut answer) = (request(json!({})), accepted("sub_1", json!({})));
        question["aaep_version"] = asked.into();
        answer["aaep_version"] = given.into();
        let expected = vec![("AAEP-12.6.2-R1", "/aaep_version".to_owned()); found];
        assert_eq!(codes(&[question, answer.clone()]), expected, "{asked} {given}");
        assert_eq!(codes(&[answer]), []);
    }
}

fn quiet() -> Value {
    json!({"event_filters": {"exclude": ["aaep:agent.progress.*"]}})
}

#[test]
fn what_the_filters_leave_out_is_told_once_for_each_type() {
    let found = codes(&[
        request(quiet()),
        accepted("sub_1", quiet()),
        event("state.changed", 0),
        event("progress.updated", 1),
        event("progress.updated", 2),
    ]);
    assert_eq!(found, [(FILTERED_CODE, "/type".to_owned())]);
    let only = json!({"event_filters": {"include": ["aaep:agent.session.*"]}});
    let found = codes(&[
        request(only.clone()),
        accepted("sub_1", only),
        event("session.started", 0),
        event("state.changed", 1),
        event("tool.invoked", 2),
    ]);
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn what_is_critical_passes_every_filter() {
    let nothing = json!({"event_filters": {"exclude": ["*"]}});
    let mut urgent = event("progress.updated", 0);
    urgent["urgency"] = json!("critical");
    let messages = [
        request(nothing.clone()),
        accepted("sub_1", nothing),
        urgent,
        event("session.errored", 1),
        event("awaiting.confirmation", 2),
        event("handoff.requested", 3),
    ];
    assert_eq!(codes(&messages), []);
}

#[test]
fn an_extension_is_left_out_only_where_it_is_excluded() {
    let mut own = event("x", 0);
    own["type"] = json!("acme:oven.hot");
    let honour = |filters: Value| {
        let terms = json!({"event_filters": filters});
        codes(&[request(terms.clone()), accepted("sub_1", terms), own.clone()])
    };
    assert_eq!(honour(json!({"include": ["aaep:agent.*"]})), []);
    assert_eq!(honour(json!({"exclude": ["acme:*"]})).len(), 1);
}

#[test]
fn events_are_not_judged_where_others_may_listen() {
    let start = || [request(quiet()), accepted("sub_1", quiet())];
    let loud = event("progress.updated", 1);
    let with = |before: &[Value], after: &[Value]| {
        let [request, accepted] = start();
        codes(&[before, &[request, accepted], after, std::slice::from_ref(&loud)].concat())
    };
    assert_eq!(with(&[], &[]).len(), 1);
    assert_eq!(with(&[event("state.changed", 0)], &[]), [], "somebody listened before");
    assert_eq!(with(&[], &[request(json!({})), accepted("sub_2", json!({}))]), []);
    assert_eq!(with(&[], &[close("sub_2")]), []);
    assert_eq!(with(&[], &[accepted("no id", json!({}))]), []);
    let mut other = loud.clone();
    other["producer"]["agent_id"] = json!("gardener");
    let [request, accepted] = start();
    assert_eq!(codes(&[request, accepted, other]), [], "of another agent");
}

#[test]
fn what_was_on_its_way_passes_under_the_older_terms() {
    let filters = json!({"include": ["aaep:*"], "exclude": []});
    let (open, shut) = (json!({"max_events_per_second": 9, "event_filters": filters}), quiet());
    let found = codes(&[
        request(open.clone()),
        accepted("sub_1", open.clone()),
        renegotiate("sub_1", shut.clone()),
        accepted("sub_1", shut.clone()),
        accepted("sub_1", shut.clone()),
        event("progress.updated", 0),
    ]);
    assert_eq!(found, []);
    let found = codes(&[
        request(shut.clone()),
        accepted("sub_1", shut),
        renegotiate("sub_1", open.clone()),
        accepted("sub_1", open),
        event("progress.updated", 0),
    ]);
    assert_eq!(found, []);
}

const FAST: &str = "AAEP-5.3.1.1-R1";

/// How often it is told that this many events, so many milliseconds apart, are too fast for the rate.
fn too_fast(rate: u32, count: u32, apart: u32) -> usize {
    let terms = json!({"max_events_per_second": rate});
    let mut messages = vec![request(terms.clone()), accepted("sub_1", terms)];
    messages.extend((0..count).map(|index| event("state.changed", index * apart)));
    let found = codes(&messages);
    assert!(found.iter().all(|found| *found == (FAST, "/timestamp".to_owned())), "{found:?}");
    found.len()
}

#[test]
fn the_rate_is_an_average_and_told_once() {
    assert_eq!(too_fast(1, 20, 0), 0, "a burst of ten seconds and ten events");
    assert_eq!(too_fast(1, 21, 0), 1);
    assert_eq!(too_fast(1, 300, 0), 1);
    assert_eq!(too_fast(1, 300, 1000), 0);
    assert_eq!(too_fast(1, 300, 900), 1);
    assert_eq!(too_fast(4, 50, 0), 0);
    assert_eq!(too_fast(4, 51, 0), 1);
}

#[test]
fn critical_events_and_those_without_a_time_cost_nothing() {
    let terms = json!({"max_events_per_second": 1});
    let mut messages = vec![request(terms.clone()), accepted("sub_1", terms)];
    messages.extend((0..60).map(|_| event("session.errored", 0)));
    messages.extend((0..60).map(|_| {
        let mut timeless = event("state.changed", 0);
        timeless["timestamp"] = json!("soon");
        timeless
    }));
    // Two sessions whose clocks differ: time that runs back does not fill the budget twice, nor empty it.
    messages.extend((0..40).map(|index| event("state.changed", index % 2 * 500 + index * 500)));
    assert_eq!(codes(&messages), []);
}

#[test]
fn a_slower_rate_holds_for_nothing_that_was_on_its_way() {
    let rate = |rate: u32| json!({"max_events_per_second": rate});
    let mut messages = vec![
        request(rate(4)),
        accepted("sub_1", rate(4)),
        renegotiate("sub_1", rate(1)),
        accepted("sub_1", rate(1)),
    ];
    messages.extend((0..50).map(|_| event("state.changed", 0)));
    assert_eq!(codes(&messages), []);
    messages.push(event("state.changed", 0));
    assert_eq!(codes(&messages), [(FAST, "/timestamp".to_owned())]);
}

const CLOSED: &str = "AAEP-5.8.2-R1";

#[test]
fn nothing_follows_a_close_but_what_was_on_its_way() {
    let start = [request(json!({})), accepted("sub_1", json!({})), event("state.changed", 1000)];
    let then = |messages: &[Value]| codes(&[&start, messages].concat());
    let late = event("state.changed", 6001);
    let code = [(CLOSED, "/type".to_owned())];
    assert_eq!(then(&[close("sub_1"), event("state.changed", 6000)]), []);
    let found = then(&[close("sub_1"), event("state.changed", 5000), late.clone(), late.clone()]);
    assert_eq!(found, code, "told once, and not postponed by what was on its way");
    let refused = [renegotiate("sub_1", json!({})), rejected("No."), late.clone()];
    assert_eq!(then(&refused), code);
    assert_eq!(then(&[close("sub_2"), late.clone()]), [], "another one was closed");
    let again = [close("sub_1"), request(json!({})), accepted("sub_2", json!({})), late.clone()];
    assert_eq!(then(&again), []);
    let both = [request(json!({})), accepted("sub_2", json!({})), close("sub_2"), close("sub_1")];
    assert_eq!(then(&[&both[..], std::slice::from_ref(&late)].concat()), code);
    assert_eq!(then(&[close("sub_1"), accepted("sub_1", json!({})), late]), [], "opened again");
}

#[test]
fn a_close_before_any_event_or_with_a_request_open_proves_nothing() {
    let start = [request(json!({})), accepted("sub_1", json!({}))];
    let late = event("state.changed", 60_000);
    let quiet = [close("sub_1"), event("state.changed", 0), late.clone()];
    assert_eq!(codes(&[&start[..], &quiet].concat()), []);
    let asked = [event("state.changed", 0), close("sub_1"), request(json!({})), late];
    let found = codes(&[&start[..], &asked].concat());
    assert_eq!(found, [("AAEP-9.5.1-3", String::new())]);
}

#[test]
fn a_reply_names_a_subscription_that_was_accepted() {
    let start = [request(json!({})), accepted("sub_1", json!({}))];
    let then = |messages: &[Value]| codes(&[&start, messages].concat());
    let stranger = ("AAEP-10.T1-R2", "/subscription_id".to_owned());
    assert_eq!(then(&[reply("sub_1")]), []);
    assert_eq!(then(&[reply("sub_2")]), [stranger]);
    assert_eq!(then(&[accepted("sub.2", json!({})), reply("sub_2")]), []);
    assert_eq!(then(&[close("sub_1"), reply("sub_1")]), []);
    assert_eq!(codes(&[reply("sub_2")]), [], "no handshake was recorded");
}

#[test]
fn who_said_that_it_would_not_answer_and_does_is_told_once() {
    let code = ("AAEP-5.3.1.4-R1", "/subscription_id".to_owned());
    let never = json!({"supports_confirmation_reply": false});
    let start = [request(never.clone()), accepted("sub_1", json!({}))];
    let then = |messages: &[Value]| codes(&[&start, messages].concat());
    assert_eq!(then(&[reply("sub_1"), reply("sub_1")]), [code]);
    let yes = json!({"supports_confirmation_reply": true});
    let changed = [
        renegotiate("sub_1", yes),
        accepted("sub_1", json!({"supports_confirmation_reply": true})),
        reply("sub_1"),
    ];
    assert_eq!(then(&changed), []);
    let silent = [request(json!({})), accepted("sub_1", json!({})), reply("sub_1")];
    assert_eq!(codes(&silent), [], "nothing was said");
    let unsure = [request(never), request(json!({})), accepted("sub_1", json!({})), reply("sub_1")];
    assert_eq!(codes(&unsure), [("AAEP-9.5.1-3", String::new())]);
}

#[test]
fn it_is_known_whether_terms_thin_the_stream() {
    let thinned = |messages: &[Value]| {
        let mut subscriptions = Subscriptions::default();
        for message in messages {
            feed(&mut subscriptions, message, &mut Vec::new());
        }
        (subscriptions.any_accepted(), subscriptions.thins())
    };
    let rate = json!({"max_events_per_second": 1});
    assert_eq!(thinned(&[]), (false, false));
    assert_eq!(thinned(&[request(rate.clone())]), (false, false));
    assert_eq!(thinned(&[request(rate.clone()), rejected("No.")]), (false, false));
    assert_eq!(thinned(&[request(json!({})), accepted("sub_1", json!({}))]), (true, false));
    assert_eq!(thinned(&[request(rate.clone()), accepted("sub_1", json!({}))]), (true, true));
    for terms in [rate, quiet(), json!({"coalesce_boundaries": ["sentence"]})] {
        assert_eq!(thinned(&[accepted("sub_1", terms)]), (true, true));
    }
}

#[test]
fn memory_stays_bounded_whatever_comes() {
    let mut waiting = Subscriptions::default();
    for index in 0..2 * WAITING {
        feed(&mut waiting, &request(json!({})), &mut Vec::new());
        let id = format!("sub_{index}");
        feed(&mut waiting, &renegotiate(&id, json!({})), &mut Vec::new());
    }
    assert_eq!((waiting.requests.len(), waiting.renegotiations.len()), (WAITING, WAITING));
    assert!(waiting.agreed.len() <= WAITING);
    assert_eq!(waiting.clone().requests.len(), WAITING);

    let mut strict = Subscriptions::default();
    let mut findings = Vec::new();
    let nothing = accepted("sub_1", json!({"event_filters": {"exclude": ["*"]}}));
    feed(&mut strict, &nothing, &mut findings);
    for index in 0..2 * WAITING {
        let mut own = event("x", 0);
        own["type"] = json!(format!("acme:t{index}"));
        feed(&mut strict, &own, &mut findings);
    }
    assert_eq!((strict.told.len(), findings.len()), (WAITING, WAITING));
}
