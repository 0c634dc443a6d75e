//! Grants on their way into the journal, and out of it again when the gateway starts.
//!
//! They have a session of their own, so that a grant is never older than what took it back: records go oldest first.

use std::sync::Arc;

use banister_events::activity::{Decision, Gate};
use banister_events::id;
use banister_journal::{Appended, Draft, Durability, Journal, Kind, Record, Source};
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use crate::desk::Opened;
use crate::policy::{
    Covers, Grant, GrantScope, LIFETIME, NotGranted, PolicyQuestion, PolicyStore, Revoked,
};
use crate::{Error, Gateway};

impl PolicyStore {
    /// Takes up the grants in the journal.
    pub(crate) fn recall(&self, journal: &Journal) -> Result<(), Error> {
        for record in journal.of_kinds(&[Kind::Grant, Kind::Revocation], 0)? {
            self.hear(&record);
        }
        Ok(())
    }

    fn hear(&self, record: &Record) {
        match record.kind {
            Kind::Grant => {
                if let Ok(grant) = serde_json::from_slice(&record.body) {
                    self.grant(grant);
                }
            }
            Kind::Revocation => {
                if let Ok(Revoked { grant, .. }) = serde_json::from_slice(&record.body) {
                    self.revoke(&grant);
                }
            }
            _ => {}
        }
    }
}

impl Gateway {
    /// The grant that a yes to this ask could be remembered by, if policy lets it make a difference. Nothing is recorded.
    pub(crate) fn grantable(
        &self,
        opened: &Opened,
        scope: GrantScope,
        by: &str,
    ) -> Result<Grant, NotGranted> {
        let now = self.clock.now();
        let (Some(action), Some(gate)) = (&opened.ask.action, &opened.ask.gate) else {
            return Err(NotGranted::NoAction);
        };
        if gate.opaque.is_some() {
            return Err(NotGranted::Opaque);
        }
        if self.policy_store.has_most_grants(now) {
            return Err(NotGranted::TooMany);
        }
        let agent = opened.context.agent.as_str();
        let asked = PolicyQuestion {
            agent,
            session: Some(&opened.session),
            action,
            cwd: opened.context.cwd.as_deref(),
            project: None,
            own: &self.own,
            now,
        };
        let verdict = self.policy_store.judge(&asked);
        let Gate { decision, rule, .. } = verdict.gate;
        if decision == Decision::Deny {
            return Err(NotGranted::NoHelp { decision, rule });
        }
        let scope_id = serde_json::to_string(&scope).unwrap_or_default();
        let mut grant = Grant {
            id: id::derive("gr_", &[&opened.ask.id, &scope_id]).chars().take(15).collect(),
            rule,
            also: Vec::new(),
            covers: Covers::of(action, &verdict.explanation)?,
            scope,
            agent: agent.to_owned(),
            project: verdict.provenance.project.unwrap_or_default(),
            session: opened.session.clone(),
            ask: opened.ask.id.clone(),
            by: by.to_owned(),
            since: now,
            until: now.checked_add(LIFETIME).unwrap_or(now),
        };
        // Several rules may ask about the same thing. Each is named; what cannot be lifted asks again, and that is it.
        loop {
            let Gate { decision, rule, .. } = self.policy_store.judge_with(&asked, &grant).gate;
            match decision {
                Decision::Allow => return Ok(grant),
                Decision::Ask if grant.rules().all(|known| *known != rule) => {
                    grant.also.push(rule);
                }
                _ => return Err(NotGranted::NoHelp { decision, rule }),
            }
        }
    }

    /// Records a grant; from then on it counts.
    pub(crate) async fn grant(
        self: &Arc<Self>,
        grant: &Grant,
        door: &'static str,
    ) -> Result<(), NotGranted> {
        let recorded = self.note(Kind::Grant, grant, door, &grant.by).await;
        recorded.map_err(|error| NotGranted::Journal(error.to_string()))
    }

    /// Takes a grant back, by its id or the beginning of it; which one, or `None` where none or several fit.
    pub(crate) async fn revoke(
        self: &Arc<Self>,
        name: &str,
        door: &'static str,
        key: &str,
    ) -> Result<Option<Grant>, Error> {
        let now = self.clock.now();
        let fits = |grant: &Grant| {
            !name.is_empty()
                && (grant.id.starts_with(name)
                    || grant.id.trim_start_matches("gr_").starts_with(name))
        };
        let mut fitting = self.policy_store.grants(now).into_iter().filter(fits);
        let (Some(grant), None) = (fitting.next(), fitting.next()) else { return Ok(None) };
        let fact = Revoked { grant: grant.id.clone(), by: key.to_owned() };
        // It is gone at once. Where that cannot be recorded, whoever said it is told, for the next start knows it again.
        self.policy_store.revoke(&grant.id);
        self.note(Kind::Revocation, &fact, door, key).await?;
        Ok(Some(grant))
    }

    /// Records a fact about grants, and takes it in once it is recorded, also when whoever said it has gone.
    async fn note(
        self: &Arc<Self>,
        kind: Kind,
        fact: &impl Serialize,
        door: &'static str,
        key: &str,
    ) -> Result<(), Error> {
        let draft = Draft {
            session: id::derive("s_", &["banister", "grants"]),
            time: self.clock.now(),
            kind,
            source: Source {
                protocol: "banister".to_owned(),
                agent: "banister".to_owned(),
                door: door.to_owned(),
                key: key.to_owned(),
            },
            turn: None,
            action: None,
            event_id: None,
            reader: 1,
            body: Bytes::from(serde_json::to_vec(fact).unwrap_or_default()),
            findings: Value::Null,
            gate: None,
        };
        let gateway = Arc::clone(self);
        let noted = self.tasks.spawn(async move {
            let appended = gateway.journal.append(vec![draft], Durability::Synced).await?;
            if let Appended::Recorded(records) = appended {
                for record in &records {
                    gateway.policy_store.hear(record);
                }
                gateway.hub.publish(&records);
            }
            Ok(())
        });
        noted.await.unwrap_or_else(|error| Err(Error::Task(error.to_string())))
    }
}
