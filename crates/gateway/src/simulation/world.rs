//! One seed: who does what, when, and when the gateway ends.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use banister_events::activity::Outcome;
use banister_events::event::Protocol;
use banister_journal::{Level, Record};
use serde_json::{Value, json};

use super::Trace;
use super::agents::{Batch, Stream, aep_request};
use super::dice::Dice;
use super::house::{Answer, House, Weather, Who};
use super::promises::{self, Heard, Ledger};
use super::watchers::{self, Kind, Watcher};
use crate::clock::Clock;
use crate::keep::CapturePolicy;

/// How many things happen, at most.
const STEPS: usize = 21;
/// What is asked whether it may run: by rule, by a person, never.
const COMMANDS: [&str; 5] = ["git status", "git push", "git push --force", "rm -rf /", "make all"];

/// A world under a seed.
pub(super) struct World {
    dice: Dice,
    trace: Trace,
    dir: tempfile::TempDir,
    clock: Clock,
    weather: Arc<Weather>,
    capture: CapturePolicy,
    ledger: Arc<Mutex<Ledger>>,
    streams: Vec<Stream>,
    watchers: Vec<Watcher>,
    /// What waited, to wait again: the door and what is sent.
    waiting: Vec<(String, String, String)>,
    /// Sessions of hooks and their tool calls.
    calls: usize,
    steps: usize,
}

/// How a life ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Crashed,
    Done,
}

impl World {
    pub(super) fn new(seed: u64, trace: Trace) -> Self {
        let mut dice = Dice::new(seed);
        // Memory, where there is a file system in it: nothing here is about the disk.
        let memory = PathBuf::from("/dev/shm");
        let dir = tempfile::tempdir_in(&memory).or_else(|_| tempfile::tempdir()).unwrap();
        std::fs::create_dir(dir.path().join("data")).unwrap();
        let level = if dice.chance(20) { Level::Redacted } else { Level::Full };
        let streams = [
            Stream::new(Protocol::Aep, "a"),
            Stream::new(Protocol::Aaep, "b"),
            Stream::new(Protocol::Agui, "c"),
        ];
        let kinds = (0..=dice.below(2)).map(|number| Kind::ALL[(number + dice.below(3)) % 3]);
        let watchers = kinds.collect::<Vec<_>>().into_iter().map(Watcher::new).collect();
        let steps = STEPS / 3 + dice.below(STEPS * 2 / 3);
        Self {
            dice,
            trace,
            dir,
            clock: Clock::manual("2026-11-15T09:00:00Z".parse().unwrap()),
            weather: Arc::new(Weather::new(seed)),
            capture: CapturePolicy { level, ..CapturePolicy::default() },
            ledger: Arc::default(),
            streams: streams.into(),
            watchers,
            waiting: Vec::new(),
            calls: 0,
            steps,
        }
    }

    pub(super) fn run(mut self) {
        loop {
            let runtime = runtime();
            let end = runtime.block_on(self.live());
            // Whatever is under way ends where it stands.
            drop(runtime);
            self.ledger.lock().unwrap().under_way = 0;
            if end == End::Done {
                break;
            }
        }
        runtime().block_on(self.reckon());
    }

    fn open(&self) -> House {
        let data = self.dir.path().join("data");
        House::open(&data, &self.clock, &self.weather, self.capture.clone())
    }

    async fn live(&mut self) -> End {
        self.weather.failing.store(0, Ordering::SeqCst);
        let house = self.open();
        self.look(&house);
        promises::kept(&self.ledger.lock().unwrap(), &records(&house), &house.gateway.keeper);
        while self.steps > 0 {
            self.steps -= 1;
            match self.dice.below(100) {
                0..=27 => self.push(&house),
                28..=35 => self.push_again(&house),
                36..=47 => self.call(&house),
                48..=52 => self.mention(&house),
                53..=60 => self.decide(&house),
                61..=64 => self.wait_again(&house),
                65..=80 => self.answer(&house),
                81..=87 => self.watch(&house),
                88..=90 => self.attach(&house),
                91..=95 => self.pass_time(&house).await,
                96..=97 => {
                    let some = 1 + self.dice.below(3);
                    self.trace.say(format!("{some} commits will fail"));
                    self.weather.failing.store(some, Ordering::SeqCst);
                }
                _ => {
                    for _ in 0..self.dice.below(6) {
                        tokio::task::yield_now().await;
                    }
                    self.trace.say("the gateway ends".to_owned());
                    self.leave();
                    return End::Crashed;
                }
            }
            if self.dice.chance(45) {
                self.settle().await;
                self.look(&house);
            } else {
                for _ in 0..self.dice.below(8) {
                    tokio::task::yield_now().await;
                }
            }
        }
        // Everybody gets an answer in the end.
        self.weather.failing.store(0, Ordering::SeqCst);
        self.settle().await;
        self.jump(&house, Duration::from_hours(48)).await;
        self.settle().await;
        // What was under way comes late and asks, what has expired is something that happened: both take another while.
        for _ in 0..3 {
            self.jump(&house, Duration::from_hours(1)).await;
            self.settle().await;
        }
        self.look(&house);
        promises::turns_ended(&house.gateway, &records(&house));
        assert!(house.gateway.desk.inbox().is_empty(), "asks stay open for ever");
        let left = self.ledger.lock().unwrap().under_way;
        assert_eq!(left, 0, "somebody was never told");
        self.leave();
        End::Done
    }

