"""Search for the paths that an explanation compares, and the votes of the features for one or the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import Integer, shown
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.base.parameters import checked, meant
from tagwise.corpus.labels import texts, type_name
from tagwise.decoding.plan import Query
from tagwise.features.inputs import Inputs
from tagwise.model.predictor import Predictor
from tagwise.model.runners_up import Detour, RunnersUp
from tagwise.model.votes import Decision, Decisions, SentenceFeatures, votes
from tagwise.scores.kernels import KernelScorer


def explained(
    model: Predictor, sentence: Any, token: int | None, against: Any, probabilistic: bool, n_jobs: int | None
) -> Decisions:
    """Return the decisions on the labels of one sentence. The arguments are those of `Model.explain`."""
    if isinstance(model.scorer, KernelScorer) or model.lookback is not None:
        what = "kernels" if model.lookback is None else "labels further back (lookback, order)"
        raise ParameterError(
            f"predictions of a model with {what} cannot be explained, since they are not sums over features of "
            "neighbouring labels. Train a model without them"
        )
    if isinstance(sentence, str):
        raise ParameterError("the sentence is a string, expected a list of tokens. Split it into tokens")
    X = Inputs.of([sentence])
    data = model.encode(X, n_jobs)
    T = data.n_tokens
    if not T:
        raise ParameterError(
            "the sentence has no tokens, so there is nothing to explain. Pass at least one token"
        )
    token = checked("token", token, Integer(optional=True))
    if token is not None and not 0 <= token < T:
        raise ParameterError(f"token={token}: expected 0 to {T - 1}, a token of the sentence")
    against = _checked_against(model, against)
    ((path, score),) = model.kbest(X, 1, Query(n_jobs=n_jobs))[0]
    index = {label: i for i, label in enumerate(model.classes)}
    ids = [index[y] for y in path]
    features = SentenceFeatures(model.native, data)
    chances = model.marginals(X, Query(n_jobs=n_jobs))[0] if probabilistic else None
    places = range(T) if token is None else range(token, token + 1)
    if token is None and isinstance(against, list):  # one other path, so one decision
        places = range(next((t for t, y in enumerate(against) if y != path[t]), 0), T)[:1]
    search = _runners_up(model, X, data, features, ids) if against is None else None
    words, out = X.shown(0), []
    for t in places:
        if search is not None:
            detour = search(t)
        else:
            other = other_path(model, X, path, t, against, n_jobs)
            detour = None if other is None else Detour.between(ids, [index[y] for y in other])
        if detour is None:
            continue
        cast = votes(features, model.attribute_text, model.labels, ids, detour, model.scorer.local)
        both: tuple[float, float] | tuple[None, None] = (None, None)
        if chances is not None:
            both = float(chances[t, ids[t]]), float(chances[t, detour.label(ids, t)])
        others = [model.classes[v] for v in detour.labels]
        out.append(Decision(t, words, path, detour.begin, others, score, cast, *both))
    return Decisions(words, path, out)


def _is_label(against: Any) -> bool:
    """Return whether this is one label, of any type, and not a sequence of labels."""
    return type_name(type(against)) is not None


def _checked_against(model: Predictor, against: Any) -> Any:
    """Return the label of the model, the list of labels or the None to compare with."""
    if against is None:
        return None
    if _is_label(against):
        if against not in model.classes:
            raise CorpusError(
                f"against={shown(against)} is not a label of the model{meant(str(against), model.labels)}. "
                f"The labels are: {' '.join(model.labels)}"
            )
        return against
    if isinstance(against, (bytes, Mapping)) or not isinstance(against, Iterable):
        raise ParameterError(
            f"against={shown(against)}: expected a label, or one for each token of the sentence"
        )
    against = list(against)
    texts([against])  # rejects entries that are neither labels nor collections of labels
    return against


def _runners_up(
    model: Predictor, X: Inputs, data: _core.Dataset, features: SentenceFeatures, path: list[int]
) -> Callable[[int], Detour | None] | None:
    """Return a search for the best path with another label at a token, or None for labels that occur once.

    The tag dictionary does not apply at the token itmodel. If no path with another label follows it elsewhere, it
    does not apply anywhere.
    """
    rules, dictionary = model.rules, model.dictionary
    if rules is not None and rules.once is not None:
        return None
    free = np.ones((len(path), len(model.labels)), dtype=np.bool_)
    pairs = np.zeros((len(model.labels),) * 2)
    if rules is not None:
        free[0] &= rules.start
        free[-1] &= rules.end
        pairs[~rules.pairs] = -np.inf
    local = model.scorer.local

    def runners_up(allowed: NDArray[np.bool_]) -> RunnersUp:
        return RunnersUp(features.scores, lambda t: features.step(t, local) + pairs, allowed, free, path)

    if dictionary is None:
        return runners_up(free).at
    rows = dictionary.sets[X.numbers(dictionary.words, "a model with a tag dictionary")]
    strict = runners_up(free & rows)
    loose = cache(lambda: runners_up(free))
    return lambda t: strict.at(t) or loose().at(t)


def other_path(
    model: Predictor, X: Inputs, path: list[Any], t: int, against: Any, n_jobs: int | None
) -> list[Any] | None:
    """Return the path to compare with at a token, or None if there is none."""
    allowed: list[Any] = [None] * len(path)
    if against is None:
        allowed[t] = [y for y in model.classes if y != path[t]]
        if not allowed[t]:
            return None
    elif _is_label(against):
        allowed[t] = against
    else:
        allowed = list(against)
    try:
        found = model.kbest(X, 1, Query(allowed=[allowed], n_jobs=n_jobs))[0]
    except ValueError as error:
        if against is None and not isinstance(error, CorpusError):
            return None  # the rules allow no other label here
        raise
    return found[0][0]
