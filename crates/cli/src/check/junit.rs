//! Findings as `JUnit` XML, for build servers: one suite per input, one case per rule.
//!
//! A suite says how many cases failed before it lists them, so the findings of an input are held until its end: at
//! most [`KEPT`] of each rule, the rest is counted.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use banister_events::finding::{Severity, rules};

use super::report::{Found, Report, Tally};

/// How many findings of one rule are listed.
const KEPT: u64 = 100;
/// How much of one finding's message is kept.
const LONGEST: usize = 2_000;

/// What was found against one rule.
#[derive(Debug, Default)]
struct Case {
    /// Lines for the errors, and how many there were.
    errors: (String, u64),
    /// The same for what is no error.
    others: (String, u64),
}

/// Writes a suite per input.
#[derive(Debug, Default)]
pub(crate) struct Junit {
    open: bool,
    cases: BTreeMap<&'static str, Case>,
}

impl Junit {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.open, true) {
            return Ok(());
        }
        writeln!(
            out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"banister check\">"
        )
    }
}

impl Report for Junit {
    fn finding(&mut self, _: &mut dyn Write, found: &Found<'_>) -> io::Result<()> {
        let case = self.cases.entry(found.finding.rule.code).or_default();
        let (lines, times) = match found.severity {
            Severity::Error => &mut case.errors,
            Severity::Warning | Severity::Note => &mut case.others,
        };
        *times += 1;
        if *times <= KEPT {
            let place = match found.spot {
                Some(spot) => format!("{}:{}:{}", found.name, spot.line, spot.column),
                None => format!("{}: end of input", found.name),
            };
            let message: String = found.finding.message.chars().take(LONGEST).collect();
            let pointer: String = found.finding.pointer.chars().take(LONGEST).collect();
            let level = found.severity.name();
            let space = if pointer.is_empty() { "" } else { " " };
            // Writing to a String cannot fail.
            writeln!(lines, "{level}: {place}{space}{pointer}: {message}").ok();
        }
        Ok(())
    }

    fn input(&mut self, out: &mut dyn Write, name: &str, tally: &Tally) -> io::Result<()> {
        self.begin(out)?;
        let cases = std::mem::take(&mut self.cases);
        let rules = tally.protocol.map(rules).unwrap_or_default();
        let failures = cases.values().filter(|case| case.errors.1 > 0).count();
        let broken = usize::from(tally.failure.is_some());
        let (name, tests) = (escape(name), rules.len() + broken);
        writeln!(
            out,
            "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{broken}\">"
        )?;
        if let Some(failure) = &tally.failure {
            let failure = escape(failure);
            writeln!(out, "    <testcase classname=\"{name}\" name=\"readable\">")?;
            writeln!(out, "      <error message=\"{failure}\"/>\n    </testcase>")?;
        }
        for rule in rules {
            let (code, empty) = (escape(rule.code), Case::default());
            let Case { errors, others } = cases.get(rule.code).unwrap_or(&empty);
            write!(out, "    <testcase classname=\"{name}\" name=\"{code}\"")?;
            if errors.1 + others.1 == 0 {
                writeln!(out, "/>")?;
                continue;
            }
            writeln!(out, ">")?;
            if errors.1 > 0 {
                let (text, lines) = (escape(rule.text), listed(errors));
                writeln!(
                    out,
                    "      <failure message=\"{text}\" type=\"{code}\">{lines}</failure>"
                )?;
            }
            if others.1 > 0 {
                writeln!(out, "      <system-out>{}</system-out>", listed(others))?;
            }
            writeln!(out, "    </testcase>")?;
        }
        writeln!(out, "  </testsuite>")
    }

    fn finish(&mut self, out: &mut dyn Write, _: &Tally) -> io::Result<()> {
        self.begin(out)?;
        writeln!(out, "</testsuites>")
    }
}

fn listed((lines, times): &(String, u64)) -> String {
    let mut text = escape(lines);
    if *times > KEPT {
        // Writing to a String cannot fail.
        writeln!(text, "and {} more", times - KEPT).ok();
    }
    text
}

/// Text as XML 1.0 may have it. What it may not have at all is left out.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(character),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {}
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn nothing_that_xml_forbids_gets_through() {
        assert_eq!(
            escape("a<b>&\"c\"\u{0}\u{1b}[0m\u{fffe}\n\tü"),
            "a&lt;b&gt;&amp;&quot;c&quot;[0m\n\tü"
        );
    }
}
