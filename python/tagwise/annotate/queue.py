"""The queue: sentences nobody has labelled, the most wanted first, ranked slice by slice as the model changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tagwise.annotate.ranking import View, strategy_of, wanted

#: Sentences that are ranked at a time.
SLICE = 128


class Queue:
    """Open sentences with how much each is wanted, by a model of a certain version.

    `refresh` ranks the most wanted anew until its time is over; `stale` counts what is left, which `refresh` without a
    limit, in the background, goes through. Between the two the ranks of earlier models serve.
    """

    def __init__(self, sentences: Sequence[Any]) -> None:
        self._sentences = sentences
        n = len(sentences)
        self.open = np.ones(n, dtype=bool)
        self.scores = np.full(n, -np.inf)
        self._version = np.full(n, -1, dtype=np.int64)
        self._now = -1  # the version that ranks are to be of
        self._key: tuple[Any, ...] = ()

    def extend(self, n: int) -> None:
        """Room for sentences up to number n; the new ones are open."""
        more = n - len(self.open)
        self.open = np.concatenate([self.open, np.ones(more, dtype=bool)])
        self.scores = np.concatenate([self.scores, np.full(more, -np.inf)])
        self._version = np.concatenate([self._version, np.full(more, -1, dtype=np.int64)])

    def close(self, places: Iterable[int], open: bool = False) -> None:
        """Take sentences out of the queue, or put them back in."""
        self.open[list(places)] = open

    def order(self, most: int | None = None) -> list[int]:
        """Open sentences, the most wanted first; of equals the earlier."""
        places = np.flatnonzero(self.open)
        if most is not None and 0 < most < len(places):
            least = np.partition(-self.scores[places], most - 1)[most - 1]
            places = places[-self.scores[places] <= least]
        ranked = places[np.argsort(-self.scores[places], kind="stable")]
        return [int(i) for i in ranked[:most]]

    @property
    def stale(self) -> int:
        """How many open sentences are ranked by an older model."""
        return int(np.count_nonzero(self.open & (self._version != self._now)))

    def refresh(
        self,
        strategy: str,
        view: View,
        version: int,
        *,
        seconds: float | None = None,
        still: Callable[[], bool] = lambda: True,
    ) -> int:
        """Rank open sentences anew, slice by slice from the most wanted on; how many are left.

        It ends when all are done, when the seconds are over (a slice is always done), or when `still` says no.
        """
        begin = time.perf_counter()
        key = (strategy, view.search)
        if key != self._key:
            self._key = key
            self._version[:] = -1
        by_place = not strategy_of(strategy).learned or view.model is None
        self._now = 0 if by_place else version
        while still():
            old = np.flatnonzero(self.open & (self._version != self._now))
            if not len(old):
                break
            size = min(SLICE, len(old))
            top = old if size == len(old) else old[np.argpartition(-self.scores[old], size - 1)[:size]]
            top = np.sort(top)
            found = wanted(strategy, view, [self._sentences[i] for i in top])
            # by the place in the file: those of the slice, moved to where it stands
            self.scores[top] = found + np.arange(len(top)) - top if by_place else found
            self._version[top] = self._now
            if seconds is not None and time.perf_counter() - begin >= seconds:
                break
        return self.stale


__all__ = ["SLICE", "Queue"]
