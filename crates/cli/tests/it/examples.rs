//! The client library's examples, run against a gateway.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Gateway, stdout};

/// Builds the examples; gives where they are. Of the whole workspace, as the tests themselves are built: then they are
/// there already, and no dependency is compiled once more with other features.
fn built() -> PathBuf {
    let words = ["build", "--quiet", "--workspace", "--examples"];
    let built = Command::new(env!("CARGO")).args(words).args(["--message-format", "json"]).output();
    let built = built.unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let artifact = String::from_utf8(built.stdout).unwrap();
    let emit = artifact.lines().find_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        let path = line["executable"].as_str()?.to_owned();
        (line["target"]["name"] == "emit").then_some(path)
    });
    PathBuf::from(emit.unwrap()).parent().unwrap().to_owned()
}

struct Examples {
    place: PathBuf,
    endpoint: String,
}

impl Examples {
    fn start(&self, name: &str, words: &[&str]) -> Child {
        Command::new(self.place.join(name))
            .arg(&self.endpoint)
            .args(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

fn end(child: Child) -> Vec<Value> {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_agent_asks_a_person_answers_and_somebody_follows_all_of_it_across_a_restart() {
    let mut gateway = Gateway::start();
    let endpoint = format!("unix:{}", gateway.socket().display());
    let examples = Examples { place: built(), endpoint };
    let (agent, person) = (gateway.key("agent.key"), gateway.key("person.key"));
    let answers = examples.start("person", &[&person, "reject", "not", "before", "noon"]);
    let told = end(examples.start("emit", &[&agent, "git push --force"]));
    assert_eq!(told[0]["receipts"][1]["status"], "recorded", "{told:?}");
    assert_eq!(told[0]["response"]["control"]["behavior"], "deny", "{told:?}");
    assert!(told[0]["response"].to_string().contains("not before noon"), "{told:?}");
    let said = end(answers);
    assert_eq!(said[0]["said"]["outcome"], "rejected", "{said:?}");

    let first = end(examples.start("follow", &[&person, "2"]));
    assert_eq!(first[0]["type"], "aaep:agent.session.started", "{first:?}");
    let cursor = first[2]["cursor"].as_str().unwrap();
    let whole = end(examples.start("follow", &[&person, "4"]));
    let rest = examples.start("follow", &[&person, "2", cursor]);
    std::thread::sleep(Duration::from_millis(300));
    gateway.stop();
    let away = examples.start("follow", &[&person, "4"]);
    std::thread::sleep(Duration::from_millis(300));
    gateway.up();
    assert_eq!(end(rest)[..2], whole[2..4]);
    assert_eq!(end(away), whole, "who came while the gateway was away waits for it");
    let foreign = end(examples.start("follow", &[&person, "0", "elsewhere.1.0"]));
    assert_eq!(foreign, [json!({ "cursor": "elsewhere.1.0", "missed": false })]);
}
