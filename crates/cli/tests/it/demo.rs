//! The newcomer's minute: the demo, and the five lines it prints, run as printed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::support::BANISTER;

#[test]
fn the_five_lines_work() {
    let mut running = Running(start());
    let demo = &mut running.0;
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    let steps: Vec<String> = (1..=5)
        .map(|number| {
            let start = format!("{number}. ");
            let line = lines.find(|line| line.starts_with(&start)).expect("five numbered lines");
            line.split_once(":  ").or_else(|| line.split_once(": ")).unwrap().1.trim().to_owned()
        })
        .collect();
    lines.find(|line| line.contains("git push --force")).expect("the agent asks for a push");

    let page = shell(&format!("curl -sS -L -c /dev/null -b '' '{}'", steps[0]));
    assert!(page.contains("<h1>"), "{page}");
    let inbox = until(&steps[1], "One ask is waiting");
    let answer = inbox.lines().find(|line| line.contains("Answer: ")).unwrap();
    let id = answer.split_whitespace().nth(3).unwrap();
    let heard = shell(&format!("timeout 2 {}", steps[3]));
    assert!(heard.contains("awaiting.confirmation"), "{heard}");
    shell(&steps[2].replace("ASK", id));
    lines
        .find(|line| line == "banister: allowed. Accepted by the user.")
        .expect("the answer arrives");
    lines.find(|line| line.starts_with("The agent is done.")).expect("the agent comes to its end");
    let record = shell(&steps[4]);
    assert!(record.contains("[deny by floor.wipe-home]"), "{record}");
    assert!(record.contains("Every record and every chain is intact."), "{record}");

    let dir = steps[1].split_whitespace().last().unwrap().to_owned();
    let pid = demo.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(demo.wait().unwrap().code(), Some(0));
    assert!(!std::path::Path::new(&dir).exists(), "the directory must be gone");
}

fn start() -> Child {
    Command::new(BANISTER)
        .args(["demo", "--listen", "127.0.0.1:0", "--pace", "4000"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// A demo that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Runs a line as a newcomer would paste it.
fn shell(line: &str) -> String {
    let output = Command::new("bash").args(["-c", line]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn until(line: &str, wanted: &str) -> String {
    let mut said = String::new();
    crate::support::wait_for(wanted, || {
        said = shell(line);
        said.contains(wanted)
    });
    said
}
