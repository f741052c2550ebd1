"""From scores and sentences to label ids: best paths, lists of the best, marginals."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.exceptions import ParameterError, TagwiseError
from tagwise.dataset.check import lengths_of
from tagwise.decoding.lookback import Memory, search
from tagwise.decoding.plan import Allowed, Plan, plan_of
from tagwise.features.inputs import Inputs
from tagwise.scores.constraints import NO_GROUP
from tagwise.scores.lookback import Lookback
from tagwise.scores.protocols import Lists
from tagwise.scores.scoring import Scoring

Call = TypeVar("Call", bound=Callable[..., Any])
DECODERS = ("viterbi", "pointwise", "beam")
#: Width of a beam that is not given.
BEAM = 8


def typed(search: Call) -> Call:
    """Errors of the core about sentences and scores as typed ones."""

    @functools.wraps(search)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return search(*args, **keywords)
        except ValueError as error:
            if isinstance(error, TagwiseError):
                raise
            raise ParameterError(str(error)) from error

    return cast("Call", call)


@typed
def best(
    scoring: Scoring,
    X: Inputs,
    data: _core.Dataset,
    *,
    decoder: str = "viterbi",
    allowed: Allowed | None = None,
    constraints: Any = None,
    beam: int | None = None,
    memory: Memory | None = None,
    n_jobs: int = 0,
) -> NDArray[np.uint16]:
    """Label ids of all tokens, one sentence after the other."""
    if decoder not in DECODERS:
        raise ParameterError(f"decoder={decoder!r}: expected one of {', '.join(DECODERS)}")
    if beam is not None and decoder != "beam":
        raise ParameterError(f"beam={beam} goes with decoder='beam'")
    if beam is not None and (not isinstance(beam, (int, np.integer)) or not 1 <= beam < 2**63):
        raise ParameterError(f"beam={beam!r}: expected 1 or more paths to keep, and fewer than 2**63")
    if decoder == "beam" and scoring.scorer.local:
        raise ParameterError("a model of local classifiers (MEMM) is searched by Viterbi; leave the beam out")
    found = plan_of(scoring, X, data, allowed, constraints)
    once = found.once
    if scoring.voters is not None and decoder != "beam":
        return _elected(scoring, found, data, decoder, constraints is not None, n_jobs)
    if decoder == "pointwise":
        if once is not None:
            raise ParameterError("labels that occur once need a path; use decoder='viterbi'")
        p, _ = marginals(scoring, data, found, n_jobs)
        path: NDArray[np.uint16] = p.argmax(axis=1).astype(np.uint16)
        return path
    if scoring.lookback is None and decoder == "viterbi":
        if once is not None:
            return _core.once_kbest(found.explicit, data, once, allowed=found.support, n_jobs=n_jobs)[2]
        return found.scorer.viterbi(data, allowed=found.support, n_jobs=n_jobs)
    width = None if decoder == "viterbi" else BEAM if beam is None else beam
    if once is None:
        return _search(scoring, found, X, data, 1, width, memory, n_jobs)[2]
    if scoring.lookback is not None and scoring.lookback.document:
        raise ParameterError("labels that occur once do not go with document features; leave one of them out")
    for k in _core.ONCE_LISTS:
        lists = _search(scoring, found, X, data, k, None if width is None else max(width, k), None, n_jobs)
        lawful = _first_lawful(lists, data, *once)
        if lawful is not None:
            return lawful
    raise ParameterError(
        f"none of the {_core.ONCE_LISTS[-1]} best paths of a sentence keeps the labels that occur once; "
        "let fewer labels be such"
    )


def _elected(
    scoring: Scoring, found: Plan, data: _core.Dataset, decoder: str, anew: bool, n_jobs: int
) -> NDArray[np.uint16]:
    """What most voters say: of whole paths, or of each token by itself; `anew` where the call has rules of its own."""
    voters, once = scoring.voters, found.once
    assert voters is not None
    scorers = voters.scorers
    if anew:
        scorers = voters.under(None if found.rules is None else found.rules.forbidden)

    def search(scorer: _core.Scorer) -> NDArray[np.uint16]:
        if once is not None:
            return _core.once_kbest(scorer, data, once, allowed=found.support, n_jobs=n_jobs)[2]
        return scorer.viterbi(data, allowed=found.support, n_jobs=n_jobs)

    if decoder == "viterbi":
        return voters.paths(scorers, search, data.offsets)
    if once is not None:
        raise ParameterError("labels that occur once need a path; use decoder='viterbi'")
    return voters.tokens(scorers, search, len(scoring.labels), data.n_tokens)


@typed
def kbest(
    scoring: Scoring,
    X: Inputs,
    data: _core.Dataset,
    k: int,
    *,
    allowed: Allowed | None = None,
    constraints: Any = None,
    memory: Memory | None = None,
    n_jobs: int = 0,
) -> tuple[Lists, Plan]:
    """The k best paths of each sentence, and what they were found under."""
    found = plan_of(scoring, X, data, allowed, constraints)
    if found.once is not None:
        if scoring.lookback is not None:
            raise ParameterError(
                "lists of paths whose labels occur once need a model without history, and of first order; "
                "use predict, or constraints=False"
            )
        lists = _core.once_kbest(found.explicit, data, found.once, k, allowed=found.support, n_jobs=n_jobs)
        return lists, found
    if scoring.lookback is None:
        return found.scorer.kbest(data, k, allowed=found.support, n_jobs=n_jobs), found
    return _search(scoring, found, X, data, k, None, memory, n_jobs), found


@typed
def marginals(
    scoring: Scoring, data: _core.Dataset, found: Plan, n_jobs: int
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """p(y_t | x) of every token and log Z of every sentence."""
    lookback = scoring.lookback
    if found.once is not None:
        if lookback is not None:
            raise ParameterError(
                "probabilities of paths whose labels occur once need a chain of first order; use order=1, "
                "or constraints=False"
            )
        return _core.once_marginals(found.explicit, data, found.once, allowed=found.support, n_jobs=n_jobs)
    if lookback is not None and lookback.exact:
        native = lookback.native(len(scoring.labels))
        return _core.order_marginals(found.explicit, native, data, allowed=found.support, n_jobs=n_jobs)
    if lookback is not None:
        raise ParameterError(
            "a model with history has no probabilities: its search follows one path a cell; use scores"
        )
    return found.scorer.marginals(data, allowed=found.support, n_jobs=n_jobs)


def _search(
    scoring: Scoring,
    found: Plan,
    X: Inputs,
    data: _core.Dataset,
    k: int,
    beam: int | None,
    memory: Memory | None,
    n_jobs: int,
) -> Lists:
    settings = scoring.lookback
    if settings is None:
        settings = Lookback().with_weights(np.zeros(0, dtype=np.float32))
    return search(
        settings, found.explicit, X, data, k, beam=beam, memory=memory, support=found.support, n_jobs=n_jobs
    )


def _first_lawful(
    lists: Lists, data: _core.Dataset, group: NDArray[np.uint32], begins: NDArray[np.bool_]
) -> NDArray[np.uint16] | None:
    """The best path of each sentence in which every group begins one span at most; None where a list has none."""
    counts, _, labels = lists
    lengths = lengths_of(data).tolist()
    chosen, at, n = [], 0, len(group)
    for count, length in zip(counts.tolist(), lengths):
        paths = labels[at : at + count * length].reshape(count, length)
        at += count * length
        before = np.concatenate([np.full((count, 1), n), paths[:, :-1]], axis=1) if length else paths
        begun = np.where(begins[before, paths], group[paths], NO_GROUP) if length else paths
        for path, groups in zip(paths, begun):
            real = groups[groups != NO_GROUP]
            if len(np.unique(real)) == len(real):
                chosen.append(path)
                break
        else:
            return None
    return np.concatenate(chosen) if chosen else np.zeros(0, dtype=np.uint16)


__all__ = [
    "DECODERS",
    "best",
    "kbest",
    "marginals",
]
