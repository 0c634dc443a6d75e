//! Where the bytes of an input come from: a file, standard input or a live endpoint, unpacked if they are gzip.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;

use super::live::{self, LiveOptions, Opened, Refusal, StreamProgress, SubscriptionAnswer};

/// Something to read from.
pub(crate) struct Input {
    reader: Box<dyn Read>,
    /// How many bytes were read, as they are stored.
    pub(crate) stored: Rc<Cell<u64>>,
    pub(crate) packed: bool,
    /// What is known of a live stream, which waits only so long for the next event.
    pub(crate) progress: Rc<StreamProgress>,
    pub(crate) live: bool,
    /// What the answer of an AG-UI agent calls itself.
    pub(crate) content_type: Option<String>,
    /// What came before the stream, where there was a handshake.
    pub(crate) answer: Option<SubscriptionAnswer>,
}

/// What a person calls an input.
pub(crate) fn name(input: &str) -> &str {
    if input == "-" { "stdin" } else { input }
}

/// Whether an input is an address.
pub(crate) fn is_live(input: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| input.starts_with(scheme))
}

/// Opens an input; says what is wrong where that cannot be done.
pub(crate) fn open(input: &str, options: &LiveOptions) -> Result<Input, Refusal> {
    let progress = Rc::new(StreamProgress::default());
    let (mut answer, mut content_type) = (None, None);
    let raw: Box<dyn Read> = if input == "-" {
        Box::new(io::stdin().lock())
    } else if is_live(input) {
        let opened = live::open(input, options, &progress)?;
        let stream;
        Opened { stream, answer, content_type } = opened;
        Box::new(stream)
    } else {
        let file = File::open(input).map_err(|error| error.to_string())?;
        if file.metadata().is_ok_and(|data| data.is_dir()) {
            return Err("it is a directory; name the files in it".to_owned().into());
        }
        Box::new(file)
    };
    let stored = Rc::new(Cell::new(0));
    let mut raw = Counted { raw, stored: Rc::clone(&stored) };
    let mut begins = Vec::new();
    read_head(&mut raw, &mut begins).map_err(|error| error.to_string())?;
    let packed = begins == MAGIC;
    let whole = io::Cursor::new(begins).chain(raw);
    let reader: Box<dyn Read> =
        if packed { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) };
    Ok(Input { reader, stored, packed, progress, live: is_live(input), content_type, answer })
}

/// What every gzip file begins with.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reads as many bytes as it takes to know gzip.
fn read_head(raw: &mut impl Read, head: &mut Vec<u8>) -> io::Result<()> {
    let mut byte = [0];
    while MAGIC.starts_with(head) && head.len() < MAGIC.len() {
        match raw.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => head.extend_from_slice(&byte),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Input {
    /// Reads the next bytes; none are left where it gives 0.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        loop {
            match self.reader.read(buffer) {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.explain(&error)),
            }
        }
    }

    fn explain(&self, error: &io::Error) -> String {
        let stored = self.stored.get();
        match error.kind() {
            io::ErrorKind::ConnectionAborted if self.live => {
                format!("the connection was cut after {stored} bytes: {error}")
            }
            io::ErrorKind::UnexpectedEof if self.packed => {
                format!("the gzip data is truncated: it ends after {stored} bytes")
            }
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData if self.packed => {
                format!("the gzip data is corrupt somewhere before byte {stored}: {error}")
            }
            _ => error.to_string(),
        }
    }
}

/// Counts what is read.
struct Counted {
    raw: Box<dyn Read>,
    stored: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(buffer)?;
        self.stored.set(self.stored.get() + count as u64);
        Ok(count)
    }
}
