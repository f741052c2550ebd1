"""Tagging of many sequences: the model is converted to the core's layout, with vectorised scores in float32.

The conversion reads the whole file, which pays off from a few thousand items on. If the two best paths are close, the
double precision of the memory-mapped model decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.parameters import cores
from tagwise.compat.pycrfsuite.items import flat_sequence
from tagwise.features.escape import encode_name, is_plain
from tagwise.model.formats.chain import ForeignModel, parts_of

#: Minimum number of items for which the conversion pays off.
MIN_ITEMS = 5000
#: Absolute difference, and 100 times the relative one, below which two scores may be equal: far above float32 rounding.
CLOSE = 1e-3


class Bulk:
    """Model in the core's layout, for many sequences. It needs at least one label."""

    def __init__(self, chain: ForeignModel, labels: Sequence[str]) -> None:
        parts = parts_of(chain)
        self.labels = labels
        self.scorer: _core.Scorer = parts["scorer"]
        self.vocabulary: _core.Vocabulary = parts["vocabulary"]
        self.escapes = not is_plain("".join(chain.texts))

    def tag(self, sequences: Sequence[Any], model: _core.CrfsuiteModel) -> list[list[str]]:
        """Return the labels of all sequences. `model` tags those whose two best paths are close."""
        plain = not self.escapes and all(isinstance(x, (list, tuple)) for x in sequences)
        try:
            if not plain:
                raise ValueError
            data = _core.encode_attributes(self.vocabulary, list(sequences), n_jobs=cores())
        except (ValueError, TypeError):
            data = _core.encode_attributes(self.vocabulary, [flat_sequence(x) for x in sequences])
        counts, scores, paths = self.scorer.kbest(data, 2)
        bounds = data.offsets.astype(np.int64)
        length, n = np.diff(bounds), counts.astype(np.int64)
        first = np.cumsum(n * length) - n * length
        at: NDArray[np.int64] = np.repeat(first - bounds[:-1], length) + np.arange(int(bounds[-1]))
        names = self.labels
        best = [names[y] for y in paths[at].tolist()]
        out = [best[a:b] for a, b in pairwise(bounds.tolist())]
        rank = np.cumsum(n) - n
        two = np.flatnonzero((n > 1) & (length > 0))
        best_of, next_of = scores[rank[two]], scores[rank[two] + 1]
        # The negated comparison also selects NaN.
        for s in two[~(best_of - next_of >= CLOSE * np.maximum(1.0, 0.01 * np.abs(best_of)))].tolist():
            out[s] = model.tag(sequence_of(sequences[s]))
        return out


def pairs_of(xseq: Any) -> list[list[tuple[bytes, float]]]:
    """Return names, as bytes of the file, and values of every item of a sequence."""
    return [[(encode_name(name), value) for name, value in item] for item in flat_sequence(xseq)]


def sequence_of(xseq: Any) -> _core.CrfsuiteSequence:
    """Return the attributes of a sequence. Python converts the types that the core does not read itself."""
    found = _core.CrfsuiteSequence.read(xseq)
    return _core.CrfsuiteSequence.from_pairs(pairs_of(xseq)) if found is None else found
