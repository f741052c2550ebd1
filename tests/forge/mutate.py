"""Structure-aware faults: each draw of a random generator breaks a model file in one way."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from .forgery import TYPES, Array, Forgery

#: Values for fields of a header.
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 7, 255, 65535, 65536, 2**31, 2**32 - 1, 2**32, 2**53, 2**63, 2**64 - 1),
    *(-(2**63), 10**30, 10**400, 0.0, -0.0, 0.5, 1.0, 1e300, -1e300, float("inf"), float("-inf"), float("nan")),
    *("", " ", "O", "inf", "auto", "bio", "IOBES", "function", "template", "attributes", "kind", "x", "\0", "\n"),
    *("\ud800", "a\udfff", "é" * 50, "w" * 100_000, "os:system", "subprocess:run", "no.such:f", ":", "a:", "word"),
    *("word[0]", "word[-9223372036854775808..3]", "word[0].suffix(99999999999)", "%x[0,0]", "U00:%x[-1,0]\nB\n"),
    *([], [[]], [None], [0], [""], ["a", "a"], [["a", "b"]], {}, {"a": {}}, {"kind": "function"}, {"name": "rbf"}),
)  # fmt: skip
#: Numbers for elements of arrays. Each is cast to the array's type.
NUMBERS = (0, 1, 2, 5, 17, 255, 65534, 65535, 65536, 2**31, 2**32 - 2, 2**32 - 1, 2**53, 2**63, 2**64 - 1)
#: Depth up to which a header is visited.
DEEPEST = 10
REALS = (
    0.0,
    -0.0,
    1.0,
    -1e3,
    1e12,
    1e30,
    3e38,
    -3e38,
    1e300,
    5e-324,
    float("inf"),
    float("-inf"),
    float("nan"),
)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield every place of a JSON value, the root first."""
    yield at
    if len(at) >= DEEPEST:
        return
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*at, key))
    elif isinstance(value, list):
        for i in range(min(len(value), 12)):
            yield from places(value[i], (*at, i))


def nest(text: str, depth: int) -> str:
    """Return the text of an object with one more key, whose value is a deeply nested list."""
    return text[:-1] + ', "meta": {"x": ' + "[" * depth + "]" * depth + "}}"


def find(value: Any, place: tuple[Any, ...]) -> Any:
    """Return the value at a place."""
    for key in place:
        value = value[key]
    return value


def break_header(rng: random.Random, forged: Forgery) -> str:
    """Change the header's JSON once."""
    everywhere = [place for place in places(forged.header) if place]
    if not everywhere:
        return "nothing left"
    place = rng.choice(everywhere)
    old, shown = find(forged.header, place), ".".join(map(str, place))
    action = rng.choice(
        ("set", "set", "set", "drop", "near", "near", "swap", "add", "list", "deep", "rename")
    )
    if action == "drop":
        forged.drop(*place)
        return f"without {shown}"
    if action == "swap":
        other = rng.choice(everywhere)
        forged.set(*place, to=json.loads(json.dumps(find(forged.header, other))))
        return f"{shown} := {'.'.join(map(str, other))}"
    if action == "add" and isinstance(old, dict):
        name = rng.choice(
            ("kind", "name", "function", "local", "kernel", "lookback", "state", "arrays", "x", "\ud800")
        )
        old[name] = copy.deepcopy(rng.choice(ODD))
        return f"{shown} with {name!a} := {old[name]!a:.60}"
    if action == "list" and isinstance(old, list) and old:
        change = rng.choice(("twice", "none", "shuffle", "cut", "odd"))
        if change == "shuffle":
            rng.shuffle(old)
        old[:] = {
            "twice": [*old, rng.choice(old)],
            "none": [],
            "cut": old[:-1],
            "odd": [*old, copy.deepcopy(rng.choice(ODD))],
        }.get(change, old)
        return f"{shown}: {change}"
    if action == "deep":
        depth = rng.choice((2, 14, 18, 200))
        for _ in range(depth):
            old = [old] if rng.random() < 0.5 else {"a": old}
        forged.set(*place, to=old)
        return f"{shown} {depth} levels deep"
    if action == "rename" and isinstance(place[-1], str):
        forged.drop(*place)
        forged.set(*place[:-1], rng.choice(("", "x", place[-1] + "s", "\udc00")), to=old)
        return f"{shown} renamed"
    if action == "near" and type(old) in (int, float):
        new: Any = rng.choice((old + 1, old - 1, -old, old * 2, old + 0.5, str(old), [old], old * 10**9))
    elif action == "near" and isinstance(old, str):
        new = rng.choice(
            (old + "x", old[:-1], old * 2, old.upper(), old + "\ud800", [old], old.replace("]", "..9]"))
        )
    else:
        new = copy.deepcopy(rng.choice(ODD))
    forged.set(*place, to=new)
    return f"{shown} := {new!a:.60}"


