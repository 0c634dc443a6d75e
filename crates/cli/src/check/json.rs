//! Findings as one JSON object, `banister.check/v1`.

use std::io::{self, Write};

use serde_json::json;

use super::report::{Found, Report, Tally};

/// Writes the object piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Json {
    open: bool,
    findings: bool,
    inputs: Vec<serde_json::Value>,
}

impl Json {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.open, true) {
            return Ok(());
        }
        write!(out, r#"{{"schema":"banister.check/v1","findings":["#)
    }
}

impl Report for Json {
    fn finding(&mut self, out: &mut dyn Write, found: &Found<'_>) -> io::Result<()> {
        self.begin(out)?;
        let comma = if std::mem::replace(&mut self.findings, true) { "," } else { "" };
        let row = json!({
            "code": found.finding.rule.code,
            "severity": found.severity,
            "file": found.name,
            "line": found.spot.map(|spot| spot.line),
            "column": found.spot.map(|spot| spot.column),
            "offset": found.spot.and_then(|spot| spot.offset),
            "pointer": found.finding.pointer,
            "message": found.finding.message,
            "remedy": found.finding.rule.remedy,
        });
        write!(out, "{comma}{row}")
    }

    fn input(&mut self, _: &mut dyn Write, name: &str, tally: &Tally) -> io::Result<()> {
        self.inputs.push(json!({
            "file": name,
            "protocol": tally.protocol,
            "events": tally.events,
            "errors": tally.errors,
            "warnings": tally.warnings,
            "notes": tally.notes,
            "failure": tally.failure,
        }));
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write, total: &Tally) -> io::Result<()> {
        self.begin(out)?;
        let end = json!({
            "protocol": total.protocol,
            "files": self.inputs,
            "events": total.events,
            "errors": total.errors,
            "warnings": total.warnings,
            "notes": total.notes,
        });
        // The rest of the object that is open: its own opening bracket is left out.
        writeln!(out, "],{}", end.to_string().trim_start_matches('{'))
    }
}
