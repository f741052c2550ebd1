"""Encoding of attributes and labels as ids, in a Vocabulary and a Dataset (flat CSR, offsets, gold labels).

>>> vocab, data = build([["The", "dog"]], features="S1")
>>> vocab.texts(), data.n_tokens
(['word[0]=The', 'word[0]=dog'], 2)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagwise._core import NO_LABEL, Dataset, Vocabulary, count_texts, prune, text_ids
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.dataset.check import check_labels, check_lengths
from tagwise.features.inputs import Inputs
from tagwise.features.resolve import recipe_for


def build(
    X: Any, features: Any = "default", min_count: int = 1, n_jobs: int | None = None
) -> tuple[Vocabulary, Dataset]:
    """Return the vocabulary and dataset of sentences of any kind.

    Attributes with fewer than min_count occurrences are dropped. The vocabulary is not locked. Lock it before encoding
    other sentences with it.
    """
    if min_count < 1:
        raise ParameterError(f"min_count={min_count}, expected 1 (keep every attribute) or more")
    vocab, X = Vocabulary(), Inputs.of(X)
    recipe = recipe_for(features, X).learned(X)
    data = recipe.encode(X, vocab, n_jobs)
    data = prune(vocab, data, min_count) if min_count > 1 else data
    return vocab, recipe.with_vectors(data, X, vocab)


def collect_labels(y: Iterable[Sequence[str]]) -> list[str]:
    """Return the distinct labels, most frequent first. Ties are in order of first occurrence.

    >>> collect_labels([["B", "O"], ["I", "O"]])
    ['O', 'B', 'I']
    """
    known = count_texts(y)
    counts = Counter(known)
    for s, sentence in enumerate(y if known is None else ()):
        if isinstance(sentence, str):
            raise CorpusError(f"sentence {s} (y[{s}]) is a string, expected a list of labels, one per token")
        counts.update(sentence)
    check_labels(counts, y)
    return [str(label) for label, _ in counts.most_common()]


def encode_labels(
    y: Iterable[Sequence[str]], labels: Sequence[str], unknown: bool = False
) -> NDArray[np.uint16]:
    """Return the label ids of all tokens, concatenated over sentences, [tokens].

    A label that is not in `labels` raises a CorpusError, or becomes NO_LABEL if `unknown` is True.

    >>> encode_labels([["B", "O"], ["O"]], ["O", "B"]).tolist()
    [1, 0, 0]
    """
    ids = text_ids(y, list(labels))
    if ids is not None:
        return ids
    index = {label: i for i, label in enumerate(labels)}
    if unknown:
        return np.fromiter(
            (index.get(label, NO_LABEL) for sentence in y for label in sentence), dtype=np.uint16
        )
    y = y if isinstance(y, Sequence) else list(y)
    try:
        return np.fromiter(map(index.__getitem__, chain.from_iterable(y)), dtype=np.uint16)
    except KeyError as error:
        for s, sentence in enumerate(y):
            for t, label in enumerate(sentence):
                if label not in index:
                    raise CorpusError(
                        f"sentence {s}, token {t}: the label {label!r} is not one of the {len(index)} labels of the "
                        "training data"
                    ) from None
        raise CorpusError(f"unknown label {error.args[0]!r}") from None


def with_labels(
    data: Dataset, y: Sequence[Sequence[str]], labels: Sequence[str], unknown: bool = False
) -> Dataset:
    """Return the dataset with gold labels. Raise a CorpusError for a sentence with the wrong number of labels."""
    check_lengths(data, y)
    return data.with_gold(encode_labels(y, labels, unknown))
