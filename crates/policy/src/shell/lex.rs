//! Characters to words to simple commands.
//!
//! Where a character could mean more than this file knows, the reading is noted as opaque and lexing goes on with the
//! reading most likely to show a command.

use super::{Assignment, Direction, Reading, Redirect, Simple, Word};

/// Words that are grammar where a command may start. They are dropped, so that the command behind them shows.
pub(super) const RESERVED: [&str; 22] = [
    "!", "{", "}", "[[", "]]", "if", "then", "else", "elif", "fi", "for", "foreach", "while",
    "until", "do", "done", "case", "esac", "select", "function", "coproc", "repeat",
];

/// Reads a text into a reading.
pub(super) fn run(text: &str, depth: usize, reading: &mut Reading) {
    let mut lexer = Lexer {
        rest: text,
        depth,
        reading,
        word: None,
        command: Simple::default(),
        redirect: None,
        after_both: false,
    };
    while let Some(c) = lexer.bump() {
        lexer.step(c);
    }
    lexer.end_command();
}

struct Lexer<'t, 'r> {
    rest: &'t str,
    depth: usize,
    reading: &'r mut Reading,
    word: Option<Draft>,
    command: Simple,
    redirect: Option<Operator>,
    /// Whether `&>` was seen in this command: to some shells that is `&` and then `>`, another command.
    after_both: bool,
}

/// A word that is being read.
#[derive(Default)]
struct Draft {
    text: String,
    glob: bool,
    quoted: bool,
    /// Where the name of an assignment ends, if the word began as one.
    name_end: Option<usize>,
}

#[derive(Clone, Copy)]
enum Operator {
    File(Direction),
    /// `>&` and `<&`: a descriptor's copy if digits follow.
    Copy,
}

