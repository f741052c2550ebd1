"""Names of parametrised tests: the same in every process."""

from __future__ import annotations

import re


def named(value: object) -> str:
    """What a value shows of itself, without the addresses of functions."""
    return re.sub(r"<function (.+?) at 0x[0-9a-f]+>", r"\1", repr(value))
