use serde_json::json;

use super::*;

#[test]
fn every_role_decodes_and_is_written_as_it_came() {
    let messages = json!([
        {"role": "developer", "id": "1", "content": "", "name": "n", "encryptedValue": "e"},
        {"role": "system", "id": "2", "content": "Be brief."},
        {"role": "assistant", "id": "3", "toolCalls": [
            {"id": "c", "type": "function", "function": {"name": "n", "arguments": "{"}, "x": null},
        ]},
        {"role": "user", "id": "4", "content": [], "subagentRunId": ""},
        {"role": "tool", "id": "5", "toolCallId": "c", "content": "", "error": "no"},
        {"role": "activity", "id": "6", "activityType": "plan", "content": {"steps": [null]}},
        {"role": "reasoning", "id": "7", "content": "hm", "metadata": {}},
        {"role": "ghost", "id": "8", "content": null},
    ]);
    let read: Vec<Message> = serde_json::from_value(messages.clone()).unwrap();
    let names: Vec<&str> = read.iter().map(Message::name).collect();
    assert_eq!(names[..7], *Role::WORDS);
    assert_eq!(read[7].role(), Role::Other("ghost".into()));
    let Message::Developer(first) = &read[0] else { panic!("another role") };
    assert_eq!((first.name.as_deref(), first.encrypted_value.as_deref()), (Some("n"), Some("e")));
    let ids: Vec<&str> = read.iter().map(Message::id).collect();
    assert_eq!(ids, ["1", "2", "3", "4", "5", "6", "7", "8"]);
    assert_eq!(serde_json::to_value(read).unwrap(), messages);
}

#[test]
fn a_message_that_lacks_or_nulls_something_does_not_decode() {
    for message in [
        json!({"role": "user", "content": "no id"}),
        json!({"role": "user", "id": "1", "content": null}),
        json!({"role": "user", "id": "1", "content": {}}),
        json!({"role": "assistant", "id": "1", "content": null}),
        json!({"role": "assistant", "id": "1", "toolCalls": [{"id": "c", "function": {"name": "n", "arguments": ""}}]}),
        json!({"role": "assistant", "id": "1", "toolCalls": [{"id": "c", "type": "function", "function": {"name": "n", "arguments": {}}}]}),
        json!({"role": "activity", "id": "1", "activityType": "x", "content": []}),
        json!({"role": "tool", "id": "1", "content": "", "metadata": null, "toolCallId": "c"}),
    ] {
        assert!(serde_json::from_value::<Message>(message.clone()).is_err(), "{message}");
    }
}

#[test]
fn parts_and_sources_decode_and_those_that_are_not_known_survive() {
    let parts = json!([
        {"type": "text", "text": "a", "metadata": 3},
        {"type": "image", "source": {"type": "data", "value": "QQ==", "mimeType": "image/png"}},
        {"type": "audio", "source": {"type": "url", "value": "https://a.example/a"}, "id": "p"},
        {"type": "video", "source": {"type": "file", "value": "file-1", "provider": "acme"}},
        {"type": "document", "source": {"type": "cloud", "value": null}},
        {"type": "smell", "strength": 9},
        {"text": "b"},
    ]);
    let read: Content = serde_json::from_value(parts.clone()).unwrap();
    assert_eq!(read.text(), "a");
    let Content::Parts(list) = &read else { panic!("a text") };
    assert!(matches!(&list[4], Part::Document(MediaPart { source: Source::Other(_), .. })));
    assert!(matches!(&list[5..], [Part::Other(_), Part::Other(_)]));
    assert_eq!(serde_json::to_value(&read).unwrap(), parts);
    for part in [
        json!([{"type": "text", "text": "a", "metadata": null}]),
        json!([{"type": "image", "source": {"type": "data", "value": "QQ=="}}]),
        json!([{"type": "image"}]),
        json!(["text"]),
    ] {
        assert!(serde_json::from_value::<Content>(part.clone()).is_err(), "{part}");
    }
}
