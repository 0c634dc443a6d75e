//! The installed hook, with a real gateway and its journal in the path, against hooks as people write them.
//!
//! Every program is started the same way, as agents do: its payload from a file, its answer through a pipe. Programs
//! take turns, so that whatever else the machine does falls on all of them.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use banister_hook::{Conf, Section};
use serde_json::json;

use super::gateway::{Gateway, parrot};
use super::stats::{Runs, shown};
use super::{merge, now, target};

const MUSL: &str = "x86_64-unknown-linux-musl";
const WARM_UP: usize = 3;
/// What every hook must have printed: a peer that is refused would be quick for the wrong reason.
const ALLOWED: &str = r#""permissionDecision":"allow""#;

const HOOK: &str = "banister-hook";
const ALONE: &str = "hook client alone";
const NOTHING: &str = "program that does nothing";
const SOCKET: &str = "the gateway itself, no program";
const BASH: &str = "bash + curl + jq";
const NODE: &str = "node";

/// A ratio that design promises: slower, faster, the factor, and whether it is the least or the most.
const GOALS: [(&str, &str, f64, Bound); 3] = [
    (BASH, HOOK, 20.0, Bound::AtLeast),
    (NODE, HOOK, 50.0, Bound::AtLeast),
    (ALONE, NOTHING, 2.0, Bound::AtMost),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    AtLeast,
    AtMost,
}

/// One thing that is measured.
struct Peer {
    name: &'static str,
    work: Work,
    runs: Runs,
}

enum Work {
    /// A program with its words, and what it must print.
    Program(Vec<OsString>, &'static str),
    /// A request over the socket.
    Request,
}

pub(crate) fn hook(runs: usize) -> anyhow::Result<()> {
    let folder = target()?.join("bench");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    crate::tell("bench: building the gateway (release) and the hook (dist)");
    let built = Built::new(&folder)?;
    let gateway = Gateway::start(&built.banister, &folder.join("data"))?;
    let payload = payload();
    let input = folder.join("payload.json");
    std::fs::write(&input, &payload)?;

    let mut peers = peers(&built, &gateway, &folder)?;
    crate::tell(&format!("bench: {runs} runs of each, in turns"));
    for round in 0..WARM_UP + runs {
        for peer in &mut peers {
            let began = now();
            match &peer.work {
                Work::Program(words, expected) => start(words, &input, expected)?,
                Work::Request => {
                    let answer = gateway.ask(&payload, round)?;
                    ensure!(answer.contains(ALLOWED), "the gateway said {answer:?}");
                }
            }
            let took = began.elapsed();
            if round >= WARM_UP {
                peer.runs.add(took);
            }
        }
        // Whoever follows the same one each time would always find the same caches.
        peers.rotate_left(1);
        if round % 2 == 0 {
            peers.swap(0, 1);
        }
    }
    drop(gateway);
    report(peers, &built.kind)
}

/// What was built, and how.
struct Built {
    banister: PathBuf,
    hook: PathBuf,
    nothing: PathBuf,
    kind: String,
}

impl Built {
    fn new(folder: &Path) -> anyhow::Result<Self> {
        let target = target()?;
        crate::run(crate::cargo()?.args(["build", "--quiet", "--release", "-p", "banister"]))?;
        let mut build = crate::cargo()?;
        build.args(["build", "--quiet", "--profile", "dist", "-p", "banister-hook"]);
        let nothing = folder.join("nothing");
        std::fs::write(nothing.with_extension("rs"), "fn main() {}\n")?;
        let mut rustc = Command::new("rustc");
        rustc.args([
            "-Copt-level=3",
            "-Ccodegen-units=1",
            "-Cpanic=abort",
            "-Cstrip=symbols",
            "-o",
        ]);
        rustc.arg(&nothing).arg(nothing.with_extension("rs"));
        let (hook, kind) = if has_musl() {
            build.args(["--target", MUSL]);
            rustc.args(["--target", MUSL]);
            (target.join(MUSL).join("dist/banister-hook"), format!("static, {MUSL}"))
        } else {
            crate::tell(&format!("bench: {MUSL} cannot be had: the hook is linked dynamically"));
            (target.join("dist/banister-hook"), "dynamic, of this machine".to_owned())
        };
        crate::run(&mut build)?;
        crate::run(&mut rustc)?;
        Ok(Self { banister: target.join("release/banister"), hook, nothing, kind })
    }
}

fn has_musl() -> bool {
    let quietly =
        |words: &[&str]| Command::new("rustup").args(words).stderr(Stdio::null()).output();
    let installed = quietly(&["target", "list", "--installed"]);
    let there = installed.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains(MUSL));
    there || quietly(&["target", "add", MUSL]).is_ok_and(|out| out.status.success())
}

/// What Claude Code sends before `git status`, which a rule allows.
fn payload() -> String {
    json!({
        "session_id": "bench", "prompt_id": "bench-1", "cwd": "/home/me/project",
        "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_use_id": "toolu_bench",
        "tool_input": { "command": "git status", "description": "Show what changed" },
    })
    .to_string()
}

