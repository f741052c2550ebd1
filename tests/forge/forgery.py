"""Take a model file apart, change it, and put it together again with a valid checksum."""

from __future__ import annotations

import copy
import json
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

TYPES = {"u8": "u1", "u16": "<u2", "u32": "<u4", "u64": "<u8", "f32": "<f4", "f64": "<f8"}
NAMES = {np.dtype(code): name for name, code in TYPES.items()}
HEAD, RECORD, ALIGN = 32, 48, 64
MOST = 2**64 - 1
MODEL = b"tagwise\n"


def seal(text: bytes) -> bytes:
    """Return a JSON object with a valid checksum for `tagwise.base.files.sealed`, whatever its content."""
    body = text.rstrip().removesuffix(b"}")
    return body + b', "crc32": "%08x"}\n' % zlib.crc32(body)


@dataclass(eq=False)
class Array:
    """An array of a file. The other fields, if set, are written instead of the true values."""

    name: str
    data: Any
    dtype: str | None = None
    offset: int | None = None
    length: int | None = None


@dataclass
class Forgery:
    """A file in parts. `header` is the JSON value. `text`, if set, is written instead of it."""

    header: Any
    arrays: list[Array] = field(default_factory=list)
    text: str | bytes | None = None
    count: int | None = None
    size: int | None = None
    version: int = 1
    magic: bytes = b"tagwise\n"

    @staticmethod
    def of(path: Path) -> Forgery:
        """Take a file apart, by the tables of docs/reference/model-file.md."""
        data = path.read_bytes()
        size, count = struct.unpack_from("<QQ", data, 16)
        arrays = []
        for i in range(count):
            name, kind, offset, length = struct.unpack_from("<24s8sQQ", data, HEAD + size + RECORD * i)
            dtype = TYPES[kind.rstrip(b"\0").decode()]
            arrays.append(
                Array(name.rstrip(b"\0").decode(), np.frombuffer(data, dtype, length, offset).copy())
            )
        header = json.loads(data[HEAD : HEAD + size])
        if data[:8] != MODEL:  # the header has its own checksum, which `bytes` computes again
            header.pop("crc32")
        return Forgery(header, arrays, magic=data[:8])

    def copy(self) -> Forgery:
        """Return a copy."""
        return copy.deepcopy(self)

    # --- changes ----------------------------------------------------------------------------------------

    def set(self, *place: Any, to: Any) -> Forgery:
        """Set a field of the header, and create it if it is missing."""
        at = self.header
        for key in place[:-1]:
            at = at[key]
        at[place[-1]] = to
        return self

    def drop(self, *place: Any) -> Forgery:
        """Remove a field from the header."""
        at = self.header
        for key in place[:-1]:
            at = at[key]
        del at[place[-1]]
        return self

    def array(self, name: str) -> Array:
        """Return an array by name."""
        return next(array for array in self.arrays if array.name == name)

    def replace(self, name: str, data: Any) -> Forgery:
        """Replace the content of an array."""
        self.array(name).data = data
        return self

    def change(self, name: str, at: int, to: Any) -> Forgery:
        """Change one number in an array."""
        self.array(name).data[at] = to
        return self

    def add(self, name: str, data: Any) -> Forgery:
        """Add an array. An existing name makes a duplicate."""
        self.arrays.append(Array(name, data))
        return self

    def remove(self, name: str) -> Forgery:
        """Remove an array."""
        self.arrays.remove(self.array(name))
        return self

    # --- the file ---------------------------------------------------------------------------------------

    def bytes(self) -> bytes:
        """Return the file with a valid checksum."""
        header = self.header_bytes()
        count = len(self.arrays) if self.count is None else self.count
        table, body = b"", b""
        begin = HEAD + len(header) + RECORD * len(self.arrays)
        for array in self.arrays:
            body += bytes(-(begin + len(body)) % ALIGN)
            offset = begin + len(body) if array.offset is None else array.offset
            length = len(array.data) if array.length is None else array.length
            dtype = array.dtype or NAMES[array.data.dtype]
            table += struct.pack(
                "<24s8sQQ", array.name.encode()[:24], dtype.encode()[:8], offset & MOST, length & MOST
            )
            body += array.data.tobytes()
        size = len(header) if self.size is None else self.size
        rest = struct.pack("<QQ", size & MOST, count & MOST) + header + table + body
        head = self.magic + struct.pack("<I", self.version)
        return head + struct.pack("<I", zlib.crc32(rest, zlib.crc32(head))) + rest

    def header_bytes(self) -> bytes:
        """Return the header as stored, with its checksum if the format has one."""
        text = self.text if self.text is not None else json.dumps(self.header, sort_keys=True)
        header = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        return header + b" " * (-len(header) % 8) if self.magic == MODEL else seal(header)

    def write(self, path: Path) -> Path:
        """Write the file to a path."""
        path.write_bytes(self.bytes())
        return path
