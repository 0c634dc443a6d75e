use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use banister_journal::{Appender, Durability, Error, Journal};

use crate::support::{Place, draft, index, indexed, recorded, wait, words};

/// Starts one of the functions below as a process of its own, under another program, and tells it where the journal is.
fn run(under: &[&str], child: &str, place: &Place) -> Vec<String> {
    let exe = std::env::current_exe().unwrap();
    let mut command = Command::new(under[0]);
    command.args(&under[1..]).arg(exe);
    let mut child = command
        .args([child, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{}", place.path().display()).unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let lines = lines.collect();
    assert!(child.wait().unwrap().success(), "{lines:?}");
    lines
}

fn told() -> Option<Appender> {
    let mut path = String::new();
    std::io::stdin().read_line(&mut path).unwrap();
    let path = path.strip_suffix('\n')?;
    Some(Appender::open(Path::new(path)).unwrap())
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

#[test]
#[ignore = "runs as a child process of a_file_that_may_not_grow_loses_nothing_that_was_acknowledged"]
fn filling() {
    let Some(journal) = told() else { return };
    let body = "x".repeat(20_000);
    for number in 0..1_000 {
        match wait(journal.append(vec![draft("a", &body)], Durability::Synced)) {
            Ok(_) => say(&format!("ack {}", number + 1)),
            Err(error) => {
                assert!(matches!(error, Error::Write(_)), "{error:?}");
                say("full");
                // Who reads is not disturbed, and nothing half-written is seen.
                assert_eq!(journal.after(0, usize::MAX).unwrap().len(), number);
                assert_eq!(journal.head(), number as u64);
                wait(journal.append(vec![draft("a", &body)], Durability::Synced)).unwrap_err();
                return;
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_grow_loses_nothing_that_was_acknowledged() {
    let place = Place::new();
    // Writes past the limit fail, as on a full disk, instead of ending the process.
    let limit = r#"trap "" XFSZ; ulimit -f 3000; exec "$0" "$@""#;
    let lines = run(&["sh", "-c", limit], "disk::filling", &place);
    let acknowledged = lines.iter().filter(|line| line.starts_with("ack ")).count();
    assert!(acknowledged > 10 && lines.iter().any(|line| line == "full"), "{lines:?}");

    let report = Journal::verify(&place.path()).unwrap();
    assert!(report.is_clean() && report.records == acknowledged as u64, "{report:?}");
    // There is room again.
    let journal = place.open();
    let next = recorded(&journal, vec![draft("a", "next")]).remove(0);
    assert_eq!(next.seq, acknowledged as u64 + 1);
    index(&journal, vec![indexed(&next, "fox")]);
    assert_eq!(journal.search(&words("fox")).unwrap().hits.len(), 1);
    drop(journal);
    assert!(Journal::verify(&place.path()).unwrap().is_clean());
}

#[test]
#[ignore = "runs as a child process of the_disk_has_confirmed_before_anybody_is_told"]
fn syncing() {
    let Some(journal) = told() else { return };
    for (word, durability) in [("synced", Durability::Synced), ("written", Durability::Written)] {
        for number in 0..40 {
            wait(journal.append(vec![draft("a", "x")], durability)).unwrap();
            say(&format!("{word} {number}"));
        }
    }
}

/// Looks at what the process asks of the system, in order. Each acknowledgement of what had to be synced comes after a
/// sync that came after the one before; of what did not have to be, some come without, or the test could not tell.
#[cfg(target_os = "linux")]
#[test]
fn the_disk_has_confirmed_before_anybody_is_told() {
    let place = Place::new();
    let trace = place.path().with_extension("trace");
    let trace_name = trace.display().to_string();
    let strace = ["strace", "-f", "-o", &trace_name, "-e", "trace=fsync,fdatasync,write"];
    let works = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        eprintln!(
            "NOT TESTED: strace is not installed, or may not trace; install it to test syncs"
        );
        return;
    }
    run(&strace, "disk::syncing", &place);
    let trace = fs::read_to_string(&trace).unwrap();
    let (mut syncs, mut without) = (0, 0);
    let (mut synced, mut written) = (0, 0);
    for line in trace.lines() {
        // A call that another thread's interrupts stands on two lines; the second has its end.
        let ended = line.ends_with("= 0");
        if ended && (line.contains("fsync") || line.contains("fdatasync")) {
            syncs += 1;
        } else if line.contains(r"\nsynced ") {
            assert!(syncs > 0, "acknowledged before the disk confirmed: {line}");
            (synced, syncs) = (synced + 1, 0);
        } else if line.contains(r"\nwritten ") {
            without += u32::from(syncs == 0);
            (written, syncs) = (written + 1, 0);
        }
    }
    assert_eq!((synced, written), (40, 40), "{trace}");
    assert!(without > 0, "every commit was synced, also those that need not be");
}
