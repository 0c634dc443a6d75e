"""The real `banister check`, and what it said."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
BANISTER = TARGET / "debug" / "banister"


@dataclass
class Verdict:
    """How a check ended: its exit code and its findings, as it printed them."""

    code: int
    findings: list

    def codes(self, severity):
        return {finding["code"] for finding in self.findings if finding["severity"] == severity}

    @property
    def errors(self):
        return self.codes("error")

    def __str__(self):
        rows = [f"  {f['severity']}[{f['code']}] line {f['line']} {f['pointer']}: {f['message']}" for f in self.findings]
        return "\n".join([f"exit {self.code}", *rows])


def check(given):
    """Checks a file, or text that is passed to standard input."""
    path = given if isinstance(given, Path) else "-"
    done = subprocess.run(
        [BANISTER, "check", "--protocol", "aaep", "--json", path],
        input=None if isinstance(given, Path) else given.encode(),
        stdin=subprocess.DEVNULL if isinstance(given, Path) else None,
        capture_output=True,
        timeout=60,
        check=False,
    )
    said = done.stderr.decode(errors="replace")
    assert done.returncode in (0, 1), f"banister check ended with {done.returncode}: {said}"
    return Verdict(done.returncode, json.loads(done.stdout)["findings"])


def lines(messages):
    """A recording: one message per line."""
    return "".join(json.dumps(message, ensure_ascii=False) + "\n" for message in messages)


def expect(what, verdict, errors):
    """Insists on exactly these errors, and on the exit code that follows from them."""
    wrong = f"{what}: expected {sorted(errors) or 'no error'}, got {verdict}"
    assert verdict.errors == set(errors), wrong
    assert verdict.code == int(bool(errors)), wrong


def step(text):
    """Says what is being tried, so that a failure has a place."""
    print(f"- {text}", flush=True)
