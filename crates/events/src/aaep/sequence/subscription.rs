//! What was negotiated, and whether the stream keeps to it.
//!
//! Nothing on the wire ties an answer to its request or an event to its subscription, so much is left unjudged: an
//! answer while several requests wait for one, events while more than one subscription may exist, messages that look
//! like a second copy. Events that were on their way when the terms changed pass under the older ones. A recording
//! before the filters looks like a producer without them, and a silent producer like one that answered elsewhere;
//! hence warnings and notes.

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::aaep::check::NEWER;
use crate::aaep::check::control::CAN_REPLY;
use crate::aaep::event::{Type, is_id};
use crate::check::recent::{Recent, fingerprint, key};
use crate::check::rules;
use crate::check::shape::{quote, says, text};
use crate::finding::Finding;
use crate::json::{Parser, View};

mod terms;

use terms::{Budget, FILTERS, Filters, RATE};

rules! {
    WIDER = "AAEP-5.4.4-R1" Error Producer
        "Honoured capabilities are not wider than the requested ones.",
        "Honour at most what was asked for.";
    UNSIGNED = "AAEP-5.3.1.12-R1" Error Producer
        "Who demands a signed manifest gets one or is rejected.",
        "Send signed_manifest, or reject with manifest_signature_required.";
    UNANSWERED = "AAEP-9.5.1-3" Note Producer
        "A subscription.request is answered.",
        "Send accepted or rejected, never silence.";
    UNANSWERED_TERMS = "AAEP-5.7-R2" Note Producer
        "A renegotiation is answered.",
        "Send accepted with the new terms, or rejected.";
    FILTERED = "AAEP-5.3.1.7-R1" Warning Producer
        "What the filters exclude is not sent.",
        "Apply the honoured filters; only critical events pass.";
    TOO_FAST = "AAEP-5.3.1.1-R1" Warning Producer
        "Events keep to the honoured rate.",
        "Merge and hold what is over the rate.";
    AFTER_CLOSE = "AAEP-5.8.2-R1" Warning Producer
        "Nothing is sent to a closed subscription.",
        "Stop at subscription.close.";
    STRANGER = "AAEP-10.T1-R2" Note Subscriber
        "A reply comes over a subscription that was accepted.",
        "Use the subscription_id that the producer gave.";
}

/// How many requests may wait for their answer; the oldest is let go.
const WAITING: usize = 64;

/// The longest declaration of capabilities that is kept to compare the answer with.
const LONGEST: usize = 8 * 1024;

/// How long after the close an event may still be on its way.
const IN_FLIGHT: i128 = 5_000_000_000;

/// Follows the handshakes of a stream, and holds events to what they agreed on.
#[derive(Debug, Default, Clone)]
pub(crate) struct Subscriptions {
    requests: VecDeque<Request>,
    renegotiations: VecDeque<Renegotiation>,
    accepted: Recent<Subscription>,
    /// What subscriptions agreed on, those that were accepted last.
    agreed: VecDeque<Agreed>,
    /// How many subscriptions were accepted and how many of them are closed.
    count: u64,
    closed: u64,
    /// Whether the recording shows that others listen, too.
    others: bool,
    /// Whether a subscription was accepted that has no id to know it by.
    nameless: bool,
    /// The rejection that came last.
    rejected: Option<u64>,
    thins: bool,
    /// Whose events the first subscription is about.
    agent: Option<u64>,
    /// The terms of the first subscription.
    now: Terms,
    /// Those that events may be under that were on their way at the last change.
    before: Option<Terms>,
    budget: Option<Budget>,
    /// Types that were sent in spite of the filters.
    told: Vec<u64>,
    /// The newest event before the last subscription was closed.
    newest: Option<i128>,
}

/// A request that has no answer yet.
#[derive(Debug, Clone)]
struct Request {
    subscriber: Box<str>,
    /// None where the answer cannot be compared with it.
    asked: Option<Box<str>>,
    /// The version that it asks for: major and minor.
    version: Option<(u64, u64)>,
    thins: bool,
}

