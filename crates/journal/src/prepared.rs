//! A draft with all that can be worked out before its turn: the writer's time is everybody's.

use bytes::Bytes;
use serde_json::Value;

use crate::capture::{Captured, Entry};
use crate::record::Draft;
use crate::{Error, chain, key};

/// How deep findings and gate may be nested; `serde_json` would refuse to read more than 128 back.
const DEPTH: usize = 100;

/// A draft, ready to be chained and stored.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) draft: Draft,
    /// RFC 3339.
    pub(crate) time: String,
    /// SHA-256 of the body.
    pub(crate) body: [u8; 32],
    pub(crate) findings: Option<String>,
    pub(crate) gate: Option<String>,
    pub(crate) captured: Captured,
    /// What the exact bytes are bound with, if they are held.
    pub(crate) salt: [u8; 32],
}

impl Prepared {
    pub(crate) fn new(entry: Entry) -> Result<Self, Error> {
        let Entry { draft, level, digest, exact } = entry;
        let text = |value: &Value| {
            if shallow(value, DEPTH) {
                Ok(value.to_string())
            } else {
                Err(Error::TooDeep { limit: DEPTH })
            }
        };
        let findings = Some(&draft.findings).filter(|findings| !findings.is_null());
        let salt = if exact.is_some() { key::random()? } else { [0; 32] };
        let commitment = exact.as_ref().map(|exact| chain::commitment(&salt, exact));
        Ok(Self {
            captured: Captured { level, digest, commitment, exact },
            salt,
            time: draft.time.to_string(),
            body: chain::digest(&draft.body),
            findings: findings.map(text).transpose()?,
            gate: draft.gate.as_ref().map(text).transpose()?,
            draft,
        })
    }

    /// How many bytes it holds.
    pub(crate) fn bytes(&self) -> usize {
        let draft = &self.draft;
        let source = &draft.source;
        let texts = [&draft.session, &source.protocol, &source.agent, &source.door, &source.key];
        let optional = [&draft.turn, &draft.action, &draft.event_id, &self.findings, &self.gate];
        let texts = texts.into_iter().chain(optional.into_iter().flatten());
        let exact = self.captured.exact.as_ref().map_or(0, Bytes::len);
        draft.body.len() + exact + texts.map(String::len).sum::<usize>()
    }
}

fn shallow(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else {
        return false;
    };
    match value {
        Value::Array(items) => items.iter().all(|item| shallow(item, below)),
        Value::Object(members) => members.values().all(|member| shallow(member, below)),
        _ => true,
    }
}
