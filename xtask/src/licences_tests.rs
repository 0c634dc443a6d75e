use super::{Expression, Rules};
use crate::metadata::Package;

const REGISTRY: &str = "registry+https://example.invalid/index";

fn rules() -> Rules {
    Rules::read(&serde_json::json!({
        "licenses": { "allow": ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Zlib"] },
        "bans": { "deny": [{ "crate": "leftpad", "reason": "we can pad" }] },
    }))
}

fn package(name: &str, license: Option<&str>, source: Option<&str>) -> Package {
    Package {
        name: name.to_owned(),
        version: "1.2.3".to_owned(),
        license: license.map(str::to_owned),
        source: source.map(str::to_owned),
        ours: false,
        root: None,
        layers: None,
    }
}

#[test]
fn an_expression_holds_when_an_allowed_choice_is_left() {
    let allowed = rules().licences;
    for (expression, holds) in [
        ("MIT", true),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0-only OR MIT", true),
        ("GPL-3.0-only AND MIT", false),
        ("(GPL-3.0-only OR MIT) AND Zlib", true),
        ("MIT OR GPL-3.0-only AND LGPL-2.1", true),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("Zlib WITH LLVM-exception", false),
        ("(MIT", false),
        ("MIT)", false),
        ("MIT GPL-3.0-only", false),
        ("", false),
        ("OR", false),
    ] {
        assert_eq!(Expression::new(expression).holds(&allowed), holds, "{expression:?}");
    }
}

#[test]
fn a_package_from_elsewhere_is_named() {
    let rules = rules();
    assert_eq!(rules.against(&package("good", Some("MIT"), Some(REGISTRY))), None);
    assert_eq!(rules.against(&package("ours", Some("MIT"), None)), None);
    assert_eq!(
        rules.against(&package("stray", Some("MIT"), Some("git+https://example.invalid/stray"))),
        Some("stray 1.2.3 comes from git+https://example.invalid/stray".to_owned())
    );
}

#[test]
fn a_banned_or_unlicensed_package_is_named() {
    let rules = rules();
    assert_eq!(
        rules.against(&package("leftpad", Some("MIT"), Some(REGISTRY))),
        Some("leftpad 1.2.3 is banned: we can pad".to_owned())
    );
    assert_eq!(
        rules.against(&package("mute", None, Some(REGISTRY))),
        Some("mute 1.2.3 does not name its licence".to_owned())
    );
    assert_eq!(
        rules.against(&package("sticky", Some("GPL-3.0-only"), Some(REGISTRY))),
        Some("sticky 1.2.3 is licensed as GPL-3.0-only".to_owned())
    );
}
