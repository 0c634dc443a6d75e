//! The built-in rules, from the outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod commands;
mod corpus;
mod laws;
mod layers;
mod load;
mod tools;

use banister_events::activity::{Action, ActionKind, Gate};
use banister_policy::{ActionRequest, Rules, evaluate};
use serde_json::{Value, json};

fn builtin() -> Rules {
    Rules::builtin().unwrap()
}

fn action(kind: ActionKind, tool: &str, input: Value) -> Action {
    Action {
        id: "1".to_owned(),
        kind,
        tool: tool.to_owned(),
        server: None,
        original_name: None,
        input: Some(input),
        rationale: None,
    }
}

fn decide(rules: &Rules, action: &Action) -> Gate {
    evaluate(rules, &rules.read(&ActionRequest::example(action)))
}

fn shell(rules: &Rules, command: &str) -> Gate {
    decide(rules, &action(ActionKind::Tool, "Bash", json!({ "command": command })))
}

fn tool(rules: &Rules, name: &str, input: Value) -> Gate {
    decide(rules, &action(ActionKind::Tool, name, input))
}
