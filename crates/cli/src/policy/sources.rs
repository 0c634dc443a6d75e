//! Which rules are meant, and where: those that the gateway would use here, or others.

use std::path::PathBuf;

use anyhow::Context;
use banister_gateway::Settings;
use banister_gateway::policy::PolicyStore;
use banister_policy::Pack;
use clap::Args;

use crate::config::Config;
use crate::data_dir::DataDir;
use crate::failure::Failure;
use crate::serve::{Named, settings};

/// Which rules are meant.
#[derive(Debug, Args)]
pub(super) struct RuleArgs {
    /// A rule file to use instead of yours
    #[arg(long, value_name = "FILE")]
    pub(super) rules: Option<PathBuf>,
    /// The embedded rules below them: default, strict, permissive or ci
    #[arg(long, value_name = "PACK")]
    pub(super) pack: Option<Pack>,
    #[command(flatten)]
    pub(super) data_dir: DataDir,
}

impl RuleArgs {
    /// What the gateway would be started with, with these rules.
    pub(super) fn settings(&self) -> anyhow::Result<Settings> {
        let config = Config::read(None)?;
        let named = Named { policy: self.rules.clone(), pack: self.pack, shadow: None };
        settings(self.data_dir.path()?, &named, &config)
    }
}

/// The rules that a gateway would be started with.
pub(super) fn policy_store(settings: &Settings) -> anyhow::Result<PolicyStore> {
    let store = PolicyStore::open(settings.policy.clone(), settings.home.clone());
    Ok(store.map_err(|trouble| Failure::usage(trouble.to_string()))?)
}

/// Where something would happen.
#[derive(Debug, Args)]
pub(super) struct WhereArgs {
    /// The directory the agent is in [default: this one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// What the agent works on [default: the repository that the directory is in, or the directory]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

impl WhereArgs {
    pub(super) fn cwd(&self) -> anyhow::Result<PathBuf> {
        match &self.cwd {
            Some(dir) => std::path::absolute(dir).with_context(|| dir.display().to_string()),
            None => std::env::current_dir().context("the current directory"),
        }
    }

    pub(super) fn project(&self) -> anyhow::Result<Option<PathBuf>> {
        let absolute =
            |dir: &PathBuf| std::path::absolute(dir).with_context(|| dir.display().to_string());
        self.project.as_ref().map(absolute).transpose()
    }
}
