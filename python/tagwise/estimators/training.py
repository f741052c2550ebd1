"""Steps of a training run that `fit`, `partial_fit` and `fit_shards` share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from tagwise.base.domains import shown
from tagwise.base.exceptions import ParameterError, TrainingError
from tagwise.base.progress import checked_callbacks, progress
from tagwise.estimators.predicting import Predicting
from tagwise.estimators.task import Task
from tagwise.features.inputs import Inputs
from tagwise.learners.loop import Callback, Iteration, Result, logger
from tagwise.model.model import Model


def add_line(error: TrainingError, X: Inputs, params: dict[str, Any]) -> None:
    """Add the line at which a sentence begins in its file to the message of an error about it, if it is known."""
    s = error.sentence
    if s is None or params.get("max_length") is not None:  # pieces are numbered differently
        return
    if line := X.line(s):
        error.args = (f"sentence {s} (line {line}){str(error).removeprefix(f'sentence {s}')}",)


def model_of(source: Predicting | Model | str | os.PathLike[str]) -> Model:
    """Return the model of a fitted tagger or of a file, or the model itself."""
    if isinstance(source, Model):
        return source
    if isinstance(source, Predicting):
        return source._fitted()
    if not isinstance(source, (str, os.PathLike)):
        raise ParameterError(
            f"{shown(source)} is not a model. Pass a fitted tagger, a model or the path of a file"
        )
    return Model.load(source)


def training_callbacks(callbacks: Iterable[Callback], params: dict[str, Any]) -> list[Callback]:
    """Return the callbacks, and one that logs every iteration if `verbose` is set."""
    functions = checked_callbacks(callbacks)
    return [*functions, _log] if params["verbose"] else functions


def train_with_progress(train: Callable[[Task], Result], task: Task, title: str) -> Result:
    """Train, with a progress line on a terminal or in a notebook if `verbose` is set."""
    with progress(title, task.params["verbose"]) as line:
        if line is not None:
            task.callbacks = [*task.callbacks, line]
        return train(task)


def _log(entry: Iteration) -> None:
    measured = {"|gradient|": entry.gradient_norm, "gap": entry.gap, **entry.measures}
    shown = "".join(f", {name} {value:.3g}" for name, value in measured.items() if value is not None)
    shown += "" if entry.dev_score is None else f", dev {entry.dev_score:.4f}"
    logger.info(
        "iteration %d: objective %.4f%s, %.1f s", entry.iteration, entry.objective, shown, entry.seconds
    )
