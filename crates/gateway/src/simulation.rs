//! Gateways under a seed: agents, people, followers, time, crashes and a journal that fails, all in one thread.
//!
//! A seed decides everything: what is sent, who runs when, when a commit fails, when the gateway ends in the middle of
//! things and is opened again on the same journal. Everybody comes through the real doors. What was promised is checked
//! whenever nothing moves, and once more at the end. `BANISTER_SIM_SEED=7` plays one seed and writes what happened to
//! standard error; `BANISTER_SIM_SEEDS=10000` plays so many of them.

use std::cell::Cell;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

mod agents;
mod dice;
mod house;
mod promises;
mod watchers;
mod world;

use world::World;

/// How many seeds are played where nothing is said.
const SEEDS: u64 = 100;
/// How many threads share them.
const THREADS: u64 = 2;

thread_local! {
    static RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is all there is: then what would block is done at once.
pub(crate) fn is_running() -> bool {
    RUNNING.get()
}

/// What happened, line by line.
#[derive(Debug, Clone, Default)]
struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    fn say(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Plays a seed; what happened, and why it may not have.
fn play(seed: u64) -> (Vec<String>, Result<(), String>) {
    RUNNING.set(true);
    let trace = Trace::default();
    let world = World::new(seed, trace.clone());
    let played = catch_unwind(AssertUnwindSafe(|| world.run()));
    RUNNING.set(false);
    let result = played.map_err(|cause| {
        let text = cause.downcast_ref::<String>().cloned();
        text.or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default()
    });
    (trace.lines(), result)
}

#[expect(clippy::disallowed_methods, reason = "no agent starts a test")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn simulated_gateways_keep_their_promises_whatever_happens() {
    if let Some(seed) = number("BANISTER_SIM_SEED") {
        let (trace, result) = play(seed);
        let mut out = std::io::stderr().lock();
        for line in trace {
            writeln!(out, "{line}").unwrap();
        }
        drop(out);
        return result.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
    let (first, count) =
        (number("BANISTER_SIM_FIRST").unwrap_or(0), number("BANISTER_SIM_SEEDS").unwrap_or(SEEDS));
    let part = |part: u64| {
        let seeds = (first..first + count).filter(move |seed| seed % THREADS == part);
        seeds.filter_map(|seed| Some((seed, play(seed).1.err()?))).collect::<Vec<_>>()
    };
    let failed: Vec<(u64, String)> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..THREADS).map(|index| scope.spawn(move || part(index))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    let why: Vec<String> = failed.iter().map(|(seed, why)| format!("seed {seed}: {why}")).collect();
    let shown = why.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
    assert!(why.is_empty(), "{} of {count} seeds, such as\n{shown}", why.len());
}

#[test]
fn a_simulated_seed_plays_the_same_again() {
    for seed in 0..8 {
        let (first, again) = (play(seed).0, play(seed).0);
        assert!(first.len() > 20, "{first:?}");
        assert_eq!(first, again, "seed {seed}");
    }
}
