"""Files of a folder of encoded shards, and their schemas.

    encoded/manifest.json           sources, features, labels and checksums (written last)
    encoded/vocabulary.arrays       attributes of all shards: keys, text, text_end, counts
    encoded/shard-00000.arrays      sentences of one shard, with attribute and label ids local to the shard
    encoded/shard-00000.map.arrays  vocabulary ids of the local attribute ids

Every file is written atomically (`tagwise.base.writing`) and has a checksum and a schema (`tagwise.base.files`). The
manifest identifies the other files by their checksums. During encoding, the manifest contains only the number of shards
(state "encoding"). Encoding may replace and remove exactly these shards.
"""

from __future__ import annotations

import contextlib
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tagwise.base.domains import (
    Anything,
    Choice,
    Domain,
    DomainError,
    Integer,
    ListOf,
    Record,
    Text,
    TupleOf,
    Variant,
)
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.base.files.arrays import ArrayFile, write_arrays
from tagwise.base.files.regular import open_regular, read_regular
from tagwise.base.files.sealed import sealed, unsealed
from tagwise.base.writing import atomic

FORMAT = 2
MANIFEST, VOCABULARY = "manifest.json", "vocabulary.arrays"
#: Entry of a map for an attribute that is dropped.
NOWHERE = np.uint32(0xFFFF_FFFF)
#: Maximum size of the manifest in bytes. It contains about 100 bytes per shard, the labels and the features.
MOST_MANIFEST = 1 << 26
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

#: Remedies for a damaged folder with a valid manifest (REMEDY) and with a damaged manifest (AGAIN).
REMEDY = "Repeat the same `tagwise encode`: it writes missing and damaged files again and keeps the others."
AGAIN = "Encode into another folder, or remove this one first: without its manifest it cannot be repaired."

_COUNT, _CRC = Integer(0, 2**53), Integer(0, 2**32 - 1)
_LABELS = ListOf(Text(), low=1, high=2**16 - 2, distinct=True)
_SIZES: dict[str, Domain] = {
    "digest": Text(most=64),
    "sentences": Integer(1, 2**32),
    "tokens": Integer(1, 2**40),
}
_SUMS: dict[str, Domain] = {"node_attributes": _COUNT, "labels": _LABELS, "label_counts": ListOf(_COUNT)}

#: Schema of the manifest, for a complete folder and for one that is being encoded.
MANIFEST_DOMAIN = Variant(
    "state",
    {
        "complete": Record(
            {
                "format": _COUNT,
                "tagwise": Text(),
                "features": Anything(),
                "columns": ListOf(Text(), low=1, distinct=True),
                "label": Text(),
                "shard_tokens": _COUNT,
                "sentences": _COUNT,
                "tokens": _COUNT,
                **_SUMS,
                "attributes": Integer(0, 2**32 - 2),
                "vocabulary": _CRC,
                "shards": ListOf(Record({**_SIZES, "crc32": _CRC, "map": _CRC}), low=1),
                "sources": ListOf(Record({"path": Text(), "bytes": _COUNT, "crc32": _CRC})),
            }
        ),
        "encoding": Record({"format": _COUNT, "shards": _COUNT}),
    },
)
_FORMAT: dict[str, Domain] = {"format": Integer(FORMAT, FORMAT)}
SHARD_DOMAIN = Record(
    {
        "kind": Choice(("shard",)),
        **_FORMAT,
        **_SIZES,
        **_SUMS,
        "files": ListOf(TupleOf((Text(), _COUNT)), low=1),
    }
)
MAP_DOMAIN = Record({"kind": Choice(("map",)), **_FORMAT})
VOCABULARY_DOMAIN = Record({"kind": Choice(("vocabulary",)), **_FORMAT})


def shard_name(k: int) -> str:
    """Return the file name of a shard."""
    return f"shard-{k:05d}.arrays"


def map_name(k: int) -> str:
    """Return the file name of the map of a shard."""
    return f"shard-{k:05d}.map.arrays"


def damaged(path: Path, reason: object, remedy: str = REMEDY) -> CorpusError:
    """Return the error for a damaged file."""
    return CorpusError(f"{path}: a damaged file of encoded shards ({reason}). {remedy}")


@contextlib.contextmanager
def faults(path: Path, remedy: str = REMEDY) -> Iterator[None]:
    """Convert a DomainError to the error for a damaged file."""
    try:
        yield
    except DomainError as error:
        raise damaged(path, error, remedy) from error


# --- arrays ---------------------------------------------------------------------------------------------------


