"""Dual ascent by Ray: workers hold parts of the shards with their dual points, the driver adds what they gain.

Weights go out once a round, through the object store, in float32, which is what the cores keep; a worker adds the
changes of its parts as far as their numbers belong together and sends them in float32. The dual point stays with the
workers. The weights of all rounds stay in the object store: a worker that is lost is made anew and does its rounds once
more, from the same weights, and so has the same dual point to the bit. Beyond its memory Ray puts them on disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from tagwise.base.exceptions import ParameterError
from tagwise.dataset.shards.reader import Shards
from tagwise.learners.sharded.dual import Climb, Climbers, Point, added
from tagwise.learners.sharded.held import ranges
from tagwise.learners.sums import Part
from tagwise.ray.crew import Crew, places
from tagwise.ray.training import Told
from tagwise.scores.protocols import Vector

#: Where a worker begins: the number of rounds, and a promise of dual points; None for those of the gold labels.
Begin = tuple[int, Any] | None


class Climber:
    """Holds parts: what an actor is."""

    def __init__(self, told: Told, begin: int, end: int) -> None:
        self.told, self.numbers = told, range(begin, end)
        self.begun: int | None = (
            None  # number of rounds before it began, -1 for the gold labels; None before that
        )
        self.done = 0  # rounds that its dual points have seen since
        self.last: tuple[int, list[Part]] = (0, [])

    @cached_property
    def climbers(self) -> Climbers:
        """Its parts, made when they are asked for first: what is wrong with them is an answer then."""
        climb = Climb(self.told.layout, **self.told.more)
        return Climbers(self.told.shards, climb, self.numbers, self.told.share)

    def ready(self) -> int:
        """The process that it is in, once its parts are made."""
        assert self.climbers is not None
        return os.getpid()

    def _follow(self, begin: Begin, rounds: Sequence[Any], seed: int) -> None:
        """Do what was not done of the rounds that began at these weights."""
        import ray

        before = -1 if begin is None else begin[0]
        if self.begun != before:
            if begin is not None:
                points = ray.get(begin[1])
                self.climbers.restore([points[part] for part in self.numbers], begin[0])
            self.begun, self.done = before, 0
        for at in rounds[self.done :]:
            w = ray.get(at)
            found = [self.climbers.round(part, w, seed, self.told.cpus) for part in self.numbers]
            self.last = (sum(tokens for tokens, _ in found), added(part for _, part in found))
            self.done += 1

    def round(self, begin: Begin, rounds: Sequence[Any], seed: int) -> tuple[int, list[Part]]:
        """What its parts gain in the last of these rounds."""
        self._follow(begin, rounds, seed)
        return self.last

    def terms(self, begin: Begin, rounds: Sequence[Any], seed: int, w: Vector, couples: bool) -> list[Part]:
        """What its parts add to the certificate."""
        self._follow(begin, rounds, seed)
        return added(self.climbers.terms(part, w, couples, self.told.cpus) for part in self.numbers)

    def points(self, begin: Begin, rounds: Sequence[Any], seed: int) -> list[Point]:
        """The dual points of its parts."""
        self._follow(begin, rounds, seed)
        return self.climbers.points()


class Workers:
    """The actors of a run, each with some of the parts."""

    def __init__(self, shards: Shards, climb: Climb, n: int | None = None, cpus: int = 1) -> None:
        parts = ranges(len(shards), climb.n_parts)
        if len(parts) == 1:
            raise ParameterError(
                "optimizer='dual' with backend='ray' has parts of the shards ascend at once: set their number "
                f"(parts=2; there are {len(shards)} shards on disk), or use backend='local'"
            )
        shares = ranges(len(parts), places(cpus) if n is None else n)
        names = [f"parts {share.start} to {share.stop - 1}" for share in shares]
        given = [(share.start, share.stop) for share in shares]
        self.crew = Crew(Climber, Told.of(shards, climb, cpus), given, names, cpus)
        self.sent = 0  # bytes of weights, changes and terms that went over the object store
        self._begin: Begin = None
        self._rounds: list[Any] = []
        self._seed = 0
        self.crew.all(lambda actor: actor.ready.remote())

    @property
    def lost(self) -> int:
        """Workers that were made anew."""
        return self.crew.lost

    def _ask(self, what: Callable[[Any], Any], *more: Any) -> list[Any]:
        """The answers of all workers, who are told what to follow up with if they are new."""
        return self.crew.all(lambda actor: what(actor).remote(self._begin, self._rounds, self._seed, *more))

    def _put(self, w: Vector) -> Any:
        """Weights for all workers, as the cores keep them."""
        kept = np.asarray(w, dtype=np.float32)
        self.sent += kept.nbytes
        return self.crew.ray.put(kept)

    def _own(self, parts: Sequence[Part]) -> list[Part]:
        """Parts that may be written to: those of the object store may not."""
        self.sent += sum(part.gradient.nbytes for part in parts)
        return [Part(p.first, p.level, p.value, p.largest, np.array(p.gradient), p.slack) for p in parts]

    def round(self, w: Vector, seed: int, n_jobs: int, /) -> tuple[int, list[Part]]:
        """Tokens that were visited, and what all parts gain; each worker has as many threads as it asked for CPUs."""
        self._rounds.append(self._put(w))
        self._seed = seed
        found = self._ask(lambda actor: actor.round)
        return sum(tokens for tokens, _ in found), self._own(list(chain.from_iterable(p for _, p in found)))

    def terms(self, w: Vector, couples: bool, n_jobs: int, /) -> list[Part]:
        """What all parts add to the certificate."""
        found = self._ask(lambda actor: actor.terms, self._put(w), couples)
        return self._own(list(chain.from_iterable(found)))

    def points(self) -> list[Point]:
        """The dual points of all parts."""
        return list(chain.from_iterable(self._ask(lambda actor: actor.points)))

    def restore(self, points: Sequence[Point], epochs: int, /) -> None:
        """Go on from such points, before the first round."""
        self._begin = (epochs, self.crew.ray.put(list(points)))

    def close(self) -> None:
        """Let the actors go, and what they hold."""
        self._rounds.clear()
        self.crew.dismiss()


__all__ = ["Workers"]
