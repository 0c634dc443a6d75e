//! `banister token login`: a login link for the browser.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::failure::GOOD;
use crate::place::{Place, block_on};
use crate::print;

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print a login link for the browser; it works once, for a quarter of an hour
    Login,
}

pub(crate) fn run(args: &TokenArgs) -> anyhow::Result<u8> {
    let What::Login = args.what;
    let client = args.place.client()?;
    let answer = block_on(async { Ok(client.post("/api/login-links", &json!({})).await?) })?;
    let url = answer.get("url").and_then(Value::as_str);
    print::say(url.ok_or_else(|| anyhow::anyhow!("the gateway gave no link"))?);
    Ok(GOOD)
}
