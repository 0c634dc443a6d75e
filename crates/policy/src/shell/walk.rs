//! Through the tree, in the order of execution.
//!
//! Lists, pipelines and sequences are loops; only what nests in the text nests here, to a fixed depth. Every branch is
//! walked from the same start and the ends are joined. A loop is walked once, with what it sets forgotten at its start.

mod commands;

use std::borrow::Cow;
use std::rc::Rc;

use tree_sitter::Node;

use super::nodes::{assigned, is_statement, moves};
use super::state::{Function, MAX_VALUES, ShellState, Values};
use super::word::{Choices, DISAGREE, Scanner};
use super::{
    Assignment, CommandInput, HIDDEN, MAX_DEPTH, MAX_TEXT, MAX_TEXTS, ShellFacts, ShellReading,
    Simple, UNKNOWN, hides, tree, unwrap,
};

/// How deep statements nest in one text.
const MAX_NESTING: usize = 48;
/// The most ways one command is looked at, where its variables have several values.
const MAX_WAYS: usize = 64;
/// The most values of a loop's variable.
const MAX_LOOP: usize = 64;

/// Reads texts into one reading.
pub(super) struct ShellReader<'f> {
    facts: &'f ShellFacts<'f>,
    pub(super) reading: ShellReading,
    pub(super) state: ShellState,
    pub(super) steps: Vec<Rc<str>>,
    pub(super) depth: usize,
    /// What commands get at their standard input.
    pub(super) input: CommandInput,
    pub(super) elsewhere: bool,
    /// What the commands of this stage print, as far as it is known.
    pub(super) output: PrintedText,
    /// Whether something was decoded.
    pub(super) decoded: bool,
    /// Whether what is walked may not run at all.
    conditional: usize,
    /// Whether what follows runs only if this succeeds.
    pub(super) chained: bool,
    texts: usize,
}

/// What commands print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PrintedText {
    Text(String),
    Unknown,
}

impl<'f> ShellReader<'f> {
    pub(super) fn new(facts: &'f ShellFacts<'f>) -> Self {
        Self {
            facts,
            reading: ShellReading::default(),
            state: ShellState::new(),
            steps: Vec::new(),
            depth: 0,
            input: CommandInput::Inherited,
            elsewhere: false,
            output: PrintedText::Text(String::new()),
            decoded: false,
            conditional: 0,
            chained: false,
            texts: 0,
        }
    }

    pub(super) fn note(&mut self, reason: &str) {
        self.reading.note(reason);
    }

    /// Reads a text where it stands.
    pub(super) fn text(&mut self, text: &str) {
        self.texts += 1;
        if self.depth > MAX_DEPTH || self.texts > MAX_TEXTS {
            return self.note("it is nested too deep");
        }
        let text = if text.len() > MAX_TEXT {
            self.note("it is longer than 64 KiB");
            text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or_default()
        } else {
            text
        };
        if text.chars().any(hides) {
            self.note(HIDDEN);
        }
        let text = &*joined_lines(text);
        let Some(tree) = tree::parse(text) else {
            return self.note("it takes too many steps to read");
        };
        if let Some(reason) = tree::unaccounted(&tree, text) {
            self.note(reason);
        }
        TreeWalk { text, reader: self, nesting: 0, pending: Vec::new(), dash: false }
            .sequence(tree.root_node());
    }

    /// Reads a text inside the text.
    pub(super) fn nested(&mut self, step: &str, text: &str) {
        self.steps.push(step.into());
        self.depth += 1;
        self.text(text);
        self.depth -= 1;
        self.steps.pop();
    }

    /// Reads a text in a shell of its own, which leaves nothing behind.
    pub(super) fn apart(&mut self, step: &str, text: &str) {
        let state = self.state.clone();
        self.nested(step, text);
        self.state = state;
    }

    /// Lists a command and what it runs.
    pub(super) fn take(&mut self, mut simple: Simple) {
        simple.directories = Rc::clone(&self.state.directories);
        simple.elsewhere |= self.elsewhere;
        if simple.input == CommandInput::Inherited {
            simple.input = self.input.clone();
        }
        unwrap::unwrap(simple, self);
    }

    /// Lists a command as it is.
    pub(super) fn list(&mut self, mut simple: Simple) {
        simple.steps.clone_from(&self.steps);
        self.reading.list(simple);
    }

