//! Protobuf's own rules: what a field looks like in bytes. Nothing here knows a message.

use super::{DEPTH, DecodeError};

/// What a field carries.
#[derive(Debug, Clone, Copy)]
pub(super) enum Payload<'a> {
    Varint(u64),
    Double(f64),
    Bytes(&'a [u8]),
    /// What no message here uses.
    Other,
}

/// Takes fields from the front of a message.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    depth: usize,
}

impl<'a> Fields<'a> {
    /// The fields of a message that lies so deep; an error where that is too deep.
    pub(super) fn new(bytes: &'a [u8], depth: usize) -> Result<Self, DecodeError> {
        if depth > DEPTH { Err(DecodeError::TooDeep) } else { Ok(Self { rest: bytes, depth }) }
    }

    /// The next field's number and what it carries; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Payload<'a>)>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, encoding) = self.tag()?;
        Ok(Some((number, self.payload(number, encoding, self.depth)?)))
    }

    fn tag(&mut self) -> Result<(u32, u32), DecodeError> {
        let tag = self.short()?;
        if tag >> 3 == 0 { Err(DecodeError::FieldZero) } else { Ok((tag >> 3, tag & 7)) }
    }

    fn payload(
        &mut self,
        number: u32,
        encoding: u32,
        depth: usize,
    ) -> Result<Payload<'a>, DecodeError> {
        Ok(match encoding {
            0 => Payload::Varint(self.varint()?),
            1 => {
                let (bytes, rest) = self.rest.split_first_chunk().ok_or(DecodeError::Truncated)?;
                self.rest = rest;
                Payload::Double(f64::from_le_bytes(*bytes))
            }
            2 => {
                let size = usize::try_from(self.short()?).map_err(|_| DecodeError::Truncated)?;
                Payload::Bytes(self.take(size)?)
            }
            3 => {
                self.skip_group(number, depth + 1)?;
                Payload::Other
            }
            4 => return Err(DecodeError::Group),
            5 => {
                self.take(4)?;
                Payload::Other
            }
            _ => return Err(DecodeError::Encoding),
        })
    }

    fn skip_group(&mut self, opened: u32, depth: usize) -> Result<(), DecodeError> {
        if depth > DEPTH {
            return Err(DecodeError::TooDeep);
        }
        loop {
            match self.tag()? {
                (number, 4) if number == opened => return Ok(()),
                (number, encoding) => self.payload(number, encoding, depth)?,
            };
        }
    }

    fn take(&mut self, size: usize) -> Result<&'a [u8], DecodeError> {
        let (bytes, rest) = self.rest.split_at_checked(size).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A number of at most 32 bits, as tags and lengths are.
    fn short(&mut self) -> Result<u32, DecodeError> {
        u32::try_from(self.varint()?).map_err(|_| DecodeError::Overlong)
    }

    fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(DecodeError::Truncated)?;
            self.rest = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(DecodeError::Overlong);
            }
            number |= bits << shift;
            if *byte < 0x80 {
                return Ok(number);
            }
        }
        Err(DecodeError::Overlong)
    }
}

/// Writes messages from their ends to their beginnings: a length stands before what it measures, and is known after.
#[derive(Debug, Default)]
pub(super) struct Backwards {
    reversed: Vec<u8>,
}

impl Backwards {
    /// How much was written.
    pub(super) fn len(&self) -> usize {
        self.reversed.len()
    }

    /// What was written, from its beginning to its end.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.reversed.reverse();
        self.reversed
    }

    pub(super) fn varint_field(&mut self, number: u32, value: u64) {
        self.varint(value);
        self.tag(number, 0);
    }

    pub(super) fn double_field(&mut self, number: u32, value: f64) {
        self.bytes(&value.to_le_bytes());
        self.tag(number, 1);
    }

    pub(super) fn bytes_field(&mut self, number: u32, value: &[u8]) {
        let end = self.len();
        self.bytes(value);
        self.enclose(number, end);
    }

    /// Makes a field of all that was written since.
    pub(super) fn enclose(&mut self, number: u32, end: usize) {
        let size = self.len().saturating_sub(end);
        self.varint(u64::try_from(size).unwrap_or(u64::MAX));
        self.tag(number, 2);
    }

    fn tag(&mut self, number: u32, encoding: u32) {
        self.varint(u64::from(number << 3 | encoding));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.reversed.extend(bytes.iter().rev());
    }

    fn varint(&mut self, value: u64) {
        // The groups of seven bits, the last one first; all but the last on the wire say that more follow.
        let groups = 64_u32.saturating_sub(value.leading_zeros()).div_ceil(7).max(1);
        for group in (0..groups).rev() {
            let [bits, ..] = (value >> (7 * group) & 0x7f).to_le_bytes();
            self.reversed.push(if group + 1 == groups { bits } else { bits | 0x80 });
        }
    }
}
