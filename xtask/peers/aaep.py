"""Checks a recording with every check that aaep-conformance has for recorded events, once per line on standard input.

Usage: aaep.py SCHEMAS RECORDING. Prints the seconds each run took: parsing, schemas, order, safety.
"""

import json
import sys
import time
from pathlib import Path

from aaep_conformance.checks import confirmation, envelope, lifecycle, safety, streaming, tools

schemas = Path(sys.argv[1])
recording = Path(sys.argv[2]).read_bytes()


def load(name):
    schema = json.loads((schemas / name).read_bytes())
    # Ours say it, the protocol's own do not; the suite's way of looking up references fails on it.
    schema.pop("unevaluatedProperties", None)
    return schema


# The package comes without schemas.
envelope._load_schema = load

EACH = (
    envelope.check_envelope_required_fields,
    envelope.check_event_id_format,
    envelope.check_session_id_format,
    envelope.check_timestamp_format,
    envelope.check_producer_field,
)
SESSION = (
    lifecycle.check_session_started_present,
    lifecycle.check_session_terminates,
    lifecycle.check_terminal_event_types,
    lifecycle.check_lifecycle_ordering,
    tools.check_tool_invoked_before_completed,
    tools.check_tool_call_id_pairing,
    tools.check_tool_status_enum,
    tools.check_tool_name_consistency,
    streaming.check_position_monotonic,
    streaming.check_exactly_one_completion,
    streaming.check_no_chunks_after_completion,
    streaming.check_coalesce_hint_valid,
    streaming.check_content_type_format,
    confirmation.check_reply_token_format,
    confirmation.check_confirmation_has_required_fields,
    confirmation.check_default_decision_enum,
    confirmation.check_timeout_seconds_valid,
    safety.check_irreversible_high_risk_rule,
    safety.check_critical_urgency_on_errored,
    safety.check_critical_urgency_on_confirmation,
    safety.check_critical_urgency_on_clarification,
    safety.check_critical_urgency_on_handoff,
    safety.check_no_secrets_in_args_summary,
)


def run():
    sessions = {}
    for line in recording.splitlines():
        event = json.loads(line)
        errors = envelope.validate_event(event)
        assert not errors, errors
        for check in EACH:
            assert check(event).passed, (check.__name__, event)
        sessions.setdefault(event["session_id"], []).append(event)
    for session, events in sessions.items():
        for check in SESSION:
            result = check(events, session_id=session)
            assert result.passed, (result.test_id, result.message)


for _ in sys.stdin:
    began = time.perf_counter()
    run()
    print(time.perf_counter() - began, flush=True)
