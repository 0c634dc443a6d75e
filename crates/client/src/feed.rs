//! The events of a gateway, followed across cuts.

use std::time::Duration;

use banister_events::event::Protocol;
use banister_events::frame::sse::Message;
use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::client::Client;
use crate::error::{Error, Result};
use crate::inbox::segment;
use crate::stream::EventStream;
use crate::transport::HttpError;

const SSE: &str = "text/event-stream";
const SUBSCRIPTIONS: &str = "/aaep/v1/subscriptions";
/// How long it waits before it connects again: this, and then twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long it tries if not said otherwise.
const PATIENCE: Duration = Duration::from_mins(1);

/// What to follow: a protocol, and where to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follow {
    path: &'static str,
    query: Vec<(&'static str, String)>,
    after: Option<String>,
}

impl Follow {
    /// AAEP events of all sessions, from what is going on now.
    pub fn aaep() -> Self {
        Self { path: "/aaep/v1/events", query: Vec::new(), after: None }
    }

    /// AEP events of all sessions, from what is going on now.
    pub fn aep() -> Self {
        Self { path: "/aep/v0.1/events", query: Vec::new(), after: None }
    }

    /// The events of a protocol that can be followed; AG-UI's sessions are run instead, see [`crate::agui`].
    pub fn of(protocol: Protocol) -> Option<Self> {
        match protocol {
            Protocol::Aaep => Some(Self::aaep()),
            Protocol::Aep => Some(Self::aep()),
            Protocol::Agui => None,
        }
    }

    /// Only those of one session.
    #[must_use]
    pub fn session(self, session: &str) -> Self {
        self.with("session", session)
    }

    /// In a language, where the protocol has words for people.
    #[must_use]
    pub fn language(self, tag: &str) -> Self {
        self.with("lang", tag)
    }

    /// From the first event there is.
    #[must_use]
    pub fn from_start(self) -> Self {
        self.with("from", "start")
    }

    /// After the event with this cursor: what [`FeedEvent::cursor`] said, kept wherever the caller keeps it.
    #[must_use]
    pub fn after(mut self, cursor: impl Into<String>) -> Self {
        self.after = Some(cursor.into());
        self
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.query.retain(|(known, _)| *known != name);
        self.query.push((name, value.to_owned()));
        self
    }

    fn url(&self) -> String {
        let pairs: Vec<String> =
            self.query.iter().map(|(name, value)| format!("{name}={}", segment(value))).collect();
        if pairs.is_empty() {
            self.path.to_owned()
        } else {
            format!("{}?{}", self.path, pairs.join("&"))
        }
    }
}

/// One event, and the place to go on from.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedEvent {
    /// Everything up to here was given.
    pub cursor: String,
    /// The event.
    pub event: Value,
}

/// Events as they come. When the connection breaks or the gateway starts anew, it goes on after the last event it gave.
///
/// ```no_run
/// use banister_client::{Client, Endpoint, Follow};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> banister_client::Result<()> {
/// let client = Client::new(Endpoint::parse("http://127.0.0.1:7717")?, "bk_person_0123");
/// let mut feed = client.follow(Follow::aaep().language("es"));
/// loop {
///     let next = feed.next().await?;
///     println!("{}", next.event["summary_normal"]);
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Feed {
    client: Client,
    follow: Follow,
    /// What was asked for, and what was agreed on.
    terms: Option<(Value, Value)>,
    stream: Option<EventStream>,
    patience: Duration,
    exhausted: bool,
}

impl Client {
    /// Follows what the gateway tells. It connects when the first event is wanted.
    pub fn follow(&self, follow: Follow) -> Feed {
        Feed {
            client: self.clone(),
            follow,
            terms: None,
            stream: None,
            patience: PATIENCE,
            exhausted: false,
        }
    }

    /// Subscribes as AAEP has it: `capabilities` are what the subscriber wants, [`Feed::agreed`] is what it gets.
    /// [`Error::Status`] where the gateway cannot serve it.
    pub async fn subscribe(&self, subscriber: &str, capabilities: &Value) -> Result<Feed> {
        let request = json!({
            "type": "subscription.request", "aaep_version": "1.0.0",
            "subscriber_id": subscriber, "capabilities": capabilities,
        });
        let mut feed = self.follow(Follow::aaep());
        feed.agree(request).await?;
        Ok(feed)
    }
}

impl Feed {
    /// Tries this long to connect again before it gives up; a minute if not said otherwise.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Where it stands: what a later [`Follow::after`] goes on from.
    pub fn cursor(&self) -> Option<&str> {
        self.follow.after.as_deref()
    }

