"""The two protocols of the seam: what an engine offers to training, and what it offers to decoding.

The engine on the CPU (`_core`) is the first to keep them; `learners.backends` names those there are. Estimators,
optimisers and decoders see the protocols alone.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core

Vector = NDArray[np.float64]
#: Sets of labels [sets, L] and the set of each token [tokens].
Support = tuple[NDArray[np.bool_], NDArray[np.uint32]]
#: k-best lists: how many paths of each sentence [N], their scores, their labels one after the other.
Lists = tuple[NDArray[np.uint32], NDArray[np.float64], NDArray[np.uint16]]


class Objective(Protocol):
    """Weights -> loss of a training set and its gradient, without the penalty.

    A loss is a sum over sentences. So objectives of fixed shards of a corpus add up to that of the corpus
    (`learners.backends.Sum`); who adds does so in the order of the shards, and the result does not depend on how many
    threads or machines there are.
    """

    def value(self, w: Vector, gradient: Vector, n_jobs: int = 0, /) -> tuple[float, float]:
        """Loss at `w`, and the largest l_i + log w_i of a sentence or -log p of a token.

        gradient: written in place, one entry a weight; n_jobs: threads, 0 for all, without influence on the result.
        """


@runtime_checkable
class Exponential(Objective, Protocol):
    """An objective of the exponential loss, which begins beyond any float: its logarithm is minimised first."""

    def log_value(self, w: Vector, gradient: Vector, n_jobs: int = 0, /) -> tuple[float, float]:
        """log sum_i w_i e^{l_i} and the rest, as `value` does it for the loss."""


@runtime_checkable
class Precise(Objective, Protocol):
    """An objective that can be evaluated in double precision: slower, and what single precision cannot tell apart."""

    def precise_value(self, w: Vector, gradient: Vector, n_jobs: int = 0, /) -> tuple[float, float]:
        """Return what `value` returns, from sums in double precision."""


class Scorer(Protocol):
    """Sentences -> paths, lists of paths, marginals: a layout of features, and a weight for each."""

    @property
    def layout(self) -> _core.Layout: ...

    @property
    def weights(self) -> NDArray[np.float32]: ...

    @property
    def local(self) -> bool:
        """Whether every step is normalised by itself, given the label before it."""

    def viterbi(
        self, dataset: _core.Dataset, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> NDArray[np.uint16]:
        """Best path of each sentence, one label id a token: [tokens]."""

    def kbest(
        self, dataset: _core.Dataset, k: int, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> Lists:
        """The k best paths of each sentence."""

    def marginals(
        self, dataset: _core.Dataset, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Marginals of each token, [tokens, L], and log Z of each sentence, [N]."""


def native(scorer: Scorer, forbidden: NDArray[np.uint32] | None) -> _core.Scorer:
    """The scores of explicit weights on the CPU, for what no protocol asks: files, searches that look further back.

    forbidden: pairs of labels, for engines that do not tell which they were given.
    """
    if isinstance(scorer, _core.Scorer):
        return scorer
    return _core.Scorer(scorer.layout, scorer.weights, forbidden, local=scorer.local)
