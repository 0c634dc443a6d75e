use std::path::PathBuf;

use super::*;

fn around() -> Surroundings {
    let own = [PathBuf::from("/home/me/.config/banister")];
    Surroundings::new(Some("/home/me/project"), Some("/home/me"), &own)
}

fn resolved(word: &str) -> String {
    let around = around();
    format!("/{}", around.resolve(word, &around.project).join("/"))
}

#[test]
fn words_are_resolved_by_their_text() {
    for (word, path) in [
        ("a", "/home/me/project/a"),
        ("./a/../b", "/home/me/project/b"),
        ("..", "/home/me"),
        ("../../../../..", "/"),
        ("~", "/home/me"),
        ("~/a", "/home/me/a"),
        ("$HOME/a", "/home/me/a"),
        ("${HOME}/../you", "/home/you"),
        ("$HOMER", "/home/me/project/$HOMER"),
        ("~you/a", "/home/you/a"),
        ("//etc//x/.", "/etc/x"),
        ("file:///etc/x", "/etc/x"),
        ("", "/home/me/project"),
    ] {
        assert_eq!(resolved(word), path, "{word}");
    }
}

#[test]
fn an_unknown_home_or_directory_is_nobodys() {
    let around = Surroundings::new(None, None, &[]);
    let here = around.resolve("a", &around.project);
    assert!(!around.in_project(&here));
    assert_ne!(around.resolve("~", &around.project), PathNames::new());
    assert_ne!(around.resolve("..", &around.project), PathNames::new());
}

#[test]
fn a_project_is_neither_a_root_nor_a_home() {
    for cwd in ["/", "/home", "/home/me"] {
        let around = Surroundings::new(Some(cwd), Some("/home/me"), &[]);
        assert!(!around.in_project(&around.resolve("a", &around.project)), "{cwd}");
    }
    assert!(around().in_project(&around().resolve("a", &around().project)));
    assert!(!around().in_project(&around().resolve("../projector", &around().project)));
}

#[test]
fn own_files_are_known_below_above_and_by_pattern() {
    let around = around();
    let at = |word: &str| around.resolve(word, &around.project);
    for own in [
        "~/.config/banister",
        "~/.config/banister/a/b",
        "~/.config/b*/a",
        "~/.conf?g/[b]anister",
        "~/.CONFIG/Banister",
    ] {
        assert!(around.is_own(&at(own)), "{own}");
    }
    for other in ["~/.config", "~/.config/banister2", "~/.config/x*", "banister"] {
        assert!(!around.is_own(&at(other)), "{other}");
    }
    assert!(around.holds_own(&at("~/.config")) && around.holds_own(&at("/")));
    assert!(!around.holds_own(&at("a")));
}

#[test]
fn patterns_match_by_names() {
    let around = around();
    for (pattern, path, sure, possible) in [
        ("./**", "a/b", true, true),
        ("./**", ".", true, true),
        ("./**", "../x", false, false),
        ("./*.rs", "a.rs", true, true),
        ("./*.rs", "b/a.rs", false, false),
        ("./**/*.rs", "b/c/a.rs", true, true),
        ("./**/*.rs", "a.rs", true, true),
        ("./a/**/z", "a/z", true, true),
        ("./a/**/z", "a/b/c/z", true, true),
        ("./a/**/z", "b/z", false, false),
        ("~/x", "/home/me/x", true, true),
        ("/etc/**", "/etc", true, true),
        ("**/.env", "/any/where/.env", true, true),
        ("**/.env", "/any/.ENV", true, true),
        ("**/.env", ".e*", false, true),
        ("**/.env", "*", false, false),
        ("**/*.pem", "*", false, true),
        ("**/*.pem", "*.rs", false, false),
        ("**/.ssh/**", "~/.ssh/id", true, true),
        ("./?", "ab", false, false),
        ("./a*b*c", "axxbyyc", true, true),
        ("./a*b*c", "axxbyyd", false, false),
        ("/", "/", true, true),
        ("/", "/a", false, false),
    ] {
        let parsed = PathPattern::parse(pattern).unwrap();
        let names = around.resolve(path, &around.project);
        let found = (
            PathPattern::any_surely(std::slice::from_ref(&parsed), &names, &around),
            parsed.possibly(&names, &around),
        );
        assert_eq!(found, (sure, possible), "{pattern} {path}");
    }
    for bad in ["", "a", "../a", "./../a", "*"] {
        assert!(PathPattern::parse(bad).is_none(), "{bad}");
    }
}

#[test]
fn too_deep_a_path_is_possible_and_never_sure() {
    let around = around();
    let deep = around.resolve(&"a/".repeat(500), &around.project);
    let pattern = PathPattern::parse("./b").unwrap();
    assert!(pattern.possibly(&deep, &around));
    let whole = [PathPattern::parse("./**").unwrap()];
    assert!(!PathPattern::any_surely(&whole, &deep, &around));
}

#[test]
fn parts_of_words_are_paths_too() {
    let found = |word| pieces(word).collect::<Vec<_>>();
    assert_eq!(found("a"), ["a"]);
    assert_eq!(found("--file=/x"), ["/x"]);
    assert_eq!(found("-f/x"), ["/x"]);
    assert_eq!(found("@/x"), ["@/x", "/x"]);
    assert_eq!(found("HEAD:../x"), ["HEAD:../x", "../x"]);
    assert_eq!(found("-la"), Vec::<&str>::new());
    assert!(has_unseen_pieces(&":".repeat(MAX_PIECES + 1)));
    assert!(!has_unseen_pieces(&":".repeat(MAX_PIECES)));
}
