//! A record as JSON, with everything in it: `banister.record/v1`.

use banister_events::id::hex;
use banister_journal::Record;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// `body` if the bytes are text, `body_base64` if they are not: in both forms they are what was recorded.
pub(super) fn object(record: &Record) -> Value {
    let mut object = json!({
        "schema": "banister.record/v1",
        "position": record.position, "session": record.session, "seq": record.seq,
        "time": record.time.to_string(), "kind": record.kind.as_str(),
        "source": record.source,
        "turn": record.turn, "action": record.action, "event_id": record.event_id,
        "reader": record.reader,
        "findings": record.findings, "gate": record.gate,
        "level": record.captured.level,
        "digest": record.captured.digest.map(|digest| hex(&digest)),
        "commitment": record.captured.commitment.map(|commitment| hex(&commitment)),
        "held": record.captured.exact.is_some(),
        "prev": hex(&record.prev),
        "hash": hex(&record.hash),
    });
    if let Some(object) = object.as_object_mut() {
        let (name, body) = match std::str::from_utf8(&record.body) {
            Ok(text) => ("body", text.to_owned()),
            Err(_) => ("body_base64", STANDARD.encode(&record.body)),
        };
        object.insert(name.to_owned(), body.into());
    }
    object
}
