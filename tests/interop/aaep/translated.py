"""What the official suite finds in what `banister translate` makes of other protocols and of a coding agent's hooks."""

import inspect
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor

import suite
import yaml
from aaep_conformance.checks import confirmation, envelope, lifecycle, safety, streaming, tools
from checker import BANISTER, ROOT, check, expect, lines

CONFORMANCE = ROOT / "conformance"
SESSION = CONFORMANCE / "hooks" / "claude-code-session.jsonl"
LANGUAGES = ("en", "es", "ar", "ja")
LEVELS = ("terse", "normal", "detailed")

# What people are told. A question, and who asks it, are the agent's own.
SAID = ("summary_terse", "summary_normal", "summary_detailed", "action", "consequence", "error_message")

# Words that two languages share.
SAME = {("es", "Error")}

# AAEP is about work: a session without any has nothing to say there.
NOTHING = {"aep session.start", "aep session.end"}


def translate(source, *words, expected=0):
    """The events that `banister translate` gives for text."""
    done = subprocess.run(
        [BANISTER, "translate", "--quiet", "--to", "aaep", "--time", "2026-03-01T09:00:00Z", *words],
        input=source.encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    said = done.stderr.decode(errors="replace")
    assert done.returncode == expected, f"banister translate {words} ended with {done.returncode}: {said}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def recordings():
    """Every AG-UI and AEP stream: name, protocol, text."""
    for path in sorted((CONFORMANCE / "streams").iterdir()):
        protocol = path.name.split("-")[0]
        if protocol != "aaep":
            yield path.name, protocol, path.read_text(encoding="utf-8")
    for protocol in ("agui", "aep"):
        examples = yaml.safe_load((CONFORMANCE / "translation" / f"{protocol}.yaml").read_text(encoding="utf-8"))
        for example in examples:
            name = " ".join(filter(None, (protocol, example["type"], example.get("about"))))
            yield name, protocol, lines(example["stream"])


def checks():
    """The suite's checks of a recorded stream: of one event, and of the events of a session."""
    single, whole = [], []
    for module in (confirmation, envelope, lifecycle, safety, streaming, tools):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if not name.startswith("check_") or function.__module__ != module.__name__:
                continue
            given = [key for key, value in inspect.signature(function).parameters.items() if value.default is value.empty]
            if given == ["event"]:
                single.append(function)
            elif given == ["events"]:
                whole.append(function)
    assert (len(single), len(whole)) == (5, 23), "the suite has other checks than it had"
    return single, whole


SINGLE, WHOLE = checks()

# What the suite says of a session that has no end yet.
UNFINISHED = ("L1-LIFE-001", "L1-LIFE-002", "L1-TOOL-002")


def findings(events):
    """All that the suite has to say of a stream."""
    for event in events:
        for error in suite.errors(event):
            yield f"{event['type']}: {error}"
        for function in SINGLE:
            yield from told(function(event))
    sessions = {}
    for event in events:
        sessions.setdefault(event["session_id"], []).append(event)
    for session in sessions.values():
        # What waits for an answer is not over yet; the suite takes every stream for a whole one.
        waits = session[-1]["type"].startswith("aaep:agent.awaiting.")
        for function in WHOLE:
            yield from (it for it in told(function(session)) if not (waits and it.startswith(UNFINISHED)))
        yield from told(tools.check_tool_invoked_before_side_effect(session, session))


def told(result):
    if not result.passed:
        yield f"{result.test_id}: {result.message}"


def every_stream():
    """Translates every recording, and insists that nobody finds anything; gives how many streams and events there were."""

    def one(recording):
        name, protocol, text = recording
        events = translate(text, "--from", protocol, expected=int(name in NOTHING))
        return name, events

    streams = events = 0
    faults = []
    with ThreadPoolExecutor(2) as pool:
        for name, said in pool.map(one, recordings()):
            streams += 1
            events += len(said)
            faults += [f"{name}: {finding}" for finding in findings(said)]
            if said:
                expect(name, check(lines(said)), set())
    assert not faults, "\n".join(faults)
    return streams, events


def sentences(event):
    """The lines that people are told by an event, with their places."""
    for field in SAID:
        for number, line in enumerate(str(event.get(field) or "").splitlines()):
            yield f"{event['type']} {field} {number}", line
    description = event.get("progress", {}).get("description")
    if description:
        yield f"{event['type']} progress", description


def own_words(payloads):
    """Whatever the agent, its tools and its person said: texts, and the names that a tool gives them."""
    if isinstance(payloads, str):
        yield payloads
    elif isinstance(payloads, dict):
        for key, value in payloads.items():
            yield f"{key}: {value}"
            yield from own_words(value)
    elif isinstance(payloads, list):
        for value in payloads:
            yield from own_words(value)


def every_language():
    """Translates a coding agent's session into every language; no sentence of ours may stay English."""
    text = SESSION.read_text(encoding="utf-8")
    own = set(own_words([json.loads(line) for line in text.splitlines()]))
    wanted = [(language, level) for level in LEVELS for language in LANGUAGES]

    def one(pair):
        language, level = pair
        return translate(text, "--from", "hook:claude-code", "--lang", language, "--verbosity", level)

    with ThreadPoolExecutor(2) as pool:
        said = dict(zip(wanted, pool.map(one, wanted), strict=True))
    faults = []
    count = 0
    for (language, level), events in said.items():
        faults += [f"{language}, {level}: {finding}" for finding in findings(events)]
        expect(f"{language}, {level}", check(lines(events)), set())
        assert {event["verbosity"] for event in events} == {level}
        assert {event["localization_hints"]["primary_language"] for event in events} == {language}
        if language == "en":
            continue
        english = said["en", level]
        assert [event["type"] for event in events] == [event["type"] for event in english]
        for ours, theirs in zip(events, english, strict=True):
            for (place, line), (_, plain) in zip(sentences(ours), sentences(theirs), strict=True):
                count += 1
                if line == plain and line not in own and (language, line.split(":")[0]) not in SAME:
                    faults.append(f"{language}, {level}, {place}: {line}")
    assert not faults, "\n".join(faults)
    return len(said), count


def run():
    """All of it; says how much there was."""
    streams, events = every_stream()
    sessions, count = every_language()
    return f"{streams} streams, {events} events; a session in {sessions} voices, {count} lines of other languages"