/// What a subscription agreed on, with all that was not changed since.
#[derive(Debug, Clone)]
struct Agreed {
    id: Box<str>,
    capabilities: Box<str>,
}

/// A renegotiation that has no answer yet.
#[derive(Debug, Clone)]
struct Renegotiation {
    id: Box<str>,
    /// None where the answer cannot be compared with it.
    asked: Option<Box<str>>,
    /// Whether what came may have been the answer.
    answered: bool,
}

#[derive(Debug, Clone, Copy)]
struct Subscription {
    /// The message that accepted it last.
    print: u64,
    closed: bool,
    /// Whether its subscriber said that it does not answer confirmations.
    mute: bool,
}

/// What was agreed on.
#[derive(Debug, Clone, Default)]
struct Terms {
    filters: Option<Filters>,
    rate: Option<u32>,
}

impl Subscriptions {
    /// Whether the agreed terms may leave events out, so that numbers are missing by right.
    pub(super) fn thins(&self) -> bool {
        self.thins
    }

    /// Whether a subscription was accepted.
    pub(super) fn any_accepted(&self) -> bool {
        self.count > 0
    }

    /// Everything wrong with a message about events, given those before it.
    pub(super) fn message(&mut self, kind: &str, object: View<'_>, findings: &mut Vec<Finding>) {
        match kind {
            "subscription.request" => self.request(object),
            "subscription.renegotiate" => self.renegotiate(object),
            "subscription.accepted" => self.accept(object, findings),
            "subscription.rejected" => self.reject(fingerprint(object)),
            "subscription.close" => {
                if let Some(id) = id(object) {
                    self.close(&id);
                }
            }
            "confirmation.reply" => {
                self.stranger(object, findings);
                self.unexpected(object, findings);
            }
            "clarification.reply" => self.stranger(object, findings),
            _ => {}
        }
    }

    fn request(&mut self, object: View<'_>) {
        let capabilities = object.get("capabilities");
        let subscriber = key(&text(object, "subscriber_id").unwrap_or_default());
        let thins = capabilities.is_some_and(thins);
        let (asked, version) = (capabilities.and_then(keep), version(object));
        self.requests.push_back(Request { subscriber, asked, version, thins });
        if self.requests.len() > 1 {
            self.doubt_requests();
        }
        if self.requests.len() > WAITING {
            self.requests.pop_front();
        }
    }

    /// What comes next may be the answer to any of them.
    fn doubt_requests(&mut self) {
        self.requests.iter_mut().for_each(|request| request.asked = None);
    }

    fn renegotiate(&mut self, object: View<'_>) {
        let Some(id) = id(object) else {
            return;
        };
        let asked = object.get("capabilities");
        self.thins |= asked.is_some_and(thins);
        match self.accepted.get_mut(&*id) {
            Some(subscription) => {
                let replies = asked.and_then(|asked| asked.get(REPLIES)).and_then(View::as_bool);
                subscription.mute &= replies != Some(true);
            }
            None => self.others = true,
        }
        if let Some(waiting) = self.renegotiations.iter_mut().find(|waiting| *waiting.id == *id) {
            waiting.asked = None;
            return;
        }
        let asked = asked.and_then(keep);
        self.renegotiations.push_back(Renegotiation { id: id.into(), asked, answered: false });
        if self.renegotiations.len() > WAITING {
            self.renegotiations.pop_front();
        }
    }

