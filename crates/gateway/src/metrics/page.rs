//! The counters as a page in Prometheus' text format.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use banister_events::event::Protocol;

use super::{BUCKETS, CODES, DECISIONS, Metrics};
use crate::Gateway;
use crate::ingest::pushing::Status;

impl Gateway {
    /// Everything that is counted, in Prometheus' text format.
    pub fn metrics(&self) -> String {
        let mut page = Page(String::new());
        page.head("banister_records_total", "counter", "Records in the journal.");
        page.row("banister_records_total", "", self.journal.head());
        page.head("banister_asks_open", "gauge", "Asks that wait on a person.");
        page.row("banister_asks_open", "", self.desk.inbox().len() as u64);
        page.head("banister_subscribers", "gauge", "Streams that are followed.");
        page.row("banister_subscribers", "", self.hub.followers() as u64);
        let metrics = &self.metrics;
        let name = "banister_pushed_events_total";
        page.head(name, "counter", "Pushed events, by what became of them.");
        for (protocol, cells) in Protocol::ALL.into_iter().zip(&metrics.pushed) {
            for (status, cell) in Status::ALL.into_iter().zip(cells) {
                let status = status.name();
                let labels = format!("{{protocol=\"{protocol}\",status=\"{status}\"}}");
                page.row(name, &labels, load(cell));
            }
        }
        let name = "banister_decisions_total";
        page.head(name, "counter", "Answers of the door that waits for them.");
        for (behavior, cell) in ["allow", "deny", "abstain"].into_iter().zip(&metrics.decided) {
            page.row(name, &format!("{{behavior=\"{behavior}\"}}"), load(cell));
        }
        let name = "banister_http_requests_total";
        page.head(name, "counter", "Requests, by the status of their answer.");
        for (code, cell) in CODES.into_iter().zip(&metrics.answered) {
            let code = if code == 0 { "other".to_owned() } else { code.to_string() };
            page.row(name, &format!("{{code=\"{code}\"}}"), load(cell));
        }
        self.rules(&mut page);
        metrics.durations(&mut page);
        let name = "banister_connections_refused_total";
        page.head(name, "counter", "Connections that were one too many.");
        page.row(name, "", load(&metrics.turned_away));
        page.0
    }
}

impl Gateway {
    fn rules(&self, page: &mut Page) {
        let standing = self.policy_store.standing();
        let name = "banister_rules_info";
        page.head(name, "gauge", "The rules that count, and those that are tried, by their hash.");
        page.row(name, &format!("{{role=\"live\",hash=\"{}\"}}", standing.hash), 1);
        if let Some(hash) = &standing.shadow {
            page.row(name, &format!("{{role=\"shadow\",hash=\"{hash}\"}}"), 1);
        }
        let name = "banister_rules_stale";
        page.head(name, "gauge", "Whether the rule files as they are now do not load.");
        page.row(name, "", standing.failed.is_some().into());
        let name = "banister_rules_reloads_total";
        page.head(name, "counter", "How often rule files had changed, by whether they loaded.");
        page.row(name, "{result=\"good\"}", standing.reloads.good);
        page.row(name, "{result=\"failed\"}", standing.reloads.failed);
        let name = "banister_shadow_differences_total";
        page.head(name, "counter", "Verdicts that the rules which are tried would not have given.");
        for (said, cells) in DECISIONS.into_iter().zip(&self.metrics.tried) {
            for (tried, cell) in DECISIONS.into_iter().zip(cells) {
                let labels = format!("{{live=\"{}\",shadow=\"{}\"}}", said.name(), tried.name());
                page.row(name, &labels, load(cell));
            }
        }
    }
}

impl Metrics {
    fn durations(&self, page: &mut Page) {
        let name = "banister_http_request_duration_seconds";
        page.head(name, "histogram", "How long it took until the head of an answer was there.");
        let mut below = 0;
        let ends = BUCKETS.iter().map(|end| seconds(*end)).chain(["+Inf".to_owned()]);
        for (end, cell) in ends.zip(&self.took) {
            below += load(cell);
            page.row(&format!("{name}_bucket"), &format!("{{le=\"{end}\"}}"), below);
        }
        let sum = seconds(load(&self.took_micros));
        // Writing to a String cannot fail.
        writeln!(page.0, "{name}_sum {sum}").ok();
        page.row(&format!("{name}_count"), "", below);
    }
}

struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").ok();
    }

    fn row(&mut self, name: &str, labels: &str, value: u64) {
        writeln!(self.0, "{name}{labels} {value}").ok();
    }
}

fn load(cell: &AtomicU64) -> u64 {
    cell.load(Ordering::Relaxed)
}

/// Microseconds as seconds, exactly.
fn seconds(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn buckets_add_up_and_seconds_are_exact() {
        let metrics = Metrics::default();
        for (status, micros) in [(200, 400), (200, 700), (418, 2_000_000), (503, 60_000_000)] {
            metrics.request(status, Duration::from_micros(micros));
        }
        let mut page = Page(String::new());
        metrics.durations(&mut page);
        for line in ["le=\"0.0005\"} 1", "le=\"0.001\"} 2", "le=\"10\"} 3", "le=\"+Inf\"} 4"] {
            assert!(page.0.contains(line), "{line}: {}", page.0);
        }
        assert!(page.0.contains("_sum 62.0011\n") && page.0.contains("_count 4\n"), "{}", page.0);
        assert_eq!(load(metrics.answered.last().unwrap()), 1, "418 is none of those told apart");
    }
}
