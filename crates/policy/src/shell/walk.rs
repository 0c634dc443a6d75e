//! Through the tree, in the order of execution.
//!
//! Lists, pipelines and sequences are loops; only what nests in the text nests here, to a fixed depth. Every branch is
//! walked from the same start and the ends are joined. A loop is walked once, with what it sets forgotten at its start.

use std::borrow::Cow;
use std::rc::Rc;

use tree_sitter::Node;

use super::state::{Function, MAX_VALUES, State, Values};
use super::word::{Choices, DISAGREE, Scanner};
use super::{
    Assignment, Direction, Facts, HIDDEN, Input, MAX_DEPTH, MAX_TEXT, MAX_TEXTS, Reading, Redirect,
    Simple, UNKNOWN, Word, hides, tree, unwrap,
};

/// How deep statements nest in one text.
const MAX_NESTING: usize = 48;
/// The most ways one command is looked at, where its variables have several values.
const MAX_WAYS: usize = 64;
/// The most values of a loop's variable.
const MAX_LOOP: usize = 64;

/// Reads texts into one reading.
pub(super) struct Reader<'f> {
    facts: &'f Facts<'f>,
    pub(super) reading: Reading,
    pub(super) state: State,
    pub(super) steps: Vec<Rc<str>>,
    pub(super) depth: usize,
    /// What commands get at their standard input.
    pub(super) input: Input,
    pub(super) elsewhere: bool,
    /// What the commands of this stage print, as far as it is known.
    pub(super) output: Output,
    /// Whether what is walked may not run at all.
    conditional: usize,
    /// Whether what follows runs only if this succeeds.
    pub(super) chained: bool,
    texts: usize,
}

/// What commands print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Output {
    Text(String),
    Unknown,
}

