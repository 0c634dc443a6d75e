use std::path::{Path, PathBuf};

use banister_events::activity::{Action, ActionKind};
use serde_json::json;

use super::*;
use crate::request::ActionRequest;
use crate::subject::Subject;
use crate::tools::Tools;

/// What a text does: kinds with their paths or hosts.
fn effects(command: &str) -> Vec<String> {
    let action = Action {
        id: String::new(),
        kind: ActionKind::Tool,
        tool: "Bash".to_owned(),
        server: None,
        original_name: None,
        input: Some(json!({ "command": command })),
        rationale: None,
    };
    let request = ActionRequest {
        agent: "",
        action: &action,
        cwd: Some("/home/me/project"),
        project: None,
        home: Some("/home/me"),
        own: &[],
    };
    let subject = Subject::new(Tools::load().unwrap(), &request)
        .with_links(&[(PathBuf::from("/home/me/project/out"), PathBuf::from("/etc"))]);
    let shown = |effect: &Effect| {
        let about = effect.path.clone().or_else(|| effect.host.clone());
        let kind = serde_json::to_value(effect.kind).unwrap();
        format!("{} {}", kind.as_str().unwrap(), about.unwrap_or_default()).trim().to_owned()
    };
    subject.effects.iter().flatten().map(shown).collect()
}

#[test]
fn the_tables_load_and_know_what_developers_use() {
    let table = table().unwrap();
    assert!(table.len() > 1_000, "{}", table.len());
    for program in
        ["git", "cargo", "npm", "docker", "kubectl", "curl", "psql", "rm", "tar", "systemctl"]
    {
        assert!(table.get(program).is_some(), "{program}");
    }
}

#[test]
fn words_have_their_roles() {
    for (command, does) in [
        ("echo hi", vec![]),
        ("cat a b", vec!["read a", "read b"]),
        ("head -n 5 a", vec!["read a"]),
        ("od -c a", vec!["read a"]),
        ("grep -e x -f list a", vec!["read list", "read a"]),
        ("cp a b c", vec!["read a", "read b", "write c"]),
        ("mv a b", vec!["write b", "delete a"]),
        ("rm -rf a -- -b", vec!["delete a", "delete -b"]),
        ("sort -o out a", vec!["read a", "write out"]),
        ("sort --outp=out a", vec!["read a", "write out"]),
        ("dd if=a of=b bs=1M", vec!["read a", "write b"]),
        ("find a -name x -delete", vec!["read a", "delete a"]),
        ("sed s/a/b/ x", vec!["read x"]),
        ("sed 's/a/b/w out' x", vec!["read x", "execute"]),
        ("sed -i s/a/b/ x", vec!["read x", "write x"]),
        ("awk '{print $1}' x", vec!["read x"]),
        ("awk '{system(\"id\")}' x", vec!["read x", "execute"]),
        ("curl -d @a https://u@Example.org:1/x", vec!["read a", "network example.org", "send"]),
        ("scp a me@host.example:b", vec!["read a", "send host.example"]),
        ("git push --force", vec!["history", "publish"]),
        ("git commit -m 'rm -rf /'", vec!["vcs"]),
        ("git show HEAD:a/b", vec!["read", "read HEAD:a/b", "read a/b"]),
        ("psql -c 'select 1'", vec![]),
        ("psql -c 'drop table x'", vec!["database"]),
        ("ls > out.txt", vec!["write out.txt"]),
        ("ls > /dev/null", vec![]),
        ("mystery x", vec!["unknown"]),
        ("git mystery", vec!["unknown"]),
        ("cat \"$X\"", vec!["read …", "unknown"]),
        ("cat -- \"$X\"", vec!["read …"]),
        ("echo $X", vec![]),
    ] {
        assert_eq!(effects(command), does, "{command}");
    }
}

#[test]
fn a_link_counts_under_all_its_names() {
    let action = |command: &str| {
        crate::rules::Rules::builtin()
            .map(|rules| {
                let action = Action {
                    id: String::new(),
                    kind: ActionKind::Tool,
                    tool: "Bash".to_owned(),
                    server: None,
                    original_name: None,
                    input: Some(json!({ "command": command })),
                    rationale: None,
                };
                let request = ActionRequest {
                    agent: "",
                    action: &action,
                    cwd: Some("/home/me/project"),
                    project: None,
                    home: Some("/home/me"),
                    own: &[],
                };
                let links = [("out", "../.."), ("keys", "/home/me/.ssh"), ("loop", "loop")]
                    .map(|(from, to)| (Path::new("/home/me/project").join(from), to.into()));
                crate::evaluate(&rules, &rules.read(&request).with_links(&links))
            })
            .unwrap()
    };
    assert_eq!(action("cat src/x").decision.name(), "allow");
    assert_eq!(action("cat out/x").decision.name(), "ask");
    assert_eq!(action("cat out/../x").decision.name(), "ask");
    assert_eq!(action("cat loop").decision.name(), "ask");
    assert_eq!(action("cat keys/id").rule, "pack.secret.touch");
    assert_eq!(action("rm -rf out/").rule, "floor.wipe-root");
}
