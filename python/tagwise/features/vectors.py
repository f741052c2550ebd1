"""Token vectors (embeddings): an array [T, D] per sentence, alone or combined with tokens or attributes.

>>> X = Vectors.of([["a", "b"], ["c"]], np.ones((3, 4)), scale=0.5)
>>> X[0].sentence, X[0].values.shape, X[0].values.dtype
(['a', 'b'], (2, 4), dtype('float32'))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagwise._core import Dataset, Vocabulary, encode_attributes
from tagwise.base.exceptions import CorpusError, ParameterError

Matrix = NDArray[np.float32]

#: Maximum size of a vector, and minimum scale. The maximum scale is its reciprocal.
MOST = 1 << 20
LEAST_SCALE = 1e-30


class Vectors:
    """A sentence with one vector per token.

    Args:
        values: array-like of shape [T, D]. Numbers from NumPy, torch or any object that NumPy can convert. They are
            stored as float32.
        sentence: list of tokens, list of attributes, Sentence or None, default=None. Input of the other features. None
            means that the vectors are the only features.
        scale: float, "auto" or None, default=None. Factor of the values. "auto" is the reciprocal of their root mean
            square in training. None means 1. Use "auto" if the values are much larger or smaller than 1, because
            regularization depends on their scale. The model stores the factor and applies it in prediction.

    Attributes:
        values: The vectors as float32, [T, D].
        sentence: The sentence. Without one, a list of T empty tuples.
        scale: The factor.

    Raises:
        CorpusError: ``values`` is not a numeric array of two dimensions.
        ParameterError: ``scale`` is not valid.

    >>> Vectors([[0.5, 1.0], [0.0, 2.0]], ["a", "dog"]).values.shape
    (2, 2)
    """

    __slots__ = ("scale", "sentence", "values")

    def __init__(self, values: Any, sentence: Any = None, *, scale: float | str | None = None) -> None:
        self.values = matrix_of(values)
        self.sentence = [()] * len(self.values) if sentence is None else sentence
        self.scale = checked_scale(scale)

    @classmethod
    def of(cls, X: Any, values: Any, *, scale: float | str | None = None) -> list[Vectors]:
        """Combine sentences with the vectors of their tokens.

        Args:
            X: iterable of sentences. Sentences of any kind.
            values: sequence of arrays or array. One array [T, D] per sentence, or one array [tokens, D] for all
                sentences in order.
            scale: float, "auto" or None, default=None. Factor of the values, see `Vectors`. Use "auto" if they are much
                larger or smaller than 1.

        Returns:
            A list of `Vectors`, to be used as X in `fit` and `predict`.

        Raises:
            CorpusError: The number of vectors differs from the number of tokens or sentences, or an array is not valid.
            ParameterError: ``scale`` is not valid.

        >>> [sentence.values.tolist() for sentence in Vectors.of([["a"], ["b", "c"]], [[[1.0]], [[2.0], [3.0]]])]
        [[[1.0]], [[2.0], [3.0]]]
        """
        sentences = list(X)
        if getattr(values, "ndim", None) == 2:
            whole = matrix_of(values)
            ends = np.cumsum([len(sentence) for sentence in sentences], dtype=np.int64)
            if len(whole) != (ends[-1] if len(ends) else 0):
                raise CorpusError(
                    f"{len(whole)} vectors for {ends[-1] if len(ends) else 0} tokens. Give one vector per token."
                )
            parts: Sequence[Any] = np.split(whole, ends[:-1]) if len(ends) else []
        else:
            parts = list(values)
        if len(parts) != len(sentences):
            raise CorpusError(
                f"{len(parts)} arrays of vectors for {len(sentences)} sentences. Give one array per sentence."
            )
        return [cls(part, sentence, scale=scale) for part, sentence in zip(parts, sentences)]

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"<Vectors: {self.values.shape[0]} tokens, {self.values.shape[1]} numbers each>"

    def _repr_html_(self) -> str:
        from tagwise.base.markup import line_html, table_html

        rows = [
            (t, " ".join(f"{x:.4g}" for x in row[:8]) + (" ..." if len(row) > 8 else ""))
            for t, row in enumerate(self.values[:10].tolist())
        ]
        return line_html(repr(self)) + table_html(("token", "numbers"), rows, left=2)


def checked_scale(scale: Any) -> float | str | None:
    """Return a valid scale, or raise a ParameterError."""
    number = isinstance(scale, (int, float, np.integer, np.floating)) and not isinstance(scale, bool)
    if scale is None or scale == "auto" or (number and LEAST_SCALE <= scale <= 1 / LEAST_SCALE):
        return float(scale) if number else scale
    raise ParameterError(f"scale={scale!r}: expected a number > 0, or 'auto'")


def is_vectors(sentence: Any) -> bool:
    """Return whether a sentence has vectors: a `Vectors` or an array of two dimensions."""
    if isinstance(sentence, Vectors):
        return True
    kind = getattr(getattr(sentence, "dtype", None), "kind", "")
    return (hasattr(sentence, "detach") or kind in tuple("fiub")) and getattr(sentence, "ndim", None) == 2


def matrix_of(values: Any) -> Matrix:
    """Convert to an array [T, D] of float32. A torch tensor is detached and copied to the CPU."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().float().numpy()
    found = np.asarray(values)
    if found.ndim != 2 or found.dtype.kind not in "fiub" or not 0 < found.shape[1] <= MOST:
        raise CorpusError(
            f"vectors of a sentence are an array [tokens, numbers], found one of {found.dtype} with the shape "
            f"{found.shape}. Give one row of numbers per token."
        )
    return np.ascontiguousarray(found, dtype=np.float32)


