use std::path::PathBuf;

use banister_events::activity::{Action, ActionKind};
use serde_json::json;

use super::*;
use crate::request::ActionRequest;
use crate::tools::Tools;

fn floor(command: &str, cwd: Option<&str>, home: Option<&str>) -> Option<String> {
    let action = Action {
        id: String::new(),
        kind: ActionKind::Tool,
        tool: "Bash".to_owned(),
        server: None,
        original_name: None,
        input: Some(json!({ "command": command })),
        rationale: None,
    };
    let own = [PathBuf::from("/srv/banister/data")];
    let request = ActionRequest { agent: "", action: &action, cwd, project: None, home, own: &own };
    check(&Subject::new(Tools::load().unwrap(), &request)).map(|gate| gate.rule)
}

#[test]
fn every_gate_of_the_floor_denies_with_a_sentence() {
    for fall in [Fall::WipeRoot, Fall::WipeHome, Fall::RawDisk, Fall::ForkBomb, Fall::BanisterFiles]
    {
        let gate = fall.gate();
        assert_eq!((gate.decision, gate.risk), (Decision::Deny, Risk::High));
        assert!(gate.rule.starts_with("floor.") && gate.reason.ends_with('.'));
    }
}

#[test]
fn homes_are_known_without_being_told() {
    for command in [
        "rm -rf ~",
        "rm -rf $HOME",
        "rm -rf /home/x",
        "rm -rf /Users/x/",
        "rm -rf /root",
        "rm -rf ~x",
    ] {
        assert_eq!(floor(command, None, None).as_deref(), Some("floor.wipe-home"), "{command}");
    }
    assert_eq!(floor("rm -rf /data/homes/me", None, None), None);
    let told = floor("rm -rf /data/homes/me", None, Some("/data/homes/me"));
    assert_eq!(told.as_deref(), Some("floor.wipe-home"));
    let above = floor("rm -rf /data/homes", None, Some("/data/homes/me"));
    assert_eq!(above.as_deref(), Some("floor.wipe-home"));
}

#[test]
fn what_is_deleted_every_day_is_above_the_floor() {
    for command in [
        "rm -rf target",
        "rm -rf ./*",
        "rm -rf /tmp/x",
        "rm -rf /home/me/project/node_modules",
        "rm -rf /usr/local/lib/x",
        "rm -f /etc",
        "rm /",
        "find . -delete",
        "find / -name core -delete",
        "mv a /",
        "rsync -a src/ /backup/",
        "dd if=/dev/sda of=disk.img",
        "cat /dev/sda",
        "echo x > /dev/null",
        "mkfs.ext4 disk.img",
        "cp a /dev/null",
    ] {
        assert_eq!(floor(command, Some("/home/me/project"), Some("/home/me")), None, "{command}");
    }
}

#[test]
fn the_text_is_searched_only_where_it_could_not_be_read() {
    let at = |command| floor(command, Some("/home/me/project"), Some("/home/me"));
    assert_eq!(at("echo 'rm -rf /'"), None);
    assert_eq!(at("echo 'rm -rf /' $X"), None);
    assert_eq!(at("$X 'rm -rf /'").as_deref(), Some("floor.wipe-root"));
    assert_eq!(at("echo '/srv/banister/data is mine'"), None);
    assert_eq!(at("X=$Y/banister/data; $X").as_deref(), Some("floor.banister-files"));
    assert_eq!(at("echo ':(){ :|:& };:'"), None);
    assert_eq!(at("f () { f | f & } ; f").as_deref(), Some("floor.fork-bomb"));
    assert_eq!(at("f () { g | f; }; f"), None);
}

#[test]
fn deleting_what_holds_banisters_files_deletes_them() {
    let at = |command| floor(command, Some("/home/me/project"), Some("/home/me"));
    assert_eq!(at("rm -rf /srv").as_deref(), Some("floor.banister-files"));
    assert_eq!(at("rm -rf /srv/banister/*").as_deref(), Some("floor.banister-files"));
    assert_eq!(at("mv /srv/banister /x").as_deref(), Some("floor.banister-files"));
    assert_eq!(at("ls /srv"), None);
}
