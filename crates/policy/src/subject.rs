//! What exactly an action would do, as far as rules look: its tool's class, its commands, its paths.
//!
//! Everything is taken from the action's input, nothing from the agent's own words about it. There are two steps: the
//! input is read ([`Subject::new`]), and what it names is located among directories and links ([`Subject::locate`]). The
//! first is the dear one and never depends on links, so that links which are found later cost the second alone.

use std::path::PathBuf;
use std::rc::Rc;

use banister_events::activity::{Action, ActionKind};
use serde_json::Value;

use crate::effects::{self, Effect, EffectKind};
use crate::path::{PathNames, Surroundings, has_unseen_pieces, pieces};
use crate::request::ActionRequest;
use crate::shell::{self, ShellFacts, ShellReading, Simple};
use crate::tools::{ToolClass, Tools};

/// How deep, and how many values of, an input is looked at.
const MAX_DEPTH: usize = 16;
const MAX_VALUES: usize = 10_000;
/// Why a line of PowerShell or cmd is opaque.
const FOREIGN: &str = "the language of this shell is not read, and this is no plain line";
/// The argument that is a list of commands; under any other name a list is one command, already split.
const LIST: &str = "commands";
/// The most directories that are looked at where it is not known which of them counts.
const MAX_DIRECTORIES: usize = 16;
/// The most paths, each from each directory, that the words of a text may spell.
const MAX_PATHS: usize = 4_096;

/// The directories of one command.
type CommandDirectories = Rc<Vec<PathNames>>;

/// One action, taken apart: read once, for any number of rules.
#[derive(Debug)]
pub struct Subject<'a> {
    pub(crate) agent: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) server: Option<&'a str>,
    pub(crate) class: ToolClass,
    /// What it runs. For a tool that is no shell: what would run if an argument named like a command is one.
    pub(crate) reading: ShellReading,
    /// The shell texts themselves.
    pub(crate) texts: Vec<&'a str>,
    /// Every string that may be a path, whatever the tool.
    pub(crate) mentions: Vec<&'a str>,
    /// The directory that the action says it starts in.
    directory: Option<&'a str>,
    /// The files that a file tool names, as written.
    files: Vec<NamedFile<'a>>,
    /// The hosts that a web tool names, each as far as it is known.
    hosts: Vec<Option<String>>,
    /// What a file tool does to the files it names.
    file_effect: EffectKind,
    /// Why not everything about its input is known, if so.
    opaque: Option<String>,
    /// The directory that the agent is in.
    cwd: PathNames,
    /// Where everything is; all that follows is located in it.
    pub(crate) around: Surroundings,
    /// Where the action starts.
    pub(crate) start: PathNames,
    /// Every directory a command may run in: that of the action, and those it changes to.
    pub(crate) directories: Vec<PathNames>,
    /// The directories of each command, in the order of the reading.
    places: Vec<CommandDirectories>,
    /// The files a file tool names.
    pub(crate) paths: Vec<PathNames>,
    /// What each command does, in the order of the reading.
    pub(crate) effects: Vec<Vec<Effect>>,
    /// What a tool that is no shell does.
    pub(crate) tool_effects: Vec<Effect>,
    /// Whether the words spell too many paths to look at each: then no rule may rely on having seen them.
    pub(crate) overfull: bool,
}

/// A file that a file tool names.
#[derive(Debug)]
struct NamedFile<'a> {
    text: &'a str,
    /// Whether it is a pattern, which matters only where it leads out of the project.
    is_pattern: bool,
}

