//! Ids that leave Banister: derived, never drawn, so that a stream written again carries the same ids.

use sha2::{Digest, Sha256};

/// `prefix` + 32 hex digits derived from the parts. Parts are length-prefixed, so that no two lists collide.
///
/// ```
/// use banister_events::id::derive;
/// let id = derive("evt_", &["s_1", "7", "0"]);
/// assert_eq!(id.len(), "evt_".len() + 32);
/// assert_ne!(id, derive("evt_", &["s_17", "0"]));
/// ```
pub fn derive(prefix: &str, parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut id = String::with_capacity(prefix.len() + 32);
    id.push_str(prefix);
    push_hex(hash.finalize().get(..16).unwrap_or_default(), &mut id);
    id
}

/// Lower-case hex of some bytes.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    push_hex(bytes, &mut text);
    text
}

fn push_hex(bytes: &[u8], text: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from(DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0')));
        }
    }
}

/// Keeps a foreign id where it fits `prefix` + 1 to 64 alphanumerics (AAEP's shape), derives one otherwise.
///
/// ```
/// use banister_events::id::conform;
/// assert_eq!(conform("call_", "call_9"), "call_9");
/// assert!(conform("call_", "toolu_01-A").starts_with("call_"));
/// ```
pub fn conform(prefix: &str, foreign: &str) -> String {
    match foreign.strip_prefix(prefix) {
        Some(rest)
            if !rest.is_empty()
                && rest.len() <= 64
                && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()) =>
        {
            foreign.to_owned()
        }
        _ => derive(prefix, &[foreign]),
    }
}
