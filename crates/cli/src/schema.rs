//! `banister schema`: the JSON Schema of every event and message, as the protocols' types have it.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use banister_events::schema;
use serde_json::{Value, json};

use crate::failure::{GOOD, USAGE};
use crate::rules;

/// What `banister schema` takes.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct SchemaArgs {
    /// The protocol: aaep, agui or aep
    pub(crate) protocol: String,
    /// Print the schema of one type, such as agent.tool.invoked; without it the names are listed
    #[arg(value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    /// Print the list as JSON: {"schema", "protocol", "schemas": [name, …]}
    #[arg(long, conflicts_with_all = ["kind", "out"])]
    pub(crate) json: bool,
    /// Write all of them as files into a directory
    #[arg(long, value_name = "DIR", conflicts_with = "kind")]
    pub(crate) out: Option<PathBuf>,
}

/// Prints schemas. Returns the exit code: 0, or 2 where a protocol or type is not known.
pub(crate) fn run(args: &SchemaArgs, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8> {
    let protocol = match rules::protocol(&args.protocol) {
        Ok(protocol) => protocol,
        Err(message) => {
            writeln!(err, "error: {message}")?;
            return Ok(USAGE);
        }
    };
    if let Some(kind) = &args.kind {
        if let Some(schema) = schema::find(protocol, kind) {
            writeln!(out, "{schema:#}")?;
            return Ok(GOOD);
        }
        let all = schema::all(protocol);
        let hint = nearest(kind, all.iter().map(|(name, _)| name.as_str()));
        writeln!(err, "error: unknown type {kind:?}{hint}")?;
        return Ok(USAGE);
    }
    let all = schema::all(protocol);
    if let Some(dir) = &args.out {
        for (name, schema) in &all {
            write(dir, name, schema)?;
        }
        writeln!(err, "{} schemas written to {}", all.len(), dir.display())?;
    } else if args.json {
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        let list = json!({"schema": "banister.schema/v1", "protocol": protocol, "schemas": names});
        writeln!(out, "{list}")?;
    } else {
        for (name, _) in &all {
            writeln!(out, "{name}")?;
        }
    }
    Ok(GOOD)
}

fn write(dir: &Path, name: &str, schema: &Value) -> Result<()> {
    let path = dir.join(name);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)
            .with_context(|| format!("cannot make {}", parent.display()))?;
    }
    std::fs::write(&path, format!("{schema:#}\n"))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The name that was probably meant.
fn nearest<'a>(kind: &str, names: impl Iterator<Item = &'a str>) -> String {
    let short = |name: &'a str| {
        let file = name.rsplit('/').next().unwrap_or(name);
        file.strip_suffix(".schema.json").unwrap_or(file)
    };
    rules::did_you_mean(kind, names.map(short))
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
