//! `config.toml`: what it may say, and where it is wrong.
//!
//! An error names the file, the line and the column, shows the line, and tells the key and what is known there.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use banister_client::{Address, Endpoint};
use banister_events::text::{nearest, one_line};
use banister_gateway::ingest::Pushing;
use banister_gateway::keep::CapturePolicy;
use banister_gateway::upstream::{Upstream, UpstreamPolicy};
use banister_journal::Level;
use banister_policy::Pack;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::check::excerpt::{Excerpt, excerpt};
use crate::data_dir::config_dir;
use crate::env;
use crate::failure::Failure;

/// What `config.toml` may say. A flag wins over it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) data: Option<PathBuf>,
    pub(crate) policy: Option<PathBuf>,
    /// The embedded rules: `default`, `strict`, `permissive` or `ci`.
    #[serde(default, deserialize_with = "pack")]
    pub(crate) pack: Option<Pack>,
    /// Rules that are only tried.
    pub(crate) shadow: Option<PathBuf>,
    #[serde(default)]
    pub(crate) sync_allow: bool,
    /// After how many minutes without an event a turn is over; 0 for never.
    pub(crate) idle_minutes: Option<u32>,
    /// How many seconds there are to answer at first.
    pub(crate) ask_seconds: Option<NonZeroU32>,
    #[serde(default)]
    pub(crate) push: Pushing,
    #[serde(default)]
    pub(crate) journal: JournalConfig,
    #[serde(default)]
    upstreams: BTreeMap<Name, UpstreamConfig>,
    /// What it was read from: a name, and the text.
    #[serde(skip)]
    read: Option<(PathBuf, String)>,
}

/// What `config.toml` may say about the journal.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JournalConfig {
    /// How much is kept: `full`, `redacted`, `metadata` or `none`.
    capture: Option<Level>,
    /// The same, agent by agent.
    #[serde(default)]
    capture_of: BTreeMap<String, Level>,
    /// After how many days records go.
    retain_days: Option<NonZeroU32>,
    /// Above how many megabytes the oldest records go.
    retain_megabytes: Option<NonZeroU32>,
    /// How often the journal is signed.
    checkpoint_minutes: Option<NonZeroU32>,
}

fn pack<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Pack>, D::Error> {
    let name = String::deserialize(deserializer)?;
    name.parse().map(Some).map_err(serde::de::Error::custom)
}

/// What an upstream is called: a word that can stand in a path.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
struct Name(String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        if (1..=64).contains(&name.len()) && name.chars().all(plain) {
            return Ok(Self(name));
        }
        Err("the name of an upstream is 1 to 64 small letters, digits, - and _".to_owned())
    }
}

/// What `config.toml` may say about an AG-UI agent that runs through the gateway.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UpstreamConfig {
    /// Where it listens.
    url: Address,
    /// What is sent along with every request.
    #[serde(default)]
    headers: BTreeMap<String, Spanned<Secret>>,
    /// The PEM file of the certificates that are trusted for it, instead of the platform's.
    ca: Option<Spanned<PathBuf>>,
    /// What is done about events that break the protocol: `repair`, `strict` or `report`.
    #[serde(default)]
    policy: UpstreamPolicy,
    /// Whether it is asked for the binary form.
    #[serde(default)]
    binary: bool,
    /// How long its answer may take to begin.
    start_seconds: Option<NonZeroU32>,
    /// How long it may be silent.
    idle_seconds: Option<NonZeroU32>,
    /// How long a run may take.
    longest_minutes: Option<NonZeroU32>,
    /// How many megabytes a run may have.
    largest_megabytes: Option<NonZeroU32>,
    /// After how much silence clients are told that the run is still there.
    keep_alive_seconds: Option<NonZeroU32>,
}

/// Where the value of a header is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Secret {
    /// In a file.
    File(PathBuf),
    /// In a variable of the environment.
    Env(String),
}

impl Secret {
    /// The value, or why there is none.
    fn read(&self) -> Result<String, String> {
        match self {
            Self::File(path) => match std::fs::read_to_string(path) {
                Ok(text) => Ok(text.trim().to_owned()),
                Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
            },
            Self::Env(name) => env::named(name)
                .ok_or_else(|| format!("the environment has nothing under {}", one_line(name))),
        }
    }
}

impl JournalConfig {
    pub(crate) fn capture(&self) -> CapturePolicy {
        let usual = CapturePolicy::default();
        let minutes = |number: NonZeroU32| Duration::from_mins(number.get().into());
        CapturePolicy {
            level: self.capture.unwrap_or(usual.level),
            levels: self.capture_of.clone(),
            age: self.retain_days.map(|days| Duration::from_hours(24 * u64::from(days.get()))),
            bytes: self.retain_megabytes.map(|number| u64::from(number.get()) * 1_000_000),
            sign_every: self.checkpoint_minutes.map_or(usual.sign_every, minutes),
            ..usual
        }
    }
}

impl Config {
    /// The file that was named, else the usual one if it is there.
    pub(crate) fn read(named: Option<&Path>) -> anyhow::Result<Self> {
        let usual = config_dir().map(|dir| dir.join("config.toml")).filter(|path| path.exists());
        let Some(path) = named.map(Path::to_owned).or(usual) else {
            return Ok(Self::default());
        };
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let config: Self = toml::from_str(&text).map_err(|error| {
            let span = error.span().unwrap_or_default();
            wrong(&path, &text, &span, error.message())
        })?;
        Ok(Self { read: Some((path, text)), ..config })
    }

