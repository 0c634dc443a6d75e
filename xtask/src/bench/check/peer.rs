//! What we are measured against, kept running between measurements: neither its start nor its imports count.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::bench::target;

/// A process that reads the same recording each time it is told to.
#[derive(Debug)]
pub(super) struct Peer {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// How much of `@ag-ui/client` is measured.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// The operators that expand, verify and apply, on events that are parsed already.
    Operators,
    /// All of `HttpAgent.runAgent`, from bytes.
    RunAgent,
}

impl Peer {
    /// AAEP's own suite, on events one per line.
    pub(super) fn suite(recording: &str) -> anyhow::Result<Self> {
        let python = python()?;
        let script = file("aaep.py", include_str!("../../../peers/aaep.py"))?;
        let recording = file("aaep.jsonl", recording)?;
        let mut command = Command::new(python);
        command.args(["-B", "-W", "ignore"]).arg(script).arg(schemas()?).arg(recording);
        Self::start(&mut command)
    }

    /// AG-UI's own client, on server-sent events.
    pub(super) fn client(part: Part, recording: &str) -> anyhow::Result<Self> {
        let packages = packages()?;
        let script = file("agui.mjs", include_str!("../../../peers/agui.mjs"))?;
        let recording = file("agui-client.sse", recording)?;
        let part = match part {
            Part::Operators => "operators",
            Part::RunAgent => "runAgent",
        };
        let mut command = Command::new("node");
        command.arg(script).arg(packages).arg(part).arg(recording);
        // As in production: otherwise the client freezes copies of all it hands out.
        command.env("NODE_ENV", "production").env_remove("VITEST_WORKER_ID");
        Self::start(&mut command)
    }

    /// The crate `ag-ui`, on server-sent events.
    pub(super) fn library(recording: &str) -> anyhow::Result<Self> {
        let built = target()?.join("bench/agui");
        crate::tell("bench: building the crate ag-ui (release)");
        crate::run(
            crate::cargo()?
                .args(["build", "--quiet", "--locked", "--release", "--manifest-path"])
                .args(["xtask/peers/agui/Cargo.toml", "--target-dir"])
                .arg(&built),
        )?;
        let recording = file("agui-library.sse", recording)?;
        Self::start(Command::new(built.join("release/banister-peer-agui")).arg(recording))
    }

    fn start(command: &mut Command) -> anyhow::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let orders = child.stdin.take().context("a pipe was asked for")?;
        let answers = BufReader::new(child.stdout.take().context("a pipe was asked for")?);
        let mut peer = Self { child, orders, answers };
        // The first run fails where anything is missing.
        peer.run()?;
        Ok(peer)
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

impl Drop for Peer {
    fn drop(&mut self) {
        if self.child.kill().and_then(|()| self.child.wait()).is_err() {
            crate::tell("bench: a peer could not be ended");
        }
    }
}

/// Puts a file where peers find it.
fn file(name: &str, text: &str) -> anyhow::Result<PathBuf> {
    let folder = target()?.join("bench");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(name);
    std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    Ok(path)
}

/// The Python that has the suite; installed here unless `./test` did.
fn python() -> anyhow::Result<PathBuf> {
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

/// Where `./test` installed the npm packages; only it knows their versions.
fn packages() -> anyhow::Result<PathBuf> {
    let home = target()?.join("tools/npm");
    let client = home.join("node_modules/@ag-ui/client/package.json");
    ensure!(client.is_file(), "{} is not there; ./test interop installs it", client.display());
    Ok(home)
}
