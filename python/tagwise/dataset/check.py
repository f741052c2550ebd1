"""What a training set must be: labels, lengths and weights, said once for all learners (in the core: `check.rs`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagwise._core import NO_LABEL, Dataset
from tagwise.base.domains import is_text, shown
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.corpus.labels import break_in, broken

#: Label ids are 16 bits wide, and the last one marks a token without a label.
MAX_LABELS = NO_LABEL - 1


def check_labels(labels: Iterable[Any], y: Iterable[Sequence[Any]] = ()) -> None:
    """Refuse distinct labels that are no strings or that no file can hold, and more than ids can number.

    y: the labels by sentence, to say where one is.
    """
    distinct = list(labels)
    for label in distinct:
        if not isinstance(label, str):
            raise CorpusError(
                f"the label {label!r} is {type(label).__name__}, expected a string; convert it with str()"
            )
        if not is_text(label):
            raise CorpusError(
                f"the label {label!a} holds a lone surrogate and is no Unicode text; read the corpus as UTF-8"
            )
        if break_in(label) is not None:
            raise CorpusError(f"{_place_of(label, y)}{broken(label)}; rename it, or read the corpus again")
    if len(distinct) > MAX_LABELS:
        raise CorpusError(
            f"{len(distinct)} labels, more than {MAX_LABELS}; is the label column the right one?"
        )


def _place_of(label: str, y: Iterable[Sequence[Any]]) -> str:
    """Where a label is first, alone or in a set; empty if that is not known."""
    for s, sentence in enumerate(y):
        for t, entry in enumerate(sentence):
            if entry == label or (isinstance(entry, (tuple, list, set, frozenset)) and label in entry):
                return f"sentence {s}, token {t}: "
    return ""


def check_lengths(data: Dataset, y: Sequence[Sequence[object]]) -> None:
    """Refuse labels that do not fit the sentences, one a token."""
    lengths = lengths_of(data)
    if len(y) != len(lengths):
        raise CorpusError(
            f"{len(y)} sentences of labels for {len(lengths)} sentences of tokens; X and y must match"
        )
    for s, (length, sentence) in enumerate(zip(lengths.tolist(), y)):
        if len(sentence) != length:
            raise CorpusError(
                f"sentence {s} has {length} tokens and {len(sentence)} labels; every token needs one"
            )


def lengths_of(data: Dataset) -> NDArray[np.int64]:
    """Tokens of each sentence: [N]."""
    offsets = data.offsets.astype(np.int64)
    return offsets[1:] - offsets[:-1]


def checked_weights(
    sample_weight: Sequence[float] | NDArray[Any] | None, n: int
) -> NDArray[np.float64] | None:
    """The weights of `n` sentences as the learners take them: [n], finite in float32 and >= 0; or None for all 1."""
    if sample_weight is None:
        return None
    wanted = f"sample_weight needs {n} finite numbers >= 0, one a sentence"
    try:
        if isinstance(sample_weight, Iterator):
            sample_weight = list(sample_weight)
        weight = np.array(sample_weight, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{wanted}; got {shown(sample_weight)}") from None
    if weight.shape != (n,):
        raise ParameterError(f"{wanted}; got {'x'.join(map(str, weight.shape)) or 'a single number'}")
    bad = np.flatnonzero(~((weight >= 0.0) & (weight <= np.finfo(np.float32).max)))
    if len(bad):
        raise ParameterError(f"{wanted}; sentence {bad[0]} has {weight[bad[0]]:g}")
    return weight
