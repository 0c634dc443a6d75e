//! What producer and subscriber say to each other about the events to come.
//!
//! These messages are no events: they have no envelope. The protocol has schemas for five of them; renegotiation, the
//! close and the manifest are known from its text alone, so fields of one's own are no error there.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::event::fields::{
    BLOCKS, COUNT, LABEL, LANGUAGE, SHORT, SIGNED, SUBSCRIPTION_ID, URI, VERSION, set,
};
use super::event::{Boundary, Context, Producer, RiskLevel, Verbosity};
use super::reply::{ClarificationReply, ConfirmationReply};
use crate::check::shape::{Kind, NAME, STRING, Shape};
use crate::record::{Error, Record, record, words};

const CAPABILITIES: Kind = Kind::RecordAnd(&Capabilities::OPEN, &Kind::Object);
const LEVEL: Kind = Kind::Integer { min: 1, max: 3 };
const PATTERNS: Kind = set(0, usize::MAX, &LABEL);
const SOME_TEXT: Kind = Kind::Text { min: 0, max: 4096 };

/// A list of names, in which one may stand twice.
const fn list(item: &'static Kind) -> Kind {
    Kind::List { min: 0, max: usize::MAX, distinct: false, item }
}

record! {
    /// A subscriber asks for events, and says what it can do.
    pub strict Request = "subscription.request" {
        /// The version of the protocol that the subscriber speaks.
        must aaep_version: String = VERSION,
        /// A stable name of the subscriber.
        must subscriber_id: String = LABEL,
        /// A name that can be spoken.
        may subscriber_name: String = Kind::Text { min: 0, max: 256 },
        /// The subscriber's version.
        may subscriber_version: String = Kind::Text { min: 0, max: 64 },
        /// Where the subscriber's manifest is.
        may subscriber_manifest_uri: String = URI,
        /// Joins the request to what other systems recorded.
        may correlation_id: String = STRING,
        /// What the subscriber can and wants to take.
        must capabilities: Capabilities = CAPABILITIES,
        /// What extensions add, one object under the prefix of each.
        may extensions: Map<String, Value> = BLOCKS,
    }

    /// What a subscriber can and wants to take. Everything has a default; `{}` means all of them.
    ///
    /// Extensions add objects of their own under their prefix; those are in `unknown`.
    #[derive(Default)]
    pub strict Capabilities {
        /// How many events it takes, critical ones aside; any number where it is not said.
        may max_events_per_second: u64 = Kind::Integer { min: 1, max: 100_000 },
        /// How much text it wants; normal where it is not said.
        may preferred_verbosity: Verbosity = Kind::Word(Verbosity::WORDS),
        /// In which languages, the best first; en-US where it is not said.
        may languages: Vec<String> = set(1, 32, &LANGUAGE),
        /// Whether it can answer confirmations; no where it is not said.
        may supports_confirmation_reply: bool = Kind::Bool,
        /// Whether it can answer clarifications; no where it is not said.
        may supports_clarification_reply: bool = Kind::Bool,
        /// Where answers are to be cut; behind sentences and at the end where it is not said.
        may coalesce_boundaries: Vec<Boundary> = set(1, 5, &Kind::Word(Boundary::WORDS)),
        /// Which types it wants; all core types where it is not said.
        may event_filters: EventFilters = Kind::Record(&EventFilters::SHAPE),
        /// At which levels of the protocol it can work; 1 where it is not said.
        may supported_conformance_levels: Vec<u64> = set(1, 3, &LEVEL),
        /// The vocabularies that it understands.
        may supported_extensions: Vec<String> = set(0, 64, &URI),
        /// How much at once is bearable; medium where it is not said.
        may cognitive_load: RiskLevel = Kind::Word(RiskLevel::WORDS),
        /// How many words a minute it speaks or shows.
        may pace_wpm: u64 = Kind::Integer { min: 50, max: 1000 },
        /// Whether it refuses producers without a signed manifest.
        may accept_signed_manifests_only: bool = Kind::Bool,
    }

    /// Which types of events a subscriber wants: exact names, or beginnings with a `*` behind. Critical events come
    /// whatever it says.
    #[derive(Default)]
    pub strict EventFilters {
        /// What it wants.
        may include: Vec<String> = PATTERNS,
        /// What it does not want, though it is in what it wants.
        may exclude: Vec<String> = PATTERNS,
    }

    /// The producer agrees, to no more than was asked for.
    pub strict Accepted = "subscription.accepted" {
        /// The subscription's id.
        must subscription_id: String = SUBSCRIPTION_ID,
        /// The version that both speak.
        must aaep_version: String = VERSION,
        /// Who will emit the events.
        must producer: Producer = Kind::Record(&Producer::SHAPE),
        /// What the producer will keep to.
        must honored_capabilities: Capabilities = CAPABILITIES,
        /// Where the producer's manifest is.
        may manifest_uri: String = URI,
        /// The manifest itself, signed.
        may signed_manifest: String = SIGNED,
        /// What people should know about the outcome.
        may negotiation_notes: String = SOME_TEXT,
    }

    /// The producer refuses.
    pub strict Rejected = "subscription.rejected" {
        /// Why, in one word.
        must reason_code: RejectionCode = Kind::Word(RejectionCode::WORDS),
        /// Why, for people.
        must reason_message: String = SHORT,
        /// When another try makes sense.
        may retry_after_seconds: u64 = Kind::Integer { min: 0, max: 86_400 },
        /// Another producer's manifest.
        may alternative_manifest_uri: String = URI,
    }

