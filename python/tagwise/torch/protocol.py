"""What an engine of chains is given, what it gives, and which calls it answers.

Engines are modules: `plain` (any device and type), `native` (the CPU in single precision), `gpu` (CUDA), `wide` (many
labels). They compute the same; `ops` asks the one that serves a tensor.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from torch import Tensor


class Places(NamedTuple):
    """Sentences one after the other: the first token of each (int64), and how long the longest is.

    `groups`: runs of sentences (from, to, the longest) that are padded to a batch where an engine needs one.
    """

    first: Tensor
    longest: int
    groups: tuple[tuple[int, int, int], ...] = ()


class Chain(NamedTuple):
    """Scores of B sentences of up to T tokens, L labels: a batch (B, T, L), or, with `places`, tokens (tokens, L)."""

    emissions: Tensor
    transitions: Tensor  # (L, L)
    start: Tensor  # (L,)
    end: Tensor  # (L,)
    lengths: Tensor | None = None  # (B,) int32; None where all have T tokens
    tags: Tensor | None = None  # int64, a label of each token: with them log Z becomes their log-likelihood
    places: Places | None = None

    def double(self) -> Chain:
        """The scores in double precision."""
        emissions, transitions, start, end = (x.double() for x in self[:4])
        return self._replace(emissions=emissions, transitions=transitions, start=start, end=end)


class Sums(NamedTuple):
    """A value for each sentence (B,), and what the expectations are made of: both recursions, in the engine's form."""

    value: Tensor
    rows: Tensor


class Gradient(NamedTuple):
    """By emissions, transitions, start and end."""

    emissions: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor


class Engine(Protocol):
    """Who computes."""

    def sums(self, chain: Chain, /) -> Sums:
        """log Z of each sentence, or the log-likelihood of the tags."""

    def expect(self, chain: Chain, rows: Tensor, scale: Tensor, /) -> Gradient:
        """The gradient of sum_b scale_b value_b, `rows` being what `sums` gave."""

    def bend(self, chain: Chain, rows: Tensor, scale: Tensor, along: Gradient, /) -> tuple[Gradient, Tensor]:
        """How `expect` of log Z, without tags, changes along a direction; the derivative of each log Z along it."""

    def best(self, chain: Chain, /) -> tuple[Tensor, Tensor]:
        """The best path of each sentence, -1 beyond its end in a batch, and its score; of equals the lower label."""


class AtOnce(Protocol):
    """Who also computes a sum with its gradient, in one go."""

    def gradient(self, chain: Chain, /) -> tuple[Tensor, Gradient]:
        """The sum of the values, and its gradient."""

    def scale(self, found: Gradient, by: Tensor, /) -> None:
        """Such a gradient times a number, a tensor of no dimension, in place."""


#: Edge scores of each token: (B, T, L, L), or two factors (B, T, L, R) whose product they are. Those of token 0 are not
#: used. None where there are none.
Edges = Any


class Chains(NamedTuple):
    """Scores of a batch: B sentences of up to T tokens, L labels."""

    emissions: Tensor  # (B, T, L)
    transitions: Tensor  # (L, L)
    start: Tensor  # (L,)
    end: Tensor  # (L,)
    lengths: Tensor | None  # (B,) int32; None where all have T tokens
    edges: Edges = None
