"""The scikit-learn face: one class a learner, thin presets over the straight line.

`__init__` stores parameters, `fit` checks them, a second `fit` forgets the first; learned attributes end in `_`.

>>> import tagwise as tw
>>> tagger = tw.CRF(features="S2", l2=0.1, max_iter=20)
>>> X, y = [["the", "dog", "barks"], ["a", "cat"]], [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]
>>> tagger.fit(X, y).predict([["the", "cat", "barks"]])
[['DET', 'NOUN', 'VERB']]
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tagwise import _core, dataset
from tagwise.errors import CorpusError, ModelFileError, NotFittedError, ParameterError
from tagwise.features import Recipe, recipe_for
from tagwise.learners import gradient, online
from tagwise.learners.loop import Callback, Iteration, Result, Stopping
from tagwise.metrics import Report, evaluate
from tagwise.model import Allowed, Explanation, Model, transfer
from tagwise.optimizers import OPTIMIZERS
from tagwise.optimizers.base import Vector
from tagwise.params import Anything, Choice, Flag, Number, Param, lookup
from tagwise.schemes import has_chunks

__all__ = [
    "AROW",
    "CRF",
    "LEARNERS",
    "MIRA",
    "Iteration",
    "PassiveAggressive",
    "Perceptron",
    "Tagger",
    "load",
]

FEATURES = Param(
    "features",
    "default",
    Anything("S1, S2, S3, S3(window=2), default, a template, a function, or attributes"),
    "how tokens become attributes",
)
COMMON = (
    Param("start_end", True, Flag(), "features for the first and the last label of a sentence"),
    Param("min_count", 1, Number(1, integer=True), "drop attributes seen less often in training"),
    Param("all_pairs", False, Flag(), "also create features that never occur with the gold labels"),
    Param(
        "n_jobs",
        None,
        Number(1, integer=True, optional=True),
        "threads; None for all cores; results do not depend on it",
    ),
    Param("seed", 0, Number(0, integer=True), "seed of everything random"),
    Param("verbose", 0, Number(0, integer=True), "1 logs every iteration to the logger `tagwise`"),
)
STOPPING = (
    Param("max_iter", 1000, Number(0, integer=True), "most iterations"),
    Param(
        "tol",
        1e-5,
        Number(0.0),
        "stop when the objective improves by less, relatively, over `window` iterations",
    ),
    Param("window", 10, Number(1, integer=True), "iterations over which `tol` is measured"),
    Param(
        "patience",
        20,
        Number(0, integer=True),
        "with a dev set: iterations without a better dev score; 0 never stops",
    ),
)

LOSSES = ("log", "exp", "pointwise_log", "pointwise_exp")
SEQUENCE_COST = "how bad a wrong path is: the margin that is asked for"
COST_HELP = "cost of a wrong label inside log Z (softmax-margin, log loss); by right label, or one for all"

#: Parameters that do not change the model and so do not go into its file.
TRANSIENT = ("n_jobs", "verbose")


class Tagger:
    """A learner of label sequences: parameters in, `fit`, `predict`."""

    name: ClassVar[str] = ""
    PARAMS: ClassVar[tuple[Param, ...]] = ()

    model_: Model
    history_: list[dict[str, Any]]
    objective_: float
    stopped_: str
    best_iteration_: int

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        shown = [
            inspect.Parameter(p.name, inspect.Parameter.KEYWORD_ONLY, default=p.default) for p in cls.PARAMS
        ]
        cls.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]

    def __init__(self, **params: Any) -> None:
        for param in self.PARAMS:
            setattr(self, param.name, param.default)
        self.set_params(**params)

    # --- parameters -------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, as they were set."""
        return {param.name: getattr(self, param.name) for param in self.PARAMS}

    def set_params(self, **params: Any) -> Tagger:
        """Set parameters by name; values are checked by `fit`."""
        for name, value in params.items():
            lookup(self.PARAMS, name, type(self).__name__)
            setattr(self, name, value)
        return self

    def checked(self) -> dict[str, Any]:
        """Parameters, each inside its domain."""
        return {param.name: param.check(getattr(self, param.name)) for param in self.PARAMS}

    def __repr__(self) -> str:
        changed = [
            f"{p.name}={getattr(self, p.name)!r}"
            for p in self.PARAMS
            if getattr(self, p.name) is not p.default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        # No "classifier": scikit-learn would look for one class a sentence and stratify by it.
        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True),
            input_tags=InputTags(two_d_array=False),
        )

    # --- training ---------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Sequence[Sequence[str]] | None = None,
        *,
        dev: Any = None,
        dev_y: Sequence[Sequence[str]] | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
        callbacks: Iterable[Callback] = (),
        warm_start: Tagger | Model | str | os.PathLike[str] | None = None,
    ) -> Tagger:
        """Train on a labelled corpus, or on X and y.

        Args:
            X: a Corpus, or sentences: lists of tokens, of attribute lists, or of feature dicts.
            y: the labels of each sentence; a Corpus brings its own.
            dev: a labelled corpus (or X with `dev_y`) that is scored after every iteration; the best iterate is kept.
            dev_y: labels of `dev`.
            sample_weight: a weight >= 0 for each sentence.
            callbacks: called with an `Iteration` after each; True stops training and keeps the model.
            warm_start: a fitted tagger, a model or a model file whose weights to start from.
        """
        params = self.checked()
        n_jobs = params["n_jobs"] or 0
        gold = _labels_of(X, y)
        labels = dataset.collect_labels(gold)
        if not labels:
            raise CorpusError("the training set has no token; give at least one labelled sentence")
        recipe = recipe_for(params["features"], X)
        vocabulary = _core.Vocabulary()
        data = recipe.encode(X, vocabulary, params["n_jobs"])
        if params["min_count"] > 1:
            data = dataset.prune(vocabulary, data, params["min_count"])
        vocabulary.lock()
        data = dataset.with_labels(data, gold, labels)
        layout = _core.Layout.build(
            data, len(vocabulary), len(labels), all_pairs=params["all_pairs"], start_end=params["start_end"]
        )
        weights = None if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64)
        start = np.zeros(len(layout))
        if warm_start is not None:
            start = transfer(_model_of(warm_start), vocabulary, layout, labels)

        def model(w: Vector) -> Model:
            scorer = _core.Scorer(layout, w.astype(np.float32))
            return Model(tuple(labels), recipe, vocabulary, scorer)

        dev_score = None
        if dev is not None:
            dev_score = _dev_scorer(model, recipe, vocabulary, dev, _labels_of(dev, dev_y), params["n_jobs"])
        watchers = [*callbacks, _log] if params["verbose"] else list(callbacks)
        result = self._train(
            data, layout, start, weights, {**params, "labels": labels}, n_jobs, dev_score, watchers
        )
        self.history_ = result.history
        self.objective_ = result.objective
        self.stopped_ = result.reason
        self.best_iteration_ = result.best_iteration
        self.model_ = model(result.weights).with_meta(**self._meta(params, recipe, result))
        return self

    def _train(
        self,
        data: _core.Dataset,
        layout: _core.Layout,
        start: Vector,
        sample_weight: NDArray[np.float64] | None,
        params: dict[str, Any],
        n_jobs: int,
        dev_score: Callable[[Vector], float] | None,
        callbacks: list[Callback],
    ) -> Result:
        raise TypeError(f"{type(self).__name__} is no learner; use one of: {', '.join(LEARNERS)}")

    def _meta(self, params: dict[str, Any], recipe: Recipe, result: Result) -> dict[str, Any]:
        """What the model file says of its training; nothing in it depends on the machine or the clock."""
        kept = {name: value for name, value in params.items() if name not in TRANSIENT}
        kept["features"] = recipe.name
        metrics: dict[str, Any] = {
            "iterations": len(result.history),
            "best_iteration": result.best_iteration,
            "objective": result.objective,
            "stopped": result.reason,
        }
        scores = [entry["dev_score"] for entry in result.history if entry["dev_score"] is not None]
        if scores:
            metrics["dev_score"] = max(scores)
        return {"learner": self.name, "params": kept, "metrics": metrics}

    # --- prediction -------------------------------------------------------------------------------------

    def _fitted(self) -> Model:
        if not hasattr(self, "model_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted; call fit, or load a model with tagwise.load"
            )
        return self.model_

    @property
    def classes_(self) -> tuple[str, ...]:
        """The labels; columns of marginals are in this order."""
        return self._fitted().labels

    @property
    def n_features_(self) -> int:
        """Number of features."""
        return self._fitted().n_features

    @property
    def n_nonzero_(self) -> int:
        """Number of features whose weight is not zero."""
        return self._fitted().n_nonzero

    def predict(self, X: Any, *, decoder: str = "viterbi", allowed: Allowed | None = None) -> list[list[str]]:
        """Labels of each sentence.

        Args:
            X: sentences of the kind the tagger was fitted on.
            decoder: "viterbi", the best path; or "pointwise", the most probable label of each token by itself.
            allowed: for every token of every sentence the labels it may take, or None for any.
        """
        return self._fitted().predict(X, decoder=decoder, allowed=allowed, n_jobs=self._jobs())

    def predict_marginals(self, X: Any, *, allowed: Allowed | None = None) -> list[NDArray[np.float32]]:
        """Probability of every label at every token: an array [T, L] a sentence, columns as in `classes_`."""
        return self._fitted().marginals(X, allowed=allowed, n_jobs=self._jobs())

    def predict_kbest(
        self, X: Any, k: int = 5, *, probability: bool = False, allowed: Allowed | None = None
    ) -> list[list[tuple[list[str], float]]]:
        """The k best label sequences of each sentence as (labels, score), best first; fewer where fewer exist.

        Args:
            X: sentences of the kind the tagger was fitted on.
            k: how many.
            probability: P(y | x) in place of the score; means something for probabilistic models (CRF) only.
            allowed: as in `predict`.
        """
        return self._fitted().kbest(X, k, probability=probability, allowed=allowed, n_jobs=self._jobs())

    def evaluate(self, X: Any, y: Sequence[Sequence[str]] | None = None) -> Report:
        """Scores of the predictions on a labelled corpus."""
        return evaluate(_labels_of(X, y), self.predict(X))

    def score(self, X: Any, y: Sequence[Sequence[str]] | None = None) -> float:
        """F1 of chunks where the gold labels are chunks (B-, I- ...), else the fraction of right labels."""
        return self.evaluate(X, y).score

    def explain(self, top: int = 20) -> Explanation:
        """Strongest features of each label and strongest transitions."""
        return self._fitted().explain(top)

    def _jobs(self) -> int | None:
        return lookup(self.PARAMS, "n_jobs", self.name).check(self.n_jobs)  # type: ignore[attr-defined,no-any-return]

    # --- files ------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file; `tagwise.load` reads it back."""
        self._fitted().save(path)


