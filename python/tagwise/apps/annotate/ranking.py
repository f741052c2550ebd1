"""What to label next: how much each sentence is wanted, by a strategy, from what a model thinks of it.

A strategy gives every sentence a number, and the largest goes first. All of them read one pass of the core over the
sentences, so that a slice of the queue costs about what tagging it does.

Only the order matters: for a learner without probabilities exp(score) / Z stands in for them here. It is never shown.

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
from tagwise.decoding import paths
from tagwise.decoding.confidence import confidences
from tagwise.decoding.plan import Query
from tagwise.features.inputs import Inputs
from tagwise.model.model import Model

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class View:
    """What a strategy may look at: the model, a second one, words of accepted sentences, what was searched for."""

    model: Model | None
    second: Model | None = None
    seen: Collection[str] = frozenset()
    search: str = ""
    n_jobs: int = 0


def margins(model: Model, X: Sequence[Any], n_jobs: int = 0) -> Scores:
    """s(best path) - s(second best) of each sentence, [N]; infinite where there is one path only."""
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
    """1 - P of the least probable span of the best path; of its least probable label where that is less.

    A sentence without a span would else never be asked for, and a span that the model overlooks is in one of these.
    """
    assert view.model is not None
    found = confidences(view.model.plan(X, Query(n_jobs=view.n_jobs or None)))
    least = [min([float(one.tokens.min(initial=1.0)), *(p for _, p in one.chunks)]) for one in found]
    return 1.0 - np.array(least)


def _committee(view: View, X: Sequence[Any], first: int) -> Scores:
    """Tokens that two models label differently; among equals the smaller margin first."""
    assert view.model is not None
    close = 1.0 / (1.0 + np.maximum(margins(view.model, X, view.n_jobs), 0.0))
    if view.second is None:
        return close
    one, two = (model.predict(X, Query(n_jobs=view.n_jobs or None)) for model in (view.model, view.second))
    differ = [sum(a != b for a, b in zip(x, y)) for x, y in zip(one, two)]
    return np.array(differ, dtype=np.float64) + close


def _diverse(view: View, X: Sequence[Any], first: int) -> Scores:
    """The sum of 1 - P(label) over words that no accepted sentence has: unsure, and unlike what is known."""
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


def _searched(view: View, X: Sequence[Any], first: int) -> Scores:
    """In order, those that have what is searched for before all others."""
    wanted = view.search.casefold()
    hits = [wanted in " ".join(words).casefold() for words in Inputs.of(X).words("a search")]
    return _in_order(view, X, first) + np.where(hits, 1e9, 0.0)


@dataclass(frozen=True)
class Strategy:
    """A way to order the queue: in words, the function, and whether it needs a model."""

    name: str
    title: str
    scores: Callable[[View, Sequence[Any], int], Scores]
    learned: bool = True


STRATEGIES: Mapping[str, Strategy] = {
    one.name: one
    for one in (
        Strategy("margin", "smallest margin of the two best readings", _margin),
        Strategy("span", "least probable span", _span),
        Strategy("committee", "where two learners disagree", _committee),
        Strategy("diversity", "unsure of words that are new", _diverse),
        Strategy("order", "in the order of the file", _in_order, learned=False),
        Strategy("search", "what is searched for", _searched, learned=False),
    )
}


def strategy_of(name: str) -> Strategy:
    """The strategy of a name; a ParameterError lists those there are."""
    if name not in STRATEGIES:
        raise ParameterError(f"there is no strategy {name!r}; expected one of {', '.join(STRATEGIES)}")
    return STRATEGIES[name]


def wanted(name: str, view: View, X: Sequence[Any], first: int = 0) -> Scores:
    """How much each of these sentences is wanted, [N]; `first` is the place of the first of them in the queue.

    Before anything was learned there is nothing to be unsure of: sentences come in their order.
    """
    strategy = strategy_of(name)
    if strategy.learned and view.model is None:
        return _in_order(view, X, first)
    return strategy.scores(view, X, first) if len(X) else np.zeros(0)
