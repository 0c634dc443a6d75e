use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use banister_journal::{Appended, Appender, Durability, Journal, Record};

use crate::support::{Place, draft, wait};

const ROUNDS: u64 = 5;

/// Not a test of its own: what the test below starts and kills. It is told the journal's path on standard input,
/// and says there which positions were acknowledged.
#[test]
#[ignore = "runs as a child process of acknowledged_records_survive_a_kill"]
fn child() {
    let mut path = String::new();
    std::io::stdin().read_line(&mut path).unwrap();
    let Some(path) = path.strip_suffix('\n') else {
        return;
    };
    let journal = Appender::open(path.as_ref()).unwrap();
    thread::scope(|scope| {
        for writer in 0..4 {
            let journal = &journal;
            scope.spawn(move || {
                for number in 0_u64.. {
                    let durability =
                        if number % 4 == 0 { Durability::Synced } else { Durability::Written };
                    let session = format!("s_{}", (writer + number) % 3);
                    let batch = vec![draft(&session, "first"), draft(&session, "second")];
                    let appended = wait(journal.append(batch, durability)).unwrap();
                    let Appended::Recorded(records) = appended else { panic!("no ids were given") };
                    let line = |record: &Arc<Record>| {
                        format!("\nack {} {} {}\n", record.position, record.session, record.seq)
                    };
                    let lines: Vec<_> = records.iter().map(line).collect();
                    let mut stdout = std::io::stdout().lock();
                    stdout.write_all(lines.concat().as_bytes()).unwrap();
                    stdout.flush().unwrap();
                }
            });
        }
    });
}

#[test]
fn acknowledged_records_survive_a_kill() {
    let place = Place::new();
    let mut acknowledged: HashMap<u64, (String, u64)> = HashMap::new();
    for round in 0..ROUNDS {
        let before = acknowledged.len();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["crash::child", "--exact", "--ignored", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(child.stdin.take().unwrap(), "{}", place.path().display()).unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        // The first acknowledgement, so that each round writes; then at a moment that falls anywhere in a commit.
        let first = lines.by_ref().find(|line| line.starts_with("ack "));
        let killer = thread::spawn(move || {
            thread::sleep(Duration::from_micros(20_000 + 17_377 * (round + 1)));
            child.kill().unwrap();
            child.wait().unwrap();
        });
        for line in first.into_iter().chain(lines) {
            let words: Vec<_> = line.split(' ').collect();
            if let ["ack", position, session, seq] = words.as_slice() {
                let seq = seq.parse().unwrap();
                let twice =
                    acknowledged.insert(position.parse().unwrap(), ((*session).to_owned(), seq));
                assert_eq!(twice, None, "position {position} was given twice");
            }
        }
        killer.join().unwrap();
        assert!(acknowledged.len() > before, "round {round} acknowledged nothing");

        let report = Journal::verify(&place.path()).unwrap();
        assert!(report.is_clean(), "round {round}: {report:?}");
        let journal = place.open();
        let records = journal.after(0, usize::MAX).unwrap();
        assert_eq!(records.len() % 2, 0, "half a batch is in the journal");
        let stored: HashMap<_, _> =
            records.iter().map(|record| (record.position, (&record.session, record.seq))).collect();
        for (position, (session, seq)) in &acknowledged {
            assert_eq!(stored.get(position), Some(&(session, *seq)), "round {round}");
        }
    }
}
