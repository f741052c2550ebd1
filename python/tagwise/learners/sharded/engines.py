"""Engines of shards, in memory or paged to disk.

The engine of a shard is several times as large as its arrays, and building it takes as long as a dozen evaluations. So
it is built once. If all engines exceed the memory limit, their large arrays are in files. The system keeps as much of
them in memory as fits, the next shard is prefetched, and finished ones are released.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

from tagwise.base.exceptions import TrainingError
from tagwise.dataset.shards.reader import Shards


class PagedEngine(Protocol):
    """An engine whose large arrays may be in files."""

    @property
    def paged_bytes(self) -> int:
        """Number of bytes of large arrays in files."""

    def prefetch(self) -> None:
        """Have the system read arrays that are in files in the background."""

    def release(self) -> None:
        """Drop arrays that are in files from memory."""


T = TypeVar("T", bound=PagedEngine)
R = TypeVar("R")

#: Bytes per attribute of a token that an engine needs: 11, measured on conll2002-es, and a margin.
BYTES_PER_ATTRIBUTE = 14


def paging_folder(
    shards: Shards, numbers: range, memory: int | None, bytes_each: float = BYTES_PER_ATTRIBUTE
) -> str | None:
    """Return the folder for the paged arrays of these shards, or None if everything fits into `memory`.

    It is the folder of the shards if that is writable, else that of temporary files. `bytes_each` is the estimated
    memory per attribute of a token.
    """
    share = len(numbers) / max(len(shards), 1)
    if memory is None or shards.manifest["node_attributes"] * bytes_each * share <= memory:
        return None
    path = os.fspath(shards.path)
    return path if os.access(path, os.W_OK) else tempfile.gettempdir()


class ShardEngines(Generic[T]):
    """Engines of some shards, or of parts of them.

    Args:
        make: Builds one engine, with large arrays in files of the folder if one is given.
        numbers: Numbers of the shards or parts.
        folder: Folder for large arrays, or None.
        place: Returns file and line of a sentence of one of them.
    """

    def __init__(
        self,
        make: Callable[[int, str | None], T],
        numbers: range,
        folder: str | None,
        place: Callable[[int, int], str],
    ) -> None:
        self.numbers, self._place = numbers, place
        self._engines = [self._released(self._located(k, make, k, folder)) for k in numbers]

    @property
    def paged(self) -> int:
        """Number of bytes in files; 0 if everything is in memory."""
        return sum(engine.paged_bytes for engine in self._engines)

    def each(self, use: Callable[[int, T], R]) -> Iterator[R]:
        """Yield the result of `use` for each engine, in order. The next one is prefetched meanwhile."""
        for i, (k, engine) in enumerate(zip(self.numbers, self._engines)):
            self._engines[(i + 1) % len(self._engines)].prefetch()
            yield self._used(k, use, engine)

    def one(self, k: int, use: Callable[[int, T], R]) -> R:
        """Return the result of `use` for one engine."""
        engine = self._engines[k - self.numbers.start]
        engine.prefetch()
        return self._used(k, use, engine)

    def _used(self, k: int, use: Callable[[int, T], R], engine: T) -> R:
        found = self._located(k, use, k, engine)
        self._released(engine)
        return found

    @staticmethod
    def _released(engine: T) -> T:
        if engine.paged_bytes:
            engine.release()
        return engine

    def _located(self, k: int, call: Callable[..., R], *arguments: object) -> R:
        """Call a function. A TrainingError then names the sentence by file and line."""
        try:
            return call(*arguments)
        except TrainingError as error:
            if error.sentence is None:
                raise
            rest = str(error).removeprefix(f"sentence {error.sentence}")
            raise TrainingError(f"{self._place(k, error.sentence)}{rest}") from error


def ranges(n: int, parts: int) -> list[range]:
    """Divide n neighbouring shards into parts of nearly equal size.

    >>> ranges(5, 2)
    [range(0, 2), range(2, 5)]
    """
    parts = max(1, min(parts, n))
    return [range(a, b) for a, b in pairwise(n * i // parts for i in range(parts + 1))]
