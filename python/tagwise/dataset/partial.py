"""Partial labels: a token may have a set of possible labels, or no label at all.

>>> parse([["NN|VB", "_", "DT"]])
[[('NN', 'VB'), None, ('DT',)]]
>>> parse([[{"VB", "NN"}, None, "DT"]])
[[('NN', 'VB'), None, ('DT',)]]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagwise._core import NO_LABEL, Dataset, Layout, count_texts
from tagwise.base.exceptions import CorpusError
from tagwise.dataset import layout as layouts
from tagwise.dataset.check import check_labels

#: Possible labels of a token, or None for any label.
PossibleLabels = tuple[str, ...] | None
Support = tuple[NDArray[np.bool_], NDArray[np.uint32]]


def is_partial(y: Sequence[Sequence[Any]]) -> bool:
    """Return whether some token has a collection of labels or None in place of one label."""
    if count_texts(y) is not None:
        return False
    kinds = {kind for sentence in y for kind in set(map(type, sentence))}
    return not all(issubclass(kind, str) for kind in kinds)


def check_known(y: Sequence[Sequence[Any]]) -> None:
    """Raise a CorpusError if a label is None."""
    for s, sentence in enumerate(y):
        if None in sentence:
            raise CorpusError(
                f"sentence {s}, token {list(sentence).index(None)}: the label is None. Give a label, or set "
                "partial=True if None means that it is unknown."
            )


def parse(y: Sequence[Sequence[Any]], separator: str = "|", unknown: str = "_") -> list[list[PossibleLabels]]:
    """Return the possible labels of each token, given "A|B" and "_", or collections of labels and None."""
    seen: dict[str, PossibleLabels] = {}

    def of_text(text: str) -> PossibleLabels:
        if text not in seen:
            parts = text.split(separator) if separator else [text]
            if text == unknown:
                seen[text] = None
            elif "" in parts:
                raise CorpusError(
                    f"the label {text!r} has an empty part. Write A{separator}B, or {unknown!r} for any label."
                )
            else:
                seen[text] = tuple(dict.fromkeys(parts))
        return seen[text]

    out: list[list[PossibleLabels]] = []
    for s, sentence in enumerate(y):
        known: list[PossibleLabels] = []
        for t, label in enumerate(sentence):
            if label is None:
                known.append(None)
            elif isinstance(label, str):
                known.append(of_text(label))
            else:
                found = list(label) if isinstance(label, Iterable) else []
                if not found or not all(isinstance(name, str) for name in found):
                    raise CorpusError(
                        f"sentence {s}, token {t}: {label!r} is not a collection of labels. Give strings, or None for "
                        "any label."
                    )
                ordered = sorted(found) if isinstance(label, (set, frozenset)) else found
                known.append(tuple(map(str, dict.fromkeys(ordered))))
        out.append(known)
    return out


def collect(known: list[list[PossibleLabels]]) -> list[str]:
    """Return the distinct labels, most frequent first. Each label of a set counts as one occurrence."""
    counts: Counter[str] = Counter()
    for sentence in known:
        for labels in sentence:
            counts.update(labels or ())
    if not counts:
        raise CorpusError("no token of the training set has a known label. Label at least some of them.")
    check_labels(counts, ([labels or () for labels in sentence] for sentence in known))
    return [label for label, _ in counts.most_common()]


def support_of(known: list[list[PossibleLabels]], labels: Sequence[str]) -> Support:
    """Return label sets for the core: distinct sets [sets, L] and the set of each token. Set 0 contains all labels."""
    index = {label: i for i, label in enumerate(labels)}
    rows: dict[PossibleLabels, int] = {None: 0}
    of = [rows.setdefault(labels_, len(rows)) for sentence in known for labels_ in sentence]
    sets = np.zeros((len(rows), len(labels)), dtype=np.bool_)
    for names, row in rows.items():
        sets[row, slice(None) if names is None else [index[name] for name in names]] = True
    return sets, np.array(of, dtype=np.uint32)


def gold_of(support: Support) -> NDArray[np.uint16]:
    """Return the labels of tokens with a single possible label and NO_LABEL for other tokens, [tokens]."""
    sets, of = support
    single = np.where(sets.sum(axis=1) == 1, sets.argmax(axis=1), NO_LABEL)
    return single[of].astype(np.uint16)


def layout_of(
    data: Dataset, n_attributes: int, support: Support, *, all_pairs: bool, start_end: bool
) -> Layout:
    """Return the layout of the features that occur in some completion of the partial labels.

    Tokens without any information contribute no features. With one label per token, the result is that of
    `Layout.build`.
    """
    sets, of = support
    n_labels = sets.shape[1]
    if all_pairs:
        certain = data.with_gold(np.zeros(data.n_tokens, dtype=np.uint16))
        return Layout.build(certain, n_attributes, n_labels, all_pairs=True, start_end=start_end)
    shown = sets.copy()
    shown[0] = False  # "any label" is not evidence for a particular one
    offsets = data.offsets.astype(np.int64)

    def observed(
        ptr: NDArray[np.uint64], ids: NDArray[np.uint32], rows: NDArray[np.bool_], of_token: Any
    ) -> Any:
        """Return the distinct codes attribute * width + target over the tokens of a CSR matrix and their label sets."""
        width = rows.shape[1]
        pointers = ptr.astype(np.int64)
        token = np.repeat(np.arange(len(of_token)), pointers[1:] - pointers[:-1])
        pairs = np.unique(ids.astype(np.int64) * len(rows) + of_token[token])
        attribute, row = pairs // len(rows), pairs % len(rows)
        first, target = np.nonzero(rows[row])
        return np.unique(attribute[first] * width + target)

    ptr, ids, _ = data.node()
    node = observed(ptr, ids, shown, of.astype(np.int64))
    follows = np.ones(data.n_tokens, dtype=np.bool_)
    follows[offsets[:-1][offsets[:-1] < data.n_tokens]] = False
    here = np.flatnonzero(follows)
    steps, step_of = np.unique(of[here - 1].astype(np.int64) * len(sets) + of[here], return_inverse=True)
    pairs = (shown[steps // len(sets)][:, :, None] & shown[steps % len(sets)][:, None, :]).reshape(
        len(steps), n_labels * n_labels
    )
    full = offsets[:-1][np.diff(offsets) > 0]
    starts = shown[of[full]].any(axis=0) if start_end else np.zeros(n_labels, dtype=np.bool_)
    last = offsets[1:][np.diff(offsets) > 0] - 1
    ends = shown[of[last]].any(axis=0) if start_end else np.zeros(n_labels, dtype=np.bool_)
    pair = np.zeros(0, dtype=np.int64)
    if data.n_edge_attributes:
        ptr, ids, _ = data.edge()
        of_step = np.full(data.n_tokens, len(steps))
        of_step[here] = step_of
        nothing = np.zeros((1, n_labels * n_labels), dtype=np.bool_)
        pair = observed(ptr, ids, np.concatenate([pairs, nothing]), of_step)
    codes = [node, *(np.flatnonzero(mark) for mark in (pairs.any(axis=0), starts, ends)), pair]
    return layouts.layout_of(n_attributes, n_labels, codes, pairs=data.n_edge_attributes > 0)
