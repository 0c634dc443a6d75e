//! The command line, in its own words.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

pub(super) fn page() -> anyhow::Result<String> {
    // Built each time: a page of yesterday's binary would be stale and look fresh.
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    let build = [
        "build",
        "--quiet",
        "-p",
        "banister",
        "-p",
        "banister-hook",
        "-p",
        "xtask",
        "--profile",
        profile,
    ];
    crate::run(crate::cargo()?.args(build))?;
    let banister = std::env::current_exe()?.with_file_name("banister");
    let mut page = String::from(
        "# Command line\n\n\
         Data goes to stdout, words for people to stderr. Exit codes: 0 good, 1 errors found or refused, 2 used wrongly, \
         3 the tool itself failed.\n",
    );
    describe(&mut page, &banister, &mut Vec::new())?;
    Ok(page)
}

/// The help of one command, then that of its own commands.
fn describe(page: &mut String, banister: &Path, words: &mut Vec<String>) -> anyhow::Result<()> {
    let mut command = Command::new(banister);
    // The width of the text must not depend on where this runs.
    command.args(words.iter()).arg("--help").env_remove("COLUMNS");
    let help = crate::output(&mut command)?;
    let title = std::iter::once("banister").chain(words.iter().map(String::as_str));
    let title = title.collect::<Vec<_>>().join(" ");
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    write!(page, "\n## `{title}`\n\n```text\n{}\n```\n", lines.join("\n"))?;
    for name in subcommands(&help) {
        words.push(name.to_owned());
        describe(page, banister, words).with_context(|| words.join(" "))?;
        words.pop();
    }
    Ok(())
}

/// The names below `Commands:`.
fn subcommands(help: &str) -> Vec<&str> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        // Deeper lines go on with the description of the one above.
        .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::subcommands;

    #[test]
    fn commands_are_told_from_their_descriptions() {
        let help = "Does things\n\nUsage: x <COMMAND>\n\nCommands:\n  go    Go\n          far\n  stay  Stay\n  help  Help\n\nOptions:\n  -h\n";
        assert_eq!(subcommands(help), ["go", "stay"]);
        assert_eq!(subcommands("Usage: x\n"), Vec::<&str>::new());
    }
}