def separated(sentences: Sequence[Any]) -> tuple[list[Any], list[Vectors]]:
    """Separate sentences and vectors. All vectors must have the same length and scale."""
    found: list[Vectors] = []
    for s, sentence in enumerate(sentences):
        if not is_vectors(sentence):
            raise CorpusError(
                f"sentence {s} has no vectors, unlike the sentences before. Give every sentence an array "
                "[tokens, numbers]."
            )
        one = sentence if isinstance(sentence, Vectors) else Vectors(sentence)
        if len(one.sentence) != len(one.values):
            raise CorpusError(
                f"sentence {s} has {len(one.sentence)} tokens and {len(one.values)} vectors. Give one vector per token."
            )
        if found and one.values.shape[1] != found[0].values.shape[1]:
            raise CorpusError(
                f"sentence {s} has vectors of {one.values.shape[1]} numbers, sentence 0 of {found[0].values.shape[1]}. "
                "Give vectors of one length."
            )
        if found and one.scale != found[0].scale:
            raise CorpusError(
                f"sentence {s} has the scale {one.scale!r}, sentence 0 {found[0].scale!r}. Give one scale for all."
            )
        found.append(one)
    return [one.sentence for one in found], found


@dataclass(frozen=True)
class VectorSpec:
    """Size and scale of the vectors of a model."""

    size: int
    scale: float

    @staticmethod
    def learned(found: Sequence[Vectors]) -> VectorSpec | None:
        """Return the size and scale of training vectors."""
        if not found:
            return None
        scale = found[0].scale
        if scale == "auto":
            n = sum(one.values.size for one in found)
            square = sum(float(np.square(one.values, dtype=np.float64).sum()) for one in found) / max(1, n)
            scale = 1.0 / float(np.sqrt(square)) if square > 0 else 1.0
        number = 1.0 if scale is None else float(scale)
        return VectorSpec(found[0].values.shape[1], float(np.float32(number)))

    def check(self, found: Sequence[Vectors]) -> None:
        """Raise a CorpusError if vectors differ from those of training in size or scale."""
        for one in found[:1]:
            if one.values.shape[1] != self.size:
                raise CorpusError(
                    f"the vectors have {one.values.shape[1]} numbers, those of training {self.size}. Give vectors of "
                    "the same length."
                )
            if isinstance(one.scale, float) and float(np.float32(one.scale)) != self.scale:
                raise CorpusError(
                    f"the vectors have the scale {one.scale}, those of training {self.scale}. Drop the argument: the "
                    "model applies its own scale."
                )

    @property
    def names(self) -> list[str]:
        """Names of the attributes, one per vector component."""
        return [f"vector[{j}]" for j in range(self.size)]

    def attached(self, data: Dataset, found: Sequence[Vectors], vocabulary: Vocabulary) -> Dataset:
        """Return a dataset with the vectors of its tokens.

        A growing vocabulary is extended by their attributes, which have consecutive ids.
        """
        names = self.names
        if not vocabulary.locked:
            encode_attributes(vocabulary, [[names]])
        ids = [vocabulary.get(name) for name in names]
        kept = [j for j, number in enumerate(ids) if number is not None]  # a pruned model lacks some
        if not kept:
            return data
        first = ids[kept[0]] or 0
        if [ids[j] for j in kept] != list(range(first, first + len(kept))):
            raise CorpusError(
                "attributes of X have the names of its vector components (vector[0], ...). Rename them."
            )
        rows = [one.values for one in found]
        values = np.concatenate(rows) if rows else np.zeros((0, self.size), np.float32)
        values = values if len(kept) == self.size else np.ascontiguousarray(values[:, kept])
        finite = np.isfinite(values).all(axis=1)
        if not finite.all():
            t, s = int(np.argmin(finite)), 0
            while t >= len(found[s]):
                t, s = t - len(found[s]), s + 1
            raise CorpusError(
                f"sentence {s}, token {t}: its vector contains numbers that are not finite. Replace them."
            )
        return data.with_vectors(first, values, self.scale)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON for model files."""
        return {"size": self.size, "scale": self.scale}
