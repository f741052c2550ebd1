"""The structured perceptron."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np

import tagwise._core as _core
from tagwise.base.domains import Choice, Domains, Integer
from tagwise.base.exceptions import ParameterError
from tagwise.base.options import Dictionary, KernelLike, Lookback
from tagwise.base.parameters import require
from tagwise.estimators.kernel import Kernelised
from tagwise.estimators.limits import Limits
from tagwise.estimators.online import FIRST_ORDER, OnlineTagger, RuleContext, epochs_of
from tagwise.estimators.task import Task
from tagwise.evaluation.scoring import Metric
from tagwise.features.types import FeatureSet
from tagwise.learners import online
from tagwise.learners.loop import Result
from tagwise.model.model import Model
from tagwise.optimizers.base import Vector
from tagwise.scores.constraints import ConstraintsLike
from tagwise.scores.voters import Ballot

#: Parameters that voters and kernels require: one sentence after the other, first order.
ONE_BY_ONE = {**FIRST_ORDER, "mode": ("online",), "parts": (1,)}


class Perceptron(Kernelised, OnlineTagger):
    """Structured perceptron (Collins 2002), averaged by default.

    Each sentence whose best path differs from the gold path updates the weights: w += S(gold) - S(best path). Training
    is much faster than that of a CRF, and `partial_fit` continues it with more sentences. Scores are not probabilities.

    With a kernel the perceptron is trained in its dual form: node scores come from support tokens, and transitions keep
    their weights.

    Attributes:
        model_: `Model` with the labels, features, weights and constraints that `predict` uses.
        classes_: Labels, in the type they had in training.
        history_: One dict per epoch. `objective` is the number of wrong tokens, `updates` the number of updates.
            With a dev set, `dev_score` is the score of the kept weights and `plain_dev_score` the score before
            averaging.
        objective_: Number of wrong tokens in the kept epoch.
        stopped_: Parameter that ended training and how, such as "max_iter=20 reached".
        converged_: False: online learners end by the number of epochs or by `patience`.
        gap_: None: online learners have no certificate.
        best_iteration_: Number of the epoch that was kept: the best on the dev set, or the last.
        metric_: Name of the metric of `score` and of dev scores.
        n_features_: Number of features.
        n_nonzero_: Number of features whose weight is not zero.
        state_: State of training from which `partial_fit` continues. Missing with a kernel or `lookback`, and after
            `tagwise.load`.
        n_support_: Number of support tokens; 0 without a kernel.

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> tagger = Perceptron(features="S1", max_iter=5).fit(X, y)
    >>> tagger.partial_fit([["the", "bird", "sings"]], [["DT", "NN", "VBZ"]]).predict([["a", "bird", "barks"]])
    [['DT', 'NN', 'VBZ']]
    """

    name = "perceptron"
    _PARAMS: ClassVar[Domains] = {
        "mode": Choice(("online", "batch")),
        "voters": Integer(0),
    }

    def __init__(
        self,
        *,
        features: FeatureSet = "default",
        kernel: KernelLike = None,
        lookback: tuple[int, float] | Lookback | None = None,
        max_iter: int = 20,
        patience: int = 0,
        average: bool = True,
        constraints: ConstraintsLike = None,
        dictionary: int | Dictionary | None = None,
        voters: int = 0,
        mode: Literal["online", "batch"] = "online",
        shuffle: bool = True,
        parts: int = 1,
        min_count: int = 1,
        all_pairs: bool = False,
        start_end: bool = True,
        scoring: Metric | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        """Store the parameters, which `fit` checks.

        Args:
            features: Feature set that turns tokens into attributes (S1, S2, S3, S3(window=2), pos, ner, default, a
                template, a function, or attributes). Start with "default". Write a template or a function if you know
                which context matters.
            kernel: Similarity of the attributes of two tokens (linear, poly, rbf, module:function, a function of two
                blocks of tokens, or a Kernel, or None). None learns a weight per feature. Use "poly" for hundreds of
                sentences whose attributes matter in combination.
            lookback: Labels further back that features depend on ((m, p) with m = 1, 2, 3 and p >= 1 or inf, or a
                Lookback, or None): a search state has m labels, and features read labels up to p back. Try (1, 2) for
                names.
            max_iter: Number of passes over the training set. 5 is enough for quick experiments. With `patience` a large
                number does no harm.
            patience: Number of epochs without a better dev score after which training stops. 0 never stops. Used with a
                dev set only. Set it to 3 to 10 to save time.
            average: Average the weights over all steps. Keep it, since the last weights alone are less accurate. False
                is for experiments.
            constraints: Rules for valid label sequences, applied in training and decoding (auto, bio, IOBES ..., a
                mapping with scheme, forbidden, required, once, or None). Use "auto" for labels such as B-PER and I-PER,
                so that no invalid span is predicted.
            dictionary: Minimum count of a word for a tag dictionary, which allows the word only labels seen with it in
                training (integer >= 1, or a Dictionary, or None). Try 3 to 10 for parts of speech. None uses no
                dictionary.
            voters: Maximum number of weight vectors of training that vote on a prediction, at least one per epoch. 0
                predicts with a single vector. Try 20 to 100 if slow prediction is acceptable.
            mode: Time of the updates: online applies each one at once, batch applies those of an epoch at its end. Use
                batch to reproduce results. It learns more slowly.
            shuffle: Shuffle the sentences in every epoch, by `random_state`. Set it to False to reproduce results that
                depend on the order of the corpus.
            parts: Number of parts of the training set that are trained in parallel and mixed after each epoch. 2 to 4
                parts train faster with about the same accuracy. More lose some.
            min_count: Minimum count of an attribute in training. Rarer attributes are dropped. Raise it to 2 to 5 for
                smaller models and faster training.
            all_pairs: Create features for pairs of attribute and label, and of two labels, that do not occur in
                training. Set it to True for slightly better accuracy at several times the size.
            start_end: Learn weights for the first and the last label of a sentence. Set it to False if sentences are
                cut at arbitrary places.
            scoring: Metric of `score` and of dev scores (f1, accuracy, sequence_accuracy, f1_macro, f1_weighted, or
                None). None takes f1 if the training labels mark spans, else accuracy. Name the metric that your task is
                judged by.
            random_state: Seed of all random choices, an integer >= 0. Change it to measure how much results vary. The
                same seed gives the same model.
            n_jobs: Number of threads, at most one per core. None uses all cores. Lower it to leave cores to other
                programs. Results do not depend on it.
            verbose: Verbosity: 1 shows a progress line on a terminal or in a notebook and logs every iteration to the
                logger `tagwise`. Use it for long training runs.
        """
        self._store_params(locals())

    def _rule(self, task: Task | RuleContext) -> _core.Rule:
        return _core.Rule(self.name)

    def _voted(self, task: Task) -> Result:
        """Train and keep weight vectors for voting. Those after the best epoch are dropped."""
        params = task.params
        require("voters", params, {"kernel": (None,), **ONE_BY_ONE})
        if params["voters"] < params["max_iter"]:
            raise ParameterError(
                f"voters={params['voters']}: expected at least one per epoch, that is max_iter={params['max_iter']}"
            )
        task.ballot = Ballot(len(task.data), params["max_iter"], params["voters"])
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
        self._check_supported(task)
        self.__dict__.pop("state_", None)
        learner = _core.KernelPerceptron(
            task.data,
            task.layout,
            self._native_kernel(kernel, task),
            epochs=epochs_of(params),
            budget=params["kernel"].budget,
            limits=(task.limits or Limits()).native,
            sample_weight=None if task.sample_weight is None else task.sample_weight.astype(np.float32),
        )
        return online.train(
            learner,
            params["max_iter"],
            params["patience"],
            averaged=params["average"],
            dev_score=task.dev_score,
            callbacks=task.callbacks,
            checkpointer=task.checkpointer,
        )
