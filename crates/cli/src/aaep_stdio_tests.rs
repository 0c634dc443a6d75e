use super::*;

fn said(talk: &mut Talk, line: &str) -> (Option<String>, Option<Value>) {
    let (pass, answer) = talk.said(line.as_bytes());
    let pass = pass.map(|bytes| String::from_utf8(bytes).unwrap());
    (pass, answer.map(|line| serde_json::from_str(&line).unwrap()))
}

fn heard(talk: &mut Talk, message: &str) -> Option<Value> {
    talk.heard(message.as_bytes()).map(|line| serde_json::from_str(&line).unwrap())
}

#[test]
fn answers_find_their_requests_in_order_and_events_are_told() {
    let mut talk = Talk::default();
    let request = r#"{"type":"subscription.request",  "n":1}"#;
    let line =
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"aaep.subscribe","params":{request}}}"#);
    assert_eq!(said(&mut talk, &line), (Some(request.to_owned()), None), "as it came");
    let line = r#"{"jsonrpc":"2.0","id":"b","method":"aaep.renegotiate","params":{"type":"subscription.renegotiate"}}"#;
    said(&mut talk, line);
    let event = heard(&mut talk, r#"{"type":"aaep:agent.session.started"}"#).unwrap();
    assert_eq!((&event["method"], event.get("id")), (&json!("aaep.event"), None));
    assert_eq!(event["params"]["type"], "aaep:agent.session.started");
    let first = heard(&mut talk, r#"{"type":"subscription.accepted","n":1}"#).unwrap();
    assert_eq!(
        first,
        json!({ "jsonrpc": "2.0", "id": 7, "result": { "type": "subscription.accepted", "n": 1 } })
    );
    let second = heard(&mut talk, r#"{"type":"subscription.rejected"}"#).unwrap();
    assert_eq!((&second["id"], second.get("error")), (&json!("b"), None), "a result, no error");
    assert_eq!(heard(&mut talk, r#"{"type":"subscription.accepted"}"#), None, "nobody asked");
    let close = heard(&mut talk, r#"{"type":"subscription.close"}"#).unwrap();
    assert_eq!(close["method"], "aaep.close");
}

#[test]
fn what_is_wrong_is_told_by_its_number() {
    let mut talk = Talk::default();
    for (line, id, code) in [
        ("{", Value::Null, -32700),
        ("[1]", Value::Null, -32600),
        (r#"{"type":"subscription.request"}"#, Value::Null, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"aaep.ping"}"#, json!(1), -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"aaep.event","params":{}}"#, json!(1), -32601),
        (r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#, json!(2), -32601),
        (r#"{"jsonrpc":"2.0","id":3,"method":"aaep.subscribe"}"#, json!(3), -32600),
    ] {
        let (pass, answer) = said(&mut talk, line);
        let answer = answer.unwrap();
        assert_eq!((pass, &answer["id"]), (None, &id), "{line}");
        assert_eq!(answer["error"]["code"], code, "{line}");
    }
    let (pass, answer) = said(&mut talk, r#"{"jsonrpc":"2.0","id":9,"method":"aaep.ping"}"#);
    assert_eq!((pass, answer), (None, Some(json!({ "jsonrpc": "2.0", "id": 9, "result": {} }))));
    let (pass, answer) = said(&mut talk, r#"{"jsonrpc":"2.0","method":"tools/list"}"#);
    assert_eq!((pass, answer), (None, None), "a notification is never answered");
}
