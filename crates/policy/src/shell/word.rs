//! One word of the text: quotes, escapes and expansions, character by character.
//!
//! The grammar says where a word stands and where the expansions in it begin and end. Everything else is read here a
//! second time, by the rules of the shell, and must come out at the same end: where it does not, the reading is opaque.

use std::rc::Rc;

use tree_sitter::Node;

use super::state::{ShellState, Values, descend};
use super::{ShellFacts, UNKNOWN, Word, braces};

/// How a character came into a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteKind {
    /// As it stands.
    Bare,
    /// As the value of a variable without quotes: it is split, and its wildcards count.
    Expanded,
    /// In quotes.
    Quoted,
}

/// A part of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordSymbol {
    Char(char, QuoteKind),
    /// Something that is not known; without quotes it may be several words or none.
    Unknown(QuoteKind),
    /// Quotes around nothing: the word is there even if it is empty.
    Present,
    /// The end of a word inside an expansion, as in `"$@"`.
    Break,
}

/// Where a text has several ways to be read: the ways, and the one that is looked at.
#[derive(Debug, Default)]
pub(super) struct Choices(Vec<(String, usize, usize)>);

impl Choices {
    fn pick(&mut self, key: &str, values: &Values) -> Option<Rc<str>> {
        if values.len() < 2 {
            return values.first().cloned().flatten();
        }
        if let Some((_, _, picked)) = self.0.iter().find(|(known, ..)| known == key) {
            return values.get(*picked).cloned().flatten();
        }
        self.0.push((key.to_owned(), values.len(), 0));
        values.first().cloned().flatten()
    }

    /// How many ways there are.
    pub(super) fn count(&self) -> usize {
        self.0.iter().fold(1_usize, |product, (_, ways, _)| product.saturating_mul(*ways))
    }

    /// Goes to the next way; `false` after the last.
    pub(super) fn advance(&mut self) -> bool {
        for (_, ways, picked) in &mut self.0 {
            *picked += 1;
            if picked < ways {
                return true;
            }
            *picked = 0;
        }
        false
    }
}

/// Reads words of one text.
pub(super) struct Scanner<'a, 't> {
    pub(super) text: &'t str,
    pub(super) facts: &'a ShellFacts<'a>,
    pub(super) state: &'a ShellState,
    pub(super) choices: &'a mut Choices,
    /// Why a word could not be read.
    pub(super) notes: &'a mut Vec<&'static str>,
}

/// The mode of a place in a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScanMode {
    Plain,
    Double,
    /// The body of a here-document.
    Document,
}

