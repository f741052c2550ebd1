"""Encoding of attribute lists, dicts and tokens as ids in flat arrays: nanoseconds per attribute, one and two threads.

The strings exist beforehand. `new` fills an empty vocabulary, as `fit` does. `known` looks up in a full one, as
`predict` does. The comparison is `append` of the CRFsuite trainer on the same lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from statistics import median
from typing import Any

import pycrfsuite

from tagwise import _core
from tagwise.dataset import encode

from . import ours
from .harness import Context, Ratio, Result, Times, alternate
from .workloads import NoData, workload

GOAL = 80.0  # ns per attribute, from lists to a new vocabulary


def nanoseconds(times: list[float], attributes: int) -> str:
    """Format the median and the extremes."""
    each = [t / attributes * 1e9 for t in times]
    return f"{median(each):.0f} ns ({min(each):.0f}-{max(each):.0f})"


def appended(X: Any, y: Any) -> None:
    """Append lists to a CRFsuite trainer."""
    trainer = pycrfsuite.Trainer(verbose=False)
    for sentence, labels in zip(X, y):
        trainer.append(sentence, labels)


def from_lists(context: Context, result: Result) -> None:
    """Encode lists of strings, and dicts of the same names with the value 1."""
    for name in context.workloads:
        X, y = workload(name)
        dicts = [[dict.fromkeys(token, 1.0) for token in sentence] for sentence in X]
        attributes = sum(len(token) for sentence in X for token in sentence)
        known = _core.Vocabulary()
        _core.encode_attributes(known, X)
        known.lock()
        sides: dict[str, Callable[[], object]] = {
            "CRFsuite": lambda X=X, y=y: appended(X, y),
            "lists, new": lambda X=X: encode.build(X, n_jobs=1),
            "lists, known": lambda X=X, known=known: _core.encode_attributes(known, X),
            "lists, new, 2 threads": lambda X=X: encode.build(X, n_jobs=2),
            "dicts, new": lambda X=dicts: encode.build(X, n_jobs=1),
        }
        times = alternate(sides, context.rounds)
        add(result, name, attributes, times)


def add(result: Result, name: str, attributes: int, times: dict[str, Times]) -> None:
    """Add a row for each side of ours."""
    for side, found in times.items():
        if side == "CRFsuite":
            continue
        cells = {
            "attributes": f"{attributes:,}",
            "per attribute": nanoseconds(found.wall, attributes),
            "CPU": nanoseconds(found.cpu, attributes),
        }
        if "CRFsuite" in times:
            cells["CRFsuite"] = nanoseconds(times["CRFsuite"].wall, attributes)
            cells["ratio"] = str(Ratio.of(times["CRFsuite"].wall, found.wall))
        judged = side == "lists, new"
        holds = median(found.wall) / attributes * 1e9 <= GOAL if judged else None
        result.add(f"{name}, {side}", cells, f"<= {GOAL:.0f} ns" if judged else "", holds)
        result.raw[f"{name}, {side}"] = {"attributes": attributes, **asdict(found)}


def from_tokens(context: Context, result: Result) -> None:
    """Encode tokens with templates, with one and two threads."""
    for corpus in ("ewt-pos", "conll2002-es"):
        try:
            train, _, _ = ours.corpus(corpus)
        except NoData as missing:
            result.notes.append(f"{corpus} left out: {missing}")
            continue
        for features in ("S2", "default"):
            sides: dict[str, Callable[[], object]] = {
                f"{features}, {n} thread{'s'[: n - 1]}": lambda n=n, f=features, t=train: encode.build(
                    t, f, n_jobs=n
                )
                for n in context.threads
            }
            attributes = encode.build(train, features)[1].n_attributes
            add(result, corpus, attributes, alternate(sides, context.rounds))


def run(context: Context) -> Result:
    """Run both parts."""
    result = Result("encoding", "Encoding")
    try:
        from_lists(context, result)
    except NoData as missing:
        result.notes.append(f"lists and dicts left out: {missing}")
    from_tokens(context, result)
    return result
