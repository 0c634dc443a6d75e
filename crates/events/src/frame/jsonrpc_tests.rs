use proptest::prelude::*;

use super::*;

/// The kind, method, id and message of an envelope.
type Told = (&'static str, String, String, String);

fn told(line: &str) -> Option<Result<Told, Fault>> {
    read(line.as_bytes()).map(|envelope| {
        envelope.map(|envelope| {
            let kind = match &envelope {
                Envelope::Request { .. } => "request",
                Envelope::Notification { .. } => "notification",
                Envelope::Response { .. } => "response",
                Envelope::Failure { .. } => "failure",
            };
            let method = envelope.method().map_or(String::new(), |method| method.name().to_owned());
            let id = envelope.id().map_or(String::new(), |id| id.get().to_owned());
            let message = envelope.message().unwrap_or_default().to_vec();
            (kind, method, id, String::from_utf8(message).unwrap())
        })
    })
}

#[test]
fn an_envelope_is_opened_and_its_message_left_as_it_came() {
    for (line, expected) in [
        (
            r#"{"jsonrpc":"2.0","method":"aaep.event","params":{ "n": 1.0, "t":"\u00e9" }}"#,
            ("notification", "aaep.event", "", r#"{ "n": 1.0, "t":"\u00e9" }"#),
        ),
        (
            r#" {"params":{"a":1},"id":"a\"b","method":"aaep.subscribe","jsonrpc":"2.0"} "#,
            ("request", "aaep.subscribe", r#""a\"b""#, r#"{"a":1}"#),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"aaep.renegotiate","params":{}}"#,
            ("request", "aaep.renegotiate", "1", "{}"),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"aaep.reply","params":{}}"#,
            ("notification", "aaep.reply", "", "{}"),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"aaep.close","params":{}}"#,
            ("notification", "aaep.close", "", "{}"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"aaep.ping"}"#,
            ("request", "aaep.ping", "null", ""),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1e3,"result":{"type":"subscription.rejected"},"more":[]}"#,
            ("response", "", "1e3", r#"{"type":"subscription.rejected"}"#),
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, ("response", "", "1", "null")),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":[1]}}"#,
            ("failure", "", "1", ""),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"x.\u0079","params":[1]}"#,
            ("notification", "x.y", "", "[1]"),
        ),
        (
            r#"{"jsonrpc":"\u0032.0","method":"aaep\u002eping","id":2}"#,
            ("request", "aaep.ping", "2", ""),
        ),
    ] {
        let (kind, method, id, message) = expected;
        let expected = (kind, method.to_owned(), id.to_owned(), message.to_owned());
        assert_eq!(told(line), Some(Ok(expected)), "{line}");
    }
}

