//! Events to many who listen: what they cost, how late they are, how much memory it takes.
//!
//! Fan-out is measured in events delivered per second of the server's CPU time, as the kernel counts it. Ours takes
//! pushed events through everything it does (rules, hash chain, journal, projection, writing) and delivers them to 1,000
//! who follow on equal terms. The peer is Node's own `http` server, which is handed the very bytes that ours had sent,
//! push by push, and does nothing but send them on. Both get the next push when the one before is acknowledged.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use banister_events::event::Protocol;
use serde_json::json;

use super::gateway::Gateway;
use super::listen::{Audience, Hearing};
use super::push::{Client, Load};
use super::stats::{Runs, shown};
use super::{fresh, merge, now, target};

const SUBSCRIBERS: usize = 1_000;
/// How many pushes one run has, and how many events each.
const PUSHES: u64 = 100;
const EVENTS: u64 = 4;
const GOAL: f64 = 2.0;
const FEW: usize = 20;
const PER_SECOND: u32 = 1_000;
const SECONDS: u32 = 20;
const LATE_MS: u128 = 50;
/// How many connections push at that rate.
const PUSHERS: u32 = 4;
const RECORDS: u64 = 1_000_000;
const FILL_BYTES: usize = 32 << 20;
const MEGABYTES: f64 = 150.0;

/// Events delivered per second of CPU time, one for each run.
#[derive(Default)]
struct Delivered(Vec<f64>);

impl Delivered {
    fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }
}

pub(crate) fn fanout(runs: usize) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        return super::optimized("fanout", runs);
    }
    ensure!(Path::new("/proc/self/stat").exists(), "there is no /proc here to read CPU time from");
    let folder = fresh("bench-fanout")?;
    crate::tell("bench: building the gateway (release)");
    crate::run(crate::cargo()?.args(["build", "--quiet", "--release", "-p", "banister"]))?;
    let banister = target()?.join("release/banister");
    let data = folder.join("data");
    std::fs::create_dir_all(&data)?;
    let gateway = Gateway::start(&banister, &data)?;
    let person = std::fs::read_to_string(data.join("keys/person.key"))?;
    let request = format!(
        "GET /aep/v0.1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        gateway.address,
        person.trim()
    );

    crate::tell(&format!("bench: {runs} runs of {PUSHES} pushes to {SUBSCRIBERS}, in turns"));
    let (mut ours, mut node) = (Delivered::default(), Delivered::default());
    for round in 0..=runs {
        let audience = Audience::gather(&gateway.address, &request, SUBSCRIBERS, Hearing::Count)?;
        let (rate, frames) = pushed(&gateway, &audience, round as u64)?;
        drop(audience);
        let peer = Node::start()?;
        let peer_rate = peer.pushed(&frames)?;
        drop(peer);
        // The first round warms up.
        if round > 0 {
            ours.0.push(rate);
            node.0.push(peer_rate);
        }
    }

    crate::tell(&format!("bench: {:.0} and {:.0} per CPU second", ours.median(), node.median()));
    crate::tell(&format!("bench: {FEW} who listen, {PER_SECOND} events a second"));
    let late = latency(&gateway, &request)?;

    crate::tell(&format!("bench: p99 {} ms", shown(late.percentile(99))));
    crate::tell(&format!("bench: a journal of {RECORDS} records"));
    fill(&gateway)?;
    let audience = Audience::gather(&gateway.address, &request, SUBSCRIBERS, Hearing::Count)?;
    let (_, frames) = pushed(&gateway, &audience, 1_000_000)?;
    ensure!(!frames.is_empty(), "nothing was delivered");
    let memory = resident(gateway.pid())?;
    drop(audience);
    drop(gateway);
    std::fs::remove_dir_all(&folder)?;
    report(&ours, &node, &late, memory)
}

