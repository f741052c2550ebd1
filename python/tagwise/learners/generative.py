"""Hidden Markov model: smoothed counts, as log probabilities in the weight arrays that all learners use.

log P(x, y) = log P(y_1) + sum_t log P(x_t | y_t) + sum_{t>1} log P(y_t | y_{t-1}) + log P(end | y_T)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.exceptions import ParameterError
from tagwise.dataset.check import lengths_of
from tagwise.optimizers.base import Vector

Array = NDArray[np.float64]


def additive(n: Array, delta: float) -> Array:
    """Return P(o | row) = (n + delta) / (sum n + delta V), along the last axis."""
    out: Array = (n + delta) / (n.sum(axis=-1, keepdims=True) + delta * n.shape[-1])
    return out


def witten_bell(n: Array) -> Array:
    """Return n / (N + K) for seen events and an equal share of K / (N + K) for unseen ones, K kinds seen.

    This is method C of Witten and Bell (1991). A row in which every event was seen keeps relative frequencies. A row
    without events is uniform.
    """
    kinds = (n > 0).sum(axis=-1, keepdims=True)
    total = n.sum(axis=-1, keepdims=True)
    unseen = n.shape[-1] - kinds
    mass = np.where(unseen > 0, kinds, 0)  # mass reserved for unseen events
    with np.errstate(divide="ignore", invalid="ignore"):
        share = mass / ((total + mass) * unseen)
        out: Array = np.where(n > 0, n / (total + mass), share)
    return np.where(total > 0, out, 1.0 / max(n.shape[-1], 1))


def smooth(n: Array, smoothing: str | float) -> Array:
    """Return the log probabilities of smoothed counts, along the last axis."""
    return np.log(witten_bell(n) if isinstance(smoothing, str) else additive(n, smoothing))


@dataclass(frozen=True)
class TransitionCounts:
    """Counts of transitions [L, L + 1] with the end last (or [L, L] without it), and of first labels [L]."""

    steps: Array
    starts: Array


def count_transitions(data: _core.Dataset, labels: int, weight: Array, start_end: bool) -> TransitionCounts:
    """Count the transitions of the gold paths. `weight` [N] is the weight of each sentence."""
    gold = data.gold.astype(np.int64)
    offsets = data.offsets.astype(np.int64)
    filled = lengths_of(data) > 0
    of = np.repeat(weight, lengths_of(data))  # [tokens]
    inner = np.ones(len(gold), dtype=bool)  # whether a token has a predecessor
    inner[offsets[:-1][filled]] = False
    to = np.flatnonzero(inner)
    steps = np.bincount(gold[to - 1] * labels + gold[to], of[to], labels * labels).reshape(labels, labels)
    if start_end:
        ends = np.bincount(gold[offsets[1:][filled] - 1], weight[filled], labels)
        steps = np.hstack([steps, ends[:, None]])
    starts = np.bincount(gold[offsets[:-1][filled]], weight[filled], labels)
    return TransitionCounts(steps.astype(np.float64), starts.astype(np.float64))


@dataclass(frozen=True)
class Symbols:
    """Symbols that tokens emit, and the attributes that represent them.

    A token has the attributes word, class (unless the word has none) and unknown, or the word alone. The score of a
    token is the sum of the weights of its attributes, and an unseen word has only the later ones. So each weight is the
    difference from the next: W[unknown] = log P(unknown), W[class] = log P(class) - W[unknown], W[word] = log P(word) -
    log P(class). The sum is log P(word) for a known word, log P(class) for an unknown word of a known class, and log
    P(unknown) for other words. Words that occur fewer than `rare` times count as their class and have weight 0.
    """

    kinds: int
    of_token: NDArray[np.int64]  # [tokens] kind that each token emits
    of_attribute: NDArray[np.int64]  # [A] kind of each attribute, -1 for rare words
    subtracted: NDArray[np.int64]  # [A] kind that is subtracted, -1 for none


def symbols(data: _core.Dataset, n_attributes: int, unknown: bool, rare: int) -> Symbols:
    """Return the symbols of a dataset whose tokens have word, class (optional) and unknown, or the word alone."""
    pointers, ids, _ = data.node()
    begin, counted = pointers[:-1].astype(np.int64), (pointers[1:] - pointers[:-1]).astype(np.int64)
    least, most = (2, 3) if unknown else (1, 1)
    if len(counted) and (counted.min() < least or counted.max() > most):
        raise ParameterError(
            "a token of a hidden Markov model emits one symbol, but these features give several, or none, for some "
            "token. Use features='S1', a template of one rule, or overlapping=True"
        )
    at = ids.astype(np.int64)
    word = at[begin]
    seen = np.bincount(word, minlength=n_attributes)
    frequent = (seen > 0) & (seen >= (rare if unknown else 1))
    is_kind = frequent.copy()
    following = np.full(n_attributes, -1, dtype=np.int64)
    emitted = word
    if unknown:
        emitted = np.where(frequent[word], word, at[begin + 1])
        for place in (1, 2):
            has = counted > place
            is_kind[at[begin[has] + place]] = True
            following[at[begin[has] + place - 1]] = at[begin[has] + place]
    of_attribute = np.where(is_kind, np.cumsum(is_kind) - 1, -1)
    subtracted = np.where(following >= 0, of_attribute[following], -1)
    return Symbols(int(is_kind.sum()), of_attribute[emitted], of_attribute, subtracted)


def emission_weights(
    found: Symbols, gold: NDArray[np.int64], weight: Array, labels: int, smoothing: str | float
) -> tuple[Array, float]:
    """Return the node weights [A, L] of a hidden Markov model, and the sum of counts times log probabilities."""
    n = np.bincount(found.of_token * labels + gold, weight, found.kinds * labels).reshape(-1, labels).T
    log_p = smooth(n.astype(np.float64), smoothing).T  # [kinds, L]
    out = np.zeros((len(found.of_attribute), labels))
    is_kind = found.of_attribute >= 0
    out[is_kind] = log_p[found.of_attribute[is_kind]]
    subtracted = is_kind & (found.subtracted >= 0)
    out[subtracted] -= log_p[found.subtracted[subtracted]]
    return out, float((n.T * log_p).sum())


def overlapping_weights(
    data: _core.Dataset, n_attributes: int, weight: Array, labels: int, smoothing: str | float
) -> tuple[Array, float]:
    """Return the node weights [A, L] if each attribute of a token is emitted independently: log P(a | y)."""
    pointers, ids, values = data.node()
    if len(values) and float(values.min()) < 0.0:
        raise ParameterError(
            "an attribute has a negative value, but counts of a hidden Markov model must be >= 0. Use values >= 0"
        )
    counted = (pointers[1:] - pointers[:-1]).astype(np.int64)
    code = ids.astype(np.int64) * labels + np.repeat(data.gold.astype(np.int64), counted)
    amount = np.repeat(weight, counted) * (values if len(values) else 1.0)
    n = np.bincount(code, amount, n_attributes * labels).reshape(-1, labels).T
    log_p = smooth(n.astype(np.float64), smoothing).T
    return log_p, float((n.T * log_p).sum())


def assemble(
    node: Array, counts: TransitionCounts, labels: int, smoothing: str | float
) -> tuple[Vector, float]:
    """Return all weights in the order of `dense_layout`, and the log likelihood of the label sequences."""
    steps = smooth(counts.steps, smoothing)
    likelihood = float((counts.steps * steps).sum())
    parts = [node.ravel(), steps[:, :labels].ravel()]
    if counts.steps.shape[1] > labels:
        starts = smooth(counts.starts, smoothing)
        likelihood += float((counts.starts * starts).sum())
        parts += [starts, steps[:, labels]]
    return np.concatenate(parts), likelihood
