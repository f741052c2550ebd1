"""Training on encoded shards: `fit` where X is a `Shards`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import tagwise._core as _core
from tagwise.corpus.sentence import Corpus
from tagwise.base.exceptions import ParameterError
from tagwise.estimators.base import Tagger, listeners, model_of, watched
from tagwise.estimators.limits import Limits
from tagwise.estimators.resuming import keeper_of
from tagwise.estimators.task import Task, dev_scorer
from tagwise.features.inputs import Inputs
from tagwise.features.recipe import Recipe
from tagwise.features.resolve import resolve
from tagwise.learners.sharded import online
from tagwise.learners.checkpoint import Checkpoint
from tagwise.learners.loop import Callback
from tagwise.learners.sharded.online import Engine
from tagwise.learners.sharded.dual import Here
from tagwise.learners.sharded.objective import Rules, local
from tagwise.model.model import Model, transfer
from tagwise.scores.constraints import Constraints
from tagwise.dataset.shards.reader import Shards

#: Who works on shards.
BACKENDS = ("local", "ray")


def fit_shards(
    tagger: Tagger,
    shards: Shards,
    *,
    dev: Any = None,
    dev_y: Sequence[Sequence[Any]] | None = None,
    callbacks: Iterable[Callback] = (),
    warm_start: Tagger | Model | str | os.PathLike[str] | None = None,
    forget: bool = False,
    checkpoint: Checkpoint | None = None,
    backend: str | None = None,
    workers: int | None = None,
) -> Tagger:
    """Train a tagger on shards, as `fit` says."""
    params = tagger.checked()
    learner = tagger._sharded(params)
    engine = _engine(shards, backend or "local", workers, params["n_jobs"] or 0)
    recipe = _recipe(params["features"], shards)
    choice = {name: params[name] for name in ("min_count", "all_pairs", "start_end")}
    layout, vocabulary = shards.layout(**choice), shards.vocabulary(params["min_count"])
    like = Corpus([], columns=shards.manifest["columns"], label=shards.manifest["label"])
    empty = _core.encode_attributes(_core.Vocabulary(), [])
    start = np.zeros(len(layout))
    task = Task(empty, layout, list(shards.labels), vocabulary, recipe, params, start, Inputs.of(like))
    if params.get("constraints") is not None:
        task.rules, task.limits = _rules(params, task.labels)
    if warm_start is not None:
        if not forget:
            raise ParameterError(
                "shards have features of their own, which a model to start from cannot be joined to: pass forget=True "
                "to have the weights that these features had in it"
            )
        task.warm = model_of(warm_start)
        task.start = transfer(task.warm, vocabulary, layout, task.labels)
    scored = None if dev is None else Inputs.of(dev)
    if scored is not None:
        dev_y = scored.gold(dev_y)
        task.dev_score = dev_scorer(lambda w: tagger._model(task, w), task, scored, dev_y)
    if checkpoint is not None:
        task.keeper = keeper_of(tagger.name, task, checkpoint, scored, dev_y, shards.digest)
    task.callbacks = listeners(callbacks, params)
    result = watched(lambda task: learner(task, shards, engine), task, tagger.name)
    tagger._keep(task, result)
    return tagger._ended(result)


def _rules(params: dict[str, Any], labels: list[str]) -> tuple[Rules, Limits]:
    """The constraints as shards are trained with them, and as the model keeps them."""
    constraints = Constraints.parse(params["constraints"])
    if constraints.scheme == "auto":
        raise ParameterError(
            "constraints='auto' goes through all gold labels for their scheme, which shards are too many for: name "
            "it (constraints='IOB2')"
        )
    found = constraints.rules(labels)
    forbidden = None if found.pairs.all() else found.forbidden
    return Rules(constraints, labels), Limits(constraints, forbidden=forbidden, once=found.once)


def _recipe(features: Any, shards: Shards) -> Recipe:
    """The features of the shards; others that a tagger was told are refused."""
    if isinstance(features, str) and features == "default":
        return shards.recipe
    recipe = resolve(features, [c for c in shards.manifest["columns"] if c != shards.manifest["label"]])
    if recipe.to_json() != shards.recipe.to_json():
        raise ParameterError(
            f"features={recipe.name!r}, but {shards.path} was encoded with {shards.recipe.name!r}; leave features out, "
            "or encode the files with these"
        )
    return recipe


def _engine(shards: Shards, backend: str, workers: int | None, n_jobs: int) -> Engine:
    """Who works on the shards."""
    if backend not in BACKENDS:
        raise ParameterError(f"backend={backend!r}: expected one of {', '.join(BACKENDS)}")
    if backend == "ray":
        from tagwise.ray.climbing import Workers as Climbing
        from tagwise.ray.training import connected, source
        from tagwise.ray.training import mixing as by_ray

        connected()
        return Engine(
            source(shards, workers),
            lambda course, n: by_ray(shards, course, n, workers),
            lambda climb: Climbing(shards, climb, workers),
        )
    if workers is not None:
        raise ParameterError(f"workers={workers!r} is about backend='ray'; leave it out, or set n_jobs")
    memory = shards.memory
    return Engine(
        local(shards, memory),
        lambda course, n: online.local(shards, course, n, memory, n_jobs),
        lambda climb: Here(shards, climb, memory),
    )


__all__ = ["fit_shards"]