    /// Whether events were missed: the gateway no longer had what followed the cursor, and went on with what is open.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// What a subscription agreed on; `None` where nothing was negotiated.
    pub fn agreed(&self) -> Option<&Value> {
        self.terms.as_ref().map(|(_, agreed)| agreed)
    }

    /// The next event. Cuts are mended; an error is final: the gateway refuses, or was away for longer than the patience.
    pub async fn next(&mut self) -> Result<FeedEvent> {
        let mut pause = FIRST_PAUSE;
        let mut since: Option<Instant> = None;
        loop {
            let failed = match self.try_next().await {
                Ok(Some(event)) => return Ok(event),
                // Once it is nothing; again and again without an event it is.
                Ok(None) => Error::Protocol { problem: "the gateway ends its streams at once" },
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => error,
            };
            self.stream = None;
            if since.get_or_insert_with(Instant::now).elapsed() >= self.patience {
                return Err(failed);
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Changes what was agreed on: only what `capabilities` name. Where that cannot be, the subscription ends.
    pub async fn renegotiate(&mut self, capabilities: &Value) -> Result<()> {
        let id = self.subscription().ok_or(NOT_SUBSCRIBED)?;
        let body = json!({ "capabilities": capabilities });
        let path = format!("{SUBSCRIPTIONS}/{}", segment(&id));
        let agreed = self.client.json(Method::PATCH, &path, Some(&body)).await?;
        if let Some((request, before)) = &mut self.terms {
            *before = agreed;
            // Asked for anew after a restart of the gateway, it is asked for as changed.
            let asked = request.get_mut("capabilities").and_then(Value::as_object_mut);
            if let (Some(asked), Some(changed)) = (asked, capabilities.as_object()) {
                asked.extend(changed.clone());
            }
        }
        Ok(())
    }

    /// Ends a subscription, so that the gateway need not wait for it to come back.
    pub async fn close(self) -> Result<()> {
        let Some(id) = self.subscription() else { return Ok(()) };
        let path = format!("{SUBSCRIPTIONS}/{}", segment(&id));
        self.client.json(Method::DELETE, &path, None).await.map(|_| ())
    }

    /// The next event of the stream as it is; `None` where it ended.
    async fn try_next(&mut self) -> Result<Option<FeedEvent>> {
        if self.stream.is_none() {
            let opened = self.connect().await?;
            self.exhausted |= opened.is_exhausted();
            self.stream = Some(opened);
        }
        let Some(stream) = &mut self.stream else { return Ok(None) };
        loop {
            let Some(message) = stream.next().await.transpose()? else {
                self.stream = None;
                return Ok(None);
            };
            // Control frames are about the subscription, and have no place.
            if let Message { id: Some(cursor), data, .. } = message {
                let event = serde_json::from_str(&data)?;
                self.follow.after = Some(cursor.clone());
                return Ok(Some(FeedEvent { cursor, event }));
            }
        }
    }

    async fn connect(&mut self) -> Result<EventStream> {
        match (self.client.open_at(&self.follow).await, &self.terms) {
            // Subscriptions end with the gateway: agree anew, and go on from the same place.
            (Err(Error::NotFound { .. }), Some((request, _))) => {
                self.agree(request.clone()).await?;
                self.client.open_at(&self.follow).await
            }
            (opened, _) => opened,
        }
    }

    async fn agree(&mut self, request: Value) -> Result<()> {
        let agreed = self.client.post(SUBSCRIPTIONS, &request).await?;
        let id = agreed.get("subscription_id").and_then(Value::as_str);
        let id = id.ok_or(Error::Protocol { problem: "the gateway named no subscription" })?;
        self.follow =
            std::mem::replace(&mut self.follow, Follow::aaep()).with("subscription_id", id);
        self.terms = Some((request, agreed));
        Ok(())
    }

    fn subscription(&self) -> Option<String> {
        self.agreed()?.get("subscription_id")?.as_str().map(str::to_owned)
    }
}

const NOT_SUBSCRIBED: Error =
    Error::Protocol { problem: "nothing was negotiated; subscribe first" };

impl Client {
    async fn open_at(&self, follow: &Follow) -> Result<EventStream> {
        let url = follow.url();
        match &follow.after {
            Some(cursor) => self.resume(&url, SSE, cursor).await,
            None => self.stream(Method::GET, &url, None, SSE).await,
        }
    }
}

/// Whether trying again would bring the same.
fn is_final(error: &Error) -> bool {
    match error {
        Error::NoGateway { .. }
        | Error::TimedOut(_)
        | Error::Http(HttpError::NoAnswer(_) | HttpError::Broken(_)) => false,
        Error::Status { status, .. } => !matches!(status, 429 | 502..=504),
        _ => true,
    }
}