    /// Goes to a directory.
    pub(super) fn go(&mut self, target: &str) {
        let may_fail = !self.chained;
        if !self.state.go(target, may_fail) {
            self.note("it changes its directory too often");
        }
    }

    pub(super) fn join(&mut self, other: &ShellState) {
        if !self.state.join(other) {
            self.note("it has too many ways to run");
        }
    }

    pub(super) fn define(&mut self, name: &str, body: &str, alias: bool) {
        let maybe = alias || self.conditional > 0;
        let function = Function { body: body.into(), alias, maybe, called: false };
        self.state.define(name, function);
    }

    /// The whole reading. What is defined and never called may still be called from elsewhere.
    pub(super) fn finish(mut self) -> ShellReading {
        let functions = Rc::clone(&self.state.functions);
        for (name, function) in functions.iter().filter(|(_, function)| !function.called) {
            self.apart(&format!("function {name}"), &function.body);
        }
        self.reading
    }
}

/// A walk through one text.
struct TreeWalk<'r, 'f, 't> {
    text: &'t str,
    reader: &'r mut ShellReader<'f>,
    nesting: usize,
    /// Redirections that the grammar has at a list or pipeline, and the shell at its last command.
    pending: Vec<Node<'t>>,
    /// Whether the next command ends in a `-` that the grammar has lost.
    dash: bool,
}