    fn accept(&mut self, object: View<'_>, findings: &mut Vec<Finding>) {
        let honoured = object.get("honored_capabilities");
        self.thins |= honoured.is_some_and(thins);
        let Some(id) = id(object) else {
            (self.nameless, self.others) = (true, true);
            self.count += 1;
            self.requests.pop_front();
            return;
        };
        let print = fingerprint(object);
        let known = self.accepted.get(&*id).copied();
        let is_copy = known.is_some_and(|known| known.print == print);
        let waiting = self.renegotiations.iter().position(|waiting| *waiting.id == *id);
        let asked = if let Some(at) = waiting {
            self.answer_terms(at, is_copy)
        } else if known.is_some() {
            // Neither a new subscription nor an answer that was waited for: perhaps the id is used again.
            self.requests.pop_front();
            self.doubt_requests();
            None
        } else {
            self.answer_request(object, findings)
        };
        let asked = self.all_that_was_asked(&id, asked, waiting.is_some() && !is_copy);
        if let (Some(asked), Some(honoured)) = (&asked, honoured) {
            compare(asked, honoured, findings);
        }
        if !is_copy {
            self.keep_agreed(&id, asked.as_deref(), honoured);
        }
        if known.is_none() {
            let mute = asked.is_some_and(|asked| {
                see(&asked, |asked| asked.get(REPLIES).and_then(View::as_bool) == Some(false))
            });
            self.first_accept(&id, Subscription { print, closed: false, mute }, object);
        } else if let Some(subscription) = self.accepted.get_mut(&*id) {
            self.closed -= u64::from(subscription.closed);
            (subscription.print, subscription.closed) = (print, false);
        }
        if !is_copy {
            self.agree(known.is_some(), waiting.is_some(), honoured);
        }
    }

    /// What is asked for in the whole: a renegotiation leaves out what is to stay as it was agreed on.
    fn all_that_was_asked(
        &self,
        id: &str,
        asked: Option<Box<str>>,
        renegotiated: bool,
    ) -> Option<Box<str>> {
        let asked = asked?;
        let before = self.agreed.iter().find(|agreed| renegotiated && *agreed.id == *id);
        let Some(before) = before else { return Some(asked) };
        let mut parser = Parser::default();
        let changes = parser.parse(asked.as_bytes()).ok()?;
        terms::merged(&before.capabilities, changes.root())
    }

    /// Remembers what was agreed on: what was asked for, where the answer says nothing else.
    fn keep_agreed(&mut self, id: &str, asked: Option<&str>, honoured: Option<View<'_>>) {
        self.agreed.retain(|agreed| *agreed.id != *id);
        let honoured = honoured.filter(|honoured| keep(*honoured).is_some());
        let capabilities =
            honoured.and_then(|honoured| terms::merged(asked.unwrap_or("{}"), honoured));
        if let Some(capabilities) = capabilities.filter(|kept| kept.len() <= LONGEST) {
            self.agreed.push_back(Agreed { id: id.into(), capabilities });
        }
        if self.agreed.len() > WAITING {
            self.agreed.pop_front();
        }
    }

    /// What was asked for in a renegotiation, where this is its answer for certain.
    fn answer_terms(&mut self, at: usize, is_copy: bool) -> Option<Box<str>> {
        if is_copy {
            // Either the terms stay as they are, or it is the old answer over a second channel.
            if let Some(waiting) = self.renegotiations.get_mut(at) {
                waiting.answered = true;
            }
            return None;
        }
        let waiting = self.renegotiations.remove(at)?;
        waiting.asked.filter(|_| self.requests.is_empty())
    }

    /// What was asked for in a request, where this is its answer for certain.
    fn answer_request(
        &mut self,
        object: View<'_>,
        findings: &mut Vec<Finding>,
    ) -> Option<Box<str>> {
        let request = self.requests.pop_front()?;
        self.thins |= request.thins;
        let asked = request.asked?;
        if let (Some(wanted), Some(given)) = (request.version, version(object))
            && given > wanted
        {
            let message = format!("{}.{} was asked for", wanted.0, wanted.1);
            findings.push(NEWER.at("/aaep_version", message));
        }
        let demands = see(&asked, |asked| {
            asked.get("accept_signed_manifests_only").and_then(View::as_bool) == Some(true)
        });
        // The manifest that a URI leads to may be signed.
        let offers = ["/signed_manifest", "/manifest_uri", "/producer/manifest_uri"];
        if demands && offers.iter().all(|offer| object.pointer(offer).is_none()) {
            let message = "the subscriber takes signed manifests only, and there is none";
            findings.push(UNSIGNED.at("/signed_manifest", message));
        }
        Some(asked)
    }

