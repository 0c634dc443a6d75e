use serde_json::json;

use super::*;
use crate::aep::mapping::Agents;

fn control(hook: &str) -> Control {
    Agents::builtin().unwrap().find("claude-code").unwrap().control(hook).unwrap().clone()
}

fn stdout(hook: &str, behavior: Behavior, message: &str) -> Value {
    let answer = control(hook).answer(behavior, message);
    assert_eq!(answer.exit, 0, "{answer:?}");
    serde_json::from_str(&answer.stdout).unwrap()
}

#[test]
fn claude_code_is_answered_in_its_own_words() {
    let decision = |word: &str| {
        json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": word,
            "permissionDecisionReason": "because \"x\"",
        }})
    };
    for (behavior, word) in
        [(Behavior::Allow, "allow"), (Behavior::Deny, "deny"), (Behavior::Ask, "ask")]
    {
        assert_eq!(stdout("PreToolUse", behavior, "because \"x\""), decision(word));
    }
    assert_eq!(
        stdout("PreToolUse", Behavior::Stop, "enough"),
        json!({ "continue": false, "stopReason": "enough" })
    );
    assert_eq!(stdout("PreToolUse", Behavior::Abstain, ""), json!({}));
}

#[test]
fn what_cannot_be_said_becomes_stricter_never_laxer() {
    let mute = Control::default();
    for behavior in
        [Behavior::Allow, Behavior::Ask, Behavior::Defer, Behavior::Block, Behavior::Stop]
    {
        assert_eq!(mute.answer(behavior, "no").exit, 2, "{behavior:?}");
    }
    assert_eq!(mute.answer(Behavior::Continue, "no"), Answer::silence());
    let strict = control("PreToolUse");
    assert_eq!(strict.answer(Behavior::Block, "no"), strict.answer(Behavior::Deny, "no"));
}

#[test]
fn every_hook_has_an_answer_without_a_gateway() {
    let agents = Agents::builtin().unwrap();
    for agent in agents.iter() {
        for hook in agent.gated_hooks() {
            let fallback = agent.control(hook).unwrap().fallback.as_ref().unwrap();
            assert_ne!(fallback.exit, 0, "{} {hook} would let the call through", agent.name);
        }
        assert!(agent.control("NeverHeardOf").is_some_and(|control| control.fallback.is_some()));
    }
}
