"""Checks of a training set for all learners: labels, lengths and weights (in the core: `check.rs`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagwise._core import NO_LABEL, Dataset
from tagwise.base.domains import is_text, shown
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.corpus.labels import break_in, broken

#: Label ids have 16 bits, and the last one marks a token without a label.
MAX_LABELS = NO_LABEL - 1


def check_labels(labels: Iterable[Any], y: Iterable[Sequence[Any]] = ()) -> None:
    """Raise a CorpusError for labels that are not strings, that files cannot contain, or that exceed MAX_LABELS.

    Args:
        labels: Distinct labels.
        y: Labels of each sentence, to locate a label in messages.
    """
    distinct = list(labels)
    for label in distinct:
        if not isinstance(label, str):
            raise CorpusError(
                f"the label {label!r} is {type(label).__name__}, expected a string. Convert it with str()."
            )
        if not is_text(label):
            raise CorpusError(
                f"the label {label!a} contains a lone surrogate and is not valid Unicode. Read the corpus as UTF-8."
            )
        if break_in(label) is not None:
            raise CorpusError(f"{_place_of(label, y)}{broken(label)}. Rename it, or read the corpus again.")
    if len(distinct) > MAX_LABELS:
        raise CorpusError(
            f"{len(distinct)} distinct labels, expected at most {MAX_LABELS}. "
            "Check that the label column is the right one."
        )


def _place_of(label: str, y: Iterable[Sequence[Any]]) -> str:
    """Return the first position of a label, alone or in a set, for messages. Empty if it is not found."""
    for s, sentence in enumerate(y):
        for t, entry in enumerate(sentence):
            if entry == label or (isinstance(entry, (tuple, list, set, frozenset)) and label in entry):
                return f"sentence {s}, token {t}: "
    return ""


def check_lengths(data: Dataset, y: Sequence[Sequence[object]], place: str = "") -> None:
    """Raise a CorpusError unless there is one label per token. `place` begins the message, as in "dev: "."""
    lengths = lengths_of(data)
    if len(y) != len(lengths):
        raise CorpusError(
            f"{place}{len(y)} label sequences for {len(lengths)} sentences. Give one label sequence per sentence."
        )
    for s, (length, sentence) in enumerate(zip(lengths.tolist(), y)):
        if len(sentence) != length:
            raise CorpusError(
                f"{place}sentence {s} has {length} tokens and {len(sentence)} labels. Give one label per token."
            )


def lengths_of(data: Dataset) -> NDArray[np.int64]:
    """Return the number of tokens of each sentence, [N]."""
    offsets = data.offsets.astype(np.int64)
    return offsets[1:] - offsets[:-1]


def checked_weights(
    sample_weight: Sequence[float] | NDArray[Any] | None, n: int
) -> NDArray[np.float64] | None:
    """Return checked weights of `n` sentences, [n], or None if all are 1. They are >= 0 and finite in float32."""
    if sample_weight is None:
        return None
    wanted = f"sample_weight needs {n} finite numbers >= 0, one per sentence"
    try:
        if isinstance(sample_weight, Iterator):
            sample_weight = list(sample_weight)
        weight = np.array(sample_weight, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{wanted}, found {shown(sample_weight)}") from None
    if weight.shape != (n,):
        raise ParameterError(f"{wanted}, found {'x'.join(map(str, weight.shape)) or 'a single number'}")
    bad = np.flatnonzero(~((weight >= 0.0) & (weight <= np.finfo(np.float32).max)))
    if len(bad):
        raise ParameterError(f"{wanted}, but sentence {bad[0]} has {weight[bad[0]]:g}")
    return weight
