//! A verdict about an action of a session: where the rules are loaded at once, else on the blocking pool.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use banister_events::activity::Gate;
use banister_journal::Level;

use super::{FIRST_RECORDS, Gated, Judgement, PolicyQuestion, RecordedVerdict, unjudged};
use crate::Gateway;

impl Gateway {
    /// Decides about an action of a session of this source, as its record will have it.
    pub(crate) async fn judge(
        self: &Arc<Self>,
        source: &str,
        question: PolicyQuestion<'_>,
    ) -> Gated {
        let judged = match self.policy_store.judge_if_loaded(&question) {
            Some(judgement) => Ok(judgement),
            None => self.judge_on_the_blocking_pool(&question).await,
        };
        let Judgement { gate, mut provenance, .. } = match judged {
            Ok(judgement) => judgement,
            Err(gate) => return gate.into(),
        };
        if let Some(shadow) = &provenance.shadow {
            self.metrics.tried(gate.decision, shadow.decision);
        }
        if self.keeper.level(source) <= Level::Metadata {
            // What was read is content.
            provenance.read.clear();
        }
        Gated { gate, provenance }
    }

    /// Decides where reading files and the journal holds up nobody else; a refusal where that comes to nothing.
    async fn judge_on_the_blocking_pool(
        self: &Arc<Self>,
        question: &PolicyQuestion<'_>,
    ) -> Result<Judgement, Gate> {
        let gateway = Arc::clone(self);
        let (agent, action) = (question.agent.to_owned(), question.action.clone());
        let session = question.session.map(str::to_owned);
        let cwd = question.cwd.map(str::to_owned);
        let project = question.project.map(Path::to_owned);
        let now = question.now;
        let judge = move || {
            if let Some(session) = &session {
                gateway.recall_project(session);
            }
            gateway.policy_store.judge(&PolicyQuestion {
                agent: &agent,
                session: session.as_deref(),
                action: &action,
                cwd: cwd.as_deref(),
                project: project.as_deref(),
                own: &gateway.own,
                now,
            })
        };
        #[cfg(test)]
        if crate::simulation::is_running() {
            return Ok(judge());
        }
        tokio::task::spawn_blocking(judge).await.map_err(|error| {
            tracing::error!(%error, "A verdict came to nothing, so the action is refused.");
            unjudged()
        })
    }

    /// A session that is older than this gateway keeps the project that it was decided about with. Blocks on the disk.
    fn recall_project(&self, session: &str) {
        if self.policy_store.lock().projects.knows(session) {
            return;
        }
        match self.journal.session(session, 0, FIRST_RECORDS) {
            Ok(records) => {
                let mut verdicts =
                    records.iter().filter_map(|record| RecordedVerdict::gated(record));
                let project = verdicts.find_map(|gated| gated.provenance.project);
                self.policy_store.lock().projects.recall(session, project.map(PathBuf::from));
            }
            Err(error) => tracing::warn!(%error, "A session's project could not be looked up."),
        }
    }
}
