"""Schema of model files: domains of the fields of the header and types of the arrays.

>>> parsed('{"labels": 3}')
Traceback (most recent call last):
tagwise.base.exceptions.ModelFileError: the header: the member 'tagwise' is missing. The file is damaged, or another program wrote it
"""  # noqa: E501

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import tagwise._core as _core
from tagwise.base.domains import (
    AnyOf,
    Anything,
    Choice,
    Domain,
    DomainError,
    Flag,
    Integer,
    ListOf,
    Real,
    Record,
    Text,
    TupleOf,
    Variant,
)
from tagwise.base.exceptions import ModelFileError
from tagwise.base.files import sealed
from tagwise.corpus.labels import TYPES as LABEL_TYPES
from tagwise.evaluation.scoring import METRICS as SCORING
from tagwise.features.schema import FEATURES

#: Labels have 16-bit numbers, of which the last one means none. Attributes have 32-bit numbers.
MOST_LABELS, MOST_ATTRIBUTES = 2**16 - 2, 2**32 - 2

_NAME: Domain = Text(optional=True)
_PATH = Record({"function": Text(":")})
_COUNT = Integer(0, 2**53)
LOOKBACK = Record(
    {
        "m": Integer(1, 3),
        "p": AnyOf((Choice(("inf",)), Integer(1, 2**31))),
        "pool": Integer(2, 1000),
        "document": Flag(),
        "tuples": Flag(),
    }
)
CONSTRAINTS = Record(
    may={
        "scheme": _NAME,
        "forbidden": ListOf(TupleOf((_NAME, _NAME))),
        "required": ListOf(TupleOf((Text(), ListOf(_NAME)))),
        "once": ListOf(Text()),
    }
)
_NUMBERS: dict[str, Domain] = {"degree": Integer(1, 64), "coef": Real(0.0), "gamma": Real(0.0)}
KERNEL = Variant(
    "name",
    {
        **{name: Record({number: _NUMBERS[number] for number in numbers}) for name, numbers in _core.KERNELS},
        "function": _PATH,
    },
)
METRICS = Record(
    may={
        "iterations": _COUNT,
        "best_iteration": _COUNT,
        "objective": Real(any_=True),
        "stopped": Text(),
        "dual": Real(any_=True),
        "gap": Real(any_=True),
        "dev_score": Real(any_=True),
    },
    more=Anything(),
)
META = Record(
    may={
        "learner": Text(),
        "params": Record(more=Anything()),
        "metric": Choice(tuple(SCORING)),
        "metrics": METRICS,
        "columns": ListOf(Text()),
        "label": Text(),
        "state": Record({"steps": Real(0.0), "epochs": _COUNT}),
    },
    more=Anything(),
)
HEADER = Record(
    {
        "tagwise": Text(),
        "labels": ListOf(Text(), low=1, high=MOST_LABELS, distinct=True),
        "features": FEATURES,
        "n_attributes": Integer(0, MOST_ATTRIBUTES),
        "meta": META,
    },
    {
        "label_type": Choice(tuple(LABEL_TYPES)),
        "local": Flag(),
        "lookback": LOOKBACK,
        "constraints": CONSTRAINTS,
        "kernel": KERNEL,
        "arrays": ListOf(Text(), distinct=True),
    },
    more=Anything(),
)

#: Types of the arrays that every file has, and of groups that some files have.
ALWAYS = {
    "weights": "f32",
    "node_ptr": "u64",
    "node_label": "u16",
    "edges": "u32",
    "starts": "u16",
    "ends": "u16",
    "pair_ptr": "u64",
    "pair": "u32",
    "vocab.keys": "u64",
    "vocab.table": "u32",
    "vocab.text": "u8",
    "vocab.end": "u64",
}
GROUPS: dict[str, dict[str, str]] = {
    "kernel": {
        "support.ptr": "u32",
        "support.ids": "u32",
        "support.values": "f64",
        "beta.ptr": "u32",
        "beta.label": "u32",
        "beta.value": "f64",
    },
    "lookback": {"lookback": "f32"},
    "dictionary": {
        "dictionary.text": "u8",
        "dictionary.end": "u32",
        "dictionary.of": "u32",
        "dictionary.sets": "u8",
    },
    "boosting": {
        "boosting.round": "u32",
        "boosting.feature": "u32",
        "boosting.step": "f64",
        "boosting.bound": "f64",
        "boosting.log_loss": "f64",
    },
    "voters": {"voters.weights": "u32", "voters.counts": "u32"},
    "state": {"state.weights": "u32", "state.sums": "f64", "state.variance": "f64"},
}
TYPES = ("u8", "u16", "u32", "u64", "f32", "f64")


def parsed(text: str) -> dict[str, Any]:
    """Parse the header of a file and check every field."""
    try:
        header = sealed.parsed(text)
    except DomainError as error:
        raise ModelFileError(
            f"the header: {error}. The file is damaged, or another program wrote it"
        ) from None
    try:
        HEADER.check(header, "the header")
    except DomainError as error:
        raise ModelFileError(f"{error}. The file is damaged, or another program wrote it") from None
    found: dict[str, Any] = header
    return found


def written(header: Mapping[str, Any]) -> str:
    """Return a header as the text of a file, after checking that it can be read."""
    try:
        text = json.dumps(header, ensure_ascii=False, sort_keys=True)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"the header cannot be written as JSON: {error}") from None
    parsed(text)
    return text


def check_arrays(arrays: Sequence[tuple[str, str]], header: Mapping[str, Any]) -> dict[str, str]:
    """Return names and types of the arrays of a file after checking those that the header requires."""
    types = dict(arrays)
    wanted = dict(ALWAYS)
    for field in ("kernel", "lookback"):
        if field in header:
            wanted |= GROUPS[field]
    for group in ("dictionary", "boosting", "voters"):
        if any(name.startswith(f"{group}.") for name in types):
            wanted |= GROUPS[group]
    if "state" in header["meta"]:
        wanted |= GROUPS["state"]
    for name, dtype in wanted.items():
        if name not in types:
            raise ModelFileError(f"the array {name!r} is missing. Another program or version wrote the file")
        if types[name] != dtype:
            raise ModelFileError(f"array {name!r}: expected type {dtype}, found {types[name]!a}")
    for name, dtype in types.items():
        if dtype not in TYPES:
            raise ModelFileError(f"array {name!a}: expected a type of {', '.join(TYPES)}, found {dtype!a}")
    ours = {
        *ALWAYS,
        *(name for group in GROUPS if group not in ("boosting", "voters") for name in GROUPS[group]),
    }
    for name in header.get("arrays", ()):
        if types.get(name) not in ("u32", "f64") or name in ours:
            raise ModelFileError(
                f"arrays: {name!a}: expected an array of the learner of type u32 or f64, found {types.get(name)!a}"
            )
    return types
