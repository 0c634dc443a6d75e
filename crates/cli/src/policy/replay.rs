//! `banister policy replay`: what other rules would have said about what agents did.
//!
//! Every action in the journal that was decided about is decided about again, with the files and links that are on the
//! disk now. Nothing is changed and nobody is asked.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use banister_events::activity::Decision;
use banister_events::aep::mapping::Agents;
use banister_events::event::time_text;
use banister_events::text::{one_line, shorten};
use banister_gateway::policy::{PolicyQuestion, PolicyStore, RecordedVerdict};
use banister_journal::{Archive, Record};
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::sources::{RuleArgs, policy_store};
use crate::failure::GOOD;
use crate::log::moment::Moment;

/// The most differences that are told apart; the rest is only counted.
const MOST: usize = 10_000;
/// How much of an action is shown.
const LONGEST: usize = 400;

#[derive(Debug, Args)]
pub(crate) struct PolicyReplayArgs {
    /// From this moment on: a time, a date, or how long ago
    #[arg(long, value_name = "TIME", default_value = "30d")]
    since: Moment,
    #[command(flatten)]
    rules: RuleArgs,
    /// Count the recorded verdicts of shadow rules instead of evaluating again
    #[arg(long, conflicts_with_all = ["rules", "pack"])]
    shadow: bool,
    /// Print JSON: {"schema", "since", "actions", "same", "different", "changes": […], "differences": […]}
    #[arg(long)]
    json: bool,
}

/// What was said, and by which rule.
type VerdictByRule = (Decision, String);

/// One kind of difference: what was said, what would have been, the tool and what it was called for.
type Difference = (VerdictByRule, VerdictByRule, String, String);

/// What was found.
#[derive(Default)]
struct ReplayTally {
    actions: u64,
    same: u64,
    /// The same verdict, by another rule.
    by_another: u64,
    /// What cannot be decided again, because it was not kept.
    unknown: u64,
    changes: BTreeMap<(Decision, Decision), u64>,
    differences: BTreeMap<Difference, (u64, Timestamp)>,
}

impl ReplayTally {
    fn add(
        &mut self,
        old: VerdictByRule,
        new: VerdictByRule,
        about: (String, String),
        time: Timestamp,
    ) {
        if old.0 == new.0 {
            self.same += 1;
            self.by_another += u64::from(old.1 != new.1);
            return;
        }
        *self.changes.entry((old.0, new.0)).or_default() += 1;
        let difference = (old, new, about.0, about.1);
        if self.differences.len() < MOST || self.differences.contains_key(&difference) {
            let (count, last) = self.differences.entry(difference).or_insert((0, time));
            *count += 1;
            *last = time.max(*last);
        }
    }

    fn different(&self) -> u64 {
        self.changes.values().sum()
    }

    /// The differences, the most frequent first.
    fn sorted(&self) -> Vec<(&Difference, u64, Timestamp)> {
        let all = self.differences.iter().map(|(what, (count, last))| (what, *count, *last));
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
        all
    }
}

pub(super) fn run(args: &PolicyReplayArgs, out: &mut dyn Write) -> anyhow::Result<u8> {
    let settings = args.rules.settings()?;
    let store = if args.shadow { None } else { Some(policy_store(&settings)?) };
    let archive = Archive::open(&args.rules.data_dir.journal()?)?;
    let agents = Agents::builtin()?;
    let mut own = settings.own.clone();
    own.push(settings.data.clone());
    let since = args.since.time();
    let mut tally = ReplayTally::default();
    let mut position = 0;
    loop {
        let chunk = archive.chunk(position)?;
        let Some(last) = chunk.last() else { break };
        position = last.position;
        for record in chunk.iter().filter(|record| record.time >= since) {
            again(&mut tally, record, &agents, store.as_ref(), &own);
        }
    }
    let hash = store.map(|store| store.standing().hash);
    if args.json {
        writeln!(out, "{}", as_json(&tally, since, hash.as_deref()))?;
    } else {
        show(out, &tally, since)?;
    }
    Ok(GOOD)
}

/// Decides about a record again, if a verdict was given on it.
fn again(
    tally: &mut ReplayTally,
    record: &Record,
    agents: &Agents,
    store: Option<&PolicyStore>,
    own: &[std::path::PathBuf],
) {
    let Some(then) = RecordedVerdict::gated(record) else { return };
    tally.actions += 1;
    let Some(past) = RecordedVerdict::of(agents, record) else {
        tally.unknown += 1;
        return;
    };
    let old = (then.gate.decision, then.gate.rule);
    let new = match store {
        None => match then.provenance.shadow {
            Some(shadow) => (shadow.decision, shadow.rule),
            None => old.clone(),
        },
        Some(store) => {
            let gate = store
                .judge(&PolicyQuestion {
                    agent: &past.agent,
                    session: None,
                    action: &past.action,
                    cwd: past.cwd.as_deref(),
                    project: past.gated.provenance.project.as_deref().map(Path::new),
                    own,
                    now: record.time,
                })
                .gate;
            (gate.decision, gate.rule)
        }
    };
    let subject = shorten(&past.action.subject(), LONGEST).into_owned();
    tally.add(old, new, (past.action.title(), subject), record.time);
}

fn show(out: &mut dyn Write, tally: &ReplayTally, since: Timestamp) -> io::Result<()> {
    let ReplayTally { actions, same, by_another, unknown, .. } = tally;
    writeln!(
        out,
        "{actions} actions since {}: {same} would be answered the same ({by_another} of them by another rule), \
         {} differently, {unknown} were not kept.",
        time_text(since),
        tally.different(),
    )?;
    if tally.changes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{:<6} {:<6} {:>8}", "WAS", "WOULD", "ACTIONS")?;
    for ((old, new), count) in &tally.changes {
        writeln!(out, "{:<6} {:<6} {count:>8}", old.name(), new.name())?;
    }
    for (((old, old_rule), (new, new_rule), tool, subject), count, _) in
        tally.sorted().into_iter().map(|(what, count, last)| (what.clone(), count, last))
    {
        let times = if count == 1 { "Once".to_owned() } else { format!("{count} times") };
        writeln!(
            out,
            "\n{times}: {} by {old_rule}, would be {} by {new_rule}",
            old.name(),
            new.name()
        )?;
        writeln!(out, "  {}: {}", one_line(&tool), one_line(&subject))?;
    }
    Ok(())
}

fn as_json(tally: &ReplayTally, since: Timestamp, hash: Option<&str>) -> Value {
    let changes = tally
        .changes
        .iter()
        .map(|((old, new), count)| json!({ "from": old.name(), "to": new.name(), "count": count }));
    let differences = tally.sorted().into_iter().map(|(what, count, last)| {
        let ((old, old_rule), (new, new_rule), tool, subject) = what;
        json!({
            "from": old.name(), "from_rule": old_rule, "to": new.name(), "to_rule": new_rule,
            "tool": tool, "subject": subject, "count": count, "last": time_text(last),
        })
    });
    json!({
        "schema": "banister.policy-replay/v1",
        "since": time_text(since),
        "rules": hash,
        "actions": tally.actions,
        "same": tally.same,
        "same_by_another_rule": tally.by_another,
        "different": tally.different(),
        "not_kept": tally.unknown,
        "changes": changes.collect::<Vec<_>>(),
        "differences": differences.collect::<Vec<_>>(),
    })
}
