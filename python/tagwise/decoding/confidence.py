"""Confidence of a probabilistic model: probabilities of sequences, tokens and chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import shown
from tagwise.base.exceptions import CorpusError, InternalError, ParameterError
from tagwise.base.parameters import meant
from tagwise.corpus import schemes
from tagwise.dataset.check import lengths_of
from tagwise.decoding import paths
from tagwise.decoding.plan import Plan, allowed_support
from tagwise.features.inputs import Inputs
from tagwise.scores.constraints import intersect
from tagwise.scores.entities import entity_table


@dataclass(frozen=True)
class Confidence:
    """Best path of a sentence with its probabilities.

    Attributes:
        labels: Labels of the best path.
        probability: Probability of the whole path.
        tokens: Marginal probability of each label of the path, [T].
        entropy: Entropy of the label distribution at each token, in nats, [T].
        chunks: Chunks of the path, each with the probability that exactly this chunk is present.
    """

    labels: list[str]
    probability: float
    tokens: NDArray[np.float32]
    entropy: NDArray[np.float32]
    chunks: list[tuple[schemes.Span, float]]

    def __repr__(self) -> str:
        return f"<Confidence: probability {self.probability:.4f}, {len(self.labels)} labels, {len(self.chunks)} chunks>"

    def _repr_html_(self) -> str:
        from tagwise.base.markup import line_html, table_html
        from tagwise.corpus.label_markup import label_cells

        cells = zip(label_cells(self.labels), self.tokens.tolist(), self.entropy.tolist())
        rows = [(t, label, f"{p:.4f}", f"{h:.4f}") for t, (label, p, h) in enumerate(cells)]
        return line_html(repr(self)) + table_html(("token", "label", "probability", "entropy"), rows, left=2)


def entropy(p: NDArray[Any]) -> NDArray[np.float32]:
    """Return the entropy - sum_y p log p of each row, in nats.

    >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4).tolist()
    [0.6930999755859375, 0.0]
    """
    out: NDArray[np.float32] = -np.sum(np.where(p > 0, p * np.log(np.maximum(p, 1e-45)), 0.0), axis=-1)
    return np.maximum(out, 0.0).astype(np.float32)


def _share(part: NDArray[np.float64], whole: NDArray[np.float64], data: _core.Dataset) -> NDArray[np.float64]:
    """Return e^(part - whole) of each sentence, clipped at 1. A part exceeds the whole only by rounding errors."""
    slack = 1e-3 * lengths_of(data) + 1e-5 * np.abs(whole)
    if bool(np.any(part - whole > slack)):
        at = int(np.argmax(part - whole - slack))
        raise InternalError(
            f"sentence {at}: some of its paths have the log score {part[at]:.6g}, all of them {whole[at]:.6g}. "
            "Please report this with the model and the sentence."
        )
    out: NDArray[np.float64] = np.exp(np.minimum(part - whole, 0.0))
    return out


def confidences(plan: Plan) -> list[Confidence]:
    """Return the best path of each sentence with its probabilities."""
    data, labels = plan.data, plan.scoring.labels
    _, scores, path = paths.kbest(plan, 1)
    p, log_z = paths.marginals(plan)
    probability = _share(scores, log_z, data)
    of_label, entropies = p[np.arange(len(path)), path], entropy(p)
    named = _core.name_paths(path, data.offsets, list(labels))
    chunked = schemes.has_chunks(labels) and plan.scoring.lookback is None
    spans = [schemes.spans(found) for found in named] if chunked else [[] for _ in named]
    found = _chunks(plan, spans) if chunked else [[] for _ in named]
    return [
        Confidence(
            labels, float(probability[s]), of_label[a:b], entropies[a:b], list(zip(spans[s], found[s]))
        )
        for s, (labels, (a, b)) in enumerate(zip(named, pairwise(data.offsets.tolist())))
    ]


def chunk_probabilities(plan: Plan, chunks: Sequence[Sequence[Any]]) -> list[list[float]]:
    """Return P(a chunk of this type is at exactly these tokens | x) for lists of (type, begin, end) per sentence."""
    if not isinstance(chunks, Sequence) or isinstance(chunks, (str, bytes)):
        raise ParameterError(
            f"chunks={shown(chunks)}: expected a list for each sentence, of chunks (type, begin, end)"
        )
    if len(chunks) != len(plan.data):
        raise CorpusError(
            f"{len(chunks)} lists of chunks for {len(plan.data)} sentences. Give one list per sentence."
        )
    return _chunks(plan, chunks)


def sequence_probabilities(
    plan: Callable[[Inputs], Plan], X: Inputs, y: Sequence[Sequence[Any]]
) -> NDArray[np.float64]:
    """Return P(y | x) of label sequences, [N]. Entries that are sets of labels or None allow several sequences.

    log P = log Z(constrained to y) - log Z.
    """
    free = plan(X)
    _, log_z = paths.marginals(free)
    fixed_labels = allowed_support(free.scoring.labels, free.data, y)
    try:
        _, fixed = paths.marginals(replace(free, support=intersect(free.support, fixed_labels)))
    except ValueError:  # constraints exclude all paths of some sentence: compute sentences one by one
        n = len(free.data)
        if n == 1:
            return np.zeros(1)
        return np.concatenate([sequence_probabilities(plan, X.only(s), [y[s]]) for s in range(n)])
    return _share(fixed, log_z, free.data)


def _chunks(plan: Plan, chunks: Sequence[Sequence[Any]]) -> list[list[float]]:
    labels = plan.scoring.labels
    if plan.scoring.lookback is not None:
        raise ParameterError(
            "probabilities of chunks need a model of first order, without history. Use sequence_probability."
        )
    kinds, table = entity_table(labels)
    number = {schemes.split_label(y)[1]: int(k) for y, k in zip(labels, kinds) if y != "O"}
    for s, found in enumerate(chunks):
        if isinstance(found, str) or not isinstance(found, Sequence):
            raise CorpusError(
                f"sentence {s}: expected a list of chunks (type, begin, end), found {shown(found)}"
            )
    flat = [(s, chunk) for s, found in enumerate(chunks) for chunk in found]
    lengths = lengths_of(plan.data).tolist()
    for s, chunk in flat:
        if isinstance(chunk, str) or not isinstance(chunk, Sequence) or len(chunk) != 3:
            raise CorpusError(f"sentence {s}: expected a chunk (type, begin, end), found {shown(chunk)}")
        if not all(isinstance(at, (int, np.integer)) for at in chunk[1:]):
            raise CorpusError(
                f"sentence {s}: expected integers as begin and end of a chunk, found {shown(chunk)}"
            )
        if not 0 <= chunk[1] < chunk[2] <= lengths[s]:
            raise CorpusError(
                f"sentence {s}: a chunk from {chunk[1]} to {chunk[2]} is not inside its {lengths[s]} tokens. "
                "begin counts from 0, and end is exclusive."
            )
        if chunk[0] not in number:
            known = list(map(str, number))
            raise CorpusError(
                f"sentence {s}: the model has no chunks of type {chunk[0]!r}{meant(str(chunk[0]), known)}. "
                f"Its types are: {' '.join(known)}"
            )
    if not flat:
        return [[] for _ in chunks]
    p = _core.chunk_probabilities(
        plan.explicit,
        plan.data,
        (
            np.array([s for s, _ in flat], dtype=np.uint32),
            np.array([chunk[1] for _, chunk in flat], dtype=np.uint32),
            np.array([chunk[2] for _, chunk in flat], dtype=np.uint32),
            np.array([number[chunk[0]] for _, chunk in flat], dtype=np.uint16),
        ),
        (kinds, table),
        allowed=plan.support,
        once=plan.once,
        n_jobs=plan.n_jobs,
    )
    ends = np.cumsum([len(found) for found in chunks]).tolist()
    return [p[a:b].tolist() for a, b in pairwise([0, *ends])]
