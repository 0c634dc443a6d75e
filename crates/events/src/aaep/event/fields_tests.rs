use regex::Regex;

use super::*;

const STRINGS: &[&str] = &[
    "",
    " ",
    "a",
    "A",
    "1",
    "_",
    "-",
    ".",
    "/",
    "en",
    "en-US",
    "zh-Hant-TW",
    "en_US",
    "en-",
    "-en",
    "abcdefghi",
    "abcdefgh-12345678",
    "en-123456789",
    "Latn",
    "latn",
    "LATN",
    "Lat1",
    "Latin",
    "evt_1",
    "evt_",
    "evt_a-b",
    "evt_1\n",
    "\nevt_1",
    "EVT_1",
    "sess_Az09",
    "sess_ä",
    "sub_1",
    "call_1",
    "call_toolu_01",
    "out_1",
    "rpl_1",
    "rpl_ 1",
    "1.0.0",
    "1.0",
    "01.00.00",
    "1.0.0-",
    "1.0.0-rc.1",
    "1.0.0-rc-1",
    "1.0.0+build",
    "v1.0.0",
    "1.0.0.0",
    "1..0",
    "read_file",
    "_x",
    "9lives",
    "mcp/tool",
    "a.b-c_d",
    "RATE_LIMIT",
    "R",
    "R2",
    "rate_limit",
    "_RATE",
    "RATE-LIMIT",
    "user_stop",
    "u",
    "u2",
    "User_stop",
    "text/plain",
    "text/plain; charset=utf-8",
    "text",
    "text/",
    "/plain",
    "application/vnd.api+json",
    "a/b/c",
    "1/2",
    "a.b.c",
    "a.b",
    "a.b.c.d",
    "a..c",
    "a.b.c=",
    "é.b.c",
];

#[test]
fn every_pattern_says_what_its_function_does() {
    let long = ["evt_", "sess_", "sub_", "call_", "out_", "rpl_", "", "R", "r"]
        .into_iter()
        .flat_map(|prefix| [62, 63, 64, 65, 255, 256, 257].map(|length| (prefix, length)))
        .flat_map(|(prefix, length)| {
            ["a", "A"].map(|letter| format!("{prefix}{}", letter.repeat(length)))
        });
    let strings: Vec<String> = STRINGS.iter().map(|text| (*text).to_owned()).chain(long).collect();
    for (name, kind) in FORMATS {
        let Kind::Format { fits, pattern, .. } = kind else { panic!("{name}") };
        let inner = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')).unwrap();
        let regex = Regex::new(&format!(r"\A(?:{inner})\z")).unwrap();
        let (mut good, mut bad) = (0, 0);
        for text in &strings {
            assert_eq!(fits(text), regex.is_match(text), "{name}: {text:?}");
            *(if fits(text) { &mut good } else { &mut bad }) += 1;
        }
        assert!(good > 0 && bad > 0, "{name}: {good} good and {bad} bad strings");
    }
}

#[test]
fn timestamps_that_fit_match_their_pattern() {
    let Kind::Format { fits, pattern, .. } = TIMESTAMP else { panic!() };
    let regex = Regex::new(pattern).unwrap();
    for good in
        ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123+02:00", "2016-12-31T23:59:60.123456Z"]
    {
        assert!(fits(good) && regex.is_match(good), "{good}");
    }
    for bad in [
        "2026-01-31T12:00:00.1Z",
        "2026-01-31t12:00:00Z",
        "2026-01-31 12:00:00Z",
        "2026-01-31T12:00:00",
    ] {
        assert!(!fits(bad) && !regex.is_match(bad), "{bad}");
    }
    for bad in ["2026-02-30T12:00:00Z", "2026-01-31T12:00:60Z", "2026-01-31T25:00:00Z"] {
        assert!(!fits(bad), "{bad}");
    }
}

#[test]
fn uris_are_written_as_rfc_3986_says() {
    for good in [
        "https://example.org",
        "https://user:pw@example.org:8080/a%20b?c=d#e",
        "queue://billing",
        "urn:a:b",
        "mailto:a@example.org",
        "http://[::1]:80/",
        "file:///etc/hosts",
        "tag:/",
        "https://example.org:",
    ] {
        assert!(is_uri(good), "{good}");
    }
    for bad in [
        "",
        "example.org",
        "/path",
        "1ttp://example.org",
        "https:",
        ":x",
        "https://exa mple.org",
        "https://example.org/é",
        "https://example.org/%zz",
        "https://example.org/%2",
        "https://example.org:port/",
        "https://[::1",
        "a:b#c#d",
        "https://example.org/\n",
        "https://example.org/<x>",
    ] {
        assert!(!is_uri(bad), "{bad}");
    }
}