impl<'t> TreeWalk<'_, '_, 't> {
    fn slice(&self, node: Node<'t>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn children(node: Node<'t>) -> Vec<Node<'t>> {
        let mut cursor = node.walk();
        node.children(&mut cursor).filter(|child| child.kind() != "comment").collect()
    }

    /// The statements among a node's children, one after another.
    fn sequence(&mut self, node: Node<'t>) {
        let children = Self::children(node);
        for (at, child) in children.iter().enumerate() {
            if matches!(child.kind(), ";;" | ";&" | ";;&") && node.kind() != "case_item" {
                self.reader.note("a part of it is not shell that is known here");
            }
            if !is_statement(*child) {
                continue;
            }
            if children.get(at + 1).is_some_and(|next| next.kind() == "&") {
                self.inside("&", |walk| walk.apart(*child));
            } else {
                self.statement(*child);
            }
        }
    }

    fn inside(&mut self, step: &str, walk: impl FnOnce(&mut Self)) {
        self.reader.steps.push(step.into());
        walk(self);
        self.reader.steps.pop();
    }

    /// Walks a statement that leaves nothing behind.
    fn apart(&mut self, node: Node<'t>) {
        let state = self.reader.state.clone();
        self.statement(node);
        self.reader.state = state;
    }

    fn statement(&mut self, node: Node<'t>) {
        if self.nesting >= MAX_NESTING {
            return self.reader.note("it is nested too deep");
        }
        self.nesting += 1;
        let chained = std::mem::take(&mut self.reader.chained);
        let passes = matches!(
            node.kind(),
            "list" | "pipeline" | "command" | "redirected_statement" | "negated_command"
        );
        if !passes && !self.pending.is_empty() {
            let pending = std::mem::take(&mut self.pending);
            self.command(node, &pending, Some(node));
            self.nesting -= 1;
            return;
        }
        match node.kind() {
            "list" => self.list(node),
            "pipeline" => self.pipeline(node, None),
            "command" => {
                self.reader.chained = chained;
                let pending = std::mem::take(&mut self.pending);
                self.command(node, &pending, None);
            }
            "redirected_statement" => {
                self.reader.chained = chained;
                self.redirected(node);
            }
            "variable_assignment" | "variable_assignments" => self.assignments(node),
            "declaration_command" | "unset_command" => self.declaration(node),
            "test_command" => self.test(node, &[]),
            "negated_command" => self.inside("!", |walk| walk.sequence(node)),
            "subshell" => {
                let state = self.reader.state.clone();
                self.inside("( )", |walk| walk.sequence(node));
                self.reader.state = state;
            }
            "compound_statement" => {
                if node.child(0).is_some_and(|first| first.kind() == "((") {
                    self.arithmetic(node);
                } else {
                    if !self.slice(node).starts_with(['{', ' ', '\n', '\t'])
                        || !self
                            .slice(node)
                            .trim_start()
                            .get(1..)
                            .is_some_and(|rest| rest.starts_with([' ', '\n', '\t', '\\']))
                    {
                        self.reader.note(DISAGREE);
                    }
                    self.sequence(node);
                }
            }
            "do_group" => self.sequence(node),
            "if_statement" => self.inside("if", |walk| walk.branches(node)),
            "while_statement" => self.inside("while", |walk| walk.repeated(node)),
            "for_statement" => self.inside("for", |walk| walk.each(node)),
            "c_style_for_statement" => self.inside("for", |walk| {
                walk.arithmetic(node);
                walk.repeated(node);
            }),
            "case_statement" => self.inside("case", |walk| walk.cases(node)),
            "function_definition" => self.function(node),
            _ => {
                self.reader.note("a part of it is not shell that is known here");
                self.substitutions(&[node]);
                self.sequence(node);
            }
        }
        self.reader.chained = false;
        self.nesting -= 1;
    }

    /// `a && b || c`: what comes last in the text runs only sometimes.
    fn list(&mut self, node: Node<'t>) {
        let mut parts = Vec::new();
        let mut left = node;
        while left.kind() == "list" {
            let children: Vec<Node<'t>> =
                Self::children(left).into_iter().filter(|child| !child.is_extra()).collect();
            let (Some(first), Some(last)) = (children.first(), children.last()) else { break };
            let operator = children.get(1).map_or("", |node| node.kind());
            if children.len() != 3 {
                self.reader.note("a part of it is not shell that is known here");
            }
            parts.push((operator, *last));
            if first.id() == left.id() {
                break;
            }
            left = *first;
        }
        let pending = std::mem::take(&mut self.pending);
        let follows = parts.last().is_some_and(|(operator, _)| *operator == "&&");
        self.reader.chained = follows;
        self.statement(left);
        let mut exits = vec![self.reader.state.clone()];
        self.reader.conditional += 1;
        let mut rest = parts.iter().rev().peekable();
        while let Some((operator, part)) = rest.next() {
            if *operator != "&&" {
                for exit in std::mem::take(&mut exits) {
                    self.reader.join(&exit);
                }
            }
            self.reader.chained = rest.peek().is_some_and(|(operator, _)| *operator == "&&");
            if rest.peek().is_none() {
                self.pending.clone_from(&pending);
            }
            self.statement(*part);
            exits.push(self.reader.state.clone());
        }
        self.reader.conditional -= 1;
        for exit in exits {
            self.reader.join(&exit);
        }
    }

    /// The stages of a pipeline; `first` is what feeds it if that stands elsewhere.
    fn pipeline(&mut self, node: Node<'t>, first: Option<CommandInput>) {
        let stages: Vec<Node<'t>> =
            Self::children(node).into_iter().filter(|child| is_statement(*child)).collect();
        let outer = self.reader.input.clone();
        let before = self.reader.state.clone();
        if let Some(input) = first {
            self.reader.input = input;
        }
        self.reader.steps.push("pipeline".into());
        let pending = std::mem::take(&mut self.pending);
        for (at, stage) in stages.iter().enumerate() {
            if at + 1 == stages.len() {
                self.pending.clone_from(&pending);
            }
            self.reader.output = PrintedText::Text(String::new());
            self.reader.state = before.clone();
            self.statement(*stage);
            let fed = match &self.reader.output {
                PrintedText::Text(text) => CommandInput::Text(text.as_str().into()),
                PrintedText::Unknown => CommandInput::Pipe,
            };
            self.reader.input = fed;
        }
        self.reader.steps.pop();
        self.reader.output = PrintedText::Unknown;
        self.reader.input = outer;
        // Some shells run the last stage themselves.
        self.reader.join(&before);
    }

    fn branches(&mut self, node: Node<'t>) {
        let mut exits = Vec::new();
        let mut whole = false;
        let mut start = self.reader.state.clone();
        let mut in_body = false;
        self.reader.conditional += 1;
        for child in Self::children(node) {
            match child.kind() {
                "then" => {
                    start = self.reader.state.clone();
                    in_body = true;
                }
                "elif_clause" | "else_clause" => {
                    if in_body {
                        exits.push(self.reader.state.clone());
                    }
                    self.reader.state = start.clone();
                    in_body = true;
                    whole |= child.kind() == "else_clause";
                    for part in Self::children(child) {
                        if part.kind() == "then" {
                            start = self.reader.state.clone();
                        } else if is_statement(part) {
                            self.statement(part);
                        }
                    }
                }
                _ if is_statement(child) => self.statement(child),
                _ => {}
            }
        }
        self.reader.conditional -= 1;
        if !whole {
            exits.push(start);
        }
        for exit in exits {
            self.reader.join(&exit);
        }
    }

    /// A loop: what it sets is not known at its start.
    fn repeated(&mut self, node: Node<'t>) {
        for name in assigned(self.text, node) {
            self.reader.state.forget(&name);
        }
        if moves(self.text, node) {
            self.reader.state.go(&UNKNOWN.to_string(), true);
        }
        let before = self.reader.state.clone();
        self.reader.conditional += 1;
        self.sequence(node);
        self.reader.conditional -= 1;
        self.reader.join(&before);
    }

    /// `for name in words`.
    fn each(&mut self, node: Node<'t>) {
        let children = Self::children(node);
        let mut cursor = node.walk();
        let values: Vec<Node<'t>> = node.children_by_field_name("value", &mut cursor).collect();
        self.substitutions(&values);
        let mut words = Vec::new();
        let mut notes = Vec::new();
        let mut choices = Choices::default();
        {
            let state = self.reader.state.clone();
            let mut scanner = Scanner {
                text: self.text,
                facts: self.reader.facts,
                state: &state,
                choices: &mut choices,
                notes: &mut notes,
            };
            for value in &values {
                scanner.words(*value, &mut words);
            }
        }
        for note in notes {
            self.reader.note(note);
        }
        let name = node.child_by_field_name("variable").map_or("", |node| self.slice(node));
        for name in assigned(self.text, node) {
            self.reader.state.forget(&name);
        }
        if moves(self.text, node) {
            self.reader.state.go(&UNKNOWN.to_string(), true);
        }
        let known = choices.count() == 1 && !values.is_empty();
        let mut taken: Values = words
            .iter()
            .map(|word| (word.is_known() && !word.several).then(|| word.text.as_str().into()))
            .collect();
        taken.dedup();
        if taken.len() > MAX_LOOP {
            self.reader.note("a loop has too many values");
            taken.truncate(MAX_LOOP);
            taken.push(None);
        }
        if !known || taken.is_empty() {
            taken = vec![None];
        }
        let before = self.reader.state.clone();
        self.reader.state.set(name, taken);
        self.reader.conditional += 1;
        for child in children.into_iter().filter(|child| child.kind() == "do_group") {
            self.statement(child);
        }
        self.reader.conditional -= 1;
        self.reader.state.forget(name);
        self.reader.join(&before);
    }

    fn cases(&mut self, node: Node<'t>) {
        let before = self.reader.state.clone();
        let mut exits = Vec::new();
        if let Some(value) = node.child_by_field_name("value") {
            self.substitutions(&[value]);
        }
        self.reader.conditional += 1;
        for item in Self::children(node).into_iter().filter(|item| item.kind() == "case_item") {
            let mut cursor = item.walk();
            let values: Vec<Node<'t>> = item.children_by_field_name("value", &mut cursor).collect();
            self.substitutions(&values);
            // One case may fall through into the next.
            self.sequence(item);
            exits.push(self.reader.state.clone());
            self.reader.join(&before);
        }
        self.reader.conditional -= 1;
        for exit in exits {
            self.reader.join(&exit);
        }
    }

    fn function(&mut self, node: Node<'t>) {
        let name = node.child_by_field_name("name").map_or("", |node| self.slice(node));
        let body = node.child_by_field_name("body");
        let text = body.and_then(|body| self.text.get(body.start_byte()..node.end_byte()));
        if name.contains(['$', '\'', '"', '\\', '`']) {
            self.reader.note(DISAGREE);
        }
        self.reader.define(name, text.unwrap_or_default(), false);
    }
}

impl ShellReader<'_> {
    /// Remembers what a variable is set to.
    pub(super) fn set(&mut self, assignment: &Assignment) {
        let value = &assignment.value;
        if value.text.contains("$(") || value.text.contains('`') {
            // Arithmetic and some tests would run it.
            self.note("a value holds a command");
        }
        let known = value.is_known() && !value.several;
        let values: Values = vec![known.then(|| value.text.as_str().into())];
        debug_assert!(values.len() <= MAX_VALUES);
        self.state.set(&assignment.name, values);
    }
}

/// Joins lines that are continued, where nothing in the text could keep them apart.
fn joined_lines(text: &str) -> Cow<'_, str> {
    let keeps = text.contains(['\'', '#']) || text.contains("<<") || text.contains("\\\\\n");
    if keeps || !text.contains("\\\n") {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\\\n", ""))
}