class CRF(Tagger):
    """Conditional random field (Lafferty, McCallum and Pereira 2001), trained on the whole corpus at once.

    minimise  sum_i w_i loss(x_i, y_i) + l2 ||w||^2 + l1 ||w||_1

    with one of the four losses of Altun, Johnson and Hofmann (2003): with l_i = -log P(y_i | x_i),

    log            l_i
    exp            e^{l_i} - 1
    pointwise_log  -sum_t log P(y_it | x_i)
    pointwise_exp  sum_t 1 / P(y_it | x_i)
    """

    name = "crf"
    PARAMS = (
        FEATURES,
        Param("loss", "log", Choice(LOSSES), "loss of a sentence"),
        Param(
            "l1",
            0.0,
            Number(0.0),
            "strength of ||w||_1, added to the sum over sentences; gives sparse models",
        ),
        Param("l2", 1.0, Number(0.0), "strength of ||w||^2, added to the sum over sentences"),
        Param(
            "sigma",
            None,
            Number(0.0, optional=True, open_low=True),
            "Gaussian prior's deviation: l2 = 1 / (2 sigma^2)",
        ),
        Param("optimizer", "auto", Choice(("auto", *OPTIMIZERS)), "auto: lbfgs, or owlqn where l1 > 0"),
        Param("cost", None, Anything("number, or mapping of label -> number"), COST_HELP),
        Param("pi", 1.0, Number(0.0, 1.0, open_low=True), "weight pi^T of a sentence of T tokens"),
        Param(
            "max_length",
            None,
            Number(1, integer=True, optional=True),
            "cut longer sentences into pieces for training",
        ),
        *STOPPING,
        *COMMON,
    )

    def _train(
        self,
        data: _core.Dataset,
        layout: _core.Layout,
        start: Vector,
        sample_weight: NDArray[np.float64] | None,
        params: dict[str, Any],
        n_jobs: int,
        dev_score: Callable[[Vector], float] | None,
        callbacks: list[Callback],
    ) -> Result:
        if params["max_length"] is not None:
            data, piece_of = data.cut(params["max_length"])
            sample_weight = None if sample_weight is None else sample_weight[piece_of]
        if params["pi"] < 1.0:
            weight = params["pi"] ** np.diff(data.offsets.astype(np.int64)).astype(np.float64)
            sample_weight = weight if sample_weight is None else sample_weight * weight
        objective = _core.Objective(
            data,
            layout,
            loss=params["loss"],
            sample_weight=sample_weight,
            cost=_cost_matrix(params["cost"], params["labels"], params["loss"]),
        )
        stopping = Stopping(params["max_iter"], params["tol"], params["window"], params["patience"])
        sigma = params["sigma"]
        return gradient.train(
            objective,
            start,
            stopping,
            loss=params["loss"],
            optimizer=params["optimizer"],
            l1=params["l1"],
            l2=params["l2"] if sigma is None else 1.0 / (2.0 * sigma * sigma),
            n_jobs=n_jobs,
            dev_score=dev_score,
            callbacks=callbacks,
        )


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

    def _online(self, params: dict[str, Any]) -> dict[str, Any]:
        """What this learner asks of the core."""
        raise TypeError(f"{type(self).__name__} is no learner; use one of: {', '.join(LEARNERS)}")

    def _train(
        self,
        data: _core.Dataset,
        layout: _core.Layout,
        start: Vector,
        sample_weight: NDArray[np.float64] | None,
        params: dict[str, Any],
        n_jobs: int,
        dev_score: Callable[[Vector], float] | None,
        callbacks: list[Callback],
    ) -> Result:
        learner = _core.Online(
            data,
            layout,
            average=params["average"],
            shuffle=params["shuffle"],
            seed=params["seed"],
            n_jobs=params["shards"],
            sample_weight=None if sample_weight is None else sample_weight.astype(np.float32),
            **self._online(params),
        )
        if start.any():
            learner.restore({"weights": start})
        return online.train(
            learner,
            params["epochs"],
            params["patience"],
            averaged=params["average"],
            dev_score=dev_score,
            callbacks=callbacks,
        )

    @staticmethod
    def _cost(params: dict[str, Any]) -> dict[str, Any]:
        """The cost of `params` as the core takes it."""
        cost, numbers = online.parse_cost(params["cost"])
        labels = params["labels"]
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
        *EPOCHS,
        *COMMON,
    )

    def _online(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "perceptron", "batch": params["mode"] == "batch"}


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

    def _online(self, params: dict[str, Any]) -> dict[str, Any]:
        cost = self._cost(params)
        return {"kind": "mira", "k": params["k"], "limit": params["C"], "augment": params["augment"], **cost}


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

    def _online(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "pa", "variant": params["variant"], "limit": params["C"], **self._cost(params)}


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

    def _online(self, params: dict[str, Any]) -> dict[str, Any]:
        return {
            "kind": "arow",
            "gamma": params["gamma"],
            "variance": params["variance"],
            **self._cost(params),
        }


