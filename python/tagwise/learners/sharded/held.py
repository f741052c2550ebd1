"""What engines make of shards, held in memory or paged to disk.

What an engine keeps of a shard is several times its arrays, and takes as long to make as a dozen evaluations. So it is
made once. If all of it is more than memory allows, its large arrays are in files: the system keeps as much of them in
memory as fits, the next shard is prefetched, and one that is done with is released.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

from tagwise.base.exceptions import TrainingError
from tagwise.dataset.shards.reader import Shards


class Paging(Protocol):
    """An engine whose large arrays may be in files."""

    @property
    def paged_bytes(self) -> int:
        """Bytes of large arrays in files."""

    def prefetch(self) -> None:
        """Have the system read arrays that are in files in the background."""

    def release(self) -> None:
        """Drop arrays that are in files from memory."""


T = TypeVar("T", bound=Paging)
R = TypeVar("R")

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
    """What is made of each of some shards or parts of them.

    make: builds one, with large arrays in files of the folder if one is given.
    place: file and line of a sentence of one of them.
    """

    def __init__(
        self,
        make: Callable[[int, str | None], T],
        numbers: range,
        folder: str | None,
        place: Callable[[int, int], str],
    ) -> None:
        self.numbers, self._place = numbers, place
        self._made = [self._released(self._located(k, make, k, folder)) for k in numbers]

    @property
    def paged(self) -> int:
        """Bytes in files; 0 if all is held in memory."""
        return sum(made.paged_bytes for made in self._made)

    def each(self, use: Callable[[int, T], R]) -> Iterator[R]:
        """Return what `use` returns for each of them, in order; the next one is prefetched meanwhile."""
        for i, (k, made) in enumerate(zip(self.numbers, self._made)):
            self._made[(i + 1) % len(self._made)].prefetch()
            yield self._used(k, use, made)

    def one(self, k: int, use: Callable[[int, T], R]) -> R:
        """Return what `use` returns for one of them."""
        made = self._made[k - self.numbers.start]
        made.prefetch()
        return self._used(k, use, made)

    def _used(self, k: int, use: Callable[[int, T], R], made: T) -> R:
        found = self._located(k, use, k, made)
        self._released(made)
        return found

    @staticmethod
    def _released(made: T) -> T:
        if made.paged_bytes:
            made.release()
        return made

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
