"""The files of a folder of encoded shards, and what each may hold.

    encoded/manifest.json           what was encoded and how; written last
    encoded/vocabulary.arrays       attributes of all shards: keys, text, text_end, counts
    encoded/shard-00000.arrays      sentences of one shard: attributes and labels as the shard numbers them
    encoded/shard-00000.map.arrays  its attributes as the vocabulary numbers them

Every file is written whole or not at all (`tagwise.base.writing`), and has a checksum and a schema
(`tagwise.base.files`). The manifest names the other files by their checksums. While a folder is being encoded, the
manifest says only how many shards belong to it (`ENCODING`): those are the files that encoding may replace and remove.
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
    Listed,
    Record,
    Text,
    Tupled,
    Variant,
)
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.base.files.arrays import ArrayFile, write_arrays
from tagwise.base.files.regular import open_regular, read_regular
from tagwise.base.files.sealed import sealed, unsealed
from tagwise.base.writing import atomic

FORMAT = 2
MANIFEST, VOCABULARY = "manifest.json", "vocabulary.arrays"
#: Stands in a map for an attribute that is left out.
NOWHERE = np.uint32(0xFFFF_FFFF)
#: Maximum size of the manifest in bytes: some 100 bytes per shard, the labels and the features.
MOST_MANIFEST = 1 << 26
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

#: What repairs a folder of shards: one whose manifest is whole, and one whose manifest is not.
REMEDY = "Repeat the same `tagwise encode`: it writes missing and damaged files again and keeps the others."
AGAIN = "Encode into another folder, or remove this one first: without its manifest it cannot be repaired."

_COUNT, _CRC = Integer(0, 2**53), Integer(0, 2**32 - 1)
_LABELS = Listed(Text(), low=1, high=2**16 - 2, distinct=True)
_SIZES: dict[str, Domain] = {
    "digest": Text(most=64),
    "sentences": Integer(1, 2**32),
    "tokens": Integer(1, 2**40),
}
_SUMS: dict[str, Domain] = {"node_attributes": _COUNT, "labels": _LABELS, "label_counts": Listed(_COUNT)}

#: The manifest of a folder that is complete, or is being encoded.
MANIFEST_DOMAIN = Variant(
    "state",
    {
        "complete": Record(
            {
                "format": _COUNT,
                "tagwise": Text(),
                "features": Anything(),
                "columns": Listed(Text(), low=1, distinct=True),
                "label": Text(),
                "shard_tokens": _COUNT,
                "sentences": _COUNT,
                "tokens": _COUNT,
                **_SUMS,
                "attributes": Integer(0, 2**32 - 2),
                "vocabulary": _CRC,
                "shards": Listed(Record({**_SIZES, "crc32": _CRC, "map": _CRC}), low=1),
                "sources": Listed(Record({"path": Text(), "bytes": _COUNT, "crc32": _CRC})),
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
        "files": Listed(Tupled((Text(), _COUNT)), low=1),
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


def damaged(path: Path, why: object, remedy: str = REMEDY) -> CorpusError:
    """Return the error of a file that is not as it was written."""
    return CorpusError(f"{path}: a damaged file of encoded shards ({why}). {remedy}")


@contextlib.contextmanager
def faults(path: Path, remedy: str = REMEDY) -> Iterator[None]:
    """Turn what is outside its domain into the error of a damaged file."""
    try:
        yield
    except DomainError as error:
        raise damaged(path, error, remedy) from error


# --- arrays ---------------------------------------------------------------------------------------------------


def write(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> int:
    """Write a file of arrays; return its checksum."""
    with atomic(path, CorpusError) as out:
        return write_arrays(out, {"format": FORMAT, **header}, arrays)


def opened(path: Path, domain: Domain, checksum: int | None = None) -> ArrayFile:
    """Anything a file of arrays; `checksum` is the one that the manifest has of it."""
    with faults(path):
        file = ArrayFile(path, domain, CorpusError, REMEDY, follow=False)
    if checksum is not None and file.checksum != checksum:
        raise damaged(path, f"it is not the file that {MANIFEST} names")
    return file


def open_shard(path: Path, checksum: int | None = None) -> ArrayFile:
    """Anything a shard, and check that its arrays are as long as its header says."""
    file = opened(path, SHARD_DOMAIN, checksum)
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
            raise DomainError(f"array {name!r} has {found:,} numbers; expected {length:,}")
    file.length("text", "u8")
    for ids, values in (("ids", "values"), ("edge_ids", "edge_values")):
        if ids in file and file.length(values, "f32") not in (0, file.length(ids, "u32")):
            raise DomainError(f"array {values!r}: expected no numbers, or one for each of {ids!r}")
    if (found := file.length("ids", "u32")) != note["node_attributes"]:
        raise DomainError(f"array 'ids' has {found:,} numbers; expected {note['node_attributes']:,}")


def checked(name: str, numbers: NDArray[Any], below: int) -> NDArray[Any]:
    """Return indices, all of which must be below a number."""
    if len(numbers) and int(numbers.max()) >= below:
        raise DomainError(
            f"array {name!r} has the number {int(numbers.max()):,}; expected numbers below {below:,}"
        )
    return numbers


def counted(counts: NDArray[Any]) -> NDArray[Any]:
    """Return how often attributes occur: once at least."""
    if not counts.all():
        raise DomainError("array 'counts' has a 0; expected numbers from 1")
    return counts


# --- the manifest ---------------------------------------------------------------------------------------------


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest of a folder; `state` is complete or encoding."""
    with atomic(folder / MANIFEST, CorpusError) as out:
        out.write(sealed({"format": FORMAT, **content}, indent=1))


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder, complete or not.

    Raises:
        CorpusError: The manifest is damaged, of another version, or cannot be read; then it is an OSError too.
    """
    path = folder / MANIFEST
    with faults(path, AGAIN):
        found = unsealed(read_regular(path, MOST_MANIFEST, CorpusError, AGAIN, follow=False), MANIFEST_DOMAIN)
        if found["format"] != FORMAT:
            raise DomainError(f"format {found['format']}; this tagwise reads format {FORMAT}")
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


__all__ = ["FORMAT", "memory_of", "open_shard", "opened", "read_manifest", "write", "write_manifest"]
