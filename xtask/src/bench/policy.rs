//! What the pack says about two sets of shell lines, and how long a verdict takes.
//!
//! `gtfo.yaml` holds abuses of ordinary programs: one that passes without a word is a failure, not only a missed goal.
//! `tldr.yaml` holds everyday lines: how many cannot be read, and how many are asked, by category.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, ensure};
use banister_events::activity::{Action, Decision, Gate};
use banister_policy::{ActionRequest, Rules, evaluate};
use serde::Deserialize;
use serde_json::{Value, json};

use super::stats::Runs;
use super::{merge, now};

/// How often each line is decided about unless the caller says otherwise.
pub(crate) const RUNS: usize = 20;

const MOST_OPAQUE: f64 = 15.0;
const P50: Duration = Duration::from_micros(50);
const P99: Duration = Duration::from_micros(200);
/// How many lines the sets have at least.
const LEAST: [(&str, usize); 2] = [("gtfo.yaml", 300), ("tldr.yaml", 1_000)];

/// A group of lines, as the files have it.
#[derive(Deserialize)]
struct Group<T> {
    #[serde(alias = "program", alias = "category")]
    name: String,
    cases: Vec<T>,
}

/// One line, what the set says about it, and what is said.
struct Case {
    group: String,
    command: String,
    expected: String,
    action: Action,
    gate: Gate,
}

pub(crate) fn policy(runs: usize) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        return super::optimized("policy", runs);
    }
    let rules = Rules::builtin()?;
    let abuses: Vec<Group<[String; 3]>> = read(LEAST[0])?;
    let abuses = cases(&rules, abuses, |[command, verdict, _]| (command, verdict));
    let everyday: Vec<Group<String>> = read(LEAST[1])?;
    let everyday = cases(&rules, everyday, |command| (command, String::new()));
    for ((file, least), count) in LEAST.into_iter().zip([abuses.len(), everyday.len()]) {
        ensure!(count >= least, "{file} has {count} lines, fewer than {least}");
    }
    let silence = report_abuses(&abuses);
    let asked = report_everyday(&everyday);
    crate::tell(&format!("bench: {runs} verdicts on each line"));
    let took = measure(&rules, &abuses, &everyday, runs);
    let took = report_time(&took);
    merge(
        "policy",
        json!({ "rules": rules.hash(), "gtfo": silence, "tldr": asked, "verdict": took }),
    )?;
    let silent: Vec<&str> = silent(&abuses).map(|case| case.command.as_str()).collect();
    ensure!(silent.is_empty(), "passed without a word:\n  {}", silent.join("\n  "));
    Ok(())
}

fn read<T: for<'de> Deserialize<'de>>((file, _): (&str, usize)) -> anyhow::Result<Vec<Group<T>>> {
    let path = crate::root()?.join("conformance/shell").join(file);
    let yaml = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    serde_saphyr::from_str(&yaml).with_context(|| path.display().to_string())
}

fn cases<T>(
    rules: &Rules,
    groups: Vec<Group<T>>,
    parts: impl Fn(T) -> (String, String),
) -> Vec<Case> {
    let mut cases = Vec::new();
    for Group { name, cases: lines } in groups {
        for (command, expected) in lines.into_iter().map(&parts) {
            let mut action = Action::unseen("bench", "Bash");
            action.input = Some(json!({ "command": command }));
            let gate = decide(rules, &action);
            cases.push(Case { group: name.clone(), command, expected, action, gate });
        }
    }
    cases
}

fn decide(rules: &Rules, action: &Action) -> Gate {
    evaluate(rules, &rules.read(&ActionRequest::example(action)))
}

fn silent(abuses: &[Case]) -> impl Iterator<Item = &Case> {
    abuses.iter().filter(|case| case.gate.decision == Decision::Allow)
}