fn peers(built: &Built, gateway: &Gateway, folder: &Path) -> anyhow::Result<Vec<Peer>> {
    let hook = gateway.install(&built.hook)?;
    let words = |program: &Path| {
        vec![program.into(), OsString::from("claude-code"), OsString::from("PreToolUse")]
    };
    let mut peers = vec![
        (HOOK, Work::Program(words(&hook), ALLOWED)),
        (ALONE, Work::Program(words(&alone(built, folder)?), ALLOWED)),
        (NOTHING, Work::Program(vec![built.nothing.clone().into()], "")),
        (SOCKET, Work::Request),
    ];
    let url = format!("http://{}/hooks/claude-code/PreToolUse", gateway.address);
    let scripts = [
        (BASH, "hook.sh", &["bash", "curl", "jq"][..], include_str!("../../peers/hook.sh")),
        (NODE, "hook.mjs", &["node"][..], include_str!("../../peers/hook.mjs")),
    ];
    for (name, file, needs, text) in scripts {
        let missing: Vec<&str> = needs.iter().copied().filter(|program| !has(program)).collect();
        if !missing.is_empty() {
            crate::tell(&format!("bench: SKIPPED {name}: {} is not installed", missing.join(", ")));
            continue;
        }
        let script = folder.join(file);
        std::fs::write(&script, text)?;
        let program = needs.first().copied().unwrap_or_default();
        let words =
            vec![program.into(), script.into(), url.clone().into(), gateway.key.clone().into()];
        peers.push((name, Work::Program(words, ALLOWED)));
    }
    Ok(peers.into_iter().map(|(name, work)| Peer { name, work, runs: Runs::default() }).collect())
}

/// The hook beside a configuration that leads to somebody who answers at once.
fn alone(built: &Built, folder: &Path) -> anyhow::Result<PathBuf> {
    let home = folder.join("alone");
    std::fs::create_dir_all(&home)?;
    let socket = home.join("s");
    parrot(
        &socket,
        &format!(r#"{{"hookSpecificOutput":{{"hookEventName":"PreToolUse",{ALLOWED}}}}}"#),
    )?;
    let conf = Conf {
        socket: socket.display().to_string(),
        key: "bk_bench".to_owned(),
        spool: home.join("spool").display().to_string(),
        reconnect: std::time::Duration::from_secs(1),
        sections: vec![Section::strictest("claude-code", "PreToolUse")],
    };
    std::fs::write(home.join(banister_hook::CONF_FILE), banister_hook::render(&conf))?;
    let hook = home.join("banister-hook");
    std::fs::copy(&built.hook, &hook)?;
    Ok(hook)
}

fn has(program: &str) -> bool {
    let tried =
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

/// Starts a program as an agent starts a hook, and insists on what it prints.
fn start(words: &[OsString], input: &Path, expected: &str) -> anyhow::Result<()> {
    let (program, words) = words.split_first().context("a program has a name")?;
    let output = Command::new(program)
        .args(words)
        .stdin(File::open(input)?)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .with_context(|| program.to_string_lossy().into_owned())?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let good = output.status.success() && printed.contains(expected);
    ensure!(good, "{} ended with {}: {printed}", program.to_string_lossy(), output.status);
    Ok(())
}

fn report(mut peers: Vec<Peer>, kind: &str) -> anyhow::Result<()> {
    peers.sort_by_key(|peer| peer.runs.median());
    crate::say(&format!("\nThe hook ({kind}), allow by rule, milliseconds:\n"));
    crate::say(&format!("{:<32} {:>9} {:>9} {:>9}", "", "min", "p50", "p90"));
    let mut rows = Vec::new();
    for Peer { name, runs, .. } in &peers {
        let [min, p50, p90] = [0, 50, 90].map(|percent| shown(runs.percentile(percent)));
        crate::say(&format!("{name:<32} {min:>9} {p50:>9} {p90:>9}"));
        let micros =
            |percent| u64::try_from(runs.percentile(percent).as_micros()).unwrap_or(u64::MAX);
        rows.push(json!({
            "name": name, "runs": runs.count(),
            "min_us": micros(0), "p50_us": micros(50), "p90_us": micros(90),
        }));
    }
    crate::say("\nRatios of medians:\n");
    let mut ratios = Vec::new();
    for (slower, faster, factor, bound) in GOALS {
        let find = |name| peers.iter().find(|peer| peer.name == name).map(|peer| &peer.runs);
        let (Some(slow), Some(fast)) = (find(slower), find(faster)) else {
            crate::say(&format!("{slower} / {faster}: not measured"));
            continue;
        };
        let ratio = slow.times(fast);
        let (met, word) = match bound {
            Bound::AtLeast => (ratio >= factor, "at least"),
            Bound::AtMost => (ratio <= factor, "at most"),
        };
        let verdict = if met { "met" } else { "MISSED" };
        crate::say(&format!(
            "{slower} / {faster}: {ratio:.1} x   (goal: {word} {factor:.0} x, {verdict})"
        ));
        ratios.push(json!({
            "of": slower, "to": faster, "ratio": ratio, "goal": factor, "bound": word, "met": met,
        }));
    }
    merge("hook", json!({ "build": kind, "rows": rows, "ratios": ratios }))
}
