"""The conditional random field: one estimator, four losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import Anything, Choice, Domains, Flag, Integer, Real, Text, shown
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import parameters_of, require
from tagwise.corpus.labels import text
from tagwise.dataset import partial
from tagwise.dataset.check import check_lengths
from tagwise.dataset.class_weights import label_counts, label_weights
from tagwise.dataset.weights import length_weights
from tagwise.estimators.base import Tagger
from tagwise.estimators.growth import grown, joined, with_tuples
from tagwise.estimators.limits import Limits
from tagwise.estimators.task import Task
from tagwise.features.inputs import Inputs
from tagwise.learners import gradient
from tagwise.learners.backends import devices, find, using
from tagwise.learners.loop import Result
from tagwise.learners.problem import Problem
from tagwise.model.model import Model
from tagwise.model.reading import forbidden_of
from tagwise.optimizers.base import Vector
from tagwise.scores.lookback import Lookback

LOSSES = _core.LOSSES


@dataclass
class ChainTask(Task):
    """A training run of a CRF: labels may be known in part, chains of a higher order."""

    partial: partial.Support | None = None  # what is known of each token, in place of its gold label
    order: _core.Order | None = None  # states and features of a chain of order 2 or 3


class CRF(Tagger):
    """Conditional random field (Lafferty, McCallum and Pereira 2001), trained on the whole corpus at once.

        minimise  sum_i w_i loss(x_i, y_i) + l2 ||w||^2 + l1 ||w||_1 + prior ||w - w_0||^2

    where w_0 are the weights of the model that `fit` is given to start from (`warm_start`), with one of the four losses
    of Altun, Johnson and Hofmann (2003): with l_i = -log P(y_i | x_i),

        log            l_i
        exp            e^{l_i} - 1
        pointwise_log  -sum_t log P(y_it | x_i)
        pointwise_exp  sum_t 1 / P(y_it | x_i)

    cost and class_weight change the log loss to that of a softmax margin (Gimpel and Smith 2010),

        log sum_y exp(score(y) + sum_t [y_t != y_it] (cost(y_it) + log weight(y_it))) - score(y_i)

    which of a single token is log(1 + weight(y) (1 - p_y) / p_y): the odds against a right label of weight 5 count five
    times.

    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DT", "NN", "VBZ"], ["DT", "NN", "VBZ"]]
    >>> tagger = CRF(features="S1", l2=0.1).fit(X, y)
    >>> tagger.predict([["the", "dog", "sleeps"]])
    [['DT', 'NN', 'VBZ']]
    """

    name = "crf"
    probabilistic = True
    PARAMS: ClassVar[Domains] = {
        "loss": Choice(LOSSES),
        "order": Integer(1, 3),
        "sigma": Real(1e-100, optional=True),
        "prior": Real(0.0),
        "device": Choice(devices()),
        "cost": Anything("number, or mapping of label -> number"),
        "partial": Flag(),
        "separator": Text(),
        "unknown": Text(),
    }

    def __init__(
        self,
        *,
        features: Any = "default",
        loss: Literal["log", "exp", "pointwise_log", "pointwise_exp"] = "log",
        order: int = 1,
        l1: float = 0.0,
        l2: float = 1.0,
        sigma: float | None = None,
        prior: float = 0.0,
        optimizer: Literal["auto", "lbfgs", "cg", "sgd", "dual", "owlqn"] = "auto",
        device: Literal["cpu", "cuda"] = "cpu",
        cost: Any = None,
        class_weight: Any = None,
        pi: float = 1.0,
        max_length: int | None = None,
        partial: bool = False,
        separator: str = "|",
        unknown: str = "_",
        constraints: Any = None,
        dictionary: int | None = None,
        dictionary_share: float = 0.0,
        max_iter: int = 1000,
        tol: float = 1e-05,
        window: int = 10,
        patience: int = 20,
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
            loss: loss of a sentence
            order: labels that the next one depends on; 2 and 3 add features of label tuples seen in training
            l1: strength of ||w||_1, added to the sum over sentences; gives sparse models
            l2: strength of ||w||^2, added to the sum over sentences
            sigma: Gaussian prior's deviation: l2 = 1 / (2 sigma^2)
            prior: with warm_start: strength of ||w - w_0||^2 around that model's weights, so that it is not forgotten
            optimizer: auto: owlqn if l1 > 0, dual for the log loss with l2 > 0 and 200 sentences or more, else lbfgs
            device: where training and decoding are done; cuda needs a GPU and pip install 'tagwise[torch]'
            cost: cost of a wrong label inside log Z (softmax-margin, log loss); by right label, or one for all (number,
                or mapping of label -> number)
            class_weight: weights of labels: a wrong label costs the logarithm of the right one's weight inside log Z
                (log loss, order 1) (balanced, a mapping of label -> number > 0, or None)
            pi: weight c pi^T of a sentence of T tokens; the mean weight is 1
            max_length: cut longer sentences into pieces for training
            partial: labels may be sets, A|B, or unknown, _; collections of labels and None are understood without it
            separator: partial: separator of the labels of a set (text)
            unknown: partial: the label of a token that may have any (text)
            constraints: valid label sequences, in training and decoding (auto, bio, IOBES ..., a mapping with scheme,
                forbidden, required, once, or None)
            dictionary: words seen at least this often in training take only labels seen with them; None for no tag
                dictionary
            dictionary_share: smallest share of a word's tokens that brings a label into the dictionary
            max_iter: maximum number of iterations; the default is rarely reached
            tol: stop when the optimum is certified to be this near, else when `window` iterations improve by less
            window: iterations over which `tol` is measured
            patience: with a dev set: iterations without a better dev score; 0 never stops
            start_end: features for the first and the last label of a sentence
            min_count: drop attributes seen less often in training
            all_pairs: also create features that never occur with the gold labels
            n_jobs: number of threads, at most one per core; None uses all cores. Results do not depend on it
            seed: seed of all random choices
            verbose: 1 shows a line of progress on a terminal or in a notebook, and logs every iteration to the logger
                `tagwise`
        """
        self._take(locals())

    def to(self, device: str) -> CRF:
        """Let this fitted tagger decode on another device, "cpu" or "cuda"; itself."""
        model, name = self.model_, parameters_of(type(self))["device"].check(device)
        if model.lookback is not None and name != "cpu":
            raise ParameterError(f"device={name!r} cannot do order > 1; use device='cpu'")
        scorer = find(name).scorer(
            model.scorer.layout, model.scorer.weights, forbidden_of(model.constraints, model.labels), False
        )
        self.model_, self.device = replace(model, scorer=scorer), name
        return self

    def _task(
        self, X: Inputs, gold: Sequence[Sequence[Any]], params: dict[str, Any], before: Model | None = None
    ) -> ChainTask:
        if not params["partial"] and not partial.is_partial(gold):
            return ChainTask(**vars(super()._task(X, gold, params, before)))
        none: dict[str, tuple[Any, ...]] = dict.fromkeys(
            ("cost", "class_weight", "constraints", "dictionary"), (None,)
        )
        require("a partially labelled corpus", params, {"loss": ("log",), "order": (1,), **none})
        known = partial.parse(gold, params["separator"], params["unknown"])
        labels = joined(before, partial.collect(known))
        recipe, vocabulary, data = self._encoded(X, params, before)
        check_lengths(data, known)
        support = partial.support_of(known, labels)
        choice = {name: params[name] for name in ("all_pairs", "start_end")}
        layout, places = grown(before, partial.layout_of(data, len(vocabulary), support, **choice))
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
            usual = {"loss": ("log",), "cost": (None,), "class_weight": (None,)}
            require(f"order={params['order']}", params, usual)
            shown = data
            if task.warm is not None and task.places is not None:  # it grows
                shown = with_tuples(data, task.warm.lookback, task.warm.labels, task.labels)
            task.order = _core.Order(shown, task.layout, params["order"], limits.forbidden)
            more = np.zeros(len(task.order))
            if task.warm is not None:
                # Of the tuples with a feature, in their order.
                places = np.flatnonzero(task.order.dense(more + 1.0))
                more = task.far_start(Lookback(params["order"], 1, tuples=True))[places]
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
        """Minimise, from weights to start from."""
        params, prior = task.params, None
        sigma = params["sigma"]
        if params["prior"] > 0.0:
            if task.warm is None:
                raise ParameterError(
                    f"prior={params['prior']:g} is about the weights of a model to start from; give one as warm_start, "
                    "or leave prior out"
                )
            prior = gradient.Prior(start.copy(), params["prior"])
        return gradient.train(
            problem,
            start,
            task.stopping(),
            optimizer=params["optimizer"],
            l1=params["l1"],
            l2=params["l2"] if sigma is None else 1.0 / (2.0 * sigma * sigma),
            prior=prior,
            n_jobs=task.n_jobs,
            seed=params["seed"],
            dev_score=task.dev_score,
            callbacks=task.callbacks,
            keeper=task.keeper,
            point=self._point,
        )

    def _model(self, task: Task, w: Vector) -> Model:
        order = task.order if isinstance(task, ChainTask) else None
        if order is None:
            with _engine(task.params["device"]):
                return super()._model(task, w)
        n = len(task.layout)
        lookback = Lookback(task.params["order"], 1, tuples=True).with_weights(order.dense(w[n:]))
        return replace(super()._model(task, w[:n]), lookback=lookback)


