//! The two secrets of a journal: the one that signs checkpoints, and the one that digests what was not kept. Each is a
//! file of its own that only the owner may read, made when it is first asked for.
//!
//! Whoever can read the files can sign. What that is worth against somebody with the same rights as the gateway is
//! written in [`crate::checkpoint`].

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ed25519_dalek::Signer;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Serialize, Serializer};
use sha2::Sha256;

use crate::{Error, sqlite};

/// Signs checkpoints: Ed25519.
#[derive(Clone)]
pub struct SigningKey {
    key: ed25519_dalek::SigningKey,
}

impl SigningKey {
    /// The name of its file in the data directory.
    pub const FILE: &str = "journal.key";

    /// Reads the key, or draws one and keeps it there.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self::from_seed(&secret(path)?))
    }

    /// The key with that secret.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self { key: ed25519_dalek::SigningKey::from_bytes(seed) }
    }

    /// What others need to check its signatures.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.key.verifying_key().to_bytes())
    }

    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message).to_bytes()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("SigningKey").field(&self.public()).finish()
    }
}

/// Checks signatures. Written as 64 hex digits, read with or without `ed25519:` before them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey(pub(crate) [u8; 32]);

impl PublicKey {
    pub(crate) fn signed(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        let signature = ed25519_dalek::Signature::from_bytes(signature);
        ed25519_dalek::VerifyingKey::from_bytes(&self.0)
            .is_ok_and(|key| key.verify_strict(message, &signature).is_ok())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        unhex(text.strip_prefix("ed25519:").unwrap_or(text))
            .map(Self)
            .ok_or_else(|| "a public key is 64 hex digits".to_owned())
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Makes digests of what was not kept: HMAC-SHA-256. Equal bytes have equal digests, and without the key nobody can try
/// out what a digest stands for.
#[derive(Clone)]
pub struct DigestKey([u8; 32]);

impl DigestKey {
    /// The name of its file in the data directory.
    pub const FILE: &str = "digest.key";

    /// Reads the key, or draws one and keeps it there.
    pub fn open(path: &Path) -> Result<Self, Error> {
        secret(path).map(Self)
    }

    /// The key with those bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest of some bytes.
    pub fn digest(&self, bytes: &[u8]) -> [u8; 32] {
        // HMAC fills a key up to its block with zeros.
        let mut block = [0; 64];
        for (byte, key) in block.iter_mut().zip(self.0) {
            *byte = key;
        }
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(bytes);
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for DigestKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DigestKey(..)")
    }
}

/// Bytes that nobody can guess.
pub(crate) fn random() -> Result<[u8; 32], Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
    Ok(bytes)
}

/// The secret in a file, made if there is none. Of two that make it at once, both get the same.
fn secret(path: &Path) -> Result<[u8; 32], Error> {
    let failed = |source| Error::Io { path: path.to_owned(), source };
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(text) => {
            return unhex(text.trim()).ok_or_else(|| Error::BadKey { path: path.to_owned() });
        }
    }
    let seed = random()?;
    let unique = random()?;
    let mut name = OsString::from(path);
    name.push(format!(".{}", unique.map(|byte| format!("{byte:02x}")).concat()));
    let draft = PathBuf::from(name);
    let made =
        write(&draft, &format!("{}\n", hex(&seed))).and_then(|()| fs::hard_link(&draft, path));
    // Also where the link could not be made: a draft is of no use to anybody.
    fs::remove_file(&draft).ok();
    match made {
        // A key that signed has to be there after a power cut, too.
        Ok(()) => sync_folder(path).map_err(failed).map(|()| seed),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let text = read(path).map_err(failed)?;
            unhex(text.trim()).ok_or_else(|| Error::BadKey { path: path.to_owned() })
        }
        Err(error) => Err(failed(error)),
    }
}

/// Where folders can be opened, their entries are on disk after this.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) && !folder.as_os_str().is_empty() => {
            fs::File::open(folder)?.sync_all()
        }
        _ => Ok(()),
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    // More than a key has, so that something else is not taken for one.
    fs::File::open(path)?.take(128).read_to_string(&mut text)?;
    Ok(text)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = sqlite::private(OpenOptions::new().write(true).create_new(true)).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string does not fail.
        write!(text, "{byte:02x}").ok();
        text
    })
}

pub(crate) fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != N * 2 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| !pair.starts_with('+'))?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
