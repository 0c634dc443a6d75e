//! A conversation: what one run leaves behind is what the next one begins with.

use std::ops::{Deref, DerefMut};
use std::time::{SystemTime, UNIX_EPOCH};

use banister_events::agui::event::Interrupt;
use banister_events::agui::follow::{Ending, Follower};
use banister_events::agui::input::{Gap, Resume, RunInput, gaps};
use banister_events::agui::message::Message;
use banister_events::agui::reduce::Reducer;
use serde_json::Value;

use super::{Agent, Run};
use crate::error::{Error, Result};

/// A conversation with an agent.
///
/// It holds the messages, the state, and what the last run waits for: no run begins that does not answer that. A run that
/// failed or was cut off leaves it waiting.
///
/// ```no_run
/// use banister_client::agui::{Agent, Message, Resume, Thread, UserMessage};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> banister_client::Result<()> {
/// let mut thread = Thread::new(Agent::new("http://127.0.0.1:8000/agent")?, "thread-1");
/// thread.say(Message::User(UserMessage::new("m1", "Send the letter.")));
/// let mut turn = thread.run("run-1").await?;
/// while let Some(event) = turn.next().await {
///     event?;
/// }
/// drop(turn);
/// let answers: Vec<Resume> =
///     thread.pending().iter().map(|interrupt| Resume::resolved(&*interrupt.id, false)).collect();
/// if !answers.is_empty() {
///     let mut turn = thread.resume("run-2", answers).await?;
///     while let Some(event) = turn.next().await {
///         event?;
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Thread {
    agent: Agent,
    id: String,
    last: Follower,
    /// What was said since the last run.
    said: Vec<Message>,
    pending: Vec<Interrupt>,
}

impl Thread {
    /// A conversation that begins.
    pub fn new(agent: Agent, id: impl Into<String>) -> Self {
        Self {
            agent,
            id: id.into(),
            last: Follower::default(),
            said: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// The same, taken up where it was: with its messages, its state, and what it waits for.
    #[must_use]
    pub fn restored(self, messages: Vec<Value>, state: Value, pending: Vec<Interrupt>) -> Self {
        Self { last: Follower::new(Reducer::with(messages, state)), pending, ..self }
    }

    /// Adds a message for the next run: what the person says, or what a tool of the application gave.
    pub fn say(&mut self, message: Message) {
        self.said.push(message);
    }

    /// The messages after the last run, as the protocol writes them.
    pub fn messages(&self) -> Value {
        self.last.reducer().messages_value()
    }

    /// The state after the last run.
    pub fn state(&self) -> &Value {
        self.last.reducer().state()
    }

    /// What has to be answered before the next run.
    pub fn pending(&self) -> &[Interrupt] {
        &self.pending
    }

    /// Begins a run with everything so far. The id must be new to the thread.
    pub async fn run(&mut self, run_id: impl Into<String>) -> Result<Turn<'_>> {
        let input = self.input(run_id)?;
        self.start(input).await
    }

    /// Begins a run with the answers to what the last one waits for.
    pub async fn resume(
        &mut self,
        run_id: impl Into<String>,
        answers: Vec<Resume>,
    ) -> Result<Turn<'_>> {
        let mut input = self.input(run_id)?;
        input.resume = Some(answers);
        self.start(input).await
    }

    /// The input of a run with everything so far, to which tools, context and the like can be added.
    pub fn input(&self, run_id: impl Into<String>) -> Result<RunInput> {
        let mut input = RunInput::new(self.id.clone(), run_id);
        // Activities are the client's own, and not sent.
        let messages =
            self.last.reducer().messages().filter(|message| message.role() != "activity");
        let messages: Value =
            messages.map(banister_events::agui::reduce::Message::to_value).collect();
        input.messages = serde_json::from_value(messages)?;
        input.messages.extend(self.said.iter().cloned());
        input.state = Some(self.state().clone());
        Ok(input)
    }

    /// Begins a run with an input of this thread. Its messages and its state are the thread's from then on.
    pub async fn start(&mut self, input: RunInput) -> Result<Turn<'_>> {
        let answers = input.resume.as_deref().unwrap_or_default();
        for gap in gaps(&self.pending, answers, now()) {
            return Err(match gap {
                Gap::Unanswered(interrupt) => Error::Unanswered { id: interrupt.id.clone() },
                Gap::Expired(interrupt) => Error::Expired { id: interrupt.id.clone() },
                Gap::Repeated(answer) => Error::Repeated { id: answer.interrupt_id.clone() },
                // The agent may know more than this thread, and copes if it does not.
                _ => continue,
            });
        }
        let run = self.agent.run(input).await?;
        self.said.clear();
        Ok(Turn { thread: self, run })
    }
}

/// A [`Run`] of a thread. What it leaves behind becomes the thread's when it is dropped.
#[derive(Debug)]
pub struct Turn<'a> {
    thread: &'a mut Thread,
    run: Run,
}

impl Deref for Turn<'_> {
    type Target = Run;

    fn deref(&self) -> &Run {
        &self.run
    }
}

impl DerefMut for Turn<'_> {
    fn deref_mut(&mut self) -> &mut Run {
        &mut self.run
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let ending = self.run.ending();
        self.thread.last = self.run.take_follower();
        let pending = self.thread.last.reducer().pending_interrupts();
        // What a run waits for, it waits for even if an error or a violation follows.
        if !pending.is_empty() || matches!(ending, Ending::Finished | Ending::Cancelled) {
            self.thread.pending = pending.iter().map(interrupt).collect();
        }
    }
}

/// An interrupt, of which at least the id is never lost.
fn interrupt(value: &Value) -> Interrupt {
    serde_json::from_value(value.clone()).unwrap_or_else(|_| {
        let text = |name| value.get(name).and_then(Value::as_str).unwrap_or_default();
        Interrupt::new(text("id"), text("reason"))
    })
}

/// Milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "whether an answer is in time is decided here only")]
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
