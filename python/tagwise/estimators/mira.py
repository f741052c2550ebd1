"""Online learners with a margin: MIRA, passive-aggressive, AROW."""

from __future__ import annotations

import tagwise._core as _core
from tagwise.estimators.limits import LIMITS
from tagwise.estimators.online import EPOCHS, LOOKBACK, OnlineTagger
from tagwise.estimators.task import COMMON, FEATURES, Task
from tagwise.params import Anything, Flag, Number, Param

SEQUENCE_COST = "how bad a wrong path is: the margin that is asked for"


class MIRA(OnlineTagger):
    """k-best MIRA: the smallest change of w by which the gold path beats each of the k best by its cost."""

    name = "mira"
    PARAMS = (
        FEATURES,
        Param("k", 4, Number(1, integer=True), "paths that the gold one must beat"),
        Param(
            "cost",
            "accuracy",
            Anything("accuracy, f1, precision_recall(alpha), ..., or a function", named=True),
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
        *LOOKBACK,
        *EPOCHS,
        *LIMITS,
        *COMMON,
    )

    def _rule(self, task: Task) -> _core.Rule:
        params = task.params
        return _core.Rule(self.name, k=params["k"], limit=params["C"], cost=self._cost(task))


class PassiveAggressive(OnlineTagger):
    """Passive-aggressive learning (Crammer et al. 2006): the best path alone, with slack linear (1) or squared (2)."""

    name = "pa"
    PARAMS = (
        FEATURES,
        Param("variant", 1, Number(0, 2, integer=True), "0: no slack, 1: PA-I, 2: PA-II"),
        Param(
            "cost",
            "accuracy",
            Anything("accuracy, f1, precision_recall(alpha), ..., or a function", named=True),
            SEQUENCE_COST,
        ),
        Param("C", 1.0, Number(0.0, open_low=True), "aggressiveness"),
        *EPOCHS,
        *LIMITS,
        *COMMON,
    )

    def _rule(self, task: Task) -> _core.Rule:
        params = task.params
        return _core.Rule(self.name, variant=params["variant"], limit=params["C"], cost=self._cost(task))


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
            Anything("accuracy, f1, precision_recall(alpha), ..., or a function", named=True),
            SEQUENCE_COST,
        ),
        *EPOCHS,
        *LIMITS,
        *COMMON,
    )

    def _rule(self, task: Task) -> _core.Rule:
        params = task.params
        return _core.Rule(
            self.name, gamma=params["gamma"], variance=params["variance"], cost=self._cost(task)
        )
