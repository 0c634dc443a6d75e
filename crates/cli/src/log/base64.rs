//! Base64 with padding (RFC 4648, section 4), for bytes that are not text.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = 0;
        for (index, byte) in chunk.iter().enumerate() {
            group |= u32::from(*byte) << (16 - 8 * index);
        }
        for index in 0..4 {
            let digit = (group >> (18 - 6 * index)) & 63;
            let letter = ALPHABET.get(digit as usize).copied().unwrap_or_default();
            text.push(if index > chunk.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    /// The test vectors of RFC 4648, section 10.
    #[test]
    fn the_letters_are_those_of_the_standard() {
        let vectors =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (bytes, text) in vectors {
            assert_eq!(super::encode(bytes.as_bytes()), text);
        }
        assert_eq!(super::encode(&[0xff, 0xfe, 0x3e]), "//4+");
    }
}
