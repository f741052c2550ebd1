"""Active learning strategies: priorities of sentences from the scores of a model.

A strategy gives every sentence a number, and the largest comes first. Each strategy needs one pass of the core over the
sentences, so ranking a slice costs about as much as tagging it.

Only the order matters: for a learner without probabilities, exp(score) / Z is used in their place and never shown.

Margin of the two best paths: Scheffer, Decomain and Wrobel 2001; Settles and Craven 2008 compare it with others for
sequences. Committee: Seung, Opper and Sompolinsky 1992; Dagan and Engelson 1995.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import meant
from tagwise.decoding import paths
from tagwise.decoding.confidence import confidences
from tagwise.decoding.plan import Query
from tagwise.features.inputs import Inputs
from tagwise.model.model import Model

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class View:
    """Input of a strategy: the model, a second one, and the words of accepted sentences."""

    model: Model | None
    second: Model | None = None
    seen: Collection[str] = frozenset()
    n_jobs: int = 0


def margins(model: Model, X: Sequence[Any], n_jobs: int = 0) -> Scores:
    """Return s(best path) - s(second best path) of each sentence, [N], infinite if there is only one path."""
    counts, scores, _ = paths.kbest(model.plan(X, Query(n_jobs=n_jobs or None)), 2)
    first = np.cumsum(counts) - counts
    out = np.full(len(counts), np.inf)
    two = counts > 1
    out[two] = scores[first[two]] - scores[first[two] + 1]
    return out


def _margin(view: View, X: Sequence[Any], first: int) -> Scores:
    assert view.model is not None
    return -margins(view.model, X, view.n_jobs)


def _span(view: View, X: Sequence[Any], first: int) -> Scores:
    """Return 1 - P of the least probable span of the best path, or of its least probable label if that is smaller.

    Labels are included because a span that the model misses can be in a sentence without predicted spans.
    """
    assert view.model is not None
    found = confidences(view.model.plan(X, Query(n_jobs=view.n_jobs or None)))
    least = [min([float(one.tokens.min(initial=1.0)), *(p for _, p in one.chunks)]) for one in found]
    return 1.0 - np.array(least)


def _committee(view: View, X: Sequence[Any], first: int) -> Scores:
    """Return the number of tokens that two models label differently, with ties broken by smaller margin."""
    assert view.model is not None
    close = 1.0 / (1.0 + np.maximum(margins(view.model, X, view.n_jobs), 0.0))
    if view.second is None:
        return close
    one, two = (model.predict(X, Query(n_jobs=view.n_jobs or None)) for model in (view.model, view.second))
    differ = [sum(a != b for a, b in zip(x, y)) for x, y in zip(one, two)]
    return np.array(differ, dtype=np.float64) + close


def _diverse(view: View, X: Sequence[Any], first: int) -> Scores:
    """Return the sum of 1 - P(label) over words that occur in no accepted sentence."""
    new = [[word not in view.seen for word in words] for words in Inputs.of(X).words("diversity")]
    if view.model is None:
        return np.array([sum(one) for one in new], dtype=np.float64)
    plan = view.model.plan(X, Query(n_jobs=view.n_jobs or None))
    p, _ = paths.marginals(plan)
    doubt = 1.0 - p.max(axis=1, initial=0.0)
    bounds = pairwise(plan.data.offsets.tolist())
    return np.array([float(doubt[a:b] @ np.array(one, dtype=float)) for (a, b), one in zip(bounds, new)])


def _in_order(view: View, X: Sequence[Any], first: int) -> Scores:
    return -np.arange(first, first + len(X), dtype=np.float64)


@dataclass(frozen=True)
class Strategy:
    """A strategy: description, function, and whether it needs a model."""

    name: str
    title: str
    scores: Callable[[View, Sequence[Any], int], Scores]
    learned: bool = True


STRATEGIES: Mapping[str, Strategy] = {
    one.name: one
    for one in (
        Strategy("margin", "Most useful first (recommended)", _margin),
        Strategy("span", "Least sure label first", _span),
        Strategy("committee", "Where two taggers disagree", _committee),
        Strategy("diversity", "New words first", _diverse),
        Strategy("order", "File order", _in_order, learned=False),
    )
}


def strategy_of(name: str) -> Strategy:
    """Return the strategy of a name, or raise a ParameterError that lists all of them."""
    if name not in STRATEGIES:
        raise ParameterError(
            f"unknown strategy {name!r}{meant(name, STRATEGIES)}. Use one of {', '.join(STRATEGIES)}"
        )
    return STRATEGIES[name]


def priorities(name: str, view: View, X: Sequence[Any], first: int = 0) -> Scores:
    """Return the priorities of sentences, [N]. `first` is the position of the first one in the queue.

    Without a model, sentences keep their order.
    """
    strategy = strategy_of(name)
    if strategy.learned and view.model is None:
        return _in_order(view, X, first)
    return strategy.scores(view, X, first) if len(X) else np.zeros(0)
