"""Protocols of the score interface: objectives for training and scorers for decoding.

The core implements them on the CPU, and `learners.backends` lists all engines. Estimators, optimisers and decoders use
only the protocols.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core

Vector = NDArray[np.float64]
#: Sets of labels [sets, L] and the set of each token [tokens].
Support = tuple[NDArray[np.bool_], NDArray[np.uint32]]
#: k-best lists: number of paths of each sentence [N], their scores, their labels concatenated.
Lists = tuple[NDArray[np.uint32], NDArray[np.float64], NDArray[np.uint16]]


class Objective(Protocol):
    """Loss of a training set and its gradient as functions of the weights, without the penalty.

    A loss is a sum over sentences, so that the objectives of fixed shards add up to that of the corpus
    (`learners.sharded.objective.OverShards`). They are added in the order of the shards, and the result does not depend
    on the number of threads or machines.
    """

    def value(self, w: Vector, gradient: Vector, n_jobs: int = 0, /) -> tuple[float, float]:
        """Return the loss at `w`, and the largest l_i + log w_i of a sentence or -log p of a token.

        `gradient` is written in place, one entry per weight. `n_jobs` is a number of threads, 0 for all, and does not
        change the result.
        """


@runtime_checkable
class Exponential(Objective, Protocol):
    """Objective of the exponential loss, which overflows at first, so that its logarithm is minimised first."""

    def log_value(self, w: Vector, gradient: Vector, n_jobs: int = 0, /) -> tuple[float, float]:
        """Return log sum_i w_i e^{l_i} and the maximum, as `value` does for the loss."""


@runtime_checkable
class Precise(Objective, Protocol):
    """Objective with a slower evaluation in double precision, for steps that single precision cannot resolve."""

    def precise_value(self, w: Vector, gradient: Vector, n_jobs: int = 0, /) -> tuple[float, float]:
        """Return the results of `value`, from sums in double precision."""


class Scorer(Protocol):
    """Paths, k-best lists and marginals of sentences, from a layout of features and their weights."""

    @property
    def layout(self) -> _core.Layout: ...

    @property
    def weights(self) -> NDArray[np.float32]: ...

    @property
    def local(self) -> bool:
        """Whether every step is normalised separately, given the previous label."""

    def viterbi(
        self, dataset: _core.Dataset, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> NDArray[np.uint16]:
        """Return the best path of each sentence, one label id per token, [tokens]."""

    def kbest(
        self, dataset: _core.Dataset, k: int, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> Lists:
        """Return the k best paths of each sentence."""

    def marginals(
        self, dataset: _core.Dataset, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Return the marginals of each token, [tokens, L], and log Z of each sentence, [N]."""


def native(scorer: Scorer, forbidden: NDArray[np.uint32] | None) -> _core.Scorer:
    """Return the scorer of explicit weights on the CPU, for files and for searches that use labels further back.

    `forbidden` has the forbidden label pairs, for engines that do not store them.
    """
    if isinstance(scorer, _core.Scorer):
        return scorer
    return _core.Scorer(scorer.layout, scorer.weights, forbidden, local=scorer.local)
