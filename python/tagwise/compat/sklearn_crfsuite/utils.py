"""Lists of lists."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any


def flatten(y: Iterable[Iterable[Any]]) -> list[Any]:
    """One list of the elements of all lists.

    >>> flatten([[1, 2], [3, 4]])
    [1, 2, 3, 4]
    """
    return list(chain.from_iterable(y))
