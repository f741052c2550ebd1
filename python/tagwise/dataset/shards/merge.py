"""Merging of shard vocabularies, with ids in order of first occurrence, as in a single pass over the corpus.

Shards are encoded independently, in any order and by any worker. Attributes are identified by their key, a hash. As in
the core, a second hash detects two attributes with the same key, which is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tagwise.base.domains import Choice, DomainError, Integer, Record
from tagwise.base.exceptions import CorpusError
from tagwise.base.files.arrays import ArrayFile
from tagwise.dataset.shards.files import FORMAT, checked, counted, faults, open_arrays, open_shard, write

#: Headers of a partial vocabulary, and of the ids of its keys in the complete vocabulary.
PART_DOMAIN = Record({"kind": Choice(("part",)), "format": Integer(FORMAT, FORMAT)})
NUMBERS_DOMAIN = Record({"kind": Choice(("numbers",)), "format": Integer(FORMAT, FORMAT)})

#: Bytes per attribute for merging, without its text: keys, checks, numbers, ends, counts, and copies of them.
_EACH = 80


class Vocabularies:
    """Merged vocabulary. Call `take` for each shard, in order."""

    def __init__(self, memory: int | None = None) -> None:
        self.memory = memory
        self._sorted = np.zeros(0, np.uint64)  # keys, ascending
        self._numbers = np.zeros(0, np.uint32)  # their ids
        self._keys: list[NDArray[np.uint64]] = []  # in order of their ids
        self._checks = np.zeros(0, np.uint64)
        self._counts = np.zeros(0, np.uint64)
        self._text: list[NDArray[np.uint8]] = []
        self._ends: list[NDArray[np.uint64]] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._checks)

    def take(self, path: Path, part: bool = False) -> NDArray[np.uint32]:
        """Add the attributes of a shard or a part, and return their ids. New attributes get the next free ids."""
        file = open_arrays(path, PART_DOMAIN) if part else open_shard(path)
        with faults(path):
            keys = file.take("keys", "u64")
            checks = file.take("checks", "u64", len(keys))
            counts = counted(file.take("counts", "u64" if part else "u32", len(keys)))
            text, end = _texts_of(file, len(keys))
        at = np.minimum(np.searchsorted(self._sorted, keys), max(len(self._sorted) - 1, 0))
        known = np.zeros(len(keys), bool) if not len(self) else self._sorted[at] == keys
        to = np.empty(len(keys), np.uint32)
        if len(self):
            to[known] = self._numbers[at[known]]
        clash = np.flatnonzero(self._checks[to[known]] != checks[known]) if known.any() else np.zeros(0)
        if len(clash):
            i = int(np.flatnonzero(known)[clash[0]])
            begin = int(end[i - 1]) if i else 0
            name = text[begin : int(end[i])].tobytes().decode("utf-8", "replace")
            raise CorpusError(
                f"{path}: the attribute {name!r} has the same 64-bit key as another one. Change the feature that makes "
                "it."
            )
        new = ~known
        to[new] = np.arange(len(self), len(self) + int(new.sum()), dtype=np.uint32)
        self._add(keys[new], checks[new], to[new])
        self._texts(text, end, new)
        self._counts = np.concatenate([self._counts, np.zeros(int(new.sum()), np.uint64)])
        self._counts[to] += counts
        self._claim()
        return to

    def write_numbers(self, path: Path) -> None:
        """Write the keys in ascending order with their ids, for `numbers`."""
        write(path, {"kind": "numbers"}, {"sorted": self._sorted, "numbers": self._numbers})

    def _add(self, keys: NDArray[np.uint64], checks: NDArray[np.uint64], numbers: NDArray[np.uint32]) -> None:
        """Insert new keys in sorted order."""
        self._keys.append(keys)
        self._checks = np.concatenate([self._checks, checks])
        order = np.argsort(keys, kind="stable")
        places = np.searchsorted(self._sorted, keys[order])
        self._sorted = np.insert(self._sorted, places, keys[order])
        self._numbers = np.insert(self._numbers, places, numbers[order])

    def _texts(self, text: NDArray[np.uint8], end: NDArray[np.uint64], new: NDArray[np.bool_]) -> None:
        """Append the texts of new attributes."""
        ends = end.astype(np.int64)
        lengths = ends - np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        self._text.append(text[np.repeat(new, lengths)])
        self._ends.append(self._bytes + np.cumsum(lengths[new]).astype(np.uint64))
        self._bytes += int(lengths[new].sum())

    def _claim(self) -> None:
        """Raise a CorpusError if the vocabulary exceeds the memory limit."""
        needed = len(self) * _EACH + 2 * self._bytes
        if self.memory is not None and needed > self.memory:
            raise CorpusError(
                f"{len(self):,} attributes so far need {needed / 1e6:,.0f} MB, but the memory limit is "
                f"{self.memory / 1e6:,.0f} MB. Increase it, or use features that make fewer attributes."
            )

    def write(self, path: Path, part: bool = False) -> int:
        """Write the vocabulary, and return the checksum of the file. A later merge can `take` a `part` like a shard.

        New attributes of a part are in order of first occurrence. The final ids are therefore equal, whether shards
        are merged one by one or consecutive shards are first merged into parts.
        """

        def joined(parts: Sequence[NDArray[np.generic]], kind: type[np.generic]) -> NDArray[np.generic]:
            return np.concatenate([np.zeros(0, kind), *parts])

        arrays = {
            "keys": joined(self._keys, np.uint64),
            "text": joined(self._text, np.uint8),
            "text_end": joined(self._ends, np.uint64),
            "counts": self._counts if part else np.minimum(self._counts, 0xFFFF_FFFF).astype(np.uint32),
        }
        if part:
            arrays["checks"] = self._checks
        return write(path, {"kind": "part" if part else "vocabulary"}, arrays)


def _texts_of(file: ArrayFile, attributes: int) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    """Return the concatenated texts of attributes, and the end of each."""
    text, end = file.take("text", "u8"), file.take("text_end", "u64", attributes)
    if (end[:-1] > end[1:]).any() or (int(end[-1]) if len(end) else 0) != len(text):
        raise DomainError("texts of attributes do not follow each other")
    return text, end


def numbers(shard: Path, path: Path) -> NDArray[np.uint32]:
    """Return the ids of a shard's attributes, equal to the result of `take`, from the file of `write_numbers`."""
    keys, known = open_shard(shard).take("keys", "u64"), open_arrays(path, NUMBERS_DOMAIN)
    with faults(path):
        ordered = known.take("sorted", "u64")
        at = checked("sorted", np.searchsorted(ordered, keys), len(ordered))
        found: NDArray[np.uint32] = known.take("numbers", "u32", len(ordered))[at]
    return found


def merged_labels(found: Sequence[tuple[Sequence[str], Sequence[int]]]) -> tuple[list[str], list[int]]:
    """Return the labels of all shards and their counts, most frequent first as in `collect_labels`.

    `found` contains the labels of each shard in order of first occurrence, and their counts.
    """
    counts: Counter[str] = Counter()
    for labels, often in found:
        for label, n in zip(labels, often):
            counts[label] += n
    ordered = counts.most_common()
    return [label for label, _ in ordered], [n for _, n in ordered]
