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

fn decision(behavior: Behavior, message: &str) -> Decision {
    Decision { behavior, message: Some(message.to_owned()), ..Decision::default() }
}

/// A hook that says these behaviours as their names.
fn speaks(behaviors: &[Behavior]) -> Control {
    let answer = |behavior: &Behavior| {
        let stdout = Some(Stdout::Json(json!({
            "say": behavior.name(), "why": "{message}", "context": "{additional_context}",
        })));
        (*behavior, Template { stdout, ..Template::default() })
    };
    Control { answers: behaviors.iter().map(answer).collect(), ..Control::default() }
}

fn said(control: &Control, decision: &Decision) -> (String, Option<Behavior>) {
    let (answer, from) = control.respond(decision);
    let word = serde_json::from_str::<Value>(&answer.stdout)
        .ok()
        .and_then(|value| value["say"].as_str().map(str::to_owned));
    (word.unwrap_or_else(|| format!("exit {}", answer.exit)), from)
}

#[test]
fn what_cannot_be_said_becomes_stricter_never_laxer() {
    use Behavior::{Abstain, Allow, Ask, Block, Continue, Defer, Deny, Stop};
    let mut own_prompt = speaks(&[Allow, Deny]);
    own_prompt.own_prompt = true;
    for (control, decided, word) in [
        (Control::default(), Allow, "exit 2"),
        (Control::default(), Ask, "exit 2"),
        (Control::default(), Defer, "exit 2"),
        (Control::default(), Stop, "exit 2"),
        (Control::default(), Deny, "exit 2"),
        // A result that is there already cannot be refused: only silence is left.
        (Control::default(), Block, "exit 0"),
        (Control::default(), Continue, "exit 0"),
        (speaks(&[Allow, Deny]), Ask, "deny"),
        (speaks(&[Allow, Deny]), Defer, "deny"),
        (speaks(&[Allow, Deny, Ask]), Defer, "ask"),
        (own_prompt.clone(), Ask, "exit 0"),
        (own_prompt, Defer, "exit 0"),
        (speaks(&[Deny, Abstain]), Block, "deny"),
        (speaks(&[Abstain]), Block, "abstain"),
        (speaks(&[Deny, Block]), Stop, "deny"),
        (speaks(&[Block, Abstain]), Stop, "block"),
        (speaks(&[Deny]), Stop, "deny"),
        (speaks(&[Abstain]), Continue, "abstain"),
    ] {
        let (said, from) = said(&control, &decision(decided, "no"));
        assert_eq!(said, word, "{decided:?} on {control:?}");
        let same = said == decided.name() || (decided, word) == (Deny, "exit 2");
        assert_eq!(from, (!same).then_some(decided), "{decided:?} on {control:?}");
    }
}

#[test]
fn what_came_too_late_to_be_refused_is_told_to_the_model() {
    let control = speaks(&[Behavior::Abstain]);
    let (answer, _) = control.respond(&decision(Behavior::Block, "the tests fail"));
    let said: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(said["context"], "the tests fail");
}

