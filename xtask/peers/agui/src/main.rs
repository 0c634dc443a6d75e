//! Follows every run of a recording with the crate `ag-ui`, once per line on standard input.
//!
//! Usage: `banister-peer-agui RECORDING`, with server-sent events. Prints the seconds each time took: framing, decoding,
//! expansion of chunks, verification, application, as the crate's own `Thread` does it, but without its futures and the
//! updates it hands to a user interface. A run is a stream of its own: the crate's verifier knows no second one.

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::Instant;

use ag_ui::client::transport::SseDecoder;
use ag_ui::client::{Applier, ChunkNormalizer, Verifier};

/// How much is handed to the framing at once.
const PIECE: usize = 64 * 1024;
const FIRST: &str = "data: {\"type\":\"RUN_STARTED\"";

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: banister-peer-agui RECORDING")?;
    let recording = std::fs::read_to_string(path)?;
    let begins: Vec<usize> = recording.match_indices(FIRST).map(|(at, _)| at).collect();
    let ends = begins.iter().copied().skip(1).chain([recording.len()]);
    let runs: Vec<&[u8]> = begins
        .iter()
        .zip(ends)
        .filter_map(|(begin, end)| recording.as_bytes().get(*begin..end))
        .collect();
    for line in std::io::stdin().lock().lines() {
        line?;
        let began = now();
        for run in &runs {
            let applier = black_box(follow(run)?);
            if applier.messages().is_empty() || applier.state().get("berths").is_none() {
                return Err("a run left nothing behind".into());
            }
        }
        let took = began.elapsed().as_secs_f64();
        let mut out = std::io::stdout().lock();
        writeln!(out, "{took}")?;
        out.flush()?;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "measuring real time is what this is for")]
fn now() -> Instant {
    Instant::now()
}

fn follow(run: &[u8]) -> Result<Applier, Box<dyn Error>> {
    let (mut decoder, mut normalizer) = (SseDecoder::new(), ChunkNormalizer::new());
    let (mut verifier, mut applier) = (Verifier::new(), Applier::new());
    let mut expanded = Vec::new();
    for piece in run.chunks(PIECE) {
        decoder.push(piece)?;
        while let Some(frame) = decoder.next_frame()? {
            normalizer.normalize(frame.into_event()?, &mut expanded)?;
            for event in expanded.drain(..) {
                verifier.verify(&event)?;
                applier.apply(&event)?;
            }
        }
    }
    verifier.finish()?;
    Ok(applier)
}