    fn first_accept(&mut self, id: &str, subscription: Subscription, object: View<'_>) {
        self.accepted.first(id, subscription);
        self.count += 1;
        if self.count == 1 {
            self.agent = agent(object);
        } else if self.agent != agent(object) {
            self.agent = None;
        }
    }

    /// From now on these terms hold. Those of a renegotiation stay as they were where they are not named.
    fn agree(&mut self, again: bool, renegotiated: bool, honoured: Option<View<'_>>) {
        if self.count > 1 {
            return;
        }
        let older = if renegotiated { self.now.clone() } else { Terms::default() };
        let named = |name: &str| honoured.and_then(|honoured| honoured.get(name));
        let filters = match named(FILTERS) {
            Some(filters) => Filters::read(filters)
                .map(|filters| filters.or(older.filters.as_ref().unwrap_or(&Filters::default()))),
            None => older.filters,
        };
        let rate = match named(RATE) {
            Some(rate) => {
                rate.as_u64().and_then(|rate| u32::try_from(rate).ok()).filter(|rate| *rate > 0)
            }
            None => older.rate,
        };
        let before = std::mem::replace(&mut self.now, Terms { filters, rate });
        let either = before.rate.zip(rate).map(|(before, now)| before.max(now));
        self.budget = if again { either } else { rate }.map(Budget::new);
        self.before = again.then_some(before);
    }

    /// A rejection names nothing. It is the answer to a request, else the end of the one subscription whose terms
    /// were to change.
    fn reject(&mut self, print: u64) {
        let is_copy = self.rejected.replace(print) == Some(print);
        let request = self.requests.pop_front();
        let waiting = std::mem::take(&mut self.renegotiations);
        let certain = request.is_none() && !is_copy && waiting.len() == 1;
        if let Some(one) = waiting.front().filter(|one| certain && !one.answered) {
            self.close(&one.id);
        }
    }

    fn close(&mut self, id: &str) {
        self.renegotiations.retain(|waiting| *waiting.id != *id);
        match self.accepted.get_mut(id) {
            Some(subscription) => {
                self.closed += u64::from(!subscription.closed);
                subscription.closed = true;
            }
            None => self.others = true,
        }
    }

    fn stranger(&mut self, reply: View<'_>, findings: &mut Vec<Finding>) {
        let Some(id) = id(reply) else {
            return;
        };
        if self.accepted.get(&*id).is_some() {
            return;
        }
        self.others = true;
        if self.any_accepted() && !self.nameless && !self.accepted.forgot() {
            let message = format!("no subscription {} was accepted", quote(&id));
            findings.push(STRANGER.at("/subscription_id", message));
        }
    }

    /// Who said that it would not answer, and does.
    fn unexpected(&mut self, reply: View<'_>, findings: &mut Vec<Finding>) {
        let subscription = id(reply).and_then(|id| self.accepted.get_mut(&*id));
        if let Some(subscription) = subscription.filter(|subscription| subscription.mute) {
            subscription.mute = false;
            let message = "the subscription was requested without supports_confirmation_reply";
            findings.push(CAN_REPLY.at("/subscription_id", message));
        }
    }

    /// Everything wrong with an event, given what was agreed on before.
    pub(super) fn event(
        &mut self,
        kind: Option<Type>,
        object: View<'_>,
        nanos: Option<i128>,
        findings: &mut Vec<Finding>,
    ) {
        if self.count == 0 {
            self.others = true;
            return;
        }
        if self.others || self.agent.is_none() || agent(object) != self.agent {
            return;
        }
        if self.closed == self.count {
            findings.extend(self.late(nanos));
            return;
        }
        self.newest = self.newest.max(nanos);
        let critical = kind.is_some_and(Type::is_critical) || says(object, "urgency", "critical");
        if self.count > 1 || critical {
            return;
        }
        findings.extend(self.filtered(kind, object));
        if let (Some(budget), Some(nanos)) = (&mut self.budget, nanos)
            && !budget.pay(nanos)
        {
            let message = format!("the events come faster than {} a second", budget.rate);
            findings.push(TOO_FAST.at("/timestamp", message));
            self.budget = None;
        }
    }

