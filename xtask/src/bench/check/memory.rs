//! The peak memory of the real program on a large file, as the kernel counts it.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use banister_events::event::Protocol;

use super::corpus;
use crate::bench::{now, target};

const BYTES: u64 = 1 << 30;
const BLOCK: usize = 8 << 20;
/// More than a block has sessions.
const SESSIONS: u64 = 1_000_000;

/// What a large file took.
#[derive(Debug)]
pub(super) struct Peak {
    pub(super) bytes: u64,
    pub(super) memory: u64,
    pub(super) took: Duration,
}

impl Peak {
    #[expect(clippy::cast_precision_loss, reason = "sizes stay far below 2^52")]
    pub(super) fn megabytes(&self) -> f64 {
        self.memory as f64 / f64::from(1 << 20)
    }

    /// Megabytes per second.
    #[expect(clippy::cast_precision_loss, reason = "sizes stay far below 2^52")]
    pub(super) fn rate(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.took.as_secs_f64().max(f64::EPSILON)
    }
}

/// None where the system does not tell a process's peak memory.
pub(super) fn measure() -> anyhow::Result<Option<Peak>> {
    if !Path::new("/proc/self/status").exists() {
        crate::tell("bench: SKIPPED peak memory: there is no /proc here");
        return Ok(None);
    }
    let blocks = |first| Ok(corpus::recording(Protocol::Aaep, BLOCK, first)?.0);
    let recording = Recording::write(target()?.join("bench-check.jsonl"), BYTES, blocks)?;
    watch(&["check", "--protocol", "aaep"], &recording).map(Some)
}

/// What turning an AG-UI recording of this size into AAEP takes.
pub(super) fn translated(bytes: u64) -> anyhow::Result<Option<Peak>> {
    if !Path::new("/proc/self/status").exists() {
        crate::tell("bench: SKIPPED peak memory: there is no /proc here");
        return Ok(None);
    }
    let blocks = |first| Ok(super::agui::Recording::from(first, BLOCK)?.text);
    let recording = Recording::write(target()?.join("bench-translate.jsonl"), bytes, blocks)?;
    watch(&["translate", "--quiet", "--from", "agui", "--to", "aaep"], &recording).map(Some)
}

/// Runs the real program on a recording.
fn watch(arguments: &[&str], recording: &Recording) -> anyhow::Result<Peak> {
    crate::run(crate::cargo()?.args(["build", "--quiet", "--release", "-p", "banister"]))?;
    let began = now();
    let mut child = Command::new(target()?.join("release/banister"))
        .args(arguments)
        .arg(&recording.path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut memory = 0;
    let status = loop {
        memory = memory.max(high_water(&child).unwrap_or_default());
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let took = began.elapsed();
    let what = arguments.first().copied().unwrap_or_default();
    ensure!(status.success(), "banister {what} ended with {status}");
    ensure!(memory > 0, "banister {what} was too quick to be watched");
    Ok(Peak { bytes: recording.bytes, memory, took })
}

/// The most memory that a process ever had, in bytes.
fn high_water(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// A large file that is gone when this is dropped.
struct Recording {
    path: PathBuf,
    bytes: u64,
}

impl Recording {
    fn write(
        path: PathBuf,
        bytes: u64,
        block: impl Fn(u64) -> anyhow::Result<String>,
    ) -> anyhow::Result<Self> {
        let mut recording = Self { path, bytes: 0 };
        let name = recording.path.display().to_string();
        let mut file = BufWriter::new(File::create(&recording.path).context(name)?);
        let mut first = 0;
        while recording.bytes < bytes {
            let block = block(first)?;
            file.write_all(block.as_bytes())?;
            recording.bytes += block.len() as u64;
            first += SESSIONS;
        }
        file.flush()?;
        Ok(recording)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            crate::tell(&format!("bench: {} is left behind: {error}", self.path.display()));
        }
    }
}
