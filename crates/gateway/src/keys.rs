//! Who may come in: keys, scopes, login links, browser sessions.
//!
//! A key is 256 random bits. The gateway keeps only its SHA-256, with the scopes it carries; scopes are never taken from
//! the client. The first start makes two keys, each in a file that only its owner can read: `agent.key` (may emit) for
//! hooks, `person.key` (may watch, answer, administer) for the command line. An agent's key cannot answer.
//!
//! More keys can be issued, for a time or for good, and every key can be revoked; streams that are open under one end
//! with it.
//!
//! A browser comes in by a login link that works once, and holds a cookie from then on. Cookies live in memory: they end
//! with the gateway.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

use banister_events::id::hex;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::{Error, random};

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Push events and ask.
    Emit,
    /// Read sessions and streams.
    Watch,
    /// Answer asks.
    Answer,
    /// Make login links; issue, list and revoke keys.
    Admin,
}

/// Somebody who came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// The id of the key, or of the key behind the cookie.
    pub key: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// What a browser must send along with a write; `None` for keys, which no browser sends by itself.
    pub csrf: Option<String>,
    /// Which key it is: a name can be given again.
    fingerprint: String,
}

/// A key, as it is listed. The key itself is known to whoever holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Its name.
    pub id: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// When it ends; never if there is none.
    pub expires: Option<Timestamp>,
}

impl Guest {
    /// Whether it may do something.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }
}

/// What stands for the key of a browser's session.
const BROWSER: &str = "browser";
const LINK_LIFE: Duration = Duration::from_mins(15);
const COOKIE_LIFE: Duration = Duration::from_hours(720);
const MOST_LINKS: usize = 64;
const MOST_COOKIES: usize = 1_024;
const MOST_KEYS: usize = 1_024;
/// How often an open stream looks whether its key or its cookie has run out.
const LOOK: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Stored {
    id: String,
    scopes: Vec<Scope>,
    sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<Timestamp>,
}

impl Stored {
    fn is_good(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| expires > now)
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct File {
    keys: Vec<Stored>,
}

#[derive(Debug)]
struct Cookie {
    guest: Guest,
    until: Timestamp,
}

/// The keys of one gateway.
#[derive(Debug)]
pub struct Keys {
    dir: PathBuf,
    stored: RwLock<Vec<Stored>>,
    /// Rings when somebody may no longer come in.
    bell: watch::Sender<()>,
    clock: Clock,
    links: Mutex<HashMap<String, Timestamp>>,
    cookies: Mutex<HashMap<String, Cookie>>,
    fresh: bool,
}

impl Keys {
    /// The name of the file that holds the key for hooks.
    pub const AGENT: &'static str = "agent.key";
    /// The name of the file that holds the key for the command line.
    pub const PERSON: &'static str = "person.key";

    /// Opens the keys in a directory, or makes them.
    pub fn open(dir: &Path, clock: Clock) -> Result<Self, Error> {
        private_dir(dir)?;
        let path = dir.join("keys.json");
        let (stored, fresh) = match std::fs::read(&path) {
            Ok(bytes) => {
                let file: File = serde_json::from_slice(&bytes).map_err(|error| Error::Keys {
                    path: path.clone(),
                    message: error.to_string(),
                })?;
                (file.keys, false)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (make(dir)?, true),
            Err(source) => return Err(Error::File { path, source }),
        };
        Ok(Self {
            dir: dir.to_owned(),
            stored: RwLock::new(stored),
            bell: watch::Sender::new(()),
            clock,
            links: Mutex::default(),
            cookies: Mutex::default(),
            fresh,
        })
    }

    /// Whether the keys were made just now.
    pub fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// The file of a key.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Who holds a key, if anybody does.
    pub fn guest(&self, key: &str) -> Option<Guest> {
        let (digest, now) = (digest(key), self.clock.now());
        // Every key is compared, in constant time: how long it takes tells nothing.
        let mut found = None;
        let all = self.stored.read().unwrap_or_else(PoisonError::into_inner);
        for stored in &*all {
            if bool::from(stored.sha256.as_bytes().ct_eq(digest.as_bytes())) {
                found = Some(stored);
            }
        }
        found.filter(|stored| stored.is_good(now)).map(|stored| Guest {
            key: stored.id.clone(),
            scopes: stored.scopes.clone(),
            csrf: None,
            fingerprint: stored.sha256.clone(),
        })
    }

    /// A code for a login link: works once, for a quarter of an hour.
    pub fn login_code(&self) -> Result<String, Error> {
        let code = random::token::<24>()?;
        let now = self.clock.now();
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|_, until| *until > now);
        if links.len() >= MOST_LINKS
            && let Some(oldest) =
                links.iter().min_by_key(|(_, until)| **until).map(|(c, _)| c.clone())
        {
            links.remove(&oldest);
        }
        links.insert(digest(&code), after(now, LINK_LIFE));
        Ok(code)
    }

    /// Spends a login code; gives the cookie's value.
    pub fn log_in(&self, code: &str) -> Result<Option<String>, Error> {
        let now = self.clock.now();
        let spent = {
            let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
            links.remove(&digest(code))
        };
        if spent.is_none_or(|until| until <= now) {
            return Ok(None);
        }
        let value = random::token::<32>()?;
        let guest = Guest {
            key: BROWSER.to_owned(),
            scopes: vec![Scope::Watch, Scope::Answer],
            csrf: Some(random::token::<16>()?),
            fingerprint: digest(&value),
        };
        let mut cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
        cookies.retain(|_, cookie| cookie.until > now);
        if cookies.len() >= MOST_COOKIES
            && let Some(oldest) =
                cookies.iter().min_by_key(|(_, c)| c.until).map(|(k, _)| k.clone())
        {
            cookies.remove(&oldest);
        }
        cookies.insert(digest(&value), Cookie { guest, until: after(now, COOKIE_LIFE) });
        Ok(Some(value))
    }

