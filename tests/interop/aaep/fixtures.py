"""The fixtures of the installed suite, with the verdict that the specification gives them."""

import json
from pathlib import Path

import aaep_conformance
from samples import Session

FOLDER = Path(aaep_conformance.__file__).parent / "fixtures"

# The errors that each invalid fixture contains.
INVALID = {
    "malformed-event-id.json": {"AAEP-3.2.3-R1"},
    "missing-required-fields.json": {"AAEP-3.2.4-R1", "AAEP-3.2.5-R1", "AAEP-3.2.6-R1", "AAEP-3.9-R1"},
    "no-critical-urgency-on-errored.json": {"AAEP-4.1.3-R2"},
    "wrong-default-decision.json": {"AAEP-4.4.1-R4"},
    # By itself it breaks no rule: it is the second end of an output, and an end needs a first one.
    "duplicate-completion-streaming.json": set(),
}


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def every():
    """Path and errors of each fixture; one that is not known here is an error of this table."""
    paths = sorted(FOLDER.rglob("*.json"))
    unknown = {path.name for path in paths if path.parent.name == "invalid"} ^ INVALID.keys()
    assert not unknown, f"fixtures without a verdict: {unknown}"
    return [(path, set() if path.parent.name == "valid" else INVALID[path.name]) for path in paths]


def sequences():
    """Fixtures that mean something only after other events: name, messages, errors."""
    second = read(FOLDER / "invalid/duplicate-completion-streaming.json")
    session = Session()
    before = [session.started(), session.chunk("x" * second["position"], 0, True)]
    for event in before:
        event["session_id"] = second["session_id"]
        event["timestamp"] = "2026-06-30T14:22:29.000Z"
        del event["sequence_number"]
    before[-1]["output_id"] = second["output_id"]
    yield "an output that is complete twice", [*before, second], {"AAEP-4.5.4-R1"}

    valid = FOLDER / "valid"
    asked = read(valid / "agent.awaiting.confirmation.json")
    reply = {
        "type": "confirmation.reply",
        "reply_token": asked["reply_token"],
        "decision": "accept",
        "subscription_id": "sub_peer",
        "timestamp": "2026-06-30T14:22:24.812Z",
    }
    begun = read(valid / "agent.session.started.json")
    invoked = read(valid / "agent.tool.invoked.high-risk.json")
    # The three are parts of one session: their numbers leave out what lies between.
    gap = {"AAEP-3.4.1-R1"}
    yield "asked, accepted, invoked", [begun, asked, reply, invoked], gap
    refused = {**reply, "decision": "reject"}
    yield "asked, refused, invoked all the same", [begun, asked, refused, invoked], {*gap, "AAEP-6.1-R1"}
