//! One life of a gateway, from its opening to its end; its doors, without a network in between.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use axum::body::Body;
use banister_events::aep::mapping::Agents;
use banister_journal::Appender;
use banister_journal::simulation::Fate;
use http::{Request, Response};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::dice::Dice;
use crate::clock::Clock;
use crate::http::{Door, router};
use crate::ingest::Pushing;
use crate::keep::CapturePolicy;
use crate::policy::{PolicyStore, RuleFiles};
use crate::{Gateway, Settings};

const HOST: &str = "127.0.0.1:7717";

/// What befalls the journal: commits take their time, and some fail.
#[derive(Debug)]
pub(super) struct Weather {
    dice: Mutex<Dice>,
    /// How many of the next commits fail.
    pub(super) failing: AtomicUsize,
}

impl Weather {
    pub(super) fn new(seed: u64) -> Self {
        Self { dice: Mutex::new(Dice::new(!seed)), failing: AtomicUsize::new(0) }
    }
}

impl Fate for Weather {
    fn pauses(&self) -> (u32, u32) {
        let mut dice = self.dice.lock().unwrap();
        let mut some = || u32::try_from(dice.below(4)).unwrap();
        (some(), some())
    }

    fn fails(&self) -> bool {
        let count = |left: usize| left.checked_sub(1);
        self.failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, count).is_ok()
    }
}

/// A gateway that is open.
#[derive(Clone)]
pub(super) struct House {
    pub(super) gateway: Arc<Gateway>,
    doors: axum::Router,
    agent: Arc<str>,
    person: Arc<str>,
}

/// What somebody was told at a door.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) exit: Option<String>,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// Who comes.
#[derive(Clone, Copy)]
pub(super) enum Who {
    Agent,
    Person,
}

impl House {
    pub(super) fn open(
        data: &Path,
        clock: &Clock,
        weather: &Arc<Weather>,
        capture: CapturePolicy,
    ) -> Self {
        static KNOWN: OnceLock<(Arc<Agents>, PolicyStore)> = OnceLock::new();
        let (agents, policy_store) = KNOWN.get_or_init(|| {
            let policy_store = PolicyStore::open(RuleFiles::default(), None).unwrap();
            (Arc::new(Agents::builtin().unwrap()), policy_store)
        });
        let push = Pushing { rate: 0, ..Pushing::default() };
        let settings = Settings { capture, push, ..Settings::new(data.to_owned()) };
        let journal = Appender::simulated(&data.join("journal.db"), Arc::clone(weather) as _);
        let (agents, store) = (Arc::clone(agents), policy_store.afresh());
        let gateway =
            Gateway::with(settings, clock.clone(), agents, store, journal.unwrap()).unwrap();
        let door = Door::web(HOST.parse().unwrap());
        let doors = router(Arc::clone(&gateway), door, CancellationToken::new());
        let key = |name| std::fs::read_to_string(gateway.keys.file(name)).unwrap().into();
        let (agent, person) = (key("agent.key"), key("person.key"));
        Self { gateway, doors, agent, person }
    }

    /// Knocks; the answer, whose body may still come.
    pub(super) async fn knock(
        &self,
        who: Who,
        line: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Response<Body> {
        let (method, path) = line.split_once(' ').unwrap();
        let key = match who {
            Who::Agent => &self.agent,
            Who::Person => &self.person,
        };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", HOST)
            .header("authorization", format!("Bearer {}", key.trim()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body)).unwrap();
        TowerToHyperService::new(self.doors.clone()).call(request).await.unwrap()
    }

    /// The same, to the end of the answer.
    pub(super) async fn ask(
        &self,
        who: Who,
        line: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Answer {
        let response = self.knock(who, line, headers, body).await;
        let status = response.status().as_u16();
        let exit = response.headers().get("banister-exit");
        let exit = exit.map(|exit| exit.to_str().unwrap().to_owned());
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 24).await.unwrap();
        Answer { status, exit, text: String::from_utf8_lossy(&bytes).into_owned() }
    }
}
