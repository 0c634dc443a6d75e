use proptest::prelude::*;

use super::*;

#[test]
fn credentials_leave_and_their_names_too() {
    for secret in [
        "export API_KEY=abc123",
        "git clone https://me:hunter2@example.org/x.git",
        "GITHUB_TOKEN ghp_abcdefghijklmnopqrstuv",
        "--password 'x y' password='x y'",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
        "key AKIAIOSFODNN7EXAMPLE",
    ] {
        let clean = redact(secret);
        assert!(clean.contains("[redacted]"), "{secret} → {clean}");
        for leaked in ["hunter2", "abc123", "ghp_", "MIIE", "AKIA", "='x y'"] {
            assert!(!clean.contains(leaked), "{secret} → {clean}");
        }
    }
}

#[test]
fn ordinary_commands_are_left_alone() {
    for command in ["cargo test -p core", "grep -rn secret_santa src", "ls task-based", "echo sk-y"]
    {
        assert_eq!(redact(command), command);
    }
}

#[test]
fn hidden_characters_are_shown() {
    assert_eq!(visible("a\u{200b}b\u{1b}[31m"), "a⟨U+200B⟩b⟨U+001B⟩[31m");
    assert_eq!(one_line("a\nb"), "a\\nb");
    assert_eq!(visible("é漢字👍"), "é漢字👍");
}

#[test]
fn shortening_counts_characters_not_bytes() {
    assert_eq!(shorten("漢字漢字", 3), "漢字…");
    assert_eq!(shorten("", 0), "");
}

/// Texts with credentials in them, and what must not be seen of those.
fn confessions() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        8 => "[a-z]{1,9}[ .,\n]",
        1 => Just("password = 'hunter 2' ".to_owned()),
        1 => Just("API_KEY=hunter2&x ".to_owned()),
        1 => Just("Authorization: Bearer hunter2.x ".to_owned()),
        1 => Just("https://me:hunter2@example.org/x ".to_owned()),
        1 => Just("ghp_hunter2hunter2hunter2 ".to_owned()),
        1 => Just("-----BEGIN PRIVATE KEY-----\nhunter2\nhunter2\n-----END PRIVATE KEY-----\n".to_owned()),
        1 => Just("漢字。é ".to_owned()),
    ];
    prop::collection::vec(word, 0..12).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn a_text_in_pieces_is_redacted_as_a_whole_one(text in confessions(), cuts in prop::collection::vec(1_usize..9, 1..9)) {
        let mut redactor = Redactor::default();
        let mut shown = String::new();
        let letters: Vec<char> = text.chars().collect();
        let mut rest = letters.as_slice();
        for size in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, tail) = rest.split_at((*size).min(rest.len()));
            shown += &redactor.push(&piece.iter().collect::<String>());
            prop_assert!(!shown.contains("hunter"), "{shown}");
            rest = tail;
        }
        shown += &redactor.finish();
        prop_assert_eq!(shown, redact(&text));
    }
}

#[test]
fn a_key_file_of_any_length_is_left_out_to_its_end() {
    let mut redactor = Redactor::default();
    let mut shown = redactor.push("here: -----BEGIN RSA PRIVATE KEY-----\n");
    for _ in 0..1_000 {
        shown += &redactor.push("MIIEhunter2hunter2hunter2\n");
    }
    for piece in ["-----E", "ND RSA PRIVATE KEY-----", "\nthat was ", "it"] {
        shown += &redactor.push(piece);
    }
    shown += &redactor.finish();
    assert_eq!(shown, "here: [redacted]\nthat was it");
}

#[test]
fn what_cannot_become_a_credential_is_shown_at_once() {
    let mut redactor = Redactor::default();
    assert_eq!(redactor.push("All is well. "), "All is well. ");
    assert_eq!(redactor.push("これは日本語です。"), "これは日本語です。");
}
