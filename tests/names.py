"""Names of parametrised tests that are equal in every process."""

from __future__ import annotations

import re


def named(value: object) -> str:
    """Return the repr of a value without the addresses of functions."""
    return re.sub(r"<function (.+?) at 0x[0-9a-f]+>", r"\1", repr(value))
