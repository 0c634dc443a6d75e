//! What an AG-UI client that comes back has to drop, so that it has all messages in their order.

use std::collections::HashSet;

use serde_json::{Value, json};

/// What a client has to drop before it gets all messages, so that it has them in this order: it keeps those it has
/// where they are, and appends the others. None where that is right already. `has` is what it sent, which never has
/// cards; where all cards of the thread are among the messages, those go as well.
pub(crate) fn dropping(messages: &[Value], has: &HashSet<&str>, all_cards: bool) -> Option<Value> {
    let word = |message: &'_ Value, name: &str| {
        message.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let is_card = |message: &Value| word(message, "role") == "activity";
    let sent = |message: &Value| has.contains(word(message, "id").as_str());
    let missing = messages.iter().position(|it| !is_card(it) && !sent(it))?;
    let kept = messages.iter().rposition(|it| if is_card(it) { all_cards } else { sent(it) })?;
    if kept < missing || !messages.iter().any(sent) {
        return None;
    }
    let owned = if all_cards { Value::Null } else { json!([]) };
    Some(json!({
        "type": "MESSAGES_SNAPSHOT",
        "messages": messages.get(..missing).unwrap_or_default(),
        "metadata": { "@ag-ui/client": { "authoritativeActivityTypes": owned } },
    }))
}

/// The ids of the messages that an input has.
pub(crate) fn sent(input: &Value) -> HashSet<&str> {
    let messages = input.get("messages").and_then(Value::as_array);
    messages.into_iter().flatten().filter_map(|message| message.get("id")?.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_drops_what_comes_after_something_that_it_lacks() {
        let message = |id: &str, role: &str| json!({ "id": id, "role": role });
        let all = [
            message("u", "user"),
            message("m", "assistant"),
            message("x", "tool"),
            message("a", "activity"),
        ];
        let ids = |has: &[&'static str], cards| {
            let event = dropping(&all, &has.iter().copied().collect(), cards)?;
            let kept = event["messages"].as_array()?.iter();
            Some(kept.map(|it| it["id"].as_str().unwrap_or_default().to_owned()).collect())
        };
        let kept: Option<Vec<String>> = ids(&["u", "m"], true);
        assert_eq!(kept, Some(vec!["u".to_owned(), "m".to_owned()]), "it may have the card");
        assert_eq!(ids(&["u", "m"], false), None, "whose cards they are is not known");
        assert_eq!(ids(&["u", "x"], false), Some(vec!["u".to_owned()]));
        assert_eq!(ids(&["u", "m", "x"], true), None, "it lacks nothing");
        assert_eq!(ids(&[], true), None, "it has nothing");
    }
}
