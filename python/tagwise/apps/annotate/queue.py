"""The queue of unlabelled sentences by priority, which is updated in slices when the model changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagwise.apps.annotate.ranking import View, priorities, strategy_of

#: Number of sentences that are ranked at a time: during a request, without a model (file order), and in the background.
FIRST, FIRST_UNSCORED, SLICE = 32, 20_000, 128


class Slice(NamedTuple):
    """Open sentences with outdated ranks, the highest ones first, and the strategy and model to rank them by."""

    places: NDArray[np.int64]
    strategy: str
    view: View
    version: int
    by_place: bool

    def scores(self, sentences: Sequence[Any]) -> NDArray[np.float64]:
        """Return the priorities. This does not read the queue and can run while others change it."""
        found = priorities(self.strategy, self.view, [sentences[i] for i in self.places])
        # Priorities by position in the file are computed for the slice and shifted to its position.
        return found + np.arange(len(self.places)) - self.places if self.by_place else found


class Queue:
    """Open sentences with priorities from a version of the model.

    `refresh` ranks the first sentences again. `stale` counts the others, ranked in the background slice by slice.
    It calls `next_slice` with the lock of the session, computes the scores without it, and calls `store` with it. Until
    then, ranks of earlier models are used.
    """

    def __init__(self, sentences: Sequence[Any]) -> None:
        self._sentences = sentences
        n = len(sentences)
        self.open = np.ones(n, dtype=bool)
        self.scores = np.full(n, -np.inf)
        self._version = np.full(n, -1, dtype=np.int64)
        self._now = -1  # target version of the ranks
        self._strategy = ""  # strategy of the ranks

    def extend(self, n: int) -> None:
        """Extend the queue to n sentences. New ones are open."""
        more = n - len(self.open)
        self.open = np.concatenate([self.open, np.ones(more, dtype=bool)])
        self.scores = np.concatenate([self.scores, np.full(more, -np.inf)])
        self._version = np.concatenate([self._version, np.full(more, -1, dtype=np.int64)])

    def close(self, places: Iterable[int], open: bool = False) -> None:
        """Remove sentences from the queue, or add them again."""
        self.open[list(places)] = open

    def order(self, most: int | None = None) -> list[int]:
        """Return open sentences by decreasing priority, and in file order among equals."""
        places = np.flatnonzero(self.open)
        if most is not None and 0 < most < len(places):
            least = np.partition(-self.scores[places], most - 1)[most - 1]
            places = places[-self.scores[places] <= least]
        ranked = places[np.argsort(-self.scores[places], kind="stable")]
        return [int(i) for i in ranked[:most]]

    @property
    def stale(self) -> int:
        """Number of open sentences that are ranked by an older model."""
        return int(np.count_nonzero(self.open & (self._version != self._now)))

    def next_slice(self, strategy: str, view: View, version: int, most: int = SLICE) -> Slice | None:
        """Return the next slice to rank, or None if all ranks are current."""
        if strategy != self._strategy:
            self._strategy = strategy
            self._version[:] = -1
        by_place = not strategy_of(strategy).learned or view.model is None
        self._now = 0 if by_place else version
        old = np.flatnonzero(self.open & (self._version != self._now))
        if not len(old):
            return None
        size = min(most, len(old))
        top = old if size == len(old) else old[np.argpartition(-self.scores[old], size - 1)[:size]]
        return Slice(np.sort(top), strategy, view, self._now, by_place)

    def store(self, done: Slice, scores: NDArray[np.float64]) -> bool:
        """Store the ranks of a slice, unless strategy or model have changed since, and return whether it did."""
        if done.strategy != self._strategy or done.version != self._now:
            return False
        self.scores[done.places] = scores
        self._version[done.places] = done.version
        return True

    def refresh(self, strategy: str, view: View, version: int, *, most: int | None = None) -> int:
        """Rank open sentences in slices by decreasing priority, all of them or `most`, and return the number left.

        The work is limited by a count and not by time, so that the order does not depend on the machine.
        """
        while (
            found := self.next_slice(strategy, view, version, SLICE if most is None else most)
        ) is not None:
            self.store(found, found.scores(self._sentences))
            if most is not None:
                break
        return self.stale
