"""What every estimator shares: parameters, `fit` along the straight line, files."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import Anything, Choice, Domains, Flag, Integer, Real
from tagwise.base.exceptions import CorpusError, ParameterError, TrainingError, not_fitted
from tagwise.base.parameters import checked, lookup, parameters_of
from tagwise.corpus import labels
from tagwise.dataset import encode
from tagwise.dataset.check import checked_weights
from tagwise.dataset.class_weights import CLASS_WEIGHT
from tagwise.estimators.growth import grown, joined
from tagwise.estimators.limits import Limits, lawful_gold, limits_of
from tagwise.estimators.predicting import Predicting
from tagwise.estimators.resuming import checked_checkpoint, keeper_of
from tagwise.estimators.scikit import ScikitLearn
from tagwise.estimators.task import TRANSIENT, Task, dev_scorer
from tagwise.estimators.texts import Texts
from tagwise.estimators.training import listeners, model_of, watched, with_line
from tagwise.features.inputs import Inputs
from tagwise.features.recipe import Recipe, file_columns
from tagwise.features.resolve import recipe_for
from tagwise.learners.backends import current
from tagwise.learners.checkpoint import Checkpoint
from tagwise.learners.dual import Point
from tagwise.learners.loop import Callback, Result, logger
from tagwise.model.model import Model, transfer
from tagwise.model.prune import prune as prune_model
from tagwise.optimizers import OPTIMIZERS
from tagwise.optimizers.base import Vector
from tagwise.scores.constraints import CONSTRAINTS


class Tagger(Predicting, Texts, ScikitLearn):
    """A learner of label sequences: parameters in, `fit`, `predict`.

    >>> import tagwise as tw
    >>> tagger = tw.CRF(features="S1", l2=0.1)
    >>> tagger.get_params()["l2"], tagger.set_params(l2=1.0).l2
    (0.1, 1.0)
    >>> tagger.fit([["a", "dog"]], [["DT", "NN"]]).classes_
    ('DT', 'NN')
    """

    name: ClassVar[str] = ""
    starts_warm: ClassVar[bool] = True  # whether training can begin from given weights
    _point: Point | None = None  # while a regularisation path is walked: where dual ascent begins, and ends
    resumes: ClassVar[bool] = True  # whether training goes by iterations, and so can go on from a checkpoint
    #: Domains of parameters that several learners have; those of a learner are the names of its constructor.
    PARAMS: ClassVar[Domains] = {
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
        "dictionary": Integer(1, optional=True),
        "dictionary_share": Real(0.0, 1.0),
        "max_iter": Integer(0),
        "tol": Real(0.0),
        "window": Integer(1),
        "patience": Integer(0),
        "start_end": Flag(),
        "min_count": Integer(1, 2**32 - 1),
        "all_pairs": Flag(),
        "n_jobs": Integer(1, optional=True),
        "seed": Integer(0),
        "verbose": Integer(0),
    }

    model_: Model
    history_: list[dict[str, Any]]
    objective_: float
    stopped_: str
    best_iteration_: int

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _, *shown = inspect.signature(cls.__init__).parameters.values()
        cls.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]

    if not TYPE_CHECKING:  # tools that read the sources see `__init__` alone

        def __new__(cls, *args: Any, **params: Any) -> Tagger:
            """Reject unknown keyword arguments with a list of valid names and a suggestion."""
            shown = inspect.signature(cls.__init__).parameters
            if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in shown.values()):
                for name in params:
                    if name not in shown:
                        lookup(parameters_of(cls), name, cls.__name__)
            return super().__new__(cls)

    def _take(self, given: dict[str, Any]) -> None:
        """Keep the parameters, which are among the names of `__init__`, as they were given."""
        for name in parameters_of(type(self)):
            setattr(self, name, given[name])

    # --- parameters -------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, as they were set."""
        return {name: getattr(self, name) for name in parameters_of(type(self))}

    def set_params(self, **params: Any) -> Tagger:
        """Set parameters by name; values are checked by `fit`."""
        for name, value in params.items():
            lookup(parameters_of(type(self)), name, type(self).__name__)
            setattr(self, name, value)
        return self

    def checked(self) -> dict[str, Any]:
        """Parameters, each inside its domain."""
        return {name: param.check(getattr(self, name)) for name, param in parameters_of(type(self)).items()}

    def __repr__(self) -> str:
        changed = [
            f"{name}={value!r}"
            for name, param in parameters_of(type(self)).items()
            if type(value := getattr(self, name)) is not type(param.default) or value != param.default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _repr_html_(self) -> str:
        """In a notebook: scikit-learn's diagram where that is the display, else what it is and what training left."""
        from tagwise.corpus.markup import safe, table_html

        if diagram := super()._repr_html_():
            return diagram
        head = f'<p style="overflow-wrap:anywhere"><code>{safe(repr(self))}</code>'
        if not hasattr(self, "model_"):
            return f"{head} (not fitted)</p>"
        labels = " ".join(map(str, self.classes_[:20])) + (" ..." if len(self.classes_) > 20 else "")
        rows = [
            ("labels", f"{len(self.classes_)}: {labels}"),
            ("weights", f"{self.n_features_:,}, {self.n_nonzero_:,} of them not zero"),
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
        X: Any,
        y: Sequence[Sequence[Any]] | None = None,
        *,
        dev: Any = None,
        dev_y: Sequence[Sequence[Any]] | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
        callbacks: Iterable[Callback] = (),
        warm_start: Tagger | Model | str | os.PathLike[str] | None = None,
        forget: bool = False,
        checkpoint: Checkpoint | None = None,
    ) -> Tagger:
        """Train on a labelled corpus, or on X and y.

        Args:
            X: a Corpus, or sentences: lists of tokens, of attribute lists, or of feature dicts. Encoded shards are
                trained on by `tagwise.fit_shards`.
            y: the labels of each sentence, strings, integers, floats or booleans, which predictions are too; a Corpus
                brings its own.
            dev: a labelled corpus (or X with `dev_y`) that is scored after every iteration; the best iterate is kept.
            dev_y: labels of `dev`.
            sample_weight: a weight >= 0 for each sentence: what its loss counts, or how long its steps are where a
                learner goes sentence by sentence. Features are those of all sentences, whatever they weigh.
            callbacks: called with an `Iteration` after each; True stops training and keeps the model.
            warm_start: a fitted tagger, a model or a model file whose weights to start from. Its labels and features
                stay, with those of X beside them; so do word lists that its features learnt (`is_rare`), its tag
                dictionary, and the scheme that constraints="auto" found.
            forget: with `warm_start`: have the labels and features of X alone, with the weights that they had.
            checkpoint: keep the state of training in a file every so often, and go on from it if asked to. A hidden
                Markov model, which is counted in one pass, keeps none.

        Ctrl-C raises KeyboardInterrupt, as ever; where an iteration was reached, the tagger has its model.
        """
        params, inputs = self.checked(), Inputs.of(X)
        warm = None if warm_start is None else model_of(warm_start)
        forget = checked("forget", forget, Flag())
        if forget and warm is None:
            raise ParameterError(
                "forget=True is about the model of warm_start; give one, or leave forget out"
            )
        gold, kind = labels.texts(inputs.gold(y))
        task = self._task(inputs, gold, params, None if forget else warm)
        self._typed(task, kind, None if forget else warm)
        task.sample_weight = checked_weights(sample_weight, len(task.data))
        if warm is not None:
            task.warm = warm
            task.start = transfer(warm, task.vocabulary, task.layout, task.labels)
        scored = None if dev is None else Inputs.of(dev)
        if scored is not None:
            dev_y = scored.gold(dev_y)
            task.dev_score = dev_scorer(lambda w: self._model(task, w), task, scored, dev_y)
        if checkpoint is not None:
            task.keeper = keeper_of(self.name, task, checkpoint, scored, dev_y) if self.resumes else None
            if not self.resumes:
                checked_checkpoint(checkpoint)
                logger.info("%s is counted in one pass: it keeps no checkpoint, and needs none", self.name)
        task.callbacks = listeners(callbacks, params)
        try:
            self._keep(task, result := watched(self._train, task, self.name))
        except TrainingError as error:
            raise TrainingError(with_line(str(error), inputs, params)) from error
        return self._ended(result)

    def _ended(self, result: Result) -> Tagger:
        """The tagger, unless Ctrl-C ended its training: then that is raised, with the model kept on the tagger."""
        if result.interrupted:
            raise KeyboardInterrupt(
                f"training was interrupted after iteration {len(self.history_)}; the tagger has the model of then"
            )
        return self

    @staticmethod
    def _typed(task: Task, kind: str | None, before: Model | None) -> None:
        """Note the type of the labels, which is that of a model that grows."""
        if before is not None:
            labels.check_type(kind, before.label_type, "the training set", "the model")
        task.label_type = kind or "str"

    def _keep(self, task: Task, result: Result) -> Tagger:
        """Be fitted with what training left."""
        self.history_ = result.history
        self.objective_ = result.objective
        self.stopped_ = result.reason
        self.best_iteration_ = result.best_iteration
        model = self._model(task, result.weights).with_meta(**self._meta(task, result))
        self.model_ = replace(model, label_type=task.label_type)
        return self

    def _task(
        self, X: Inputs, gold: Sequence[Sequence[str]], params: dict[str, Any], before: Model | None = None
    ) -> Task:
        """Encode the training set and lay its features out, behind those of a model that is to grow."""
        known = (None, None) if before is None else (before.constraints, before.dictionary)
        gold = lawful_gold(params, X, gold, known[0])
        found = encode.collect_labels(gold)
        if not found:
            raise CorpusError("the training set has no token; give at least one labelled sentence")
        names = joined(before, found)
        recipe, vocabulary, data = self._encoded(X, params, before)
        data = encode.with_labels(data, gold, names)
        layout, places = grown(before, self._layout(data, len(vocabulary), len(names), params))
        limits, start = limits_of(params, names, data, X, gold, *known), np.zeros(len(layout))
        return Task(data, layout, names, vocabulary, recipe, params, start, X, limits=limits, places=places)

    @staticmethod
    def _encoded(
        X: Inputs, params: dict[str, Any], before: Model | None = None
    ) -> tuple[Recipe, _core.Vocabulary, _core.Dataset]:
        """The sentences as ids of attributes, in a vocabulary of their own or in that of a model that is to grow."""
        recipe = recipe_for(params["features"], X)
        if before is not None and recipe.does_the_same_as(before.recipe):
            recipe = before.recipe  # with the lists it learnt: old sentences keep their attributes
        recipe = recipe.learned(X)
        vocabulary = _core.Vocabulary() if before is None else before.vocabulary.growing()
        data = recipe.encode(X, vocabulary, params["n_jobs"])
        if params["min_count"] > 1:
            data = encode.prune(vocabulary, data, params["min_count"])
        data = recipe.with_vectors(data, X, vocabulary)
        vocabulary.lock()
        return recipe, vocabulary, data

    def _layout(
        self, data: _core.Dataset, n_attributes: int, n_labels: int, params: dict[str, Any]
    ) -> _core.Layout:
        """Which features exist."""
        return _core.Layout.build(
            data, n_attributes, n_labels, all_pairs=params["all_pairs"], start_end=params["start_end"]
        )

    def _model(self, task: Task, w: Vector) -> Model:
        """The model of these weights."""
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
        """Weights of the training set: what a learner is."""
        raise TypeError(f"{type(self).__name__} is no learner; use one of tagwise.LEARNERS")

    def _meta(self, task: Task, result: Result) -> dict[str, Any]:
        """What the model file says of its training; nothing in it depends on the machine or the clock."""
        kept = {name: value for name, value in task.params.items() if name not in TRANSIENT}
        kept["features"] = task.recipe.name
        metrics: dict[str, Any] = {
            "iterations": len(result.history),
            "best_iteration": result.best_iteration,
            "objective": result.objective,
            "stopped": result.reason,
        }
        entries = reversed(result.history)  # the best of a long history is among its last
        last: dict[str, Any] = next((e for e in entries if e["iteration"] == result.best_iteration), {})
        metrics |= {name: last[name] for name in ("dual", "gap") if last.get(name) is not None}
        scored = task.dev_score is not None or "dev_score" in self._metrics()  # else no entry has one
        scores = [e["dev_score"] for e in result.history if e["dev_score"] is not None] if scored else []
        if scores:
            metrics["dev_score"] = max(scores)
        return {"learner": self.name, "params": kept, "metrics": metrics, **file_columns(task.recipe, task.X)}

    def _metrics(self) -> dict[str, Any]:
        """What the model says of its training so far; nothing before there is one."""
        found: dict[str, Any] = self.model_.meta.get("metrics", {}) if hasattr(self, "model_") else {}
        return found

    # --- what prediction needs --------------------------------------------------------------------------

    def _fitted(self) -> Model:
        if not hasattr(self, "model_"):
            raise not_fitted(
                f"this {type(self).__name__} is not fitted; call fit, or load a model with tagwise.load"
            )
        return self.model_

    def _jobs(self) -> int | None:
        return parameters_of(type(self))["n_jobs"].check(self.n_jobs)  # type: ignore[attr-defined,no-any-return]

    # --- files ------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, prune: bool = False, format: str = "tagwise") -> None:
        """Write the model to one file; `tagwise.load` reads it back.

        Args:
            path: where to.
            prune: leave out features of weight zero; predictions stay the same.
            format: "tagwise", or "crfsuite", "wapiti", "crfpp", "crfpp-text": see `Model.save`.
        """
        model = self._fitted()
        (prune_model(model)[0] if checked("prune", prune, Flag()) else model).save(path, format=format)


def _shown(value: Any) -> str:
    return f"{value:,.4f}" if isinstance(value, float) else str(value)
