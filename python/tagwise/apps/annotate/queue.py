"""The queue: sentences nobody has labelled, the most wanted first, ranked slice by slice as the model changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tagwise.apps.annotate.ranking import View, strategy_of, wanted

#: Sentences that are ranked at a time: by somebody who waits, where no model is asked (in order, a search), and in the
#: background.
FIRST, LOOKED, SLICE = 32, 20_000, 128


class Slice(NamedTuple):
    """Open sentences whose ranks are old, the most wanted by these; what they are to be ranked by."""

    places: NDArray[np.int64]
    strategy: str
    view: View
    version: int
    by_place: bool

    def scores(self, sentences: Sequence[Any]) -> NDArray[np.float64]:
        """How much each is wanted. Nothing of the queue is looked at: this may run beside whatever changes it."""
        found = wanted(self.strategy, self.view, [sentences[i] for i in self.places])
        # by the place in the file: those of the slice, moved to where it stands
        return found + np.arange(len(self.places)) - self.places if self.by_place else found


class Queue:
    """Open sentences with how much each is wanted, by a model of a certain version.

    `refresh` ranks the most wanted anew; `stale` counts what is left, which goes on in the
    background, slice by slice: `due` under whatever lock there is, its scores without, `put` under it again. Meanwhile
    the ranks of earlier models serve.
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

    def due(self, strategy: str, view: View, version: int, most: int = SLICE) -> Slice | None:
        """The next to be ranked; None where all are by this model."""
        key = (strategy, view.search)
        if key != self._key:
            self._key = key
            self._version[:] = -1
        by_place = not strategy_of(strategy).learned or view.model is None
        self._now = 0 if by_place else version
        old = np.flatnonzero(self.open & (self._version != self._now))
        if not len(old):
            return None
        size = min(most, len(old))
        top = old if size == len(old) else old[np.argpartition(-self.scores[old], size - 1)[:size]]
        return Slice(np.sort(top), strategy, view, self._now, by_place)

    def put(self, done: Slice, scores: NDArray[np.float64]) -> bool:
        """Take ranks, unless others are asked for by now: of another strategy, or by another model."""
        if (done.strategy, done.view.search) != self._key or done.version != self._now:
            return False
        self.scores[done.places] = scores
        self._version[done.places] = done.version
        return True

    def refresh(self, strategy: str, view: View, version: int, *, most: int | None = None) -> int:
        """Rank open sentences anew, slice by slice from the most wanted on: all, or `most`; how many are left.

        Somebody waits for those: they are counted, not timed, so that the order does not depend on the machine.
        """
        while (found := self.due(strategy, view, version, SLICE if most is None else most)) is not None:
            self.put(found, found.scores(self._sentences))
            if most is not None:
                break
        return self.stale
