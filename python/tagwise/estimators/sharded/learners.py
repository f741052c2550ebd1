"""Training of each learner on shards: supported parameters and the problem to solve.

`LEARNERS` has one row per class of learner that can be trained on shards.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import require
from tagwise.dataset.class_weights import label_weights
from tagwise.dataset.layout import step_layout
from tagwise.dataset.shards.reader import Shards
from tagwise.estimators.base import Tagger
from tagwise.estimators.baselines import MEMM, NO_EDGES
from tagwise.estimators.crf import CRF, check_once, cost_matrix
from tagwise.estimators.online import OnlineTagger, RuleContext, run_epochs
from tagwise.estimators.task import Task
from tagwise.learners.loop import Result
from tagwise.learners.sharded.config import ShardBackend, ShardRules
from tagwise.learners.sharded.objective import Steps
from tagwise.learners.sharded.online import OnlineConfig, OnlineShards
from tagwise.learners.sharded.problem import ShardedProblem

Choices = dict[str, tuple[Any, ...]]


@dataclass
class ShardTask(Task):
    """Training run on shards. `data` is empty, and every shard applies the rules to its own sentences."""

    rules: ShardRules | None = None


def crf(tagger: CRF, task: ShardTask, shards: Shards, backend: ShardBackend, parts: int) -> Result:
    """Minimise the loss of all shards. Dual ascent can work on several parts in parallel."""
    params = task.params
    if task.limits is not None and task.limits.once is not None:
        check_once(params)
    if parts > 1 and params["optimizer"] != "dual":
        raise ParameterError(
            f"parts={parts}: only optimizer='dual' trains parts in parallel, found optimizer="
            f"{params['optimizer']!r}. Leave parts out, or use optimizer='dual'"
        )
    problem = ShardedProblem(
        task.data,
        task.layout,
        params["loss"],
        cost=cost_matrix(params, task.labels, shards.label_counts),
        shards=shards,
        min_count=params["min_count"],
        backend=backend,
        rules=task.rules,
        n_parts=parts,
    )
    return tagger._optimise(task, problem, task.start)


def memm(tagger: MEMM, task: ShardTask, shards: Shards, backend: ShardBackend, parts: int) -> Result:
    """Minimise the loss of all steps of all shards."""
    if parts > 1:
        raise ParameterError(f"parts={parts}: a MEMM cannot train parts in parallel. Leave parts out")
    if shards.recipe.has_edges:
        raise ParameterError(NO_EDGES)
    params = task.params
    weights = label_weights(params["class_weight"], task.labels, shards.label_counts)
    problem = ShardedProblem(
        task.data,
        step_layout(task.layout),
        shards=shards,
        min_count=params["min_count"],
        backend=backend,
        steps=Steps(params["start_end"], weights),
    )
    return tagger._optimise(task, problem)


def online(
    tagger: OnlineTagger, task: ShardTask, shards: Shards, backend: ShardBackend, parts: int
) -> Result:
    """Run epochs over the shards, one after the other or in parts whose weights are mixed."""
    params = task.params
    context = RuleContext(params, task.labels, task.label_type)
    config = OnlineConfig(
        task.layout,
        n_parts=parts,
        rules=task.rules,
        rule=functools.partial(type(tagger)._rule, type(tagger)(**tagger.get_params()), context),
        seed=params["random_state"],
        **{name: params[name] for name in ("min_count", "average", "shuffle")},
    )
    tagger.__dict__.pop("state_", None)
    learner = OnlineShards(backend(config), config, task.start, task.n_jobs)
    result = run_epochs(learner, task)
    tagger.state_ = learner.state()
    return result


class ShardedFit(NamedTuple):
    """Training function of a learner on shards, and the values of its parameters that shards support."""

    train: Callable[..., Result]
    supported: Choices


LEARNERS: dict[type[Tagger], ShardedFit] = {
    CRF: ShardedFit(
        crf,
        {
            "order": (1,),
            "pi": (1.0,),
            "max_length": (None,),
            "partial": (False,),
            "dictionary": (None,),
            "device": ("cpu",),
            "optimizer": ("auto", "lbfgs", "owlqn", "cg", "dual"),
        },
    ),
    MEMM: ShardedFit(memm, {"optimizer": ("auto", "lbfgs", "owlqn", "cg")}),
    OnlineTagger: ShardedFit(
        online,
        {
            "mode": ("online",),
            "voters": (0,),
            "lookback": (None,),
            "kernel": (None,),
            "dictionary": (None,),
        },
    ),
}


def learner_of(tagger: Tagger, params: dict[str, Any]) -> ShardedFit:
    """Return the row of the class of a tagger after checking that its parameters are supported.

    Raises:
        ParameterError: If this learner, or one of its parameters, is not supported on shards.
    """
    found = next((row for kind, row in LEARNERS.items() if isinstance(tagger, kind)), None)
    if found is None:
        raise ParameterError(
            f"{tagger.name} cannot be trained on shards. Use crf, memm, perceptron, mira, pa or arow, or train on "
            "a corpus in memory"
        )
    require("training on shards", params, found.supported)
    return found