    /// Until nothing moves. Time stands still for everybody but us.
    async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.clock.advance(Duration::from_millis(1));
    }

    /// What must be so whenever nothing moves.
    fn look(&self, house: &House) {
        let records = records(house);
        let mut open: Vec<String> =
            house.gateway.desk.inbox().into_iter().map(|opened| opened.ask.id).collect();
        open.sort();
        assert_eq!(open, promises::open_asks(&records), "the desk is not what the journal says");
        let ledger = self.ledger.lock().unwrap();
        assert!(ledger.broken.is_empty(), "{:?}", ledger.broken);
    }

    /// Everything, once more, on a gateway that was just opened.
    async fn reckon(&mut self) {
        let house = self.open();
        self.look(&house);
        let records = records(&house);
        promises::kept(&self.ledger.lock().unwrap(), &records, &house.gateway.keeper);
        promises::whole(&records, &self.dir.path().join("data/journal.db"));
        let mut whole: Vec<Watcher> = Kind::ALL.map(Watcher::new).into();
        for watcher in self.watchers.iter_mut().chain(&mut whole) {
            watcher.come(&house);
        }
        self.settle().await;
        for all in &whole {
            let expected = all.seen.lock().unwrap().clone();
            watchers::conformant(all.kind, &expected);
            for watcher in self.watchers.iter().filter(|watcher| watcher.kind == all.kind) {
                watchers::same(watcher.kind, &watcher.seen.lock().unwrap(), &expected);
            }
        }
        self.trace.say(format!("{} records", records.len()));
        for record in &records {
            let (kind, id) = (record.kind.as_str(), record.event_id.as_deref().unwrap_or("-"));
            let Record { position, session, seq, .. } = &**record;
            self.trace.say(format!("record {position}: {session} {seq} {kind} {id}"));
        }
    }

    /// Everybody is cut off.
    fn leave(&mut self) {
        for watcher in &mut self.watchers {
            let lost = self.dice.below(3);
            watcher.cut(lost);
        }
    }

    fn push(&mut self, house: &House) {
        let stream = self.dice.below(self.streams.len());
        let batch = self.streams[stream].next(&mut self.dice);
        self.send(house, batch, "pushes");
    }

    fn push_again(&mut self, house: &House) {
        let stream = self.dice.below(self.streams.len());
        if let Some(batch) = self.dice.one(&self.streams[stream].sent).cloned() {
            self.send(house, batch, "pushes again");
        }
    }

    fn send(&self, house: &House, batch: Batch, how: &str) {
        let ids: Vec<&str> = batch.lines.iter().map(|it| it.id.as_deref().unwrap_or("-")).collect();
        self.trace.say(format!("an agent {how} {}", ids.join(" ")));
        let (ledger, trace) = (Arc::clone(&self.ledger), self.trace.clone());
        self.task(house, move |house: House| async move {
            let mut headers = vec![("content-type", "application/x-ndjson")];
            headers.extend(batch.idempotency.as_deref().map(|push| ("idempotency-key", push)));
            let line = format!("POST {}", batch.path);
            let answer = house.ask(Who::Agent, &line, &headers, batch.body()).await;
            trace.say(format!("  it hears {}", answer.status));
            let mut ledger = ledger.lock().unwrap();
            if answer.status == 200 {
                let results = answer.json()["results"].as_array().cloned().unwrap_or_default();
                if results.len() != batch.lines.len() {
                    ledger.broken.push(format!("not a receipt for each: {}", answer.text));
                }
                for (line, result) in batch.lines.iter().zip(&results) {
                    trace.say(format!("    {:?} {}", line.id, result["status"]));
                    ledger.receipt(line.id.as_deref(), &line.text, result);
                }
            } else if answer.status != 503 {
                ledger.broken.push(format!("a push got {}: {}", answer.status, answer.text));
            }
        });
    }

    /// A hook asks whether a tool may run.
    fn call(&mut self, house: &House) {
        self.calls += 1;
        let command = *self.dice.one(&COMMANDS).unwrap();
        let (id, session) = (format!("h{}", self.calls), self.dice.below(2));
        let payload = json!({
            "session_id": format!("s{session}"), "cwd": "/src", "tool_name": "Bash",
            "tool_use_id": id, "tool_input": { "command": command },
        });
        self.wait(
            house,
            ("POST /hooks/claude-code/PreToolUse".to_owned(), id, payload.to_string()),
        );
    }

    /// An agent asks for a decision in AEP.
    fn decide(&mut self, house: &House) {
        self.calls += 1;
        let command = *self.dice.one(&COMMANDS).unwrap();
        let id = format!("d{}", self.calls);
        let event = aep_request("a", &id, command);
        self.wait(house, ("POST /aep/v0.1/decide".to_owned(), id, event.to_string()));
    }

    fn wait_again(&mut self, house: &House) {
        if let Some(known) = self.dice.one(&self.waiting).cloned() {
            self.wait(house, known);
        }
    }

    fn wait(&mut self, house: &House, what: (String, String, String)) {
        self.trace.say(format!("{} waits at {}", what.1, what.0));
        self.waiting.push(what.clone());
        let deadline = (5 + self.dice.below(300) * 2).to_string() + "000";
        // Some hang up before they hear anything.
        let patience = if self.dice.chance(15) { self.dice.below(30) } else { usize::MAX };
        let (ledger, trace) = (Arc::clone(&self.ledger), self.trace.clone());
        self.task(house, move |house: House| async move {
            let (line, id, body) = what;
            let headers = [("banister-deadline-ms", deadline.as_str()), ("idempotency-key", &id)];
            let asking = house.ask(Who::Agent, &line, &headers, body.into_bytes());
            let answer = tokio::select! {
                biased;
                answer = asking => answer,
                () = impatience(patience) => return trace.say(format!("  {id} hangs up")),
            };
            let allowed = match behavior(&line, &answer) {
                Ok(allowed) => allowed,
                Err(why) => return ledger.lock().unwrap().broken.push(format!("{id}: {why}")),
            };
            trace.say(format!("  {id} hears {allowed}"));
            let head = house.gateway.journal.head();
            ledger.lock().unwrap().heard.push(Heard { id, allowed, head });
        });
    }

    /// A hook tells something and waits for nothing.
    fn mention(&mut self, house: &House) {
        self.calls += 1;
        let (id, session) = (format!("n{}", self.calls), self.dice.below(2));
        let hooks = ["UserPromptSubmit", "Stop", "SessionStart", "PostToolUse", "SessionEnd"];
        let hook = *self.dice.one(&hooks).unwrap();
        let payload = json!({
            "session_id": format!("s{session}"), "cwd": "/src", "prompt": "Go on.",
            "tool_name": "Bash", "tool_use_id": format!("h{}", self.calls.saturating_sub(2)),
            "tool_input": { "command": "git status" }, "tool_response": { "stdout": "clean" },
        });
        self.trace.say(format!("{id} tells {hook}"));
        self.task(house, move |house: House| async move {
            let line = format!("POST /hooks/claude-code/{hook}");
            let headers = [("idempotency-key", id.as_str())];
            house.ask(Who::Agent, &line, &headers, payload.to_string().into_bytes()).await;
        });
    }

    /// Somebody answers, rightly or not, by the page's door or by a token.
    fn answer(&mut self, house: &House) {
        let inbox = house.gateway.desk.inbox();
        let accept = self.dice.chance(60);
        let opened = self.dice.one(&inbox).cloned();
        let known = self.dice.one(&self.waiting).cloned();
        let (ask, token, digest) = match (opened, known) {
            (Some(opened), _) => (opened.ask.id, opened.ask.token, opened.ask.digest),
            // What is closed, or was never asked.
            (None, Some((_, id, _))) => {
                (crate::asks::AskDraft::id_for("agent", &id), "rpl_none".to_owned(), String::new())
            }
            (None, None) => return,
        };
        for _ in 0..=self.dice.below(2) {
            let way = self.dice.below(10);
            let accept = accept ^ self.dice.chance(30);
            let decision = if accept { "accept" } else { "reject" };
            let (line, body) = if way <= 6 {
                let mut body = json!({ "decision": decision });
                match way {
                    0 => body["digest"] = json!("0".repeat(64)),
                    1..=3 => body["digest"] = json!(digest),
                    _ => {}
                }
                (format!("POST /api/asks/{ask}/answer"), body)
            } else {
                let token = if way == 7 { format!("{token}x") } else { token.clone() };
                let body = json!({
                    "type": "confirmation.reply", "reply_token": token, "decision": decision,
                    "timestamp": self.clock.now().to_string(),
                });
                ("POST /aaep/v1/replies".to_owned(), body)
            };
            let wrong = matches!(way, 0 | 7);
            self.trace.say(format!("somebody answers {ask} {accept} in way {way}"));
            self.reply(house, (ask.clone(), accept, wrong), line, body);
        }
    }

    fn reply(
        &self,
        house: &House,
        (ask, accept, wrong): (String, bool, bool),
        line: String,
        body: Value,
    ) {
        let (ledger, trace) = (Arc::clone(&self.ledger), self.trace.clone());
        self.task(house, move |house: House| async move {
            let answer = house.ask(Who::Person, &line, &[], body.to_string().into_bytes()).await;
            trace.say(format!("  the answer to {ask} got {}", answer.status));
            let mut ledger = ledger.lock().unwrap();
            match answer.status {
                200 | 204 if wrong => ledger.broken.push(format!("a wrong answer counted: {ask}")),
                200 | 204 => {
                    let outcome = if accept { Outcome::Accepted } else { Outcome::Rejected };
                    ledger.answered.push((ask, outcome));
                }
                404 | 409 | 422 | 503 => {}
                other => ledger.broken.push(format!("an answer got {other}: {}", answer.text)),
            }
        });
    }

    fn watch(&mut self, house: &House) {
        let at = self.dice.below(self.watchers.len());
        let lost = self.dice.below(3);
        let watcher = &mut self.watchers[at];
        if watcher.is_here() {
            self.trace.say(format!("watcher {at} is cut off and loses {lost}"));
            watcher.cut(lost);
        } else {
            self.trace.say(format!("watcher {at} comes"));
            watcher.come(house);
        }
    }

    fn attach(&mut self, house: &House) {
        let records = records(house);
        let Some(record) = self.dice.one(&records).cloned() else { return };
        let session = record.session.clone();
        self.trace.say(format!("an AG-UI client attaches to {session}"));
        let ledger = Arc::clone(&self.ledger);
        let visitor = house.clone();
        // Not counted: a run lasts as long as its turn.
        house.gateway.tasks.spawn(async move {
            if let Some(wrong) = watchers::attach(visitor, session).await {
                ledger.lock().unwrap().broken.push(wrong);
            }
        });
    }

    async fn pass_time(&mut self, house: &House) {
        let seconds = [1, 5, 30, 90, 600, 2_000][self.dice.below(6)];
        self.trace.say(format!("{seconds} seconds pass"));
        self.jump(house, Duration::from_secs(seconds)).await;
    }

    async fn jump(&self, house: &House, by: Duration) {
        self.clock.advance(by);
        tokio::time::advance(by).await;
        self.task(house, move |house: House| async move {
            house.gateway.desk.sweep().await;
            house.gateway.sweep_subscriptions().await;
            house.gateway.end_idle_turns().await;
        });
    }

    /// Somebody's request, on its own.
    fn task<F>(&self, house: &House, work: impl FnOnce(House) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.ledger.lock().unwrap().under_way += 1;
        let (work, ledger) = (work(house.clone()), Arc::clone(&self.ledger));
        house.gateway.tasks.spawn(async move {
            work.await;
            ledger.lock().unwrap().under_way -= 1;
        });
    }
}

/// Waits so many times for everybody else; for ever where that is without end.
async fn impatience(times: usize) {
    if times == usize::MAX {
        std::future::pending::<()>().await;
    }
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}

/// Whether whoever waited was told that it may go on.
fn behavior(line: &str, answer: &Answer) -> Result<bool, String> {
    let body = answer.json();
    if line.contains("/decide") {
        let behavior = body["control"]["behavior"].as_str().map(str::to_owned);
        return behavior
            .map(|it| it == "allow")
            .ok_or_else(|| format!("no answer: {}", answer.text));
    }
    let decision = body["hookSpecificOutput"]["permissionDecision"].as_str();
    match (answer.status, answer.exit.as_deref(), decision) {
        (200, Some("0"), Some("allow")) => Ok(true),
        (200, Some("0"), Some("deny")) | (200, Some("2"), _) => Ok(false),
        _ => Err(format!("{} {:?} {}", answer.status, answer.exit, answer.text)),
    }
}

fn records(house: &House) -> Vec<Arc<Record>> {
    house.gateway.journal.after(0, 100_000).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}