#[test]
fn what_is_wrong_with_an_envelope_has_a_name() {
    for (line, fault) in [
        (r#"{"jsonrpc":"1.0","method":"aaep.ping"}"#, Fault::Version),
        (r#"{"jsonrpc":2.0,"method":"aaep.ping"}"#, Fault::Version),
        (r#"{"jsonrpc":null,"method":"aaep.ping"}"#, Fault::Version),
        (r#"[{"jsonrpc":"2.0","method":"aaep.ping"}]"#, Fault::Batch),
        (r#"{"jsonrpc":"2.0","jsonrpc":"2.0","method":"aaep.ping"}"#, Fault::Repeated),
        (r#"{"jsonrpc":"2.0","id":{},"method":"aaep.ping"}"#, Fault::Id),
        (r#"{"jsonrpc":"2.0","id":true,"result":1}"#, Fault::Id),
        (r#"{"jsonrpc":"2.0","result":1}"#, Fault::MissingId),
        (r#"{"jsonrpc":"2.0","error":{"code":1,"message":""}}"#, Fault::MissingId),
        (r#"{"jsonrpc":"2.0","method":7}"#, Fault::Method),
        (r#"{"jsonrpc":"2.0","method":"aaep.event"}"#, Fault::MissingParams),
        (r#"{"jsonrpc":"2.0","id":1,"method":"aaep.subscribe"}"#, Fault::MissingParams),
        (r#"{"jsonrpc":"2.0","method":"aaep.event","params":[{}]}"#, Fault::Params),
        (r#"{"jsonrpc":"2.0","method":"aaep.event","params":null}"#, Fault::Params),
        (r#"{"jsonrpc":"2.0","method":"other","params":"x"}"#, Fault::Params),
        (r#"{"jsonrpc":"2.0"}"#, Fault::Kind),
        (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}"#, Fault::Kind),
        (r#"{"jsonrpc":"2.0","id":1,"method":"aaep.ping","result":1}"#, Fault::Kind),
        (r#"{"jsonrpc":"2.0","id":1,"error":null}"#, Fault::Error),
        (r#"{"jsonrpc":"2.0","id":1,"error":[1,"x"]}"#, Fault::Error),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"x"}}"#, Fault::Error),
    ] {
        assert_eq!(told(line), Some(Err(fault)), "{line}");
    }
}

#[test]
fn what_is_no_envelope_is_left_alone() {
    for line in [
        "",
        "7",
        "\"jsonrpc\"",
        "{}",
        r#"{"type":"aaep:agent.output","text":"a \"jsonrpc\" line"}"#,
        r#"{"input":{"jsonrpc":"2.0","method":"aaep.ping"}}"#,
        r#"["jsonrpc"]"#,
        r#"[["2.0","jsonrpc"]]"#,
        r#"[{"a":"jsonrpc"}]"#,
        r#"[info] "jsonrpc""#,
        r#"{"jsonrpc":"2.0","method""#,
        r#"{"jsonrpc":"2.0","method":"aaep.ping"} {}"#,
    ] {
        assert_eq!(told(line), None, "{line}");
    }
    assert!(read(b"{\"jsonrpc\":\"2.0\",\"method\":\"aaep.ping\xFF\"}").is_none());
}

#[test]
fn aaep_says_which_calls_are_answered() {
    let answered: Vec<_> = ["event", "subscribe", "renegotiate", "reply", "close", "ping", "other"]
        .map(|name| Method::parse(format!("aaep.{name}").into()).is_request())
        .into();
    assert_eq!(
        answered,
        [Some(false), Some(true), Some(true), Some(false), Some(false), Some(true), None]
    );
}

#[test]
fn every_kind_is_written_on_one_line() {
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    let (id, inner) = (raw("1"), raw("{\r\n  \"a\": 1\n}"));
    let name = Method::Other("a\"\nb".into());
    for (envelope, expected) in [
        (
            Envelope::Request { id: &id, method: Method::Subscribe, params: Some(&inner) },
            r#"{"jsonrpc":"2.0","id":1,"method":"aaep.subscribe","params":{    "a": 1 }}"#,
        ),
        (
            Envelope::Notification { method: name, params: None },
            r#"{"jsonrpc":"2.0","method":"a\"\nb"}"#,
        ),
        (
            Envelope::Response { id: &id, result: &inner },
            r#"{"jsonrpc":"2.0","id":1,"result":{    "a": 1 }}"#,
        ),
        (
            Envelope::Failure { id: &id, code: -1, message: "n\no".into(), data: Some(&inner) },
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"n\no","data":{    "a": 1 }}}"#,
        ),
    ] {
        let mut out = Vec::new();
        write(&mut out, &envelope);
        assert_eq!(String::from_utf8(out).unwrap(), format!("{expected}\n"));
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        number in any::<i64>(),
        method in prop_oneof![Just("aaep.event".to_owned()), Just("aaep.ping".to_owned()), any::<String>()],
        text in any::<String>(),
    ) {
        let id = RawValue::from_string(number.to_string())?;
        let inner = serde_json::value::to_raw_value(&serde_json::json!({ "text": text }))?;
        for envelope in [
            Envelope::Request { id: &id, method: Method::parse(method.as_str().into()), params: Some(&inner) },
            Envelope::Notification { method: Method::parse(method.as_str().into()), params: Some(&inner) },
            Envelope::Response { id: &id, result: &inner },
            Envelope::Failure { id: &id, code: number, message: text.as_str().into(), data: Some(&inner) },
        ] {
            let mut line = Vec::new();
            write(&mut line, &envelope);
            let Some(Ok(read)) = read(&line) else { return Err(TestCaseError::fail("it is no envelope")) };
            prop_assert_eq!(format!("{read:?}"), format!("{envelope:?}"));
        }
    }
}
