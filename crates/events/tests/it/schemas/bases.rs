//! One full message of each kind, to be mutated.

use serde_json::{Map, Value, json};

/// A full AAEP event of each core type, and a full message of each kind that is no event.
pub(super) fn aaep() -> Vec<Value> {
    let events = BODIES.iter().map(|(kind, urgency, body)| {
        let mut event = envelope(kind, urgency);
        let body: Map<String, Value> = serde_json::from_str(body).unwrap();
        event.as_object_mut().unwrap().extend(body);
        event
    });
    events.chain(HANDSHAKE.iter().map(|text| serde_json::from_str(text).unwrap())).collect()
}

fn envelope(kind: &str, urgency: &str) -> Value {
    json!({
        "@context": ["https://aaep-protocol.org/context/v1", "https://bakery.example/aaep/v1"],
        "aaep_version": "1.0.0",
        "type": format!("aaep:{kind}"),
        "event_id": "evt_loaf1",
        "session_id": "sess_oven7",
        "sequence_number": 4,
        "timestamp": "2026-03-09T05:30:00.250Z",
        "producer": {
            "agent_id": "baker",
            "agent_version": "2.1.0",
            "agent_name": "Night Baker",
            "model": "rye-3",
            "manifest_uri": "https://bakery.example/.well-known/aaep-manifest.json",
        },
        "verbosity": "normal",
        "urgency": urgency,
        "localization_hints": {
            "primary_language": "de-AT",
            "text_direction": "ltr",
            "available_languages": ["de-AT", "en"],
            "fallback_chain": ["de", "en"],
            "script": "Latn",
            "calendar": "gregorian",
        },
        "correlation_id": "00-4bf92f35-01",
        "summary_terse": "Oven.",
        "summary_normal": "The oven is being heated.",
        "summary_detailed": "The oven is being heated to 240 degrees for the first batch.",
        "extensions": {"bakery": {"batch": 3}},
    })
}

const BODIES: &[(&str, &str, &str)] = &[
    (
        "agent.session.started",
        "normal",
        r#"{"expected_duration_ms": 5400000, "requested_by": "user:miller", "request_text": "Bake the first batch.",
            "tools_available": ["heat_oven", "weigh"]}"#,
    ),
    (
        "agent.session.completed",
        "normal",
        r#"{"duration_ms": 5100000, "tool_invocations_count": 9, "output_summary": "Forty loaves.",
            "result_uri": "https://bakery.example/batches/3"}"#,
    ),
    (
        "agent.session.errored",
        "critical",
        r#"{"error_category": "requires_user", "error_code": "OVEN_DOOR_OPEN",
            "error_uri": "https://bakery.example/help/door", "recoverable": true, "remediation_hint": "Close the door."}"#,
    ),
    (
        "agent.session.cancelled",
        "normal",
        r#"{"cancelled_by": "user", "cancellation_reason": "changed_mind", "partial_result": "Dough for ten loaves."}"#,
    ),
    (
        "agent.state.changed",
        "background",
        r#"{"from_state": "idle", "to_state": "thinking", "expected_duration_ms": 1200}"#,
    ),
    (
        "agent.progress.updated",
        "background",
        r#"{"progress": {"percent": 37.5, "step": 3, "total_steps": 8, "description": "Kneading"}, "eta_ms": 900000}"#,
    ),
    (
        "agent.tool.invoked",
        "normal",
        r#"{"tool": "heat_oven", "description": "Heats the oven.", "args_summary": "240 degrees",
            "expected_duration_ms": 900000, "risk_level": "low", "irreversible": false, "tool_call_id": "call_1"}"#,
    ),
    (
        "agent.tool.completed",
        "normal",
        r#"{"tool": "heat_oven", "status": "error", "tool_call_id": "call_1", "duration_ms": 880000,
            "error_message": "The door is open."}"#,
    ),
    (
        "agent.output.streaming",
        "normal",
        r#"{"chunk": "The bread ", "position": 0, "complete": false, "coalesce_hint": "word", "output_id": "out_1",
            "content_type": "text/markdown", "language": "en-GB"}"#,
    ),
    (
        "agent.awaiting.confirmation",
        "critical",
        r#"{"action": "Order 400 kg of flour.", "consequence": "The supplier delivers tomorrow.", "reply_token": "rpl_a1",
            "timeout_seconds": 120, "default_decision": "reject", "risk_level": "high", "irreversible": true,
            "reversibility": "irreversible", "allowed_replies": ["accept", "reject"], "extra_context": {"price": 310}}"#,
    ),
    (
        "agent.awaiting.clarification",
        "critical",
        r#"{"question": "Rye or wheat?", "reply_token": "rpl_b2", "timeout_seconds": 60,
            "accepted_response_kinds": ["multiple_choice", "freetext"],
            "choices": [{"value": "rye", "label": "Rye"}, {"value": "wheat", "label": "Wheat"}],
            "context": "Both are in stock.", "default_response": "rye"}"#,
    ),
    (
        "agent.handoff.requested",
        "critical",
        r#"{"reason": "The scale is broken.", "target_kind": "human", "target_uri": "queue://bakery/floor",
            "packaged_context": {"scale": 2}, "urgency_for_handoff": "medium"}"#,
    ),
];