    fn late(&mut self, nanos: Option<i128>) -> Option<Finding> {
        let late = nanos? > self.newest? + IN_FLIGHT;
        // Who asked again may have been accepted where the recording does not show it.
        let unsure = self.accepted.forgot() || !self.requests.is_empty();
        (late && !unsure).then(|| {
            self.newest = None;
            AFTER_CLOSE.at("/type", "every subscription of the recording is closed")
        })
    }

    fn filtered(&mut self, kind: Option<Type>, object: View<'_>) -> Option<Finding> {
        let omit = |terms: &Terms, name: &str| {
            terms.filters.as_ref().is_some_and(|filters| filters.omit(kind, name))
        };
        self.now.filters.as_ref()?;
        let name = text(object, "type")?;
        if !omit(&self.now, &name) || self.before.as_ref().is_some_and(|terms| !omit(terms, &name))
        {
            return None;
        }
        let print = fingerprint(object.get("type")?);
        if self.told.len() >= WAITING || self.told.contains(&print) {
            return None;
        }
        self.told.push(print);
        Some(FILTERED.at("/type", format!("the filters leave {} out", quote(&name))))
    }

    /// Everything that is wrong because the stream ends here.
    pub(super) fn finish(&mut self, findings: &mut Vec<Finding>) {
        for request in self.requests.drain(..) {
            let message = format!("the request of {} has no answer", quote(&request.subscriber));
            findings.push(UNANSWERED.at("", message));
        }
        for waiting in self.renegotiations.drain(..) {
            let open = self.accepted.get(&*waiting.id).is_some_and(|known| !known.closed);
            if open && !waiting.answered {
                let message = format!("the renegotiation of {} has no answer", quote(&waiting.id));
                findings.push(UNANSWERED_TERMS.at("", message));
            }
        }
    }
}

/// The version that a message names: major and minor.
fn version(object: View<'_>) -> Option<(u64, u64)> {
    let version = text(object, "aaep_version")?;
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

const REPLIES: &str = "supports_confirmation_reply";

/// The subscription that a message names. What is no id tells nothing apart.
fn id(object: View<'_>) -> Option<Cow<'_, str>> {
    text(object, "subscription_id").filter(|id| is_id("sub_", id))
}

/// Whether capabilities lead to a stream that lacks events.
fn thins(capabilities: View<'_>) -> bool {
    [RATE, FILTERS, "coalesce_boundaries"].iter().any(|name| capabilities.get(name).is_some())
}

/// Capabilities, kept for the answer.
fn keep(capabilities: View<'_>) -> Option<Box<str>> {
    let raw = capabilities.raw();
    (capabilities.is_object() && raw.len() <= LONGEST).then(|| raw.into())
}

/// Looks at capabilities that were kept.
fn see(kept: &str, look: impl FnOnce(View<'_>) -> bool) -> bool {
    Parser::default().parse(kept.as_bytes()).is_ok_and(|document| look(document.root()))
}

fn compare(asked: &str, honoured: View<'_>, findings: &mut Vec<Finding>) {
    let mut parser = Parser::default();
    let Ok(asked) = parser.parse(asked.as_bytes()) else {
        return;
    };
    for (name, message) in terms::wider(asked.root(), honoured) {
        findings.push(WIDER.at(format!("/honored_capabilities/{name}"), message));
    }
}

/// Who a message says that it is from.
fn agent(object: View<'_>) -> Option<u64> {
    object.pointer("/producer/agent_id").map(fingerprint)
}

#[cfg(test)]
#[path = "subscription_tests.rs"]
mod tests;
