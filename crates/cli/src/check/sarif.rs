//! Findings as SARIF 2.1.0, for code hosts and editors.

use std::fmt::Write as _;
use std::io::{self, Write};

use banister_events::event::Protocol;
use banister_events::finding::{Rule, Severity, all_rules};
use serde_json::{Value, json};

use super::report::{Found, Report, Tally};

/// Writes the log piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Sarif {
    /// The one protocol whose rules are listed; those of all if it is to be told by the input.
    pub(crate) protocol: Option<Protocol>,
    open: bool,
    results: bool,
    failures: Vec<Value>,
}

impl Sarif {
    pub(crate) fn new(protocol: Option<Protocol>) -> Self {
        Self { protocol, ..Self::default() }
    }

    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.open, true) {
            return Ok(());
        }
        let wanted = |of: Protocol| self.protocol.is_none_or(|protocol| protocol == of);
        let rules: Vec<Value> = all_rules()
            .into_iter()
            .filter(|(of, _)| wanted(*of))
            .map(|(_, rule)| row(rule))
            .collect();
        let driver = json!({
            "name": "banister",
            "version": env!("CARGO_PKG_VERSION"),
            "semanticVersion": env!("CARGO_PKG_VERSION"),
            "rules": rules,
        });
        write!(
            out,
            r#"{{"$schema":"https://json.schemastore.org/sarif-2.1.0.json","version":"2.1.0","runs":[{{"tool":{{"driver":{driver}}},"columnKind":"unicodeCodePoints","results":["#
        )
    }
}

fn row(rule: &Rule) -> Value {
    let mut configuration = json!({"level": level(rule.severity)});
    if let (true, Some(configuration)) = (rule.opt_in, configuration.as_object_mut()) {
        configuration.insert("enabled".to_owned(), false.into());
    }
    json!({
        "id": rule.code,
        "shortDescription": {"text": rule.text},
        "help": {"text": rule.remedy},
        "defaultConfiguration": configuration,
    })
}

fn level(severity: Severity) -> &'static str {
    severity.name()
}

impl Report for Sarif {
    fn finding(&mut self, out: &mut dyn Write, found: &Found<'_>) -> io::Result<()> {
        self.begin(out)?;
        let comma = if std::mem::replace(&mut self.results, true) { "," } else { "" };
        let mut physical = json!({"artifactLocation": {"uri": uri(found.name)}});
        if let Some(spot) = found.spot {
            let mut region = json!({"startLine": spot.line, "startColumn": spot.column});
            // An offset is one in the file, which for a packed one nobody knows.
            let offset = spot.offset.filter(|_| !found.packed);
            if let (Some(offset), Some(region)) = (offset, region.as_object_mut()) {
                region.insert("byteOffset".to_owned(), offset.into());
                region.insert("byteLength".to_owned(), (spot.end - spot.start).into());
            }
            if let Some(physical) = physical.as_object_mut() {
                physical.insert("region".to_owned(), region);
            }
        }
        let pointer = found.finding.pointer.as_str();
        let result = json!({
            "ruleId": found.finding.rule.code,
            "level": level(found.severity),
            "message": {"text": found.finding.message},
            "locations": [{
                "physicalLocation": physical,
                "logicalLocations": [{"fullyQualifiedName": pointer, "kind": "value"}],
            }],
        });
        write!(out, "{comma}{result}")
    }

    fn input(&mut self, _: &mut dyn Write, name: &str, tally: &Tally) -> io::Result<()> {
        if let Some(failure) = &tally.failure {
            self.failures.push(json!({
                "level": "error",
                "message": {"text": failure},
                "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri(name)}}}],
            }));
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write, _: &Tally) -> io::Result<()> {
        self.begin(out)?;
        let invocation = json!({
            "executionSuccessful": self.failures.is_empty(),
            "toolExecutionNotifications": self.failures,
        });
        writeln!(out, r#"],"invocations":[{invocation}]}}]}}"#)
    }
}

/// A name as a URI reference: what may not stand in one is escaped.
fn uri(name: &str) -> String {
    if super::input::is_live(name) {
        return name.to_owned();
    }
    let mut uri = String::new();
    for byte in name.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        if plain {
            uri.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            write!(uri, "%{byte:02X}").ok();
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn a_file_name_becomes_a_uri_reference() {
        for (name, expected) in [
            ("a/b.jsonl", "a/b.jsonl"),
            ("my file#1.jsonl", "my%20file%231.jsonl"),
            ("ü:%", "%C3%BC%3A%25"),
            ("http://h:1/events?x=1", "http://h:1/events?x=1"),
            ("https://h/events", "https://h/events"),
        ] {
            assert_eq!(uri(name), expected);
        }
    }
}
