//! What agents call their tools: `packs/tools.yaml`, read once.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::error::Error;
use crate::yaml;

/// The embedded list.
pub(crate) const TEXT: &str = include_str!("../packs/tools.yaml");
/// Its name in messages.
pub(crate) const NAME: &str = "packs/tools.yaml";
const SCHEMA: &str = "banister.tools/v1";

static TOOLS: LazyLock<Result<Tools, Error>> = LazyLock::new(|| {
    let tools: Tools = yaml::parse(NAME, TEXT)?;
    if tools.schema == SCHEMA {
        return Ok(tools);
    }
    Err(Error::embedded(NAME, format!("the schema is not {SCHEMA}")))
});

/// What kind of thing a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ToolClass {
    Shell,
    Read,
    Write,
    Search,
    Web,
    Mcp,
    Plan,
    Question,
    Subagent,
    Skill,
    Other,
}

impl ToolClass {
    const ALL: [(Self, &'static str); 11] = [
        (Self::Shell, "shell"),
        (Self::Read, "read"),
        (Self::Write, "write"),
        (Self::Search, "search"),
        (Self::Web, "web"),
        (Self::Mcp, "mcp"),
        (Self::Plan, "plan"),
        (Self::Question, "question"),
        (Self::Subagent, "subagent"),
        (Self::Skill, "skill"),
        (Self::Other, "other"),
    ];

    /// Reads the word used in rules.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(class, _)| *class)
    }
}

/// The tools' names and the names of their arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tools {
    schema: String,
    classes: std::collections::BTreeMap<ToolClass, Vec<String>>,
    unread: Vec<String>,
    shared: Vec<String>,
    deleting: Vec<String>,
    globbing: Vec<String>,
    pub(crate) arguments: ArgumentNames,
}

/// The names of arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArgumentNames {
    pub(crate) command: Vec<String>,
    pub(crate) directory: Vec<String>,
    pub(crate) environment: Vec<String>,
    pub(crate) path: Vec<String>,
    pub(crate) text: Vec<String>,
}

impl Tools {
    /// The embedded list, read once.
    pub(crate) fn load() -> Result<&'static Self, Error> {
        TOOLS.as_ref().map_err(Clone::clone)
    }

    /// The class of a tool of the agent's own.
    pub(crate) fn class(&self, tool: &str) -> ToolClass {
        self.classes
            .iter()
            .find(|(_, names)| lists(names, tool))
            .map_or(ToolClass::Other, |(class, _)| *class)
    }

    /// The first tool of a class, for examples that name the class.
    pub(crate) fn example_name(&self, class: &str) -> Option<&str> {
        let names = self.classes.get(&ToolClass::parse(class)?)?;
        names.first().map(String::as_str)
    }

    /// Whether the tool runs text of a language that is not read.
    pub(crate) fn is_unread(&self, tool: &str) -> bool {
        lists(&self.unread, tool)
    }

    /// A line of a shell that is not read, as ours would write it, if it is plain enough to mean the same in both.
    ///
    /// A colon may belong to a drive, a tilde to a home that is not known here, a comma to a list, `%` and `$` to a
    /// variable; a backslash parts the names of a path.
    pub(crate) fn plain_line(&self, text: &str) -> Option<String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || " ._-/\\=+\"".contains(c);
        let line = text.trim();
        let program = line.split(' ').next().unwrap_or_default();
        // A path in quotes that ends in a backslash is read in three ways.
        let is_clear = line.chars().all(is_plain)
            && line.matches('"').count().is_multiple_of(2)
            && !line.contains("\\\"");
        (is_clear && self.shared.iter().any(|name| name == program))
            .then(|| line.replace('\\', "/"))
    }

    /// Whether the tool deletes the files it names.
    pub(crate) fn is_deleting(&self, tool: &str) -> bool {
        lists(&self.deleting, tool)
    }

    /// Whether the tool's `pattern` is a path.
    pub(crate) fn is_globbing(&self, tool: &str) -> bool {
        lists(&self.globbing, tool)
    }
}

fn lists(names: &[String], tool: &str) -> bool {
    names.iter().any(|name| name.eq_ignore_ascii_case(tool))
}