/// Pushes some events; gives what was delivered per second of CPU time, and the bytes of each push.
fn pushed(
    gateway: &Gateway,
    audience: &Audience,
    round: u64,
) -> anyhow::Result<(f64, Vec<Vec<u8>>)> {
    let before = audience.settle()?;
    let mut client = Client::connect(&gateway.address, &gateway.key)?;
    let begun = cpu(gateway.pid())?;
    let mut marks = vec![audience.heard()?.len()];
    for push in 0..PUSHES {
        let lines: Vec<String> =
            (0..EVENTS).map(|n| event(round, push * EVENTS + n, "x")).collect();
        client.push("/aep/v0.1/events", &lines.join("\n"))?;
    }
    let delivered = audience.settle()? - before;
    let spent = cpu(gateway.pid())?.saturating_sub(begun);
    let heard = audience.heard()?;
    let heard = heard.get(marks.pop().unwrap_or_default()..).unwrap_or_default();
    ensure!(delivered >= PUSHES * EVENTS * SUBSCRIBERS as u64, "{delivered} events were delivered");
    // The same bytes for the peer, as many events a push.
    let text = String::from_utf8_lossy(heard);
    let frames: Vec<&str> =
        text.split_inclusive("\n\n").filter(|it| it.contains("data: ")).collect();
    let most = frames.len().div_ceil(usize::try_from(PUSHES)?).max(1);
    let frames = frames.chunks(most).map(|frames| frames.concat().into_bytes()).collect();
    Ok((rate(delivered, spent), frames))
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn rate(events: u64, spent: Duration) -> f64 {
    events as f64 / spent.as_secs_f64().max(f64::EPSILON)
}

/// An event that is told as one event.
fn event(round: u64, number: u64, text: &str) -> String {
    json!({
        "aep_version": "0.1", "id": format!("evt_{round}x{number}"), "type": "notification.sent",
        "time": "2026-03-01T09:00:00.000Z", "agent": { "slug": "harbour", "version": "2.1.0" },
        "session": { "id": format!("s-{round}"), "conversation_id": format!("c-{round}") },
        "workspace": { "cwd": "/home/ada/harbour" },
        "content": [{
            "type": "notification",
            "text": format!("The ferry has left, high water is at nine; berth {number} is free. {text}"),
        }],
    })
    .to_string()
}

/// The peer.
struct Node {
    child: Child,
    address: String,
}

impl Node {
    fn start() -> anyhow::Result<Self> {
        let script = crate::root()?.join("xtask/peers/fanout.mjs");
        let mut child = Command::new("node")
            .arg(script)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("node")?;
        let mut port = String::new();
        let out = child.stdout.take().context("node prints its port")?;
        BufReader::new(out).read_line(&mut port)?;
        Ok(Self { child, address: format!("127.0.0.1:{}", port.trim()) })
    }

    fn pushed(&self, frames: &[Vec<u8>]) -> anyhow::Result<f64> {
        let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        let audience = Audience::gather(&self.address, &request, SUBSCRIBERS, Hearing::Count)?;
        let mut client = Client::connect(&self.address, "none")?;
        let begun = cpu(self.child.id())?;
        for frames in frames {
            client.push("/", std::str::from_utf8(frames)?)?;
        }
        let delivered = audience.settle()?;
        Ok(rate(delivered, cpu(self.child.id())?.saturating_sub(begun)))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.child.kill().and_then(|()| self.child.wait()).is_err() {
            crate::tell("bench: the peer could not be ended");
        }
    }
}

/// How late events are, at a steady rate.
fn latency(gateway: &Gateway, request: &str) -> anyhow::Result<Runs> {
    let start = now();
    let audience = Audience::gather(&gateway.address, request, FEW, Hearing::Times(start))?;
    audience.settle()?;
    let each = Duration::from_secs(1) * PUSHERS / PER_SECOND;
    std::thread::scope(|scope| {
        let work: Vec<_> = (0..PUSHERS)
            .map(|pusher| {
                scope.spawn(move || -> anyhow::Result<()> {
                    let mut client = Client::connect(&gateway.address, &gateway.key)?;
                    let begun = now();
                    for number in 0..PER_SECOND * SECONDS / PUSHERS {
                        // By the plan, not by when the one before was done: who waits is late too.
                        let due = each * number;
                        std::thread::sleep(due.saturating_sub(begun.elapsed()));
                        let sent = begun.duration_since(start) + due;
                        let text = format!("sent={}", sent.as_nanos());
                        let round = u64::from(900_000 + pusher);
                        client.push("/aep/v0.1/events", &event(round, number.into(), &text))?;
                    }
                    Ok(())
                })
            })
            .collect();
        work.into_iter()
            .try_for_each(|work| work.join().map_err(|_| anyhow::anyhow!("a pusher broke off"))?)
    })?;
    audience.settle()?;
    let mut runs = Runs::default();
    let late = audience.late();
    ensure!(late.len() == FEW * (PER_SECOND * SECONDS) as usize, "{} were heard", late.len());
    for late in late {
        runs.add(late);
    }
    Ok(runs)
}

/// Pushes until the journal has its million.
fn fill(gateway: &Gateway) -> anyhow::Result<()> {
    let (mut pushed, mut first) = (0, 10_000_000);
    while pushed < RECORDS {
        let load = Load::new(Protocol::Aep, FILL_BYTES, first, 4)?;
        load.push(&gateway.address, &gateway.key)?;
        pushed += load.events;
        first += load.events;
    }
    Ok(())
}

/// What a process has spent of the CPUs, in user mode and in the kernel.
fn cpu(pid: u32) -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("/proc/PID/stat")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| -> anyhow::Result<u64> {
        Ok(fields.get(at).context("/proc/PID/stat")?.parse()?)
    };
    // A tick is a hundredth of a second wherever Linux runs.
    Ok(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
}

/// Megabytes that a process has in memory.
fn resident(pid: u32) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes / 1_024.0)
}

