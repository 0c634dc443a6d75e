"""The installed `aaep-conformance`, given the schemas that its package lacks."""

import json

from aaep_conformance.checks import envelope
from checker import ROOT
from jsonschema import Draft202012Validator


def schemas():
    """The protocol's own schemas where they are at hand, otherwise those that are generated from our types."""
    for place in (ROOT / "../shared/data/aaep-schemas", ROOT / "crates/events/schemas/aaep"):
        if (place / "envelope.schema.json").is_file():
            return place.resolve()
    raise FileNotFoundError("crates/events/schemas/aaep has no schemas: cargo xtask gen")


def load(name):
    schema = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    # Ours say it, the protocol's own do not; the suite's way of looking up references fails on it.
    schema.pop("unevaluatedProperties", None)
    return schema


SCHEMAS = schemas()
envelope._load_schema = load


def errors(message):
    """What the suite's own validation says of an event."""
    return envelope.validate_event(message)


def message_errors(name, message):
    """What the schema of a handshake message or a reply says; the suite itself never reads these schemas."""
    schema = load(f"handshake/{name}.schema.json")
    resolver = envelope._build_resolver(schema)
    return [error.message for error in Draft202012Validator(schema, resolver=resolver).iter_errors(message)]
