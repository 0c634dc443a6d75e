//! The messages of a recording, one after another, for commands that turn them into something else.

use anyhow::Result;
use banister_events::frame::Error;

use super::framing::{self, Framing, each, unwrapped};
use super::input::Input;
use super::window::Measure;
use crate::failure::{FAILED, REFUSED};

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// Why a recording was not read to its end, and the exit code of that.
pub(crate) type Stop = (String, u8);

/// Gives every message to `take`, until one makes it stop.
pub(crate) fn messages(
    source: &mut Input,
    framing: &mut Framing,
    mut take: impl FnMut(Result<&[u8], Error>) -> Result<Option<Stop>>,
) -> Result<Option<Stop>> {
    let mut space = vec![0; PIECE];
    loop {
        let count = match source.read(&mut space) {
            Ok(count) => count,
            Err(failure) => return Ok(Some((failure, FAILED))),
        };
        let piece = space.get(..count).unwrap_or_default();
        let held = if framing.is_known() {
            None
        } else if let Some(held) = framing.tell(piece, count == 0) {
            Some(held)
        } else {
            continue;
        };
        if let Some(what) = held.as_deref().and_then(framing::foreign) {
            return Ok(Some((what.to_owned(), REFUSED)));
        }
        let mut rest = held.as_deref().unwrap_or(piece);
        loop {
            let several = framing.measure() == Measure::Plain;
            let framed = match framing.read(&mut rest) {
                Some((framed, _)) => framed,
                None if count > 0 => break,
                None => match framing.end() {
                    Some((framed, _)) => framed,
                    None => return Ok(None),
                },
            };
            for (_, message) in each(framed, several).filter_map(unwrapped) {
                if let Some(stop) = take(message)? {
                    return Ok(Some(stop));
                }
            }
        }
    }
}
