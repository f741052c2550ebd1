"""The table of rows, tiny problems, and a tagger's weights in the form of the reference implementations."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import tagwise as tw
from tagwise.base.parameters import parameters_of

from ..reference import model
from ..reference.chain import Array
from ..reference.model import Shape
from ..strategies import Problem

#: Names of the problems' label numbers, in a chunk scheme.
NAMES = ("O", "B-p", "I-p", "B-l")


class Bench(NamedTuple):
    """A learner under test, with pytest's fixtures."""

    kind: type[tw.Tagger]
    monkeypatch: pytest.MonkeyPatch
    caplog: pytest.LogCaptureFixture

    def fit(self, p: Problem, *, keywords: dict[str, Any] | None = None, **params: Any) -> tw.Tagger:
        """Return the learner trained on a problem."""
        return self.kind(**params).fit(tokens(p), names(p), **(keywords or {}))

    def has(self, parameter: str) -> bool:
        """Return whether the learner has such a parameter."""
        return parameter in parameters_of(self.kind)

    def some(self, **params: Any) -> dict[str, Any]:
        """Return those of these parameters that the learner has."""
        return {name: value for name, value in params.items() if self.has(name)}

    def logged(self) -> list[str]:
        """Return the messages logged since the last call."""
        found = [r.getMessage() for r in self.caplog.records if r.levelno == logging.INFO]
        self.caplog.clear()
        return found


Check = Callable[[Bench], None]
ROWS: dict[tuple[str, str], Check] = {}


def row(parameter: str, *learners: str) -> Callable[[Check], Check]:
    """Register a check of a parameter of these learners."""

    def declare(check: Check) -> Check:
        for learner in learners:
            assert (learner, parameter) not in ROWS, f"{learner} has two rows for {parameter}"
            ROWS[learner, parameter] = check
        return check

    return declare


def problem(
    seed: int, lengths: Sequence[int], labels: int = 3, attributes: int = 4, real: bool = False
) -> Problem:
    """Return sentences of these lengths with random attributes and labels, all of which occur.

    The more frequent labels have the lower numbers, as in a model, so that ties are broken alike.
    """
    rng = np.random.default_rng(seed)
    X = []
    for T in lengths:
        x = (rng.random((T, attributes)) < 0.5).astype(float)
        X.append(np.round(x * rng.uniform(0.2, 1.8, x.shape), 2) if real else x)
    drawn = [rng.integers(0, labels, T).tolist() for T in lengths]
    order = [label for label, _ in Counter(label for path in drawn for label in path).most_common()]
    assert len(order) == labels
    y = [tuple(order.index(label) for label in path) for path in drawn]
    assert np.concatenate(X).any(axis=0).all()
    return Problem(Shape(attributes, labels), X, y)


def tokens(p: Problem) -> list[list[dict[str, float]]]:
    """Return the sentences as dicts of attributes."""
    return [[{str(a): float(v) for a, v in enumerate(x) if v} for x in sentence] for sentence in p.X]


def names(p: Problem) -> list[list[str]]:
    """Return the labels by name."""
    return [[NAMES[y] for y in path] for path in p.y]


def exact(p: Problem) -> list[Array]:
    """Return attribute values as stored, in single precision."""
    return [x.astype(np.float32).astype(float) for x in p.X]


def dense(tagger: tw.Tagger, p: Problem) -> Array:
    """Return the weights in the reference order: node, transition, start, end."""
    weights = tagger.model_.scorer.weights.astype(float)
    out = np.zeros(p.shape.size)
    out[places(tagger, p)] = weights
    return out


def places(tagger: tw.Tagger, p: Problem) -> np.ndarray:
    """Return the index of each feature of a tagger in the reference vector: [features]."""
    layout, (A, L, _) = tagger.model_.scorer.layout, p.shape
    a = layout.arrays()
    label = np.array([NAMES.index(name) for name in tagger.classes_])
    text = tagger.model_.vocabulary.texts()
    owner = np.repeat(np.array([int(t) for t in text], dtype=int), np.diff(a["node_ptr"].astype(int)))
    edges, n = a["edges"].astype(int), len(label)
    parts = [
        owner * L + label[a["node_label"]],
        A * L + label[edges // n] * L + label[edges % n],
        A * L + L * L + label[a["starts"]],
        A * L + L * L + L + label[a["ends"]],
    ]
    return np.concatenate(parts).astype(int)


def mask(p: Problem, start_end: bool = True) -> np.ndarray:
    """Return the features that exist by default: [size]."""
    out = model.observed(list(zip(p.X, p.y)), p.shape)
    if not start_end:
        out[-2 * p.shape.labels :] = False
    return out


def bits(tagger: tw.Tagger) -> bytes:
    """Return the bytes of a model's weights, including those of support tokens and history."""
    found = tagger.model_
    parts = [found.scorer.weights.tobytes()]
    if hasattr(found.scorer, "arrays"):
        parts += [array.tobytes() for _, array in sorted(found.scorer.arrays().items())]
    if found.lookback is not None:
        parts.append(found.lookback.weights.tobytes())
    return b"".join(parts)


def replaced(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[dict[str, Any]]:
    """Record the keyword arguments of each later call of a function of the core."""
    original, seen = getattr(owner, name), []

    def call(*args: Any, **keywords: Any) -> Any:
        seen.append(keywords)
        return original(*args, **keywords)

    monkeypatch.setattr(owner, name, call)
    return seen


def by_length(rate: float, lengths: np.ndarray, weight: np.ndarray | float = 1.0) -> np.ndarray:
    """Return weights c rate^T times the given ones, with c such that the sums are equal."""
    given = np.ones(len(lengths)) * weight
    return given * rate**lengths * given.sum() / (given * rate**lengths).sum()
