use super::*;

/// What is told about a file with this text.
fn told(text: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bad.toml");
    std::fs::write(&path, text).unwrap();
    let read = Config::read(Some(&path)).and_then(|config| config.upstreams().map(drop));
    let error = read.unwrap_err();
    let failure = error.downcast_ref::<Failure>().expect("a failure that knows its code");
    assert_eq!(failure.code, crate::failure::USAGE);
    error.to_string().replace(&path.display().to_string(), "bad.toml")
}

#[test]
fn a_misspelt_key_is_shown_with_its_line_and_the_nearest_name() {
    assert_eq!(
        told("listen = \"127.0.0.1:0\"\n\n[push]\npolcy = \"strict\"\n"),
        "bad.toml:4:1: there is no key `push.polcy`\n  \
         |\n4 | polcy = \"strict\"\n  | ^^^^^\n  \
         = key: push.polcy\n  \
         = did you mean `policy`? known here: policy, keys, rate"
    );
}

#[test]
fn every_part_of_the_file_is_pointed_into() {
    for (text, place, key, more) in [
        ("lisen = 1\n", ":1:1:", "lisen", "did you mean `listen`?"),
        ("listen = \"here\"\n", ":1:10:", "listen", "invalid socket address"),
        ("sync_allow = 1\n", ":1:14:", "sync_allow", "expected a boolean"),
        ("[journal]\nretain_day = 3\n", ":2:1:", "journal.retain_day", "`retain_days`?"),
        ("[journal]\nretain_days = 0\n", ":2:15:", "journal.retain_days", "expected a nonzero"),
        ("[journal]\ncapture = \"ful\"\n", ":2:11:", "journal.capture", "did you mean `full`?"),
        (
            "[journal.capture_of]\ncodex = \"some\"\n",
            ":2:9:",
            "journal.capture_of.codex",
            "known here: ",
        ),
        ("[push]\nrate = -1\n", ":2:8:", "push.rate", "invalid value"),
        ("[push.keys]\nagent = \"strct\"\n", ":2:9:", "push.keys.agent", "did you mean `strict`?"),
        ("push.keys = { agent = 3 }\n", ":1:23:", "push.keys.agent", "wanted string"),
        (
            "[upstreams.one]\nurl = \"http://a/b\"\nca = \"ca.pem\"\n",
            ":3:6:",
            "upstreams.one.ca",
            "only an agent at an https:// address has a certificate",
        ),
        (
            "[upstreams.one]\nurl = \"https://a/b\"\nca = \"/nowhere/at/all\"\n",
            ":3:6:",
            "upstreams.one.ca",
            "/nowhere/at/all cannot be read",
        ),
        (
            "[upstreams.one]\nurl = \"https://a/b\"\nca = \"/dev/null\"\n",
            ":3:6:",
            "upstreams.one.ca",
            "the PEM file has no certificate",
        ),
        (
            "[upstreams.one]\nurl = \"ftp://a\"\n",
            ":2:7:",
            "upstreams.one.url",
            "begins with http:// or https://",
        ),
        ("[upstreams.one]\nurl = \"http://me@a\"\n", ":2:7:", "upstreams.one.url", "no user"),
        ("[upstreams.one]\npolicy = \"repair\"\n", ":1:1:", "upstreams.one", "missing field `url`"),
        ("[upstreams.\"a b\"]\nurl = \"http://a\"\n", ":1:12:", "upstreams.a b", "small letters"),
        (
            "[upstreams.one]\nurl = \"http://a\"\npolicy = \"mend\"\n",
            ":3:10:",
            "upstreams.one.policy",
            "known here: repair, strict, report",
        ),
        (
            "[upstreams.one]\nurl = \"http://a\"\nidle_second = 3\n",
            ":3:1:",
            "upstreams.one.idle_second",
            "`idle_seconds`?",
        ),
        (
            "[upstreams.one]\nurl = \"http://a\"\nheaders.authorization = \"secret\"\n",
            ":3:25:",
            "upstreams.one.headers.authorization",
            "known here: file, env",
        ),
        (
            "[upstreams.one]\nurl = \"http://a\"\nheaders.authorization = { env = \"BANISTER_TEST_NOT_SET\" }\n",
            ":3:25:",
            "upstreams.one.headers.authorization",
            "the environment has nothing under BANISTER_TEST_NOT_SET",
        ),
        (
            "[upstreams.one]\nurl = \"http://a\"\nheaders.authorization = { file = \"/nowhere/at/all\" }\n",
            ":3:25:",
            "upstreams.one.headers.authorization",
            "/nowhere/at/all cannot be read",
        ),
        ("a = 1\na = 2\n", ":2:1:", "", "duplicate key"),
        ("listen = \n", ":1:10:", "", ""),
        ("# ü\t東\nünknown = 1\n", ":2:1:", "", ""),
    ] {
        let told = told(text);
        assert!(told.starts_with(&format!("bad.toml{place}")), "{text}\n{told}");
        assert!(
            key.is_empty()
                || told.contains(&format!("= key: {key}\n"))
                || told.ends_with(&format!("= key: {key}")),
            "{text}\n{told}"
        );
        assert!(told.contains(more), "{text}\n{told}");
        assert!(told.contains('^'), "{text}\n{told}");
    }
}

#[test]
fn a_file_that_is_right_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let (path, secret) = (dir.path().join("good.toml"), dir.path().join("secret"));
    std::fs::write(&secret, "Bearer sesame\n").unwrap();
    let text = format!(
        "[upstreams.weather]\nurl = \"http://127.0.0.1:8000/agent?x=1\"\npolicy = \"strict\"\n\
         idle_seconds = 7\nlongest_minutes = 2\nkeep_alive_seconds = 1\nlargest_megabytes = 3\n\
         headers = {{ authorization = {{ file = {:?} }} }}\n",
        secret.display().to_string()
    );
    std::fs::write(&path, text).unwrap();
    let upstreams = Config::read(Some(&path)).unwrap().upstreams().unwrap();
    let weather = &upstreams["weather"];
    assert_eq!(weather.policy, UpstreamPolicy::Strict);
    assert_eq!((weather.idle.as_secs(), weather.longest.as_secs()), (7, 120));
    assert_eq!((weather.keep_alive.as_secs(), weather.bytes), (1, 3_000_000));
    assert!(!format!("{weather:?}").contains("sesame"), "secrets are not shown");
}
