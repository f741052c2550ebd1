"""Hypothesis strategies: small random chains, gold paths, attribute matrices.

Integer scores make ties common, real ones make them rare. Constraints always allow the gold path.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from .reference.chain import Array, Path, Scores, scores
from .reference.model import Shape

MAX_TOKENS, MAX_LABELS = 5, 4


class Chain(NamedTuple):
    """Scores of one sentence together with a gold path inside its support."""

    scores: Scores
    gold: Path
    allowed: np.ndarray | None  # [T, L]
    forbidden: np.ndarray | None  # [L, L]


class Problem(NamedTuple):
    """A tiny training set with dense attributes."""

    shape: Shape
    X: list[Array]  # each [T, A]
    y: list[Path]


def reals(bound: float = 4.0) -> st.SearchStrategy[float]:
    """Return real numbers without subnormals, which only slow down shrinking."""
    return st.floats(-bound, bound, allow_nan=False, allow_subnormal=False)


def wholes(bound: int = 2) -> st.SearchStrategy[float]:
    """Return integers as floats: sums are exact, with many ties."""
    return st.integers(-bound, bound).map(float)


@st.composite
def paths(draw: st.DrawFn, length: int, labels: int) -> Path:
    """Draw a label sequence."""
    return tuple(draw(st.lists(st.integers(0, labels - 1), min_size=length, max_size=length)))


@st.composite
def chains(
    draw: st.DrawFn,
    elements: st.SearchStrategy[float] | None = None,
    constrained: bool | None = None,
    time_varying: bool | None = None,
    max_tokens: int = MAX_TOKENS,
    max_labels: int = MAX_LABELS,
    min_labels: int = 1,
) -> Chain:
    """Draw scores with shared or time-varying edges, start and end, optional constraints, and a gold path."""
    elements = reals() if elements is None else elements
    T, L = draw(st.integers(1, max_tokens)), draw(st.integers(min_labels, max_labels))
    if time_varying is None:
        time_varying = draw(st.booleans())
    if constrained is None:
        constrained = draw(st.booleans())
    gold = draw(paths(T, L))
    allowed = forbidden = None
    if constrained:
        allowed = draw(arrays(bool, (T, L)))
        allowed[np.arange(T), list(gold)] = True
        forbidden = draw(arrays(bool, (L, L)))
        for a, b in pairwise(gold):
            forbidden[a, b] = False
    s = scores(
        draw(arrays(float, (T, L), elements=elements)),
        draw(arrays(float, (T, L, L) if time_varying else (L, L), elements=elements)),
        draw(arrays(float, L, elements=elements)),
        draw(arrays(float, L, elements=elements)),
        allowed,
        forbidden,
    )
    return Chain(s, gold, allowed, forbidden)


@st.composite
def problems(
    draw: st.DrawFn,
    max_sentences: int = 3,
    max_tokens: int = 4,
    max_labels: int = 3,
    max_attributes: int = 4,
    values: st.SearchStrategy[float] | None = None,
    edge_attributes: bool = False,
    min_labels: int = 2,
    min_tokens: int = 1,
) -> Problem:
    """Draw a tiny training set. Attributes are 0/1 unless ``values`` is given."""
    values = st.integers(0, 1).map(float) if values is None else values
    L, A = draw(st.integers(min_labels, max_labels)), draw(st.integers(1, max_attributes))
    lengths = draw(st.lists(st.integers(min_tokens, max_tokens), min_size=1, max_size=max_sentences))
    X = [draw(arrays(float, (T, A), elements=values)) for T in lengths]
    y = [draw(paths(T, L)) for T in lengths]
    return Problem(Shape(A, L, edge_attributes), X, y)


def weights(shape: Shape, elements: st.SearchStrategy[float] | None = None) -> st.SearchStrategy[Array]:
    """Return a strategy for weight vectors of a problem's shape."""
    return arrays(float, shape.size, elements=reals(2.0) if elements is None else elements)