    /// The AG-UI agents that run through the gateway. What keeps their secrets is read now.
    pub(crate) fn upstreams(&self) -> anyhow::Result<BTreeMap<String, Upstream>> {
        let mut upstreams = BTreeMap::new();
        for (Name(name), config) in &self.upstreams {
            let mut upstream = Upstream::new(config.url.clone());
            upstream.policy = config.policy;
            upstream.binary = config.binary;
            let seconds = |number: NonZeroU32| Duration::from_secs(number.get().into());
            for (field, said) in [
                (&mut upstream.start, config.start_seconds.map(seconds)),
                (&mut upstream.idle, config.idle_seconds.map(seconds)),
                (&mut upstream.keep_alive, config.keep_alive_seconds.map(seconds)),
                (&mut upstream.longest, config.longest_minutes.map(|it| seconds(it) * 60)),
            ] {
                *field = said.unwrap_or(*field);
            }
            if let Some(megabytes) = config.largest_megabytes {
                let megabytes = usize::try_from(megabytes.get()).unwrap_or(usize::MAX);
                upstream.bytes = megabytes.saturating_mul(1_000_000);
            }
            for (header, secret) in &config.headers {
                let value = secret.get_ref().read();
                let set = value.and_then(|value| {
                    let set = upstream.header(header, &value).then_some(());
                    set.ok_or_else(|| "this cannot be a header of a request".to_owned())
                });
                set.map_err(|why| self.wrong(&secret.span(), &why))?;
            }
            if let Some(ca) = &config.ca {
                let trusted = trust(&mut upstream, ca.get_ref());
                trusted.map_err(|why| self.wrong(&ca.span(), &why))?;
            }
            upstreams.insert(name.clone(), upstream);
        }
        Ok(upstreams)
    }

    fn wrong(&self, span: &Range<usize>, why: &str) -> Failure {
        match &self.read {
            Some((path, text)) => wrong(path, text, span, why),
            None => Failure::usage(why),
        }
    }
}

/// Makes an upstream trust the certificates of a PEM file, or says why that cannot be.
fn trust(upstream: &mut Upstream, path: &Path) -> Result<(), String> {
    if !matches!(upstream.address.endpoint(), Endpoint::Https(_)) {
        return Err("only an agent at an https:// address has a certificate to verify".to_owned());
    }
    let shown = one_line(&path.to_string_lossy());
    let pem = std::fs::read(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    upstream.trust(&pem).map_err(|error| format!("{shown}: {error}"))
}

/// A failure that points at the line.
fn wrong(path: &Path, text: &str, span: &Range<usize>, why: &str) -> Failure {
    let before = text.get(..span.start).unwrap_or_default();
    let number = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    let Excerpt { text: line, indent, width } = excerpt(text.as_bytes(), span.start, span.end);
    let key = key_at(text, span.start);
    let (why, hint) = explained(why, &key);
    let mut told = format!("{}:{number}:{column}: {why}", path.display());
    let gutter = " ".repeat(number.to_string().len());
    let (pad, carets) = (" ".repeat(indent), "^".repeat(width));
    write!(told, "\n{gutter} |\n{number} | {line}\n{gutter} | {pad}{carets}").ok();
    if !key.is_empty() {
        write!(told, "\n{gutter} = key: {key}").ok();
    }
    if let Some(hint) = hint {
        write!(told, "\n{gutter} = {hint}").ok();
    }
    Failure::usage(told)
}

/// What is wrong in plain words, and what would be right.
fn explained(why: &str, key: &str) -> (String, Option<String>) {
    let mut words = why.split('`').skip(1).step_by(2);
    let first_line = one_line(why.lines().next().unwrap_or_default());
    let what = if why.starts_with("unknown field") {
        "key"
    } else if why.starts_with("unknown variant") {
        "value"
    } else {
        return (first_line, None);
    };
    let given = words.next().unwrap_or_default();
    let allowed: Vec<&str> = words.collect();
    let meant = nearest(given, allowed.iter().copied());
    let meant = meant.map(|word| format!("did you mean `{word}`? ")).unwrap_or_default();
    let wrong = match what {
        "key" => {
            format!("there is no key `{}`", one_line(if key.is_empty() { given } else { key }))
        }
        _ => format!("the value `{}` is not known", one_line(given)),
    };
    (wrong, Some(format!("{meant}known here: {}", allowed.join(", "))))
}

/// The key that an offset belongs to, dotted, where that is known.
fn key_at(text: &str, offset: usize) -> String {
    let table = DeTable::parse(text).ok();
    table.and_then(|table| within(table.get_ref(), offset)).unwrap_or_default().join(".")
}

fn within(table: &DeTable<'_>, offset: usize) -> Option<Vec<String>> {
    let covers = |span: Range<usize>| span.start <= offset && offset < span.end.max(span.start + 1);
    table.iter().find_map(|(key, value)| {
        let name = key.get_ref().to_string();
        let inside = match value.get_ref() {
            // The span of a table is where it is named; its keys may stand anywhere.
            DeValue::Table(inner) => within(inner, offset),
            _ => None,
        };
        let found = inside.or_else(|| (covers(key.span()) || covers(value.span())).then(Vec::new));
        found.map(|mut rest| {
            rest.insert(0, name);
            rest
        })
    })
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
