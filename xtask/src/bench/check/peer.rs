//! The protocol's own suite, kept running between measurements: neither its start nor its imports count.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::bench::target;

/// A process that checks the same recording each time it is told to.
#[derive(Debug)]
pub(super) struct Suite {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Suite {
    pub(super) fn start(recording: &str) -> anyhow::Result<Self> {
        let python = installed()?;
        let folder = target()?.join("bench");
        std::fs::create_dir_all(&folder)?;
        let (script, slice) = (folder.join("aaep.py"), folder.join("aaep.jsonl"));
        std::fs::write(&script, include_str!("../../../peers/aaep.py"))?;
        std::fs::write(&slice, recording)?;
        let mut child = Command::new(python)
            .args(["-B", "-W", "ignore"])
            .arg(script)
            .arg(schemas()?)
            .arg(slice)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = child.stdin.take().context("a pipe was asked for")?;
        let answers = BufReader::new(child.stdout.take().context("a pipe was asked for")?);
        let mut suite = Self { child, orders, answers };
        // The first run fails where anything is missing.
        suite.run()?;
        Ok(suite)
    }

    /// How long the next run took.
    pub(super) fn run(&mut self) -> anyhow::Result<Duration> {
        self.orders.write_all(b"\n")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let seconds = line.trim().parse().with_context(|| format!("it said {line:?}"))?;
        Ok(Duration::try_from_secs_f64(seconds)?)
    }
}

impl Drop for Suite {
    fn drop(&mut self) {
        if self.child.kill().and_then(|()| self.child.wait()).is_err() {
            crate::tell("bench: the suite could not be ended");
        }
    }
}

/// The Python that has the suite; installed here unless `./test` did.
fn installed() -> anyhow::Result<PathBuf> {
    let wanted = crate::root()?.join("tests/interop/aaep/requirements.txt");
    let home = target()?.join("tools/python");
    let python = home.join("bin/python");
    let stamp = home.join("installed");
    let pins = std::fs::read(&wanted).with_context(|| wanted.display().to_string())?;
    if std::fs::read(&stamp).is_ok_and(|installed| installed == pins) {
        return Ok(python);
    }
    crate::tell("bench: installing aaep-conformance");
    crate::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))?;
    let pip = ["-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-deps", "-r"];
    crate::run(Command::new(&python).args(pip).arg(&wanted))?;
    std::fs::write(&stamp, pins)?;
    Ok(python)
}

/// The schemas that the suite's package lacks: the protocol's own where they are at hand, otherwise ours.
fn schemas() -> anyhow::Result<PathBuf> {
    let root = crate::root()?;
    let places =
        [root.join("../shared/data/aaep-schemas"), root.join("crates/events/schemas/aaep")];
    let has_schemas = |place: &Path| place.join("envelope.schema.json").is_file();
    match places.into_iter().find(|place| has_schemas(place)) {
        Some(place) => Ok(place),
        None => bail!("there are no schemas to check with"),
    }
}
