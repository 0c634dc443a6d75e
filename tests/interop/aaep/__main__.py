"""What our checker makes of everything that the AAEP project publishes: its fixtures, its producers, its suite."""

import sys
import tempfile
from pathlib import Path

import doors
import fixtures
import mutants
import official
import recordings
import samples
import scripted
import translated
from checker import TARGET, check, expect, lines, step

full = "full" in sys.argv[1:]

step("every fixture of the suite")
for path, errors in fixtures.every():
    expect(path.name, check(path), errors)
for name, messages, errors in fixtures.sequences():
    expect(name, check(lines(messages)), errors)

step("our own samples: one event of each type, every message")
for message in [*samples.one_of_each(), *samples.messages().values()]:
    expect(message["type"], check(lines([message])), set())

step("the suite's scenarios, both directions")
for name, recording in scripted.played("producer"):
    expect(name, check(lines(recording)), set())
for message in scripted.sent_to_subscribers():
    expect(message["type"], check(lines([message])), set())

step("the official producers, recorded")
parent = TARGET / "tests"
parent.mkdir(parents=True, exist_ok=True)
with tempfile.TemporaryDirectory(prefix="aaep-", dir=parent) as folder:
    folder = Path(folder)
    for name, recording, errors in recordings.run(folder):
        stream = folder / "recording.sse"
        stream.write_bytes(recording.stream)
        expect(f"{name}, as a stream", check(stream), errors)
        expect(f"{name}, as lines", check(lines(recording.events)), errors)
        expect(f"{name}, both directions", check(lines(recording.two_way)), errors)
        expect(f"{name}, captured by aaep-capture", check(recording.captured), errors)
        print(f"  {name}: {len(recording.events)} events, {', '.join(sorted(errors)) or 'no error'}")

step("whatever the schemas reject")
count, theirs, ours = mutants.run(5_000 if full else 500)
print(f"  {count} mutants: the schemas reject {theirs}, we reject {ours}, among them all of theirs")

step("what we make of AG-UI, of AEP and of a coding agent's hooks")
print(f"  {translated.run()}")

step("the subscription's doors, with keys")
for line in doors.run():
    print(f"  {line}")

step("the official suite against the gateway")
for line in official.run():
    print(f"  {line}")