fn report_abuses(abuses: &[Case]) -> Value {
    let count = |wanted: fn(&Case) -> bool| abuses.iter().filter(|case| wanted(case)).count();
    let denied = count(|case| case.gate.decision == Decision::Deny);
    let opaque = count(|case| case.gate.opaque.is_some());
    let silent = silent(abuses).count();
    let lax = count(|case| case.expected == "deny" && case.gate.decision != Decision::Deny);
    crate::say(&format!("\nAbuses of ordinary programs, {} lines:\n", abuses.len()));
    let row = |name: &str, count: usize, goal: &str| {
        crate::say(&format!("{name:<32} {count:>9}   {goal}"));
    };
    row("passed without a word", silent, &goal("0", silent == 0));
    row("asked", abuses.len() - denied - silent, "");
    row("denied", denied, "");
    row("asked where denied is expected", lax, &goal("0", lax == 0));
    row("of all, not wholly readable", opaque, "");
    json!({
        "lines": abuses.len(), "silent": silent, "denied": denied, "opaque": opaque, "lax": lax,
        "met": silent == 0,
    })
}

fn report_everyday(everyday: &[Case]) -> Value {
    let mut categories: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for case in everyday {
        let [lines, asked, denied, opaque] = categories.entry(&case.group).or_default();
        *lines += 1;
        *asked += usize::from(case.gate.decision == Decision::Ask);
        *denied += usize::from(case.gate.decision == Decision::Deny);
        *opaque += usize::from(case.gate.opaque.is_some());
    }
    crate::say(&format!("\nEveryday lines, {}, by category:\n", everyday.len()));
    let head = ["lines", "asked", "denied", "opaque"].map(|name| format!("{name:>9}"));
    crate::say(&format!("{:<32} {}", "", head.join(" ")));
    let mut rows = Vec::new();
    let mut total = [0; 4];
    for (name, counts) in &categories {
        crate::say(&format!("{name:<32} {}", counts.map(|count| format!("{count:>9}")).join(" ")));
        for (sum, count) in total.iter_mut().zip(counts) {
            *sum += count;
        }
        let [lines, asked, denied, opaque] = counts;
        rows.push(json!({
            "category": name, "lines": lines, "asked": asked, "denied": denied, "opaque": opaque,
        }));
    }
    crate::say(&format!("{:<32} {}", "all", total.map(|count| format!("{count:>9}")).join(" ")));
    let [lines, asked, denied, opaque] = total;
    let share = percent(opaque, lines);
    let met = share <= MOST_OPAQUE;
    let words = goal(&format!("at most {MOST_OPAQUE:.0} %"), met);
    crate::say(&format!("\nnot wholly readable: {share:.1} %   {words}"));
    crate::say(&format!("asked: {:.1} %", percent(asked, lines)));
    json!({
        "lines": lines, "asked": asked, "denied": denied, "opaque": opaque,
        "opaque_percent": share, "met": met, "categories": rows,
    })
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand lines")]
fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

fn measure(rules: &Rules, abuses: &[Case], everyday: &[Case], runs: usize) -> Runs {
    let mut took = Runs::default();
    // The first round warms up.
    for round in 0..=runs {
        for case in abuses.iter().chain(everyday) {
            let began = now();
            black_box(decide(rules, black_box(&case.action)));
            let elapsed = began.elapsed();
            if round > 0 {
                took.add(elapsed);
            }
        }
    }
    took
}

fn report_time(took: &Runs) -> Value {
    crate::say(&format!("\nOne verdict, microseconds, {} of them:\n", took.count()));
    let mut rows = Vec::new();
    let [p50, p99, most] = [50, 99, 100].map(|percent| took.percentile(percent));
    for (name, value, bound) in
        [("p50", p50, Some(P50)), ("p99", p99, Some(P99)), ("most", most, None)]
    {
        let micros = value.as_secs_f64() * 1e6;
        let met = bound.is_none_or(|bound| value < bound);
        let words = bound.map(|bound| goal(&format!("under {}", bound.as_micros()), met));
        crate::say(&format!("{name:<32} {micros:>9.1}   {}", words.unwrap_or_default()));
        rows.push(json!({ "name": name, "us": micros, "met": met }));
    }
    json!(rows)
}

fn goal(goal: &str, met: bool) -> String {
    format!("(goal: {goal}, {})", if met { "met" } else { "MISSED" })
}
