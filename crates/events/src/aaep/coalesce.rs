//! Text that comes in tokens → pieces that end where a subscriber wants them to end.
//!
//! The pieces put together are the text, exactly. Where they end does not depend on how the text was cut into tokens
//! (except with [`Boundary::None`], which means: as it comes), and never lies inside a character as people see it.
//! Sentences are those of UAX #29, which knows the terminators of all scripts; a full stop, exclamation mark or question
//! mark of ASCII counts with white space behind it only, so that `3.14`, `e.g.` and addresses stay whole. The end of a
//! line ends a sentence, an empty line ends a paragraph. Words end behind their white space; in scripts without spaces
//! (Chinese, Japanese, Khmer, Lao, Burmese, Thai) dictionaries tell them apart.
//!
//! Whether something has ended shows in what follows, so a piece goes out with the first letter of the next one.
//! Each character is looked at once, and the segmenter is asked about places where something may end, with a few
//! characters around them. At most [`HELD_CHARS`] characters are held.

use serde::{Deserialize, Serialize};

use super::event::Boundary;

mod ends;

use ends::{Level, is_break, is_space};

/// How many characters are held at most. Where nothing ends within them, the piece ends behind the last sentence, word
/// or character in them, with the hint [`Boundary::None`].
pub const HELD_CHARS: usize = 8_192;

/// How long a run of a script without spaces may be before its words are told apart.
const RUN_CHARS: usize = 64;

/// A piece of text and what ends with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// What ends here: the coarsest of the boundaries that were asked for.
    pub hint: Boundary,
}

/// Gathers tokens into pieces.
///
/// ```
/// use banister_events::aaep::coalesce::Coalescer;
/// use banister_events::aaep::event::Boundary;
/// let mut text = Coalescer::new(&[Boundary::Sentence, Boundary::Completion]);
/// assert!(text.push("Pi is 3.").is_empty());
/// assert!(text.push("14. ").is_empty());
/// assert_eq!(text.push("Eu")[0].text, "Pi is 3.14. ");
/// assert_eq!(text.finish().text, "Eu");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coalescer {
    unit: Unit,
    /// Which of the coarser boundaries a hint may name.
    sentences: bool,
    paragraphs: bool,
    held: String,
    chars: usize,
    at: TextState,
}

/// The finest boundary that was asked for: where pieces end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Unit {
    None,
    Word,
    #[default]
    Sentence,
    Paragraph,
    Completion,
}

/// What is known about the end of the text that is held. All places are bytes of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct TextState {
    /// The white space that it ends with.
    gap: Option<Gap>,
    /// A sentence's terminator, with nothing but quotes, brackets and white space behind it.
    ended: Option<usize>,
    /// A terminator, and a place behind it where the next sentence may begin: the next letter will tell.
    open: Option<(usize, usize)>,
    /// Where the run of a script without spaces began that it ends with, and how long the run is.
    run: Option<(usize, usize)>,
}

/// White space.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Gap {
    breaks: u8,
    /// Behind the last line break.
    line: usize,
}

type Cuts = Vec<(usize, Level)>;

