//! The signed manifest of a producer (§10.4): whether it is what it has to be, as far as no key is needed.
//!
//! The signature itself is not verified: which keys to trust is for the subscriber to say.

use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use base64::{Engine as _, alphabet};

use super::control::SIGNED;
use crate::check::shape::{quote, text};
use crate::finding::Finding;
use crate::json::{Parser, View};

const POINTER: &str = "/signed_manifest";

/// What is wrong with the signed manifest of an answer, if it has one.
pub(super) fn signed(accepted: View<'_>) -> Option<Finding> {
    let signed = text(accepted, "signed_manifest")?;
    let mut parts = signed.split('.');
    let (header, payload) = (parts.next()?, parts.next()?);
    let (mut of_header, mut of_payload) = (Parser::default(), Parser::default());
    let (header, payload) = (decode(header), decode(payload));
    let header = header.as_deref().and_then(|bytes| of_header.parse(bytes).ok());
    let Some(header) = header.as_ref().map(|header| header.root()).filter(|it| it.is_object())
    else {
        return Some(SIGNED.at(POINTER, "the header is no JSON object in base64url"));
    };
    match text(header, "alg").as_deref() {
        Some("ES256" | "RS256") => {}
        Some(other) => {
            let message = format!("the algorithm is {}, not ES256 or RS256", quote(other));
            return Some(SIGNED.at(POINTER, message));
        }
        None => return Some(SIGNED.at(POINTER, "the header names no algorithm")),
    }
    let payload = payload.as_deref().and_then(|bytes| of_payload.parse(bytes).ok());
    let Some(payload) = payload.as_ref().map(|payload| payload.root()).filter(|it| it.is_object())
    else {
        return Some(SIGNED.at(POINTER, "the manifest in it is no JSON object in base64url"));
    };
    let named = payload.get("agent_id")?;
    let agent = accepted.pointer("/producer/agent_id")?.as_str()?;
    (!named.is(&agent)).then(|| {
        let named = named.as_str().unwrap_or_default();
        let message = format!("the manifest is of {}, not of {}", quote(&named), quote(&agent));
        SIGNED.at(POINTER, message)
    })
}

/// Base64url without padding, as JWS writes it. Bits that are left over are nobody's business here.
const BASE64URL: GeneralPurpose =
    GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64URL.decode(text).ok()
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
