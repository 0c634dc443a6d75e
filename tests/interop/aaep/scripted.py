"""The suite's own scenarios, played against a producer that keeps to the rules; both directions are kept."""

import asyncio
from datetime import datetime, timezone

import suite  # noqa: F401 - the scenarios need its schemas
from aaep_conformance import level_1, level_2, level_3
from samples import Session

# It reads for fifteen seconds whatever comes, and has nothing to say at the end.
SLOW = {"L3-FILTER-CRIT", "L3-CAP-RATE"}
# It counts the suite's own two replies, so it always warns.
ALWAYS_WARNS = {"L2-CONF-002"}


class Producer:
    """Stands where the suite expects a connection."""

    def __init__(self):
        self.recording = []
        self.waiting = []
        self.sessions = 0
        self.open = None

    async def request_session(self, text):
        self.sessions += 1
        # The suite dates its replies by the clock: an answer must not come months after the question.
        session = Session(self.sessions, clock=lambda: datetime.now(timezone.utc))
        self.say(*self.turn(session, text.lower()))
        return session.id

    def say(self, *messages):
        self.waiting.extend(messages)
        self.recording.extend(messages)

    async def receive(self, timeout):
        return self.waiting.pop(0) if self.waiting else None

    async def send(self, message):
        if message.get("kind") == "user_input":
            await self.request_session(message["text"])
            return
        self.recording.append(message)
        match message["type"]:
            case "subscription.request":
                self.say(handshake(message))
            case "confirmation.reply" | "clarification.reply" if self.open:
                answered, self.open = self.open, None
                self.say(*answered(message))

    def turn(self, session, text):
        thinking = [session.started(), session.state("idle", "thinking")]
        if "does not exist" in text or "deliberate error" in text:
            return [*thinking, session.errored()]
        if "handoff" in text:
            return [*thinking, session.handoff(), session.completed()]
        if "clarification" in text:
            self.open = lambda _: answer(session, "awaiting_input")
            return [*thinking, session.clarification()]
        if "confirmation" in text or "delete record" in text:
            self.open = lambda reply: after(session, reply)
            return [*thinking, session.confirmation()]
        if "tool" in text:
            used = [
                session.state("thinking", "calling_tool"),
                session.invoked("tides.read", "a"),
                session.finished("tides.read", "a"),
            ]
            return [*thinking, *used, *answer(session, "calling_tool")]
        return [*thinking, *answer(session, "thinking")]


def answer(session, state):
    first, last = "Ẹ kú àárọ̀. ", "High water is at nine 🌊."
    return [
        session.state(state, "writing_output"),
        session.chunk(first, 0, False, language="yo-NG"),
        session.chunk(last, len(first), True),
        session.completed(),
    ]


def after(session, reply):
    if reply.get("decision") != "accept":
        return [session.state("awaiting_input", "thinking"), session.cancelled()]
    done = [
        session.state("awaiting_input", "calling_tool"),
        session.invoked("berth.book", "b", risk_level="high", irreversible=True),
        session.finished("berth.book", "b"),
    ]
    return [*done, *answer(session, "calling_tool")]


def handshake(request):
    refusal = None
    if not request["aaep_version"].startswith("1."):
        refusal = "version_unsupported"
    elif request["capabilities"].get("accept_signed_manifests_only"):
        refusal = "manifest_signature_required"
    if refusal:
        return {"type": "subscription.rejected", "reason_code": refusal, "reason_message": "Not here."}
    return {
        "type": "subscription.accepted",
        "subscription_id": "sub_peer",
        "aaep_version": "1.0.0",
        "producer": {"agent_id": "harbour"},
        "honored_capabilities": request["capabilities"],
    }


def played(target_kind):
    """Plays every scenario of the suite; gives the two-way recording of each, and insists that the suite is content."""
    for level in (level_1, level_2, level_3):
        for name, scenario in level.get_tests(target_kind=target_kind):
            if name in SLOW:
                continue
            producer = Producer()
            for result in asyncio.run(scenario(producer)):
                content = result.passed or result.test_id in ALWAYS_WARNS
                assert content, f"the suite says {result.test_id}: {result.message}"
            yield name, producer.recording


def sent_to_subscribers():
    """The events that the suite sends when it tests a subscriber."""
    return [message for _, recording in played("subscriber") for message in recording]
