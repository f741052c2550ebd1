"""Base class of estimators with a kernel: parameters, layouts of transitions, models of support tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import Domains
from tagwise.base.exceptions import ParameterError
from tagwise.base.options import KERNEL, Kernel
from tagwise.dataset.layout import without_nodes
from tagwise.estimators.base import Tagger
from tagwise.estimators.limits import Limits
from tagwise.estimators.task import Task
from tagwise.features.inputs import Inputs
from tagwise.model.model import Model
from tagwise.optimizers.base import Vector
from tagwise.scores.kernels import KernelFunction, KernelScorer, kernel_of

NO_START = "this learner cannot start from the weights of another model. Leave warm_start out"


def _squares(ptr: NDArray[Any], ids: NDArray[Any], values: NDArray[Any]) -> float:
    """Return the sum of ||x||^2 over all tokens. Listing an attribute twice is the same as giving it the value 2."""
    if len(ids) == 0:
        return 0.0
    x = values.astype(np.float64) if len(values) else np.ones(len(ids))
    ends = ptr.astype(np.int64)
    token = np.repeat(np.arange(len(ptr) - 1), ends[1:] - ends[:-1])
    order = np.lexsort((ids, token))
    token, ids, x = token[order], ids[order], x[order]
    first = np.flatnonzero(np.r_[True, (token[1:] != token[:-1]) | (ids[1:] != ids[:-1])])
    return float(np.sum(np.add.reduceat(x, first) ** 2))


class Kernelised(Tagger):
    """Base class of learners with a kernel. None means explicit weights."""

    _PARAMS: ClassVar[Domains] = {
        "kernel": KERNEL,
    }

    def _kernel(self, params: dict[str, Any], data: _core.Dataset | None) -> KernelFunction | None:
        """Return the kernel of the parameters, or None for explicit weights."""
        given: Kernel | None = params["kernel"]
        if given is None:
            return None
        gamma = 1.0
        if given.name == "rbf" and data is not None:
            gamma = max(data.n_tokens, 1) / max(_squares(*data.node()), 1e-12)
        return kernel_of(given, gamma)

    @staticmethod
    def _native_kernel(kernel: KernelFunction, task: Task) -> _core.Kernel:
        """Return the kernel for the core, with the form and the memory of the parameter."""
        given = task.params["kernel"]
        return kernel.spec(task.layout.n_attributes, getattr(given, "form", "auto"), given.cache_mb << 20)

    def _task(
        self, X: Inputs, gold: Sequence[Sequence[str]], params: dict[str, Any], before: Model | None = None
    ) -> Task:
        if before is not None and not (self._starts_warm and self._kernel(params, None) is None):
            raise ParameterError(NO_START)
        return super()._task(X, gold, params, before)

    def _layout(
        self, data: _core.Dataset, n_attributes: int, n_labels: int, params: dict[str, Any]
    ) -> _core.Layout:
        layout = super()._layout(data, n_attributes, n_labels, params)
        if self._kernel(params, None) is None:
            return layout
        if data.n_edge_attributes:
            raise ParameterError("kernels do not support edge attributes. Remove them from the features")
        return without_nodes(layout)

    def _model(self, task: Task, w: Vector) -> Model:
        kernel = self._kernel(task.params, task.data)
        if kernel is None:
            return super()._model(task, w)
        limits = task.limits or Limits()
        scorer = KernelScorer.of_training(task.layout, w, kernel, task.data, limits.forbidden)
        return Model(
            tuple(task.labels),
            task.recipe,
            task.vocabulary,
            scorer,
            constraints=limits.constraints,
            dictionary=limits.dictionary,
        )

    @property
    def n_support_(self) -> int:
        """Number of support tokens; 0 for explicit weights."""
        scorer = self._fitted().scorer
        return scorer.n_support if isinstance(scorer, KernelScorer) else 0

    @staticmethod
    def _check_supported(task: Task) -> None:
        """Raise a ParameterError for settings that large margins and kernels do not support."""
        if task.start.any():
            raise ParameterError(NO_START)
        if task.limits is not None and task.limits.once is not None:
            raise ParameterError(
                "this learner cannot be trained with the constraint `once`. With explicit weights, apply it when "
                "decoding: predict(X, constraints=...). Otherwise use another learner"
            )
