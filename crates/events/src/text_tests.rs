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
