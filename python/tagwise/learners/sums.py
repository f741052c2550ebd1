"""Sums over shards in one order, whoever adds: a binary tree over the numbers of the shards.

Shards 2i and 2i + 1 are added first, then their sums, and so on; what is left over at the end is added from the right.
A worker that has shards a, ..., b - 1 can add those whose numbers belong together by itself; who puts the workers' sums
together meets the same tree, and so the same bits, as somebody who has all shards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from tagwise.scores.protocols import Vector


@dataclass
class Part:
    """The loss of the shards `first`, ..., `first` + 2^`level` - 1, how far it is from safe, and its gradient."""

    first: int
    level: int
    value: float
    largest: float
    gradient: Vector
    slack: float = 0.0  # bound of the rounding of the gradient, where somebody needs it


def _writable(gradient: Vector) -> Vector:
    """The gradient, or a copy of one in the read-only memory of a cluster's object store."""
    return gradient if gradient.flags.writeable else gradient.copy()


def plain(a: Part, b: Part) -> Part:
    """The sum of two neighbours; the gradient of the left one is overwritten."""
    gradient = _writable(a.gradient)
    np.add(gradient, b.gradient, out=gradient)
    return Part(a.first, a.level + 1, a.value + b.value, max(a.largest, b.largest), gradient)


def logarithmic(a: Part, b: Part) -> Part:
    """Of v = log sum_i e^{l_i} of both: log(e^{v_a} + e^{v_b}), and gradients weighted by their shares of that sum."""
    most = max(a.value, b.value)
    value = most + math.log(math.exp(a.value - most) + math.exp(b.value - most))
    gradient = _writable(a.gradient)
    gradient *= math.exp(a.value - value)
    gradient += math.exp(b.value - value) * b.gradient
    return Part(a.first, a.level + 1, value, max(a.largest, b.largest), gradient)


def both(a: Part, b: Part) -> Part:
    """Add two neighbours whose `largest` and `slack` are sums as well."""
    gradient = _writable(a.gradient)
    np.add(gradient, b.gradient, out=gradient)
    value, largest, slack = a.value + b.value, a.largest + b.largest, a.slack + b.slack
    return Part(a.first, a.level + 1, value, largest, gradient, slack)


class Tree:
    """Adds parts that come in the order of their shards; it holds one part a level at most."""

    def __init__(self, add: Callable[[Part, Part], Part] = plain) -> None:
        self.add = add
        self.parts: list[Part] = []  # what cannot be added to its neighbour yet

    def push(self, part: Part) -> None:
        """Take the next part."""
        self.parts.append(part)
        while len(self.parts) > 1 and _belong(self.parts[-2], self.parts[-1]):
            right = self.parts.pop()
            self.parts[-1] = self.add(self.parts[-1], right)

    def total(self) -> Part:
        """The sum of all; what is left over is added from the right."""
        found = self.parts.pop()
        while self.parts:
            found = self.add(self.parts.pop(), found)
        return found


def _belong(a: Part, b: Part) -> bool:
    """Whether two parts are the halves of one."""
    return a.level == b.level and a.first % (2 << a.level) == 0 and a.first + (1 << a.level) == b.first


def added(parts: Iterable[Part], add: Callable[[Part, Part], Part]) -> list[Part]:
    """Parts that come in the order of their shards, added as far as they belong together."""
    tree = Tree(add)
    for part in parts:
        tree.push(part)
    return tree.parts


def total_of(parts: Iterable[Part], add: Callable[[Part, Part], Part]) -> Part:
    """The sum of parts that come in the order of their shards."""
    tree = Tree(add)
    for part in parts:
        tree.push(part)
    return tree.total()


__all__ = ["Part", "Tree", "added", "both", "logarithmic", "plain", "total_of"]
