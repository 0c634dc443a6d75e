//! The running service: doors in, pipeline, desk, delivery, pages.
//!
//! Two functions tell the whole story: `History::commit` (facts become history: durable, then on the desk, then visible)
//! and `Desk::decide` (one waiting action gets an answer before its deadline). Everything else builds what they take, or
//! reads what they leave. The modules, from the doors to what they stand on; `Cargo.toml` lists them in layers, and
//! `cargo xtask deps` checks that each imports from lower ones only:
//!
//! | module | what it does |
//! |---|---|
//! | [`serve`] | listens on a TCP port and two Unix sockets |
//! | `http` | the doors: who may come in, and to what |
//! | `spool` | what hooks kept while there was no gateway |
//! | `suite` | doors and a scripted agent for AAEP's conformance suite |
//! | [`ingest`] | pushed events become facts: in batches, with a receipt each |
//! | [`pipeline`] | a hook's payload becomes facts |
//! | `admission` | a message with its verdict becomes history: what hooks and `decide` share |
//! | `grants` | standing permissions become facts |
//! | `idle` | turns that nobody ends are ended |
//! | [`upstream`] | AG-UI agents that run through the gateway |
//! | [`attach`] | activities become an AG-UI run |
//! | `subscriptions` | what AAEP subscribers agreed on, and their streams |
//! | `deliver` | activities become a subscriber's stream |
//! | `manifest` | what the gateway says about itself, signed |
//! | `metrics` | what is counted |
//! | `desk` | a waiting action gets an answer |
//! | `history` | the one door into history |
//! | `asks` | which asks are open, and which were closed lately |
//! | [`keys`] | keys, scopes, login links, browser sessions |
//! | [`keep`] | how much is kept, and how long; what is signed |
//! | [`index`] | what can be searched |
//! | [`policy`] | the rules on disk, and which of them count |
//! | [`project`] | records become activities |
//! | `hub` | the live end of the journal |
//! | `facts` | the bodies of the gateway's own records |
//! | `rate`, [`clock`], [`random`] | how much one key may ask for; where time and random numbers come from |

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use banister_events::aep::mapping::Agents;
use banister_journal::{Appender, Journal};
use tokio_util::task::TaskTracker;

mod admission;
mod asks;
pub mod attach;
pub mod clock;
mod deliver;
mod desk;
mod error;
mod facts;
mod grants;
mod history;
mod http;
mod hub;
mod idle;
pub mod index;
pub mod ingest;
pub mod keep;
pub mod keys;
mod manifest;
mod metrics;
pub mod pipeline;
pub mod policy;
pub mod project;
pub mod random;
mod rate;
mod reads;
pub mod serve;
#[cfg(test)]
mod simulation;
mod spool;
mod subscriptions;
mod suite;
pub mod upstream;

pub use error::Error;

use asks::Asks;
use clock::Clock;
use desk::Desk;
use history::History;
use hub::Hub;
use idle::sessions::Idle;
use index::Indexer;
use ingest::push_session::PushSessions;
use ingest::pushing::Pushing;
use keep::{CapturePolicy, Keeper};
use keys::Keys;
use manifest::Manifest;
use metrics::Metrics;
use policy::PolicyStore;
use rate::Rates;
use subscriptions::table::SubscriptionTable;
use suite::listeners::Suite;
use upstream::{Upstream, Upstreams};

/// How much time there is to answer at first.
const ASK_TIME: Duration = Duration::from_mins(5);

/// What a gateway needs to know to start.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where its files live: journal, keys, spool.
    pub data: PathBuf,
    /// The person's home directory, for rules about paths.
    pub home: Option<PathBuf>,
    /// Files and directories of Banister's own beyond `data`: nothing an agent does may touch them.
    pub own: Vec<PathBuf>,
    /// Where rules come from.
    pub policy: policy::RuleFiles,
    /// Whether an allow by rule waits for the disk too.
    pub sync_allow: bool,
    /// How much is kept, and how long.
    pub capture: CapturePolicy,
    /// How pushed events are taken.
    pub push: Pushing,
    /// How long an agent may be silent before its turn is over; for ever where nothing is said.
    pub idle: Option<Duration>,
    /// The AG-UI agents that run through the gateway, by their names.
    pub upstreams: BTreeMap<String, Upstream>,
    /// How much time there is to answer at first; more can be had, for as long as the agent waits.
    pub ask_time: Duration,
}

