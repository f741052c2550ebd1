"""Sums over shards in a fixed order, a binary tree over the numbers of the shards.

Shards 2i and 2i + 1 are added first, then their sums, and so on. The remaining parts are added from the right. A worker
with shards a, ..., b - 1 adds siblings in the tree. Adding the sums of the workers then gives the same
tree, and therefore the same bits, as one process with all shards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from tagwise.scores.protocols import Vector


@dataclass
class PartialSum:
    """Loss, largest term and gradient of the shards `first`, ..., `first` + 2^`level` - 1."""

    first: int
    level: int
    value: float
    largest: float
    gradient: Vector
    slack: float = 0.0  # bound of the rounding of the gradient, if needed


def _writable(gradient: Vector) -> Vector:
    """Return the gradient, or a copy if it is in the read-only object store of a cluster."""
    return gradient if gradient.flags.writeable else gradient.copy()


def plain(a: PartialSum, b: PartialSum) -> PartialSum:
    """Add two siblings. The gradient of the left one is overwritten."""
    gradient = _writable(a.gradient)
    np.add(gradient, b.gradient, out=gradient)
    return PartialSum(a.first, a.level + 1, a.value + b.value, max(a.largest, b.largest), gradient)


def logarithmic(a: PartialSum, b: PartialSum) -> PartialSum:
    """Combine values v = log sum_i e^{l_i} to log(e^{v_a} + e^{v_b}), with gradients weighted by their shares."""
    most = max(a.value, b.value)
    value = most + math.log(math.exp(a.value - most) + math.exp(b.value - most))
    gradient = _writable(a.gradient)
    gradient *= math.exp(a.value - value)
    gradient += math.exp(b.value - value) * b.gradient
    return PartialSum(a.first, a.level + 1, value, max(a.largest, b.largest), gradient)


def summed(a: PartialSum, b: PartialSum) -> PartialSum:
    """Add two siblings whose `largest` and `slack` are sums as well."""
    gradient = _writable(a.gradient)
    np.add(gradient, b.gradient, out=gradient)
    value, largest, slack = a.value + b.value, a.largest + b.largest, a.slack + b.slack
    return PartialSum(a.first, a.level + 1, value, largest, gradient, slack)


class Tree:
    """Adds parts that arrive in the order of their shards. It holds at most one part per level."""

    def __init__(self, add: Callable[[PartialSum, PartialSum], PartialSum] = plain) -> None:
        self.add = add
        self.parts: list[PartialSum] = []  # parts whose sibling is not there yet

    def push(self, part: PartialSum) -> None:
        """Add the next part."""
        self.parts.append(part)
        while len(self.parts) > 1 and _belong(self.parts[-2], self.parts[-1]):
            right = self.parts.pop()
            self.parts[-1] = self.add(self.parts[-1], right)

    def total(self) -> PartialSum:
        """Return the sum of all parts. The remaining ones are added from the right."""
        found = self.parts.pop()
        while self.parts:
            found = self.add(self.parts.pop(), found)
        return found


def _belong(a: PartialSum, b: PartialSum) -> bool:
    """Return whether two parts are siblings."""
    return a.level == b.level and a.first % (2 << a.level) == 0 and a.first + (1 << a.level) == b.first


def added(
    parts: Iterable[PartialSum], add: Callable[[PartialSum, PartialSum], PartialSum]
) -> list[PartialSum]:
    """Add the siblings among parts that arrive in the order of their shards, and return the resulting parts."""
    tree = Tree(add)
    for part in parts:
        tree.push(part)
    return tree.parts


def total_of(parts: Iterable[PartialSum], add: Callable[[PartialSum, PartialSum], PartialSum]) -> PartialSum:
    """Return the sum of parts that arrive in the order of their shards."""
    tree = Tree(add)
    for part in parts:
        tree.push(part)
    return tree.total()
