"""Conformant AAEP sessions and messages, made here."""

from datetime import datetime, timedelta, timezone

CONTEXT = "https://aaep-protocol.org/context/v1"


class Session:
    """Writes the events of one session: numbered, dated, in one language."""

    def __init__(self, number=1, clock=None):
        self.number = number
        self.next = 0
        self.clock = clock or self.quarters

    def quarters(self):
        """Four events a second, on the same day each time."""
        return datetime(2026, 3, 1, 9, tzinfo=timezone.utc) + timedelta(minutes=self.number, milliseconds=250 * self.next)

    @property
    def id(self):
        return f"sess_peer{self.number}"

    def event(self, kind, **payload):
        event = {
            "@context": CONTEXT,
            "aaep_version": "1.0.0",
            "type": f"aaep:agent.{kind}",
            "event_id": f"evt_peer{self.number}x{self.next}",
            "session_id": self.id,
            "sequence_number": self.next,
            "timestamp": self.clock().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "producer": {"agent_id": "harbour", "agent_version": "2.1.0", "agent_name": "Harbour", "model": "scripted"},
            "verbosity": "normal",
            "urgency": "normal",
            "localization_hints": {"primary_language": "en", "text_direction": "ltr", "available_languages": ["en", "yo-NG"]},
            **payload,
        }
        self.next += 1
        return event

    def started(self):
        return self.event(
            "session.started",
            summary_terse="Started.",
            summary_normal="Harbour looks up the tides.",
            request_text="When is high water tomorrow?",
            requested_by="user:ada",
            tools_available=["tides.read", "berth.book"],
        )

    def state(self, old, new, **more):
        return self.event("state.changed", from_state=old, to_state=new, summary_normal=f"Now {new}.", **more)

    def invoked(self, tool, call, **more):
        summary = f"{tool} is called."
        return self.event("tool.invoked", tool=tool, tool_call_id=f"call_{call}", summary_normal=summary, **more)

    def finished(self, tool, call, **more):
        more = {"status": "success", "duration_ms": 120, **more}
        return self.event("tool.completed", tool=tool, tool_call_id=f"call_{call}", summary_normal="It answered.", **more)

    def chunk(self, text, position, complete, **more):
        hint = "completion" if complete else "sentence"
        return self.event(
            "output.streaming",
            chunk=text,
            position=position,
            complete=complete,
            coalesce_hint=hint,
            output_id="out_1",
            content_type="text/plain",
            **more,
        )

    def confirmation(self, **more):
        payload = {
            "urgency": "critical",
            "action": "Book berth 12 for tomorrow night.",
            "consequence": "The fee of 40 euro is not paid back.",
            "reply_token": f"rpl_peer{self.number}x{self.next}",
            "timeout_seconds": 120,
            "default_decision": "reject",
            "risk_level": "high",
            "irreversible": True,
            "reversibility": "irreversible",
            "allowed_replies": ["accept", "reject"],
            "summary_normal": "Book berth 12?",
        }
        return self.event("awaiting.confirmation", **{**payload, **more})

    def clarification(self, **more):
        payload = {
            "urgency": "critical",
            "question": "Which harbour?",
            "reply_token": f"rpl_peer{self.number}x{self.next}",
            "timeout_seconds": 120,
            "accepted_response_kinds": ["freetext", "multiple_choice"],
            "choices": [{"value": "north", "label": "North harbour"}, {"value": "south", "label": "South harbour"}],
            "context": "Tides differ.",
            "summary_normal": "Which harbour is meant?",
        }
        return self.event("awaiting.clarification", **{**payload, **more})

    def handoff(self):
        return self.event(
            "handoff.requested",
            urgency="critical",
            reason="The harbour master has to decide.",
            target_kind="human",
            target_uri="queue://harbour-master",
            packaged_context={"berth": 12},
            urgency_for_handoff="medium",
            summary_normal="Handing over to the harbour master.",
        )

    def completed(self):
        return self.event("session.completed", summary_normal="Done.", duration_ms=4000, tool_invocations_count=1)

    def errored(self):
        return self.event(
            "session.errored",
            urgency="critical",
            error_category="permanent",
            error_code="NO_SUCH_TOOL",
            recoverable=False,
            remediation_hint="Ask for another tool.",
            summary_normal="There is no such tool.",
        )

    def cancelled(self):
        return self.event(
            "session.cancelled", cancelled_by="user", cancellation_reason="declined", summary_normal="Cancelled."
        )

    def progress(self):
        return self.event(
            "progress.updated",
            urgency="background",
            progress={"percent": 40, "step": 2, "total_steps": 5, "description": "Reading tables."},
            eta_ms=900,
            summary_normal="Two of five.",
        )


def one_of_each():
    """One event of each of the twelve types, each valid by itself."""
    session = Session()
    return [
        session.started(),
        session.state("idle", "thinking", expected_duration_ms=500),
        session.progress(),
        session.invoked("tides.read", "a", args_summary="day: tomorrow", risk_level="low", irreversible=False),
        session.finished("tides.read", "a"),
        session.chunk("High water is at nine.", 0, False, language="en"),
        session.confirmation(),
        session.clarification(),
        session.handoff(),
        session.completed(),
        session.errored(),
        session.cancelled(),
    ]


CAPABILITIES = {
    "max_events_per_second": 5,
    "preferred_verbosity": "terse",
    "languages": ["en", "yo-NG"],
    "supports_confirmation_reply": True,
    "supports_clarification_reply": True,
    "coalesce_boundaries": ["sentence", "completion"],
    "event_filters": {"include": ["aaep:agent.*"], "exclude": ["aaep:agent.progress.updated"]},
    "supported_conformance_levels": [1, 2, 3],
    "supported_extensions": ["https://harbour.example/aaep/v1"],
    "cognitive_load": "low",
    "pace_wpm": 180,
    "accept_signed_manifests_only": False,
}


def messages():
    """One of each handshake message and reply that has a schema, by the schema's name."""
    at = "2026-03-01T09:00:05.000Z"
    return {
        "subscription.request": {
            "type": "subscription.request",
            "aaep_version": "1.0.0",
            "subscriber_id": "reader",
            "subscriber_name": "Reader",
            "subscriber_version": "3.0.0",
            "correlation_id": "trace-7",
            "capabilities": CAPABILITIES,
        },
        "subscription.accepted": {
            "type": "subscription.accepted",
            "subscription_id": "sub_1",
            "aaep_version": "1.0.0",
            "producer": {"agent_id": "harbour"},
            "honored_capabilities": CAPABILITIES,
            "manifest_uri": "http://127.0.0.1/.well-known/aaep-manifest.json",
            "negotiation_notes": "As asked.",
        },
        "subscription.rejected": {
            "type": "subscription.rejected",
            "reason_code": "rate_limit",
            "reason_message": "Too many subscriptions.",
            "retry_after_seconds": 30,
        },
        "confirmation.reply": {
            "type": "confirmation.reply",
            "reply_token": "rpl_1",
            "decision": "accept",
            "subscription_id": "sub_1",
            "timestamp": at,
            "decided_by": "user:ada",
            "decision_rationale": "The weather is fine.",
        },
        "clarification.reply": {
            "type": "clarification.reply",
            "reply_token": "rpl_2",
            "response": "north",
            "subscription_id": "sub_1",
            "timestamp": at,
            "confidence": 0.9,
        },
    }
