//! Random numbers from the system, as text.

use banister_events::id::hex;

use crate::Error;

/// `N` random bytes as hex.
pub fn token<const N: usize>() -> Result<String, Error> {
    let mut bytes = [0u8; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
    Ok(hex(&bytes))
}