    /// A subscriber asks for other terms; what it does not name stays as it was.
    pub strict Renegotiate = "subscription.renegotiate" {
        /// The subscription.
        must subscription_id: String = SUBSCRIPTION_ID,
        /// What is to change.
        must capabilities: Capabilities = CAPABILITIES,
    }

    /// Either side ends the subscription.
    pub strict Close = "subscription.close" {
        /// The subscription.
        must subscription_id: String = SUBSCRIPTION_ID,
        /// Why, in one word such as `subscriber_shutdown`.
        must reason_code: String = LABEL,
        /// Why, for people.
        must reason_message: String = SOME_TEXT,
    }

    /// What a producer is and can do, published under a well-known address.
    pub strict Manifest = "aaep:producer.manifest" {
        /// The vocabularies in use: the core context, or a list that it begins.
        may context as "@context": Context = Kind::Either(&[STRING, Kind::List { min: 1, max: usize::MAX, distinct: false, item: &STRING }]),
        /// A stable name of the agent.
        must agent_id: String = NAME,
        /// The agent's version.
        may agent_version: String = NAME,
        /// A name that can be spoken.
        may agent_name: String = NAME,
        /// The versions of the protocol that it speaks.
        may aaep_versions_supported: Vec<String> = list(&VERSION),
        /// The levels at which it works.
        may conformance_levels_supported: Vec<u64> = list(&LEVEL),
        /// The transports it can be reached by, such as `sse` or `websocket`.
        may transports_supported: Vec<String> = list(&NAME),
        /// The languages of its texts.
        may languages_supported: Vec<String> = list(&LANGUAGE),
        /// The types it emits; a name may end in `*`.
        may event_types_emitted: Vec<String> = list(&NAME),
        /// The vocabularies it adds.
        may extensions_supported: Vec<String> = list(&URI),
        /// How much text it sends by default.
        may default_verbosity: Verbosity = Kind::Word(Verbosity::WORDS),
        /// How many subscriptions it serves at once.
        may max_concurrent_subscriptions: u64 = COUNT,
        /// Whom to turn to.
        may contact: Value = Kind::Some,
    }
}

words! {
    /// Why a producer refuses a subscription.
    pub enum RejectionCode {
        /// It does not speak the version.
        VersionUnsupported = "version_unsupported",
        /// It has no signed manifest, and one was asked for.
        ManifestSignatureRequired = "manifest_signature_required",
        /// There is nothing it could serve.
        CapabilitiesIncompatible = "capabilities_incompatible",
        /// It serves too many already.
        RateLimit = "rate_limit",
        /// It does not know who asks.
        AuthenticationRequired = "authentication_required",
        /// Whoever asks may not.
        AuthorizationDenied = "authorization_denied",
        /// It cannot be reached this way.
        TransportUnavailable = "transport_unavailable",
        /// Something else.
        Unknown = "unknown",
    }
}

/// Declares the messages: variant, type and how much is known about their fields.
macro_rules! messages {
    ($($Message:ident = $name:literal $shape:ident;)*) => {
        /// Any message of the conversation about events, told apart by its `type`.
        ///
        /// ```
        /// use banister_events::aaep::handshake::Message;
        /// let message = Message::parse(br#"{"type": "subscription.request", "aaep_version": "1.0.0",
        ///     "subscriber_id": "reader", "capabilities": {"pace_wpm": 180, "acme": {"cues": true}}}"#)?;
        /// let Message::Request(request) = &message else { panic!("another message") };
        /// assert_eq!(request.capabilities.pace_wpm, Some(180));
        /// assert_eq!(request.capabilities.unknown["acme"]["cues"], true);
        /// # Ok::<(), banister_events::record::Error>(())
        /// ```
        #[derive(Debug, Clone, PartialEq, serde::Serialize)]
        #[serde(untagged)]
        pub enum Message {
            $(#[doc = concat!("See [`", stringify!($Message), "`].")] $Message(Box<$Message>),)*
        }

        impl Message {
            /// The types of these messages.
            pub const TYPES: &'static [&'static str] = &[$($name),*];

            fn take(object: Map<String, Value>) -> Result<Self, serde_json::Error> {
                let name = object.get("type").and_then(Value::as_str).unwrap_or_default();
                match name {
                    $($name => Box::deserialize(Value::Object(object)).map(Self::$Message),)*
                    _ => Err(serde::de::Error::custom("type: no message of the handshake")),
                }
            }
        }

        /// The fields of a message of this type.
        pub(crate) fn shape(type_name: &str) -> Option<&'static Shape> {
            Some(match type_name {
                $($name => &$Message::$shape,)*
                _ => return None,
            })
        }

        /// What a message of this type is, for schemas.
        pub(crate) fn about(type_name: &str) -> &'static str {
            match type_name {
                $($name => $Message::ABOUT,)*
                _ => "",
            }
        }
    };
}

messages! {
    Request = "subscription.request" SHAPE;
    Accepted = "subscription.accepted" SHAPE;
    Rejected = "subscription.rejected" SHAPE;
    Renegotiate = "subscription.renegotiate" OPEN;
    Close = "subscription.close" OPEN;
    ConfirmationReply = "confirmation.reply" SHAPE;
    ClarificationReply = "clarification.reply" SHAPE;
    Manifest = "aaep:producer.manifest" OPEN;
}

impl Message {
    /// Decodes one message.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        crate::record::parse(bytes)
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::take(Map::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
