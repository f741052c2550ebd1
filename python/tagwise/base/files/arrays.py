"""Files of named arrays: the container of model files, with a separate checksum of the header.

The header can be read and checked before any array is. Arrays are mapped, and copied when they are taken.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import Domain, DomainError
from tagwise.base.exceptions import TagwiseError
from tagwise.base.files.regular import Path, handle_of, open_regular
from tagwise.base.files.sealed import sealed, unsealed

_MAGIC, _HEAD = b"tagwise:", 32
#: Maximum size of a header in bytes.
MOST_HEADER = 1 << 25


def write_arrays(out: IO[bytes], header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> int:
    """Write one-dimensional arrays and a JSON header to a stream. Return the checksum of the file."""
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return _core.write_arrays(out, sealed(header).decode("utf-8"), contiguous)


def is_array_file(path: Path, kind: type[TagwiseError]) -> bool:
    """Return whether a file begins like a file of arrays, or is empty."""
    with open_regular(path, None, kind, "Give the path of a file.") as file:
        return _MAGIC.startswith(file.read(len(_MAGIC)))


def read_header(
    path: Path, domain: Domain, kind: type[TagwiseError], remedy: str, *, follow: bool = True
) -> dict[str, Any]:
    """Return the header of a file, checked by its own checksum and by `domain`. No array is read.

    Raises:
        kind: The file cannot be read (see `open_regular`).
        DomainError: The file is not a file of arrays, or its header is damaged or outside `domain`.
    """
    with open_regular(path, None, kind, remedy, follow=follow) as file:
        return _header(file, domain)


def _header(file: IO[bytes], domain: Domain) -> dict[str, Any]:
    """Return the header of an open file, as `read_header` does."""
    head = file.read(_HEAD)
    if len(head) < _HEAD or head[:8] != _MAGIC:
        raise DomainError("not a file of arrays, or one of another version of tagwise")
    (size,) = struct.unpack_from("<Q", head, 16)
    if size > MOST_HEADER:
        raise DomainError(f"the header has {size:,} bytes, expected at most {MOST_HEADER:,}")
    data = file.read(size)
    if len(data) < size:
        raise DomainError("the header is longer than the file")
    return unsealed(data, domain, "the header")


@dataclass(frozen=True)
class ArrayInfo:
    """Type and length of an array that has not been read."""

    name: str
    dtype: str
    length: int


class ArrayFile:
    """Open file of arrays with a valid checksum. Its header is read and checked first.

    Args:
        path: The file.
        domain: Domain of the header.
        kind: Class of the error if the system refuses the file.
        remedy: What to do then, as the last sentence of the message.
        follow: Whether the path may be a symbolic link.

    Raises:
        kind: The file cannot be read.
        DomainError: It is damaged, not a file of arrays, or its header is outside `domain`.
    """

    def __init__(
        self, path: Path, domain: Domain, kind: type[TagwiseError], remedy: str, *, follow: bool = True
    ) -> None:
        shown = os.fspath(path).encode("utf-8", "backslashreplace").decode("utf-8")
        with open_regular(path, None, kind, remedy, follow=follow) as file:
            self.header = _header(file, domain)
            try:
                self._core = _core.ArrayFile(handle_of(file), shown)
            except TagwiseError as error:
                raise DomainError(str(error).removeprefix(f"{shown}: ")) from error
        if unsealed(self._core.header.encode("utf-8"), domain, "the header") != self.header:
            raise DomainError("the file was replaced while it was read. Read it again")
        self.checksum = self._core.checksum
        self.placed = {name: ArrayInfo(name, dtype, length) for name, dtype, length in self._core.arrays}

    def __contains__(self, name: str) -> bool:
        return name in self.placed

    def length(self, name: str, dtype: str) -> int:
        """Return the length of an array of a type."""
        found = self.placed.get(name)
        if found is None:
            raise DomainError(f"array {name!r} is missing")
        if found.dtype != dtype:
            raise DomainError(f"array {name!r} has the type {found.dtype!a}, expected {dtype}")
        return found.length

    def take(self, name: str, dtype: str, length: int | None = None) -> NDArray[Any]:
        """Return a copy of an array of a type and, if it is given, of a length."""
        found = self.length(name, dtype)
        if length is not None and found != length:
            raise DomainError(f"array {name!r} has {found:,} numbers, expected {length:,}")
        return self._core.array(name)
