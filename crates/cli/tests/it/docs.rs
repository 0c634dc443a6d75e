//! What README and the guides show is what happens.
//!
//! Every fenced block `sh` and `console` of every page is run by bash, page by page, each in a directory and a home of its
//! own. What `console` shows behind a command is compared with what it prints; `…` stands for whatever is left out, on a
//! line or as many lines as it takes. A command of `sh` has to succeed.
//!
//! For who writes a page:
//!
//! - ```` ```sh norun: reason ```` is not run. That is for what needs another machine, program or hour; it is counted.
//! - A comment that begins with `<!-- sh` and ends with `-->`, on lines of their own, is run and not seen: what the reader
//!   has done before.
//! - `NAME=value` at the start of a line holds for the rest of the page, like in the reader's shell.
//! - A command that does not end (`serve`, a hook that waits, a stream) goes on while the page does.
//! - `/tmp/`, `/home/me`, `/run/user/1000`, `/media/usb` and the port 7717 stand for places of the test.
//! - On a page with a gateway, times, durations, ports and ids differ from run to run. An id that a page has shown is the
//!   same thing afterwards: `banister answer 148667d8` answers what `banister inbox` has shown under that id, or else
//!   what is open.
//!
//! `BANISTER_PAGE=guides/answer.md cargo test -p banister --test it docs` runs one page.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use regex::Regex;

use crate::support::BANISTER;

/// How long a command may take that is to end, and after how long one that waits goes on beside the others.
const LONGEST: Duration = Duration::from_mins(3);
const WAITS: Duration = Duration::from_secs(3);
/// Programs that not every machine has; what needs one that is missing is left out.
const OTHERS: [&str; 2] = ["jq", "sqlite3"];
/// At most this part of all blocks may be left out on purpose: one in so many.
const NORUN: usize = 5;

/// What a reader's shell has, with streams that end after a while and refusals that are failures.
const SHELL: &str = r#"
curl() { command curl --fail-with-body --max-time 2 "$@" || [ $? = 28 ]; }
"#;

