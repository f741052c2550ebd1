"""The structured perceptron."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

import tagwise._core as _core
from tagwise.base.domains import Choice, Domains, Integer
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import require
from tagwise.estimators.kernel import Kernelised
from tagwise.estimators.limits import Limits
from tagwise.estimators.online import FIRST_ORDER, OnlineTagger, RuleContext, epochs_of
from tagwise.estimators.task import Task
from tagwise.learners import online
from tagwise.learners.loop import Result
from tagwise.model.model import Model
from tagwise.optimizers.base import Vector
from tagwise.scores.voters import Ballot

#: What voters and kernels are trained with: one sentence after another, first order.
ONE_BY_ONE = {**FIRST_ORDER, "mode": ("online",), "parts": (1,)}


class Perceptron(Kernelised, OnlineTagger):
    """Structured perceptron (Collins 2002): w += S(gold) - S(best path) where they differ; averaged by default.

    With a kernel, in its dual form: node scores come from training tokens, transitions keep their weights.

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> tagger = Perceptron(features="S1", epochs=5).fit(X, y)
    >>> tagger.partial_fit([["the", "bird", "sings"]], [["DT", "NN", "VBZ"]]).predict([["a", "bird", "barks"]])
    [['DT', 'NN', 'VBZ']]
    """

    name = "perceptron"
    PARAMS: ClassVar[Domains] = {
        "mode": Choice(("online", "batch")),
        "voters": Integer(0),
        "budget": Integer(1, optional=True),
    }
    explicit = (None, "none")

    def __init__(
        self,
        *,
        features: Any = "default",
        mode: Literal["online", "batch"] = "online",
        voters: int = 0,
        history: Any = None,
        pool: int = 128,
        document: bool = False,
        kernel: Any = None,
        degree: int = 2,
        coef: float = 1.0,
        gamma: float | None = None,
        form: Literal["auto", "rows", "expanded"] = "auto",
        cache_mb: int = 256,
        budget: int | None = None,
        epochs: int = 20,
        average: bool = True,
        shuffle: bool = True,
        patience: int = 0,
        parts: int = 1,
        constraints: Any = None,
        dictionary: int | None = None,
        dictionary_share: float = 0.0,
        start_end: bool = True,
        min_count: int = 1,
        all_pairs: bool = False,
        n_jobs: int | None = None,
        seed: int = 0,
        verbose: int = 0,
    ) -> None:
        """Keep the parameters; `fit` checks them.

        Args:
            features: how tokens become attributes (S1, S2, S3, S3(window=2), pos, ner, default, a template, a function,
                or attributes)
            mode: batch applies the updates of an epoch at its end
            voters: maximum number of weight vectors of training that vote, at least one per epoch; 0 for one vector
            history: (m, p): cells of m labels, features on labels p back read off each cell's path; None is first order
                ((m, p) with m = 1, 2, 3 and p >= 1 or inf, or None)
            pool: with p = inf: the distance from which on labels share one table; nearer ones have a table each
            document: features on the labels of earlier tokens of the document with the same word
            kernel: similarity of two tokens' attributes; transitions stay linear (linear, poly, rbf, module:function,
                or a function of two blocks of tokens)
            degree: poly: (coef + gamma <x, x'>)^degree
            coef: poly: (coef + gamma <x, x'>)^degree
            gamma: factor of <x, x'> in poly, None is 1; of ||x - x'||^2 in rbf, None is 1 over the mean of ||x||^2
            form: kernel rows, or poly of degree 2 written out as products; auto takes the cheaper
            cache_mb: megabytes for kernel rows while training
            budget: with a kernel: maximum number of support tokens; None means unlimited
            epochs: passes over the training set
            average: average the weights over all steps; False keeps the last ones
            shuffle: shuffle the sentences in every epoch, by `seed`
            patience: with a dev set: epochs without a better dev score; 0 never stops
            parts: number of parts that are trained at the same time and mixed after each epoch; 1 is exact
            constraints: valid label sequences, in training and decoding (auto, bio, IOBES ..., a mapping with scheme,
                forbidden, required, once, or None)
            dictionary: words seen at least this often in training take only labels seen with them; None for no tag
                dictionary
            dictionary_share: smallest share of a word's tokens that brings a label into the dictionary
            start_end: features for the first and the last label of a sentence
            min_count: drop attributes seen less often in training
            all_pairs: also create features that never occur with the gold labels
            n_jobs: number of threads, at most one per core; None uses all cores. Results do not depend on it
            seed: seed of all random choices
            verbose: 1 shows a line of progress on a terminal or in a notebook, and logs every iteration to the logger
                `tagwise`
        """
        self._take(locals())

    def _rule(self, task: Task | RuleContext) -> _core.Rule:
        return _core.Rule(self.name)

    def _voted(self, task: Task) -> Result:
        """Keep weights along the way; those after the epoch whose score is best are none of the result."""
        params = task.params
        require("voters", params, {"kernel": self.explicit, **ONE_BY_ONE})
        if params["voters"] < params["epochs"]:
            raise ParameterError(
                f"voters={params['voters']}: every epoch has one or more; give at least epochs={params['epochs']}"
            )
        task.ballot = Ballot(len(task.data), params["epochs"], params["voters"])
        result = super()._train(task)
        task.ballot.keep(result.best_iteration)
        return result

    def _model(self, task: Task, w: Vector) -> Model:
        model = super()._model(task, w)
        return model if task.ballot is None else replace(model, arrays=task.ballot.arrays())

    def _train(self, task: Task) -> Result:
        kernel, params = self._kernel(task.params, task.data), task.params
        if params["voters"]:
            return self._voted(task)
        if kernel is None:
            return super()._train(task)
        require("a kernel", params, ONE_BY_ONE)
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
            keeper=task.keeper,
        )
