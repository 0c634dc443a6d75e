//! Findings for people, as a compiler prints them: what, where, the source, the remedy.

use std::io::{self, Write};

use banister_events::finding::Severity;
use banister_events::text;

use super::excerpt::excerpt;
use super::report::{Found, Report, Tally};

/// Prints findings for people. Colour only repeats what the words say.
#[derive(Debug)]
pub(crate) struct Human {
    pub(crate) color: bool,
}

const BOLD: &str = "1";
const BLUE: &str = "1;34";

fn color_of(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "1;31",
        Severity::Warning => "1;33",
        Severity::Note => "1;36",
    }
}

impl Human {
    fn paint(&self, color: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{color}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

impl Report for Human {
    fn finding(&mut self, out: &mut dyn Write, found: &Found<'_>) -> io::Result<()> {
        let Found { severity, finding, .. } = *found;
        let title = format!("{}[{}]", severity.name(), finding.rule.code);
        let message = text::one_line(&finding.message);
        let title = self.paint(color_of(severity), &title);
        writeln!(out, "{title}{}", self.paint(BOLD, &format!(": {message}")))?;
        let name = text::one_line(found.name);
        let number = found.spot.map_or_else(String::new, |spot| spot.line.to_string());
        let margin = " ".repeat(number.len().max(1));
        let arrow = self.paint(BLUE, "-->");
        let Some(spot) = found.spot else {
            writeln!(out, "{margin}{arrow} {name}: end of input")?;
            return writeln!(
                out,
                "{margin} {} help: {}\n",
                self.paint(BLUE, "="),
                finding.rule.remedy
            );
        };
        let pointer = match finding.pointer.as_str() {
            "" => String::new(),
            pointer => format!(" {}", text::one_line(pointer)),
        };
        writeln!(out, "{margin}{arrow} {name}:{number}:{}{pointer}", spot.column)?;
        let bar = self.paint(BLUE, "|");
        if !spot.source.message.is_empty() {
            let (line, value) = spot.line();
            let shown = excerpt(&line, value.start, value.end);
            writeln!(out, "{margin} {bar}")?;
            writeln!(out, "{} {bar} {}", self.paint(BLUE, &number), shown.text)?;
            let mark = self.paint(color_of(severity), &"^".repeat(shown.width));
            writeln!(out, "{margin} {bar} {}{mark}", " ".repeat(shown.indent))?;
        }
        writeln!(out, "{margin} {} help: {}\n", self.paint(BLUE, "="), finding.rule.remedy)
    }

    fn input(&mut self, _: &mut dyn Write, _: &str, _: &Tally) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &mut dyn Write, _: &Tally) -> io::Result<()> {
        Ok(())
    }
}

/// What was found, in a line.
pub(crate) fn summary(tally: &Tally, printed: u64) -> String {
    let counts = [
        count(tally.errors, "error"),
        count(tally.warnings, "warning"),
        count(tally.notes, "note"),
    ];
    let protocol =
        tally.protocol.map_or(String::new(), |protocol| format!(", {}", protocol.title()));
    let all = tally.findings();
    let shown = if printed < all { format!(" ({printed} of {all} shown)") } else { String::new() };
    format!("{}{protocol}: {}{shown}", count(tally.events, "event"), counts.join(", "))
}

/// The rules that were broken most often; none where one rule is all there is.
pub(crate) fn frequent(tally: &Tally) -> Option<String> {
    if tally.codes.len() < 2 {
        return None;
    }
    let mut codes: Vec<_> = tally.codes.iter().collect();
    codes.sort_by_key(|(_, times)| std::cmp::Reverse(**times));
    let shown: Vec<_> =
        codes.into_iter().take(3).map(|(code, times)| format!("{code} ({times})")).collect();
    Some(format!("most frequent: {}", shown.join(", ")))
}

fn count(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}
