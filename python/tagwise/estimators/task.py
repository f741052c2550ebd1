"""The training run of a learner: encoded data, settings, dev scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.exceptions import ParameterError
from tagwise.corpus.labels import check_type, texts
from tagwise.corpus.schemes import has_chunks
from tagwise.dataset.check import check_lengths
from tagwise.decoding import paths
from tagwise.decoding.plan import Query, plan_of
from tagwise.estimators.limits import Limits
from tagwise.evaluation.metrics import compared
from tagwise.evaluation.scoring import METRICS, default_metric
from tagwise.features.inputs import Inputs
from tagwise.features.recipe import Recipe
from tagwise.features.types import LabelledSentences, Labels
from tagwise.learners.checkpoint import Checkpointer
from tagwise.learners.loop import Callback, Stopping, logger
from tagwise.model.model import Model
from tagwise.optimizers.base import Vector
from tagwise.scores.lookback import LookbackWeights
from tagwise.scores.voters import Ballot

#: Parameters that do not change the model, so that its file does not have them.
TRANSIENT = ("n_jobs", "verbose")


@dataclass
class Task:
    """Training run of a learner: encoded training set, layout of features, settings."""

    data: _core.Dataset
    layout: _core.Layout
    labels: list[str]
    vocabulary: _core.Vocabulary
    recipe: Recipe
    params: dict[str, Any]
    start: Vector  # start weights, [features]
    X: Inputs  # sentences as passed by the caller
    sample_weight: NDArray[np.float64] | None = None
    limits: Limits | None = None
    warm: Model | None = None  # model of the start weights
    label_type: str = "str"  # type of the labels as passed by the caller (here they are str)
    places: NDArray[np.int64] | None = None  # new index of each feature of a model that grows
    dev_score: Callable[[Vector], float] | None = None
    callbacks: list[Callback] = field(default_factory=list)
    checkpointer: Checkpointer | None = None  # writer of checkpoints
    ballot: Ballot | None = None  # weight vectors of a voted learner

    def lookback_start(self, lookback: LookbackWeights) -> Vector:
        """Return the start weights of labels further back, in the layout of `lookback`."""
        if self.warm is None:
            return lookback.transfer_weights(None, (), self.labels)
        return lookback.transfer_weights(self.warm.lookback, self.warm.labels, self.labels)

    @property
    def n_jobs(self) -> int:
        """Number of threads in the form of the core: 0 for all."""
        return self.params["n_jobs"] or 0

    @property
    def metric(self) -> str:
        """Name of the metric of dev scores and of `score`."""
        return self.params["scoring"] or default_metric(self.labels)

    def stopping(self) -> Stopping:
        """Return the stopping rule of the parameters."""
        p = self.params
        return Stopping(p["max_iter"], p["tol"], p["window"], p["patience"])


def warn_if_unsavable(recipe: Recipe) -> None:
    """Log a warning before training if no model file could name the feature functions."""
    if recipe.functions:
        try:
            recipe.to_json()
        except ParameterError as error:
            logger.warning("the model will not be savable: %s", error)


def warn_empty_tokens(X: Inputs) -> None:
    """Log a warning if a token of the training set is an empty string, which is usually a mistake of a program."""
    if X.kind == "tokens":
        for s, sentence in enumerate(X.sentences):
            if "" in sentence:
                logger.warning("sentence %d, token %d is an empty string", s, list(sentence).index(""))
                return


def warn_unknown_labels(gold: Sequence[Sequence[str]], known: Sequence[str], source: str) -> None:
    """Log a warning if no gold label is a label of the model, since every score is then 0."""
    used = set().union(*gold)
    if used and used.isdisjoint(known):
        logger.warning(
            "no label of %s (%s) is a label of the model (%s). Check that the label column is the right one",
            source,
            shortened(used),
            shortened(known),
        )


def shortened(labels: Iterable[str]) -> str:
    """Return the first labels as text, with their number if there are more."""
    names = sorted(labels)
    return " ".join(names[:5]) + (f" ... {len(names)} in all" if len(names) > 5 else "")


def dev_inputs(dev: LabelledSentences | None, dev_y: Labels | None) -> Inputs | None:
    """Return the sentences of the dev set, or None without one. Raise a ParameterError for labels without sentences."""
    if dev is None and dev_y is not None:
        raise ParameterError("dev_y has the labels of dev, which is missing. Set dev, or leave dev_y out")
    return None if dev is None else Inputs.of_labelled(dev)


def dev_scorer(
    model: Callable[[Vector], Model], task: Task, X: Inputs, y: Labels | None
) -> Callable[[Vector], float]:
    """Return a function that scores weights on a dev set by the metric of the task. The dev set is encoded once."""
    gold, kind = texts(X.gold(y))
    check_type(kind, task.label_type, "dev", "the training set")
    warn_unknown_labels(gold, task.labels, "dev")
    data = task.recipe.encode(X, task.vocabulary, task.params["n_jobs"])
    data = task.recipe.with_vectors(data, X, task.vocabulary)
    offsets = data.offsets
    check_lengths(data, gold, "dev: ")
    chunked, metric = has_chunks(task.labels), task.metric
    flat = np.array([label for sentence in gold for label in sentence], dtype=object)

    def score(w: Vector) -> float:
        current = model(w)
        path = paths.best(plan_of(current.scoring, X, data, Query(n_jobs=task.n_jobs)))
        if metric == "accuracy":  # without a report
            right = np.array(current.labels, dtype=object)[path] == flat
            return float(np.mean(right)) if len(path) else 0.0
        found = _core.name_paths(path, offsets, list(current.labels))
        return METRICS[metric](compared(gold, found, chunked))

    return score
