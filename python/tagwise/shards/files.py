"""What lies in a folder of shards, and how it is written and read: arrays with checksums, notes as JSON.

    encoded/manifest.json           what was encoded and how; written last
    encoded/vocabulary/*.npy        attributes of all shards: keys, text, text_end, counts
    encoded/shard-00000/*.npy       sentences of one shard: numbers of attributes and labels as the shard counts them
    encoded/shard-00000/shard.json  what it was made of, and the checksums of its arrays; written behind them
    encoded/shard-00000/map.npy     its attributes as the vocabulary numbers them

Every file appears whole or not at all (`tagwise.writing`), and a shard counts once its note is there.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tagwise.errors import CorpusError, ParameterError, refusal
from tagwise.writing import atomic

FORMAT = 1
MANIFEST, NOTE, MAP, VOCABULARY = "manifest.json", "shard.json", "map.npy", "vocabulary"
#: Stands in a map for an attribute that is left out.
NOWHERE = np.uint32(0xFFFF_FFFF)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def shard_name(k: int) -> str:
    """The folder of a shard."""
    return f"shard-{k:05d}"


def shard_number(name: str) -> int | None:
    """The number of a shard by its folder; None for another one."""
    found = re.fullmatch(r"shard-(\d{5,})", name)
    return int(found[1]) if found else None


class _Summed:
    """A stream that keeps the checksum of what is written to it."""

    def __init__(self, out: IO[bytes]) -> None:
        self.out, self.sum = out, 0

    def write(self, data: Any) -> int:
        self.sum = zlib.crc32(data, self.sum)
        return self.out.write(data)


def write_array(path: Path, array: NDArray[Any]) -> int:
    """An array as a file of NumPy's; its checksum."""
    with atomic(path, CorpusError) as out:
        summed = _Summed(out)
        np.lib.format.write_array(summed, np.ascontiguousarray(array), allow_pickle=False)
    return summed.sum


def checksum(path: Path) -> int:
    """The checksum of a file; an OSError where it cannot be read."""
    found = 0
    with open(path, "rb") as file:
        while data := file.read(1 << 20):
            found = zlib.crc32(data, found)
    return found


#: NumPy reads the head of an array with Python's parser, whose depth CPython 3.11 counts for all threads together: two
#: at once can end in a SystemError ("AST constructor recursion depth mismatch"). The child of a fork has a free one.
_heads = threading.Lock()


def _free() -> None:
    global _heads
    _heads = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free)


def read_array(path: Path, expected: int | None = None) -> NDArray[Any]:
    """An array, mapped; `expected` is its checksum, where it is to be looked at."""
    try:
        if expected is not None and (found := checksum(path)) != expected:
            raise damaged(path, f"checksum {found:08x}, expected {expected:08x}")
        if os.path.getsize(path) == 0:
            raise damaged(path, "it is empty")
        with _heads:
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return array
    except OSError as error:
        raise refusal(
            CorpusError,
            f"{path}: cannot be read ({error.strerror}). {REMEDY}",
            str(path),
            error.errno or 5,
        ) from error
    except ValueError as error:
        if isinstance(error, CorpusError):
            raise
        raise damaged(path, str(error)) from error


#: What mends a folder of shards.
REMEDY = "The same `tagwise encode` again makes what is missing or damaged and leaves the rest as it is."


def damaged(path: Path, why: str) -> CorpusError:
    """The error of a file that is not as it was written."""
    return CorpusError(f"{path}: a damaged file of encoded shards ({why}). {REMEDY}")


def write_json(path: Path, content: dict[str, Any]) -> None:
    """A note as a file."""
    with atomic(path, CorpusError) as out:
        out.write(json.dumps(content, ensure_ascii=False, indent=1).encode("utf-8") + b"\n")


def read_json(path: Path) -> dict[str, Any]:
    """A note; a CorpusError where it is none, an OSError where there is none."""
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise damaged(path, str(error)) from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise damaged(path, f"it is not of format {FORMAT}, which this tagwise reads")
    return found


def memory_of(given: int | float | str | None) -> int | None:
    """An amount of memory in bytes: a number, or a text such as 500M or 2G; None where none is given.

    >>> memory_of("1.5K"), memory_of(2e9), memory_of(None)
    (1536, 2000000000, None)
    """
    if given is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:e\d+)?)\s*([KMGT]?)i?B?\s*", str(given), re.IGNORECASE)
    amount = float(found[1]) * _UNITS[found[2].upper()] if found else 0.0
    if isinstance(given, bool) or not amount >= 1.0:
        raise ParameterError(f"memory={given!r}: expected an amount such as 500M or 2G")
    return int(amount)


def half_of_memory() -> int | None:
    """Half of the machine's memory, or of the control group's that the process is in; None where nobody says."""
    try:
        most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None
    with contextlib.suppress(OSError, ValueError):  # there is no such limit
        most = min(most, int(Path("/sys/fs/cgroup/memory.max").read_text("ascii")))
    return most // 2


__all__ = ["FORMAT", "memory_of", "read_array", "read_json", "write_array", "write_json"]
