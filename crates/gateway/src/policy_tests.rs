use std::cell::Cell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use banister_events::activity::Decision;
use serde::Deserialize;
use serde_json::{Value, json};

use super::rule_sets::BeforeLoad;
use super::*;
use crate::Gateway;
use crate::Settings;
use crate::clock::Clock;
use crate::pipeline::Incoming;

thread_local! {
    /// How many actions this thread has read.
    pub(super) static READS: Cell<usize> = const { Cell::new(0) };
}

/// What is made meanwhile, and how many actions are read for it.
fn counted<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = READS.get();
    let value = make();
    (value, READS.get() - before)
}

const HEAD: &str = "schema: banister.policy/v1\nrules:\n";

fn rule(id: &str, decision: &str, program: &str) -> String {
    format!(
        "  - id: {id}\n    decision: {decision}\n    argv: [[{program}]]\n    reason: Because.\n    risk: low\n"
    )
}

struct RulesOnDisk {
    dir: tempfile::TempDir,
    store: PolicyStore,
}

impl RulesOnDisk {
    fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("home/project/.git")).unwrap();
        let files = RuleFiles {
            user: Some(RuleFile::usual(dir.path().join("user.yaml"))),
            org: Some(RuleFile::usual(dir.path().join("org.yaml"))),
            ..RuleFiles::default()
        };
        let home = Some(dir.path().join("home"));
        let store = PolicyStore::open(files, home).unwrap();
        Self { dir, store }
    }

    fn write(&self, file: &str, rules: &[String]) {
        let path = self.dir.path().join(file);
        std::fs::write(path, format!("{HEAD}{}", rules.concat())).unwrap();
    }

    fn judge(&self, command: &str) -> Judgement {
        self.judge_in(command, "home/project")
    }

    fn judge_in(&self, command: &str, cwd: &str) -> Judgement {
        let mut action = Action::unseen("1", "Bash");
        action.input = Some(json!({ "command": command }));
        let cwd = self.dir.path().join(cwd);
        self.store.judge(&PolicyQuestion {
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
    let disk = RulesOnDisk::open();
    let before = disk.store.standing().hash;
    assert_eq!(disk.says("gadget").1, "none");
    disk.write("user.yaml", &[rule("gadget", "deny", "gadget")]);
    assert_eq!(disk.says("gadget").1, "none", "nobody has looked yet");
    disk.store.refresh();
    assert_eq!(disk.says("gadget"), (Decision::Deny, "user.gadget".to_owned()));
    let after = disk.store.standing();
    assert_ne!(after.hash, before);
    assert_eq!(after.reloads, Reloads { good: 1, failed: 0 });
    disk.store.refresh();
    assert_eq!(disk.store.standing().reloads.good, 1, "nothing has changed");

    disk.write("org.yaml", &[rule("widget", "deny", "widget")]);
    disk.store.refresh();
    assert_eq!(disk.says("widget").1, "org.widget");
    std::fs::remove_file(disk.dir.path().join("user.yaml")).unwrap();
    disk.store.refresh();
    assert_eq!(disk.says("gadget").1, "none");
}

#[test]
fn rules_that_do_not_load_leave_the_old_ones_and_say_where() {
    let disk = RulesOnDisk::open();
    disk.write("user.yaml", &[rule("gadget", "deny", "gadget")]);
    disk.store.refresh();
    let good = disk.store.standing().hash;
    std::fs::write(disk.dir.path().join("user.yaml"), "schema: banister.policy/v1\nrulez: []\n")
        .unwrap();
    disk.store.refresh();
    assert_eq!(disk.says("gadget").1, "user.gadget");
    let standing = disk.store.standing();
    assert_eq!((standing.hash, standing.reloads), (good, Reloads { good: 1, failed: 1 }));
    let why = standing.failed.unwrap();
    assert!(why.contains("user.yaml:2:1") && why.contains("rulez"), "{why}");

    disk.write("user.yaml", &[rule("gadget", "ask", "gadget")]);
    disk.store.refresh();
    assert_eq!((disk.says("gadget").0, disk.store.standing().failed), (Decision::Ask, None));
}

#[test]
fn a_file_that_was_named_has_to_be_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.yaml");
    let files = RuleFiles { user: Some(RuleFile::named(&path)), ..RuleFiles::default() };
    assert!(PolicyStore::open(files.clone(), None).unwrap_err().to_string().contains("mine.yaml"));
    std::fs::write(&path, HEAD.replace("rules:\n", "rules: []\n")).unwrap();
    let store = PolicyStore::open(files, None).unwrap();
    std::fs::remove_file(&path).unwrap();
    store.refresh();
    assert!(store.standing().failed.is_some(), "what it said still counts");
}

#[test]
fn a_project_tightens_and_a_folder_below_does_not_loosen_it_again() {
    let disk = RulesOnDisk::open();
    assert_eq!(disk.says("git status").0, Decision::Allow);
    disk.write("home/project/.banister.yaml", &[rule("status", "deny", "git, status")]);
    assert_eq!(disk.says("git status"), (Decision::Deny, "project.status".to_owned()));
    std::fs::create_dir_all(disk.dir.path().join("home/project/sub")).unwrap();
    disk.write("home/project/sub/.banister.yaml", &[rule("log", "deny", "git, log")]);
    let below = |command: &str| disk.judge_in(command, "home/project/sub").gate.rule;
    assert_eq!(below("git status"), "project.status");
    assert_eq!(below("git log"), "project.log");
    assert_ne!(disk.says("git log").1, "project.log", "that is the folder's own");
    std::fs::remove_file(disk.dir.path().join("home/project/.banister.yaml")).unwrap();
    assert_eq!(disk.says("git status").0, Decision::Allow);
}

#[test]
fn a_project_whose_rules_do_not_load_is_asked_about_everything() {
    let disk = RulesOnDisk::open();
    disk.write("home/project/.banister.yaml", &[rule("all", "allow", "make")]);
    let gate = disk.judge("git status").gate;
    assert_eq!((gate.decision, gate.rule.as_str()), (Decision::Ask, UNLOADED));
    assert!(gate.reason.contains(".banister.yaml:"), "{}", gate.reason);
    assert_eq!(disk.says("rm -rf ~").1, "floor.wipe-home", "what is stricter stays");
    disk.write("home/project/.banister.yaml", &[rule("all", "ask", "make")]);
    assert_eq!(disk.says("git status").0, Decision::Allow, "it is read again once it changes");
}

#[test]
fn a_link_to_a_secret_is_the_secret() {
    let disk = RulesOnDisk::open();
    let home = disk.dir.path().join("home");
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    assert_eq!(disk.says("cat notes").0, Decision::Allow);
    std::os::unix::fs::symlink(home.join(".ssh"), home.join("project/notes")).unwrap();
    assert_ne!(disk.says("cat notes/id_ed25519").0, Decision::Allow);
    assert_ne!(disk.says("cd notes && cat id_ed25519").0, Decision::Allow);
    assert_ne!(disk.says("X=notes; cat $X/id_ed25519").0, Decision::Allow);
}

#[test]
fn the_record_says_which_rules_read_what() {
    let disk = RulesOnDisk::open();
    let verdict = disk.judge("cd /tmp && X=rm; $X -rf ~/");
    let told = serde_json::to_value(Gated {
        gate: verdict.gate.clone(),
        provenance: verdict.provenance.clone(),
    })
    .unwrap();
    assert_eq!(told["rules"], json!(disk.store.standing().hash));
    let read: Vec<&str> =
        told["read"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(read.contains(&"cd /tmp") && read.contains(&"rm -rf ~/"), "{read:?}");
    assert_eq!(told["project"], json!(disk.dir.path().join("home/project")));
    assert_eq!(told["rule"], "floor.wipe-home");
    assert_eq!(Gate::deserialize(&told).unwrap(), verdict.gate, "older readers read it as well");
    let bare = serde_json::to_value(&verdict.gate).unwrap();
    assert_eq!(Gated::deserialize(&bare).unwrap(), Gated::from(verdict.gate));
}

#[test]
fn what_is_only_tried_is_told_and_changes_nothing() {
    let disk = RulesOnDisk::open();
    disk.write("tried.yaml", &[rule("status", "deny", "git, status")]);
    let tried = disk.dir.path().join("tried.yaml");
    let files = RuleFiles { shadow: Some(RuleFile::named(tried)), ..disk.store.files.clone() };
    let disk =
        RulesOnDisk { store: PolicyStore::open(files, disk.store.home.clone()).unwrap(), ..disk };
    let verdict = disk.judge("git status");
    assert_eq!(verdict.gate.decision, Decision::Allow);
    let shadow = verdict.provenance.shadow.unwrap();
    assert_eq!((shadow.decision, shadow.rule.as_str()), (Decision::Deny, "user.status"));
    assert_eq!(Some(shadow.rules), disk.store.standing().shadow);
    assert_eq!(disk.judge("git log").provenance.shadow, None, "they agree");

    disk.write("home/project/.banister.yaml", &[rule("log", "deny", "git, log")]);
    assert_eq!(disk.judge("git log").provenance.shadow, None, "a project's rules count for both");
}

/// Rules in a file of each kind: two of the project's, one that is only tried.
fn many_rules() -> RulesOnDisk {
    let disk = RulesOnDisk::open();
    std::fs::create_dir_all(disk.dir.path().join("home/project/sub")).unwrap();
    disk.write("home/project/.banister.yaml", &[rule("status", "ask", "git, status")]);
    disk.write("home/project/sub/.banister.yaml", &[rule("log", "deny", "git, log")]);
    disk.write("tried.yaml", &[rule("status", "deny", "git, status")]);
    let shadow = Some(RuleFile::named(disk.dir.path().join("tried.yaml")));
    let files = RuleFiles { shadow, ..disk.store.files.clone() };
    let store = PolicyStore::open(files, disk.store.home.clone()).unwrap();
    RulesOnDisk { store, ..disk }
}

#[test]
fn an_action_is_read_once_per_verdict_however_many_rules_and_links_there_are() {
    let disk = many_rules();
    let (judgement, read) = counted(|| disk.judge_in("git status", "home/project/sub"));
    assert_eq!((judgement.gate.rule.as_str(), read), ("project.status", 1));
    assert_eq!(judgement.provenance.shadow.unwrap().rule, "user.status");

    let home = disk.dir.path().join("home");
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    std::os::unix::fs::symlink(home.join(".ssh"), home.join("project/out")).unwrap();
    let (judgement, read) = counted(|| disk.judge_in("cat ../out/id", "home/project/sub"));
    assert_eq!((judgement.gate.decision, read), (Decision::Ask, 1));

    let action =
        Action { input: Some(json!({ "command": "git pull" })), ..Action::unseen("1", "Bash") };
    let cwd = home.join("project");
    let question = PolicyQuestion {
        agent: "claude",
        session: Some("s"),
        action: &action,
        cwd: cwd.to_str(),
        project: None,
        own: &[],
        now: Timestamp::UNIX_EPOCH,
    };
    let grant = Grant {
        id: "gr_1".into(),
        rule: "none".into(),
        also: Vec::new(),
        covers: Covers::Command(vec!["git".into(), "pull".into()]),
        scope: GrantScope::Always,
        agent: "claude".into(),
        project: String::new(),
        session: String::new(),
        ask: String::new(),
        by: String::new(),
        since: Timestamp::UNIX_EPOCH,
        until: Timestamp::MAX,
    };
    let (_, read) = counted(|| disk.store.judge_with(&question, &grant));
    assert_eq!(read, 1);
}

fn gateway(disk: &RulesOnDisk) -> Arc<Gateway> {
    let settings = Settings {
        home: disk.store.home.clone(),
        policy: disk.store.files.clone(),
        ..Settings::new(disk.dir.path().join("data"))
    };
    Gateway::open(settings, Clock::manual(Timestamp::UNIX_EPOCH)).unwrap()
}

fn incoming(disk: &RulesOnDisk, session: &str, cwd: &str, command: &str) -> Incoming {
    let payload = json!({
        "session_id": session, "cwd": disk.dir.path().join(cwd), "tool_name": "Bash",
        "tool_use_id": command, "tool_input": { "command": command },
    });
    Incoming::of_claude("PreToolUse", &payload)
}

#[tokio::test]
async fn a_verdict_whose_rules_are_loaded_is_given_at_once_and_a_replay_reads_once() {
    let disk = many_rules();
    let gateway = gateway(&disk);
    let cwd = "home/project/sub";
    let before = READS.get();
    gateway.accept(&incoming(&disk, "s", cwd, "git log")).await.unwrap();
    assert_eq!(READS.get(), before, "the first verdict of a session asks the journal elsewhere");
    let accepted = gateway.accept(&incoming(&disk, "s", cwd, "git status")).await.unwrap();
    assert_eq!(READS.get(), before + 1, "the second has everything at hand");
    assert_eq!(accepted.gate.unwrap().rule, "project.status");

    let record = &accepted.records[0];
    let recorded = RecordedVerdict::of(gateway.agents(), record).unwrap();
    let (judgement, read) = counted(|| {
        disk.store.judge(&PolicyQuestion {
            agent: &recorded.agent,
            session: None,
            action: &recorded.action,
            cwd: recorded.cwd.as_deref(),
            project: recorded.gated.provenance.project.as_deref().map(Path::new),
            own: &[],
            now: record.time,
        })
    });
    assert_eq!((judgement.gate, read), (recorded.gated.gate, 1));
}

/// One thread runs everything that is async here: whatever blocks it blocks everybody.
#[tokio::test]
async fn a_project_whose_rules_take_long_to_load_holds_up_nobody_else() {
    let disk = RulesOnDisk::open();
    std::fs::create_dir_all(disk.dir.path().join("home/slow/.git")).unwrap();
    disk.write("home/slow/.banister.yaml", &[rule("status", "deny", "git, status")]);
    disk.write("home/project/.banister.yaml", &[rule("log", "deny", "git, log")]);
    let gateway = gateway(&disk);
    let loads = Arc::new(AtomicUsize::new(0));
    let gate = Arc::new(Barrier::new(2));
    let (begun, mut begins) = tokio::sync::mpsc::channel(2);
    let (counter, wait) = (Arc::clone(&loads), Arc::clone(&gate));
    gateway.policy_store.lock().sets.before_load = BeforeLoad(Some(Arc::new(move |file| {
        if file.is_some_and(|file| file.ends_with("slow/.banister.yaml")) {
            counter.fetch_add(1, Ordering::SeqCst);
            begun.blocking_send(()).unwrap();
            wait.wait();
        }
    })));
    let slow = |session: &str| {
        let (gateway, incoming) =
            (Arc::clone(&gateway), incoming(&disk, session, "home/slow", "git status"));
        let tasks = gateway.tasks.clone();
        tasks.spawn(async move { gateway.accept(&incoming).await.unwrap().gate.unwrap().rule })
    };
    let (one, two) = (slow("one"), slow("two"));
    begins.recv().await.unwrap();

    for command in ["git status", "git log", "git status"] {
        let accepted =
            gateway.accept(&incoming(&disk, "quick", "home/project", command)).await.unwrap();
        let deny = accepted.gate.unwrap().decision == Decision::Deny;
        assert_eq!(deny, command == "git log", "{command}");
    }
    assert!(!one.is_finished() && !two.is_finished());

    tokio::task::spawn_blocking(move || gate.wait()).await.unwrap();
    assert_eq!(
        (one.await.unwrap().as_str(), two.await.unwrap().as_str()),
        ("project.status", "project.status")
    );
    assert_eq!(loads.load(Ordering::SeqCst), 1, "two that want the same load it once");
}
