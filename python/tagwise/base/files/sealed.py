"""JSON with a checksum: an object whose last member is the CRC-32 of the bytes before it.

    {"n": 1, "do": "undo", "crc32": "2b0a1fd4"}

The checksum finds damage. It is not a signature: anyone can compute it, so the content is checked by a schema as well.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from tagwise.base.domains import Domain, DomainError

_TAIL = re.compile(rb',(?: |\n +)"crc32": "([0-9a-f]{8})"\n?}\n')
#: Bytes at the end of a file in which its checksum is.
_LAST = 64


def distinct(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these members, whose names must differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise DomainError(f"{twice!a} occurs twice in one object, expected distinct names")
    return found


def parsed(text: str | bytes | bytearray) -> Any:
    """Parse untrusted JSON.

    Raises:
        DomainError: The text is not UTF-8 or not JSON, is nested too deeply, names a member of an object twice, or
            contains a lone surrogate, which cannot be encoded again.

    >>> parsed('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    tagwise.base.domains.DomainError: 'a' occurs twice in one object, expected distinct names
    """
    try:
        if not isinstance(text, str):
            text = text.decode("utf-8")
        found = json.loads(text, object_pairs_hook=distinct)
        if re.search(r"\\u[dD][89a-fA-F]", text):
            json.dumps(found, ensure_ascii=False).encode("utf-8")
        return found
    except DomainError:
        raise
    except UnicodeDecodeError as error:
        raise DomainError(f"not valid UTF-8 (byte {error.start})") from None
    except UnicodeEncodeError:
        raise DomainError("a text contains a lone surrogate (\\ud800 to \\udfff)") from None
    except RecursionError:
        raise DomainError("the JSON is nested too deeply") from None
    except ValueError as error:
        raise DomainError(f"not JSON: {error}") from None


def sealed(content: Mapping[str, Any], indent: int | None = None) -> bytes:
    """Return a non-empty object as one line of JSON, or indented, with its checksum."""
    text = json.dumps(content, ensure_ascii=False, indent=indent).encode("utf-8")
    body = text[:-1].rstrip()
    gap, end = (b" ", b"") if indent is None else (b"\n" + b" " * indent, b"\n")
    return body + b',%s"crc32": "%08x"%s}\n' % (gap, zlib.crc32(body), end)


def unsealed(data: bytes, domain: Domain, at: str = "the file") -> dict[str, Any]:
    """Return the object that `sealed` made `data` from, without its checksum.

    Raises:
        DomainError: The checksum is missing or wrong, or the object is outside `domain`.

    >>> from tagwise.base.domains import Record, Integer
    >>> unsealed(sealed({"n": 1}), Record({"n": Integer(0, 9)}))
    {'n': 1}
    """
    found = _TAIL.search(data, max(0, len(data) - _LAST))
    if found is None or found.end() != len(data):
        raise DomainError(f"{at} does not end with its checksum")
    body = data[: found.start()]
    if (crc := zlib.crc32(body)) != int(found[1], 16):
        raise DomainError(f"the checksum is {crc:08x}, expected {found[1].decode()}")
    content: dict[str, Any] = parsed(body + b"}")
    domain.check(content, at)
    return content