def _cost_matrix(cost: Any, labels: Sequence[str], loss: str) -> NDArray[np.float64] | None:
    """Cost [L, L] of every label where the row's label is right: a number for all, or one a right label."""
    if cost is None:
        return None
    if loss != "log":
        raise ParameterError(f"cost={cost!r} goes with loss='log' alone; leave it out for loss={loss!r}")
    wanted = cost if isinstance(cost, Mapping) else dict.fromkeys(labels, cost)
    unknown = [label for label in wanted if label not in labels]
    if unknown:
        raise ParameterError(f"cost: there is no label {unknown[0]!r}; there are: {' '.join(labels)}")
    try:
        rows = np.array([float(wanted.get(label, 0.0)) for label in labels])
    except (TypeError, ValueError):
        raise ParameterError(f"cost={cost!r}: expected a number, or a mapping of label -> number") from None
    matrix: NDArray[np.float64] = np.repeat(rows[:, None], len(labels), axis=1)
    np.fill_diagonal(matrix, 0.0)
    return matrix


#: Every learner by its name on the command line.
LEARNERS: dict[str, type[Tagger]] = {
    kind.name: kind for kind in (CRF, Perceptron, MIRA, PassiveAggressive, AROW)
}


def load(path: str | os.PathLike[str]) -> Tagger:
    """The tagger of a model file."""
    model = Model.load(path)
    learner = model.meta.get("learner")
    if learner not in LEARNERS:
        raise ModelFileError(
            f"{os.fspath(path)}: made by learner {learner!r}, which this tagwise does not know; "
            f"it knows: {', '.join(LEARNERS)}"
        )
    kind = LEARNERS[learner]
    known = {param.name for param in kind.PARAMS}
    tagger = kind(**{name: value for name, value in model.meta.get("params", {}).items() if name in known})
    tagger.model_ = model
    metrics = model.meta.get("metrics", {})
    tagger.history_ = []
    tagger.objective_ = float(metrics.get("objective", float("nan")))
    tagger.best_iteration_ = int(metrics.get("best_iteration", 0))
    tagger.stopped_ = str(metrics.get("stopped", ""))
    return tagger