const HANDSHAKE: &[&str] = &[
    r#"{"type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "reader", "subscriber_name": "Reader",
        "subscriber_version": "4.2", "subscriber_manifest_uri": "https://reader.example/manifest.json",
        "correlation_id": "c-1", "extensions": {"bakery": {"smell": true}},
        "capabilities": {"max_events_per_second": 4, "preferred_verbosity": "terse", "languages": ["de-AT", "en"],
            "supports_confirmation_reply": true, "supports_clarification_reply": false,
            "coalesce_boundaries": ["sentence", "completion"],
            "event_filters": {"include": ["aaep:agent.*"], "exclude": ["aaep:agent.progress.updated"]},
            "supported_conformance_levels": [1, 2], "supported_extensions": ["https://bakery.example/aaep/v1"],
            "cognitive_load": "low", "pace_wpm": 180, "accept_signed_manifests_only": false, "bakery": {"cues": 1}}}"#,
    r#"{"type": "subscription.accepted", "subscription_id": "sub_9", "aaep_version": "1.0.0",
        "producer": {"agent_id": "baker", "agent_version": "2.1.0", "agent_name": "Night Baker", "model": "rye-3",
            "manifest_uri": "https://bakery.example/m.json"},
        "honored_capabilities": {"max_events_per_second": 2, "languages": ["en"], "coalesce_boundaries": ["completion"],
            "event_filters": {"include": ["aaep:agent.*"]}, "supported_conformance_levels": [1], "pace_wpm": 150},
        "manifest_uri": "https://bakery.example/m.json", "signed_manifest": "eyJhbGciOiJFUzI1NiJ9.eyJhZ2VudF9pZCI6ImJha2VyIn0.c2ln", "negotiation_notes": "English only."}"#,
    r#"{"type": "subscription.rejected", "reason_code": "rate_limit", "reason_message": "Too many readers.",
        "retry_after_seconds": 30, "alternative_manifest_uri": "https://bakery2.example/m.json"}"#,
    r#"{"type": "confirmation.reply", "reply_token": "rpl_a1", "decision": "accept", "subscription_id": "sub_9",
        "timestamp": "2026-03-09T05:31:00Z", "decided_by": "user:miller", "decision_rationale": "We run low.",
        "modified_action": {"kg": 300}, "correlation_id": "c-2"}"#,
    r#"{"type": "clarification.reply", "reply_token": "rpl_b2", "response": "rye", "subscription_id": "sub_9",
        "timestamp": "2026-03-09T05:31:00.5+01:00", "decided_by": "user:miller", "confidence": 0.9, "correlation_id": "c-3"}"#,
    r#"{"type": "subscription.renegotiate", "subscription_id": "sub_9", "capabilities": {"pace_wpm": 220}}"#,
    r#"{"type": "subscription.close", "subscription_id": "sub_9", "reason_code": "subscriber_shutdown",
        "reason_message": "Good night."}"#,
    r#"{"@context": "https://aaep-protocol.org/context/v1", "type": "aaep:producer.manifest", "agent_id": "baker",
        "agent_version": "2.1.0", "agent_name": "Night Baker", "aaep_versions_supported": ["1.0.0"],
        "conformance_levels_supported": [1, 2], "transports_supported": ["sse"], "languages_supported": ["de-AT"],
        "event_types_emitted": ["aaep:agent.*"], "extensions_supported": ["https://bakery.example/aaep/v1"],
        "default_verbosity": "normal", "max_concurrent_subscriptions": 8, "contact": "floor@bakery.example"}"#,
];

