"""The structured perceptron."""

from __future__ import annotations

import numpy as np

import tagwise._core as _core
from tagwise.errors import ParameterError
from tagwise.estimators.kernel import KERNEL, Kernelised
from tagwise.estimators.limits import LIMITS, Limits
from tagwise.estimators.online import EPOCHS, LOOKBACK, OnlineTagger, epochs_of
from tagwise.estimators.task import COMMON, FEATURES, Task
from tagwise.learners import online
from tagwise.learners.loop import Result
from tagwise.params import Choice, Number, Param
from tagwise.scores.lookback import Lookback


class Perceptron(Kernelised, OnlineTagger):
    """Structured perceptron (Collins 2002): w += S(gold) - S(best path) where they differ; averaged by default.

    With a kernel, in its dual form: node scores come from training tokens, transitions keep their weights.
    """

    name = "perceptron"
    PARAMS = (
        FEATURES,
        Param(
            "mode", "online", Choice(("online", "batch")), "batch applies the updates of an epoch at its end"
        ),
        *LOOKBACK,
        *KERNEL,
        Param(
            "budget",
            None,
            Number(1, integer=True, optional=True),
            "with a kernel: most support tokens; None for any number",
        ),
        *EPOCHS,
        *LIMITS,
        *COMMON,
    )
    explicit = (None, "none")

    def _rule(self, task: Task) -> _core.Rule:
        return _core.Rule(self.name)

    def _train(self, task: Task) -> Result:
        kernel, params = self._kernel(task.params, task.data), task.params
        if kernel is None:
            return super()._train(task)
        if params["mode"] == "batch" or params["shards"] > 1:
            raise ParameterError("a kernel perceptron learns sentence by sentence: leave mode and shards out")
        if Lookback.of(params) is not None:
            raise ParameterError(
                "a kernel perceptron takes no history; leave it out, or leave the kernel out"
            )
        self._refuse(task)
        self.__dict__.pop("state_", None)
        learner = _core.KernelPerceptron(
            task.data,
            task.layout,
            kernel.spec(task.layout.n_attributes, params["form"], params["cache_mb"] << 20),
            epochs=epochs_of(params),
            budget=params["budget"],
            limits=(task.limits or Limits()).native,
            sample_weight=None if task.sample_weight is None else task.sample_weight.astype(np.float32),
        )
        return online.train(
            learner,
            params["epochs"],
            params["patience"],
            averaged=params["average"],
            dev_score=task.dev_score,
            callbacks=task.callbacks,
        )
