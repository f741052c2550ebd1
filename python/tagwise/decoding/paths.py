"""Decoders that return label ids: best paths, k-best lists, marginals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.exceptions import ParameterError
from tagwise.dataset.check import lengths_of
from tagwise.decoding.lookback import search
from tagwise.decoding.plan import Plan, typed
from tagwise.scores.constraints import NO_GROUP
from tagwise.scores.lookback import LookbackWeights
from tagwise.scores.protocols import Lists

#: Default beam width.
BEAM = 8


@typed
def best(plan: Plan) -> NDArray[np.uint16]:
    """Return the label ids of all tokens, concatenated over sentences."""
    scoring, once, decoder = plan.scoring, plan.once, plan.query.decoder
    if decoder == "beam" and scoring.scorer.local:
        raise ParameterError(
            "a model of local classifiers (MEMM) does not support a beam. Use decoder='viterbi'."
        )
    if decoder == "pointwise" and once is not None:
        raise ParameterError(
            "decoder='pointwise' cannot satisfy the constraint `once`, which is about whole paths. "
            "Use decoder='viterbi'."
        )
    if scoring.voters is not None and decoder != "beam":
        return _majority(plan)
    if decoder == "pointwise":
        p, _ = marginals(plan)
        path: NDArray[np.uint16] = p.argmax(axis=1).astype(np.uint16)
        return path
    if scoring.lookback is None and decoder == "viterbi":
        if once is None:
            return plan.scorer.viterbi(plan.data, allowed=plan.support, n_jobs=plan.n_jobs)
        return _once_best(plan, plan.explicit)
    width = None if decoder == "viterbi" else plan.query.beam or BEAM
    if once is None:
        return _search(plan, 1, width)[2]
    if scoring.lookback is not None and scoring.lookback.document:
        raise ParameterError(
            "the constraint `once` cannot be combined with document=True. Remove one of them."
        )
    for k in _core.ONCE_LISTS:
        valid = _first_valid(_search(plan, k, None if width is None else max(width, k)), plan.data, *once)
        if valid is not None:
            return valid
    raise ParameterError(
        f"none of the {_core.ONCE_LISTS[-1]} best paths of a sentence satisfies the constraint `once`. "
        "Apply it to fewer labels."
    )


def _once_best(plan: Plan, scorer: _core.Scorer) -> NDArray[np.uint16]:
    """Return the best paths in which some labels occur at most once."""
    assert plan.once is not None
    return _core.once_kbest(scorer, plan.data, plan.once, allowed=plan.support, n_jobs=plan.n_jobs)[2]


def _majority(plan: Plan) -> NDArray[np.uint16]:
    """Return the majority vote of the voters, over whole paths or for each token separately."""
    voters, data = plan.scoring.voters, plan.data
    assert voters is not None
    scorers = voters.scorers
    if plan.query.constraints is not None:
        scorers = voters.under(None if plan.rules is None else plan.rules.forbidden)

    def search(scorer: _core.Scorer) -> NDArray[np.uint16]:
        if plan.once is not None:
            return _once_best(plan, scorer)
        return scorer.viterbi(data, allowed=plan.support, n_jobs=plan.n_jobs)

    if plan.query.decoder == "viterbi":
        return voters.paths(scorers, search, data.offsets)
    return voters.tokens(scorers, search, len(plan.scoring.labels), data.n_tokens)


@typed
def kbest(plan: Plan, k: int) -> Lists:
    """Return the k best paths of each sentence."""
    options: dict[str, Any] = {"allowed": plan.support, "n_jobs": plan.n_jobs}
    if plan.once is not None:
        if plan.scoring.lookback is not None:
            raise ParameterError(
                "k-best lists under the constraint `once` need a model of first order, without history. "
                "Use predict, or constraints=False."
            )
        return _core.once_kbest(plan.explicit, plan.data, plan.once, k, **options)
    if plan.scoring.lookback is None:
        return plan.scorer.kbest(plan.data, k, **options)
    return _search(plan, k)


@typed
def marginals(plan: Plan) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return p(y_t | x) of every token and log Z of every sentence."""
    lookback = plan.scoring.lookback
    options: dict[str, Any] = {"allowed": plan.support, "n_jobs": plan.n_jobs}
    if plan.once is not None:
        if lookback is not None:
            raise ParameterError(
                "probabilities under the constraint `once` need a model of first order, without history. "
                "Use order=1, or constraints=False."
            )
        return _core.once_marginals(plan.explicit, plan.data, plan.once, **options)
    if lookback is not None and lookback.exact:
        native = lookback.native(len(plan.scoring.labels))
        return _core.order_marginals(plan.explicit, native, plan.data, **options)
    if lookback is not None:
        raise ParameterError(
            "a model with history has no probabilities, because its search keeps one path per cell. "
            "Use predict_kbest, which returns scores."
        )
    return plan.scorer.marginals(plan.data, **options)


def _search(plan: Plan, k: int, beam: int | None = None) -> Lists:
    """Search models with longer label histories, or with a beam."""
    settings = plan.scoring.lookback
    if settings is None:
        settings = LookbackWeights().with_weights(np.zeros(0, dtype=np.float32))
    # Lists for `once` are searched repeatedly.
    document_state = plan.query.document_state if plan.once is None else None
    return search(
        settings,
        plan.explicit,
        plan.X,
        plan.data,
        k,
        beam=beam,
        document_state=document_state,
        support=plan.support,
        n_jobs=plan.n_jobs,
    )


def _first_valid(
    lists: Lists, data: _core.Dataset, group: NDArray[np.uint32], begins: NDArray[np.bool_]
) -> NDArray[np.uint16] | None:
    """Return the best path of each sentence in which every group begins at most one span.

    Return None if a list contains no such path.
    """
    counts, _, labels = lists
    lengths = lengths_of(data).tolist()
    chosen, at, n = [], 0, len(group)
    for count, length in zip(counts.tolist(), lengths):
        paths = labels[at : at + count * length].reshape(count, length)
        at += count * length
        before = np.concatenate([np.full((count, 1), n), paths[:, :-1]], axis=1) if length else paths
        started_groups = np.where(begins[before, paths], group[paths], NO_GROUP) if length else paths
        for path, groups in zip(paths, started_groups):
            real = groups[groups != NO_GROUP]
            if len(np.unique(real)) == len(real):
                chosen.append(path)
                break
        else:
            return None
    return np.concatenate(chosen) if chosen else np.zeros(0, dtype=np.uint16)
