"""What estimators that learn sentence by sentence share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypedDict

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import Anything, Domains, Flag, Integer, Text
from tagwise.base.exceptions import ParameterError, TrainingError
from tagwise.base.imports import path_of
from tagwise.base.parameters import checked, parameters_of, require
from tagwise.corpus import labels
from tagwise.dataset.check import checked_weights
from tagwise.estimators.base import Tagger
from tagwise.estimators.growth import ARRAYS, Part, weights_of
from tagwise.estimators.limits import Limits
from tagwise.estimators.task import Task, dev_scorer
from tagwise.estimators.training import listeners, watched, with_line
from tagwise.features.inputs import Inputs
from tagwise.learners import costs, online
from tagwise.learners.loop import Callback, Result
from tagwise.model.model import Model
from tagwise.model.prune import prune as prune_model
from tagwise.optimizers.base import Vector
from tagwise.scores.entities import entity_table
from tagwise.scores.lookback import HISTORY, Lookback

#: Parameters of a learner that does not look further back than one label.
FIRST_ORDER: dict[str, tuple[Any, ...]] = {"history": (None,), "document": (False,)}


@dataclass(frozen=True)
class RuleContext:
    """What an update rule is built from if there is no task."""

    params: dict[str, Any]
    labels: list[str]
    label_type: str


class Options(TypedDict):
    """What every online learner of the core is told beside its rule."""

    epochs: _core.Epochs
    limits: _core.Limits
    sample_weight: NDArray[np.float32] | None


def epochs_of(params: Mapping[str, Any]) -> _core.Epochs:
    """How the parameters go through a training set."""
    return _core.Epochs(
        average=params["average"],
        batch=params.get("mode") == "batch",
        shuffle=params["shuffle"],
        seed=params["seed"],
        shards=params["parts"],
    )


def run_epochs(learner: online.Learner, task: Task) -> Result:
    """Train by the loop that all online learners share."""
    params = task.params
    return online.train(
        learner,
        params["epochs"],
        params["patience"],
        averaged=params["average"],
        dev_score=task.dev_score,
        callbacks=task.callbacks,
        keeper=task.keeper,
        ballot=task.ballot,
    )


def _part(task: Task) -> Part | None:
    """The part of a task that its sentences see, where that is enough: nobody looks at all weights along the way."""
    whole = task.params["parts"] > 1 or task.dev_score or task.keeper or task.ballot
    return None if whole else Part.of(task.layout, task.data)


class OnlineTagger(Tagger):
    """A learner that updates after every sentence; `history_` counts wrong tokens and updates of each epoch.

    With a dev set `history_` has the score of each epoch, and with averaging that of the plain weights beside it
    (`plain_dev_score`). `partial_fit` goes on with more sentences, attributes and labels; `save(path, state=True)`
    keeps what it needs to go on as if training had never stopped.
    """

    PARAMS: ClassVar[Domains] = {
        "cost": Anything("accuracy, f1, precision_recall(alpha), ..., or a function", named=True),
        "history": HISTORY,
        "pool": Integer(2, 1000),
        "document": Flag(),
        "epochs": Integer(1),
        "average": Flag(),
        "parts": Integer(1),
    }

    state_: dict[str, Any]

    def _rule(self, task: Task | RuleContext) -> _core.Rule:
        """What this learner does with a wrong guess."""
        raise TypeError(f"{type(self).__name__} is no learner; use one of tagwise.LEARNERS")

    def _train(self, task: Task) -> Result:
        return self._learn(task, {"weights": task.start} if task.start.any() else None)

    def _learn(self, task: Task, state: dict[str, Any] | None) -> Result:
        """Run epochs from a state of training, or from nothing."""
        params, lookback = task.params, Lookback.of(task.params)
        options: Options = {
            "epochs": epochs_of(params),
            "limits": (task.limits or Limits()).native,
            "sample_weight": None if task.sample_weight is None else task.sample_weight.astype(np.float32),
        }
        self.__dict__.pop("state_", None)
        if lookback is not None:
            return run_epochs(self._further_back(task, lookback, options), task)
        part = None if state is None else _part(task)
        if part is not None and state is not None:
            learner = _core.Online(part.data, part.layout, self._rule(task), **options)
            learner.restore(part.inside(state))
            result = run_epochs(learner, task)
            self.state_ = part.outside(state, learner.state(), params.get("variance", 1.0))
            result.weights = weights_of(self.state_, params["average"])
            return result
        learner = _core.Online(task.data, task.layout, self._rule(task), **options)
        if state is not None:
            learner.restore(state)
        result = run_epochs(learner, task)
        self.state_ = learner.state()
        return result

    # --- going on ---------------------------------------------------------------------------------------

    def partial_fit(
        self,
        X: Any,
        y: Sequence[Sequence[Any]] | None = None,
        *,
        epochs: int = 1,
        dev: Any = None,
        dev_y: Sequence[Sequence[Any]] | None = None,
        sample_weight: Sequence[float] | NDArray[Any] | None = None,
        callbacks: Iterable[Callback] = (),
    ) -> OnlineTagger:
        """Learn from these sentences too, going on from where training stands.

        New attributes and labels get features of their own, with weights of 0 for the steps before. Word lists that
        the features learnt (`is_rare`) and the scheme that constraints="auto" found stay as they are; a tag
        dictionary keeps its words and gets those of these sentences. On the same sentences, with the same
        parameters, the weights are to the bit those of a longer `fit`. A tagger loaded from a file without the
        state of training starts a new average from the file's weights.

        Args:
            X: as in `fit`; the first call on an unfitted tagger is `fit` with so many epochs.
            y: as in `fit`.
            epochs: passes over X.
            dev: as in `fit`.
            dev_y: as in `fit`.
            sample_weight: as in `fit`.
            callbacks: as in `fit`.
        """
        params = {**self.checked(), "epochs": parameters_of(type(self))["epochs"].check(epochs)}
        require("partial_fit", params, {**FIRST_ORDER, "kernel": (None, "none"), "voters": (0,)})
        fitted = hasattr(self, "model_")
        inputs = Inputs.of(X)
        gold, kind = labels.texts(inputs.gold(y))
        state = self._state() if fitted else None
        task = self._task(inputs, gold, params) if state is None else self._grown(inputs, gold, params, state)
        self._typed(task, kind, self.model_ if fitted else None)
        task.sample_weight = checked_weights(sample_weight, len(task.data))
        if dev is not None:
            task.dev_score = dev_scorer(lambda w: self._model(task, w), task, Inputs.of(dev), dev_y)
        task.callbacks = listeners(callbacks, params)
        try:
            result = watched(lambda task: self._learn(task, state), task, self.name)
        except TrainingError as error:
            raise TrainingError(with_line(str(error), inputs, params)) from error
        if fitted:
            before = len(self.history_)
            for entry in result.history:
                entry["iteration"] += before
            result.history[:0] = self.history_
            result.best_iteration += before
        self._keep(task, result)
        self._ended(result)
        return self

    def set_partial_fit_request(self, *, sample_weight: bool | str | None) -> OnlineTagger:
        """As `set_fit_request`, for `partial_fit`.

        Args:
            sample_weight: as in `set_fit_request`.
        """
        return self._request("partial_fit", sample_weight)

    def _state(self) -> dict[str, Any]:
        """The state of training: as it stands, as the model's file has it, or the model's weights alone."""
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
        """What copies and pickles have: a state of training that lies in the model's file comes along."""
        kept = dict(self.__dict__)
        if hasattr(self, "model_") and "state" in self.model_.meta and self.model_.file is not None:
            kept["state_"] = self._state()
        return kept

    def _grown(
        self, X: Inputs, gold: Sequence[Sequence[str]], params: dict[str, Any], state: dict[str, Any]
    ) -> Task:
        """The task of more sentences, with the features of the model and theirs; the state is laid out anew."""
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
        """Write the model to one file; `tagwise.load` reads it back.

        Args:
            path: where to.
            prune: leave out features of weight zero; predictions stay the same.
            format: "tagwise", or "crfsuite", "wapiti", "crfpp", "crfpp-text": see `Model.save`.
            state: keep what `partial_fit` needs to go on exactly (12 to 20 bytes a feature).
        """
        model = self._fitted()
        prune, state = (checked(name, flag, Flag()) for name, flag in (("prune", prune), ("state", state)))
        format = checked("format", format, Text())
        if not state:
            (prune_model(model)[0] if prune else model).save(path, format=format)
            return
        if format != "tagwise":
            raise ParameterError(f"state=True: a file of {format} has no place for it; leave one of them out")
        if prune:
            raise ParameterError("prune drops features that the state needs; take prune=True or state=True")
        found = self._state()
        weights = found["weights"].astype(np.float32).view(np.uint32)
        extra = {"state.weights": weights}
        extra |= {f"state.{name}": found.get(name, np.zeros(0)) for name in ("sums", "variance")}
        numbers = {"steps": found.get("steps", 0.0), "epochs": found.get("epochs", 0)}
        model.with_meta(state=numbers).save(path, extra)

    def _further_back(self, task: Task, lookback: Lookback, options: Options) -> _core.HistoryOnline:
        """The learner whose search looks further back."""
        words = None
        if lookback.document:
            if not task.X.has_documents:
                raise ParameterError(
                    "document=True needs a corpus that marks its documents (-DOCSTART- rows, # newdoc); "
                    "train on one, or leave document features out"
                )
            tokens = task.X.words("document=True")
            ids: dict[str, int] = {}
            flat = (ids.setdefault(word, len(ids)) for sentence in tokens for word in sentence)
            words = (np.fromiter(flat, dtype=np.uint32), task.X.starts)
        terms = lookback.terms(len(task.labels))
        learner = _core.HistoryOnline(task.data, task.layout, terms, self._rule(task), words=words, **options)
        start = np.concatenate([task.start, task.far_start(lookback)])
        if start.any():
            learner.restore({"weights": start})
        return learner

    def _model(self, task: Task, w: Vector) -> Model:
        lookback = Lookback.of(task.params)
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
                meta["params"]["cost"] = "function"  # training needs it, the model does not
        return meta

    @staticmethod
    def _cost(task: Task | RuleContext) -> _core.Cost:
        """The cost of the parameters as the core takes it."""
        cost, numbers = costs.parse_cost(task.params["cost"])
        if callable(cost):
            cost = costs.named(cost, labels.named(task.labels, task.label_type))
        augment = task.params.get("augment", False)
        return _core.Cost(cost, numbers, entity_table(task.labels), augment=augment)