#[test]
fn pages_show_what_happens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    for folder in ["docs/guides", "docs/concepts", "docs/reference"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        pages.extend(entries.map(|entry| entry.unwrap().path()));
    }
    pages.sort();
    let only = std::env::var("BANISTER_PAGE").ok();
    pages.retain(|page| only.as_ref().is_none_or(|only| page.ends_with(only)));
    // Most of the time they wait, but a machine has its limits.
    let next = AtomicUsize::new(0);
    let counts: Vec<Count> = std::thread::scope(|scope| {
        let worker = || -> Vec<Count> {
            let mine = || pages.get(next.fetch_add(1, Ordering::Relaxed));
            std::iter::from_fn(mine).map(|page| World::new(&root).page(page)).collect()
        };
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let sum = |of: fn(&Count) -> usize| counts.iter().map(of).sum::<usize>();
    let (run, left_out, wrong) = (sum(|it| it.run), sum(|it| it.norun), sum(|it| it.wrong.len()));
    eprintln!("{} pages, {run} commands run, {left_out} blocks are not run", pages.len());
    counts.iter().flat_map(|count| &count.missing).for_each(|why| eprintln!("{why}"));
    let told: Vec<String> = counts.into_iter().flat_map(|count| count.wrong).collect();
    assert_eq!(wrong, 0, "\n{}", told.join("\n\n"));
    if only.is_none() {
        assert!(left_out * NORUN <= run, "{left_out} blocks are not run, of {run}: too many");
        assert!(run > 50, "{run} commands were found");
    }
}

/// What became of a page.
#[derive(Default)]
struct Count {
    run: usize,
    norun: usize,
    /// What needs a program that is not here.
    missing: Vec<String>,
    wrong: Vec<String>,
}

/// One command, or several lines that belong together.
struct Step {
    line: usize,
    script: String,
    /// What it is said to print; none where nothing is said.
    shows: Option<Vec<String>>,
}

/// A page's block of commands.
struct Block {
    line: usize,
    /// Why it is not run.
    norun: Option<String>,
    steps: Vec<Step>,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().zip(1..);
    while let Some((first, line)) = lines.next() {
        let opened = first.trim_start();
        let (info, end) = match opened.strip_prefix("<!-- ") {
            Some(info) => (info, "-->"),
            None => (opened.strip_prefix("```").unwrap_or_default(), "```"),
        };
        if info.is_empty() {
            continue;
        }
        let inside: Vec<(&str, usize)> =
            lines.by_ref().take_while(|(text, _)| text.trim() != end).collect();
        let (kind, rest) = info.split_once(' ').unwrap_or((info, ""));
        let norun = rest.strip_prefix("norun:").map(|why| why.trim().to_owned());
        let steps = match kind {
            "sh" => {
                let script: Vec<&str> = inside.iter().map(|(text, _)| *text).collect();
                vec![Step { line, script: script.join("\n"), shows: None }]
            }
            "console" => shown(&inside),
            _ => continue,
        };
        blocks.push(Block { line, norun, steps });
    }
    blocks
}

/// The commands of a `console` block, each with what follows it.
fn shown(lines: &[(&str, usize)]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut until: Option<String> = None;
    for (text, line) in lines {
        let goes_on = |step: &Step| step.shows.as_ref().is_some_and(Vec::is_empty);
        let unfinished = |step: &Step| step.script.ends_with('\\') || step.script.ends_with('|');
        match steps.last_mut() {
            Some(step) if until.is_some() => {
                step.script.extend(["\n", *text]);
                until = until.filter(|end| end != text);
            }
            Some(step) if goes_on(step) && unfinished(step) => {
                step.script.extend(["\n", *text]);
            }
            _ if text.starts_with("$ ") => {
                let script = text.trim_start_matches("$ ").to_owned();
                steps.push(Step { line: *line, script, shows: Some(Vec::new()) });
            }
            Some(step) => step.shows.as_mut().unwrap().push((*text).to_owned()),
            None => {}
        }
        let last = steps.last().map_or("", |step| step.script.lines().last().unwrap_or_default());
        if until.is_none() && steps.last().is_some_and(goes_on) {
            let here = last.split_once("<<'").and_then(|(_, rest)| rest.split_once('\''));
            until = here.map(|(end, _)| end.to_owned()).filter(|end| end != text);
        }
    }
    steps
}

/// Where a page is run.
struct World {
    dir: tempfile::TempDir,
    /// Assignments so far.
    variables: String,
    /// What a page calls something → what it is called here.
    ids: BTreeMap<String, String>,
    going_on: Vec<(usize, String, Child)>,
    /// Whether a gateway was started, so that not every run is the same.
    gateway: bool,
}

impl World {
    fn new(root: &Path) -> Self {
        // Short, because a socket's path may not be long; in memory, because this is about words and not about disks.
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory } else { Path::new("/tmp") };
        let dir = tempfile::Builder::new().prefix("bd").tempdir_in(base).unwrap();
        for folder in ["tmp", "home/.config/banister", "run", "usb", "work"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        // The usual port is somebody's.
        let config = dir.path().join("home/.config/banister/config.toml");
        std::fs::write(config, "listen = \"127.0.0.1:0\"\n").unwrap();
        let recordings = root.canonicalize().unwrap().join("conformance");
        std::os::unix::fs::symlink(recordings, dir.path().join("work/conformance")).unwrap();
        let (variables, ids) = (String::new(), BTreeMap::new());
        Self { dir, variables, ids, going_on: Vec::new(), gateway: false }
    }

    fn page(&mut self, page: &Path) -> Count {
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        let mut count = Count::default();
        for block in blocks(&std::fs::read_to_string(page).unwrap()) {
            if let Some(why) = &block.norun {
                count.norun += 1;
                if why.is_empty() {
                    count.wrong.push(format!("{name}:{}: norun needs a reason", block.line));
                }
                continue;
            }
            for step in &block.steps {
                let lacks = |program: &&&str| step.script.contains(&format!("{program} "));
                if let Some(program) = OTHERS.iter().filter(lacks).find(|it| !is_here(it)) {
                    let why = format!("{name}:{}: not run, there is no {program} here", step.line);
                    count.missing.push(why);
                    continue;
                }
                count.run += 1;
                let shown = step.script.lines().next().unwrap_or_default();
                if let Err(why) = self.step(step) {
                    count.wrong.push(format!("{name}:{}: $ {shown} …\n{why}", step.line));
                }
            }
        }
        for (line, script, child) in &mut self.going_on {
            let ended = child.try_wait().unwrap();
            if let Some(status) = ended.filter(|status| !status.success()) {
                count.wrong.push(format!("{name}:{line}: $ {script}\nended with {status}"));
            }
        }
        count
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        let mut script = self.here(&step.script);
        if step.shows.is_none() {
            // What is shown is compared; what is not has to succeed, line by line.
            script.insert_str(0, "set -e\n");
        }
        let begun = Instant::now();
        let serves = script.contains("banister serve") || script.contains("banister demo");
        self.gateway |= serves;
        loop {
            let mut child = self.start(&script, step.line);
            let until = begun + if step.shows.is_some() { LONGEST } else { WAITS };
            let status = loop {
                if serves && self.printed(step.line).contains("Banister listens") {
                    break None;
                }
                match child.try_wait().unwrap() {
                    Some(status) => break Some(status),
                    None if Instant::now() > until && !serves => break None,
                    None if begun.elapsed() > LONGEST => break None,
                    None => std::thread::sleep(Duration::from_millis(20)),
                }
            };
            let printed = self.printed(step.line);
            let waits = status.is_none();
            if waits {
                self.going_on.push((step.line, step.script.clone(), child));
            }
            let Some(expected) = &step.shows else {
                self.variables.push_str(&assignments(&script));
                return match status {
                    Some(status) if !status.success() => {
                        Err(format!("ended with {status}, and says:\n{printed}"))
                    }
                    _ => Ok(()),
                };
            };
            let lines: Vec<&str> = printed.lines().collect();
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            if waits && !serves {
                return Err(format!("does not end, and says:\n{printed}"));
            }
            let same = if serves {
                // It is not over: what else it will print is not known.
                self.matches(&expected, lines.get(..expected.len()).unwrap_or(&lines))
            } else {
                self.matches(&expected, &lines)
            };
            if same {
                return Ok(());
            }
            // What others do beside it may take a moment.
            if self.going_on.is_empty() || begun.elapsed() > Duration::from_secs(10) {
                let expected = expected.join("\n");
                return Err(format!("is said to show:\n{expected}\nand shows:\n{printed}"));
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// What a step has printed so far. In a pipe data and words for people come as they come; here the data is first.
    fn printed(&self, line: usize) -> String {
        let read = |kind| std::fs::read(self.file(kind, line)).unwrap_or_default();
        self.documented(&String::from_utf8_lossy(&[read("out"), read("err")].concat()))
    }

    fn file(&self, kind: &str, line: usize) -> PathBuf {
        self.dir.path().join(format!("{kind}-{line}"))
    }

    fn start(&self, script: &str, line: usize) -> Child {
        let mut command = self.bash(&format!("{SHELL}{}\n{script}", self.variables));
        command
            .stdout(File::create(self.file("out", line)).unwrap())
            .stderr(File::create(self.file("err", line)).unwrap());
        command.spawn().unwrap()
    }

    fn bash(&self, script: &str) -> Command {
        let programs = Path::new(BANISTER).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        command
            .args(["-c", script])
            .current_dir(self.dir.path().join("work"))
            .env_clear()
            .env("PATH", path)
            .env("LANG", "C.UTF-8")
            .env("HOME", self.dir.path().join("home"))
            .env("XDG_RUNTIME_DIR", self.dir.path().join("run"))
            .stdin(Stdio::null())
            .process_group(0);
        command
    }

    /// A script of a page with the places and ids of this world.
    fn here(&self, script: &str) -> String {
        let mut script = script.to_owned();
        for (documented, real) in self.places() {
            script = script.replace(&documented, &real);
        }
        if let Some(address) = self.address() {
            script = script.replace("127.0.0.1:7717", &address);
        }
        for (documented, real) in &self.ids {
            script = script.replace(documented, real);
        }
        let known = |id: &str| self.ids.values().any(|real| real == id);
        match ANSWERED.captures(&script).map(|found| found[1].to_owned()) {
            Some(id) if !known(&id) => match self.open_ask(&script) {
                Some(open) => script.replace(&id, &open),
                None => script,
            },
            _ => script,
        }
    }

    /// What is open at the gateway that a script names, in short.
    fn open_ask(&self, script: &str) -> Option<String> {
        let flag = DATA.find(script).map_or("", |flag| flag.as_str());
        let output = self.bash(&format!("banister inbox --json {flag}")).output().unwrap();
        let inbox: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        let id = inbox["asks"][0]["id"].as_str()?.trim_start_matches("ask_");
        Some(id.chars().take(8).collect())
    }

    /// What was printed, with the places of the page.
    fn documented(&self, printed: &str) -> String {
        let mut printed = printed.to_owned();
        for (documented, real) in self.places() {
            printed = printed.replace(&real, &documented);
        }
        printed
    }

    fn places(&self) -> [(String, String); 4] {
        let place = |documented: &str, folder: &str| {
            (documented.to_owned(), format!("{}/{folder}", self.dir.path().display()))
        };
        // Its own name may have /tmp/ in it, so that comes first.
        [
            place("/tmp/", "tmp/"),
            place("/run/user/1000", "run"),
            place("/home/me", "home"),
            place("/media/usb", "usb"),
        ]
    }

    /// Where the gateway of the home listens.
    fn address(&self) -> Option<String> {
        let file = self.dir.path().join("home/.local/share/banister/gateway.json");
        let running: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(file).ok()?).ok()?;
        running["address"].as_str().map(str::to_owned)
    }

    fn matches(&mut self, expected: &[&str], lines: &[&str]) -> bool {
        if !self.gateway {
            return fit(expected, lines);
        }
        let plain = |lines: &[&str]| -> Vec<String> { lines.iter().map(|it| plain(it)).collect() };
        let (shown, real) = (plain(expected), plain(lines));
        let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
        let real: Vec<&str> = real.iter().map(String::as_str).collect();
        let same = fit(&shown, &real);
        if same {
            self.learn(expected, lines);
        }
        same
    }

    /// Ids that the page shows are from now on those that were printed in their place.
    fn learn(&mut self, expected: &[&str], lines: &[&str]) {
        let ids = |lines: &[&str]| -> Vec<String> {
            let text = lines.join("\n");
            IDS.find_iter(&text).map(|id| id.as_str().to_owned()).collect()
        };
        let (shown, real) = (ids(expected), ids(lines));
        if shown.len() == real.len() {
            self.ids.extend(shown.into_iter().zip(real));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for (_, _, child) in &mut self.going_on {
            let group = format!("-{}", child.id());
            Command::new("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status().ok();
            child.wait().ok();
        }
    }
}

fn is_here(program: &str) -> bool {
    let found = Command::new("bash").args(["-c", &format!("command -v {program}")]).output();
    found.unwrap().status.success()
}

/// The lines of a script that set something, with those they go on in.
fn assignments(script: &str) -> String {
    static NAMED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^[A-Z_]+=").unwrap());
    let mut found = String::new();
    let mut within = false;
    for line in script.lines() {
        // With a space behind the value it is for one command only.
        let alone = !line.contains(' ') || line.contains("=$(") || line.contains("='");
        within = within || NAMED.is_match(line) && alone;
        if within {
            found.extend([line, "\n"]);
            within = line.ends_with('\\');
        }
    }
    found
}

static ANSWERED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"banister (?:answer|extend) ([0-9a-f]{8})\b").unwrap());
static DATA: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"--data \S+").unwrap());
static IDS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b[0-9a-f]{8,}\b").unwrap());

/// A line without what differs from run to run.
fn plain(line: &str) -> String {
    static VARYING: LazyLock<[(Regex, &str); 4]> = LazyLock::new(|| {
        [
            (Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").unwrap(), "TIME"),
            (Regex::new(r"(127\.0\.0\.1|localhost):\d+").unwrap(), "$1:PORT"),
            (Regex::new(r"(\d+ (hours?|minutes?|seconds?) ?)+").unwrap(), "DURATION "),
            (Regex::new(r"(\b|_)[0-9a-f]{8,}\b").unwrap(), "${1}ID"),
        ]
    });
    let mut line = line.to_owned();
    for (pattern, instead) in VARYING.iter() {
        line = pattern.replace_all(&line, *instead).into_owned();
    }
    line
}

fn fit(expected: &[&str], lines: &[&str]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((any, rest)) if any.trim() == "…" => {
            (0..=lines.len()).any(|at| fit(rest, &lines[at..]))
        }
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, more)| line_fits(first, line) && fit(rest, more)),
    }
}

fn line_fits(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut left) = line.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return left.is_empty() };
    for part in parts {
        match left.split_once(part) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    left.ends_with(last)
}
