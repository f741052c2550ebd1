"""Lossless conversion between names in bytes and strings: UTF-8, with an escape for invalid bytes.

Files of other programs contain bytes, and the engine works on Unicode strings. A byte that is not valid UTF-8 becomes
the character U+10FF00 + byte. So does each byte of the characters U+10FF80 to U+10FFFF, which are for private use.
Therefore `encode_name(decode_name(data)) == data` for all bytes, and `decode_name` is injective.

>>> decode_name(b"caf\\xc3\\xa9"), encode_name(decode_name(b"\\xff\\x00")) == b"\\xff\\x00"
('café', True)
"""

from __future__ import annotations

import re

_FIRST, _LAST, _PLANE = 0x10FF80, 0x10FFFF, 0x10FF00
_PRIVATE = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_BROKEN = re.compile("[\udc80-\udcff]")


def _escaped(found: re.Match[str]) -> str:
    return "".join(chr(_PLANE + byte) for byte in found[0].encode("utf-8", "surrogateescape"))


def decode_name(data: bytes) -> str:
    """Decode a name."""
    try:
        text = data.decode()
        if b"\xf4\x8f\xbe" in data or b"\xf4\x8f\xbf" in data:
            text = _PRIVATE.sub(_escaped, text)
        return text
    except UnicodeDecodeError:
        text = data.decode("utf-8", "surrogateescape")
        return _BROKEN.sub(_escaped, _PRIVATE.sub(_escaped, text))


def encode_name(text: str) -> bytes:
    """Encode a string as the name it represents. Lone surrogates from Python's surrogateescape become their bytes."""
    if not _PRIVATE.search(text):
        return text.encode("utf-8", "surrogateescape")
    out = bytearray()
    for part in re.split(f"({_PRIVATE.pattern}+)", text):
        if part and ord(part[0]) >= _FIRST:
            out += bytes(ord(letter) - _PLANE for letter in part)
        else:
            out += part.encode("utf-8", "surrogateescape")
    return bytes(out)


def is_plain(text: str) -> bool:
    """Return whether a string contains no escapes, so that its UTF-8 encoding is the name."""
    return text.isascii() or _PRIVATE.search(text) is None
