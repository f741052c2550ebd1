"""Base class of estimators that learn sentence by sentence."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import Anything, Domains, Flag, Integer, Text
from tagwise.base.exceptions import ParameterError, TrainingError
from tagwise.base.imports import path_of
from tagwise.base.options import LOOKBACK
from tagwise.base.parameters import checked, checked_parameters, parameters_of, require
from tagwise.corpus import labels
from tagwise.dataset.check import checked_weights
from tagwise.estimators.base import Tagger
from tagwise.estimators.growth import ARRAYS, NarrowedTask, weights_of
from tagwise.estimators.limits import Limits
from tagwise.estimators.scikit import UNCHANGED, Request
from tagwise.estimators.task import Task, dev_inputs, dev_scorer
from tagwise.estimators.training import add_line, train_with_progress, training_callbacks
from tagwise.features.inputs import Inputs
from tagwise.features.types import LabelledSentences, Labels
from tagwise.learners import costs, online
from tagwise.learners.loop import Callback, Result
from tagwise.model.model import Model
from tagwise.model.prune import prune as prune_model
from tagwise.optimizers.base import Vector
from tagwise.scores.entities import entity_table
from tagwise.scores.lookback import LookbackWeights

if TYPE_CHECKING:
    from typing_extensions import Self

#: Values of the parameters of a first-order learner.
FIRST_ORDER: dict[str, tuple[Any, ...]] = {"lookback": (None,)}


@dataclass(frozen=True)
class RuleContext:
    """Parameters and labels that an update rule is built from without a task."""

    params: dict[str, Any]
    labels: list[str]
    label_type: str


class Options(TypedDict):
    """Options of all online learners of the core."""

    epochs: _core.Epochs
    limits: _core.Limits
    sample_weight: NDArray[np.float32] | None


def epochs_of(params: Mapping[str, Any]) -> _core.Epochs:
    """Return the settings of the passes over a training set."""
    return _core.Epochs(
        average=params["average"],
        batch=params.get("mode") == "batch",
        shuffle=params["shuffle"],
        seed=params["random_state"],
        shards=params["parts"],
    )


def run_epochs(learner: online.Learner, task: Task) -> Result:
    """Train with the loop that all online learners share."""
    params = task.params
    return online.train(
        learner,
        params["max_iter"],
        params["patience"],
        averaged=params["average"],
        dev_score=task.dev_score,
        callbacks=task.callbacks,
        checkpointer=task.checkpointer,
        ballot=task.ballot,
    )


def _part(task: Task) -> NarrowedTask | None:
    """Return the part of the task with the features of its sentences, or None if training needs all weights."""
    whole = task.params["parts"] > 1 or task.dev_score or task.checkpointer or task.ballot
    return None if whole else NarrowedTask.of(task.layout, task.data)


class OnlineTagger(Tagger):
    """Base class of learners that update after every sentence.

    `partial_fit` continues training with more sentences, attributes and labels. `save(path, state=True)` keeps the
    state that it needs to continue exactly.

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
    """

    _PARAMS: ClassVar[Domains] = {
        "cost": Anything("accuracy, f1, precision_recall(alpha), ..., or a function", named=True),
        "lookback": LOOKBACK,
        "max_iter": Integer(1),
        "average": Flag(),
        "parts": Integer(1),
    }

    state_: dict[str, Any]

    def _rule(self, task: Task | RuleContext) -> _core.Rule:
        """Return the update rule of this learner."""
        raise TypeError(f"{type(self).__name__} is not a learner. Use one of tagwise.estimators.LEARNERS")

    def _train(self, task: Task) -> Result:
        return self._learn(task, {"weights": task.start} if task.start.any() else None)

    def _learn(self, task: Task, state: dict[str, Any] | None) -> Result:
        """Run epochs from a state of training, or from zero weights."""
        params, lookback = task.params, LookbackWeights.of(task.params)
        options: Options = {
            "epochs": epochs_of(params),
            "limits": (task.limits or Limits()).native,
            "sample_weight": None if task.sample_weight is None else task.sample_weight.astype(np.float32),
        }
        self.__dict__.pop("state_", None)
        if lookback is not None:
            require("lookback", params, {"mode": ("online",), "parts": (1,)})
            return run_epochs(self._lookback_core(task, lookback, options), task)
        part = None if state is None else _part(task)
        if part is not None and state is not None:
            learner = _core.Online(part.data, part.layout, self._rule(task), **options)
            learner.restore(part.narrow_state(state))
            result = run_epochs(learner, task)
            self.state_ = part.widen_state(state, learner.state(), params.get("variance", 1.0))
            result.weights = weights_of(self.state_, params["average"])
            return result
        learner = _core.Online(task.data, task.layout, self._rule(task), **options)
        if state is not None:
            learner.restore(state)
        result = run_epochs(learner, task)
        self.state_ = learner.state()
        return result

    # --- continuing ---------------------------------------------------------------------------------------

    def partial_fit(
        self,
        X: LabelledSentences,
        y: Labels | None = None,
        *,
        max_iter: int = 1,
        dev: LabelledSentences | None = None,
        dev_y: Labels | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
        callbacks: Iterable[Callback] = (),
    ) -> Self:
        """Continue training with these sentences.

        New attributes and labels get features with weights of 0 for all earlier steps. Word lists learnt by the
        features (`is_rare`) and the scheme found by constraints="auto" do not change, and a tag dictionary gets the new
        words. On the same sentences and parameters, `fit` and `partial_fit` together give exactly the weights of a
        longer `fit`. If the tagger was loaded from a file without the state of training, a new average starts from the
        weights of the file.

        Each call takes time in proportion to the size of the model, so pass many sentences at once.

        Args:
            X: Sentences, as in `fit`. If the tagger is not fitted, this call is a `fit` with `max_iter` epochs.
            y: Labels, as in `fit`.
            max_iter: Number of passes over X. Raise it to 2 to 5 if X is small and must be learnt well.
            dev: Labelled corpus that is scored after every epoch, as in `fit`.
            dev_y: Labels of `dev`.
            sample_weight: Weight >= 0 of each sentence, as in `fit`.
            callbacks: Functions that are called after each epoch, as in `fit`.

        Returns:
            The tagger itself.

        Raises:
            ParameterError: If the tagger has a kernel, voters or `lookback`, which cannot be continued.
            CorpusError: If sentences and labels differ in length, or have another type of labels than the model.
        """
        params = {
            **checked_parameters(self),
            "max_iter": parameters_of(type(self))["max_iter"].check(max_iter),
        }
        require("partial_fit", params, {**FIRST_ORDER, "kernel": (None,), "voters": (0,)})
        fitted = hasattr(self, "model_")
        inputs = Inputs.of_labelled(X)
        gold, kind = labels.texts(inputs.gold(y))
        state = self._state() if fitted else None
        task = (
            self._task(inputs, gold, params)
            if state is None
            else self._extended_task(inputs, gold, params, state)
        )
        self._typed(task, kind, self.model_ if fitted else None)
        task.sample_weight = checked_weights(sample_weight, len(task.data))
        scored = dev_inputs(dev, dev_y)
        if scored is not None:
            task.dev_score = dev_scorer(lambda w: self._model(task, w), task, scored, dev_y)
        task.callbacks = training_callbacks(callbacks, params)
        try:
            result = train_with_progress(lambda task: self._learn(task, state), task, self.name)
        except TrainingError as error:
            add_line(error, inputs, params)
            raise
        if fitted:
            before = len(self.history_)
            for entry in result.history:
                entry["iteration"] += before
            result.history[:0] = self.history_
            result.best_iteration += before
        self._store_result(task, result)
        self._finish(result)
        return self

    def set_partial_fit_request(
        self, *, sample_weight: Request = UNCHANGED, dev: Request = UNCHANGED, dev_y: Request = UNCHANGED
    ) -> Self:
        """Set which metadata scikit-learn passes to `partial_fit`, as `set_fit_request` does for `fit`.

        Args:
            sample_weight: Whether to pass weights of sentences.
            dev: Whether to pass the development set.
            dev_y: Whether to pass the labels of `dev`.

        Returns:
            The tagger itself.
        """
        return self._request("partial_fit", sample_weight=sample_weight, dev=dev, dev_y=dev_y)

    def _state(self) -> dict[str, Any]:
        """Return the current state of training, the one in the model file, or the weights of the model alone."""
        model = self._fitted()
        if hasattr(self, "state_"):
            return dict(self.state_)
        kept, file = model.meta.get("state"), model.file
        if kept is None or file is None:
            return {"weights": model.scorer.weights.astype(np.float64)}
        state: dict[str, Any] = {"steps": float(kept["steps"]), "epochs": int(kept["epochs"])}
        state["weights"] = file.array("state.weights").view(np.float32).astype(np.float64)
        return state | {name: file.array(f"state.{name}") for name in ("sums", "variance")}

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and pickles. It includes a state of training that is still in the model file."""
        kept = dict(self.__dict__)
        if hasattr(self, "model_") and "state" in self.model_.meta and self.model_.file is not None:
            kept["state_"] = self._state()
        return kept

    def _extended_task(
        self, X: Inputs, gold: Sequence[Sequence[str]], params: dict[str, Any], state: dict[str, Any]
    ) -> Task:
        """Return the task of more sentences, with the features of the model. The state gets the new layout."""
        model = self._fitted()
        task = self._task(X, gold, {**params, "features": model.recipe}, model)
        task.params = params
        for name, fill in zip(ARRAYS, (0.0, 0.0, params.get("variance", 1.0))):
            if len(state.get(name, ())):
                wide = np.full(len(task.layout), fill)
                wide[task.places] = state[name]
                state[name] = wide
        return task

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        prune: bool = False,
        format: str = "tagwise",
        state: bool = False,
    ) -> None:
        """Write the model to one file, which `tagwise.load` reads.

        Args:
            path: Path of the file. An existing file is replaced atomically.
            prune: Leave out features of weight zero. Set it to True for a smaller file. Predictions do not change.
            format: "tagwise", or that of another program: "crfsuite", "wapiti", "crfpp", "crfpp-text". See
                `Model.save`.
            state: Also write the state from which `partial_fit` continues exactly, 12 to 20 bytes per feature. Set it
                to True for models that you continue to train.

        Raises:
            ParameterError: If `state` is combined with `prune` or another format.
            NotFittedError: If `fit` has not been called.
            ModelFileError: If the format cannot express the model.
            FileError: If the file cannot be written.
        """
        model = self._fitted()
        prune, state = (checked(name, flag, Flag()) for name, flag in (("prune", prune), ("state", state)))
        format = checked("format", format, Text())
        if not state:
            (prune_model(model)[0] if prune else model).save(path, format=format)
            return
        if format != "tagwise":
            raise ParameterError(
                f"state=True: a {format} file cannot store the state. Leave state or format out"
            )
        if prune:
            raise ParameterError("prune=True removes features that state=True needs. Set only one of them")
        found = self._state()
        weights = found["weights"].astype(np.float32).view(np.uint32)
        extra = {"state.weights": weights}
        extra |= {f"state.{name}": found.get(name, np.zeros(0)) for name in ("sums", "variance")}
        numbers = {"steps": found.get("steps", 0.0), "epochs": found.get("epochs", 0)}
        model.with_meta(state=numbers).save(path, extra)

    def _lookback_core(self, task: Task, lookback: LookbackWeights, options: Options) -> _core.HistoryOnline:
        """Return the learner whose search uses labels further back."""
        words = None
        if lookback.document:
            if not task.X.has_documents:
                raise ParameterError(
                    "Lookback.document=True needs a corpus that marks its documents (-DOCSTART- rows, # newdoc). "
                    "Train on one, or leave document out"
                )
            tokens = task.X.words("Lookback.document=True")
            ids: dict[str, int] = {}
            flat = (ids.setdefault(word, len(ids)) for sentence in tokens for word in sentence)
            words = (np.fromiter(flat, dtype=np.uint32), task.X.starts)
        terms = lookback.terms(len(task.labels))
        learner = _core.HistoryOnline(task.data, task.layout, terms, self._rule(task), words=words, **options)
        start = np.concatenate([task.start, task.lookback_start(lookback)])
        if start.any():
            learner.restore({"weights": start})
        return learner

    def _model(self, task: Task, w: Vector) -> Model:
        lookback = LookbackWeights.of(task.params)
        if lookback is None:
            return super()._model(task, w)
        n = len(task.layout)
        return replace(super()._model(task, w[:n]), lookback=lookback.with_weights(w[n:]))

    def _meta(self, task: Task, result: Result) -> dict[str, Any]:
        meta = super()._meta(task, result)
        cost = task.params.get("cost")
        if callable(cost):
            try:
                meta["params"]["cost"] = path_of(cost, costs.COST_FUNCTION)
            except ParameterError:
                meta["params"]["cost"] = "function"  # only training needs the function
        return meta

    @staticmethod
    def _cost(task: Task | RuleContext) -> _core.Cost:
        """Return the cost of the parameters in the form of the core."""
        cost, numbers = costs.parse_cost(task.params["cost"])
        if callable(cost):
            cost = costs.named(cost, labels.named(task.labels, task.label_type))
        augment = task.params.get("augment", False)
        return _core.Cost(cost, numbers, entity_table(task.labels), augment=augment)