impl<'a> Subject<'a> {
    /// Reads the action's input, and locates what it names as if there were no links.
    pub(crate) fn new(tools: &Tools, request: &ActionRequest<'a>) -> Self {
        let action = request.action;
        let project = request.project.or(request.cwd);
        let cwd = Surroundings::start(request.cwd);
        let mut subject = Self {
            agent: request.agent,
            tool: &action.tool,
            server: action.server.as_deref(),
            class: class(tools, action),
            reading: ShellReading::default(),
            texts: Vec::new(),
            mentions: Vec::new(),
            directory: None,
            files: Vec::new(),
            hosts: Vec::new(),
            file_effect: EffectKind::Read,
            opaque: None,
            around: Surroundings::new(project, request.home, request.own),
            start: cwd.clone(),
            cwd,
            directories: Vec::new(),
            places: Vec::new(),
            paths: Vec::new(),
            effects: Vec::new(),
            tool_effects: Vec::new(),
            overfull: false,
        };
        let mut strings = Vec::new();
        if let Some(input) = &action.input
            && !collect(input, "", MAX_DEPTH, &mut strings)
        {
            subject.note("its input is too large to inspect");
        }
        match subject.class {
            ToolClass::Shell => subject.take_commands(tools, action, &strings),
            ToolClass::Mcp | ToolClass::Other => {
                subject.take_texts(&strings, &tools.arguments.command);
            }
            _ => {}
        }
        if subject.class != ToolClass::Shell {
            subject.take_files(tools, &strings);
        }
        if subject.class == ToolClass::Web {
            let urls = strings.iter().filter(|(key, text)| *key == "url" || text.contains("://"));
            subject.hosts = urls.map(|(_, url)| crate::host::of_url(url)).collect();
        }
        subject.mentions = strings
            .iter()
            .filter(|(key, text)| {
                !tools.arguments.text.iter().any(|name| name == key) && !text.contains('\n')
            })
            .map(|(_, text)| *text)
            .collect();
        subject.locate();
        subject
    }

    /// The same action where these links are: each link, and what it points to. A path counts under all its names.
    #[must_use]
    pub fn with_links(mut self, links: &[(PathBuf, PathBuf)]) -> Self {
        if !links.is_empty() {
            self.around = self.around.with_links(links);
            self.locate();
        }
        self
    }

    /// Works out where everything is that the action names, and what it does there.
    fn locate(&mut self) {
        self.start = match self.directory {
            Some(directory) => self.around.resolve(directory, &self.cwd),
            None => self.cwd.clone(),
        };
        self.locate_files();
        self.follow_directories();
        self.overfull = self.spells_too_many_paths();
        self.effects = self
            .reading
            .commands
            .iter()
            .enumerate()
            .map(|(at, simple)| effects::of(simple, self.places(at), &self.around))
            .collect();
        self.tool_effects = self.of_tool();
    }

    /// Why not everything about the action is known, apart from what its shell text hides.
    pub(crate) fn unseen(&self) -> Option<&str> {
        let overfull = self.overfull.then_some("it names more files than can be checked");
        self.opaque.as_deref().or(overfull)
    }

    /// What a tool that is no shell does.
    fn of_tool(&self) -> Vec<Effect> {
        match self.class {
            ToolClass::Read | ToolClass::Search | ToolClass::Write => {
                self.paths.iter().map(|path| Effect::on(self.file_effect, path)).collect()
            }
            ToolClass::Web if self.hosts.is_empty() => vec![Effect::of(EffectKind::Network)],
            ToolClass::Web => {
                let to = |host: &Option<String>| Effect {
                    host: host.clone(),
                    ..Effect::of(EffectKind::Network)
                };
                self.hosts.iter().map(to).collect()
            }
            ToolClass::Mcp | ToolClass::Other => vec![Effect::of(EffectKind::Unknown)],
            ToolClass::Shell
            | ToolClass::Plan
            | ToolClass::Question
            | ToolClass::Subagent
            | ToolClass::Skill => Vec::new(),
        }
    }

    fn note(&mut self, reason: &str) {
        self.opaque.get_or_insert_with(|| reason.to_owned());
    }

