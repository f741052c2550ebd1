"""Training a tagger on encoded shards."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

import tagwise._core as _core
from tagwise.base import extensions
from tagwise.base.domains import shown
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import checked_parameters
from tagwise.corpus.sentence import Corpus
from tagwise.dataset.shards.reader import Shards
from tagwise.estimators.base import Tagger
from tagwise.estimators.limits import Limits
from tagwise.estimators.resuming import checkpointer_of
from tagwise.estimators.sharded.learners import ShardTask, learner_of
from tagwise.estimators.task import dev_inputs, dev_scorer
from tagwise.estimators.training import model_of, train_with_progress, training_callbacks
from tagwise.features.inputs import Inputs
from tagwise.features.recipe import Recipe
from tagwise.features.resolve import resolve
from tagwise.features.types import LabelledSentences, Labels
from tagwise.learners.checkpoint import Checkpoint
from tagwise.learners.loop import Callback
from tagwise.learners.sharded.config import LocalParts, ShardBackend, ShardRules
from tagwise.model.model import Model, transfer
from tagwise.scores.constraints import Constraints

T = TypeVar("T", bound=Tagger)


def fit_shards(
    tagger: T,
    shards: Shards,
    *,
    parts: int | None = None,
    dev: LabelledSentences | None = None,
    dev_y: Labels | None = None,
    callbacks: Iterable[Callback] = (),
    warm_start: Tagger | Model | str | os.PathLike[str] | None = None,
    forget: bool = False,
    checkpoint: Checkpoint | None = None,
    backend: str = extensions.LOCAL,
    workers: int | None = None,
) -> T:
    """Train a tagger on encoded shards. The result does not depend on the backend or the number of workers.

    Args:
        tagger: A CRF, a MEMM, or a first-order online learner with explicit weights.
        shards: The encoded corpus, with its labels.
        parts: Number of parts that are trained in parallel. Online learners mix the weights of the parts after every
            epoch (default: their parameter `parts`), and a CRF with optimizer="dual" adds the updates of the parts
            (default: 1). More parts need more passes, so change it only to use several workers.
        dev: Labelled corpus that is scored after every iteration, as in `fit`.
        dev_y: Labels of `dev`.
        callbacks: Functions that are called after each iteration, as in `fit`.
        warm_start: Model to take weights from. It needs `forget=True`.
        forget: Keep only the labels and features of the shards, as in `fit`.
        checkpoint: File that the state of training is written to, as in `fit`.
        backend: "local" trains in this process, "ray" on the Ray cluster that this process is connected to.
        workers: Number of workers of backend="ray". The default is one per CPU of the cluster.

    Returns:
        The tagger, fitted.

    Raises:
        ParameterError: If the learner or one of its parameters is not supported on shards.

    >>> import tagwise as tw
    >>> tw.write(tw.Corpus.from_lists([["a", "dog"]], [["DT", "NN"]]), "tiny.conll")
    >>> shards = tw.encode("tiny.conll", "tiny-encoded", features="S1")
    >>> tw.fit_shards(tw.Perceptron(max_iter=1), shards).predict([["a", "dog"]])
    [['DT', 'NN']]
    """
    if not isinstance(shards, Shards):
        raise ParameterError(
            f"shards={shown(shards)}: expected the Shards of a folder. Encode files with tagwise.encode, or use fit "
            "for sentences in memory"
        )
    params = checked_parameters(tagger)
    learner = learner_of(tagger, params)
    n_parts = _checked_parts(params.get("parts", 1) if parts is None else parts, shards)
    trainer = _backend(shards, backend, workers)
    recipe = _recipe(params["features"], shards)
    choice = {name: params[name] for name in ("min_count", "all_pairs", "start_end")}
    layout, vocabulary = shards.layout(**choice), shards.vocabulary(params["min_count"])
    like = Corpus([], columns=shards.manifest["columns"], label=shards.manifest["label"])
    empty = _core.encode_attributes(_core.Vocabulary(), [])
    start = np.zeros(len(layout))
    task = ShardTask(empty, layout, list(shards.labels), vocabulary, recipe, params, start, Inputs.of(like))
    if params.get("constraints") is not None:
        task.rules, task.limits = _rules(params, task.labels)
    if warm_start is not None:
        if not forget:
            raise ParameterError(
                "warm_start cannot add its features to those of shards. Set forget=True to take over only the weights "
                "of features that the shards have"
            )
        task.warm = model_of(warm_start)
        task.start = transfer(task.warm, vocabulary, layout, task.labels)
    scored = dev_inputs(dev, dev_y)
    if scored is not None:
        dev_y = scored.gold(dev_y)
        task.dev_score = dev_scorer(lambda w: tagger._model(task, w), task, scored, dev_y)
    if checkpoint is not None:
        task.checkpointer = checkpointer_of(
            tagger.name, task, checkpoint, scored, dev_y, f"{shards.digest}, {n_parts} parts"
        )
    task.callbacks = training_callbacks(callbacks, params)
    result = train_with_progress(
        lambda task: learner.train(tagger, task, shards, trainer, n_parts), task, tagger.name
    )
    tagger._store_result(task, result)
    tagger._finish(result)
    return tagger


def _checked_parts(parts: int, shards: Shards) -> int:
    """Return the number of parts, at most the number of shards."""
    if not 1 <= parts <= len(shards):
        raise ParameterError(
            f"parts={parts}: expected 1 to {len(shards)}, the number of shards on disk. Encode with a smaller "
            "shard_tokens to get more shards"
        )
    return parts


def _rules(params: dict[str, Any], labels: list[str]) -> tuple[ShardRules, Limits]:
    """Return the constraints in the form for shards and in the form that the model keeps."""
    constraints = Constraints.parse(params["constraints"])
    if constraints.scheme == "auto":
        raise ParameterError(
            "constraints='auto' is not supported on shards, since it reads all gold labels to detect their scheme. "
            "Name the scheme (constraints='IOB2')"
        )
    found = constraints.rules(labels)
    forbidden = None if found.pairs.all() else found.forbidden
    return ShardRules(constraints, labels), Limits(constraints, forbidden=forbidden, once=found.once)


def _recipe(features: Any, shards: Shards) -> Recipe:
    """Return the features of the shards. Raise a ParameterError if the tagger has other features."""
    if isinstance(features, str) and features == "default":
        return shards.recipe
    recipe = resolve(features, [c for c in shards.manifest["columns"] if c != shards.manifest["label"]])
    if recipe.to_json() != shards.recipe.to_json():
        raise ParameterError(
            f"features={recipe.name!r}, but {shards.path} was encoded with {shards.recipe.name!r}. Leave features out, "
            "or encode the files with these"
        )
    return recipe


def _backend(shards: Shards, name: str, workers: int | None) -> ShardBackend:
    """Return the backend of that name for the shards."""
    extensions.check_backend(name)
    if name != extensions.LOCAL:
        found: ShardBackend = extensions.load("shards", name).backend(shards, workers)
        return found
    extensions.check_local(workers)
    return lambda config: LocalParts(shards, config, shards.memory)
