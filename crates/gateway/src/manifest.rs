//! What the gateway says about itself, so that AAEP subscribers know before they ask.
//!
//! The manifest is made from what is true of this build; nothing in it is configured. It is signed with ES256 by a key
//! that the first start makes, in a file that only its owner can read. The signature says that two manifests come from
//! the same gateway, and nothing about who runs it: the public key stands in the signature's own header.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use banister_events::aaep::event::{CONTEXT, Type, VERSION};
use banister_events::aaep::write::EXTENSION_CONTEXT;
use banister_events::id::hex;
use banister_events::locale::Locale;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::Error;
use crate::keys::private_file;
use crate::subscriptions::table::MOST;

/// The gateway's name in manifests and handshakes.
pub(crate) const AGENT_ID: &str = "banister";
/// Where the manifest is found.
pub(crate) const PATH: &str = "/.well-known/aaep-manifest.json";

/// The manifest, and the key that signs it.
#[derive(Debug)]
pub(crate) struct Manifest {
    key: SigningKey,
    signed: OnceLock<String>,
}

impl Manifest {
    /// The name of the file that holds the signing key.
    pub(crate) const KEY: &'static str = "manifest.key";

    /// Opens the signing key in a directory, or makes it.
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(Self::KEY);
        let key = match std::fs::read_to_string(&path) {
            Ok(text) => unhex(text.trim())
                .and_then(|bytes| SigningKey::from_slice(&bytes).ok())
                .ok_or_else(|| no_key(&path, "64 hex digits of an ES256 key are wanted"))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let (key, bytes) = draw(&path)?;
                private_file(&path, hex(&bytes).as_bytes())?;
                key
            }
            Err(source) => return Err(Error::File { path, source }),
        };
        Ok(Self { key, signed: OnceLock::new() })
    }

    /// The manifest.
    pub(crate) fn value() -> Value {
        json!({
            "@context": CONTEXT,
            "type": "aaep:producer.manifest",
            "agent_id": AGENT_ID,
            "agent_version": env!("CARGO_PKG_VERSION"),
            "agent_name": "Banister",
            "aaep_versions_supported": [VERSION],
            "conformance_levels_supported": [1, 2, 3],
            "transports_supported": ["sse", "websocket", "stdio-jsonrpc", "unix-socket"],
            "socket_framing": "length-prefixed",
            "languages_supported": Locale::tags(),
            "event_types_emitted": Type::ALL.map(Type::name),
            "extensions_supported": [EXTENSION_CONTEXT],
            "default_verbosity": "normal",
            "max_concurrent_subscriptions": MOST,
        })
    }

    /// The manifest as a JWS in compact form.
    pub(crate) fn signed(&self) -> &str {
        self.signed.get_or_init(|| {
            let jwk = self.public();
            let header = json!({ "alg": "ES256", "kid": thumbprint(&jwk), "jwk": jwk });
            let parts = [header, Self::value()]
                .map(|part| URL_SAFE_NO_PAD.encode(part.to_string().as_bytes()));
            let message = parts.join(".");
            let signature: Signature = self.key.sign(message.as_bytes());
            format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()))
        })
    }

    /// The public key as a JWK. Its members stand in the order that a thumbprint is taken over.
    fn public(&self) -> Value {
        let point = self.key.verifying_key().to_sec1_point(false);
        let text = |number: Option<&[u8]>| URL_SAFE_NO_PAD.encode(number.unwrap_or_default());
        let (x, y) = (point.x().map(AsRef::as_ref), point.y().map(AsRef::as_ref));
        json!({ "crv": "P-256", "kty": "EC", "x": text(x), "y": text(y) })
    }
}

/// RFC 7638.
fn thumbprint(jwk: &Value) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(jwk.to_string().as_bytes()))
}

fn draw(path: &Path) -> Result<(SigningKey, [u8; 32]), Error> {
    // Not every number is a key, but nearly every one.
    for _ in 0..8 {
        let mut bytes = [0u8; 32];
        getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
        if let Ok(key) = SigningKey::from_slice(&bytes) {
            return Ok((key, bytes));
        }
    }
    Err(no_key(path, "none could be drawn"))
}

fn no_key(path: &Path, message: &str) -> Error {
    Error::Keys { path: PathBuf::from(path), message: message.to_owned() }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    text.as_bytes()
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