    /// Who holds a cookie, if anybody does.
    pub fn browser(&self, cookie: &str) -> Option<Guest> {
        let now = self.clock.now();
        let cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
        cookies.get(&digest(cookie)).filter(|held| held.until > now).map(|held| held.guest.clone())
    }

    /// Ends a browser's session.
    pub fn log_out(&self, cookie: &str) {
        let mut cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
        cookies.remove(&digest(cookie));
        self.bell.send_replace(());
    }

    /// Every key that was issued and not revoked, also those that have run out.
    pub fn list(&self) -> Vec<Listed> {
        let all = self.stored.read().unwrap_or_else(PoisonError::into_inner);
        let listed = |Stored { id, scopes, expires, .. }: &Stored| Listed {
            id: id.clone(),
            scopes: scopes.clone(),
            expires: *expires,
        };
        all.iter().map(listed).collect()
    }

    /// Makes another key for good; see [`Keys::issue_until`].
    pub fn issue(&self, id: &str, scopes: &[Scope]) -> Result<Option<String>, Error> {
        self.issue_until(id, scopes, None)
    }

    /// Makes another key; `None` where the name is taken, is no name, or there are too many. The key itself is not kept.
    pub fn issue_until(
        &self,
        id: &str,
        scopes: &[Scope],
        expires: Option<Timestamp>,
    ) -> Result<Option<String>, Error> {
        let named = (1..=32).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        let mut all = self.stored.write().unwrap_or_else(PoisonError::into_inner);
        let taken = id == BROWSER || all.iter().any(|stored| stored.id == id);
        if !named || taken || all.len() >= MOST_KEYS {
            return Ok(None);
        }
        let key = format!("bk_{id}_{}", random::token::<32>()?);
        let sha256 = digest(&key);
        let fresh = Stored { id: id.to_owned(), scopes: scopes.to_vec(), sha256, expires };
        let mut keys = all.clone();
        keys.push(fresh);
        save(&self.dir, &keys)?;
        *all = keys;
        Ok(Some(key))
    }

    /// Revokes a key for good: nothing gets in by it, and what is open under it ends. Says whether there was one.
    pub fn revoke(&self, id: &str) -> Result<bool, Error> {
        {
            let mut all = self.stored.write().unwrap_or_else(PoisonError::into_inner);
            let mut keys = all.clone();
            keys.retain(|stored| stored.id != id);
            if keys.len() == all.len() {
                return Ok(false);
            }
            save(&self.dir, &keys)?;
            *all = keys;
        }
        self.bell.send_replace(());
        Ok(true)
    }

    /// Comes back when a guest may no longer be here.
    pub async fn gone(&self, guest: &Guest) {
        let mut bell = self.bell.subscribe();
        while let Some(left) = self.knows(guest) {
            // The bell is there as long as the keys are.
            let _rung = tokio::time::timeout(left.min(LOOK), bell.changed()).await;
        }
    }

    /// How long a guest may be here, if it may at all.
    fn knows(&self, guest: &Guest) -> Option<Duration> {
        let now = self.clock.now();
        let until = if guest.csrf.is_some() {
            let cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
            cookies.get(&guest.fingerprint).map(|held| held.until)
        } else {
            let all = self.stored.read().unwrap_or_else(PoisonError::into_inner);
            let stored = all.iter().find(|stored| stored.sha256 == guest.fingerprint);
            stored.map(|stored| stored.expires.unwrap_or(Timestamp::MAX))
        };
        let left = until?.duration_since(now);
        (left > SignedDuration::ZERO).then(|| left.unsigned_abs())
    }
}

fn after(now: Timestamp, life: Duration) -> Timestamp {
    now.checked_add(life).unwrap_or(Timestamp::MAX)
}

fn digest(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

fn make(dir: &Path) -> Result<Vec<Stored>, Error> {
    let wanted = [
        ("agent", Keys::AGENT, vec![Scope::Emit]),
        ("person", Keys::PERSON, vec![Scope::Watch, Scope::Answer, Scope::Admin]),
    ];
    let mut stored = Vec::new();
    for (id, name, scopes) in wanted {
        let key = format!("bk_{id}_{}", random::token::<32>()?);
        private_file(&dir.join(name), key.as_bytes())?;
        let sha256 = digest(&key);
        stored.push(Stored { id: id.to_owned(), scopes, sha256, expires: None });
    }
    save(dir, &stored)?;
    Ok(stored)
}

fn save(dir: &Path, keys: &[Stored]) -> Result<(), Error> {
    let path = dir.join("keys.json");
    let text = serde_json::to_vec_pretty(&File { keys: keys.to_vec() })
        .map_err(|error| Error::Keys { path: path.clone(), message: error.to_string() })?;
    private_file(&path, &text)
}

/// Makes a directory that only its owner can enter.
pub fn private_dir(path: &Path) -> Result<(), Error> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    let failed = |source| Error::File { path: path.to_owned(), source };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).map_err(failed)
}

/// Writes a file that only its owner can read, whole or not at all.
pub fn private_file(path: &Path, content: &[u8]) -> Result<(), Error> {
    use std::os::unix::fs::OpenOptionsExt;
    let failed = |source| Error::File { path: path.to_owned(), source };
    let temporary = path.with_extension("new");
    match std::fs::remove_file(&temporary) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .map_err(failed)?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(failed)?;
    std::fs::rename(&temporary, path).map_err(failed)
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
