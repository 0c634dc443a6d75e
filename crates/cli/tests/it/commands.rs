//! Help, usage and exit codes: 0 good, 1 refused, 2 usage, 3 failed.

use std::process::Command;

use crate::support::{BANISTER, Gateway, stderr, stdout};

fn run(args: &[&str]) -> std::process::Output {
    let nowhere = tempfile::tempdir().unwrap();
    Command::new(BANISTER)
        .args(args)
        .env("HOME", nowhere.path())
        .env_remove("XDG_DATA_HOME")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn every_command_has_help() {
    let help = stdout(&run(&["--help"]));
    for command in ["demo", "serve", "inbox", "answer", "check", "rules", "log", "token", "hook"] {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
        let own = run(&[command, "--help"]);
        assert_eq!(own.status.code(), Some(0), "{command}");
        assert!(stdout(&own).contains("Usage: banister"), "{command}");
    }
}

#[test]
fn wrong_use_exits_with_2_and_says_what_is_wrong() {
    for args in [
        &["no-such-command"][..],
        &["answer"],
        &["answer", "x"],
        &["answer", "x", "--yes", "--no"],
        &["answer", "x", "--number", "many"],
        &["extend"],
        &["extend", "x", "--by", "soon"],
        &["serve", "--listen", "here"],
        &["check", "--protocol", "http", "-"],
        &["log"],
        &[],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert!(!stderr(&output).is_empty(), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn without_a_gateway_the_next_step_is_named() {
    for args in [&["inbox"][..], &["answer", "x", "accept"], &["token", "login"]] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {output:?}");
        assert!(stderr(&output).contains("banister serve"), "{}", stderr(&output));
    }
    assert_eq!(run(&["log", "verify"]).status.code(), Some(3));
    // One that has run and stopped is told the same way.
    let mut gateway = Gateway::start();
    gateway.kill();
    let output = gateway.banister(&["inbox"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).ends_with("banister serve\n"), "{}", stderr(&output));
}

#[test]
fn a_config_with_a_mistake_names_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config.toml");
    std::fs::write(&config, "sync_allow = true\nlistenn = \"127.0.0.1:0\"\n").unwrap();
    let data = dir.path().join("data");
    let output =
        run(&["serve", "--config", config.to_str().unwrap(), "--data", data.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let told = stderr(&output);
    let place = format!("banister: {}:2:1: there is no key `listenn`", config.display());
    assert!(told.starts_with(&place), "{told}");
    assert!(told.contains("2 | listenn = \"127.0.0.1:0\"\n  | ^^^^^^^\n"), "{told}");
    assert!(told.contains("did you mean `listen`?"), "{told}");
    assert!(!data.exists(), "nothing was begun");
}

#[test]
fn the_config_names_the_data_directory_for_every_command() {
    let gateway = Gateway::start();
    let config = gateway.dir.path().join(".config/banister");
    std::fs::create_dir_all(&config).unwrap();
    let text = format!("data = {:?}\n", gateway.data());
    std::fs::write(config.join("config.toml"), text).unwrap();
    for args in [&["inbox"][..], &["log", "verify"], &["token", "login", "--json"]] {
        let output = Command::new(BANISTER)
            .args(args)
            .env("HOME", gateway.dir.path())
            .env_remove("XDG_CONFIG_HOME")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    }
}

#[test]
fn the_gateway_serves_this_machine_only() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("d");
    let output = run(&["serve", "--listen", "0.0.0.0:0", "--data", data.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(stderr(&output).contains("loopback"), "{}", stderr(&output));
}

#[test]
fn rules_with_a_mistake_are_a_mistake_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let rules = dir.path().join("rules.yaml");
    std::fs::write(&rules, "schema: banister.policy/v1\nrules:\n  - idd: x\n").unwrap();
    let (rules, data) = (rules.to_str().unwrap(), dir.path().join("d"));
    let output = run(&["serve", "--policy", rules, "--data", data.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains(":3:"), "{}", stderr(&output));
}

#[test]
fn a_tampered_journal_is_found_and_the_record_named() {
    let mut gateway = Gateway::start();
    for n in 0..3 {
        gateway.hooked("PreToolUse", &crate::support::command(&format!("t{n}"), "git status"));
    }
    gateway.kill();
    let database = gateway.data().join("journal.db");
    let edit = "UPDATE record SET body = CAST(replace(CAST(body AS TEXT), 'git status', 'git statuX') AS BLOB) WHERE seq = 2";
    tamper(&database, edit);
    let output = gateway.banister(&["log", "verify"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stdout(&output).contains("Broken: record 2 of session"), "{}", stdout(&output));
}

/// Edits the database behind the journal's back, with the tool that every system's Python has.
fn tamper(database: &std::path::Path, sql: &str) {
    let script = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); print(db.execute(sys.argv[2]).rowcount); db.commit()";
    let output =
        Command::new("python3").args(["-c", script]).arg(database).arg(sql).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "1", "{output:?}");
}

#[test]
fn keys_are_issued_listed_and_revoked() {
    let gateway = Gateway::start();
    let issued =
        gateway.banister(&["token", "issue", "--scope", "watch,answer", "--name", "reader"]);
    assert_eq!(issued.status.code(), Some(0), "{issued:?}");
    let key = stdout(&issued).trim().to_owned();
    assert!(key.starts_with("bk_reader_") && key.lines().count() == 1, "{key}");
    assert!(stderr(&issued).contains("The key reader may watch, answer."), "{issued:?}");
    let inbox = |key: &str| {
        let request = format!(
            "GET /api/inbox HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n",
            gateway.address()
        );
        gateway.raw(&request).status
    };
    assert_eq!(inbox(&key), 200);
    // A name is taken once; without one, one is made up.
    let again = gateway.banister(&["token", "issue", "--scope", "admin", "--name", "reader"]);
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    let brief = gateway.json(&["token", "issue", "--scope", "watch", "--expires", "2s", "--json"]);
    let name = brief["id"].as_str().unwrap().to_owned();
    assert!(name.starts_with("watch-") && brief["expires"].is_string(), "{brief}");
    let brief = brief["key"].as_str().unwrap().to_owned();
    let past = gateway.banister(&["token", "issue", "--scope", "watch", "--expires", "2020-01-01"]);
    assert_eq!(past.status.code(), Some(1), "{past:?}");

    let listed = gateway.json(&["token", "list", "--json"]);
    let names: Vec<_> = listed["keys"].as_array().unwrap().iter().map(|key| &key["id"]).collect();
    assert_eq!(names, ["agent", "person", "reader", name.as_str()]);
    let text = stdout(&gateway.banister(&["token", "list"]));
    assert!(text.lines().count() == 4 && !text.contains("bk_"), "{text}");
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(inbox(&brief), 401);
    assert!(stdout(&gateway.banister(&["token", "list"])).contains("expired"));

    let revoked = gateway.banister(&["token", "revoke", "reader"]);
    assert_eq!(revoked.status.code(), Some(0), "{revoked:?}");
    assert_eq!(inbox(&key), 401);
    for none in ["reader", "", "../login-links", "READER"] {
        let output = gateway.banister(&["token", "revoke", none]);
        assert_eq!(output.status.code(), Some(1), "{none:?}: {output:?}");
    }
    for wrong in [
        &["token", "issue"][..],
        &["token", "issue", "--scope", "everything"],
        &["token", "issue", "--scope", "emit", "--expires", "soon"],
    ] {
        assert_eq!(gateway.banister(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