fn report(ours: &Delivered, node: &Delivered, late: &Runs, memory: f64) -> anyhow::Result<()> {
    let verdict = |met| if met { "met" } else { "MISSED" };
    let ratio = ours.median() / node.median().max(f64::EPSILON);
    crate::say(&format!(
        "\nFan-out to {SUBSCRIBERS}, pushes of {EVENTS}, events delivered per CPU second by the median:\n"
    ));
    crate::say(&format!("{:<32} {:>12.0}", "banister", ours.median()));
    crate::say(&format!("{:<32} {:>12.0}", "node http", node.median()));
    let fast = ratio >= GOAL;
    crate::say(&format!("{ratio:.2} x   (goal: at least {GOAL} x, {})", verdict(fast)));
    let [p50, p99] = [50, 99].map(|percent| late.percentile(percent));
    let prompt = p99.as_millis() < LATE_MS;
    crate::say(&format!(
        "\nFrom push to delivery, {FEW} who listen, {PER_SECOND} events a second: p50 {} ms, p99 {} ms   \
         (goal: p99 under {LATE_MS} ms, {})",
        shown(p50),
        shown(p99),
        verdict(prompt)
    ));
    let small = memory < MEGABYTES;
    crate::say(&format!(
        "Resident with {SUBSCRIBERS} who listen and {RECORDS} records: {memory:.0} MB   \
         (goal: under {MEGABYTES:.0} MB, {})",
        verdict(small)
    ));
    let micros = |took: Duration| u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    merge(
        "fanout",
        json!({
            "subscribers": SUBSCRIBERS, "runs": ours.0.len(),
            "per_cpu_second": ours.median(), "peer_per_cpu_second": node.median(),
            "ratio": ratio, "goal": GOAL, "met": fast,
            "latency": { "p50_us": micros(p50), "p99_us": micros(p99), "met": prompt },
            "resident_mb": memory, "resident_met": small,
        }),
    )
}
