"""The official suite against `banister demo --aaep-suite`: every level, over HTTP and over a WebSocket."""

import contextlib
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import suite  # noqa: F401 - the scenarios need its schemas
from aaep_conformance.reporter import Severity, Verdict
from aaep_conformance.runner import Runner, RunnerConfig
from checker import BANISTER, TARGET

# It counts the suite's own two replies, so it always warns.
KNOWN = {1: set(), 2: {"L2-CONF-002"}, 3: {"L2-CONF-002"}}
# What a run that skipped something would not reach.
RESULTS = {1: 32, 2: 46, 3: 57}


@contextlib.contextmanager
def demo():
    """A gateway with its doors open, at a free port; gives host and port."""
    parent = TARGET / "tests"
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="suite-", dir=parent) as folder:
        errors = Path(folder) / "stderr"
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                [BANISTER, "demo", "--aaep-suite", "--listen", "127.0.0.1:0"],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        try:
            found = re.search(r"http://(127\.0\.0\.1:\d+)/aaep/v1", process.stdout.readline())
            assert found, f"the demo did not say where it listens: {errors.read_text()}"
            assert "WITHOUT A KEY" in errors.read_text(), "the demo did not warn"
            yield found.group(1)
        finally:
            process.terminate()
            process.wait(timeout=20)


def one(scheme, level):
    """One run, against a gateway of its own: the suite takes what others start for its own."""
    with demo() as address:
        path = "/aaep/v1/ws" if scheme == "ws" else "/aaep/v1"
        config = RunnerConfig("producer", f"{scheme}://{address}{path}", level, timeout_seconds=120)
        report = Runner(config).run()
    failed = [result for result in report.test_results if not result.passed]
    said = "\n".join(f"  {it.test_id} {it.severity}: {it.message}" for it in failed)
    wrong = f"level {level} over {scheme}: {report.verdict}\n{said}"
    assert report.verdict == Verdict.PASS, wrong
    assert {result.test_id for result in failed} == KNOWN[level], wrong
    assert all(result.severity == Severity.WARNING for result in failed), wrong
    assert len(report.test_results) >= RESULTS[level], wrong
    passed = len(report.test_results) - len(failed)
    return f"level {level} over {scheme}: {report.verdict.value}, {passed} of {len(report.test_results)}"


def run():
    """Every level over both; gives a line for each."""
    runs = [(scheme, level) for level in (1, 2, 3) for scheme in ("http", "ws")]
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(lambda it: one(*it), runs))
