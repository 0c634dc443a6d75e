use std::os::unix::fs::PermissionsExt;

use banister_events::event::Protocol;
use banister_events::finding::Severity;
use p256::ecdsa::VerifyingKey;
use p256::ecdsa::signature::Verifier;

use super::*;

/// As whoever checks a signature decodes it.
fn decoded(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

#[test]
fn a_manifest_is_signed_by_the_key_it_names_and_says_what_the_plain_one_says() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = Manifest::open(dir.path()).unwrap();
    let parts: Vec<&str> = manifest.signed().split('.').collect();
    let [header, payload, signature] = parts[..] else { panic!("three parts") };
    let header_json: Value = serde_json::from_slice(&decoded(header)).unwrap();
    assert_eq!(header_json["alg"], "ES256");
    let jwk = &header_json["jwk"];
    let mut point = vec![4];
    for name in ["x", "y"] {
        point.extend(decoded(jwk[name].as_str().unwrap()));
    }
    let key = VerifyingKey::from_sec1_bytes(&point).unwrap();
    let signed = format!("{header}.{payload}");
    let signature = Signature::from_slice(&decoded(signature)).unwrap();
    key.verify(signed.as_bytes(), &signature).unwrap();
    assert!(key.verify(signed.replace('.', "").as_bytes(), &signature).is_err());
    let value: Value = serde_json::from_slice(&decoded(payload)).unwrap();
    assert_eq!(value, Manifest::value());
    let findings = banister_events::check::value(Protocol::Aaep, &value);
    assert!(findings.iter().all(|finding| finding.rule.severity < Severity::Error), "{findings:?}");
}

#[test]
fn the_signing_key_is_private_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    let first = Manifest::open(dir.path()).unwrap().signed().to_owned();
    assert_eq!(Manifest::open(dir.path()).unwrap().signed(), first);
    let file = dir.path().join(Manifest::KEY);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::write(&file, "not a key").unwrap();
    assert!(Manifest::open(dir.path()).is_err(), "a key that cannot be read is not replaced");
}
