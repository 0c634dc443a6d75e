//! Where things are: the data directory, and in it what a running gateway tells the other commands.

use std::path::{Path, PathBuf};

use anyhow::Context;
use banister_client::{Client, Endpoint};
use banister_gateway::keys::Keys;
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::env;
use crate::failure::Failure;

/// Where the gateway keeps its files.
#[derive(Debug, Clone, Args)]
pub(crate) struct DataDir {
    /// The data directory of the gateway
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) data: Option<PathBuf>,
}

/// What a running gateway leaves in its data directory for other commands.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Running {
    /// Its Unix socket.
    pub(crate) socket: PathBuf,
    /// Its address.
    pub(crate) address: String,
}

impl DataDir {
    /// The data directory.
    pub(crate) fn path(&self) -> anyhow::Result<PathBuf> {
        let named = match &self.data {
            Some(dir) => Some(dir.clone()),
            None => Config::read(None)?.data,
        };
        if let Some(dir) = named {
            return std::path::absolute(&dir).with_context(|| dir.display().to_string());
        }
        let base = env::DATA_HOME
            .path()
            .or_else(|| env::HOME.path().map(|home| home.join(".local/share")))
            .ok_or_else(|| {
                Failure::usage("neither XDG_DATA_HOME nor HOME is set; use --data DIR")
            })?;
        Ok(base.join("banister"))
    }

    /// The journal.
    pub(crate) fn journal(&self) -> anyhow::Result<PathBuf> {
        let path = self.path()?.join("journal.db");
        if !path.exists() {
            let message =
                format!("there is no journal at {}; start a gateway first", path.display());
            return Err(Failure::failed(message).into());
        }
        Ok(path)
    }

    /// A client with the person's key.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        self.client_with(Keys::PERSON)
    }

    /// A client with the agent's key, which may emit.
    pub(crate) fn emitter(&self) -> anyhow::Result<Client> {
        self.client_with(Keys::AGENT)
    }

    fn client_with(&self, key: &str) -> anyhow::Result<Client> {
        let dir = self.path()?;
        let running = Running::read(&dir)?;
        let path = dir.join("keys").join(key);
        let key = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(Client::new(Endpoint::Unix(running.socket), key.trim()))
    }
}

impl Running {
    const FILE: &str = "gateway.json";

    pub(crate) fn read(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join(Self::FILE);
        let text = std::fs::read_to_string(&path).map_err(|_| {
            let message = format!(
                "no gateway has run in {}; start one with `banister serve`, or name another with --data",
                dir.display()
            );
            Failure::failed(message)
        })?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    pub(crate) fn write(&self, dir: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_vec_pretty(self)?;
        Ok(banister_gateway::keys::private_file(&dir.join(Self::FILE), &text)?)
    }
}

/// Where configuration lives.
pub(crate) fn config_dir() -> Option<PathBuf> {
    let base =
        env::CONFIG_HOME.path().or_else(|| env::HOME.path().map(|home| home.join(".config")));
    base.map(|base| base.join("banister"))
}

/// Where the socket goes: the runtime directory for the usual gateway, the data directory for any other.
pub(crate) fn socket(data_dir: &DataDir, dir: &Path) -> PathBuf {
    match env::RUNTIME_DIR.path() {
        Some(runtime) if data_dir.data.is_none() => runtime.join("banister.sock"),
        _ => dir.join("banister.sock"),
    }
}

/// ` --data DIR` as a shell takes it, where a directory was named: what is printed can be run as it is.
pub(crate) fn data_flag(data_dir: &DataDir) -> String {
    match &data_dir.data {
        Some(dir) => format!(" --data {}", quoted(dir)),
        None => String::new(),
    }
}

/// A path as a shell takes it.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Runs async work to its end.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