    fn take_commands(&mut self, tools: &Tools, action: &'a Action, strings: &[(&'a str, &'a str)]) {
        let names = &tools.arguments;
        let field = |keys: &[String]| {
            let keys = keys.to_vec();
            keys.into_iter()
                .find_map(|key| action.input.as_ref()?.get(&key).map(|value| (key, value)))
        };
        if let Some((_, directory)) = field(&names.directory) {
            match directory {
                Value::String(directory) if directory.is_empty() => {}
                Value::Null => {}
                Value::String(directory) => {
                    self.directory = Some(directory);
                    self.start = self.around.resolve(directory, &self.cwd);
                }
                _ => self.note("its directory is not a text"),
            }
        }
        let arguments = action.input.as_ref().and_then(|input| input.get("args"));
        let split = match (field(&names.command), arguments) {
            // A program with its arguments, already split.
            (Some((key, Value::Array(words))), _) if key != LIST => {
                self.read_argv(words.iter().map(Value::as_str).collect());
                Some(key)
            }
            (Some((key, Value::String(program))), Some(Value::Array(words))) => {
                let program = [Some(program.as_str())].into_iter();
                self.read_argv(program.chain(words.iter().map(Value::as_str)).collect());
                Some(key)
            }
            (_, Some(arguments)) if !is_empty(arguments) => {
                self.note("its arguments are not a list");
                None
            }
            _ => None,
        };
        let others: Vec<String> =
            names.command.iter().filter(|key| Some(*key) != split.as_ref()).cloned().collect();
        if tools.is_unread(self.tool) {
            self.take_foreign(tools, strings, &others);
        } else {
            self.take_texts(strings, &others);
        }
        if self.reading == ShellReading::default() && self.texts.is_empty() {
            self.note("its input holds no command");
        }
        if field(&names.environment).is_some_and(|(_, value)| !is_empty(value)) {
            self.note("it sets environment variables");
        }
    }

    /// Reads the lines of a shell with another language, as far as they are plain.
    fn take_foreign(&mut self, tools: &Tools, strings: &[(&'a str, &'a str)], keys: &[String]) {
        let mut found = false;
        for (key, text) in strings.iter().filter(|(key, _)| keys.iter().any(|name| name == key)) {
            found = true;
            if let Some(line) = tools.plain_line(text) {
                self.texts.push(text);
                let reading = self.with_facts(|facts| shell::read_at(&line, facts));
                self.merge(reading);
            } else {
                self.note(FOREIGN);
                self.take_texts(&[(*key, *text)], keys);
            }
        }
        if !found {
            self.note(FOREIGN);
        }
    }

    fn read_argv(&mut self, words: Vec<Option<&'a str>>) {
        let Some(words) = words.into_iter().collect::<Option<Vec<&str>>>() else {
            return self.note("its command has a word that is not a text");
        };
        let reading = self.with_facts(|facts| shell::read_argv(words.iter().copied(), facts));
        self.texts.extend(words);
        self.merge(reading);
    }

    fn take_texts(&mut self, strings: &[(&'a str, &'a str)], keys: &[String]) {
        for (key, text) in strings.iter().filter(|(key, _)| keys.iter().any(|name| name == key)) {
            self.texts.push(text);
            // Some agents put the list into a text.
            match serde_json::from_str::<Vec<String>>(text) {
                Ok(commands) if *key == LIST => {
                    for command in commands {
                        let reading = self.with_facts(|facts| shell::read_at(&command, facts));
                        self.merge(reading);
                    }
                }
                _ => {
                    let reading = self.with_facts(|facts| shell::read_at(text, facts));
                    self.merge(reading);
                }
            }
        }
    }