impl<'f> Reader<'f> {
    pub(super) fn new(facts: &'f Facts<'f>) -> Self {
        Self {
            facts,
            reading: Reading::default(),
            state: State::new(),
            steps: Vec::new(),
            depth: 0,
            input: Input::Inherited,
            elsewhere: false,
            output: Output::Text(String::new()),
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
        Walk { text, reader: self, nesting: 0, pending: Vec::new(), dash: false }
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
        if simple.input == Input::Inherited {
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

    pub(super) fn join(&mut self, other: &State) {
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
    pub(super) fn finish(mut self) -> Reading {
        let functions = Rc::clone(&self.state.functions);
        for (name, function) in functions.iter().filter(|(_, function)| !function.called) {
            self.apart(&format!("function {name}"), &function.body);
        }
        self.reading
    }
}

/// A walk through one text.
struct Walk<'r, 'f, 't> {
    text: &'t str,
    reader: &'r mut Reader<'f>,
    nesting: usize,
    /// Redirections that the grammar has at a list or pipeline, and the shell at its last command.
    pending: Vec<Node<'t>>,
    /// Whether the next command ends in a `-` that the grammar has lost.
    dash: bool,
}

/// What a here-document brings to its command.
struct Document<'t> {
    input: Word,
    arguments: Vec<Node<'t>>,
    redirects: Vec<Node<'t>>,
    pipe: Option<Node<'t>>,
    then: Option<Node<'t>>,
}

impl<'t> Walk<'_, '_, 't> {
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
    fn pipeline(&mut self, node: Node<'t>, first: Option<Input>) {
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
            self.reader.output = Output::Text(String::new());
            self.reader.state = before.clone();
            self.statement(*stage);
            let fed = match &self.reader.output {
                Output::Text(text) => Input::Text(text.as_str().into()),
                Output::Unknown => Input::Pipe,
            };
            self.reader.input = fed;
        }
        self.reader.steps.pop();
        self.reader.output = Output::Unknown;
        self.reader.input = outer;
        // Some shells run the last stage themselves.
        self.reader.join(&before);
    }

    fn redirected(&mut self, node: Node<'t>) {
        let body = node.child_by_field_name("body");
        let mut redirects: Vec<Node<'t>> = Self::children(node)
            .into_iter()
            .filter(|child| Some(child.id()) != body.map(|body| body.id()))
            .collect();
        if let (Some(body), Some(first)) = (body, redirects.first()) {
            let gap = self.text.get(body.end_byte()..first.start_byte()).unwrap_or_default();
            if tree::is_dash(node, gap) {
                self.dash = true;
                if body.kind() != "command" {
                    self.reader.note(DISAGREE);
                }
            }
        }
        redirects.append(&mut self.pending);
        match body {
            Some(body)
                if matches!(
                    body.kind(),
                    "list" | "pipeline" | "negated_command" | "redirected_statement"
                ) =>
            {
                self.pending = redirects;
                self.statement(body);
            }
            Some(body) if body.kind() == "command" => self.command(body, &redirects, None),
            Some(body) if body.kind() == "test_command" => self.test(body, &redirects),
            None => {
                let own: Vec<usize> = Self::children(node).iter().map(|child| child.id()).collect();
                redirects.retain(|redirect| !own.contains(&redirect.id()));
                self.command(node, &redirects, None);
            }
            Some(body) => self.command(node, &redirects, Some(body)),
        }
    }

    /// A command, or, with a body, what a whole statement is redirected from and to.
    fn command(&mut self, node: Node<'t>, redirects: &[Node<'t>], body: Option<Node<'t>>) {
        let mut parts: Vec<Node<'t>> =
            if body.is_some() { Vec::new() } else { Self::children(node) };
        parts.extend(redirects);
        let mut documents = Vec::new();
        parts.retain(|part| {
            let is = part.kind() == "heredoc_redirect";
            if is {
                documents.push(*part);
            }
            !is
        });
        if documents.len() > 1 {
            self.reader.note("it has several here-documents");
        }
        let chained = std::mem::take(&mut self.reader.chained);
        self.substitutions(&parts);
        let mut document = None;
        for node in documents {
            document = Some(self.document(node));
        }
        if let Some(document) = &document {
            parts.extend(&document.arguments);
            parts.extend(&document.redirects);
            self.substitutions(&document.arguments);
        }
        self.reader.chained = chained;
        let before = self.reader.state.clone();
        let dash = std::mem::take(&mut self.dash);
        let mut choices = Choices::default();
        let mut ways = 0_usize;
        let mut ends: Option<State> = None;
        let mut last;
        loop {
            self.reader.state = before.clone();
            let mut simple = self.build(&parts, &mut choices);
            if dash {
                simple.argv.push(Word::literal("-"));
            }
            if let Some(document) = &document
                && simple.input == Input::Inherited
            {
                simple.input = known_input(&document.input);
            }
            last = simple.clone();
            if body.is_none() {
                self.reader.take(simple);
            } else if !simple.redirects.is_empty() {
                if !simple.argv.is_empty() {
                    self.reader.note(DISAGREE);
                }
                self.reader.take(simple);
            }
            if let Some(end) = ends.take() {
                self.reader.join(&end);
            }
            ends = Some(self.reader.state.clone());
            ways += 1;
            if choices.count() > MAX_WAYS || ways > MAX_WAYS {
                self.reader.note("it has too many ways to run");
                break;
            }
            if !choices.advance() {
                break;
            }
        }
        for part in parts.iter().filter(|part| part.kind() == "subshell") {
            // Not valid, but what it would run still counts.
            self.statement(*part);
        }
        if let Some(body) = body {
            let outer = self.reader.input.clone();
            if last.input != Input::Inherited {
                self.reader.input = last.input.clone();
            } else if last.redirects.iter().any(|file| file.direction == Direction::Read) {
                self.reader.input = Input::Pipe;
            }
            self.statement(body);
            self.reader.input = outer;
        }
        if let Some(document) = document {
            if let Some(pipe) = document.pipe {
                let fed = match &self.reader.output {
                    Output::Text(text) => Input::Text(text.as_str().into()),
                    Output::Unknown => Input::Pipe,
                };
                self.pipeline(pipe, Some(fed));
            }
            if let Some(then) = document.then {
                self.reader.conditional += 1;
                let before = self.reader.state.clone();
                self.statement(then);
                self.reader.join(&before);
                self.reader.conditional -= 1;
            }
        }
    }

