"""The doors of a subscription as programs use them that know nothing of Banister: `httpx` and `websockets`, with keys."""

import asyncio
import base64
import contextlib
import json
import os
import subprocess
import tempfile
from datetime import datetime, timezone
from pathlib import Path

import httpx
import suite
import websockets
from checker import BANISTER, TARGET, check, expect, lines
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

REQUEST = {
    "type": "subscription.request",
    "aaep_version": "1.0.0",
    "subscriber_id": "reader",
    "capabilities": {
        "languages": ["es-MX", "en"],
        "supports_confirmation_reply": True,
        "supports_clarification_reply": True,
        "coalesce_boundaries": ["sentence", "completion"],
        "supported_conformance_levels": [1, 2, 3],
        "accept_signed_manifests_only": True,
    },
}


class Gateway:
    """A gateway of its own, its keys, and what agents say to it."""

    def __init__(self, address, data):
        self.address = address
        self.keys = {name: (data / "keys" / f"{name}.key").read_text().strip() for name in ("agent", "person")}
        self.http = httpx.AsyncClient(base_url=f"http://{address}", timeout=20)

    def key(self, name):
        return {"Authorization": f"Bearer {self.keys[name]}"}

    async def hook(self, event, **fields):
        payload = {"session_id": "one", "cwd": "/src", "hook_event_name": event, **fields}
        answer = await self.http.post(f"/hooks/claude-code/{event}", json=payload, headers=self.key("agent"))
        assert answer.status_code == 200, answer.text
        return answer.json() if answer.content else None

    async def push(self):
        """Wants to do what a person has to decide; comes back with the decision."""
        call = {"tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {"command": "git push --force origin main"}}
        answer = await self.hook("PreToolUse", **call)
        return answer["hookSpecificOutput"]["permissionDecision"]

    def socket(self, key="person", **more):
        return websockets.connect(f"ws://{self.address}/aaep/v1/ws", additional_headers=self.key(key), **more)


@contextlib.contextmanager
def gateway():
    parent = TARGET / "tests"
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="doors-", dir=parent) as folder:
        data = Path(folder) / "data"
        words = [BANISTER, "serve", "--data", data, "--listen", "127.0.0.1:0"]
        # Nobody's own rules decide here.
        env = os.environ | {"XDG_CONFIG_HOME": folder}
        process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=env)
        try:
            line = process.stderr.readline()
            while "listens on http://" not in line:
                assert line, "the gateway did not start"
                line = process.stderr.readline()
            yield line.split("http://")[1].strip(), data
        finally:
            process.terminate()
            process.communicate(timeout=20)