impl<'t> Lexer<'t, '_> {
    fn bump(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next();
        self.rest = chars.as_str();
        c
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn eat(&mut self, c: char) -> bool {
        let eaten = self.rest.strip_prefix(c);
        self.rest = eaten.unwrap_or(self.rest);
        eaten.is_some()
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().text.push(c);
    }

    fn step(&mut self, c: char) {
        match c {
            ' ' | '\t' => self.end_word(),
            '\n' => self.end_command(),
            ';' => {
                if self.eat(';') {
                    self.reading.note("it has a case statement");
                }
                self.end_command();
            }
            '|' => {
                let _ = self.eat('|') || self.eat('&');
                self.end_command();
            }
            '&' if self.peek() == Some('>') => {
                self.end_word();
                self.bump();
                self.eat('>');
                self.begin_redirect(Operator::File(Direction::Write));
                self.after_both = true;
            }
            '&' => {
                self.eat('&');
                self.end_command();
            }
            '<' | '>' => self.redirection(c),
            '#' if self.word.is_none() => {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.rest = self.rest.get(end..).unwrap_or_default();
            }
            '(' | ')' => {
                self.reading.note("it has a group, a function or a pattern in parentheses");
                self.end_command();
            }
            '\\' => self.backslash(),
            '\'' => self.single_quotes(),
            '"' => self.double_quotes(),
            '$' => self.dollar(&[';', '|', '&']),
            '`' => self.backquotes(),
            '{' => self.brace(),
            '*' | '?' | '[' => {
                self.push(c);
                self.word.get_or_insert_default().glob = true;
            }
            '!' => self.bang(&['=']),
            '=' => self.equals(),
            c => {
                if c.is_whitespace() {
                    self.reading.note("it has white space that a shell does not split at");
                }
                self.push(c);
            }
        }
    }

    fn backslash(&mut self) {
        match self.bump() {
            None => self.reading.note("it ends in a backslash"),
            Some('\n') => {}
            Some(c) => {
                self.push(c);
                self.word.get_or_insert_default().quoted = true;
            }
        }
    }

    fn single_quotes(&mut self) {
        let word = self.word.get_or_insert_default();
        word.quoted = true;
        if let Some((inside, rest)) = self.rest.split_once('\'') {
            word.text.push_str(inside);
            self.rest = rest;
        } else {
            self.reading.note("a quote is not closed");
            word.text.push_str(self.rest);
            self.rest = "";
        }
    }

    fn double_quotes(&mut self) {
        self.word.get_or_insert_default().quoted = true;
        loop {
            match self.bump() {
                None => return self.reading.note("a quote is not closed"),
                Some('"') => return,
                Some('\\') => match self.bump() {
                    None => return self.reading.note("a quote is not closed"),
                    Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => self.push(c),
                    Some(c) => {
                        self.push('\\');
                        self.push(c);
                    }
                },
                Some('$') => self.dollar(&['"', '|', ')', '/']),
                Some('`') => self.backquotes(),
                Some('!') => self.bang(&['=', '"']),
                Some(c) => self.push(c),
            }
        }
    }

    /// A dollar sign is itself before white space, the end, and what the caller names; else something is expanded.
    fn dollar(&mut self, plain_before: &[char]) {
        let next = self.peek();
        if next.is_none_or(|c| matches!(c, ' ' | '\t' | '\n') || plain_before.contains(&c)) {
            return self.push('$');
        }
        if self.eat('(') {
            self.reading.note("it runs what another command prints");
            let inside = self.enclosed(')', Some('('));
            self.push('$');
            return self.nested(inside);
        }
        self.reading.note("it uses a value that is not known before it runs");
        self.push('$');
        if self.eat('{') {
            let inside = self.enclosed('}', Some('{'));
            let text = &mut self.word.get_or_insert_default().text;
            text.push('{');
            text.push_str(inside);
            text.push('}');
        }
    }

    fn backquotes(&mut self) {
        self.reading.note("it runs what another command prints");
        let inside = self.enclosed('`', None);
        self.push('$');
        self.nested(inside);
    }

    /// Takes the text up to the closing character. Quotes inside are not minded: by now the reading is opaque.
    fn enclosed(&mut self, close: char, open: Option<char>) -> &'t str {
        let mut depth = 1_usize;
        for (at, c) in self.rest.char_indices() {
            if c == close {
                depth -= 1;
            } else if Some(c) == open {
                depth += 1;
            }
            if depth == 0
                && let (Some(inside), Some(rest)) = (self.rest.get(..at), self.rest.get(at + 1..))
            {
                self.rest = rest;
                return inside;
            }
        }
        std::mem::take(&mut self.rest)
    }

    fn nested(&mut self, text: &str) {
        self.reading.read(text, self.depth + 1);
    }

    /// `{}` and `{word}` are text; `{a,b}` and `{1..3}` become several words; a lone `{` is grammar.
    fn brace(&mut self) {
        let inside = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
            .and_then(|end| self.rest.split_at_checked(end));
        match inside {
            Some((inside, rest)) if rest.starts_with('}') => {
                self.push('{');
                self.word.get_or_insert_default().text.push_str(inside);
                self.rest = rest;
            }
            _ => {
                self.reading.note("it has braces");
                if self.word.is_some() || self.peek().is_some_and(|c| !c.is_whitespace()) {
                    self.push('{');
                }
            }
        }
    }

    /// An interactive shell replaces `!word` by an earlier command.
    fn bang(&mut self, plain_before: &[char]) {
        if self.peek().is_some_and(|c| !c.is_whitespace() && !plain_before.contains(&c)) {
            self.reading.note("it repeats an earlier command by `!`");
        }
        self.push('!');
    }

    fn equals(&mut self) {
        let next = self.peek();
        match &mut self.word {
            // Some shells replace `=name` by the path of a program.
            None if next.is_some_and(char::is_alphanumeric) => {
                self.reading.note("a word starts with `=`");
            }
            Some(word) if word.name_end.is_none() && !word.quoted => {
                let name = word.text.strip_suffix('+').unwrap_or(&word.text);
                if is_name(name) {
                    word.name_end = Some(name.len());
                }
            }
            _ => {}
        }
        self.push('=');
    }

    fn redirection(&mut self, c: char) {
        if let Some(word) = &self.word {
            if !word.quoted && word.text.chars().all(|c| c.is_ascii_digit()) {
                self.word = None;
            } else {
                if word.text.ends_with('}') {
                    self.reading.note("a redirection sets a variable");
                }
                self.end_word();
            }
        }
        let operator = if self.eat('&') {
            // `>&-` is complete: what follows is the next word, even without a space.
            if self.eat('-') {
                return;
            }
            Operator::Copy
        } else if c == '>' {
            let _ = self.eat('>') || self.eat('|');
            Operator::File(Direction::Write)
        } else if self.eat('>') {
            Operator::File(Direction::Write)
        } else {
            if self.eat('<') {
                self.reading.note("it has a here-document");
                let _ = self.eat('<') || self.eat('-');
            }
            Operator::File(Direction::Read)
        };
        if matches!(self.peek(), Some('(' | '!')) {
            self.reading.note("it runs a command in place of a file");
        }
        self.begin_redirect(operator);
    }

    fn begin_redirect(&mut self, operator: Operator) {
        if self.redirect.replace(operator).is_some() {
            self.reading.note("a redirection has no target");
        }
    }

    fn end_word(&mut self) {
        let Some(draft) = self.word.take() else { return };
        let word = Word { glob: draft.glob && draft.text != "[", text: draft.text };
        if let Some(operator) = self.redirect.take() {
            return self.end_redirect(operator, word);
        }
        if self.after_both {
            self.reading.note("words follow `&>`, which shells read in two ways");
        }
        if self.command.argv.is_empty() {
            if let Some(assignment) = draft.name_end.and_then(|end| assignment(&word, end)) {
                return self.command.assignments.push(assignment);
            }
            if !draft.quoted && RESERVED.contains(&word.text.as_str()) {
                return self.reading.note("it has control flow");
            }
            if word.glob {
                self.reading.note("the program's name is a pattern");
            }
        }
        self.command.argv.push(word);
    }

    fn end_redirect(&mut self, operator: Operator, target: Word) {
        let direction = match operator {
            Operator::Copy => {
                let descriptor = target.text.strip_suffix('-').unwrap_or(&target.text);
                if !descriptor.is_empty() && descriptor.chars().all(|c| c.is_ascii_digit()) {
                    return;
                }
                // Shells disagree on what this means, and bash expands the word twice.
                self.reading.note("a redirection copies something that is not a descriptor");
                Direction::Write
            }
            Operator::File(direction) => direction,
        };
        if target.text.starts_with("/dev/tcp/") || target.text.starts_with("/dev/udp/") {
            self.reading.note("a redirection opens a network connection");
        }
        self.command.redirects.push(Redirect { direction, target });
    }

    fn end_command(&mut self) {
        self.end_word();
        if self.redirect.take().is_some() {
            self.reading.note("a redirection has no target");
        }
        self.after_both = false;
        let command = std::mem::take(&mut self.command);
        if command != Simple::default() {
            self.reading.take(command, self.depth);
        }
    }
}

/// Splits `NAME=value` or `NAME+=value` where the name ends.
pub(super) fn assignment(word: &Word, name_end: usize) -> Option<Assignment> {
    let (name, value) = word.text.split_at_checked(name_end)?;
    let value = value.strip_prefix('+').unwrap_or(value).strip_prefix('=')?;
    Some(Assignment { name: name.to_owned(), value: Word::literal(value) })
}

/// Whether a text can name a variable.
pub(super) fn is_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