    /// Reads the words of a command in one way.
    fn build(&mut self, parts: &[Node<'t>], choices: &mut Choices) -> Simple {
        let mut simple = Simple::default();
        let mut notes = Vec::new();
        let state = self.reader.state.clone();
        let mut scanner = Scanner {
            text: self.text,
            facts: self.reader.facts,
            state: &state,
            choices,
            notes: &mut notes,
        };
        let mut after_both = false;
        let mut rest = parts.iter().peekable();
        while let Some(part) = rest.next() {
            // What stands without a gap is one word, even where the grammar has several.
            let mut word = vec![*part];
            while let Some(next) = rest.next_if(|next| {
                is_literal(*part)
                    && is_literal(**next)
                    && word.last().is_some_and(|last| last.end_byte() == next.start_byte())
            }) {
                word.push(*next);
            }
            if word.len() > 1 {
                scanner.joined(&word, &mut simple.argv);
                continue;
            }
            match part.kind() {
                "variable_assignment" => {
                    if let Some(assignment) = assignment(&mut scanner, *part) {
                        simple.assignments.push(assignment);
                    }
                }
                "command_name" => scanner.words(*part, &mut simple.argv),
                "file_redirect" => {
                    after_both |= redirect(&mut scanner, *part, &mut simple);
                }
                "herestring_redirect" => {
                    if let Some(value) = part.child(part.child_count().saturating_sub(1) as u32) {
                        simple.input = known_input(&scanner.value(value));
                    }
                }
                "=~" | "==" | "$" => simple.argv.push(Word::literal(part.kind())),
                "subshell" | "ERROR" => scanner.notes.push(DISAGREE),
                _ if part.is_named() => {
                    if after_both {
                        scanner.notes.push("words follow `&>`, which shells read in two ways");
                    }
                    scanner.words(*part, &mut simple.argv);
                }
                _ => scanner.notes.push(DISAGREE),
            }
        }
        for note in notes {
            self.reader.note(note);
        }
        simple
    }

    fn document(&mut self, node: Node<'t>) -> Document<'t> {
        let mut document = Document {
            input: Word::default(),
            arguments: Vec::new(),
            redirects: Vec::new(),
            pipe: None,
            then: None,
        };
        let (mut start, mut end, mut body, mut tabs) = ("", "", None, false);
        let children = Self::children(node);
        for child in &children {
            match child.kind() {
                "<<" | "&&" | "||" | "\n" | "file_descriptor" => {}
                "<<-" => tabs = true,
                "heredoc_start" => start = self.slice(*child),
                "heredoc_end" => end = self.slice(*child),
                "heredoc_body" => body = Some(*child),
                "pipeline" => document.pipe = Some(*child),
                "file_redirect" | "herestring_redirect" => document.redirects.push(*child),
                _ if is_statement(*child) => document.then = Some(*child),
                _ if child.is_named() && child.kind() != "ERROR" => document.arguments.push(*child),
                _ => self.reader.note(DISAGREE),
            }
        }
        let quoted = start.contains(['\'', '"', '\\']);
        let mark: String = start.chars().filter(|c| !"'\"\\".contains(*c)).collect();
        let ends_line = |at: usize| {
            self.text.get(at..).is_some_and(|rest| rest.is_empty() || rest.starts_with('\n'))
        };
        let first_line = self
            .text
            .get(node.start_byte()..)
            .and_then(|rest| rest.find('\n'))
            .map_or(self.text.len(), |at| node.start_byte() + at + 1);
        // Where the lines of the document are is plain: from the next line to the first that is the mark.
        let (text, stop) =
            lines_until(self.text.get(first_line..).unwrap_or_default(), &mark, tabs);
        let agreed = end.trim_start_matches('\t') == mark
            && !mark.is_empty()
            && stop.is_some_and(|stop| first_line + stop == node.end_byte())
            && ends_line(node.end_byte());
        if !agreed {
            self.reader.note("a here-document does not end where it seems to");
        }
        if quoted {
            document.input = Word { text, glob: false, several: false };
        } else if let Some(body) = body {
            self.substitutions(&[body]);
            let state = self.reader.state.clone();
            let mut notes = Vec::new();
            let mut choices = Choices::default();
            document.input = Scanner {
                text: self.text,
                facts: self.reader.facts,
                state: &state,
                choices: &mut choices,
                notes: &mut notes,
            }
            .document(body);
            if choices.count() > 1 {
                document.input = Word::literal(&UNKNOWN.to_string());
            }
            if tabs {
                document.input.text = document
                    .input
                    .text
                    .lines()
                    .map(|line| format!("{}\n", line.trim_start_matches('\t')))
                    .collect();
            }
            for note in notes {
                self.reader.note(note);
            }
        }
        document
    }

    /// Walks every substitution in some words. Each is a shell of its own.
    fn substitutions(&mut self, nodes: &[Node<'t>]) {
        let mut waiting: Vec<Node<'t>> = nodes.iter().rev().copied().collect();
        while let Some(node) = waiting.pop() {
            let step = match node.kind() {
                "command_substitution" => "$( )",
                "process_substitution" => "<( )",
                "heredoc_redirect" | "raw_string" | "ansi_c_string" | "comment" => continue,
                _ => {
                    let mut children = Self::children(node);
                    children.reverse();
                    waiting.extend(children);
                    continue;
                }
            };
            let state = self.reader.state.clone();
            let (input, output) = (self.reader.input.clone(), self.reader.output.clone());
            let inside = self.slice(node).trim_start();
            if let Some(inside) = inside.strip_prefix('`').and_then(|text| text.strip_suffix('`')) {
                let text = inside.replace("\\`", "`").replace("\\\\", "\\").replace("\\$", "$");
                self.reader.nested(step, &text);
            } else {
                self.inside(step, |walk| {
                    for child in Self::children(node) {
                        if child.kind() == "file_redirect" {
                            let simple = walk.build(&[child], &mut Choices::default());
                            walk.reader.take(simple);
                        }
                    }
                    walk.sequence(node);
                });
            }
            self.reader.state = state;
            self.reader.input = input;
            self.reader.output = output;
        }
    }

    fn assignments(&mut self, node: Node<'t>) {
        let parts =
            if node.kind() == "variable_assignment" { vec![node] } else { Self::children(node) };
        self.substitutions(&parts);
        self.each_way(&parts);
    }

    /// `export`, `declare`, `unset` and their kin are commands with words.
    fn declaration(&mut self, node: Node<'t>) {
        let children = Self::children(node);
        self.substitutions(&children);
        let before = self.reader.state.clone();
        let mut choices = Choices::default();
        let mut end: Option<State> = None;
        let mut ways = 0;
        loop {
            self.reader.state = before.clone();
            let mut notes = Vec::new();
            let mut simple = Simple::default();
            let state = self.reader.state.clone();
            let mut scanner = Scanner {
                text: self.text,
                facts: self.reader.facts,
                state: &state,
                choices: &mut choices,
                notes: &mut notes,
            };
            let mut set = Vec::new();
            for child in &children {
                match child.kind() {
                    "variable_assignment" => {
                        if let Some(assignment) = assignment(&mut scanner, *child) {
                            let text = format!("{}={}", assignment.name, assignment.value.text);
                            simple.argv.push(Word { text, ..assignment.value.clone() });
                            set.push(assignment);
                        }
                    }
                    _ if child.is_named() => scanner.words(*child, &mut simple.argv),
                    kind => simple.argv.push(Word::literal(kind)),
                }
            }
            for note in notes {
                self.reader.note(note);
            }
            let unset = node.kind() == "unset_command";
            let names: Vec<String> = simple
                .arguments()
                .iter()
                .filter(|word| unset || !word.text.contains('='))
                .map(|word| word.text.clone())
                .collect();
            let unknown_name = simple
                .arguments()
                .iter()
                .any(|word| word.text.split('=').next().is_some_and(|name| name.contains(UNKNOWN)));
            self.reader.take(simple);
            if unknown_name {
                self.reader.state.forget_all();
            }
            if unset {
                for name in names {
                    self.reader.state.forget(&name);
                    if let Some(function) = self.reader.state.functions.get(&name).cloned() {
                        self.reader.state.define(&name, Function { maybe: true, ..function });
                    }
                }
            }
            for assignment in set {
                self.reader.set(&assignment);
            }
            if let Some(end) = end.take() {
                self.reader.join(&end);
            }
            end = Some(self.reader.state.clone());
            ways += 1;
            if choices.count() > MAX_WAYS || ways > MAX_WAYS {
                return self.reader.note("it has too many ways to run");
            }
            if !choices.advance() {
                return;
            }
        }
    }

    fn each_way(&mut self, parts: &[Node<'t>]) {
        let before = self.reader.state.clone();
        let mut choices = Choices::default();
        let mut end: Option<State> = None;
        let mut ways = 0;
        loop {
            self.reader.state = before.clone();
            let simple = self.build(parts, &mut choices);
            self.reader.take(simple);
            if let Some(end) = end.take() {
                self.reader.join(&end);
            }
            end = Some(self.reader.state.clone());
            ways += 1;
            if choices.count() > MAX_WAYS || ways > MAX_WAYS {
                return self.reader.note("it has too many ways to run");
            }
            if !choices.advance() {
                return;
            }
        }
    }

    /// `[ … ]` is a program like any other; `[[ … ]]` runs nothing but its substitutions.
    fn test(&mut self, node: Node<'t>, redirects: &[Node<'t>]) {
        let mut parts = Vec::new();
        let mut waiting = vec![node];
        while let Some(node) = waiting.pop() {
            let compound = matches!(
                node.kind(),
                "test_command"
                    | "unary_expression"
                    | "binary_expression"
                    | "ternary_expression"
                    | "postfix_expression"
                    | "parenthesized_expression"
            );
            if compound {
                let mut children = Self::children(node);
                children.reverse();
                waiting.extend(children);
            } else {
                parts.push(node);
            }
        }
        parts.extend(redirects);
        self.substitutions(&parts);
        let double = node.child(0).is_some_and(|first| first.kind() == "[[");
        let mut choices = Choices::default();
        let mut notes = Vec::new();
        let state = self.reader.state.clone();
        let mut simple = Simple::default();
        let mut scanner = Scanner {
            text: self.text,
            facts: self.reader.facts,
            state: &state,
            choices: &mut choices,
            notes: &mut notes,
        };
        for part in parts {
            match part.kind() {
                "file_redirect" => drop(redirect(&mut scanner, part, &mut simple)),
                "regex" | "extglob_pattern" | "test_operator" => {
                    simple.argv.push(Word::literal(
                        scanner.text.get(part.byte_range()).unwrap_or_default(),
                    ));
                }
                "redirected_statement" | "heredoc_redirect" | "herestring_redirect" | "ERROR" => {
                    scanner.notes.push(DISAGREE);
                }
                _ if part.is_named() => {
                    if double {
                        let value = scanner.value(part);
                        simple.argv.push(value);
                    } else {
                        scanner.words(part, &mut simple.argv);
                    }
                }
                kind => simple.argv.push(Word::literal(kind)),
            }
        }
        if choices.count() > 1 {
            notes.push("it has too many ways to run");
        }
        for note in notes {
            self.reader.note(note);
        }
        self.reader.take(simple);
    }

    fn arithmetic(&mut self, node: Node<'t>) {
        let children: Vec<Node<'t>> =
            Self::children(node).into_iter().filter(|child| child.kind() != "do_group").collect();
        self.substitutions(&children);
        for name in assigned(self.text, node) {
            self.reader.state.forget(&name);
        }
        // A value that holds a substitution is run by arithmetic that mentions it.
        if self.slice(node).contains(['[', '`']) {
            self.reader.note("arithmetic can run what a value holds");
        }
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

impl Reader<'_> {
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

fn known_input(word: &Word) -> Input {
    if word.is_known() { Input::Text(word.text.as_str().into()) } else { Input::Pipe }
}

/// The lines of a here-document up to its mark, and where the mark ends.
fn lines_until(text: &str, mark: &str, tabs: bool) -> (String, Option<usize>) {
    let mut document = String::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let plain = line.strip_suffix('\n').unwrap_or(line);
        let bare = if tabs { plain.trim_start_matches('\t') } else { plain };
        if bare == mark {
            return (document, Some(at + plain.len()));
        }
        document.push_str(bare);
        document.push('\n');
        at += line.len();
    }
    (document, None)
}

/// Reads an assignment. An array, an element or an addition is not known.
fn assignment<'t>(scanner: &mut Scanner<'_, 't>, node: Node<'t>) -> Option<Assignment> {
    let name_node = node.child_by_field_name("name")?;
    let name = scanner.text.get(name_node.byte_range())?;
    let name = name.split('[').next().unwrap_or(name).to_owned();
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        // No name of a variable, so that the shell takes it for a program.
        scanner.notes.push(DISAGREE);
    }
    let operator = node.child(1).map_or("", |node| node.kind());
    let value_node = node.child_by_field_name("value");
    let whole = name_node.kind() == "variable_name" && operator == "=";
    let value = match value_node {
        Some(value) if value.kind() == "array" => {
            Word { text: UNKNOWN.to_string(), glob: false, several: true }
        }
        Some(value) => scanner.value(value),
        None => Word::default(),
    };
    let value = if whole {
        value
    } else if operator == "+=" && name_node.kind() == "variable_name" {
        match scanner.state.get(&name).map(Vec::as_slice) {
            Some([Some(before)]) => Word::literal(&format!("{before}{}", value.text)),
            _ => Word { text: format!("{UNKNOWN}{}", value.text), glob: false, several: false },
        }
    } else {
        Word { text: UNKNOWN.to_string(), glob: false, several: true }
    };
    Some(Assignment { name, value })
}

/// Reads a redirection; whether it is `&>`, behind which shells disagree.
fn redirect<'t>(scanner: &mut Scanner<'_, 't>, node: Node<'t>, simple: &mut Simple) -> bool {
    let mut operator = "";
    let mut targets = Vec::new();
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        match child.kind() {
            "file_descriptor" | "comment" => {}
            kind @ ("<" | ">" | ">>" | "&>" | "&>>" | "<&" | ">&" | ">|" | "<&-" | ">&-") => {
                operator = kind
            }
            _ => targets.push(child),
        }
    }
    let before = scanner.text.get(..node.start_byte()).and_then(|text| text.chars().next_back());
    if before == Some('}') {
        scanner.notes.push("a redirection sets a variable");
    }
    let mut words = Vec::new();
    let mut targets = targets.into_iter();
    if !matches!(operator, "<&-" | ">&-")
        && let Some(target) = targets.next()
    {
        scanner.words(target, &mut words);
        if words.len() != 1 {
            scanner.notes.push("a redirection has not one target");
        }
    }
    let both = operator.starts_with("&>");
    let before = simple.argv.len();
    for more in targets {
        scanner.words(more, &mut simple.argv);
    }
    if both && simple.argv.len() > before {
        scanner.notes.push("words follow `&>`, which shells read in two ways");
    }
    let copies = matches!(operator, "<&" | ">&");
    for target in words {
        if copies {
            let descriptor = target.text.strip_suffix('-').unwrap_or(&target.text);
            if !descriptor.is_empty() && descriptor.chars().all(|c| c.is_ascii_digit()) {
                continue;
            }
            // Shells disagree on what this means, and bash expands the word twice.
            scanner.notes.push("a redirection copies something that is not a descriptor");
        }
        if target.text.starts_with("/dev/tcp/") || target.text.starts_with("/dev/udp/") {
            scanner.notes.push("a redirection opens a network connection");
        }
        let direction =
            if operator.starts_with('<') && !copies { Direction::Read } else { Direction::Write };
        simple.redirects.push(Redirect { direction, target });
    }
    both
}