def decoded(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def verified(signed, agent_id):
    """What a signed manifest says, if its signature is that of the key that it names."""
    header, payload, signature = signed.split(".")
    named = json.loads(decoded(header))
    assert named["alg"] == "ES256", named
    x, y = (int.from_bytes(decoded(named["jwk"][name])) for name in ("x", "y"))
    r, s = (int.from_bytes(decoded(signature)[at : at + 32]) for at in (0, 32))
    key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    key.verify(utils.encode_dss_signature(r, s), f"{header}.{payload}".encode(), ec.ECDSA(hashes.SHA256()))
    manifest = json.loads(decoded(payload))
    assert manifest["agent_id"] == agent_id, manifest
    return manifest


async def manifest(gate):
    plain = (await gate.http.get("/.well-known/aaep-manifest.json")).json()
    signed = await gate.http.get("/.well-known/aaep-manifest.json", headers={"Accept": "application/jose"})
    assert verified(signed.text, "banister") == plain
    expect("the manifest", check(lines([plain])), set())
    return "the manifest is what its signature signs"


async def refused(gate):
    """Who has no business at the socket gets no socket."""
    url = f"ws://{gate.address}/aaep/v1/ws"
    foreign = gate.key("person") | {"Origin": "http://evil.example"}
    attempts = [
        (401, {}, ["aaep.v1"]),
        (403, gate.key("agent"), ["aaep.v1"]),
        (403, foreign, ["aaep.v1"]),
        (400, gate.key("person"), None),
    ]
    for status, headers, protocols in attempts:
        try:
            async with websockets.connect(url, additional_headers=headers, subprotocols=protocols):
                raise AssertionError(f"a socket was opened instead of {status}")
        except websockets.InvalidStatus as answer:
            assert answer.response.status_code == status, (status, answer)
    answer = await gate.http.post("/aaep/v1/messages", json={"kind": "user_input", "text": "hello"})
    assert answer.status_code == 404, "the suite's door is open"
    return f"{len(attempts)} sockets refused, the suite's door is not there"


async def heard(socket, kind):
    """Messages up to the one of a type."""
    messages = []
    while not messages or messages[-1]["type"] != kind:
        messages.append(json.loads(await asyncio.wait_for(socket.recv(), 20)))
    return messages


def reply(token, decision):
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    fields = {"reply_token": token, "decision": decision, "subscription_id": "sub_1", "timestamp": now}
    return {"type": "confirmation.reply", **fields}


async def conversation(gate):
    """Everything in one socket: a handshake, a question, an answer, other terms, the close."""
    async with gate.socket(subprotocols=["aaep.v1"]) as socket:
        assert socket.subprotocol == "aaep.v1"
        await socket.send(json.dumps(REQUEST))
        accepted = json.loads(await socket.recv())
        wrong = suite.message_errors("subscription.accepted", accepted)
        assert not wrong, (wrong, accepted)
        verified(accepted["signed_manifest"], accepted["producer"]["agent_id"])
        assert accepted["honored_capabilities"]["languages"] == ["es-MX", "en"], accepted
        await gate.hook("UserPromptSubmit", prompt="Publish it.")
        pushed = asyncio.create_task(gate.push())
        messages = await heard(socket, "aaep:agent.awaiting.confirmation")
        assert messages[-1]["localization_hints"]["primary_language"] == "es", messages[-1]
        token = messages[-1]["reply_token"]
        await socket.send(json.dumps(reply("rpl_guessed", "accept")))
        await socket.send(json.dumps(reply(token, "accept")))
        assert await asyncio.wait_for(pushed, 20) == "allow"
        late = await gate.http.post("/aaep/v1/replies", json=reply(token, "reject"), headers=gate.key("person"))
        assert (late.status_code, late.json()["error"]["code"]) == (409, "late"), late.text
        messages += await heard(socket, "aaep:agent.tool.invoked")
        changed = {"max_events_per_second": 1}
        named = {"subscription_id": accepted["subscription_id"]}
        await socket.send(json.dumps({"type": "subscription.renegotiate", "capabilities": changed, **named}))
        again = (await heard(socket, "subscription.accepted"))[-1]
        assert again["honored_capabilities"]["max_events_per_second"] == 1, again
        await gate.hook("Stop", last_assistant_message="It is published.")
        messages += await heard(socket, "aaep:agent.session.completed")
        await socket.send(json.dumps({"type": "subscription.close", "reason_code": "done", "reason_message": "", **named}))
        await asyncio.wait_for(socket.wait_closed(), 20)
        assert socket.close_code == 4000, socket.close_code
    events = [message for message in messages if message["type"].startswith("aaep:")]
    expect("the conversation", check(lines(events)), set())
    return f"a conversation of {len(events)} events in one socket, answered by its token"


async def revoked(gate):
    """A key that is revoked takes its socket and its stream along."""
    wanted = {"id": "reader", "scopes": ["watch"]}
    issued = await gate.http.post("/api/keys", json=wanted, headers=gate.key("person"))
    gate.keys["reader"] = issued.json()["key"]
    async with gate.socket("reader", subprotocols=["aaep.v1"]) as socket:
        await socket.send(json.dumps(REQUEST))
        accepted = json.loads(await socket.recv())
        assert accepted["honored_capabilities"]["supports_confirmation_reply"] is False, accepted
        place = f"/aaep/v1/events?subscription_id={accepted['subscription_id']}"
        foreign = await gate.http.get(place, headers=gate.key("person"))
        assert foreign.status_code == 403, foreign.text
        async with gate.http.stream("GET", "/aaep/v1/events", headers=gate.key("reader")) as stream:
            assert stream.status_code == 200
            gone = await gate.http.delete("/api/keys/reader", headers=gate.key("person"))
            assert gone.status_code == 204, gone.text
            async for _ in stream.aiter_bytes():
                pass
        await asyncio.wait_for(socket.wait_closed(), 20)
        assert socket.close_code == 4003, socket.close_code
    return "a revoked key's socket and stream end"


async def every():
    with gateway() as (address, data):
        gate = Gateway(address, data)
        async with gate.http:
            return [await part(gate) for part in (manifest, refused, conversation, revoked)]


def run():
    """Everything; gives a line for each part."""
    return asyncio.run(every())
