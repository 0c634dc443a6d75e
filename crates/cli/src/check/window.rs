//! The last bytes of an input, so that a place in them can be told as a line and a column when it is asked for.

use banister_events::frame;

/// What some programs put before the first byte of a text.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// How much is read at once.
const PIECE: usize = 256 * 1024;

/// Where a message begins in its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Counted from 1.
    pub(crate) line: u64,
    /// In characters, counted from 1.
    pub(crate) column: u64,
    /// In bytes, from 0.
    pub(crate) offset: u64,
    /// How many characters stand before each line of the message: `data: ` in server-sent events.
    pub(crate) indent: u64,
}

impl Place {
    /// The beginning of an input.
    pub(crate) const FIRST: Self = Self { line: 1, column: 1, offset: 0, indent: 0 };
}

/// What stands beside a message, on the line where it begins and on the one where it ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Around {
    pub(crate) before: Vec<u8>,
    pub(crate) after: Vec<u8>,
}

/// What stands before each line of a server-sent event's data.
pub(crate) const DATA: &[u8] = b"data: ";

/// How much of a line is kept on each side of what is shown: more than fits into a line of a terminal.
pub(crate) const NEAR: usize = 2048;

/// How lines and columns are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// A message lies in its input as it is.
    Plain,
    /// A message stands behind `data:`.
    Sse,
    /// A line is a message.
    Messages,
}

/// The piece being read and the one before.
#[derive(Debug, Default)]
pub(crate) struct Window {
    current: Vec<u8>,
    filled: usize,
    before: Vec<u8>,
    filled_before: usize,
    /// The offset of the current piece.
    offset: u64,
    /// How many characters the line that is open where `before` begins has up to there.
    open: u64,
    /// Whether the input begins with a byte order mark, which is no character of its text.
    marked: bool,
}

impl Window {
    /// Room for the next piece. The current one becomes the one before.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        self.open = characters_on_line(self.before(), self.open);
        self.offset += self.filled as u64;
        std::mem::swap(&mut self.current, &mut self.before);
        self.filled_before = std::mem::take(&mut self.filled);
        self.current.resize(PIECE, 0);
        &mut self.current
    }

    /// Says how many bytes were put into the room.
    pub(crate) fn filled(&mut self, count: usize) {
        self.filled = count.min(self.current.len());
        self.marked |= self.offset == 0 && self.piece().starts_with(MARK);
    }

    /// The current piece.
    pub(crate) fn piece(&self) -> &[u8] {
        self.current.get(..self.filled).unwrap_or_default()
    }

    fn before(&self) -> &[u8] {
        self.before.get(..self.filled_before).unwrap_or_default()
    }

    /// Where a message begins.
    pub(crate) fn place(&self, at: frame::Place, measure: Measure) -> Place {
        let frame::Place { line, offset } = at;
        match measure {
            Measure::Plain => {
                let mark = u64::from(self.marked && line == 1);
                let column = self.column(offset).saturating_sub(mark).max(1);
                Place { line, column, offset, indent: 0 }
            }
            // The offset is that of the length.
            Measure::Messages => Place { line, column: 1, offset: offset + 4, indent: 0 },
            Measure::Sse => {
                let spaced = self.byte(offset + 5).is_none_or(|byte| byte == b' ');
                let indent = if spaced { 6 } else { 5 };
                Place { line, column: 1 + indent, offset: offset + indent, indent }
            }
        }
    }

    /// What stands beside a message that begins at a place and has so many bytes.
    pub(crate) fn around(&self, at: frame::Place, bytes: usize, measure: Measure) -> Around {
        match measure {
            Measure::Messages => Around::default(),
            Measure::Sse => {
                let indent = self.place(at, measure).column.saturating_sub(1);
                let indent = usize::try_from(indent).unwrap_or_default();
                Around { before: DATA.get(..indent).unwrap_or(DATA).to_vec(), after: Vec::new() }
            }
            Measure::Plain => {
                let mut before = self.cut(at.offset.saturating_sub(NEAR as u64), at.offset);
                if let Some(end) = before.iter().rposition(|byte| is_line_end(*byte)) {
                    before.drain(..=end);
                } else if self.marked && before.len() as u64 == at.offset {
                    before.drain(..MARK.len().min(before.len()));
                }
                let end = at.offset + bytes as u64;
                let gone = end < self.offset - self.filled_before as u64;
                let mut after = if gone { Vec::new() } else { self.cut(end, end + NEAR as u64) };
                after.truncate(
                    after.iter().position(|byte| is_line_end(*byte)).unwrap_or(after.len()),
                );
                Around { before, after }
            }
        }
    }

    /// The bytes between two offsets, as far as they are still here.
    fn cut(&self, from: u64, to: u64) -> Vec<u8> {
        let start = self.offset - self.filled_before as u64;
        let at = |offset: u64| usize::try_from(offset.saturating_sub(start)).unwrap_or(usize::MAX);
        let both = self.before().iter().chain(self.piece());
        both.skip(at(from)).take(at(to) - at(from)).copied().collect()
    }

    fn byte(&self, offset: u64) -> Option<u8> {
        let start = self.offset - self.filled_before as u64;
        let at = usize::try_from(offset.checked_sub(start)?).ok()?;
        self.before().iter().chain(self.piece()).nth(at).copied()
    }

    /// The column of an offset; 1 where it is too long ago to tell.
    fn column(&self, offset: u64) -> u64 {
        let part = |bytes: &'_ [u8], start: u64| -> Option<usize> {
            let at = usize::try_from(offset.checked_sub(start)?).ok()?;
            (at <= bytes.len()).then_some(at)
        };
        if let Some(at) = part(self.piece(), self.offset) {
            let open = characters_on_line(self.before(), self.open);
            return 1 + characters_on_line(self.piece().get(..at).unwrap_or_default(), open);
        }
        match part(self.before(), self.offset - self.filled_before as u64) {
            Some(at) => {
                1 + characters_on_line(self.before().get(..at).unwrap_or_default(), self.open)
            }
            None => 1,
        }
    }
}

/// Whether a byte ends a line.
pub(crate) fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// How many characters the last line of `bytes` has, where `open` stand on the first before it.
fn characters_on_line(bytes: &[u8], open: u64) -> u64 {
    match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(last) => characters(bytes.get(last + 1..).unwrap_or_default()),
        None => open + characters(bytes),
    }
}

/// How many characters the bytes have: all but the bytes that continue one.
pub(crate) fn characters(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(byte & 0xC0 != 0x80)).sum()
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