def _labels_of(X: Any, y: Sequence[Sequence[str]] | None) -> Sequence[Sequence[str]]:
    """The labels that go with X: those given, or the corpus's own."""
    if y is not None:
        return y
    labels = getattr(X, "labels", None)
    if labels is None:
        raise ParameterError("no labels: pass y, or a Corpus with a label column")
    return labels  # type: ignore[no-any-return]


def _model_of(source: Tagger | Model | str | os.PathLike[str]) -> Model:
    if isinstance(source, Model):
        return source
    if isinstance(source, Tagger):
        return source._fitted()
    return Model.load(source)


def _dev_scorer(
    model: Callable[[Vector], Model],
    recipe: Recipe,
    vocabulary: _core.Vocabulary,
    X: Any,
    gold: Sequence[Sequence[str]],
    n_jobs: int | None,
) -> Callable[[Vector], float]:
    """Score of weights on a dev set that is encoded once: F1 of chunks, or the fraction of right labels."""
    data = recipe.encode(X, vocabulary, n_jobs)
    offsets = data.offsets
    lengths = np.diff(offsets.astype(np.int64)).tolist()
    if lengths != [len(sentence) for sentence in gold]:
        raise CorpusError("dev: sentences and labels differ in length; give every token one label")
    chunks = has_chunks(label for sentence in gold for label in sentence)
    flat = np.array([label for sentence in gold for label in sentence], dtype=object)

    def score(w: Vector) -> float:
        current = model(w)
        path = current.scorer.viterbi(data, n_jobs=n_jobs or 0)
        if chunks:
            return evaluate(gold, _core.name_paths(path, offsets, list(current.labels))).f1
        if len(path) == 0:
            return 0.0
        return float(np.mean(np.array(current.labels, dtype=object)[path] == flat))

    return score


def _log(entry: Iteration) -> None:
    from tagwise.learners.loop import logger

    dev = "" if entry.dev_score is None else f", dev {entry.dev_score:.4f}"
    logger.info(
        "iteration %d: objective %.4f, |gradient| %.3g%s, %.1f s",
        entry.iteration,
        entry.objective,
        entry.gradient_norm,
        dev,
        entry.seconds,
    )