impl Settings {
    /// A gateway whose files live here, with nothing else said.
    pub fn new(data: PathBuf) -> Self {
        Self {
            data,
            home: None,
            own: Vec::new(),
            policy: policy::RuleFiles::default(),
            sync_allow: false,
            capture: CapturePolicy::default(),
            push: Pushing::default(),
            idle: Some(idle::sessions::USUAL),
            upstreams: BTreeMap::new(),
            ask_time: ASK_TIME,
        }
    }
}

/// The gateway: everything that is shared between doors.
#[derive(Debug)]
pub struct Gateway {
    pub(crate) settings: Settings,
    pub(crate) agents: Arc<Agents>,
    pub(crate) policy_store: PolicyStore,
    /// The journal, to be read.
    pub(crate) journal: Journal,
    /// The one door into it.
    pub(crate) history: History,
    pub(crate) asks: Asks,
    pub(crate) hub: Hub,
    pub(crate) feeds: deliver::feed::LiveFeeds,
    pub(crate) desk: Desk,
    pub(crate) keeper: Keeper,
    pub(crate) indexer: Indexer,
    pub(crate) idle: Idle,
    /// Who may come in.
    pub keys: Keys,
    pub(crate) manifest: Manifest,
    pub(crate) subscriptions: SubscriptionTable,
    /// The doors of AAEP's conformance suite, where they are open.
    pub(crate) suite: OnceLock<Suite>,
    pub(crate) clock: Clock,
    /// The sessions that events are pushed to.
    pub(crate) push_sessions: PushSessions,
    pub(crate) upstreams: Upstreams,
    pub(crate) rates: Rates,
    pub(crate) metrics: Metrics,
    /// Files and directories nothing an agent does may touch.
    pub(crate) own: Vec<PathBuf>,
    /// Where browsers find it, once it listens.
    pub(crate) address: OnceLock<SocketAddr>,
    /// Everything that runs on its own; a shutdown waits for it.
    pub(crate) tasks: TaskTracker,
}

impl Gateway {
    /// Opens the journal, the keys and the rules, and takes up the asks that were open when it last stopped.
    pub fn open(settings: Settings, clock: Clock) -> Result<Arc<Self>, Error> {
        keys::private_dir(&settings.data)?;
        let agents = Arc::new(Agents::builtin()?);
        let policy_store = PolicyStore::open(settings.policy.clone(), settings.home.clone())?;
        let appender = Appender::open(&settings.data.join("journal.db"))?;
        Self::with(settings, clock, agents, policy_store, appender)
    }

    /// The same, with what was read and opened already.
    fn with(
        settings: Settings,
        clock: Clock,
        agents: Arc<Agents>,
        policy_store: PolicyStore,
        appender: Appender,
    ) -> Result<Arc<Self>, Error> {
        let journal = appender.journal().clone();
        let keys = Keys::open(&settings.data.join("keys"), clock.clone())?;
        let manifest = Manifest::open(&settings.data.join("keys"))?;
        policy_store.recall(&journal)?;
        let tasks = TaskTracker::new();
        let keeper = Keeper::open(&settings.data, settings.capture.clone(), &journal, &clock)?;
        let (history, asks, hub) = History::open(appender, &keeper, &clock, &tasks)?;
        let desk = Desk::new(asks.clone(), history.clone(), clock.clone(), tasks.clone());
        let indexer = Indexer::new(&journal, &hub, &agents);
        let mut own = settings.own.clone();
        own.push(settings.data.clone());
        let rates = Rates::new(settings.push.rate);
        let upstreams = Upstreams::new(settings.upstreams.clone());
        Ok(Arc::new(Self {
            settings,
            agents,
            policy_store,
            journal,
            history,
            asks,
            hub,
            feeds: deliver::feed::LiveFeeds::default(),
            desk,
            keeper,
            indexer,
            idle: Idle::default(),
            keys,
            manifest,
            subscriptions: SubscriptionTable::default(),
            suite: OnceLock::new(),
            clock,
            push_sessions: PushSessions::default(),
            upstreams,
            rates,
            metrics: Metrics::default(),
            own,
            address: OnceLock::new(),
            tasks,
        }))
    }

    /// Where hooks leave what they could not deliver.
    pub fn spool_dir(&self) -> PathBuf {
        self.settings.data.join("spool")
    }

    /// What was said or done with these words: everything that was acknowledged before the call can be found.
    #[cfg(test)]
    pub(crate) async fn search(&self, query: &banister_journal::Query) -> banister_journal::Page {
        self.indexer.catch_up(self.journal.head()).await.unwrap();
        self.journal.search(query).unwrap()
    }

    /// The known coding agents.
    pub fn agents(&self) -> &Agents {
        &self.agents
    }

    /// The journal.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }
}
