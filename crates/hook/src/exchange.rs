//! The conversation with the gateway: connect, send, wait, and start over when the gateway went away.
//!
//! A gateway that restarts keeps its open asks, so a lost connection is no answer. Every attempt carries the same
//! idempotency key, so no attempt can become a second call.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::clock::{self, Deadline};
use crate::conf::Conf;
use crate::error::Error;
use crate::spool::Mark;
use crate::wire::{self, Answer, Call, Progress};

/// Enough for one system call; what is not used is not paid for, but mapping it is.
const DIAL_STACK: usize = 64 * 1024;
const FIRST_RETRY: Duration = Duration::from_millis(20);
const NEXT_RETRY: Duration = Duration::from_millis(200);
/// A connection that held this long was a working gateway; losing it starts a new time of grace. A gateway that
/// drops every connection at once gets no new one each time.
const SETTLED: Duration = Duration::from_secs(1);

/// Why one attempt brought no answer.
enum Failure {
    /// There is no gateway at the other end (any more); it may return.
    Lost(io::Error),
    /// Trying again would not help.
    Final(Error),
}

/// Gets the gateway's answer to one call.
pub(crate) fn ask(conf: &Conf, call: &Call<'_>, deadline: &Deadline) -> Result<Answer, Error> {
    let mark = Mark::within(&conf.spool);
    let dial = Dial::start(conf, &mark);
    let careful = matches!(dial, Dial::Under(_));
    let answer = ask_until_answered(conf, call, dial, deadline);
    match &answer {
        Err(Error::NoAnswer(_)) => mark.set(),
        Ok(_) if careful => mark.clear(),
        _ => {}
    }
    answer
}

fn ask_until_answered(
    conf: &Conf,
    call: &Call<'_>,
    mut dial: Dial,
    deadline: &Deadline,
) -> Result<Answer, Error> {
    let mut lost_at: Option<Instant> = None;
    loop {
        let started = clock::now();
        let source = match attempt(call, dial, deadline) {
            Ok(answer) => return Ok(answer),
            Err(Failure::Final(error)) => return Err(error),
            Err(Failure::Lost(source)) => source,
        };
        let in_grace = lost_at.filter(|_| started.elapsed() < SETTLED);
        let pause = if in_grace.is_some() { NEXT_RETRY } else { FIRST_RETRY };
        let lost = in_grace.unwrap_or_else(clock::now);
        lost_at = Some(lost);
        let grace = conf.reconnect.saturating_sub(lost.elapsed());
        if grace < pause || deadline.remaining().is_none_or(|left| left < pause) {
            return Err(Error::Unreachable { socket: conf.socket.clone(), source });
        }
        thread::sleep(pause);
        dial = Dial::in_thread(&conf.socket);
    }
}

fn attempt(call: &Call<'_>, dial: Dial, deadline: &Deadline) -> Result<Answer, Failure> {
    let no_answer = || Failure::Final(Error::NoAnswer(deadline.limit()));
    let mut stream = dial.finish(deadline)?;
    let request = call.request(deadline.remaining().ok_or_else(no_answer)?);
    // A gateway may refuse before it has read everything, so a failed write does not end the attempt.
    let sent = send(&mut stream, &request, deadline);
    let mut received = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let left = deadline.remaining().ok_or_else(no_answer)?;
        let length = match stream
            .set_read_timeout(Some(left))
            .and_then(|()| stream.read(&mut chunk))
        {
            Ok(length) => length,
            Err(error) => match error.kind() {
                ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => continue,
                _ if received.is_empty() => return Err(Failure::Lost(error)),
                _ => 0,
            },
        };
        if length == 0 && received.is_empty() {
            let closed = || ErrorKind::UnexpectedEof.into();
            return Err(Failure::Lost(sent.err().unwrap_or_else(closed)));
        }
        received.extend_from_slice(chunk.get(..length).unwrap_or_default());
        match wire::response(&received, length == 0).map_err(Failure::Final)? {
            Progress::Complete(answer) => return Ok(answer),
            Progress::Incomplete => {}
        }
    }
}

/// A connection, or one that is being made.
enum Dial {
    /// Connecting has ended, well or badly.
    Done(io::Result<UnixStream>),
    /// A thread is connecting.
    Under(Receiver<io::Result<UnixStream>>),
}

impl Dial {
    /// Connects, in a thread if that might block.
    ///
    /// Connecting to a Unix socket blocks while the gateway's queue is full, and std has no timeout for it. Only
    /// hooks that got no answer fill the queue of a gateway that hangs, and those leave a mark. The thread would
    /// add a quarter to the time of every call, so without a mark there is none.
    fn start(conf: &Conf, mark: &Mark) -> Self {
        if mark.is_set() {
            Self::in_thread(&conf.socket)
        } else {
            Self::Done(UnixStream::connect(&conf.socket))
        }
    }

    fn in_thread(socket: &str) -> Self {
        let (sender, connected) = sync_channel(1);
        let socket = socket.to_owned();
        // Not joined: at the deadline it may still be blocked, and then ends with the process.
        let started = thread::Builder::new().stack_size(DIAL_STACK).spawn(move || {
            sender.send(UnixStream::connect(socket)).ok();
        });
        match started {
            Ok(_) => Self::Under(connected),
            Err(error) => Self::Done(Err(error)),
        }
    }

    fn finish(self, deadline: &Deadline) -> Result<UnixStream, Failure> {
        let no_answer = || Failure::Final(Error::NoAnswer(deadline.limit()));
        let connected = match self {
            Self::Done(connected) => connected,
            Self::Under(connected) => connected
                .recv_timeout(deadline.remaining().ok_or_else(no_answer)?)
                .map_err(|_| no_answer())?,
        };
        connected.map_err(Failure::Lost)
    }
}

fn send(stream: &mut UnixStream, mut request: &[u8], deadline: &Deadline) -> io::Result<()> {
    while !request.is_empty() {
        let left = deadline.remaining().ok_or(ErrorKind::TimedOut)?;
        stream.set_write_timeout(Some(left))?;
        match stream.write(request) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => request = request.get(length..).unwrap_or_default(),
            Err(error) => match error.kind() {
                ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => {}
                _ => return Err(error),
            },
        }
    }
    Ok(())
}
