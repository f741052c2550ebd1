"""Exceptions for invalid items and failed training."""

from __future__ import annotations

from typing import Any

_FIRST = -(2**31)
OVERFLOW = _FIRST + 5
MESSAGES = {
    _FIRST: "Unknown error occurred",
    _FIRST + 1: "Insufficient memory",
    _FIRST + 2: "Unsupported operation",
    _FIRST + 3: "Incompatible data",
    _FIRST + 4: "Internal error",
    OVERFLOW: "Overflow",
    _FIRST + 6: "Not implemented",
}


class CRFSuiteError(Exception):
    """Failure of training. `code` is CRFsuite's error code."""

    _messages = MESSAGES

    def __init__(self, code: int, more: str = "") -> None:
        self.code = code
        text = MESSAGES.get(code, "Unexpected error")
        super().__init__(f"{text}: {more}" if more else text)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code,)


class ItemError(ValueError, TypeError):
    """Invalid item: a ValueError, and a TypeError as in the original."""
