use std::os::unix::fs::PermissionsExt;

use super::*;

fn keys() -> (tempfile::TempDir, Clock, Keys) {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::manual("2026-11-15T09:00:00Z".parse().unwrap());
    let keys = Keys::open(&dir.path().join("keys"), clock.clone()).unwrap();
    (dir, clock, keys)
}

fn key(keys: &Keys, name: &str) -> String {
    std::fs::read_to_string(keys.file(name)).unwrap()
}

#[test]
fn an_agents_key_cannot_answer() {
    let (_dir, _, keys) = keys();
    let agent = keys.guest(&key(&keys, Keys::AGENT)).unwrap();
    assert_eq!(agent.scopes, [Scope::Emit]);
    assert!(!agent.may(Scope::Answer) && !agent.may(Scope::Watch) && !agent.may(Scope::Admin));
    let person = keys.guest(&key(&keys, Keys::PERSON)).unwrap();
    assert!(person.may(Scope::Answer) && !person.may(Scope::Emit));
}

#[test]
fn keys_are_stored_hashed_and_private() {
    let (dir, _, keys) = keys();
    let stored = std::fs::read_to_string(keys.file("keys.json")).unwrap();
    for name in [Keys::AGENT, Keys::PERSON] {
        assert!(!stored.contains(&key(&keys, name)));
        let mode = std::fs::metadata(keys.file(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let mode = std::fs::metadata(dir.path().join("keys")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn keys_survive_a_restart_and_wrong_ones_do_not_fit() {
    let (dir, clock, keys) = keys();
    assert!(keys.is_fresh());
    let person = key(&keys, Keys::PERSON);
    let again = Keys::open(&dir.path().join("keys"), clock).unwrap();
    assert!(!again.is_fresh());
    assert!(again.guest(&person).is_some());
    assert!(again.guest("").is_none());
    assert!(again.guest(person.strip_suffix(|_: char| true).unwrap()).is_none());
}

#[test]
fn a_login_link_works_once_and_not_for_long() {
    let (_dir, clock, keys) = keys();
    let code = keys.login_code().unwrap();
    let cookie = keys.log_in(&code).unwrap().unwrap();
    assert!(keys.log_in(&code).unwrap().is_none(), "the second use of a link must fail");
    let guest = keys.browser(&cookie).unwrap();
    assert!(guest.may(Scope::Answer) && !guest.may(Scope::Admin) && guest.csrf.is_some());
    keys.log_out(&cookie);
    assert!(keys.browser(&cookie).is_none());

    let stale = keys.login_code().unwrap();
    clock.advance(Duration::from_mins(16));
    assert!(keys.log_in(&stale).unwrap().is_none());
}

#[test]
fn a_damaged_key_file_is_named() {
    let (dir, clock, _) = keys();
    std::fs::write(dir.path().join("keys/keys.json"), b"{").unwrap();
    let error = Keys::open(&dir.path().join("keys"), clock).unwrap_err().to_string();
    assert!(error.contains("keys.json"), "{error}");
}

#[tokio::test]
async fn a_key_that_is_revoked_is_gone_for_good_and_whoever_is_inside_hears_of_it() {
    let (dir, clock, keys) = keys();
    let reader = keys.issue("reader", &[Scope::Watch]).unwrap().unwrap();
    assert_eq!(keys.issue("reader", &[Scope::Admin]).unwrap(), None, "the name is taken");
    for name in ["", "browser", "../keys", "A", &"a".repeat(33)] {
        assert_eq!(keys.issue(name, &[]).unwrap(), None, "{name:?}");
    }
    let guest = keys.guest(&reader).unwrap();
    assert_eq!((guest.key.as_str(), &guest.scopes[..]), ("reader", &[Scope::Watch][..]));
    let mut inside = std::pin::pin!(keys.gone(&guest));
    let soon = Duration::from_millis(50);
    assert!(tokio::time::timeout(soon, &mut inside).await.is_err());
    assert!(!keys.revoke("nobody").unwrap());
    assert!(keys.revoke("reader").unwrap());
    tokio::time::timeout(Duration::from_secs(10), inside).await.unwrap();
    assert_eq!(keys.guest(&reader), None);
    let again = Keys::open(&dir.path().join("keys"), clock).unwrap();
    assert_eq!(again.guest(&reader), None, "also after a restart");
    assert!(again.guest(&key(&keys, Keys::PERSON)).is_some());
}

#[tokio::test]
async fn a_browser_that_signs_out_is_gone() {
    let (_dir, _, keys) = keys();
    let cookie = keys.log_in(&keys.login_code().unwrap()).unwrap().unwrap();
    let guest = keys.browser(&cookie).unwrap();
    let inside = keys.gone(&guest);
    keys.log_out(&cookie);
    tokio::time::timeout(Duration::from_secs(10), inside).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_key_that_has_run_out_is_as_good_as_none_and_is_listed_still() {
    let (dir, clock, keys) = keys();
    let expires = clock.now() + SignedDuration::from_secs(90);
    let brief = keys.issue_until("brief", &[Scope::Watch], Some(expires)).unwrap().unwrap();
    let guest = keys.guest(&brief).unwrap();
    let listed =
        Listed { id: "brief".to_owned(), scopes: vec![Scope::Watch], expires: Some(expires) };
    assert_eq!(keys.list().last(), Some(&listed));
    assert_eq!(keys.list().len(), 3);
    let mut inside = std::pin::pin!(keys.gone(&guest));
    assert!(tokio::time::timeout(Duration::from_secs(80), &mut inside).await.is_err());
    clock.advance(Duration::from_secs(90));
    tokio::time::timeout(Duration::from_secs(61), inside).await.unwrap();
    assert_eq!(keys.guest(&brief), None);
    assert_eq!(keys.list().last(), Some(&listed));
    let again = Keys::open(&dir.path().join("keys"), clock).unwrap();
    assert_eq!((again.guest(&brief), again.list()), (None, keys.list()));
    assert!(keys.revoke("brief").unwrap());
}
