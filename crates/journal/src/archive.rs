//! A journal that is only read: by a person's tool, with or without a gateway that writes to it.

use std::path::Path;
use std::sync::Arc;

use crate::read::Readers;
use crate::{Error, Record, sqlite};

/// A journal file, open for reading.
#[derive(Debug)]
pub struct Archive {
    readers: Readers,
}

impl Archive {
    /// Opens a journal that exists. Takes no lock: a gateway may go on writing.
    pub fn open(path: &Path) -> Result<Self, Error> {
        // One connection is opened at once, so that a file that is no journal is told here.
        drop(sqlite::reader(path)?);
        Ok(Self { readers: Readers::new(path.to_owned()) })
    }

    /// The records after a position, oldest first.
    pub fn after(&self, position: u64, limit: usize) -> Result<Vec<Arc<Record>>, Error> {
        self.readers.after(position, limit)
    }
}
