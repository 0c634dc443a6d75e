use banister_events::activity::{ActionKind, Decision, Risk};
use serde_json::json;

use super::{action, builtin, decide, tool};

#[test]
fn file_tools_are_free_inside_the_project_and_asked_outside() {
    let rules = builtin();
    for (name, input, decision, rule) in [
        (
            "Read",
            json!({"file_path": "/home/me/project/src/a.rs"}),
            Decision::Allow,
            "pack.file.read",
        ),
        ("read_file", json!({"path": "src/a.rs"}), Decision::Allow, "pack.file.read"),
        ("Read", json!({"file_path": "/home/me/project/../other/a.rs"}), Decision::Ask, "none"),
        ("Read", json!({"file_path": "/etc/passwd"}), Decision::Ask, "none"),
        ("Read", json!({"file_path": ".env"}), Decision::Ask, "pack.secret.touch"),
        ("Read", json!({"paths": ["a", "/etc/passwd"]}), Decision::Ask, "none"),
        ("Read", json!({}), Decision::Ask, "none"),
        ("Grep", json!({"pattern": "/api/v1"}), Decision::Allow, "pack.file.search"),
        ("Grep", json!({"pattern": "x", "path": "/"}), Decision::Ask, "none"),
        ("Glob", json!({"pattern": "**/*.rs"}), Decision::Allow, "pack.file.search"),
        ("Glob", json!({"pattern": "/opt/x"}), Decision::Ask, "none"),
        (
            "Edit",
            json!({"file_path": "src/a.rs", "new_string": "rm -rf /"}),
            Decision::Allow,
            "pack.file.edit",
        ),
        (
            "Write",
            json!({"file_path": ".github/workflows/ci.yml"}),
            Decision::Ask,
            "pack.file.guarded",
        ),
        ("Write", json!({"file_path": "/home/me/.bashrc"}), Decision::Ask, "pack.file.outside"),
        ("Write", json!({"file_path": "/tmp/x"}), Decision::Ask, "none"),
        ("NotebookEdit", json!({"notebook_path": "a.ipynb"}), Decision::Allow, "pack.file.edit"),
        ("editFiles", json!({"files": ["src/a.ts"]}), Decision::Allow, "pack.file.edit"),
        ("TodoWrite", json!({"todos": [{"content": "x"}]}), Decision::Allow, "pack.todo"),
        ("AskUserQuestion", json!({}), Decision::Allow, "pack.question"),
        ("ExitPlanMode", json!({}), Decision::Ask, "pack.plan"),
        ("WebFetch", json!({"url": "https://example.org"}), Decision::Ask, "pack.web"),
        ("Unheard", json!({}), Decision::Ask, "none"),
    ] {
        let gate = tool(&rules, name, input.clone());
        assert_eq!((gate.decision, gate.rule.as_str()), (decision, rule), "{name} {input}");
    }
}

#[test]
fn banisters_own_files_are_closed_to_every_tool() {
    let rules = builtin();
    for (name, input) in [
        ("Read", json!({"file_path": "/home/me/.config/banister/keys/answer"})),
        ("Read", json!({"file_path": "~/.config/banister"})),
        ("Read", json!({"file_path": "../.config/./banister/x"})),
        ("Write", json!({"file_path": "$HOME/.config/banister/policy.yaml"})),
        ("Grep", json!({"pattern": "x", "path": "/home/me/.config/banister"})),
        ("Glob", json!({"pattern": "/home/me/.config/banister/**"})),
        ("Unheard", json!({"deep": [{"where": "file:///home/me/.config/banister/x"}]})),
        ("Bash", json!({"command": "ls", "cwd": "/home/me/.config/banister"})),
        (
            "apply_patch",
            json!({"command": "*** Begin Patch\n*** Update File: ../.config/banister/x\n*** End Patch"}),
        ),
    ] {
        assert_eq!(
            tool(&rules, name, input.clone()).rule,
            "floor.banister-files",
            "{name} {input}"
        );
    }
    let mut mcp =
        action(ActionKind::Mcp, "read_text_file", json!({"path": "/home/me/.config/banister/x"}));
    mcp.server = Some("files".to_owned());
    assert_eq!(decide(&rules, &mcp).rule, "floor.banister-files");
}

#[test]
fn patches_are_judged_by_every_file_they_name() {
    let rules = builtin();
    let patch = |body: &str| {
        tool(
            &rules,
            "apply_patch",
            json!({"command": format!("*** Begin Patch\n{body}\n*** End Patch")}),
        )
    };
    assert_eq!(patch("*** Update File: Cargo.toml\n@@\n-a\n+b").rule, "pack.file.edit");
    assert_eq!(
        patch("*** Add File: a.rs\n+x\n*** Add File: .git/hooks/x\n+y").rule,
        "pack.file.guarded"
    );
    assert_eq!(patch("*** Update File: a.rs\n*** Move to: /usr/bin/x").rule, "pack.file.outside");
    let strange = patch("*** Update File: a.rs\n*** Copy To: /x");
    assert_eq!((strange.rule.as_str(), strange.risk), ("opaque", Risk::High));
}

