"""Training problem of a corpus in shards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tagwise.base.cached import cached
from tagwise.dataset.shards.reader import Shards
from tagwise.learners.problem import ObjectiveMaker, Problem, scale_of
from tagwise.learners.sharded.config import ShardBackend, ShardRules
from tagwise.learners.sharded.dual import DualConfig, DualShards
from tagwise.learners.sharded.objective import ObjectiveConfig, OverShards, Steps
from tagwise.scores.protocols import Objective, Vector


@dataclass(frozen=True, kw_only=True)
class ShardedProblem(Problem):
    """Objective to minimise over shards. `data` is empty."""

    shards: Shards
    backend: ShardBackend
    min_count: int = 1
    rules: ShardRules | None = None
    steps: Steps | None = None
    n_parts: int = 1  # number of parts that ascend in parallel

    def objective(self, backend: ObjectiveMaker | None = None) -> Objective:
        """Return loss and gradient of all shards."""
        return OverShards(self.backend(self.config))

    @property
    def config(self) -> ObjectiveConfig:
        """Config of the objectives of shards."""
        return ObjectiveConfig(
            self.layout,
            min_count=self.min_count,
            rules=self.rules,
            loss=self.loss,
            cost=self.cost,
            steps=self.steps,
        )

    def total_loss(self, w: Vector, n_jobs: int) -> float:
        """Return the loss at `w` in double precision, one shard at a time."""
        return sum(self.config.total_loss(self.shards, k, w, n_jobs) for k in range(len(self.shards)))

    @property
    @cached
    def mass(self) -> tuple[float, float]:
        """Numbers of sentences and tokens."""
        return float(self.shards.n_sentences), float(self.shards.n_tokens)

    def scale(self) -> NDArray[np.float32]:
        """Return the scale of L-BFGS from the counts of attributes in the shards."""
        kept = self.shards.counts[self.shards.kept(self.min_count)]
        if self.steps is not None:
            kept = np.concatenate([kept, self.steps.counts(self.shards)])
        return scale_of(kept, self.shards.n_tokens, self.layout)

    def why_no_dual(self, l2: float) -> str | None:
        """Return the feature of the problem that dual ascent does not support, or None."""
        unsupported = {
            "the steps of a MEMM": self.steps is not None,
            "edge attributes": self.shards.recipe.has_edges,
            "the constraint `once`": self.rules is not None and self.rules.once,
        }
        return next((feature for feature, present in unsupported.items() if present), super().why_no_dual(l2))

    @contextmanager
    def ascending(self, l2: float) -> Iterator[DualShards]:
        """Provide rounds of dual ascent by the backend."""
        config = DualConfig(self.layout, self.n_parts, self.min_count, self.rules, l2)
        parts = self.backend(config)
        try:
            yield DualShards(config, parts)
        finally:
            parts.close()

    @property
    def switches_early(self) -> bool:
        """Whether L-BFGS takes over early: with parallel parts the last iterations of the ascent are slow."""
        return self.n_parts > 1

    @property
    def warms_up(self) -> bool:
        """False, since stochastic epochs need one training set in memory."""
        return False
