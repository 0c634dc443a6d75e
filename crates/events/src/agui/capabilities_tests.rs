use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::agui::event::arbitrary::{self, Foreign};
use crate::record::Record;

proptest! {
    #[test]
    fn a_declaration_is_written_as_it_came(
        sent in arbitrary::object(&Capabilities::SHAPE, Foreign::Sometimes)
    ) {
        let declared: Capabilities = serde_json::from_value(json!(sent)).unwrap();
        prop_assert_eq!(serde_json::to_value(&declared).unwrap(), json!(sent));
    }
}

#[test]
fn a_retired_key_is_not_read_and_not_lost() {
    let sent = json!({"multiAgent": {"subAgents": [{"name": "scout"}]}, "transport": {}});
    let declared: Capabilities = serde_json::from_value(sent.clone()).unwrap();
    let agents = declared.multi_agent.as_ref().unwrap();
    assert_eq!((&agents.subagents, agents.unknown.len()), (&None, 1));
    assert_eq!(declared.transport, Some(Transport::default()));
    assert_eq!(json!(declared), sent);
}
