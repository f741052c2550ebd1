"""What engines make of shards, held in memory or paged to disk.

What an engine keeps of a shard is several times its arrays, and takes as long to make as a dozen evaluations. So it is
made once. Where all of it is more than memory allows, it lies in files (`_core.Paged`): the system keeps as much of it
in memory as there is room, the shard that comes next is asked for ahead, and one that is done with is let go.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Generic, TypeVar

import tagwise._core as _core
from tagwise.base.exceptions import TrainingError
from tagwise.dataset.shards.reader import Shards

T = TypeVar("T")
R = TypeVar("R")

#: Arrays that are made while a `Paged` is open are its own, whichever thread makes them.
_ONE_AT_A_TIME = threading.Lock()
#: Bytes that an engine keeps for each attribute of each token: measured on conll2002-es, 11, and some room.
KEPT = 14


def folder_of(shards: Shards, numbers: range, memory: int | None, bytes_each: float = KEPT) -> str | None:
    """Where pages of these shards go: nowhere where all is within `memory`, else beside the shards, if that can be.

    bytes_each: about what is kept, an attribute of a token.
    """
    share = len(numbers) / max(len(shards), 1)
    if memory is None or shards.manifest["node_attributes"] * bytes_each * share <= memory:
        return None
    path = os.fspath(shards.path)
    return path if os.access(path, os.W_OK) else tempfile.gettempdir()


class Held(Generic[T]):
    """What is made of each of some shards or parts of them, kept in memory, or in files of a folder.

    place: file and line of a sentence of one of them.
    """

    def __init__(
        self, make: Callable[[int], T], numbers: range, folder: str | None, place: Callable[[int, int], str]
    ) -> None:
        self.numbers, self._place = numbers, place
        self._made: list[tuple[T, _core.Paged | None]] = []
        for k in numbers:
            if folder is None:
                self._made.append((self._located(k, make, k), None))
                continue
            paged = _core.Paged(folder)
            with _ONE_AT_A_TIME, paged:
                made = self._located(k, make, k)
            paged.release()
            self._made.append((made, paged))

    @property
    def paged(self) -> int:
        """Bytes that lie in files; 0 where all is held in memory."""
        return sum(paged.n_bytes for _, paged in self._made if paged is not None)

    def each(self, use: Callable[[int, T], R]) -> Iterator[R]:
        """What `use` says of each of them, in their order; the next one is asked for meanwhile."""
        for i, (k, (made, paged)) in enumerate(zip(self.numbers, self._made)):
            if paged is not None and (later := self._made[(i + 1) % len(self._made)][1]) is not None:
                later.ahead()
            yield self._used(k, use, made, paged)

    def one(self, k: int, use: Callable[[int, T], R]) -> R:
        """What `use` says of one of them."""
        made, paged = self._made[k - self.numbers.start]
        if paged is not None:
            paged.ahead()
        return self._used(k, use, made, paged)

    def _used(self, k: int, use: Callable[[int, T], R], made: T, paged: _core.Paged | None) -> R:
        found = self._located(k, use, k, made)
        if paged is not None:
            paged.release()
        return found

    def _located(self, k: int, call: Callable[..., R], *given: object) -> R:
        """Call; a TrainingError names the sentence by file and line."""
        try:
            return call(*given)
        except TrainingError as error:
            found = re.match(r"sentence (\d+)(?=:)", message := str(error))
            if found is not None:
                message = f"{self._place(k, int(found[1]))}{message[found.end() :]}"
            raise TrainingError(message) from error


def ranges(n: int, parts: int) -> list[range]:
    """Neighbouring shards in so many parts, as even as there can be.

    >>> ranges(5, 2)
    [range(0, 2), range(2, 5)]
    """
    parts = max(1, min(parts, n))
    return [range(a, b) for a, b in pairwise(n * i // parts for i in range(parts + 1))]


__all__ = ["KEPT", "Held", "folder_of", "ranges"]
