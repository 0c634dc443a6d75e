//! What was measured last, beside what was measured before a large change.
//!
//! Only ratios within one run are compared: they say something on any machine. The baseline is a `bench.json` that was
//! kept; `bench keep` replaces it by the newest one.

use std::path::PathBuf;

use anyhow::Context;
use serde_json::Value;

use super::target;

/// How much worse a figure may be before it is called worse: repeated runs differ by about this much.
const NOISE: f64 = 0.15;

/// One ratio, and which way is better.
#[derive(Debug, Clone, PartialEq)]
struct Figure {
    name: String,
    value: f64,
    higher_is_better: bool,
}

impl Figure {
    fn higher(name: String, value: f64) -> Self {
        Self { name, value, higher_is_better: true }
    }

    fn lower(name: String, value: f64) -> Self {
        Self { name, value, higher_is_better: false }
    }

    /// How many times better this is than `before`; below one it is worse.
    fn gain_over(&self, before: &Self) -> f64 {
        if self.higher_is_better { self.value / before.value } else { before.value / self.value }
    }
}

/// The file that is checked in.
fn baseline() -> anyhow::Result<PathBuf> {
    Ok(crate::root()?.join("xtask/baseline.json"))
}

fn read(path: &std::path::Path) -> anyhow::Result<Value> {
    let text = std::fs::read(path)
        .with_context(|| format!("{}; `cargo xtask bench NAME` measures", path.display()))?;
    serde_json::from_slice(&text).with_context(|| path.display().to_string())
}

/// Keeps what was measured last as the baseline.
pub(crate) fn keep() -> anyhow::Result<()> {
    let (from, to) = (target()?.join("bench.json"), baseline()?);
    read(&from)?;
    std::fs::copy(&from, &to)?;
    crate::say(&format!("Kept as {}", to.display()));
    Ok(())
}

/// Prints every ratio of the last measurement beside the baseline's.
pub(crate) fn compare() -> anyhow::Result<()> {
    let before = figures(&read(&baseline()?)?);
    let now = figures(&read(&target()?.join("bench.json"))?);
    crate::say(&table(&before, &now));
    Ok(())
}

fn table(before: &[Figure], now: &[Figure]) -> String {
    let mut lines = vec![format!("{:<58} {:>10} {:>10} {:>8}", "ratio", "baseline", "now", "gain")];
    for figure in now {
        let known = before.iter().find(|known| known.name == figure.name);
        let line = match known {
            Some(known) => {
                let gain = figure.gain_over(known);
                let word = if gain < 1.0 - NOISE { "  WORSE" } else { "" };
                let Figure { name, value, .. } = figure;
                format!("{name:<58} {:>10.2} {value:>10.2} {gain:>7.2}x{word}", known.value)
            }
            None => format!("{:<58} {:>10} {:>10.2}", figure.name, "-", figure.value),
        };
        lines.push(line);
    }
    for missing in before.iter().filter(|known| !now.iter().any(|it| it.name == known.name)) {
        lines.push(format!("{:<58} {:>10.2} {:>10}", missing.name, missing.value, "-"));
    }
    lines.join("\n")
}

/// The ratios of a measurement.
fn figures(bench: &Value) -> Vec<Figure> {
    let rows =
        |pointer: &str| bench.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let number = |row: &Value, name: &str| row.get(name).and_then(Value::as_f64);
    let word = |row: &Value, name: &str| {
        row.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let mut figures = Vec::new();
    for row in rows("/hook/ratios") {
        let name = format!("hook: {} / {}", word(row, "of"), word(row, "to"));
        let make = if word(row, "bound") == "at most" { Figure::lower } else { Figure::higher };
        figures.extend(number(row, "ratio").map(|ratio| make(name, ratio)));
    }
    for row in rows("/check/goals") {
        let make = if word(row, "bound") == "at most" { Figure::lower } else { Figure::higher };
        let name = format!("check: {}", word(row, "what"));
        figures.extend(number(row, "number").map(|number| make(name, number)));
    }
    for row in rows("/translate/rows") {
        let name = word(row, "name");
        if !name.starts_with("check") {
            let name = format!("translate: {name}, of checking");
            figures.extend(number(row, "of_check").map(|ratio| Figure::higher(name, ratio)));
        }
    }
    for row in rows("/ingest/rows") {
        let connections = row.get("connections").and_then(Value::as_u64).unwrap_or_default();
        let name =
            format!("ingest: {}, {connections} connection(s), of rusqlite", word(row, "protocol"));
        figures.extend(number(row, "ratio").map(|ratio| Figure::higher(name, ratio)));
    }
    let fanout = bench.pointer("/fanout/ratio").and_then(Value::as_f64);
    figures.extend(fanout.map(|ratio| Figure::higher("fanout: over node".to_owned(), ratio)));
    for row in rows("/policy/verdict") {
        let name = format!("policy: verdict, {}, microseconds", word(row, "name"));
        if !name.contains("most") {
            figures.extend(number(row, "us").map(|micros| Figure::lower(name, micros)));
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_got_worse_is_named_and_what_is_new_or_gone_is_shown() {
        let before = figures(&json!({
            "ingest": { "rows": [{ "protocol": "AEP", "connections": 1, "ratio": 0.5 }] },
            "fanout": { "ratio": 4.0 },
        }));
        let now = figures(&json!({
            "ingest": { "rows": [{ "protocol": "AEP", "connections": 1, "ratio": 0.25 }] },
            "policy": { "verdict": [{ "name": "p50", "us": 20.0 }, { "name": "most", "us": 900.0 }] },
        }));
        let table = table(&before, &now);
        let line = |part: &str| table.lines().find(|line| line.contains(part)).unwrap().to_owned();
        assert!(line("ingest: AEP, 1").ends_with("0.50x  WORSE"), "{table}");
        assert!(line("policy: verdict, p50").contains(" - "), "{table}");
        assert!(line("fanout").trim_end().ends_with('-'), "{table}");
        assert!(!table.contains("most"), "{table}");
    }

    #[test]
    fn lower_is_better_where_a_goal_is_an_upper_bound() {
        let memory = |number: f64| {
            figures(&json!({ "check": { "goals": [
                { "what": "peak memory", "number": number, "bound": "at most" },
            ] } }))
        };
        assert!(table(&memory(40.0), &memory(80.0)).contains("WORSE"));
        assert!(!table(&memory(80.0), &memory(40.0)).contains("WORSE"));
    }
}
