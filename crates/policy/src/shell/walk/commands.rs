//! Single commands: their words in every way, what they are redirected from and to, and their substitutions.

use tree_sitter::Node;

use super::super::nodes::{assigned, assignment, is_literal, is_statement, redirect};
use super::super::state::{Function, ShellState};
use super::super::word::{Choices, DISAGREE, Scanner};
use super::super::{CommandInput, Direction, Simple, UNKNOWN, Word, tree};
use super::{MAX_WAYS, PrintedText, TreeWalk};

/// What a here-document brings to its command.
struct HereDocument<'t> {
    input: Word,
    arguments: Vec<Node<'t>>,
    redirects: Vec<Node<'t>>,
    pipe: Option<Node<'t>>,
    then: Option<Node<'t>>,
}

impl<'t> TreeWalk<'_, '_, 't> {
    pub(super) fn redirected(&mut self, node: Node<'t>) {
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
                let own: Vec<usize> = Self::children(node).iter().map(Node::id).collect();
                redirects.retain(|redirect| !own.contains(&redirect.id()));
                self.command(node, &redirects, None);
            }
            Some(body) => self.command(node, &redirects, Some(body)),
        }
    }

    /// A command, or, with a body, what a whole statement is redirected from and to.
    pub(super) fn command(
        &mut self,
        node: Node<'t>,
        redirects: &[Node<'t>],
        body: Option<Node<'t>>,
    ) {
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
        let mut ends: Option<ShellState> = None;
        let mut last;
        loop {
            self.reader.state = before.clone();
            let mut simple = self.build(&parts, &mut choices);
            if dash {
                simple.argv.push(Word::literal("-"));
            }
            if let Some(document) = &document
                && simple.input == CommandInput::Inherited
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
            if last.input != CommandInput::Inherited {
                self.reader.input = last.input.clone();
            } else if last.redirects.iter().any(|file| file.direction == Direction::Read) {
                self.reader.input = CommandInput::Pipe;
            }
            self.statement(body);
            self.reader.input = outer;
        }
        if let Some(document) = document {
            if let Some(pipe) = document.pipe {
                let fed = match &self.reader.output {
                    PrintedText::Text(text) => CommandInput::Text(text.as_str().into()),
                    PrintedText::Unknown => CommandInput::Pipe,
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
    pub(super) fn build(&mut self, parts: &[Node<'t>], choices: &mut Choices) -> Simple {
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
                    if let Some(value) = part.child(part.child_count().saturating_sub(1)) {
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

    fn document(&mut self, node: Node<'t>) -> HereDocument<'t> {
        let mut document = HereDocument {
            input: Word::default(),
            arguments: Vec::new(),
            redirects: Vec::new(),
            pipe: None,
            then: None,
        };
        let (mut start, mut end, mut body, mut tabs) = ("", "", None, false);
        let children = Self::children(node);
        let first_line = self
            .text
            .get(node.start_byte()..)
            .and_then(|rest| rest.find('\n'))
            .map_or(self.text.len(), |at| node.start_byte() + at + 1);
        let mut misread = false;
        for child in &children {
            let body_or_end = matches!(child.kind(), "heredoc_body" | "heredoc_end" | "\n");
            if !body_or_end && child.end_byte() >= first_line {
                // The grammar takes some lines of the document for words.
                misread = true;
                continue;
            }
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
        if misread && !quoted {
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
                let lines = document.input.text.split_inclusive('\n');
                document.input.text = lines.map(|line| line.trim_start_matches('\t')).collect();
            }
            for note in notes {
                self.reader.note(note);
            }
        }
        document
    }

    /// Walks every substitution in some words. Each is a shell of its own.
    pub(super) fn substitutions(&mut self, nodes: &[Node<'t>]) {
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

    pub(super) fn assignments(&mut self, node: Node<'t>) {
        let parts =
            if node.kind() == "variable_assignment" { vec![node] } else { Self::children(node) };
        self.substitutions(&parts);
        self.each_way(&parts);
    }

    /// `export`, `declare`, `unset` and their kin are commands with words.
    pub(super) fn declaration(&mut self, node: Node<'t>) {
        let children = Self::children(node);
        self.substitutions(&children);
        let before = self.reader.state.clone();
        let mut choices = Choices::default();
        let mut end: Option<ShellState> = None;
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

    pub(super) fn each_way(&mut self, parts: &[Node<'t>]) {
        let before = self.reader.state.clone();
        let mut choices = Choices::default();
        let mut end: Option<ShellState> = None;
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
    pub(super) fn test(&mut self, node: Node<'t>, redirects: &[Node<'t>]) {
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

    pub(super) fn arithmetic(&mut self, node: Node<'t>) {
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
}

fn known_input(word: &Word) -> CommandInput {
    if word.is_known() { CommandInput::Text(word.text.as_str().into()) } else { CommandInput::Pipe }
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