/// Whether a node is a word of a command.
fn is_literal(node: Node<'_>) -> bool {
    (node.is_named()
        && !is_statement(node)
        && !matches!(node.kind(), "file_redirect" | "herestring_redirect" | "heredoc_redirect"))
        || node.kind() == "$"
}

fn is_statement(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "list"
            | "pipeline"
            | "command"
            | "redirected_statement"
            | "variable_assignment"
            | "variable_assignments"
            | "declaration_command"
            | "unset_command"
            | "test_command"
            | "negated_command"
            | "subshell"
            | "compound_statement"
            | "do_group"
            | "if_statement"
            | "while_statement"
            | "for_statement"
            | "c_style_for_statement"
            | "case_statement"
            | "function_definition"
            | "ERROR"
    )
}

/// The variables set anywhere below a node.
fn assigned(text: &str, node: Node<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let mut waiting = vec![node];
    while let Some(node) = waiting.pop() {
        let slice = |node: Node<'_>| text.get(node.byte_range()).unwrap_or_default().to_owned();
        match node.kind() {
            "variable_assignment" | "for_statement" => {
                let name = node
                    .child_by_field_name("name")
                    .or_else(|| node.child_by_field_name("variable"));
                names.extend(name.map(slice));
            }
            "command" => {
                let program = node.child_by_field_name("name").map(slice).unwrap_or_default();
                if matches!(
                    program.as_str(),
                    "read" | "mapfile" | "readarray" | "printf" | "let" | "getopts"
                ) {
                    let mut cursor = node.walk();
                    names.extend(node.children_by_field_name("argument", &mut cursor).map(slice));
                }
            }
            // Arithmetic sets what it names.
            "variable_name" => names.push(slice(node)),
            _ => {}
        }
        let mut cursor = node.walk();
        waiting.extend(node.children(&mut cursor).filter(|child| {
            // A variable that is only used is no variable that is set.
            !matches!(child.kind(), "simple_expansion" | "expansion")
        }));
    }
    names
}

/// Whether something below a node changes the directory.
fn moves(text: &str, node: Node<'_>) -> bool {
    let mut waiting = vec![node];
    while let Some(node) = waiting.pop() {
        if node.kind() == "command_name" {
            let name = text.get(node.byte_range()).unwrap_or_default();
            if name.contains("cd")
                || name.contains("pushd")
                || name.contains("popd")
                || name.contains('$')
            {
                return true;
            }
        }
        let mut cursor = node.walk();
        waiting.extend(node.children(&mut cursor));
    }
    false
}