def write(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> int:
    """Write a file of arrays. Return its checksum."""
    with atomic(path, CorpusError) as out:
        return write_arrays(out, {"format": FORMAT, **header}, arrays)


def open_arrays(path: Path, domain: Domain, checksum: int | None = None) -> ArrayFile:
    """Open a file of arrays. `checksum` is the expected value from the manifest."""
    with faults(path):
        file = ArrayFile(path, domain, CorpusError, REMEDY, follow=False)
    if checksum is not None and file.checksum != checksum:
        raise damaged(path, f"it is not the file that {MANIFEST} names")
    return file


def open_shard(path: Path, checksum: int | None = None) -> ArrayFile:
    """Open a shard, and check the lengths of its arrays against its header."""
    file = open_arrays(path, SHARD_DOMAIN, checksum)
    with faults(path):
        _check_shard(file)
    return file


def _check_shard(file: ArrayFile) -> None:
    note = file.header
    sentences, tokens, attributes = note["sentences"], note["tokens"], file.length("keys", "u64")
    if len(note["labels"]) != len(note["label_counts"]) or sum(note["label_counts"]) != tokens:
        raise DomainError(
            f"label_counts: expected counts of {len(note['labels'])} labels that add up to {tokens}"
        )
    for name, dtype, length in (
        ("offsets", "u64", sentences + 1),
        ("lines", "u32", sentences),
        ("gold", "u16", tokens),
        ("node_ptr", "u64", tokens + 1),
        ("checks", "u64", attributes),
        ("counts", "u32", attributes),
        ("text_end", "u64", attributes),
    ):
        if (found := file.length(name, dtype)) != length:
            raise DomainError(f"array {name!r} has {found:,} numbers, expected {length:,}")
    file.length("text", "u8")
    for ids, values in (("ids", "values"), ("edge_ids", "edge_values")):
        if ids in file and file.length(values, "f32") not in (0, file.length(ids, "u32")):
            raise DomainError(f"array {values!r}: expected no numbers, or one for each of {ids!r}")
    if (found := file.length("ids", "u32")) != note["node_attributes"]:
        raise DomainError(f"array 'ids' has {found:,} numbers, expected {note['node_attributes']:,}")


def checked(name: str, numbers: NDArray[Any], below: int) -> NDArray[Any]:
    """Return indices unchanged. Raise a DomainError unless all are below a bound."""
    if len(numbers) and int(numbers.max()) >= below:
        raise DomainError(
            f"array {name!r} has the number {int(numbers.max()):,}, expected numbers below {below:,}"
        )
    return numbers


def counted(counts: NDArray[Any]) -> NDArray[Any]:
    """Return attribute counts unchanged. Raise a DomainError unless all are positive."""
    if not counts.all():
        raise DomainError("array 'counts' contains 0, expected numbers >= 1")
    return counts


# --- the manifest ---------------------------------------------------------------------------------------------


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest of a folder. Its `state` is "complete" or "encoding"."""
    with atomic(folder / MANIFEST, CorpusError) as out:
        out.write(sealed({"format": FORMAT, **content}, indent=1))


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder, complete or not.

    Raises:
        CorpusError: The manifest is damaged, has another version, or cannot be read (then also an OSError).
    """
    path = folder / MANIFEST
    with faults(path, AGAIN):
        found = unsealed(read_regular(path, MOST_MANIFEST, CorpusError, AGAIN, follow=False), MANIFEST_DOMAIN)
        if found["format"] != FORMAT:
            raise DomainError(f"format {found['format']}, but this tagwise reads format {FORMAT}")
        if found["state"] == "complete" and len(found["labels"]) != len(found["label_counts"]):
            raise DomainError("label_counts: expected one count for each label")
    return found


def checksum(path: Path) -> int:
    """Return the checksum of a source file."""
    found = 0
    with open_regular(path, None, CorpusError, "Give a regular file that you may read.") as file:
        while data := file.read(1 << 20):
            found = zlib.crc32(data, found)
    return found


def memory_of(memory: int | float | str | None) -> int | None:
    """Return an amount of memory in bytes, given a number or a string such as 500M or 2G. None stays None.

    >>> memory_of("1.5K"), memory_of(2e9), memory_of(None)
    (1536, 2000000000, None)
    """
    if memory is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?(?:e\d+)?)\s*([KMGT]?)i?B?\s*", str(memory), re.IGNORECASE)
    amount = float(found[1]) * _UNITS[found[2].upper()] if found else 0.0
    if isinstance(memory, bool) or not amount >= 1.0:
        raise ParameterError(f"memory={memory!r}: expected an amount such as 500M or 2G")
    return int(amount)


def half_of_memory() -> int | None:
    """Return half of the memory of the machine or the control group, whichever is smaller, or None if unknown."""
    try:
        most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None
    with contextlib.suppress(OSError, ValueError):  # no control group, or no limit
        most = min(most, int(Path("/sys/fs/cgroup/memory.max").read_text("ascii")))
    return most // 2