impl<'t> Scanner<'_, 't> {
    /// Reads a node of the grammar as the words it becomes.
    pub(super) fn words(&mut self, node: Node<'t>, into: &mut Vec<Word>) {
        self.joined(&[node], into);
    }

    /// Reads nodes that stand without a gap as the words they become together.
    pub(super) fn joined(&mut self, nodes: &[Node<'t>], into: &mut Vec<Word>) {
        let symbols = self.symbols(nodes, ScanMode::Plain);
        if let Some(words) = braces::expand(symbols) {
            for word in &words {
                split(word, into);
            }
        } else {
            self.notes.push("braces stand for too many words");
            into.push(Word { text: UNKNOWN.to_string(), glob: false, several: true });
        }
    }

    /// Reads a node as one value, as in an assignment: nothing is split.
    pub(super) fn value(&mut self, node: Node<'t>) -> Word {
        join(&self.symbols(&[node], ScanMode::Plain))
    }

    /// Reads the body of a here-document.
    pub(super) fn document(&mut self, node: Node<'t>) -> Word {
        join(&self.symbols(&[node], ScanMode::Document))
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each character that means something")]
    fn symbols(&mut self, nodes: &[Node<'t>], mode: ScanMode) -> Vec<WordSymbol> {
        let mut out = Vec::new();
        let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else { return out };
        let range = first.start_byte()..last.end_byte();
        let mut spans: Vec<_> =
            nodes.iter().flat_map(|node| expansions(self.text, *node)).collect();
        spans.sort_by_key(|(start, ..)| *start);
        let mut spans = spans.into_iter().peekable();
        let (mut at, end) = (range.start, range.end);
        if mode == ScanMode::Plain && !starts_word(self.text, at) {
            self.notes.push(DISAGREE);
        }
        let mut mode = mode;
        let mut seen = false;
        while at < end {
            if let Some((_, stop, node)) = spans.next_if(|(start, ..)| *start <= at) {
                let kind =
                    if mode == ScanMode::Plain { QuoteKind::Expanded } else { QuoteKind::Quoted };
                self.expansion(node, kind, &mut out);
                seen = true;
                at = stop.max(at + 1);
                continue;
            }
            let rest = self.text.get(at..end).unwrap_or_default();
            let Some(c) = rest.chars().next() else { break };
            let next = rest.chars().nth(1);
            let mut length = c.len_utf8();
            match (mode, c) {
                (_, '\\') => {
                    let escapes = match mode {
                        ScanMode::Plain => true,
                        ScanMode::Double => matches!(next, Some('$' | '`' | '"' | '\\' | '\n')),
                        ScanMode::Document => matches!(next, Some('$' | '`' | '\\' | '\n')),
                    };
                    match next {
                        Some('\n') => length += 1,
                        Some(next) if escapes => {
                            out.push(WordSymbol::Char(next, QuoteKind::Quoted));
                            length += next.len_utf8();
                        }
                        Some(_) => out.push(WordSymbol::Char('\\', QuoteKind::Quoted)),
                        None => {
                            self.notes.push("it ends in a backslash");
                            out.push(WordSymbol::Char('\\', QuoteKind::Quoted));
                        }
                    }
                }
                (ScanMode::Plain, '\'') => {
                    let inside = rest.get(1..).unwrap_or_default();
                    let stop = inside.find('\'').unwrap_or_else(|| {
                        self.notes.push(UNCLOSED);
                        inside.len()
                    });
                    out.push(WordSymbol::Present);
                    let inside = inside.get(..stop).unwrap_or_default();
                    out.extend(inside.chars().map(|c| WordSymbol::Char(c, QuoteKind::Quoted)));
                    length = stop + 2;
                }
                (ScanMode::Plain, '$') if next == Some('\'') => {
                    out.push(WordSymbol::Present);
                    length = 2 + self.ansi(rest.get(2..).unwrap_or_default(), &mut out);
                }
                (ScanMode::Plain, '$') if next == Some('"') => {}
                (ScanMode::Plain, '"') => {
                    out.push(WordSymbol::Present);
                    mode = ScanMode::Double;
                }
                (ScanMode::Double, '"') => mode = ScanMode::Plain,
                (_, '`') => {
                    self.notes.push(DISAGREE);
                    out.push(WordSymbol::Unknown(QuoteKind::Expanded));
                }
                (_, '$') => {
                    let expands =
                        next.is_some_and(|c| c.is_alphanumeric() || "_{([@*#?!$-".contains(c));
                    let name = rest.get(1..).unwrap_or_default();
                    let name_end = name
                        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                        .unwrap_or(name.len());
                    if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                        // The grammar overlooks some that follow another.
                        let kind = if mode == ScanMode::Plain {
                            QuoteKind::Expanded
                        } else {
                            QuoteKind::Quoted
                        };
                        self.parameter(
                            name.get(..name_end).unwrap_or_default(),
                            "",
                            kind,
                            &mut out,
                        );
                        length += name_end;
                    } else if expands {
                        self.notes.push(DISAGREE);
                        out.push(WordSymbol::Unknown(QuoteKind::Expanded));
                    } else {
                        out.push(WordSymbol::Char('$', QuoteKind::Quoted));
                    }
                }
                (ScanMode::Plain, '|' | '&' | ';' | '(' | ')' | '<' | '>' | ' ' | '\t' | '\n') => {
                    self.notes.push(DISAGREE);
                }
                (ScanMode::Plain | ScanMode::Double, '!') => {
                    let plain = match mode {
                        ScanMode::Double => matches!(next, Some('=' | '"')),
                        _ => next == Some('='),
                    };
                    if next.is_some_and(|c| !c.is_whitespace()) && !plain {
                        self.notes.push("it repeats an earlier command by `!`");
                    }
                    let kind =
                        if mode == ScanMode::Plain { QuoteKind::Bare } else { QuoteKind::Quoted };
                    out.push(WordSymbol::Char('!', kind));
                }
                (ScanMode::Plain, c) => {
                    if c == '=' && !seen && next.is_some_and(char::is_alphanumeric) {
                        self.notes.push("a word starts with `=`");
                    }
                    if c.is_whitespace() {
                        self.notes.push("it has white space that a shell does not split at");
                    }
                    out.push(WordSymbol::Char(c, QuoteKind::Bare));
                }
                (_, c) => out.push(WordSymbol::Char(c, QuoteKind::Quoted)),
            }
            seen = true;
            at += length;
        }
        if mode == ScanMode::Double {
            self.notes.push(UNCLOSED);
        }
        if at > end || (mode == ScanMode::Plain && !ends_word(self.text, end)) {
            self.notes.push(DISAGREE);
        }
        out
    }

    fn expansion(&mut self, node: Node<'t>, kind: QuoteKind, out: &mut Vec<WordSymbol>) {
        let text = self.text.get(node.byte_range()).unwrap_or_default().trim_start();
        match node.kind() {
            "simple_expansion" => {
                let name = text.get(1..).unwrap_or_default();
                self.parameter(name, "", kind, out);
            }
            "expansion" => {
                let inside = text.strip_prefix("${").and_then(|text| text.strip_suffix('}'));
                let inside = inside.unwrap_or_default();
                let special = inside.chars().next().filter(|c| "@*#?!$-".contains(*c));
                let end = match special {
                    Some(_) => 1,
                    None => inside
                        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                        .unwrap_or(inside.len()),
                };
                let (name, operation) = inside.split_at_checked(end).unwrap_or_default();
                self.parameter(name, operation, kind, out);
            }
            "process_substitution" => push(super::FED_FILE, QuoteKind::Quoted, out),
            "command_substitution" if is_pwd(text) => self.parameter("PWD", "", kind, out),
            _ => out.push(WordSymbol::Unknown(kind)),
        }
    }

    fn parameter(
        &mut self,
        name: &str,
        operation: &str,
        kind: QuoteKind,
        out: &mut Vec<WordSymbol>,
    ) {
        if matches!(name, "@" | "*") && operation.is_empty() {
            return self.all_positional(kind, out);
        }
        let value = self.lookup(name, kind, out.is_empty());
        let Some(value) = self.operate(name, operation, value) else {
            return out.push(WordSymbol::Unknown(kind));
        };
        if kind == QuoteKind::Expanded && self.state.strange_splitting && name != "HOME" {
            return out.push(WordSymbol::Unknown(kind));
        }
        if kind == QuoteKind::Quoted {
            out.push(WordSymbol::Present);
        }
        push(&value, kind, out);
    }

    fn all_positional(&mut self, kind: QuoteKind, out: &mut Vec<WordSymbol>) {
        let Some(words) = self.state.positional.clone() else {
            return out.push(WordSymbol::Unknown(QuoteKind::Expanded));
        };
        for (at, word) in words.iter().enumerate() {
            if at > 0 {
                out.push(WordSymbol::Break);
            }
            match word {
                Some(word) => {
                    if kind == QuoteKind::Quoted {
                        out.push(WordSymbol::Present);
                    }
                    push(word, kind, out);
                }
                None => out.push(WordSymbol::Unknown(kind)),
            }
        }
    }

    /// The value of a variable, as far as it is known.
    fn lookup(&mut self, name: &str, _kind: QuoteKind, first: bool) -> Option<Rc<str>> {
        if let Some(values) = self.state.get(name) {
            let values = values.clone();
            return self.choices.pick(name, &values);
        }
        match name {
            "HOME" => match self.facts.home {
                Some(home) => Some(home.into()),
                None => first.then(|| "~".into()),
            },
            "PWD" => {
                let start = self.facts.directory?;
                let here: Values = self
                    .state
                    .directories
                    .iter()
                    .map(|directory| {
                        (!directory.contains(UNKNOWN))
                            .then(|| Rc::from(descend(start, directory).as_str()))
                    })
                    .collect();
                self.choices.pick("PWD", &here)
            }
            "IFS" => Some(" \t\n".into()),
            digits if !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()) => {
                let place = digits.parse::<usize>().ok()?.checked_sub(1)?;
                match self.state.positional.as_ref()?.get(place) {
                    Some(word) => word.clone(),
                    None => Some("".into()),
                }
            }
            _ => None,
        }
    }

    /// What `${name…}` makes of a value; `None` if that is not known.
    fn operate(&mut self, name: &str, operation: &str, value: Option<Rc<str>>) -> Option<Rc<str>> {
        if operation.is_empty() {
            return if matches!(name, "#" | "?" | "$" | "!" | "-" | "") { None } else { value };
        }
        let plain = |text: &str| {
            (!text.contains(['$', '`', '\'', '"', '\\', '{', '~'])).then(|| Rc::from(text))
        };
        let key = format!("{name}{operation}");
        let default = operation.strip_prefix(":-").or_else(|| operation.strip_prefix(":="));
        let default = default.or_else(|| operation.strip_prefix('-'));
        if let Some(default) = default.or_else(|| operation.strip_prefix('=')) {
            return match value {
                Some(value) if !value.is_empty() => Some(value),
                Some(_) => plain(default),
                None => self.choices.pick(&key, &vec![None, plain(default)]),
            };
        }
        if let Some(other) = operation.strip_prefix(":+").or_else(|| operation.strip_prefix('+')) {
            return match value {
                Some(value) if !value.is_empty() => plain(other),
                Some(_) => Some("".into()),
                None => self.choices.pick(&key, &vec![Some("".into()), plain(other)]),
            };
        }
        if operation.starts_with(":?") || operation.starts_with('?') {
            return value;
        }
        let slice = operation.strip_prefix(':')?;
        let (from, count) = slice.split_once(':').unwrap_or((slice, ""));
        let from: usize = from.trim().parse().ok()?;
        let count = if count.is_empty() { usize::MAX } else { count.trim().parse().ok()? };
        Some(Rc::from(value?.chars().skip(from).take(count).collect::<String>().as_str()))
    }

    /// Reads the inside of `$'…'`; how many bytes it takes with its closing quote.
    fn ansi(&mut self, inside: &str, out: &mut Vec<WordSymbol>) -> usize {
        let mut put = |c: char| out.push(WordSymbol::Char(c, QuoteKind::Quoted));
        let mut bytes: Vec<u8> = Vec::new();
        let mut chars = inside.char_indices().peekable();
        let flush = |bytes: &mut Vec<u8>, put: &mut dyn FnMut(char)| {
            String::from_utf8_lossy(bytes).chars().for_each(put);
            bytes.clear();
        };
        while let Some((at, c)) = chars.next() {
            if c == '\'' {
                flush(&mut bytes, &mut put);
                return at + 1;
            }
            if c != '\\' {
                flush(&mut bytes, &mut put);
                put(c);
                continue;
            }
            let Some((_, c)) = chars.next() else { break };
            let mut digits = |most: usize, radix: u32| {
                let mut number = None;
                for _ in 0..most {
                    let Some(digit) = chars.peek().and_then(|(_, c)| c.to_digit(radix)) else {
                        break;
                    };
                    chars.next();
                    number = Some(number.unwrap_or(0_u32) * radix + digit);
                }
                number
            };
            let (byte, long) = match c {
                'a' => (Some(7), None),
                'b' => (Some(8), None),
                'e' | 'E' => (Some(27), None),
                'f' => (Some(12), None),
                'n' => (Some(10), None),
                'r' => (Some(13), None),
                't' => (Some(9), None),
                'v' => (Some(11), None),
                'x' => (digits(2, 16), None),
                'u' => (None, digits(4, 16)),
                'U' => (None, digits(8, 16)),
                'c' => (chars.next().map(|(_, c)| (c as u32) & 0x1f), None),
                '0'..='7' => {
                    let first = c.to_digit(8).unwrap_or_default();
                    let rest = [digits(1, 8), digits(1, 8)];
                    let number =
                        rest.into_iter().flatten().fold(first, |sum, digit| sum * 8 + digit);
                    (Some(number & 0xff), None)
                }
                '\\' | '\'' | '"' | '?' => (Some(c as u32), None),
                c => {
                    flush(&mut bytes, &mut put);
                    put('\\');
                    put(c);
                    continue;
                }
            };
            match (byte, long) {
                // The text ends where a NUL stands; nothing good is written that way.
                (Some(0), _) | (None, Some(0)) => {
                    self.notes.push("it has characters that do not show");
                }
                (Some(byte), _) => bytes.push(u8::try_from(byte).unwrap_or(b'?')),
                (None, Some(code)) => {
                    flush(&mut bytes, &mut put);
                    put(char::from_u32(code).unwrap_or('?'));
                }
                (None, None) => {
                    flush(&mut bytes, &mut put);
                    put('\\');
                    put(c);
                }
            }
        }
        self.notes.push(UNCLOSED);
        inside.len()
    }
}

