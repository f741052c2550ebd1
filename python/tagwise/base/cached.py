"""Properties that are computed once per object."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def cached(compute: Callable[[Any], T]) -> Callable[[Any], T]:
    """Store the value of a property in its object: `@property` above `@cached`.

    `functools.cached_property` has one lock for all objects of a class before Python 3.12. A process that is forked
    while another thread holds it can never get it. Here two threads may compute a value at the same time, and both get
    the one that is stored first.

    Args:
        compute: Function of the object.

    Returns:
        A function that computes the value in its first call for an object.
    """
    name = compute.__name__

    @functools.wraps(compute)
    def stored(self: Any) -> T:
        values = vars(self)
        value: T = values[name] if name in values else values.setdefault(name, compute(self))
        return value

    return stored
