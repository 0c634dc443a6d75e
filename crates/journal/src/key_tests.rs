use super::*;

#[test]
fn a_key_is_drawn_once_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(SigningKey::FILE);
    let first = SigningKey::open(&path).unwrap();
    assert_eq!(SigningKey::open(&path).unwrap().public(), first.public());
    let other = SigningKey::open(&folder.path().join("other.key")).unwrap();
    assert_ne!(other.public(), first.public());
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn many_that_make_a_key_at_once_all_get_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(SigningKey::FILE);
    let keys = std::thread::scope(|scope| {
        let open = || scope.spawn(|| SigningKey::open(&path).unwrap().public());
        let threads: Vec<_> = (0..8).map(|_| open()).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(keys.iter().all(|key| *key == keys[0]));
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_a_key() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(DigestKey::FILE);
    DigestKey::open(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_file_that_is_no_key_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(SigningKey::FILE);
    let long = "0".repeat(66);
    for text in ["", "notes", &long, &"+f".repeat(32), &"é".repeat(32)] {
        fs::write(&path, text).unwrap();
        assert!(matches!(SigningKey::open(&path), Err(Error::BadKey { .. })), "{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_public_key_is_read_as_it_is_written_with_or_without_its_prefix() {
    let key = SigningKey::from_seed(&[7; 32]).public();
    assert_eq!(key.to_string().parse(), Ok(key));
    assert_eq!(format!("ed25519:{key}\n").parse(), Ok(key));
    assert!("ed25519:".parse::<PublicKey>().is_err());
}

/// The first test vector of RFC 8032 and the second of RFC 4231.
#[test]
fn signatures_and_digests_are_those_of_the_standards() {
    let seed = unhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").unwrap();
    let key = SigningKey::from_seed(&seed);
    let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    assert_eq!(key.public().to_string(), public);
    let signature = key.sign(b"");
    assert!(
        hex(&signature).starts_with("e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065")
    );
    assert!(key.public().signed(b"", &signature) && !key.public().signed(b"x", &signature));

    let mut padded = [0; 32];
    padded[..4].copy_from_slice(b"Jefe");
    let digest = DigestKey::from_bytes(padded).digest(b"what do ya want for nothing?");
    assert_eq!(hex(&digest), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}
