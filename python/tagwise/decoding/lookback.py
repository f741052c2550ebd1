"""Search of models with longer label histories, and their memory of a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.dataset.check import lengths_of
from tagwise.features.inputs import Inputs
from tagwise.scores.lookback import LookbackWeights
from tagwise.scores.protocols import Lists


class DocumentState:
    """Counts of the labels that were assigned to each word of a document, for tagging a stream in batches.

    Pass the same object to each `predict`. A batch whose first sentence does not begin a document continues the last
    document of the previous batch.
    """

    def __init__(self) -> None:
        self.counts: dict[str, NDArray[np.float32]] = {}

    def clear(self) -> None:
        """Delete the counts of the document."""
        self.counts.clear()

    def before(
        self, ids: Mapping[str, int], n_labels: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.float32]] | None:
        """Return the ids of the words with counts, and their label counts, for the core."""
        known = [(ids[word], row) for word, row in self.counts.items() if word in ids]
        if not known:
            return None
        counts = np.array([row for _, row in known], dtype=np.float32).reshape(-1, n_labels)
        return np.array([number for number, _ in known], dtype=np.uint32), counts

    def add(self, words: list[Sequence[str]], path: NDArray[np.uint16], n_labels: int) -> None:
        """Add sentences of the current document and their concatenated labels."""
        at = 0
        for sentence in words:
            for word in sentence:
                row = self.counts.get(word)
                if row is None:
                    row = self.counts[word] = np.zeros(n_labels, dtype=np.float32)
                row[path[at]] += 1
                at += 1


def search(
    lookback: LookbackWeights,
    scorer: _core.Scorer,
    X: Inputs,
    data: _core.Dataset,
    k: int,
    *,
    beam: int | None = None,
    document_state: DocumentState | None = None,
    support: Any = None,
    n_jobs: int = 0,
) -> Lists:
    """Return the k best paths of each sentence: counts, scores, concatenated labels."""
    n_labels = scorer.layout.n_labels
    native = lookback.native(n_labels)
    if not lookback.document:
        return native.kbest(scorer, data, k, beam=beam, allowed=support, n_jobs=n_jobs)
    words, starts = X.words("a model with document features"), X.starts
    ids: dict[str, int] = {}
    flat = np.fromiter((ids.setdefault(w, len(ids)) for sentence in words for w in sentence), dtype=np.uint32)
    before = None
    if document_state is not None and len(words):
        if X.begins_document(0):
            document_state.clear()
        before = document_state.before(ids, n_labels)
    found = native.kbest(
        scorer, data, k, beam=beam, words=(flat, starts), before=before, allowed=support, n_jobs=n_jobs
    )
    if document_state is not None and len(words):
        last = int(starts[-1])
        if last > 0:
            document_state.clear()
        document_state.add(words[last:], _firsts(found, data, last), n_labels)
    return found


def _firsts(found: Lists, data: _core.Dataset, begin: int) -> NDArray[np.uint16]:
    """Return the concatenated best paths of the sentences from `begin` on."""
    lengths = lengths_of(data)
    at = np.concatenate([[0], np.cumsum(lengths * found[0].astype(np.int64))])
    parts = [found[2][at[s] : at[s] + lengths[s]] for s in range(begin, len(lengths))]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint16)