#[test]
fn commands_are_found_in_every_agents_input() {
    let rules = builtin();
    for (name, input, rule) in [
        ("Bash", json!({"command": "git push"}), "pack.git.push"),
        ("run_command", json!({"CommandLine": "git push"}), "pack.git.push"),
        ("run_command", json!({"command_line": "git push"}), "pack.git.push"),
        ("run_commands", json!({"commands": ["ls", "git push"]}), "pack.git.push"),
        ("run_commands", json!({"commands": "[\"ls\", \"git push\"]"}), "pack.git.push"),
        ("shell_command", json!({"command": ["bash", "-lc", "git push"]}), "pack.git.push"),
        ("shell_command", json!({"command": ["git", "status"]}), "pack.git.read"),
        ("shell_command", json!({"command": ["ls", "$(rm x)"]}), "pack.shell.look"),
        ("Execute", json!({"command": "git", "args": ["push"]}), "pack.git.push"),
        (
            "Execute",
            json!({"command": "git", "args": ["status"], "cmd": "git push"}),
            "pack.git.push",
        ),
        ("Bash", json!({"command": "ls", "cwd": "/etc"}), "none"),
        ("Bash", json!({"command": "ls", "cwd": "src"}), "pack.shell.look"),
        ("Bash", json!({"command": "ls", "env": {"PATH": "."}}), "opaque"),
        ("Bash", json!({"command": 1}), "opaque"),
        ("Bash", json!({"command": ["ls", 1]}), "opaque"),
        ("Bash", json!({"command": "ls", "args": "x"}), "opaque"),
        ("Bash", json!({}), "opaque"),
        ("Bash", json!(null), "opaque"),
        ("PowerShell", json!({"command": "ls"}), "pack.shell.look"),
        ("pwsh", json!({"command": "git push"}), "pack.git.push"),
        ("cmd", json!({"command": "cargo test"}), "pack.build.cargo"),
        ("PowerShell", json!({"command": "cat src\\lib.rs"}), "pack.shell.look"),
        ("PowerShell", json!({"command": "cat ..\\x"}), "none"),
        ("PowerShell", json!({"command": "cat C:\\Users\\me\\x"}), "opaque"),
        ("PowerShell", json!({"command": "ls; git push"}), "pack.git.push"),
        ("PowerShell", json!({"command": "ls; ls"}), "opaque"),
        ("PowerShell", json!({"command": "Get-ChildItem"}), "opaque"),
        ("PowerShell", json!({"command": "git log $x"}), "opaque"),
        ("PowerShell", json!({"command": ["git", "status"]}), "opaque"),
        ("cmd", json!({"command": "type .env"}), "opaque"),
        ("cmd", json!({"command": "echo %PATH%"}), "opaque"),
        ("PowerShell", json!({"command": "Remove-Item -Recurse C:\\"}), "floor.wipe-root"),
        ("Unheard", json!({"command": "rm -rf /"}), "floor.wipe-root"),
        ("Unheard", json!({"command": "ls"}), "none"),
    ] {
        assert_eq!(tool(&rules, name, input.clone()).rule, rule, "{name} {input}");
    }
}

#[test]
fn a_foreign_tool_is_never_taken_for_the_agents_own() {
    let rules = builtin();
    let mut foreign = action(ActionKind::Tool, "Read", json!({"file_path": "src/a.rs"}));
    foreign.server = Some("files".to_owned());
    assert_eq!(decide(&rules, &foreign).rule, "none");
    let named = action(ActionKind::Tool, "mcp__files__Read", json!({}));
    assert_eq!(decide(&rules, &named).rule, "none");
    let kind = action(ActionKind::Mcp, "Bash", json!({"command": "ls"}));
    assert_eq!(decide(&rules, &kind).rule, "none");
}

#[test]
fn the_facts_of_a_gate_are_those_of_its_rule() {
    let rules = builtin();
    let gate = super::shell(&rules, "git reset --hard");
    assert_eq!((gate.risk, gate.irreversible), (Risk::High, Some(true)));
    assert!(gate.safer.is_some() && gate.opaque.is_none());
    let gate = super::shell(&rules, "mystery");
    assert_eq!((gate.risk, gate.irreversible), (Risk::Medium, None));
    let gate = super::shell(&rules, "$X mystery");
    assert_eq!(gate.risk, Risk::High);
    assert!(gate.opaque.is_some());
}
