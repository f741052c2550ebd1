"""The conditional random field: one estimator, four losses."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from typing_extensions import Self

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import Choice, Domains, Integer, Real
from tagwise.base.exceptions import ParameterError
from tagwise.base.options import PARTIAL, Dictionary, Partial
from tagwise.base.parameters import parameters_of, require
from tagwise.dataset import partial
from tagwise.dataset.check import check_lengths
from tagwise.dataset.class_weights import LabelWeights, label_counts, label_weights
from tagwise.dataset.weights import length_weights
from tagwise.estimators.base import Tagger
from tagwise.estimators.growth import extended_labels, extended_layout, with_tuples
from tagwise.estimators.limits import Limits
from tagwise.estimators.task import Task
from tagwise.evaluation.scoring import Metric
from tagwise.features.inputs import Inputs
from tagwise.features.types import FeatureSet
from tagwise.learners import gradient
from tagwise.learners.backends import devices, find, using
from tagwise.learners.loop import Result
from tagwise.learners.problem import Problem
from tagwise.model.model import Model
from tagwise.model.reading import forbidden_of
from tagwise.optimizers.base import Vector
from tagwise.scores.constraints import ConstraintsLike
from tagwise.scores.lookback import LookbackWeights

LOSSES = _core.LOSSES


@dataclass
class ChainTask(Task):
    """Training run of a CRF, with partial labels and higher orders."""

    partial: partial.Support | None = None  # possible labels of each token, in place of gold labels
    order: _core.Order | None = None  # states and features of order 2 or 3


class CRF(Tagger):
    """Conditional random field (Lafferty, McCallum and Pereira 2001), trained on the whole corpus at once.

    The learner to start with: it is accurate and its scores are probabilities. Training on the log loss usually ends
    with a certificate of how close it is to the optimum. Tune `l2` first. The objective is

        sum_i w_i loss(x_i, y_i) + l2 ||w||^2 + l1 ||w||_1 + prior ||w - w_0||^2

    where w_0 are the weights of `warm_start`. The loss is one of four (Altun, Johnson and Hofmann 2003), with l_i =
    -log P(y_i | x_i):

        log            l_i
        exp            e^{l_i} - 1
        pointwise_log  -sum_t log P(y_it | x_i)
        pointwise_exp  sum_t 1 / P(y_it | x_i)

    `class_weight` turns the log loss into a softmax margin (Gimpel and Smith 2010) of the costs log weight(y),

        log sum_y exp(score(y) + sum_t [y_t != y_it] log weight(y_it)) - score(y_i)

    For a single token this is log(1 + weight(y) (1 - p_y) / p_y): the odds against a right label of weight 5 count five
    times.

    Attributes:
        model_: `Model` with the labels, features, weights and constraints that `predict` uses.
        classes_: Labels, in the type they had in training. The columns of `predict_marginals` have this order.
        history_: One dict per iteration with its number, objective, seconds and evaluations of the objective, and what
            was measured of gradient norm, dev score, `dual` and `gap` (certificate). Empty after `tagwise.load`.
        objective_: Objective of the kept weights, penalties included.
        stopped_: Parameter that ended training and how, such as "tol=1e-05: certified within 9.0e-06 of the optimum".
        converged_: Whether training reached `tol` or found no better weights.
        gap_: Bound of the relative distance of `objective_` from the optimum, or None without a certificate.
        best_iteration_: Number of the iteration that was kept: the best on the dev set, or the last.
        metric_: Name of the metric of `score` and of dev scores.
        n_features_: Number of features.
        n_nonzero_: Number of features whose weight is not zero.

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> tagger = CRF(features="S1", l2=0.1).fit(X, y)
    >>> tagger.predict([["the", "dog", "sleeps"]])
    [['DT', 'NN', 'VBZ']]
    """

    name = "crf"
    probabilistic = True
    _PARAMS: ClassVar[Domains] = {
        "loss": Choice(LOSSES),
        "order": Integer(1, 3),
        "prior": Real(0.0),
        "device": Choice(devices()),
        "partial": PARTIAL,
    }

    def __init__(
        self,
        *,
        features: FeatureSet = "default",
        l2: float = 0.1,
        l1: float = 0.0,
        loss: Literal["log", "exp", "pointwise_log", "pointwise_exp"] = "log",
        order: int = 1,
        class_weight: LabelWeights = None,
        constraints: ConstraintsLike = None,
        dictionary: int | Dictionary | None = None,
        partial: bool | Partial = False,
        prior: float = 0.0,
        pi: float = 1.0,
        max_length: int | None = None,
        max_iter: int = 1000,
        tol: float = 1e-05,
        window: int = 10,
        patience: int = 20,
        optimizer: Literal["auto", "lbfgs", "cg", "sgd", "dual", "owlqn"] = "auto",
        min_count: int = 1,
        all_pairs: bool = False,
        start_end: bool = True,
        scoring: Metric | None = None,
        random_state: int = 0,
        device: Literal["cpu", "cuda"] = "cpu",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        """Store the parameters, which `fit` checks.

        Args:
            features: Feature set that turns tokens into attributes (S1, S2, S3, S3(window=2), pos, ner, default, a
                template, a function, or attributes). Start with "default". Write a template or a function if you know
                which context matters.
            l2: Strength of the penalty ||w||^2, added to the sum over sentences: 1 / (2 sigma^2) for a Gaussian prior
                of deviation sigma. The most important parameter to tune: try 0.01 to 1 on development data, larger
                values for noisy labels.
            l1: Strength of the penalty ||w||_1, added to the sum over sentences. Set it to 0.1 to 1 for a sparse model
                that is several times smaller and slightly less accurate.
            loss: Loss of a sentence. "log" is the standard and tolerates noisy labels. "pointwise_log" optimises single
                labels instead of sequences. The exponential losses suit only clean labels.
            order: Number of previous labels that the next label depends on, 1 to 3. Orders 2 and 3 add features of the
                label tuples seen in training. Try them on large corpora, after tuning `l2`.
            class_weight: Weights of labels: the odds against a right label of weight 5 count five times (balanced, a
                number > 0 for all labels, a mapping of label -> number > 0, or None). Use "balanced" or 2 to 10 if
                labels are missed. Log loss and order 1 only.
            constraints: Rules for valid label sequences, applied in training and decoding (auto, bio, IOBES ..., a
                mapping with scheme, forbidden, required, once, or None). Use "auto" for labels such as B-PER and I-PER,
                so that no invalid span is predicted.
            dictionary: Minimum count of a word for a tag dictionary, which allows the word only labels seen with it in
                training (integer >= 1, or a Dictionary, or None). Try 3 to 10 for parts of speech. None uses no
                dictionary.
            partial: Read gold labels such as A|B as sets and _ as unknown (true or false, or a Partial). Set it to True
                for files with partial annotation, or to a `Partial` for other separators. Collections of labels
                are accepted without it, None is not.
            prior: Strength of ||w - w_0||^2, a pull towards the weights w_0 of `warm_start`. Set it to 1 to 100 to
                continue a model without its old sentences. Smaller values forget more.
            pi: Base of the weight c pi^T of a sentence of T tokens, where c makes the mean weight 1. Lower it to 0.5 to
                0.99 if long sentences dominate the loss, as they do in exponential losses.
            max_length: Maximum length of a training sentence. Longer ones are cut into pieces. None trains on whole
                sentences. Set it to 5 to 20 for the exponential losses, which long sentences dominate.
            max_iter: Maximum number of iterations. The default is rarely reached. 20 to 50 are enough for quick
                experiments.
            tol: Relative tolerance: training stops when the objective is certified to be this close to the optimum. If
                no certificate is possible, it stops when `window` iterations improve the objective by less. Use 1e-3
                for quick experiments, 1e-7 for exact optima.
            window: Number of iterations over which `tol` is measured if there is no certificate. Raise it to 20 or 50
                if training stops on a plateau.
            patience: Number of iterations without a better dev score after which training stops. 0 never stops. Used
                with a dev set only. Raise it if the dev score is noisy.
            optimizer: Optimisation algorithm. "auto" takes owlqn if l1 > 0, dual for the log loss with l2 > 0 and 200
                sentences or more, else lbfgs. Name one to reproduce results, or sgd for a rough model of a huge corpus.
            min_count: Minimum count of an attribute in training. Rarer attributes are dropped. Raise it to 2 to 5 for
                smaller models and faster training.
            all_pairs: Create features for pairs of attribute and label, and of two labels, that do not occur in
                training. Set it to True for slightly better accuracy at several times the size.
            start_end: Learn weights for the first and the last label of a sentence. Set it to False to reproduce
                CRFsuite, or if sentences are cut at arbitrary places.
            scoring: Metric of `score` and of dev scores (f1, accuracy, sequence_accuracy, f1_macro, f1_weighted, or
                None). None takes f1 if the training labels mark spans, else accuracy. Name the metric that your task is
                judged by.
            random_state: Seed of all random choices, an integer >= 0. Change it to measure how much results vary. The
                same seed gives the same model.
            device: Device that trains and decodes. Set it to cuda for large corpora, which needs a GPU and pip install
                'tagwise[torch]'.
            n_jobs: Number of threads, at most one per core. None uses all cores. Lower it to leave cores to other
                programs. Results do not depend on it.
            verbose: Verbosity: 1 shows a progress line on a terminal or in a notebook and logs every iteration to the
                logger `tagwise`. Use it for long training runs.
        """
        self._store_params(locals())

    def to(self, device: str) -> Self:
        """Move this fitted tagger to another device for decoding.

        Args:
            device: "cpu" or "cuda". Use "cuda" to predict many sentences at once.

        Returns:
            The tagger itself.

        Raises:
            ParameterError: If the device is not available, or the model has an order above 1, which needs the CPU.
        """
        model, name = self.model_, parameters_of(type(self))["device"].check(device)
        if model.lookback is not None and name != "cpu":
            raise ParameterError(f"device={name!r} does not support order > 1. Use device='cpu'")
        scorer = find(name).scorer(
            model.scorer.layout, model.scorer.weights, forbidden_of(model.constraints, model.labels), False
        )
        self.model_, self.device = replace(model, scorer=scorer), name
        return self

    def _task(
        self, X: Inputs, gold: Sequence[Sequence[Any]], params: dict[str, Any], before: Model | None = None
    ) -> ChainTask:
        if not params["partial"]:
            partial.check_known(gold)
        if not params["partial"] and not partial.is_partial(gold):
            return ChainTask(**vars(super()._task(X, gold, params, before)))
        none: dict[str, tuple[Any, ...]] = dict.fromkeys(
            ("class_weight", "constraints", "dictionary"), (None,)
        )
        given = {**params, "constraints": params["constraints"] and self.constraints}  # type: ignore[attr-defined]
        require("a partially labelled corpus", given, {"loss": ("log",), "order": (1,), **none})
        notation = params["partial"] or Partial()
        known = partial.parse(gold, notation.separator, notation.unknown)
        labels = extended_labels(before, partial.collect(known))
        recipe, vocabulary, data = self._encoded(X, params, before)
        check_lengths(data, known)
        support = partial.support_of(known, labels)
        choice = {name: params[name] for name in ("all_pairs", "start_end")}
        layout, places = extended_layout(before, partial.layout_of(data, len(vocabulary), support, **choice))
        data, start = data.with_gold(partial.gold_of(support)), np.zeros(len(layout))
        return ChainTask(
            data, layout, labels, vocabulary, recipe, params, start, X, places=places, partial=support
        )

    def _train(self, task: Task) -> Result:
        with _engine(task.params["device"]):
            return self._minimise(task)

    def _minimise(self, task: Task) -> Result:
        assert isinstance(task, ChainTask)
        params, data, sample_weight = task.params, task.data, task.sample_weight
        piece_of = None
        if params["max_length"] is not None:
            data, piece_of = data.cut(params["max_length"])
            sample_weight = None if sample_weight is None else sample_weight[piece_of]
        by_length = params["loss"] in _core.BOOSTED
        sample_weight = length_weights(data, params["pi"], sample_weight, exponential=by_length)
        limits = task.limits or Limits()
        start = task.start
        if limits.once is not None:
            check_once(params)
        if params["order"] > 1:
            usual = {"loss": ("log",), "class_weight": (None,)}
            require(f"order={params['order']}", params, usual)
            shown = data
            if task.warm is not None and task.places is not None:  # training continues a model
                shown = with_tuples(data, task.warm.lookback, task.warm.labels, task.labels)
            task.order = _core.Order(shown, task.layout, params["order"], limits.forbidden)
            more = np.zeros(len(task.order))
            if task.warm is not None:
                # Indices of the tuples that have a feature, in their order.
                places = np.flatnonzero(task.order.dense(more + 1.0))
                more = task.lookback_start(LookbackWeights(params["order"], 1, tuples=True))[places]
            start = np.concatenate([start, more])
        problem = Problem(
            data,
            task.layout,
            params["loss"],
            sample_weight,
            forbidden=limits.forbidden,
            allowed=limits.support,
            once=limits.once,
            partial=task.partial,
            cost=cost_matrix(params, task.labels, label_counts(data.gold, len(task.labels))),
            order=task.order,
            pieces=piece_of,
        )
        return self._optimise(task, problem, start)

    def _optimise(self, task: Task, problem: Problem, start: Vector) -> Result:
        """Minimise the objective of a problem from given start weights."""
        params, prior = task.params, None
        if params["prior"] > 0.0:
            if task.warm is None:
                raise ParameterError(
                    f"prior={params['prior']:g} needs a model to start from. Set warm_start, or leave prior out"
                )
            prior = gradient.Prior(start.copy(), params["prior"])
        return gradient.train(
            problem,
            start,
            task.stopping(),
            optimizer=params["optimizer"],
            l1=params["l1"],
            l2=params["l2"],
            prior=prior,
            n_jobs=task.n_jobs,
            seed=params["random_state"],
            dev_score=task.dev_score,
            callbacks=task.callbacks,
            checkpointer=task.checkpointer,
            point=self._point,
        )

    def _model(self, task: Task, w: Vector) -> Model:
        order = task.order if isinstance(task, ChainTask) else None
        if order is None:
            with _engine(task.params["device"]):
                return super()._model(task, w)
        n = len(task.layout)
        lookback = LookbackWeights(task.params["order"], 1, tuples=True).with_weights(order.dense(w[n:]))
        return replace(super()._model(task, w[:n]), lookback=lookback)


def _engine(device: str) -> AbstractContextManager[Any]:
    """Return the context of the engine of a device. For the CPU the current engine stays."""
    return nullcontext() if device == "cpu" else using(device)


def check_once(params: dict[str, Any]) -> None:
    """Raise a ParameterError for settings that cannot be trained with labels that occur once."""
    usual = {"order": (1,), "loss": _core.SEQUENTIAL_LOSSES, "optimizer": ("auto", "lbfgs", "owlqn", "cg")}
    remedy = ". Change it, or apply the constraint only when decoding: predict(X, constraints=...)"
    require("training with the constraint `once`", params, usual, remedy)


def cost_matrix(
    params: dict[str, Any], labels: Sequence[str], counts: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """Return the cost of a wrong label inside log Z [L, L], rows by right label: the logarithm of its weight."""
    if params["class_weight"] is not None:
        require("class_weight", params, {"loss": ("log",)}, ". Or weight sentences with sample_weight")
    weights = label_weights(params["class_weight"], labels, counts)
    if weights is None:
        return None
    matrix: NDArray[np.float64] = np.log(weights)[:, None] * (1.0 - np.eye(len(labels)))
    return matrix
