"""Input and output types of the chain engines, and the protocol that engines implement.

Engines are modules: `reference` (any device and dtype), `native` (CPU, single precision), `cuda`, and `many_labels`.
They compute the same values. `ops.engine` selects one by device, dtype and number of labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from torch import Tensor


class Places(NamedTuple):
    """Layout of concatenated sentences: index of the first token of each (int64), and the maximum length.

    `groups`: ranges of sentences (begin, end, maximum length) to pad together, for engines that need padded batches.
    """

    first: Tensor
    longest: int
    groups: tuple[tuple[int, int, int], ...] = ()


class Chain(NamedTuple):
    """Scores of B sentences of up to T tokens and L labels: (B, T, L), or concatenated (tokens, L) with `places`."""

    emissions: Tensor
    transitions: Tensor  # (L, L)
    start: Tensor  # (L,)
    end: Tensor  # (L,)
    lengths: Tensor | None = None  # (B,) int32, None if all sentences have T tokens
    tags: Tensor | None = None  # int64, one per token: the value is their log-likelihood, not log Z
    places: Places | None = None

    def double(self) -> Chain:
        """Return a copy with scores in double precision."""
        emissions, transitions, start, end = (x.double() for x in self[:4])
        return self._replace(emissions=emissions, transitions=transitions, start=start, end=end)


class ForwardBackward(NamedTuple):
    """One value per sentence (B,), and the forward and backward recursions in the engine's own layout."""

    value: Tensor
    rows: Tensor


class Gradient(NamedTuple):
    """Derivatives with respect to emissions, transitions, start and end."""

    emissions: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor


class Engine(Protocol):
    """Implementation of the chain operations."""

    def forward_backward(self, chain: Chain, /) -> ForwardBackward:
        """Return log Z of each sentence, or the log-likelihood of the tags."""

    def expectations(self, chain: Chain, rows: Tensor, scale: Tensor, /) -> Gradient:
        """Return the gradient of sum_b scale_b value_b. `rows` are the recursions returned by `forward_backward`."""

    def hessian_product(
        self, chain: Chain, rows: Tensor, scale: Tensor, along: Gradient, /
    ) -> tuple[Gradient, Tensor]:
        """Return the Hessian-vector product of log Z (without tags), and each log Z's directional derivative."""

    def viterbi(self, chain: Chain, /) -> tuple[Tensor, Tensor]:
        """Return the Viterbi path of each sentence, padded with -1, and its score. The lower label wins ties."""


class FusedEngine(Protocol):
    """Engine that also computes the sum of the values together with its gradient, in one pass."""

    def gradient(self, chain: Chain, /) -> tuple[Tensor, Gradient]:
        """Return the sum of the values and its gradient."""

    def scale(self, found: Gradient, by: Tensor, /) -> None:
        """Multiply a gradient returned by `gradient` by a 0-dimensional tensor, in place."""


#: Edge scores per token: (B, T, L, L), or a pair of factors (B, T, L, R) whose product they are. Entries of token 0 are
#: ignored. None if the chain has shared transitions only.
Edges = Any


class Chains(NamedTuple):
    """Scores of a padded batch of B sentences of up to T tokens and L labels."""

    emissions: Tensor  # (B, T, L)
    transitions: Tensor  # (L, L)
    start: Tensor  # (L,)
    end: Tensor  # (L,)
    lengths: Tensor | None  # (B,) int32, None if all sentences have T tokens
    edges: Edges = None
