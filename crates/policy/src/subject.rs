//! What exactly an action would do, as far as rules look: its tool's class, its commands, its paths.
//!
//! Everything is taken from the action's input, nothing from the agent's own words about it.

use std::rc::Rc;

use banister_events::activity::{Action, ActionKind};
use serde_json::Value;

use crate::effects::{self, Effect, Kind};
use crate::evaluate::Request;
use crate::path::{Names, Surroundings, has_unseen_pieces, pieces};
use crate::shell::{self, Facts, Reading, Simple};
use crate::tools::{Class, Tools};

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
type Places = Rc<Vec<Names>>;

/// One action, taken apart.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) agent: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) server: Option<&'a str>,
    pub(crate) class: Class,
    pub(crate) around: Surroundings,
    /// What it runs. For a tool that is no shell: what would run if an argument named like a command is one.
    pub(crate) reading: Reading,
    /// The shell texts themselves.
    pub(crate) texts: Vec<&'a str>,
    /// Where the action starts.
    pub(crate) start: Names,
    /// Every directory a command may run in: that of the action, and those it changes to.
    pub(crate) directories: Vec<Names>,
    /// The directories of each command, in the order of the reading.
    places: Vec<Places>,
    /// The files a file tool names.
    pub(crate) paths: Vec<Names>,
    /// What each command does, in the order of the reading.
    pub(crate) effects: Vec<Vec<Effect>>,
    /// What a tool that is no shell does.
    pub(crate) tool_effects: Vec<Effect>,
    /// Every string that may be a path, whatever the tool.
    pub(crate) mentions: Vec<&'a str>,
    /// Whether the words spell too many paths to look at each: then no rule may rely on having seen them.
    pub(crate) overfull: bool,
    /// Why not everything about it is known, if so.
    pub(crate) opaque: Option<String>,
}

impl<'a> Subject<'a> {
    pub(crate) fn new(tools: &Tools, request: &Request<'a>) -> Self {
        let action = request.action;
        let project = request.project.or(request.cwd);
        let around =
            Surroundings::new(project, request.home, request.own).with_links(request.links);
        let mut subject = Self {
            agent: request.agent,
            tool: &action.tool,
            server: action.server.as_deref(),
            class: class(tools, action),
            start: Surroundings::start(request.cwd),
            directories: Vec::new(),
            places: Vec::new(),
            around,
            reading: Reading::default(),
            texts: Vec::new(),
            paths: Vec::new(),
            effects: Vec::new(),
            tool_effects: Vec::new(),
            mentions: Vec::new(),
            overfull: false,
            opaque: None,
        };
        let mut strings = Vec::new();
        if let Some(input) = &action.input
            && !collect(input, "", MAX_DEPTH, &mut strings)
        {
            subject.note("its input is too large to inspect");
        }
        match subject.class {
            Class::Shell => subject.take_commands(tools, action, &strings),
            Class::Mcp | Class::Other => {
                subject.take_texts(&strings, &tools.arguments.command);
            }
            _ => {}
        }
        if subject.class != Class::Shell {
            subject.take_paths(tools, &strings);
        }
        subject.mentions = strings
            .iter()
            .filter(|(key, text)| {
                !tools.arguments.text.iter().any(|name| name == key) && !text.contains('\n')
            })
            .map(|(_, text)| *text)
            .collect();
        subject.follow_directories();
        subject.count_paths();
        subject.effects = subject
            .reading
            .commands
            .iter()
            .enumerate()
            .map(|(at, simple)| effects::of(simple, subject.places(at), &subject))
            .collect();
        subject.tool_effects = subject.of_tool(tools, &strings);
        subject
    }

    /// What a tool that is no shell does.
    fn of_tool(&self, tools: &Tools, strings: &[(&'a str, &'a str)]) -> Vec<Effect> {
        let kind = match self.class {
            Class::Read | Class::Search => Kind::Read,
            Class::Write if tools.is_deleting(self.tool) => Kind::Delete,
            Class::Write => Kind::Write,
            Class::Web => {
                let urls =
                    strings.iter().filter(|(key, text)| *key == "url" || text.contains("://"));
                let mut effects: Vec<Effect> = urls
                    .map(|(_, url)| Effect {
                        host: crate::host::of_url(url),
                        ..Effect::of(Kind::Network)
                    })
                    .collect();
                if effects.is_empty() {
                    effects.push(Effect::of(Kind::Network));
                }
                return effects;
            }
            Class::Mcp | Class::Other => return vec![Effect::of(Kind::Unknown)],
            Class::Shell | Class::Plan | Class::Question | Class::Subagent | Class::Skill => {
                return Vec::new();
            }
        };
        self.paths.iter().map(|path| Effect::on(kind, path)).collect()
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
                    self.start = self.around.resolve(directory, &self.start);
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
        if self.reading == Reading::default() && self.texts.is_empty() {
            self.note("its input holds no command");
        }
        if field(&names.environment).is_some_and(|(_, value)| !is_empty(value)) {
            self.note("it sets environment variables");
        }
    }

