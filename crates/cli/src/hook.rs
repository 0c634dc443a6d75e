//! `banister hook`: what `banister-hook` does, for people. The configuration is the data directory's.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;

use clap::Args;

use crate::data_dir::DataDir;

#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    /// The agent's install name, such as claude-code
    agent: OsString,
    /// The hook's name, such as `PreToolUse`; taken from the payload if it is missing
    event: Option<OsString>,
    #[command(flatten)]
    data_dir: DataDir,
}

pub(crate) fn run(args: &HookArgs) -> anyhow::Result<u8> {
    let conf = args.data_dir.path()?.join("hook").join(banister_hook::CONF_FILE);
    let stdin = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    Ok(banister_hook::run(
        &conf,
        &args.agent,
        args.event.as_deref(),
        stdin,
        &mut std::io::stdout().lock(),
        &mut std::io::stderr().lock(),
    ))
}
