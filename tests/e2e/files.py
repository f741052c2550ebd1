"""A reader of model files written from docs/reference/model-file.md, independent of the package."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

TYPES = {"u8": "u1", "u16": "<u2", "u32": "<u4", "u64": "<u8", "f32": "<f4", "f64": "<f8"}


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Return header and arrays, by the tables of that page."""
    data = path.read_bytes()
    magic, version, crc, size, count = struct.unpack_from("<8sIIQQ", data)
    assert (magic, version) == (b"tagwise\n", 1)
    assert crc == zlib.crc32(data[16:], zlib.crc32(data[:12]))
    arrays = {}
    for i in range(count):
        name, kind, offset, length = struct.unpack_from("<24s8sQQ", data, 32 + size + 48 * i)
        assert offset % 64 == 0
        arrays[name.rstrip(b"\0").decode()] = np.frombuffer(
            data, TYPES[kind.rstrip(b"\0").decode()], length, offset
        )
    return json.loads(data[32 : 32 + size]), arrays
