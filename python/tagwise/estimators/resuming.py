"""Identity of a training run in its checkpoints: everything that determines the model, as text and digests."""

from __future__ import annotations

import json
from typing import Any

import tagwise._core as _core
from tagwise.base.exceptions import ParameterError
from tagwise.base.options import Option
from tagwise.corpus.labels import texts
from tagwise.estimators.task import TRANSIENT, Task
from tagwise.features.inputs import Inputs
from tagwise.features.types import Labels
from tagwise.learners.checkpoint import Checkpoint, Checkpointer, digest
from tagwise.scores.lookback import LookbackWeights


def checkpointer_of(
    learner: str,
    task: Task,
    checkpoint: Checkpoint,
    dev: Inputs | None,
    dev_y: Labels | None,
    shards: str | None = None,
) -> Checkpointer:
    """Return the checkpointer of a run. Resuming from a checkpoint of another run raises a TrainingError.

    Args:
        learner: Name of the learner.
        task: The training run.
        checkpoint: File and interval.
        dev: Sentences of the dev set.
        dev_y: Labels of the dev set.
        shards: Digest of the training set, if it is not a dataset in memory.
    """
    checked_checkpoint(checkpoint)
    scored = None
    if dev is not None:
        encoded = task.recipe.encode(dev, task.vocabulary, task.params["n_jobs"])
        scored = digest(_arrays(encoded), texts(dev.gold(dev_y))[0])
    shown = {name: _plain(value) for name, value in task.params.items() if name not in TRANSIENT}
    shown["features"] = task.recipe.name
    data: Any = _arrays(task.data) if shards is None else shards
    run = {
        "tagwise": _core.__version__,
        "learner": learner,
        "params": shown,
        "data": digest(
            task.labels, data, task.layout.arrays(), task.limits, _partial(task), _documents(task)
        ),
        "sample_weight": digest(task.sample_weight),
        "start": digest(task.start, _lookback_start(task)),
        "dev": scored,
    }
    return Checkpointer(checkpoint, run)


def checked_checkpoint(checkpoint: Any) -> None:
    """Raise a ParameterError unless this is a `Checkpoint` with a valid interval."""
    if not isinstance(checkpoint, Checkpoint):
        raise ParameterError(
            f"checkpoint={checkpoint!r}: expected a tagwise.Checkpoint(path, every=..., resume=...)"
        )
    checkpoint.interval()


def _documents(task: Task) -> Any:
    """Return the words and documents that document features use in addition to the dataset."""
    lookback = task.params.get("lookback")
    if lookback is None or not lookback.document:
        return None
    return [list(words) for words in task.X.words("Lookback.document=True")], task.X.starts


def _lookback_start(task: Task) -> Any:
    """Return the start weights of labels further back."""
    lookback = LookbackWeights.of(task.params)
    return None if lookback is None or task.warm is None else task.lookback_start(lookback)


def _arrays(data: _core.Dataset) -> tuple[Any, ...]:
    """Return all arrays of a dataset."""
    return (data.offsets, data.gold, data.node(), data.edge())


def _partial(task: Task) -> Any:
    """Return the possible labels of each token if labels are partial."""
    return getattr(task, "partial", None)


def _plain(value: Any) -> Any:
    """Return a parameter as JSON, with functions replaced by their names."""

    def named(other: Any) -> Any:
        if isinstance(other, Option):
            return other.to_json()
        name = getattr(other, "__qualname__", None)
        return repr(other) if name is None else f"{getattr(other, '__module__', '')}:{name}"

    try:
        return json.loads(json.dumps(value, default=named))
    except (TypeError, ValueError):  # keys that are not strings
        return repr(value)