/// What is noted where the grammar and this reader come to different ends.
pub(super) const DISAGREE: &str = "it can be read in more than one way";
const UNCLOSED: &str = "a quote is not closed";

fn is_pwd(text: &str) -> bool {
    matches!(text, "$(pwd)" | "`pwd`")
}

fn push(value: &str, kind: QuoteKind, out: &mut Vec<WordSymbol>) {
    out.extend(value.chars().map(|c| match c {
        UNKNOWN => WordSymbol::Unknown(kind),
        c => WordSymbol::Char(c, kind),
    }));
}

/// The expansions below a node, outermost only, with where they start and end.
fn expansions<'t>(text: &str, node: Node<'t>) -> Vec<(usize, usize, Node<'t>)> {
    let mut found = Vec::new();
    let mut waiting = vec![node];
    while let Some(node) = waiting.pop() {
        if matches!(
            node.kind(),
            "simple_expansion"
                | "expansion"
                | "command_substitution"
                | "process_substitution"
                | "arithmetic_expansion"
        ) {
            let inside = text.get(node.byte_range()).unwrap_or_default();
            let blank = inside.len() - inside.trim_start().len();
            found.push((node.start_byte() + blank, node.end_byte(), node));
        } else if !matches!(node.kind(), "raw_string" | "ansi_c_string") {
            let mut cursor = node.walk();
            waiting.extend(node.children(&mut cursor));
        }
    }
    found
}

