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
    derive_all(prefix, parts.iter().copied())
}

/// [`derive`], for parts that stand in no list.
pub(crate) fn derive_all<'a>(prefix: &str, parts: impl Iterator<Item = &'a str>) -> String {
    let mut hash = Gathered { bytes: [0; Gathered::ROOM], length: 0, hash: None };
    for part in parts {
        hash.add(&(part.len() as u64).to_be_bytes());
        hash.add(part.as_bytes());
    }
    let mut id = String::with_capacity(prefix.len() + 32);
    id.push_str(prefix);
    push_hex(hash.finish().get(..16).unwrap_or_default(), &mut id);
    id
}

/// Bytes to be hashed. The few that most ids have are hashed at once, which is quicker than piece by piece.
struct Gathered {
    bytes: [u8; Self::ROOM],
    length: usize,
    hash: Option<Sha256>,
}

impl Gathered {
    const ROOM: usize = 192;

    fn add(&mut self, more: &[u8]) {
        let end = self.length + more.len();
        if let Some(room) = self.bytes.get_mut(self.length..end) {
            room.copy_from_slice(more);
            self.length = end;
            return;
        }
        let hash = self.hash.get_or_insert_default();
        hash.update(self.bytes.get(..self.length).unwrap_or_default());
        hash.update(more);
        self.length = 0;
    }

    fn finish(self) -> impl AsRef<[u8]> + std::ops::Deref<Target = [u8]> {
        let last = self.bytes.get(..self.length).unwrap_or_default();
        match self.hash {
            Some(mut hash) => {
                hash.update(last);
                hash.finalize()
            }
            None => Sha256::digest(last),
        }
    }
}

/// A number in decimal digits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decimal {
    digits: [u8; 20],
    begin: usize,
}

impl Decimal {
    pub(crate) fn of(mut number: u64) -> Self {
        let mut digits = [b'0'; 20];
        let mut begin = digits.len();
        for (at, digit) in digits.iter_mut().enumerate().rev() {
            *digit = b'0' + (number % 10) as u8;
            begin = at;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        Self { digits, begin }
    }

    pub(crate) fn as_str(&self) -> &str {
        let digits = self.digits.get(self.begin..).unwrap_or_default();
        std::str::from_utf8(digits).unwrap_or_default()
    }
}

/// Lower-case hex of some bytes.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    push_hex(bytes, &mut text);
    text
}

fn push_hex(bytes: &[u8], text: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0');
    for chunk in bytes.chunks(16) {
        let mut digits = [b'0'; 32];
        for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(chunk) {
            *pair = [digit(byte >> 4), digit(byte & 15)];
        }
        let digits = digits.get(..chunk.len() * 2).unwrap_or_default();
        text.push_str(std::str::from_utf8(digits).unwrap_or_default());
    }
}

/// Whether an id is `prefix` + 1 to 64 alphanumerics (AAEP's shape).
pub(crate) fn conforms(prefix: &str, id: &str) -> bool {
    id.strip_prefix(prefix).is_some_and(|rest| {
        (1..=64).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Keeps a foreign id where it fits `prefix` + 1 to 64 alphanumerics (AAEP's shape), derives one otherwise.
///
/// ```
/// use banister_events::id::conform;
/// assert_eq!(conform("call_", "call_9"), "call_9");
/// assert!(conform("call_", "toolu_01-A").starts_with("call_"));
/// ```
pub fn conform(prefix: &str, foreign: &str) -> String {
    if conforms(prefix, foreign) { foreign.to_owned() } else { derive(prefix, &[foreign]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_others_write_them() {
        for number in [0, 1, 9, 10, 99, 100, 12_345, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(Decimal::of(number).as_str(), number.to_string());
        }
    }

    #[test]
    fn an_id_is_the_same_however_much_it_is_derived_from() {
        for length in [0, 1, 100, 183, 184, 185, 192, 193, 1_000] {
            let long = "x".repeat(length);
            let mut hash = Sha256::new();
            for part in ["a", &long, "b"] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part.as_bytes());
            }
            let whole = hex(&hash.finalize());
            assert_eq!(derive("p_", &["a", &long, "b"]), format!("p_{}", whole.get(..32).unwrap()));
        }
    }
}
