use super::*;

/// The expected values were made from the table in the module's documentation, with another language's SHA-256 and
/// Ed25519.
#[test]
fn the_signature_is_that_of_the_documented_layout() {
    let key = SigningKey::from_seed(&[7; 32]);
    let mut checkpoint = Checkpoint {
        epoch: "00112233445566778899aabbccddeeff".to_owned(),
        number: 258,
        time: "2026-05-04T10:00:00Z".to_owned(),
        prev: [9; 32],
        key: key.public(),
        heads: vec![
            Head { session: "sessä".to_owned(), seq: 3, hash: [1; 32] },
            Head { session: String::new(), seq: 1, hash: [2; 32] },
        ],
        cuts: vec![Cut {
            session: "s".to_owned(),
            seq: 2,
            hash: [3; 32],
            time: "2026-05-04T09:00:00Z".to_owned(),
            reason: "age".to_owned(),
        }],
        signature: [0; 64],
    };
    assert_eq!(
        hex(&checkpoint.hash()),
        "5bec43b81389a7c73d408d8cd78a87979db78eb56ccca646d786a1e695df38fd"
    );
    checkpoint.signature = key.sign(&checkpoint.message());
    assert!(checkpoint.is_signed());
    assert_eq!(
        hex(&checkpoint.signature),
        "26a070af631a49715f0c0f3a2d911a739b31fb2cc7ebdfedbfb91692f8d34e5ab7fb1a78d2c7cc3c12175b7105fa20950b1398811c546bd02f6f7625852c9c0b"
    );
}
