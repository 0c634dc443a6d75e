//! Stdin, read to its end but never past the deadline.
//!
//! What arrives is kept up to [`LARGEST`]; of anything larger only the first [`TRUNCATED`] bytes are kept, while
//! the rest is still drained so that the agent is not left with a broken pipe.
//!
//! Std cannot poll, so the way of not hanging depends on what stdin is: a socket has a read timeout, a pipe is
//! first read without blocking, and whatever is left over goes to a thread that may block in its stead. Agents
//! have usually written the payload by the time this process runs, so the thread is rarely started.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;

use crate::clock::Deadline;
use crate::error::Error;

/// The largest payload that is sent whole.
pub(crate) const LARGEST: usize = 8 * 1024 * 1024;
/// How much is sent of a larger one.
pub(crate) const TRUNCATED: usize = 1024 * 1024;
const CHUNK: usize = 16 * 1024;

/// What was read from stdin.
#[derive(Debug, Default)]
pub(crate) struct Payload {
    /// The bytes kept.
    pub(crate) bytes: Vec<u8>,
    /// How many bytes there were.
    pub(crate) total: u64,
}

impl Payload {
    /// Reads stdin. On failure `self` holds what had arrived by then.
    pub(crate) fn fill(&mut self, stdin: File, deadline: &Deadline) -> Result<(), Error> {
        let kind = stdin.metadata().map_err(Error::Stdin)?.file_type();
        if kind.is_file() {
            return self.read(&stdin, || Ok(())).map_err(Error::Stdin);
        }
        if kind.is_socket() {
            let socket = UnixStream::from(OwnedFd::from(stdin));
            let out_of_time = || io::Error::from(ErrorKind::WouldBlock);
            return self
                .read(&socket, || {
                    socket.set_read_timeout(Some(deadline.remaining().ok_or_else(out_of_time)?))
                })
                .map_err(|error| match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                        Error::StdinStalled(deadline.limit())
                    }
                    _ => Error::Stdin(error),
                });
        }
        if kind.is_fifo()
            && let Some(pipe) = reopen_without_blocking(&stdin)
        {
            let out_of_time = || io::Error::from(ErrorKind::TimedOut);
            match self.read(&pipe, || deadline.remaining().map(|_| ()).ok_or_else(out_of_time)) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    return Err(Error::StdinStalled(deadline.limit()));
                }
                done => return done.map_err(Error::Stdin),
            }
        }
        self.read_in_thread(stdin, deadline)
    }

    fn read(
        &mut self,
        mut source: impl Read,
        mut before_each: impl FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let mut chunk = [0; CHUNK];
        loop {
            before_each()?;
            match source.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(length) => self.push(chunk.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn read_in_thread(&mut self, mut stdin: File, deadline: &Deadline) -> Result<(), Error> {
        let (sender, chunks) = sync_channel::<io::Result<Vec<u8>>>(4);
        let reader = move || {
            loop {
                let mut chunk = vec![0; CHUNK];
                let read = stdin.read(&mut chunk).map(|length| {
                    chunk.truncate(length);
                    chunk
                });
                let more = match &read {
                    Ok(chunk) => !chunk.is_empty(),
                    Err(error) => error.kind() == ErrorKind::Interrupted,
                };
                if sender.send(read).is_err() || !more {
                    return;
                }
            }
        };
        // Not joined: at the deadline it may still be blocked, and then ends with the process.
        thread::Builder::new().spawn(reader).map_err(Error::Stdin)?;
        loop {
            let left = deadline.remaining().ok_or(Error::StdinStalled(deadline.limit()))?;
            match chunks.recv_timeout(left) {
                Ok(Ok(chunk)) if chunk.is_empty() => return Ok(()),
                Ok(Ok(chunk)) => self.push(&chunk),
                Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Err(Error::Stdin(error)),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Error::StdinStalled(deadline.limit()));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::Stdin(ErrorKind::UnexpectedEof.into()));
                }
            }
        }
    }

    fn push(&mut self, chunk: &[u8]) {
        let fits = self.total <= LARGEST as u64;
        self.total += chunk.len() as u64;
        if self.total <= LARGEST as u64 {
            self.bytes.extend_from_slice(chunk);
        } else if fits {
            self.bytes.truncate(TRUNCATED);
            self.bytes.shrink_to_fit();
        }
    }

    /// Whether less is kept than was read.
    pub(crate) fn is_truncated(&self) -> bool {
        self.total > self.bytes.len() as u64
    }
}

/// Opens a pipe once more, so that not blocking is a property of our description and not of the agent's.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
))]
fn reopen_without_blocking(stdin: &File) -> Option<File> {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    // The kernel's value on these architectures; std does not name it.
    const O_NONBLOCK: i32 = 0o4000;
    File::options()
        .read(true)
        .custom_flags(O_NONBLOCK)
        .open(format!("/proc/self/fd/{}", stdin.as_raw_fd()))
        .ok()
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)))]
fn reopen_without_blocking(_stdin: &File) -> Option<File> {
    None
}
