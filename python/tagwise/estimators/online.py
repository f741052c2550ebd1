"""Perceptron, MIRA, passive-aggressive, AROW: estimators that learn sentence by sentence."""

from __future__ import annotations

from typing import Any

import numpy as np

from tagwise import _core
from tagwise.errors import ParameterError
from tagwise.estimators.base import COMMON, FEATURES, Tagger, Task
from tagwise.estimators.kernel import KERNEL, Kernelised
from tagwise.learners import online
from tagwise.learners.loop import Result
from tagwise.params import Anything, Choice, Flag, Number, Param

SEQUENCE_COST = "how bad a wrong path is: the margin that is asked for"

EPOCHS = (
    Param("epochs", 20, Number(1, integer=True), "passes over the training set"),
    Param("average", True, Flag(), "average the weights over all steps; False keeps the last ones"),
    Param("shuffle", True, Flag(), "another order of sentences in every epoch, from `seed`"),
    Param(
        "patience",
        0,
        Number(0, integer=True),
        "with a dev set: epochs without a better dev score; 0 never stops",
    ),
    Param(
        "shards",
        1,
        Number(1, integer=True),
        "train on so many parts at once and mix after each epoch; 1 is exact",
    ),
)


class OnlineTagger(Tagger):
    """A learner that updates after every sentence; `history_` counts wrong tokens and updates of each epoch."""

    def _online(self, task: Task) -> dict[str, Any]:
        """What this learner asks of the core."""
        raise TypeError(f"{type(self).__name__} is no learner; use one of tagwise.LEARNERS")

    def _train(self, task: Task) -> Result:
        params = task.params
        learner = _core.Online(
            task.data,
            task.layout,
            average=params["average"],
            shuffle=params["shuffle"],
            seed=params["seed"],
            n_jobs=params["shards"],
            sample_weight=None if task.sample_weight is None else task.sample_weight.astype(np.float32),
            **self._online(task),
        )
        if task.start.any():
            learner.restore({"weights": task.start})
        return online.train(
            learner,
            params["epochs"],
            params["patience"],
            averaged=params["average"],
            dev_score=task.dev_score,
            callbacks=task.callbacks,
        )

    @staticmethod
    def _cost(task: Task) -> dict[str, Any]:
        """The cost of the parameters as the core takes it."""
        cost, numbers = online.parse_cost(task.params["cost"])
        labels = task.labels
        if callable(cost):
            cost = online.named(cost, labels)
        return {"cost": cost, "cost_numbers": numbers, "entities": online.entity_table(labels)}


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
        *KERNEL,
        Param(
            "budget",
            None,
            Number(1, integer=True, optional=True),
            "with a kernel: most support tokens; None for any number",
        ),
        *EPOCHS,
        *COMMON,
    )
    explicit = (None, "none")

    def _online(self, task: Task) -> dict[str, Any]:
        return {"kind": "perceptron", "batch": task.params["mode"] == "batch"}

    def _train(self, task: Task) -> Result:
        kernel, params = self._kernel(task.params, task.data), task.params
        if kernel is None:
            return super()._train(task)
        if params["mode"] == "batch" or params["shards"] > 1:
            raise ParameterError("a kernel perceptron learns sentence by sentence: leave mode and shards out")
        self._refuse_start(task)
        learner = _core.KernelPerceptron(
            task.data,
            task.layout,
            kernel.spec(task.layout.n_attributes),
            average=params["average"],
            budget=params["budget"],
            shuffle=params["shuffle"],
            seed=params["seed"],
            sample_weight=None if task.sample_weight is None else task.sample_weight.astype(np.float32),
            form=params["form"],
            cache_bytes=params["cache_mb"] << 20,
        )
        return online.train(
            learner,
            params["epochs"],
            params["patience"],
            averaged=params["average"],
            dev_score=task.dev_score,
            callbacks=task.callbacks,
        )


class MIRA(OnlineTagger):
    """k-best MIRA: the smallest change of w by which the gold path beats each of the k best by its cost."""

    name = "mira"
    PARAMS = (
        FEATURES,
        Param("k", 4, Number(1, integer=True), "paths that the gold one must beat"),
        Param(
            "cost",
            "accuracy",
            Anything("accuracy, f1, precision_recall(alpha), ..., or a function"),
            SEQUENCE_COST,
        ),
        Param(
            "C",
            None,
            Number(0.0, optional=True, open_low=True),
            "most a sentence may change w by; None for any",
        ),
        Param(
            "augment",
            False,
            Flag(),
            "add the cost to the scores while searching, where it is a sum over tokens",
        ),
        *EPOCHS,
        *COMMON,
    )

    def _online(self, task: Task) -> dict[str, Any]:
        cost = self._cost(task)
        return {
            "kind": "mira",
            "k": task.params["k"],
            "limit": task.params["C"],
            "augment": task.params["augment"],
            **cost,
        }


class PassiveAggressive(OnlineTagger):
    """Passive-aggressive learning (Crammer et al. 2006): the best path alone, with slack linear (1) or squared (2)."""

    name = "pa"
    PARAMS = (
        FEATURES,
        Param("variant", 1, Number(0, 2, integer=True), "0: no slack, 1: PA-I, 2: PA-II"),
        Param(
            "cost",
            "accuracy",
            Anything("accuracy, f1, precision_recall(alpha), ..., or a function"),
            SEQUENCE_COST,
        ),
        Param("C", 1.0, Number(0.0, open_low=True), "aggressiveness"),
        *EPOCHS,
        *COMMON,
    )

    def _online(self, task: Task) -> dict[str, Any]:
        return {
            "kind": "pa",
            "variant": task.params["variant"],
            "limit": task.params["C"],
            **self._cost(task),
        }


class AROW(OnlineTagger):
    """Adaptive regularisation of weights (Crammer, Kulesza and Dredze 2009): a variance for every feature."""

    name = "arow"
    PARAMS = (
        FEATURES,
        Param(
            "gamma", 1.0, Number(0.0, open_low=True), "how much of an error is believed; larger moves less"
        ),
        Param("variance", 1.0, Number(0.0, open_low=True), "variance of every feature at the start"),
        Param(
            "cost",
            "accuracy",
            Anything("accuracy, f1, precision_recall(alpha), ..., or a function"),
            SEQUENCE_COST,
        ),
        *EPOCHS,
        *COMMON,
    )

    def _online(self, task: Task) -> dict[str, Any]:
        return {
            "kind": "arow",
            "gamma": task.params["gamma"],
            "variance": task.params["variance"],
            **self._cost(task),
        }
