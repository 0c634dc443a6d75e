use banister_events::activity::Decision;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

const HEAD: &str = "schema: banister.policy/v1\nrules:\n";

fn rule(id: &str, decision: &str, program: &str) -> String {
    format!(
        "  - id: {id}\n    decision: {decision}\n    argv: [[{program}]]\n    reason: Because.\n    risk: low\n"
    )
}

struct Desk {
    dir: tempfile::TempDir,
    book: Book,
}

impl Desk {
    fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("home/project/.git")).unwrap();
        let files = Files {
            user: Some(File::usual(dir.path().join("user.yaml"))),
            org: Some(File::usual(dir.path().join("org.yaml"))),
            ..Files::default()
        };
        let home = Some(dir.path().join("home"));
        let book = Book::open(files, home).unwrap();
        Self { dir, book }
    }

    fn write(&self, file: &str, rules: &[String]) {
        let path = self.dir.path().join(file);
        std::fs::write(path, format!("{HEAD}{}", rules.concat())).unwrap();
    }

    fn judge(&self, command: &str) -> Verdict {
        self.judge_in(command, "home/project")
    }

    fn judge_in(&self, command: &str, cwd: &str) -> Verdict {
        let mut action = Action::unseen("1", "Bash");
        action.input = Some(json!({ "command": command }));
        let cwd = self.dir.path().join(cwd);
        self.book.judge(&Asked {
            agent: "claude",
            session: Some("s"),
            action: &action,
            cwd: cwd.to_str(),
            project: None,
            own: &[],
            now: Timestamp::UNIX_EPOCH,
        })
    }

    fn says(&self, command: &str) -> (Decision, String) {
        let gate = self.judge(command).gate;
        (gate.decision, gate.rule)
    }
}

#[test]
fn rules_that_change_count_at_the_next_look() {
    let desk = Desk::open();
    let before = desk.book.standing().hash;
    assert_eq!(desk.says("gadget").1, "none");
    desk.write("user.yaml", &[rule("gadget", "deny", "gadget")]);
    assert_eq!(desk.says("gadget").1, "none", "nobody has looked yet");
    desk.book.refresh();
    assert_eq!(desk.says("gadget"), (Decision::Deny, "user.gadget".to_owned()));
    let after = desk.book.standing();
    assert_ne!(after.hash, before);
    assert_eq!(after.reloads, Reloads { good: 1, failed: 0 });
    desk.book.refresh();
    assert_eq!(desk.book.standing().reloads.good, 1, "nothing has changed");

    desk.write("org.yaml", &[rule("widget", "deny", "widget")]);
    desk.book.refresh();
    assert_eq!(desk.says("widget").1, "org.widget");
    std::fs::remove_file(desk.dir.path().join("user.yaml")).unwrap();
    desk.book.refresh();
    assert_eq!(desk.says("gadget").1, "none");
}

#[test]
fn rules_that_do_not_load_leave_the_old_ones_and_say_where() {
    let desk = Desk::open();
    desk.write("user.yaml", &[rule("gadget", "deny", "gadget")]);
    desk.book.refresh();
    let good = desk.book.standing().hash;
    std::fs::write(desk.dir.path().join("user.yaml"), "schema: banister.policy/v1\nrulez: []\n")
        .unwrap();
    desk.book.refresh();
    assert_eq!(desk.says("gadget").1, "user.gadget");
    let standing = desk.book.standing();
    assert_eq!((standing.hash, standing.reloads), (good, Reloads { good: 1, failed: 1 }));
    let why = standing.failed.unwrap();
    assert!(why.contains("user.yaml:2:1") && why.contains("rulez"), "{why}");

    desk.write("user.yaml", &[rule("gadget", "ask", "gadget")]);
    desk.book.refresh();
    assert_eq!((desk.says("gadget").0, desk.book.standing().failed), (Decision::Ask, None));
}

#[test]
fn a_file_that_was_named_has_to_be_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.yaml");
    let files = Files { user: Some(File::named(&path)), ..Files::default() };
    assert!(Book::open(files.clone(), None).unwrap_err().to_string().contains("mine.yaml"));
    std::fs::write(&path, HEAD.replace("rules:\n", "rules: []\n")).unwrap();
    let book = Book::open(files, None).unwrap();
    std::fs::remove_file(&path).unwrap();
    book.refresh();
    assert!(book.standing().failed.is_some(), "what it said still counts");
}

