//! What AAEP subscribers agreed on, and their streams.
//!
//! A subscription belongs to the key that made it: nobody else can follow, change or end it, whoever knows its id.
//! What is honoured is never above what was asked. Subscriptions live in memory and end with the gateway; a subscriber
//! subscribes again and goes on from the last event it saw.
//!
//! Asks are awaited from the person, at every door, and from no subscription: the end of one leaves them open. A
//! subscriber that is the person's only way to answer says so (`banister.sole_answerer`); when it goes, what is open
//! gets its default, as AAEP has it.

use std::time::Duration;

use banister_events::aaep::event::{Producer, Type, VERSION};
use banister_events::aaep::handshake::{
    Accepted, Capabilities, Message, Rejected, RejectionCode, Renegotiate, Request,
};
use banister_events::aaep::shape::{Limits, Terms};
use banister_events::event::Protocol;
use banister_events::finding::Severity;
use banister_events::{check, id};
use jiff::SignedDuration;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::keys::{Guest, Scope};
use crate::{Gateway, manifest, random};

mod stream;
pub(crate) mod table;

pub(crate) use stream::{SocketMessage, StreamSink, SubscriptionStream};
pub(crate) use table::{Denied, StreamOrder, owner};
use table::{MOST, SubscriptionEntry, owned};

/// How many of them may belong to one key.
const MOST_OF_ONE: usize = 1_536;
/// How long a subscription is kept that nobody follows.
const GRACE: SignedDuration = SignedDuration::from_mins(1);
/// The same where asks wait on it: a cut that is mended at once refuses nothing.
const SOLE_GRACE: SignedDuration = SignedDuration::from_secs(15);
/// When to try again where there are too many.
const RETRY: Duration = Duration::from_mins(1);
/// The prefix of our own capabilities.
const OWN: &str = "banister";

/// What stands at the end of the cursors that subscriptions of a key were once sent: a cursor of another key's is
/// refused.
pub(crate) fn mark(owner: &str) -> String {
    id::derive("", &["cursor", owner]).chars().take(8).collect()
}

impl Gateway {
    /// Agrees with a subscriber, or says why not.
    pub(crate) fn subscribe(
        &self,
        guest: &Guest,
        message: &Value,
    ) -> Result<(Box<Accepted>, Terms), Box<Rejected>> {
        let replies = guest.may(Scope::Answer);
        let (accepted, terms) = self.negotiate(message, replies)?;
        let sole = replies && is_sole(&accepted.honored_capabilities);
        let owner = owner(guest);
        let now = self.clock.now();
        let mut entries = self.subscriptions.lock();
        let of_one = entries.values().filter(|entry| entry.owner == owner).count();
        if entries.len() >= MOST || of_one >= MOST_OF_ONE {
            let mut rejected = rejected(
                RejectionCode::RateLimit,
                "There are too many subscriptions; close one, or try again later.",
            );
            rejected.retry_after_seconds = Some(RETRY.as_secs());
            return Err(rejected);
        }
        let entry = SubscriptionEntry {
            owner,
            replies,
            terms: terms.clone(),
            sole,
            orders: None,
            left: now,
        };
        entries.insert(accepted.subscription_id.clone(), entry);
        Ok((accepted, terms))
    }

    /// What would be agreed on, and under which id.
    pub(crate) fn negotiate(
        &self,
        message: &Value,
        replies: bool,
    ) -> Result<(Box<Accepted>, Terms), Box<Rejected>> {
        let request = read(message)?;
        let limits = limits(replies);
        let (terms, mut honoured, notes) = Terms::negotiate(&request.capabilities, &limits);
        servable(&terms)?;
        if replies && is_sole(&request.capabilities) {
            honoured.unknown.insert(OWN.to_owned(), json!({ "sole_answerer": true }));
        }
        let id = random::token::<16>().map_err(|error| {
            tracing::error!(%error, "A subscription got no id.");
            rejected(RejectionCode::Unknown, "The gateway could not make a subscription.")
        })?;
        let accepted = self.accepted(format!("sub_{id}"), honoured, &notes);
        Ok((Box::new(accepted), terms))
    }

    /// Changes what was agreed on. Where that cannot be, the subscription ends.
    pub(crate) fn renegotiate(
        &self,
        guest: &Guest,
        message: &Value,
    ) -> Result<Box<Accepted>, Box<Rejected>> {
        let id = message.get("subscription_id").and_then(Value::as_str).unwrap_or_default();
        let mut entries = self.subscriptions.lock();
        let entry = entries.get_mut(id).filter(|entry| entry.owner == owner(guest));
        let Some(entry) = entry else {
            let message = "You have no such subscription.";
            return Err(rejected(RejectionCode::AuthorizationDenied, message));
        };
        let changed = self.change(id, entry, message);
        if let Err(rejected) = &changed
            && let Some(orders) = entries.remove(id).and_then(|entry| entry.orders)
        {
            let message = serde_json::to_value(rejected).unwrap_or_default();
            let _sent = orders.try_send(StreamOrder::Close(message));
        }
        changed
    }

