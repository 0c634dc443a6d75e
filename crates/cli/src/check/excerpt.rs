//! The line of a source that a finding is about, cut to what fits, and what to mark in it.
//!
//! Nothing hidden is shown as it is: a control or bidi character would move the mark, or lie about the text.

use banister_events::text;

/// How wide an excerpt may be, in columns.
const WIDTH: usize = 90;
/// How much of that may stand before the mark.
const BEFORE: usize = 40;
/// A value in brackets that is wider than this is marked at its opening bracket only.
const WIDEST_MARK: usize = 40;

/// What is shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// The line, without its end.
    pub(crate) text: String,
    /// How many columns stand before the mark.
    pub(crate) indent: usize,
    /// How many columns the mark has, at least one.
    pub(crate) width: usize,
}

/// The line around the bytes from `start` to `end`.
pub(crate) fn excerpt(message: &[u8], start: usize, end: usize) -> Excerpt {
    let line_start =
        message.get(..start).and_then(|before| before.iter().rposition(|byte| is_end(*byte)));
    let line_start = line_start.map_or(0, |at| at + 1);
    let rest = message.get(start..).unwrap_or_default();
    let line_end = start + rest.iter().position(|byte| is_end(*byte)).unwrap_or(rest.len());
    let end = end.clamp(start, line_end);

    let (whole_before, whole_after) = (
        message.get(line_start..start).unwrap_or_default(),
        message.get(start..line_end).unwrap_or_default(),
    );
    // What follows the mark gets what is its due first; what it does not need goes to what stands before.
    let (after, cut_after) = first(whole_after, WIDTH - BEFORE);
    let room = if cut_after { BEFORE } else { WIDTH - width_of(&after) };
    let (before, cut_before) = last(whole_before, room);
    let (after, cut_after) = first(whole_after, WIDTH - width_of(&before));

    let mut text = String::new();
    if cut_before {
        text.push('…');
    }
    text.extend(before.iter().map(|cell| cell.text.as_str()));
    let indent = usize::from(cut_before) + width_of(&before);
    let marked = after.iter().take_while(|cell| start + cell.offset < end);
    let mut width = marked.map(|cell| cell.width).sum::<usize>();
    let brackets = matches!(rest.first(), Some(b'{' | b'['));
    if brackets && width > WIDEST_MARK {
        width = 1;
    }
    text.extend(after.iter().map(|cell| cell.text.as_str()));
    if cut_after {
        text.push('…');
    }
    Excerpt { text: text.trim_end().to_owned(), indent, width: width.max(1) }
}

fn is_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// One character as it is shown.
struct Cell {
    text: String,
    width: usize,
    /// Where it begins in the bytes.
    offset: usize,
}

fn width_of(cells: &[Cell]) -> usize {
    cells.iter().map(|cell| cell.width).sum()
}

/// As many characters of the beginning as fit, and whether there are more.
fn first(bytes: &[u8], columns: usize) -> (Vec<Cell>, bool) {
    // No character that takes a column has more bytes than this, not even one with marks above it.
    let near = bytes.get(..columns.saturating_mul(16)).unwrap_or(bytes);
    let mut cells = cells(near);
    let mut width = 0;
    let fit = cells.iter().take_while(|cell| {
        width += cell.width;
        width <= columns
    });
    let fit = fit.count();
    let more = fit < cells.len() || near.len() < bytes.len();
    cells.truncate(fit);
    (cells, more)
}

/// As many characters of the end as fit, and whether there are more.
fn last(bytes: &[u8], columns: usize) -> (Vec<Cell>, bool) {
    let mut from = bytes.len().saturating_sub(columns.saturating_mul(16));
    // Begin with a whole character.
    while bytes.get(from).is_some_and(|byte| byte & 0xC0 == 0x80) {
        from += 1;
    }
    let mut cells = cells(bytes.get(from..).unwrap_or_default());
    let mut width = 0;
    let fit = cells.iter().rev().take_while(|cell| {
        width += cell.width;
        width <= columns
    });
    let fit = fit.count();
    let more = fit < cells.len() || from > 0;
    cells.drain(..cells.len() - fit);
    (cells, more)
}

fn cells(bytes: &[u8]) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut offset = 0;
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            cells.push(cell(character, offset));
            offset += character.len_utf8();
        }
        for byte in chunk.invalid() {
            cells.push(Cell { text: format!("⟨{byte:02X}⟩"), width: 4, offset });
            offset += 1;
        }
    }
    cells
}

fn cell(character: char, offset: usize) -> Cell {
    let mut buffer = [0; 4];
    let text = match character {
        '\t' => " ".to_owned(),
        character => text::visible(character.encode_utf8(&mut buffer)).into_owned(),
    };
    let hidden = text.chars().nth(1).is_some();
    let width = if hidden { text.chars().count() } else { columns(character) };
    Cell { text, width, offset }
}

/// How many columns a character takes on a terminal, by the large blocks of Unicode.
fn columns(character: char) -> usize {
    match u32::from(character) {
        // Marks that stand on the character before.
        0x300..=0x36F
        | 0x483..=0x489
        | 0x591..=0x5BD
        | 0x610..=0x61A
        | 0x64B..=0x65F
        | 0x1AB0..=0x1AFF
        | 0x1DC0..=0x1DFF
        | 0x20D0..=0x20FF
        | 0xFE20..=0xFE2F => 0,
        // Hangul, CJK, full-width forms, pictographs.
        0x1100..=0x115F
        | 0x2E80..=0x303E
        | 0x3041..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF01..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1F64F
        | 0x1F680..=0x1F6FF
        | 0x1F900..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

#[cfg(test)]
#[path = "excerpt_tests.rs"]
mod tests;