impl Coalescer {
    /// Cuts at the finest of these boundaries; without any, at AAEP's default: behind sentences.
    pub fn new(boundaries: &[Boundary]) -> Self {
        let has = |boundary: &Boundary| boundaries.contains(boundary);
        let unit = if has(&Boundary::None) {
            Unit::None
        } else if has(&Boundary::Word) {
            Unit::Word
        } else if has(&Boundary::Sentence) {
            Unit::Sentence
        } else if has(&Boundary::Paragraph) {
            Unit::Paragraph
        } else if has(&Boundary::Completion) {
            Unit::Completion
        } else {
            Unit::default()
        };
        Self {
            unit,
            sentences: has(&Boundary::Sentence),
            paragraphs: has(&Boundary::Paragraph),
            ..Self::default()
        }
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Takes the next token; gives the pieces that are complete with it.
    pub fn push(&mut self, text: &str) -> Vec<Piece> {
        let mut out = Vec::new();
        let mut again: Vec<char> = Vec::new();
        let mut rest = text;
        loop {
            rest = self.pass(rest);
            let mut characters = rest.chars();
            let mut next = characters.next();
            if next.is_none() {
                break;
            }
            rest = characters.as_str();
            while let Some(character) = next {
                let cuts = self.step(character);
                if cuts.is_empty() {
                    self.held.push(character);
                    self.chars += 1;
                } else {
                    // What is behind the cut was looked at as part of another piece.
                    again.push(character);
                    again.extend(self.cut(&cuts, &mut out).chars().rev());
                }
                next = again.pop();
            }
        }
        if self.unit == Unit::None {
            let settled = ends::settled(&self.held);
            if settled > 0 {
                let rest = self.cut(&vec![(settled, Level::Nothing)], &mut out);
                self.chars = rest.chars().count();
                self.held = rest;
            }
        }
        out
    }

    /// Takes as much of the text as certainly ends nothing; gives the rest of it. This is [`Coalescer::step`] for many
    /// characters at once: most text is letters with single spaces between them.
    fn pass<'t>(&mut self, text: &'t str) -> &'t str {
        let TextState { gap, ended: None, open: None, run: None } = self.at else { return text };
        if self.unit == Unit::Word || gap.is_some_and(|gap| gap.breaks > 0) {
            return text;
        }
        let mut passed = 0;
        let mut last = None;
        for character in text.chars().take(HELD_CHARS.saturating_sub(self.chars)) {
            if !ends::is_plain(character) {
                break;
            }
            passed += character.len_utf8();
            self.chars += 1;
            last = Some(character);
        }
        let Some((passed, rest)) = text.split_at_checked(passed) else { return text };
        if let Some(last) = last {
            let spaced = last == ' ' && matches!(self.unit, Unit::Sentence | Unit::Paragraph);
            self.at.gap = spaced.then(Gap::default);
        }
        self.held.push_str(passed);
        rest
    }

    /// What is left, which may be nothing: the text is over. The next token begins another text.
    pub fn finish(&mut self) -> Piece {
        self.chars = 0;
        self.at = TextState::default();
        Piece { text: std::mem::take(&mut self.held), hint: Boundary::Completion }
    }

    /// Takes off what is before the cuts, and gives what is behind them.
    fn cut(&mut self, cuts: &Cuts, out: &mut Vec<Piece>) -> String {
        let held = std::mem::take(&mut self.held);
        self.chars = 0;
        self.at = TextState::default();
        let mut begin = 0;
        for &(end, level) in cuts {
            if let Some(text) = held.get(begin..end).filter(|text| !text.is_empty()) {
                out.push(Piece { text: text.to_owned(), hint: self.hint(level) });
                begin = end;
            }
        }
        held.get(begin..).unwrap_or_default().to_owned()
    }

    fn hint(&self, level: Level) -> Boundary {
        match level {
            Level::Nothing => Boundary::None,
            Level::Paragraph if self.paragraphs => Boundary::Paragraph,
            _ if self.unit == Unit::Word && (level == Level::Word || !self.sentences) => {
                Boundary::Word
            }
            _ => Boundary::Sentence,
        }
    }

    /// Where the text that is held has ended, now that this character follows.
    fn step(&mut self, next: char) -> Cuts {
        if self.chars >= HELD_CHARS {
            return vec![(ends::best(&self.held), Level::Nothing)];
        }
        match self.unit {
            Unit::None | Unit::Completion => Vec::new(),
            // Nothing can end between two letters of ASCII.
            _ if next.is_ascii_alphanumeric() && self.at == TextState::default() => Vec::new(),
            Unit::Word => self.word(next),
            Unit::Sentence | Unit::Paragraph => self.sentence(next).into_iter().collect(),
        }
    }

    fn sentence(&mut self, next: char) -> Option<(usize, Level)> {
        if let Some((terminator, place)) = self.at.open
            && ends::decides(next)
        {
            self.at.open = None;
            if ends::sentence(&self.held, terminator, place, next) {
                return Some((place, Level::Sentence));
            }
        }
        if is_space(next) {
            self.space(next);
            return None;
        }
        let gap = self.at.gap.take();
        if let Some(cut) = self.line(gap, next) {
            return Some(cut);
        }
        if self.unit == Unit::Paragraph {
            return None;
        }
        let cut = self.terminated(gap.is_some(), next);
        self.note_terminator(next);
        cut
    }

    /// Whether a line or paragraph has ended that ends a piece.
    fn line(&mut self, gap: Option<Gap>, next: char) -> Option<(usize, Level)> {
        let gap = gap.filter(|gap| gap.breaks > 0)?;
        let level = if gap.breaks > 1 { Level::Paragraph } else { Level::Sentence };
        if self.unit == Unit::Paragraph && level != Level::Paragraph {
            return None;
        }
        self.whole(gap.line, next).then_some((gap.line, level))
    }

    /// Whether a sentence has ended before this character, or may have.
    fn terminated(&mut self, spaced: bool, next: char) -> Option<(usize, Level)> {
        let terminator = self.at.ended?;
        let place = self.held.len();
        let mark = self.held.get(terminator..)?.chars().next()?;
        if !spaced && mark.is_ascii() {
            return None;
        }
        if !self.whole(place, next) {
            return None;
        }
        // What follows a full stop says whether it was one; other marks stand for themselves.
        if ends::is_stop(mark) && self.unit == Unit::Sentence && !ends::decides(next) {
            if spaced {
                self.at.open = Some((terminator, place));
            }
            return None;
        }
        let begins = !spaced && ends::opens(next);
        (begins || ends::sentence(&self.held, terminator, place, next))
            .then_some((place, Level::Sentence))
    }

    fn note_terminator(&mut self, next: char) {
        if ends::is_terminator(next) {
            self.at.ended = Some(self.held.len());
        } else if next.is_alphanumeric() || self.at.open.is_some() {
            self.at.ended = None;
        }
    }

    fn word(&mut self, next: char) -> Cuts {
        let run = self.at.run;
        let place = self.held.len();
        if ends::is_unspaced(next) {
            self.at.run = Some(run.map_or((place, 1), |(begin, count)| (begin, count + 1)));
            if let Some((begin, RUN_CHARS)) = run {
                let mut cuts = ends::words(&self.held, begin);
                // The last words may still grow.
                let settled = begin + (place - begin) / 2;
                cuts.retain(|&cut| cut <= settled);
                if !cuts.is_empty() {
                    return cuts.into_iter().map(|cut| (cut, Level::Word)).collect();
                }
            }
        } else if let Some((begin, _)) = run {
            self.at.run = None;
            let mut cuts = ends::words(&self.held, begin);
            if (next.is_alphanumeric() || ends::opens(next)) && self.whole(place, next) {
                cuts.push(place);
            }
            if !cuts.is_empty() {
                return cuts.into_iter().map(|cut| (cut, Level::Word)).collect();
            }
        }
        if is_space(next) {
            self.space(next);
            return Vec::new();
        }
        let gap = self.at.gap.take();
        let mut cut = self.line(gap, next).or_else(|| self.terminated(gap.is_some(), next));
        let begins_run = run.is_none() && self.at.run.is_some();
        let quoted = ends::opens(next) && self.held.ends_with(ends::is_wide);
        let apart = gap.is_some() || (begins_run || quoted) && !self.held.ends_with(ends::opens);
        if cut.is_none() && apart && place > 0 && self.whole(place, next) {
            cut = Some((place, Level::Word));
        }
        self.note_terminator(next);
        cut.into_iter().collect()
    }

    fn space(&mut self, next: char) {
        let gap = self.at.gap.get_or_insert_default();
        if is_break(next) {
            let goes_on = next == '\n' && self.held.ends_with('\r') && gap.breaks > 0;
            let more = if next == '\u{2029}' { 2 } else { u8::from(!goes_on) };
            gap.breaks = gap.breaks.saturating_add(more).min(2);
            gap.line = self.held.len() + next.len_utf8();
        }
    }

    /// Whether a character ends at this place; `next` follows what is held.
    fn whole(&self, place: usize, next: char) -> bool {
        place < self.held.len() || ends::apart(&self.held, next)
    }
}

#[cfg(test)]
#[path = "coalesce_tests.rs"]
mod tests;
