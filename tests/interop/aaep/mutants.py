"""Whatever the protocol's schemas reject, our checker has to reject."""

import copy
import json
import random

import samples
import suite
from checker import check

SEED = 20_260_301

# What the schemas reject and the protocol's prose allows, or leaves to others: a warning is enough.
TOLD = {
    "AAEP-6.3-B2": "the protocol's own subscribers leave subscription_id out",
    "AAEP-6.3-B3": "an extension may add decisions",
    "AAEP-5.1-B1": "a message of an unknown type is no event that an envelope could be missing from",
}

OTHERS = [None, True, 0, -1, 1, 1.5, 2**40, "", "x", "UPPER", "no such word", "x" * 20_000, [], ["x"], [1, 1], {}, {"x": 1}]


def places(value, path=()):
    """Every place inside a message, outermost first."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield (*path, key)
        yield from places(inner, (*path, key))


def mutate(message, chance):
    """Changes one place of a message: removed, replaced, stretched, or joined by something foreign."""
    mutant = copy.deepcopy(message)
    *way, key = chance.choice(list(places(mutant)))
    parent = mutant
    for name in way:
        parent = parent[name]
    change = chance.choice(["remove", "replace", "replace", "text", "foreign"])
    if change == "remove":
        del parent[key]
    elif change == "text" and isinstance(parent[key], str):
        text = parent[key]
        parent[key] = chance.choice([text + "\n", text + " ", text[:-1], text.upper(), f"{text}-{text}", text.replace("_", "-"), text + "é"])
    elif change == "foreign" and isinstance(parent[key], dict):
        parent[key]["foreign"] = "x"
    else:
        parent[key] = copy.deepcopy(chance.choice(OTHERS))
    return mutant, ".".join(map(str, (*way, key)))


def run(count):
    """Checks mutants of every sample; returns how many there were, and how many each side rejected."""
    chance = random.Random(SEED)
    originals = [(None, event) for event in samples.one_of_each()] + list(samples.messages().items())
    for name, message in originals:
        errors = suite.message_errors(name, message) if name else suite.errors(message)
        assert not errors, f"a sample is not valid: {errors}"
    theirs = ours = 0
    missed = []
    for number in range(count):
        name, original = originals[number % len(originals)]
        mutant, where = mutate(original, chance)
        # Without its type nobody knows which schema a message has to fit, and Python knows only strings there.
        if not isinstance(mutant.get("type"), str):
            continue
        # Extensions may bring replies of their own.
        if mutant["type"].endswith(".reply") and mutant["type"] != name:
            continue
        errors = suite.message_errors(name, mutant) if mutant["type"] == name else suite.errors(mutant)
        checked = check(json.dumps(mutant))
        rejected = checked.code == 1 or any(code in TOLD for code in checked.codes("warning"))
        theirs += bool(errors)
        ours += rejected
        if errors and not rejected:
            missed.append(f"{original['type']}, {where}: {errors[0][:100]}")
    assert not missed, f"the schemas reject {len(missed)} that we accept:\n  " + "\n  ".join(missed[:20])
    return count, theirs, ours