fn starts_word(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|text| text.chars().next_back());
    before.is_none_or(|c| {
        matches!(c, ' ' | '\t' | '\n' | ';' | '|' | '&' | '(' | ')' | '<' | '>' | '`' | '=')
    })
}

fn ends_word(text: &str, at: usize) -> bool {
    let after = text.get(at..).and_then(|text| text.chars().next());
    let continued = text.get(at..).is_some_and(|text| text.starts_with("\\\n"));
    // A line that is continued right behind a word joins what follows to it.
    let joined = continued
        && text.get(at + 2..).and_then(|text| text.chars().next()).is_some_and(|c| !is_blank(c));
    !joined
        && (continued
            || after.is_none_or(|c| {
                is_blank(c) || matches!(c, ';' | '|' | '&' | '(' | ')' | '<' | '>' | '`')
            }))
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n')
}

/// Splits what variables brought in, and makes words.
fn split(symbols: &[WordSymbol], into: &mut Vec<Word>) {
    let mut word = Word::default();
    let mut there = false;
    for symbol in symbols {
        match *symbol {
            WordSymbol::Char(' ' | '\t' | '\n', QuoteKind::Expanded) | WordSymbol::Break => {
                if there {
                    into.push(finish(std::mem::take(&mut word)));
                }
                there = false;
            }
            WordSymbol::Char(c, kind) => {
                word.glob |= kind != QuoteKind::Quoted && matches!(c, '*' | '?' | '[');
                word.text.push(c);
                there = true;
            }
            WordSymbol::Unknown(kind) => {
                word.several |= kind == QuoteKind::Expanded;
                word.text.push(UNKNOWN);
                there = true;
            }
            WordSymbol::Present => there = true,
        }
    }
    if there {
        into.push(finish(word));
    }
}

fn finish(word: Word) -> Word {
    Word { glob: word.glob && word.text != "[", ..word }
}

fn join(symbols: &[WordSymbol]) -> Word {
    let mut word = Word::default();
    for symbol in symbols {
        match symbol {
            WordSymbol::Char(c, _) => word.text.push(*c),
            WordSymbol::Unknown(_) => word.text.push(UNKNOWN),
            WordSymbol::Break => word.text.push(' '),
            WordSymbol::Present => {}
        }
    }
    word
}