def break_array(rng: random.Random, forged: Forgery) -> str:
    """Change one array once."""
    if not forged.arrays:
        return "nothing left"
    array = rng.choice(forged.arrays)
    data, name = array.data, array.name
    action = rng.choice(
        ("element",) * 6 + ("elements", "cut", "longer", "empty", "type", "view", "turn", "swap")
    )
    if action in ("element", "elements") and len(data):
        pool = REALS if data.dtype.kind == "f" else NUMBERS
        with np.errstate(all="ignore"):
            for _ in range(1 if action == "element" else rng.randint(2, len(data) + 1)):
                number = np.array(rng.choice(pool)).astype(data.dtype)
                at = rng.choice((0, len(data) - 1, rng.randrange(len(data))))
                data[at] = number if rng.random() < 0.7 else data[rng.randrange(len(data))]
        return f"{name}: {action} -> {data[at]}"
    if action == "cut":
        array.data = data[: rng.randrange(len(data) + 1)]
    elif action == "longer":
        array.data = np.concatenate(
            [data, np.resize(data if len(data) else np.zeros(1, data.dtype), rng.choice((1, 2, 64)))]
        )
    elif action == "empty":
        array.data = data[:0]
    elif action == "type":
        with np.errstate(all="ignore"):
            array.data = data.astype(rng.choice(list(TYPES.values())))
    elif action == "view":
        array.dtype = rng.choice((*TYPES, "i8", "", "f32x"))
    elif action == "turn":
        array.data = data[::-1].copy()
    else:
        other = rng.choice(forged.arrays)
        array.data, other.data = other.data, array.data
        action += f" with {other.name}"
    return f"{name}: {action}"


def break_table(rng: random.Random, forged: Forgery) -> str:
    """Change the table of arrays once."""
    action = rng.choice(
        ("twice", "drop", "rename", "add", "offset", "length", "count", "size", "keys", "text")
    )
    if not forged.arrays and action in ("twice", "drop", "rename", "offset", "length"):
        return "nothing left"
    array = rng.choice(forged.arrays) if forged.arrays else None
    big = rng.choice((0, 1, 63, 64, 2**20, 2**31, 2**63, 2**64 - 64, 2**64 - 1))
    if array is not None and action == "twice":
        forged.arrays.insert(
            rng.randrange(len(forged.arrays) + 1), Array(array.name, array.data[::-1].copy())
        )
    elif array is not None and action == "drop":
        forged.arrays.remove(array)
    elif array is not None and action == "rename":
        array.name = rng.choice(
            ("", "weights", "lookback", "x" * 24, "dictionary.x", "kernel", array.name.upper())
        )
    elif action == "add":
        name = rng.choice(
            ("dictionary.of", "boosting.feature", "state.weights", "lookback", "mine", "support.ptr")
        )
        forged.add(name, np.zeros(rng.choice((0, 1, 3)), rng.choice(list(TYPES.values()))))
        action += f" {name}"
    elif array is not None and action == "offset":
        array.offset = big
    elif array is not None and action == "length":
        array.length = big
    elif action == "count":
        forged.count = len(forged.arrays) + rng.choice((-1, 1, big))
    elif action == "size":
        forged.size = big
    elif action == "keys":  # a duplicate key in an object
        text = json.dumps(forged.header)
        forged.text = (
            text.replace('"kind"', '"kind": "x", "kind"', 1)
            if rng.random() < 0.5
            else text[:-1] + ', "labels": ["A"]}'
        )
    else:
        text = json.dumps(forged.header)
        at = rng.randrange(len(text) + 1)
        forged.text = rng.choice(
            (
                text[:at],
                text[:at] + rng.choice('{}[]",:0\\') + text[at:],
                "[" * 100_000,
                "",
                nest(text, 900),
                nest(text, 90_000),
                "null",
                "[]",
                "1" * 5000,
            )
        )
    return f"table: {action}" + (f" of {array.name}" if array is not None else "")


def mutate(rng: random.Random, forged: Forgery) -> list[str]:
    """Apply one to three changes and return their descriptions."""
    actions = rng.choices((break_header, break_array, break_table), (10, 8, 3), k=rng.choice((1, 1, 1, 2, 3)))
    return [action(rng, forged) for action in actions]