    fn change(
        &self,
        id: &str,
        entry: &mut SubscriptionEntry,
        message: &Value,
    ) -> Result<Box<Accepted>, Box<Rejected>> {
        let Message::Renegotiate(asked) = parse(message)? else {
            return Err(rejected(RejectionCode::Unknown, "This does not renegotiate anything."));
        };
        let Renegotiate { capabilities, .. } = *asked;
        // The protocol has no schema for this message. What it wants has to be what could be asked for at first.
        parse(&json!({
            "type": "subscription.request", "aaep_version": VERSION, "subscriber_id": id,
            "capabilities": message.get("capabilities"),
        }))?;
        let limits = limits(entry.replies);
        let (terms, honoured, notes) =
            Terms::negotiate(&entry.terms.changed(&capabilities), &limits);
        servable(&terms)?;
        let accepted = self.accepted(id.to_owned(), honoured, &notes);
        if let Some(orders) = &entry.orders {
            let answer = serde_json::to_value(&accepted).unwrap_or_default();
            let order = StreamOrder::Change { changed: Box::new(capabilities), limits, answer };
            if let Err(mpsc::error::TrySendError::Full(_)) = orders.try_send(order) {
                let message = "The stream of this subscription is not read.";
                return Err(rejected(RejectionCode::RateLimit, message));
            }
        }
        entry.terms = terms;
        Ok(Box::new(accepted))
    }

    fn accepted(&self, id: String, honoured: Capabilities, notes: &[String]) -> Accepted {
        let wants_signed = honoured.accept_signed_manifests_only == Some(true);
        let uri = self.address.get().map(|at| format!("http://{at}{}", manifest::PATH));
        Accepted {
            subscription_id: id,
            aaep_version: VERSION.to_owned(),
            producer: Producer {
                agent_id: manifest::AGENT_ID.to_owned(),
                agent_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                agent_name: Some("Banister".to_owned()),
                model: None,
                manifest_uri: uri.clone(),
                unknown: Map::new(),
            },
            honored_capabilities: honoured,
            manifest_uri: uri,
            signed_manifest: wants_signed.then(|| self.manifest.signed().to_owned()),
            negotiation_notes: (!notes.is_empty()).then(|| notes.join(" ")),
            unknown: Map::new(),
        }
    }

    /// Ends a subscription; says whether it was there. What waited on it alone gets its default.
    pub(crate) async fn unsubscribe(&self, guest: &Guest, id: &str) -> Result<(), Denied> {
        let entry = {
            let mut entries = self.subscriptions.lock();
            owned(&entries, id, guest)?;
            entries.remove(id)
        };
        let Some(entry) = entry else { return Err(Denied::Unknown) };
        if let Some(orders) = entry.orders {
            let message = json!({
                "type": "subscription.close", "subscription_id": id,
                "reason_code": "closed", "reason_message": "The subscription was closed.",
            });
            let _sent = orders.try_send(StreamOrder::Close(message));
        }
        if entry.sole {
            self.desk.lapse().await;
        }
        Ok(())
    }

    /// Drops what nobody follows any more. Called about once a second.
    pub(crate) async fn sweep_subscriptions(&self) {
        let now = self.clock.now();
        let lapsed = {
            let mut entries = self.subscriptions.lock();
            let before = entries.values().filter(|entry| entry.sole).count();
            entries.retain(|_, entry| {
                if entry.orders.as_ref().is_some_and(mpsc::Sender::is_closed) {
                    entry.orders = None;
                    entry.left = now;
                }
                let grace = if entry.sole { SOLE_GRACE } else { GRACE };
                entry.orders.is_some() || now.duration_since(entry.left) < grace
            });
            entries.values().filter(|entry| entry.sole).count() < before
        };
        if lapsed {
            self.desk.lapse().await;
        }
    }
}

/// A refusal.
pub(crate) fn rejected(code: RejectionCode, message: &str) -> Box<Rejected> {
    Box::new(Rejected {
        reason_code: code,
        reason_message: message.to_owned(),
        retry_after_seconds: None,
        alternative_manifest_uri: None,
        unknown: Map::new(),
    })
}

fn limits(replies: bool) -> Limits {
    Limits { replies, ..Limits::default() }
}

fn is_sole(capabilities: &Capabilities) -> bool {
    let own = capabilities.unknown.get(OWN);
    own.and_then(|own| own.get("sole_answerer")).and_then(Value::as_bool) == Some(true)
}

/// A request that can be agreed on. The version comes first: what another one looks like is not known.
fn read(message: &Value) -> Result<Box<Request>, Box<Rejected>> {
    let version = message.get("aaep_version").and_then(Value::as_str);
    if let Some(version) = version
        && version.split('.').next() != VERSION.split('.').next()
    {
        let message = format!("AAEP {VERSION} is spoken here.");
        return Err(rejected(RejectionCode::VersionUnsupported, &message));
    }
    match parse(message)? {
        Message::Request(request) => Ok(request),
        _ => Err(rejected(RejectionCode::Unknown, "This does not ask for a subscription.")),
    }
}

fn parse(message: &Value) -> Result<Message, Box<Rejected>> {
    let findings = check::value(Protocol::Aaep, message);
    let wrong = findings.iter().find(|finding| finding.rule.severity >= Severity::Error);
    if let Some(finding) = wrong {
        let pointer = if finding.pointer.is_empty() { "/" } else { finding.pointer.as_str() };
        let text = format!("{} at {pointer}: {}", finding.rule.code, finding.message);
        let text = banister_events::text::shorten(&text, 1_000).into_owned();
        return Err(rejected(RejectionCode::Unknown, &text));
    }
    Message::parse(message.to_string().as_bytes())
        .map_err(|_| rejected(RejectionCode::Unknown, "This message cannot be read."))
}

/// Who wants none of the types that there are asks for nothing.
fn servable(terms: &Terms) -> Result<(), Box<Rejected>> {
    if Type::ALL.into_iter().any(|kind| terms.wants(kind.name())) {
        return Ok(());
    }
    let message = "The filters leave out every type of event that there is.";
    Err(rejected(RejectionCode::CapabilitiesIncompatible, message))
}