def _engine(device: str) -> AbstractContextManager[Any]:
    """The engine of a device; that of the CPU is whichever is used around here."""
    return nullcontext() if device == "cpu" else using(device)


def check_once(params: dict[str, Any]) -> None:
    """Refuse what cannot be trained with labels that occur once."""
    usual = {"order": (1,), "loss": _core.SEQUENTIAL_LOSSES, "optimizer": ("auto", "lbfgs", "owlqn", "cg")}
    remedy = "; or apply the rule when decoding: predict(X, constraints=...)"
    require("training with labels that occur once", params, usual, remedy)


def cost_matrix(
    params: dict[str, Any], labels: Sequence[str], counts: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """What a wrong label costs inside log Z, [L, L] by the right one: `cost`, and the logarithm of its weight."""
    for name in ("cost", "class_weight"):
        if params[name] is not None:
            require(name, params, {"loss": ("log",)}, "; or weigh sentences by sample_weight")
    matrix = _by_right_label(params["cost"], labels)
    weights = label_weights(params["class_weight"], labels, counts)
    if weights is None:
        return matrix
    more: NDArray[np.float64] = np.log(weights)[:, None] * (1.0 - np.eye(len(labels)))
    return more if matrix is None else matrix + more


def _by_right_label(cost: Any, labels: Sequence[str]) -> NDArray[np.float64] | None:
    """Cost [L, L] of every label where the row's label is right: a number for all, or one a right label."""
    if cost is None:
        return None
    wanted = (
        {text(y): c for y, c in cost.items()} if isinstance(cost, Mapping) else dict.fromkeys(labels, cost)
    )
    unknown = [label for label in wanted if label not in labels]
    if unknown:
        raise ParameterError(f"cost: there is no label {unknown[0]!r}; there are: {' '.join(labels)}")
    try:
        rows = np.array([float(wanted.get(label, 0.0)) for label in labels])
    except (TypeError, ValueError, OverflowError):
        rows = np.full(len(labels), np.nan)
    if not np.isfinite(rows).all():
        raise ParameterError(
            f"cost={shown(cost)}: expected a finite number, or a mapping of labels to finite numbers"
        )
    matrix: NDArray[np.float64] = np.repeat(rows[:, None], len(labels), axis=1)
    np.fill_diagonal(matrix, 0.0)
    return matrix
