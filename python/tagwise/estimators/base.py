"""Base class of all estimators: parameters, `fit`, model files."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import Anything, Choice, Domains, Flag, Integer, Real
from tagwise.base.exceptions import CorpusError, ParameterError, TrainingError, not_fitted
from tagwise.base.options import DICTIONARY, Option
from tagwise.base.parameters import checked, checked_parameters, lookup, parameters_of
from tagwise.corpus import labels
from tagwise.dataset import encode
from tagwise.dataset.check import checked_weights
from tagwise.dataset.class_weights import CLASS_WEIGHT
from tagwise.estimators.growth import extended_labels, extended_layout
from tagwise.estimators.limits import Limits, limits_of, valid_gold
from tagwise.estimators.predicting import Predicting
from tagwise.estimators.resuming import checked_checkpoint, checkpointer_of
from tagwise.estimators.scikit import ScikitLearn
from tagwise.estimators.task import (
    TRANSIENT,
    Task,
    dev_inputs,
    dev_scorer,
    warn_empty_tokens,
    warn_if_unsavable,
)
from tagwise.estimators.texts import Texts
from tagwise.estimators.training import add_line, model_of, train_with_progress, training_callbacks
from tagwise.evaluation.scoring import METRICS
from tagwise.features.inputs import Inputs
from tagwise.features.recipe import Recipe, file_columns
from tagwise.features.resolve import recipe_for
from tagwise.features.types import LabelledSentences, Labels
from tagwise.learners.backends import current
from tagwise.learners.checkpoint import Checkpoint
from tagwise.learners.dual import DualPoint
from tagwise.learners.loop import Callback, Result, logger
from tagwise.model.model import Model, transfer
from tagwise.model.prune import prune as prune_model
from tagwise.optimizers import OPTIMIZERS
from tagwise.optimizers.base import Vector
from tagwise.scores.constraints import CONSTRAINTS

if TYPE_CHECKING:
    from typing_extensions import Self


class Tagger(Predicting, Texts, ScikitLearn):
    """Base class of all learners of label sequences: parameters, `fit`, `predict`, model files.

    Constructors store their parameters, `fit` checks them, and a second `fit` discards the first. Use one of the
    subclasses in `tagwise.estimators.LEARNERS`, and start with `tagwise.CRF`.

    Attributes:
        model_: `Model` with the labels, features, weights and constraints that `predict` uses.
        classes_: Labels, in the type they had in training.
        history_: One dict per iteration with its number, objective, seconds and evaluations of the objective, and what
            was measured of gradient norm, dev score, `dual` and `gap` (certificate). Empty after `tagwise.load`.
        objective_: Objective of the kept weights, penalties included.
        stopped_: Parameter that ended training and how, such as "tol=1e-05: certified within 9.0e-06 of the optimum".
        converged_: Whether training reached `tol` or found no better weights.
        best_iteration_: Number of the iteration that was kept: the best on the dev set, or the last.
        gap_: Bound of the relative distance of `objective_` from the optimum, or None without a certificate.
        metric_: Name of the metric of `score` and of dev scores.
        n_features_: Number of features.
        n_nonzero_: Number of features whose weight is not zero.

    >>> import tagwise as tw
    >>> tagger = tw.CRF(features="S1", l2=0.1)
    >>> tagger.get_params()["l2"], tagger.set_params(l2=1.0).l2
    (0.1, 1.0)
    >>> tagger.fit([["a", "dog"]], [["DT", "NN"]]).classes_
    ('DT', 'NN')
    """

    name: ClassVar[str] = ""
    _starts_warm: ClassVar[bool] = True  # whether training can start from the weights of a model
    _point: DualPoint | None = None  # dual point that the steps of a regularisation path pass on
    _resumes: ClassVar[bool] = True  # whether training has iterations and can resume from a checkpoint
    #: Domains of parameters that several learners share. A learner has those that its constructor names.
    _PARAMS: ClassVar[Domains] = {
        "features": Anything(
            "S1, S2, S3, S3(window=2), pos, ner, default, a template, a function, or attributes"
        ),
        "l1": Real(0.0),
        "l2": Real(0.0),
        "optimizer": Choice(("auto", *OPTIMIZERS)),
        "class_weight": CLASS_WEIGHT,
        "pi": Real(0.0, 1.0, open_low=True),
        "max_length": Integer(1, optional=True),
        "shuffle": Flag(),
        "constraints": CONSTRAINTS,
        "dictionary": DICTIONARY,
        "max_iter": Integer(0),
        "tol": Real(0.0),
        "window": Integer(1),
        "patience": Integer(0),
        "start_end": Flag(),
        "min_count": Integer(1, 2**32 - 1),
        "all_pairs": Flag(),
        "n_jobs": Integer(1, optional=True),
        "scoring": Choice(tuple(METRICS), optional=True),
        "random_state": Integer(0),
        "verbose": Integer(0),
    }

    model_: Model
    history_: list[dict[str, Any]]
    objective_: float
    stopped_: str
    converged_: bool
    best_iteration_: int
    gap_: float | None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _, *shown = inspect.signature(cls.__init__).parameters.values()
        cls.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]

    if not TYPE_CHECKING:  # static tools read only the signature of `__init__`

        def __new__(cls, *args: Any, **params: Any) -> Tagger:
            """Reject unknown keyword arguments with a list of valid names and a suggestion."""
            shown = inspect.signature(cls.__init__).parameters
            if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in shown.values()):
                for name in params:
                    if name not in shown:
                        lookup(parameters_of(cls), name, cls.__name__)
            return super().__new__(cls)

    def _store_params(self, params: dict[str, Any]) -> None:
        """Store the parameters of `__init__`, unchanged."""
        for name in parameters_of(type(self)):
            setattr(self, name, params[name])

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise the AttributeError of a missing attribute. That of `partial_fit` names the learners with it."""
            more = ""
            if name == "partial_fit":
                able = sorted(
                    {kind.__name__ for kind in _subclasses(Tagger) if hasattr(kind, name) and kind.name}
                )
                more = f". {', '.join(able)} have it. Other learners continue a model with fit(..., warm_start=model)"
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}{more}", name=name, obj=self
            )

    # --- parameters -------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as they were set.

        Args:
            deep: Ignored, since no parameter is an estimator. scikit-learn passes it.

        Returns:
            A dict of parameter names and values.
        """
        return {name: getattr(self, name) for name in parameters_of(type(self))}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name. `fit` checks their values.

        Args:
            params: Names and values.

        Returns:
            The tagger itself.

        Raises:
            ParameterError: If a name is unknown. The message suggests the closest one.
        """
        for name, value in params.items():
            lookup(parameters_of(type(self)), name, type(self).__name__)
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        text = self._call()
        return (
            f"<{text}: {len(self.classes_)} labels, metric {self.metric_}>"
            if hasattr(self, "model_")
            else text
        )

    def _call(self) -> str:
        """Return the call of the constructor with the parameters that are not at their defaults."""
        changed = [
            f"{name}={value!r}"
            for name, param in parameters_of(type(self)).items()
            if type(value := getattr(self, name)) is not type(param.default) or value != param.default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_(self) -> str:
        """Return the representation for notebooks: the diagram of scikit-learn if that is its display, else a table."""
        from tagwise.base.markup import Markup, safe, table_html
        from tagwise.corpus.label_markup import labels_html

        if diagram := super()._repr_html_():
            return diagram
        head = f'<p style="overflow-wrap:anywhere"><code>{safe(self._call())}</code>'
        if not hasattr(self, "model_"):
            return f"{head} (not fitted)</p>"
        rows: list[tuple[str, str]] = [
            ("labels", Markup(f"{len(self.classes_)}: {labels_html(self.classes_, 20)}")),
            ("weights", f"{self.n_features_:,}, {self.n_nonzero_:,} of them not zero"),
            ("metric", self.metric_),
        ]
        metrics = self.model_.meta.get("metrics", {})
        rows += [
            (name.replace("_", " "), f"{value:.1e}" if name == "gap" else _shown(value))
            for name, value in metrics.items()
        ]
        return f"{head}</p>{table_html(('', 'fitted'), rows, left=2)}"

    # --- training ---------------------------------------------------------------------------------------

    def fit(
        self,
        X: LabelledSentences,
        y: Labels | None = None,
        *,
        dev: LabelledSentences | None = None,
        dev_y: Labels | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
        callbacks: Iterable[Callback] = (),
        warm_start: Tagger | Model | str | os.PathLike[str] | None = None,
        forget: bool = False,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Train on a labelled corpus, or on X and y.

        Ctrl-C raises KeyboardInterrupt. If at least one iteration is complete, the tagger then has the model of the
        last one.

        Args:
            X: A Corpus, the path of a corpus file, or sentences as lists of tokens, of attribute lists or of feature
                dicts. Use `tagwise.read` for a file that needs options, and `tagwise.fit_shards` for encoded shards.
            y: Labels of each sentence: strings, integers, floats or booleans. Predictions have the same type. Leave it
                out for a Corpus, which has its own labels.
            dev: Labelled corpus, or sentences with `dev_y`, that is scored after every iteration. The best iteration is
                kept, and `patience` stops early. Give one whenever there is data to spare.
            dev_y: Labels of `dev`.
            sample_weight: Weight >= 0 of each sentence, which multiplies its loss or the size of its updates. Use it
                for sentences of different reliability. Features come from all sentences, also from those of weight 0.
            callbacks: Functions that are called with an `Iteration` after each iteration. Returning True stops training
                and keeps the model.
            warm_start: Fitted tagger, model or model file whose weights to start from. Its labels and features are kept
                and those of X added. Its word lists (`is_rare`), tag dictionary and the scheme found by
                constraints="auto" are kept too.
            forget: With `warm_start`, use only the labels and features of X, with the weights they had. Set it to True
                for a small model of the new sentences.
            checkpoint: File that the state of training is written to regularly, so that an interrupted run can be
                resumed. Use it for runs of hours. Ignored by HMM, which counts in one pass.

        Returns:
            The tagger itself, fitted.

        Raises:
            ParameterError: If a parameter is outside its domain, or parameters cannot be combined.
            CorpusError: If X has no labelled token, or sentences and labels differ in length.
            TrainingError: If the objective is not finite, gold labels break the constraints, or `checkpoint` belongs to
                another run.

        >>> import tagwise as tw
        >>> X, y = [["the", "dog", "barks"], ["a", "cat"]], [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]
        >>> tagger = tw.CRF(features="S1").fit(X, y)
        >>> tagger.predict([["a", "dog"]])
        [['DET', 'NOUN']]
        """
        params, inputs = checked_parameters(self), Inputs.of_labelled(X)
        warm = None if warm_start is None else model_of(warm_start)
        forget = checked("forget", forget, Flag())
        if forget and warm is None:
            raise ParameterError(
                "forget=True needs a model to start from. Set warm_start, or leave forget out"
            )
        gold, kind = (labels.texts if "partial" in params else labels.single)(inputs.gold(y))
        task = self._task(inputs, gold, params, None if forget else warm)
        self._typed(task, kind, None if forget else warm)
        task.sample_weight = checked_weights(sample_weight, len(task.data))
        if warm is not None:
            task.warm = warm
            task.start = transfer(warm, task.vocabulary, task.layout, task.labels)
        scored = dev_inputs(dev, dev_y)
        if scored is not None:
            dev_y = scored.gold(dev_y)
            task.dev_score = dev_scorer(lambda w: self._model(task, w), task, scored, dev_y)
        if checkpoint is not None:
            task.checkpointer = (
                checkpointer_of(self.name, task, checkpoint, scored, dev_y) if self._resumes else None
            )
            if not self._resumes:
                checked_checkpoint(checkpoint)
                logger.info("%s trains in one pass and writes no checkpoint", self.name)
        task.callbacks = training_callbacks(callbacks, params)
        try:
            self._store_result(task, result := train_with_progress(self._train, task, self.name))
        except TrainingError as error:
            add_line(error, inputs, params)
            raise
        return self._finish(result)

    def _finish(self, result: Result) -> Self:
        """Return the tagger, or raise KeyboardInterrupt if Ctrl-C ended training. The model is kept in both cases."""
        if result.interrupted:
            raise KeyboardInterrupt(
                f"training was interrupted after iteration {len(self.history_)}. The tagger has the model of that "
                "iteration"
            )
        return self

    @staticmethod
    def _typed(task: Task, kind: str | None, before: Model | None) -> None:
        """Set the type of the labels, which must be that of the model if training continues one."""
        if before is not None:
            labels.check_type(kind, before.label_type, "the training set", "the model")
        task.label_type = kind or "str"

    def _store_result(self, task: Task, result: Result) -> Self:
        """Set the learned attributes from the result of training."""
        self.history_ = result.history
        self.objective_ = result.objective
        self.stopped_ = result.reason
        self.converged_ = result.converged
        self.best_iteration_ = result.best_iteration
        model = self._model(task, result.weights).with_meta(**self._meta(task, result))
        self.model_ = replace(model, label_type=task.label_type)
        self.gap_ = self._metrics().get("gap")
        return self

    def _task(
        self, X: Inputs, gold: Sequence[Sequence[str]], params: dict[str, Any], before: Model | None = None
    ) -> Task:
        """Encode the training set and lay out its features, after those of `before` if training continues a model."""
        warn_empty_tokens(X)
        known = (None, None) if before is None else (before.constraints, before.dictionary)
        gold = valid_gold(params, X, gold, known[0])
        found = encode.collect_labels(gold)
        if not found:
            raise CorpusError("the training set has no tokens. Pass at least one labelled sentence")
        names = extended_labels(before, found)
        recipe, vocabulary, data = self._encoded(X, params, before)
        data = encode.with_labels(data, gold, names)
        layout, places = extended_layout(before, self._layout(data, len(vocabulary), len(names), params))
        limits, start = limits_of(params, names, data, X, gold, *known), np.zeros(len(layout))
        return Task(data, layout, names, vocabulary, recipe, params, start, X, limits=limits, places=places)

    @staticmethod
    def _encoded(
        X: Inputs, params: dict[str, Any], before: Model | None = None
    ) -> tuple[Recipe, _core.Vocabulary, _core.Dataset]:
        """Encode the sentences as attribute ids, in a new vocabulary or in a grown copy of that of `before`."""
        recipe = recipe_for(params["features"], X)
        if before is not None and recipe.is_equivalent_to(before.recipe):
            recipe = before.recipe  # keeps its word lists, so that old sentences keep their attributes
        if before is None:
            warn_if_unsavable(recipe)
        recipe = recipe.learned(X)
        vocabulary = _core.Vocabulary() if before is None else before.vocabulary.growing()
        data = recipe.encode(X, vocabulary, params["n_jobs"])
        if params["min_count"] > 1:
            data = _core.prune(vocabulary, data, params["min_count"])
        data = recipe.with_vectors(data, X, vocabulary)
        vocabulary.lock()
        return recipe, vocabulary, data

    def _layout(
        self, data: _core.Dataset, n_attributes: int, n_labels: int, params: dict[str, Any]
    ) -> _core.Layout:
        """Return the layout of the features that exist."""
        return _core.Layout.build(
            data, n_attributes, n_labels, all_pairs=params["all_pairs"], start_end=params["start_end"]
        )

    def _model(self, task: Task, w: Vector) -> Model:
        """Return the model with these weights."""
        limits = task.limits or Limits()
        scorer = current().scorer(task.layout, w.astype(np.float32), limits.forbidden, False)
        return Model(
            tuple(task.labels),
            task.recipe,
            task.vocabulary,
            scorer,
            constraints=limits.constraints,
            dictionary=limits.dictionary,
        )

    def _train(self, task: Task) -> Result:
        """Train on the task. Every learner implements this method."""
        raise TypeError(f"{type(self).__name__} is not a learner. Use one of tagwise.estimators.LEARNERS")

    def _meta(self, task: Task, result: Result) -> dict[str, Any]:
        """Return the entries on training for the model file. They do not depend on the machine or the clock."""
        kept = {
            name: value.to_json() if isinstance(value, Option) else value
            for name, value in task.params.items()
            if name not in TRANSIENT
        }
        kept["features"] = task.recipe.name
        metrics: dict[str, Any] = {
            "iterations": len(result.history),
            "best_iteration": result.best_iteration,
            "objective": result.objective,
            "stopped": result.reason,
            "converged": result.converged,
        }
        entries = reversed(result.history)  # the best iteration is usually near the end
        last: dict[str, Any] = next((e for e in entries if e["iteration"] == result.best_iteration), {})
        metrics |= {name: last[name] for name in ("dual", "gap") if last.get(name) is not None}
        scored = task.dev_score is not None or "dev_score" in self._metrics()  # else no entry has a dev score
        scores = [e["dev_score"] for e in result.history if "dev_score" in e] if scored else []
        if scores:
            metrics["dev_score"] = max(scores)
        meta = {"learner": self.name, "params": kept, "metric": task.metric, "metrics": metrics}
        return {**meta, **file_columns(task.recipe, task.X)}

    def _metrics(self) -> dict[str, Any]:
        """Return the training metrics of the current model, or an empty dict before the first `fit`."""
        found: dict[str, Any] = self.model_.meta.get("metrics", {}) if hasattr(self, "model_") else {}
        return found

    # --- hooks of `Predicting` ---------------------------------------------------------------------------

    def _fitted(self) -> Model:
        if not hasattr(self, "model_"):
            raise not_fitted(
                f"this {type(self).__name__} is not fitted. Call fit, or load a model with tagwise.load"
            )
        return self.model_

    def _jobs(self) -> int | None:
        return parameters_of(type(self))["n_jobs"].check(self.n_jobs)  # type: ignore[attr-defined,no-any-return]

    # --- files ------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, prune: bool = False, format: str = "tagwise") -> None:
        """Write the model to one file, which `tagwise.load` reads.

        Args:
            path: Path of the file. An existing file is replaced atomically.
            prune: Leave out features of weight zero. Set it to True for a smaller file. Predictions do not change.
            format: "tagwise", or that of another program: "crfsuite", "wapiti", "crfpp", "crfpp-text". See
                `Model.save`.

        Raises:
            NotFittedError: If `fit` has not been called.
            ModelFileError: If the format cannot express the model.
            FileError: If the file cannot be written.
        """
        model = self._fitted()
        (prune_model(model)[0] if checked("prune", prune, Flag()) else model).save(path, format=format)


def _subclasses(kind: type[Tagger]) -> Iterator[type[Tagger]]:
    """Yield all subclasses of a class."""
    for below in kind.__subclasses__():
        yield below
        yield from _subclasses(below)


def _shown(value: Any) -> str:
    return f"{value:,.4f}" if isinstance(value, float) else str(value)