#[test]
fn a_project_tightens_and_a_folder_below_does_not_loosen_it_again() {
    let desk = Desk::open();
    assert_eq!(desk.says("git status").0, Decision::Allow);
    desk.write("home/project/.banister.yaml", &[rule("status", "deny", "git, status")]);
    assert_eq!(desk.says("git status"), (Decision::Deny, "project.status".to_owned()));
    std::fs::create_dir_all(desk.dir.path().join("home/project/sub")).unwrap();
    desk.write("home/project/sub/.banister.yaml", &[rule("log", "deny", "git, log")]);
    let below = |command: &str| desk.judge_in(command, "home/project/sub").gate.rule;
    assert_eq!(below("git status"), "project.status");
    assert_eq!(below("git log"), "project.log");
    assert_ne!(desk.says("git log").1, "project.log", "that is the folder's own");
    std::fs::remove_file(desk.dir.path().join("home/project/.banister.yaml")).unwrap();
    assert_eq!(desk.says("git status").0, Decision::Allow);
}

#[test]
fn a_project_whose_rules_do_not_load_is_asked_about_everything() {
    let desk = Desk::open();
    desk.write("home/project/.banister.yaml", &[rule("all", "allow", "make")]);
    let gate = desk.judge("git status").gate;
    assert_eq!((gate.decision, gate.rule.as_str()), (Decision::Ask, UNLOADED));
    assert!(gate.reason.contains(".banister.yaml:"), "{}", gate.reason);
    assert_eq!(desk.says("rm -rf ~").1, "floor.wipe-home", "what is stricter stays");
    desk.write("home/project/.banister.yaml", &[rule("all", "ask", "make")]);
    assert_eq!(desk.says("git status").0, Decision::Allow, "it is read again once it changes");
}

#[test]
fn a_link_to_a_secret_is_the_secret() {
    let desk = Desk::open();
    let home = desk.dir.path().join("home");
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    assert_eq!(desk.says("cat notes").0, Decision::Allow);
    std::os::unix::fs::symlink(home.join(".ssh"), home.join("project/notes")).unwrap();
    assert_ne!(desk.says("cat notes/id_ed25519").0, Decision::Allow);
    assert_ne!(desk.says("cd notes && cat id_ed25519").0, Decision::Allow);
    assert_ne!(desk.says("X=notes; cat $X/id_ed25519").0, Decision::Allow);
}

#[test]
fn the_record_says_which_rules_read_what() {
    let desk = Desk::open();
    let verdict = desk.judge("cd /tmp && X=rm; $X -rf ~/");
    let told = serde_json::to_value(Gated {
        gate: verdict.gate.clone(),
        provenance: verdict.provenance.clone(),
    })
    .unwrap();
    assert_eq!(told["rules"], json!(desk.book.standing().hash));
    let read: Vec<&str> =
        told["read"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(read.contains(&"cd /tmp") && read.contains(&"rm -rf ~/"), "{read:?}");
    assert_eq!(told["project"], json!(desk.dir.path().join("home/project")));
    assert_eq!(told["rule"], "floor.wipe-home");
    assert_eq!(Gate::deserialize(&told).unwrap(), verdict.gate, "older readers read it as well");
    let bare = serde_json::to_value(&verdict.gate).unwrap();
    assert_eq!(Gated::deserialize(&bare).unwrap(), Gated::from(verdict.gate));
}

#[test]
fn what_is_only_tried_is_told_and_changes_nothing() {
    let desk = Desk::open();
    desk.write("tried.yaml", &[rule("status", "deny", "git, status")]);
    let tried = desk.dir.path().join("tried.yaml");
    let files = Files { shadow: Some(File::named(tried)), ..desk.book.files.clone() };
    let desk = Desk { book: Book::open(files, desk.book.home.clone()).unwrap(), ..desk };
    let verdict = desk.judge("git status");
    assert_eq!(verdict.gate.decision, Decision::Allow);
    let shadow = verdict.provenance.shadow.unwrap();
    assert_eq!((shadow.decision, shadow.rule.as_str()), (Decision::Deny, "user.status"));
    assert_eq!(Some(shadow.rules), desk.book.standing().shadow);
    assert_eq!(desk.judge("git log").provenance.shadow, None, "they agree");

    desk.write("home/project/.banister.yaml", &[rule("log", "deny", "git, log")]);
    assert_eq!(desk.judge("git log").provenance.shadow, None, "a project's rules count for both");
}