#[test]
fn an_input_that_cannot_be_changed_is_refused_with_the_proposal() {
    let change = Decision {
        updated_input: Some(json!({"command": "ls"})),
        ..decision(Behavior::Allow, "Narrower.")
    };
    let (answer, from) = speaks(&[Behavior::Allow, Behavior::Deny]).respond(&change);
    let said: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!((said["say"].as_str(), from), (Some("deny"), Some(Behavior::Allow)));
    let why = said["why"].as_str().unwrap();
    assert!(why.starts_with("Narrower. ") && why.ends_with(r#"{"command":"ls"}"#), "{why}");
    assert_eq!(Control::default().respond(&change).0.exit, 2);
}

#[test]
fn a_changed_input_goes_with_an_allow_only() {
    let change = Decision {
        updated_input: Some(json!({"command": "ls"})),
        ..decision(Behavior::Ask, "sure?")
    };
    let (answer, from) = control("PreToolUse").respond(&change);
    assert_eq!(from, None);
    assert!(answer.stdout.contains(r#""ask""#) && !answer.stdout.contains("updatedInput"));
}

#[test]
fn parts_without_a_value_are_left_out_and_the_rest_keeps_its_order() {
    let template = Template {
        stdout: Some(Stdout::Json(json!({
            "z": "{message}", "a": {"input": "{updated_input}", "n": 1}, "list": ["{reason}", "{input}"],
            "b": "about {additional_context}", "d": "{additional_context|none}", "brace": "{ x } {Message}",
        }))),
        stderr: Some("{message}: {input}".to_owned()),
        ..Template::default()
    };
    assert_eq!(
        template.render(&Decision::default()).stdout,
        r#"{"a":{"n":1},"list":[],"d":"none","brace":"{ x } {Message}"}"#
    );
    let full = Decision {
        message: Some("{reason}".to_owned()),
        reason: Some("r".to_owned()),
        updated_input: Some(json!({"k": [1]})),
        additional_context: Some("c".to_owned()),
        ..Decision::default()
    };
    let answer = template.render(&full);
    assert_eq!(
        answer.stdout,
        r#"{"z":"{reason}","a":{"input":{"k":[1]},"n":1},"list":["r",{"k":[1]}],"b":"about c","d":"c","brace":"{ x } {Message}"}"#
    );
    assert_eq!(answer.stderr, r#"{reason}: {"k":[1]}"#);
}

#[test]
fn text_goes_out_as_it_is_written() {
    let text = |text: &str| {
        let stdout = Some(Stdout::Text(text.to_owned()));
        Template { stdout, ..Template::default() }.fill("why").stdout
    };
    assert_eq!([text("{message}"), text("{message}\n"), text("")], ["why", "why\n", ""]);
}

#[test]
fn a_message_stands_in_for_a_reason_and_the_other_way_round() {
    let template = |text: &str| Template { stderr: Some(text.to_owned()), ..Template::default() };
    let reason = Decision { reason: Some("r".to_owned()), ..Decision::default() };
    assert_eq!(template("{message}").render(&reason).stderr, "r");
    assert_eq!(template("{reason}").fill("m").stderr, "m");
}

#[test]
fn where_a_behaviour_ends_up_is_what_is_said() {
    let agents = Agents::builtin().unwrap();
    for agent in agents.iter() {
        for (hook, control) in agent.hooks() {
            for behavior in Behavior::ALL {
                let (_, from) = control.respond(&decision(behavior, "x"));
                let moved = (control.said(behavior) != behavior).then_some(behavior);
                assert_eq!(from, moved, "{} {hook} {behavior:?}", agent.name);
            }
        }
    }
}

#[test]
fn every_hook_has_an_answer_without_a_gateway() {
    let agents = Agents::builtin().unwrap();
    for agent in agents.iter() {
        for hook in agent.gated_hooks() {
            let control = agent.control(hook).unwrap();
            let fallback = control.fallback.as_ref().unwrap().fill("no");
            // Some agents know two ways to refuse, and the other one needs no exit code either.
            let blocks = fallback.stdout.contains(r#""decision":"block""#);
            let refuses =
                fallback.exit != 0 || blocks || fallback == control.answer(Behavior::Deny, "no");
            assert!(refuses, "{} {hook} would let the call through", agent.name);
        }
        assert!(agent.control("NeverHeardOf").is_some_and(|control| control.fallback.is_some()));
    }
}

proptest::proptest! {
    /// Whatever the words: they come out as they went in, and nothing in them is taken for a placeholder.
    #[test]
    fn words_survive_being_said(message in ".{1,40}", context in ".{0,40}") {
        let template = Template {
            stdout: Some(Stdout::Json(json!({"m": "{message}", "c": "{additional_context}"}))),
            ..Template::default()
        };
        let decision = Decision {
            message: Some(message.clone()),
            additional_context: Some(context.clone()),
            ..Decision::default()
        };
        let said: Value = serde_json::from_str(&template.render(&decision).stdout).unwrap();
        // Nothing but spaces is nothing said.
        let spoken = |words: &str| Some(words.to_owned()).filter(|words| !words.trim().is_empty());
        let heard = |key: &str| said[key].as_str().map(str::to_owned);
        proptest::prop_assert_eq!(heard("m"), spoken(&message));
        proptest::prop_assert_eq!(heard("c"), spoken(&context));
    }

    /// Taking a string apart loses nothing.
    #[test]
    fn pieces_make_up_the_string(text in "[{}|a-c_ ]{0,24}") {
        let mut again = String::new();
        for piece in pieces(&text) {
            match piece {
                Piece::Literal(literal) => again.push_str(literal),
                Piece::Hole(name, None) => again.extend(["{", name, "}"]),
                Piece::Hole(name, Some(default)) => again.extend(["{", name, "|", default, "}"]),
            }
        }
        proptest::prop_assert_eq!(again, text);
    }
}
