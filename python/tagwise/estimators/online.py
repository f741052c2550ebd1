"""Perceptron, MIRA, passive-aggressive, AROW: estimators that learn sentence by sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tagwise import _core
from tagwise.errors import ParameterError
from tagwise.estimators.base import COMMON, FEATURES, Tagger, Task
from tagwise.estimators.limits import LIMITS, Limits
from tagwise.history import Domain, History, starts_of, tokens_of
from tagwise.learners import online
from tagwise.learners.loop import Result
from tagwise.model import Model
from tagwise.optimizers.base import Vector
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


HISTORY = (
    Param(
        "history",
        None,
        Domain(),
        "(m, p): cells of m labels, features on labels p back read off each cell's path; None is first order",
    ),
    Param(
        "document",
        False,
        Flag(),
        "features on the labels of earlier tokens of the document with the same word",
    ),
)


class OnlineTagger(Tagger):
    """A learner that updates after every sentence; `history_` counts wrong tokens and updates of each epoch."""

    def _online(self, task: Task) -> dict[str, Any]:
        """What this learner asks of the core."""
        raise TypeError(f"{type(self).__name__} is no learner; use one of tagwise.LEARNERS")

    def _train(self, task: Task) -> Result:
        params, limits = task.params, task.limits or Limits()
        options: dict[str, Any] = {
            "average": params["average"],
            "shuffle": params["shuffle"],
            "seed": params["seed"],
            "n_jobs": params["shards"],
            "sample_weight": None if task.sample_weight is None else task.sample_weight.astype(np.float32),
            "forbidden": limits.forbidden,
            "allowed": limits.support,
            **self._online(task),
        }
        history = History.of(params)
        learner: _core.Online | _core.HistoryOnline
        if history is None:
            learner = _core.Online(task.data, task.layout, **options)
            if task.start.any():
                learner.restore({"weights": task.start})
        else:
            learner = self._with_history(task, history, options)
        return online.train(
            learner,
            params["epochs"],
            params["patience"],
            averaged=params["average"],
            dev_score=task.dev_score,
            callbacks=task.callbacks,
        )

    @staticmethod
    def _with_history(task: Task, history: History, options: dict[str, Any]) -> _core.HistoryOnline:
        """The learner whose search looks further back."""
        words = None
        if history.document:
            if not getattr(task.X, "has_documents", False):
                raise ParameterError(
                    "document=True needs a corpus that marks its documents (-DOCSTART- rows, # newdoc); "
                    "train on one, or leave document features out"
                )
            tokens = tokens_of(task.X, "document=True")
            ids: dict[str, int] = {}
            flat = (ids.setdefault(word, len(ids)) for sentence in tokens for word in sentence)
            words = (np.fromiter(flat, dtype=np.uint32), starts_of(task.X))
        terms = history.terms(len(task.labels))
        learner = _core.HistoryOnline(task.data, task.layout, terms, words=words, **options)
        if task.start.any():
            more = np.zeros(len(task.layout) + len(terms) - len(task.start))
            learner.restore(np.concatenate([task.start, more]))
        return learner

    def _model(self, task: Task, w: Vector) -> Model:
        history = History.of(task.params)
        if history is None:
            return super()._model(task, w)
        n = len(task.layout)
        return replace(super()._model(task, w[:n]), history=history.with_weights(w[n:]))

    @staticmethod
    def _cost(task: Task) -> dict[str, Any]:
        """The cost of the parameters as the core takes it."""
        cost, numbers = online.parse_cost(task.params["cost"])
        labels = task.labels
        if callable(cost):
            cost = online.named(cost, labels)
        return {"cost": cost, "cost_numbers": numbers, "entities": online.entity_table(labels)}


class Perceptron(OnlineTagger):
    """Structured perceptron (Collins 2002): w += S(gold) - S(best path) where they differ; averaged by default."""

    name = "perceptron"
    PARAMS = (
        FEATURES,
        Param(
            "mode", "online", Choice(("online", "batch")), "batch applies the updates of an epoch at its end"
        ),
        *HISTORY,
        *EPOCHS,
        *LIMITS,
        *COMMON,
    )

    def _online(self, task: Task) -> dict[str, Any]:
        return {"kind": "perceptron", "batch": task.params["mode"] == "batch"}


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
        *HISTORY,
        *EPOCHS,
        *LIMITS,
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
        *LIMITS,
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
        *LIMITS,
        *COMMON,
    )

    def _online(self, task: Task) -> dict[str, Any]:
        return {
            "kind": "arow",
            "gamma": task.params["gamma"],
            "variance": task.params["variance"],
            **self._cost(task),
        }
