use super::*;

fn words(text: &str) -> Vec<Word> {
    text.split(' ').map(Word::literal).collect()
}

#[test]
fn a_flag_is_found_in_every_spelling() {
    for (text, flag) in [
        ("--output x", "--output"),
        ("--output=x", "--output"),
        ("--outp=x", "--output"),
        ("-o x", "-o"),
        ("-xvo", "-o"),
        ("-ox", "-o"),
        ("a -- -o", "-o"),
        ("-exec a", "-exec"),
        ("-execdir a", "-exec"),
        ("--exec=a", "-exec"),
    ] {
        assert!(may_have(&words(text), flag), "{text} {flag}");
    }
    for (text, flag) in [
        ("output", "--output"),
        ("--other", "--output"),
        ("--outputs", "--output"),
        ("--", "--output"),
        ("-", "-o"),
        ("--oo", "-o"),
        ("-x", "-o"),
    ] {
        assert!(!may_have(&words(text), flag), "{text} {flag}");
    }
}

#[test]
fn only_known_flags_pass() {
    let known: Vec<String> = ["-n", "-r", "--key", "-name", "-#"].map(String::from).to_vec();
    for text in ["a b", "-n", "-nr", "--key=1", "-name x", "-12", "-n5", "-- a", "-"] {
        assert!(only(&words(text), &known), "{text}");
    }
    for text in ["-o", "-no", "--keys", "--ke", "-names", "-n/x", "-- -o"] {
        assert!(!only(&words(text), &known), "{text}");
    }
    assert!(!only(&words("-5"), &["-n".to_owned()]));
}