    /// Reads the lines of a shell with another language, as far as they are plain.
    fn take_foreign(&mut self, tools: &Tools, strings: &[(&'a str, &'a str)], keys: &[String]) {
        let mut told = false;
        for (key, text) in strings.iter().filter(|(key, _)| keys.iter().any(|name| name == key)) {
            told = true;
            if let Some(line) = tools.plain_line(text) {
                self.texts.push(text);
                let reading = self.with_facts(|facts| shell::read_at(&line, facts));
                self.merge(reading);
            } else {
                self.note(FOREIGN);
                self.take_texts(&[(*key, *text)], keys);
            }
        }
        if !told {
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

    fn with_facts(&self, read: impl FnOnce(&Facts<'_>) -> Reading) -> Reading {
        let text = |names: &Names| {
            let known = !names.iter().any(|name| name.contains(shell::UNKNOWN));
            known.then(|| format!("/{}", names.join("/")))
        };
        let (directory, home) = (text(&self.start), text(&self.around.home));
        read(&Facts { directory: directory.as_deref(), home: home.as_deref() })
    }

    /// The directories a command may run in.
    pub(crate) fn places(&self, command: usize) -> &[Names] {
        self.places.get(command).map_or(self.directories.as_slice(), |places| places.as_slice())
    }

    fn merge(&mut self, reading: Reading) {
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

    fn take_paths(&mut self, tools: &Tools, strings: &[(&'a str, &'a str)]) {
        for (key, text) in strings {
            if tools.arguments.path.iter().any(|name| name == key) {
                self.take_path(text);
            } else if *key == "pattern" && tools.is_globbing(self.tool) {
                let path = self.around.resolve(text, &self.start);
                if !self.around.in_project(&path) {
                    self.paths.push(path);
                }
            } else if self.class == Class::Write && text.contains("*** Begin Patch") {
                self.take_patch(text);
            }
        }
        if self.class == Class::Search && self.paths.is_empty() {
            self.paths.push(self.start.clone());
        }
    }

    fn take_path(&mut self, text: &str) {
        self.paths.push(self.around.resolve(text, &self.start));
    }

    /// The files of a patch in the form `apply_patch` takes.
    fn take_patch(&mut self, patch: &str) {
        const FILES: [&str; 4] = ["Update File:", "Add File:", "Delete File:", "Move to:"];
        const MARKS: [&str; 3] = ["Begin Patch", "End Patch", "End of File"];
        for line in patch.lines() {
            let Some(header) = line.trim().strip_prefix("***") else { continue };
            let header = header.trim();
            if let Some(file) = FILES.iter().find_map(|name| header.strip_prefix(name)) {
                self.take_path(file.trim());
            } else if !MARKS.contains(&header) {
                self.note("its patch has a header that is not known");
            }
        }
    }

    fn count_paths(&mut self) {
        let words = self.reading.commands.iter().flat_map(Simple::words);
        let spelled = words.flat_map(|word| pieces(&word.text)).take(MAX_PATHS + 1).count();
        let long = self
            .reading
            .commands
            .iter()
            .flat_map(Simple::words)
            .any(|word| has_unseen_pieces(&word.text));
        if long || spelled * self.directories.len() > MAX_PATHS || self.paths.len() > MAX_PATHS {
            self.overfull = true;
            self.note("it names more files than can be checked");
        }
    }

    /// Works out the directories of every command.
    fn follow_directories(&mut self) {
        let mut last: Option<(Rc<Vec<String>>, Places)> = None;
        self.directories = vec![self.start.clone()];
        for simple in &self.reading.commands {
            if let Some((texts, names)) = &last
                && Rc::ptr_eq(texts, &simple.directories)
            {
                self.places.push(Rc::clone(names));
                continue;
            }
            let names: Vec<Names> = simple
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

fn class(tools: &Tools, action: &Action) -> Class {
    let foreign = action.server.is_some()
        || action.tool.starts_with("mcp__")
        || action.tool.starts_with("mcp_");
    match action.kind {
        ActionKind::Mcp => Class::Mcp,
        _ if foreign => Class::Mcp,
        ActionKind::Skill => Class::Skill,
        ActionKind::Subagent => Class::Subagent,
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
