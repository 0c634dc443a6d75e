"""Streams of the official producers, as they come over the wire.

Each producer is started on the loopback interface, driven through its own endpoints and ended by its own handle. What
it sends is kept twice: the bytes of its stream, and the lines that the official `aaep-capture` writes of it.
"""

import json
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field

TERMINAL = {f"aaep:agent.session.{end}" for end in ("completed", "errored", "cancelled")}
SECONDS = 30

# What the producers do wrong, as the specification tells it. Any other error would be ours.
ASKS_LATE = {
    # tool.invoked is announced as irreversible before anybody was asked.
    "AAEP-4.3.1-R2",
}
ERRS_OWN_WAY = {
    # error_category is none of the four.
    "AAEP-3.9-R1",
    # error_message is no field of session.errored.
    "AAEP-3.5-R2",
}


@dataclass
class Recording:
    """What came over one stream, and what was answered."""

    stream: bytes = b""
    events: list = field(default_factory=list)
    two_way: list = field(default_factory=list)
    captured: str = ""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return json.load(answer)


def until(what, probe):
    end = time.monotonic() + SECONDS
    while not (found := probe()):
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)
    return found


@contextmanager
def started(words):
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = []
    reader = threading.Thread(target=lambda: said.append(child.stderr.read()), daemon=True)
    reader.start()
    try:
        yield child
    except BaseException:
        child.kill()
        reader.join()
        sys.stderr.write(b"".join(said).decode(errors="replace")[-4000:])
        raise
    finally:
        child.kill()
        child.wait()


def healthy(url):
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=2) as answer:
            return json.load(answer)
    except (urllib.error.URLError, OSError):
        return None


def record(module, drive, folder, words=(), port="--port"):
    """Starts a producer, lets `drive` have its sessions, and gives what was recorded."""
    number = free_port()
    url = f"http://127.0.0.1:{number}"
    lines = folder / f"{module}.{number}.jsonl"
    recording = Recording()
    with started([sys.executable, "-m", module, port, str(number), *words]) as producer:
        until(f"{module} to listen", lambda: producer.poll() is not None or healthy(url))
        assert producer.poll() is None, f"{module} ended at once"
        capture = [sys.executable, "-m", "aaep_tools.capture", "--endpoint", url, "--output", str(lines)]
        with started(capture) as tool:
            stream = urllib.request.urlopen(f"{url}/events", timeout=SECONDS)
            until("both to subscribe", lambda: healthy(url)["subscribers"] == 2)
            drive(Wire(url, stream, recording))
            until("aaep-capture to have it all", lambda: lines.read_bytes().count(b"\n") == len(recording.events))
            # The tool notices that nothing more will come when the stream ends.
            producer.kill()
            tool.wait(SECONDS)
    recording.captured = lines.read_text(encoding="utf-8")
    return recording


class Wire:
    """Both directions of one producer."""

    def __init__(self, url, stream, recording):
        self.url, self.stream, self.recording = url, stream, recording

    def post(self, path, body):
        return post(self.url + path, body)

    def say(self, text):
        self.post("/sessions", {"user_message": text, "user_id": "ada"})

    def event(self):
        """The next event."""
        while True:
            line = self.stream.readline()
            assert line, "the stream ended too early"
            self.recording.stream += line
            if line.startswith(b"data: "):
                event = json.loads(line[6:])
                # A message is whole with the blank line after it.
                self.recording.stream += self.stream.readline()
                self.recording.events.append(event)
                self.recording.two_way.append(event)
                return event

    def through(self, decision=None):
        """Reads a session to its end, answering what it asks."""
        while (event := self.event())["type"] not in TERMINAL:
            if event["type"] == "aaep:agent.awaiting.confirmation":
                reply = {
                    "type": "confirmation.reply",
                    "reply_token": event["reply_token"],
                    "decision": decision,
                    "subscription_id": "sub_peer",
                    "timestamp": event["timestamp"],
                    "decided_by": "user:ada",
                }
                self.recording.two_way.append(reply)
                self.post("/messages", reply)


MINIMAL = "aaep_minimal_producer.server"
LANGCHAIN = "aaep_langchain.server"
BRIDGE = "aaep_mcp_bridge.server"


def said(*words, decision=None):
    """A person who says these things, one after the other."""

    def drive(wire):
        for text in words:
            wire.say(text)
            wire.through(decision)

    return drive


def called(wire):
    """An agent that calls one harmless tool and two that have to be confirmed, through the bridge."""
    begun = wire.post("/mcp", rpc("aaep/begin_session", user_message="Tidy up.", user_id="ada"))
    session = begun["result"]["aaep_session_id"]
    wire.post("/mcp", rpc("tools/call", name="read_file", arguments={"path": "notes.txt"}, aaep_session_id=session))
    for tool, decision in (("write_file", "accept"), ("delete_file", "reject")):
        request = rpc("tools/call", name=tool, arguments={"path": "notes.txt"}, aaep_session_id=session)
        call = threading.Thread(target=wire.post, args=("/mcp", request))
        call.start()
        while (event := wire.event())["type"] != "aaep:agent.awaiting.confirmation":
            pass
        reply = {
            "type": "confirmation.reply",
            "reply_token": event["reply_token"],
            "decision": decision,
            "subscription_id": "sub_peer",
            "timestamp": event["timestamp"],
        }
        wire.recording.two_way.append(reply)
        wire.post("/messages", reply)
        call.join(SECONDS)
    wire.post("/mcp", rpc("aaep/end_session", aaep_session_id=session, summary="Tidy."))
    wire.through()


def rpc(method, **params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


# Name, module, what is done with it, and the errors it makes. The minimal producer calls a tool in its first session
# only, so each tool needs a producer of its own.
RUNS = [
    ("minimal: a harmless tool, then none", MINIMAL, said("What is my balance?", "Thank you."), set()),
    ("minimal: accepted", MINIMAL, said("Please send the email.", decision="accept"), ASKS_LATE),
    ("minimal: rejected", MINIMAL, said("Please transfer the money.", decision="reject"), ASKS_LATE),
    ("langchain: a harmless tool, then none", LANGCHAIN, said("What is my balance?", "Thank you."), set()),
    ("langchain: an irreversible tool", LANGCHAIN, said("Please send an email."), ASKS_LATE),
    ("langchain: a tool that fails", LANGCHAIN, said("Please search, and fail."), ERRS_OWN_WAY),
    ("bridge: three tools", BRIDGE, called, ASKS_LATE),
]


def run(folder):
    """Records all of it at once; yields name, recording and the errors that are true."""
    results = {}

    def one(name, module, drive):
        extra = {"words": ("--mcp-server", "true"), "port": "--aaep-port"} if module == BRIDGE else {}
        try:
            results[name] = record(module, drive, folder, **extra)
        except BaseException as error:
            results[name] = error

    threads = [threading.Thread(target=one, args=row[:3]) for row in RUNS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, _, _, errors in RUNS:
        if isinstance(results[name], BaseException):
            raise RuntimeError(name) from results[name]
        yield name, results[name], errors