/// A full AEP event of each canonical type, and a full response.
pub(super) fn aep() -> Vec<Value> {
    let events = banister_events::aep::event::Type::ALL.into_iter().map(|kind| {
        let mut event = full_event();
        event["type"] = json!(kind.name());
        if kind.name() == "action.failed" {
            event["action"]["status"] = json!("timeout");
        }
        if kind.name() == "action.denied" {
            event["decision"]["outcome"] = json!("denied");
        }
        event
    });
    events.chain([response()]).collect()
}

fn full_event() -> Value {
    let texts = ["prompt", "thought", "response", "plan", "notification", "question", "answer"];
    let content: Vec<Value> = texts
        .map(|kind| json!({"type": kind, "text": "Knead.", "style": "markdown", "truncated": true, "original_length": 90}))
        .into();
    json!({
        "aep_version": "0.1", "id": "evt_1", "time": "2026-03-09T05:30:00.250Z", "type": "agent.stop",
        "agent": {"slug": "baker", "display_name": "Baker", "version": "2", "instance_id": "p1", "surface": "cli"},
        "hook": "PreToolUse",
        "session": {"id": "s", "conversation_id": "c", "turn_id": "t", "permission_mode": "ask", "root_conversation_id": "r",
            "parent": {"conversation_id": "p", "relation": "subagent", "spawning_action_id": "a0"}},
        "user": {"id": "u", "login": "miller", "display_name": "Miller", "email": "miller@bakery.example"},
        "workspace": {"cwd": "/bakery", "project_path": "/bakery", "roots": ["/bakery", "/mill"]},
        "model": {"id": "rye-3", "display_name": "Rye", "provider": "Mill", "effort": "high"},
        "action": {"type": "tool_call", "id": "a1", "status": "success", "rationale": "It is cold.",
            "input": {"degrees": 240}, "output": null, "error": {"code": "E1", "message": "cold"}},
        "tool": {"type": "mcp", "name": "heat", "id": "t1", "display_name": "Heat", "description": "Heats.", "version": "1",
            "icon": {"src": "https://bakery.example/i.png", "mime_type": "image/png"}, "schema": {"type": "object"},
            "original_name": "mcp__oven__heat"},
        "server": {"id": "o", "name": "oven", "title": "Oven", "description": "An oven.", "version": "1",
            "icon": {"src": "x"}, "transport": "stdio", "command": "oven", "url": "http://localhost",
            "repository_url": "https://bakery.example/r", "website_url": "https://bakery.example"},
        "skill": {"name": "bake", "id": "k", "source": "project", "version": "1", "path": "/k.md", "description": "Bakes."},
        "content": content,
        "attachments": [{"type": "image", "mime_type": "image/png", "name": "loaf", "url": "https://bakery.example/l.png",
            "thumbnail_url": "https://bakery.example/t.png", "data_uri": "data:,x", "thumbnail_data_uri": "data:,y",
            "width": 2, "height": 2.5, "duration_ms": 0, "size_bytes": 10}],
        "decision": {"outcome": "approved", "by": "user", "reason": "fine", "feedback": "go on", "policy_id": "p",
            "time": "2026-03-09T05:30:01Z", "response_time_ms": 750},
        "metrics": {"duration_ms": 12, "cost_usd": 0.5},
        "lifecycle": {"source": "startup", "reason": "done", "trigger": "manual"},
        "extensions": {"x-bakery": {"n": null}},
    })
}

fn response() -> Value {
    json!({
        "aep_version": "0.1", "id": "rsp_1", "time": "2026-03-09T05:30:02Z", "request_event_id": "evt_1", "action_id": "a1",
        "control": {"behavior": "allow", "message": "fine", "updated_input": {"degrees": 230}, "additional_context": "It is hot."},
        "decision": {"outcome": "approved"}, "extensions": {"x-bakery": {}},
    })
}