    fn with_facts(&self, read: impl FnOnce(&ShellFacts<'_>) -> ShellReading) -> ShellReading {
        let text = |names: &PathNames| {
            let known = !names.iter().any(|name| name.contains(shell::UNKNOWN));
            known.then(|| format!("/{}", names.join("/")))
        };
        // What `..` leads to behind a link, only the disk knows; the reading must not depend on it.
        let is_sure = self.directory.is_none_or(|directory| !directory.contains(".."));
        let directory = text(&self.start).filter(|_| is_sure);
        let home = text(&self.around.home);
        read(&ShellFacts { directory: directory.as_deref(), home: home.as_deref() })
    }

    /// The directories a command may run in.
    pub(crate) fn places(&self, command: usize) -> &[PathNames] {
        self.places.get(command).map_or(self.directories.as_slice(), |places| places.as_slice())
    }

    fn merge(&mut self, reading: ShellReading) {
        let room = shell::MAX_COMMANDS.saturating_sub(self.reading.commands.len());
        if reading.commands.len() > room {
            self.note("it runs more than 1,000 commands");
        }
        for simple in reading.commands.into_iter().take(room) {
            self.reading.list(simple);
        }
        self.reading.decoded |= reading.decoded;
        if let Some(reason) = reading.opaque {
            self.reading.opaque.get_or_insert(reason);
        }
    }

    /// Takes down the files that a tool names, and what it does to them.
    fn take_files(&mut self, tools: &Tools, strings: &[(&'a str, &'a str)]) {
        self.file_effect = match self.class {
            ToolClass::Write if tools.is_deleting(self.tool) => EffectKind::Delete,
            ToolClass::Write => EffectKind::Write,
            _ => EffectKind::Read,
        };
        for (key, text) in strings {
            if tools.arguments.path.iter().any(|name| name == key) {
                self.files.push(NamedFile { text, is_pattern: false });
            } else if *key == "pattern" && tools.is_globbing(self.tool) {
                self.files.push(NamedFile { text, is_pattern: true });
            } else if self.class == ToolClass::Write && text.contains("*** Begin Patch") {
                self.take_patch(text);
            }
        }
    }

    fn locate_files(&mut self) {
        let mut paths = Vec::new();
        for NamedFile { text, is_pattern } in &self.files {
            let path = self.around.resolve(text, &self.start);
            if !is_pattern || !self.around.in_project(&path) {
                paths.push(path);
            }
        }
        if self.class == ToolClass::Search && paths.is_empty() {
            paths.push(self.start.clone());
        }
        self.paths = paths;
    }

    /// The files of a patch in the form `apply_patch` takes.
    fn take_patch(&mut self, patch: &'a str) {
        const FILES: [&str; 4] = ["Update File:", "Add File:", "Delete File:", "Move to:"];
        const MARKS: [&str; 3] = ["Begin Patch", "End Patch", "End of File"];
        for line in patch.lines() {
            let Some(header) = line.trim().strip_prefix("***") else { continue };
            let header = header.trim();
            if let Some(file) = FILES.iter().find_map(|name| header.strip_prefix(name)) {
                self.files.push(NamedFile { text: file.trim(), is_pattern: false });
            } else if !MARKS.contains(&header) {
                self.note("its patch has a header that is not known");
            }
        }
    }

    fn spells_too_many_paths(&self) -> bool {
        let words = || self.reading.commands.iter().flat_map(Simple::words);
        let spelled = words().flat_map(|word| pieces(&word.text)).take(MAX_PATHS + 1).count();
        words().any(|word| has_unseen_pieces(&word.text))
            || spelled * self.directories.len() > MAX_PATHS
            || self.paths.len() > MAX_PATHS
    }

    /// Works out the directories of every command.
    fn follow_directories(&mut self) {
        let mut last: Option<(Rc<Vec<String>>, CommandDirectories)> = None;
        self.directories = vec![self.start.clone()];
        self.places.clear();
        for simple in &self.reading.commands {
            if let Some((texts, names)) = &last
                && Rc::ptr_eq(texts, &simple.directories)
            {
                self.places.push(Rc::clone(names));
                continue;
            }
            let names: Vec<PathNames> = simple
                .directories
                .iter()
                .map(|text| self.around.resolve(text, &self.start))
                .collect();
            for directory in &names {
                if !self.directories.contains(directory) && self.directories.len() < MAX_DIRECTORIES
                {
                    self.directories.push(directory.clone());
                }
            }
            let names = Rc::new(names);
            self.places.push(Rc::clone(&names));
            last = Some((Rc::clone(&simple.directories), names));
        }
    }
}

fn class(tools: &Tools, action: &Action) -> ToolClass {
    let foreign = action.server.is_some()
        || action.tool.starts_with("mcp__")
        || action.tool.starts_with("mcp_");
    match action.kind {
        ActionKind::Mcp => ToolClass::Mcp,
        _ if foreign => ToolClass::Mcp,
        ActionKind::Skill => ToolClass::Skill,
        ActionKind::Subagent => ToolClass::Subagent,
        ActionKind::Tool | ActionKind::Other => tools.class(&action.tool),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Lists every string with the key it stands under; `false` if there is too much to look at.
fn collect<'v>(
    value: &'v Value,
    key: &'v str,
    depth: usize,
    into: &mut Vec<(&'v str, &'v str)>,
) -> bool {
    if depth == 0 || into.len() >= MAX_VALUES {
        return false;
    }
    match value {
        Value::String(text) => {
            into.push((key, text));
            true
        }
        Value::Array(values) => values.iter().all(|value| collect(value, key, depth - 1, into)),
        Value::Object(map) => map.iter().all(|(key, value)| collect(value, key, depth - 1, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

#[cfg(test)]
#[path = "subject_tests.rs"]
mod tests;
