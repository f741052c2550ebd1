"""Minimisers of an objective(w) -> value, gradient, which yield a Step after every iteration.

`OPTIMIZERS` is the table of optimisers and the objectives that they support.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tagwise.base.domains import Domain
from tagwise.optimizers.base import Evaluate, State, Step
from tagwise.optimizers.cg import cg_domain, conjugate_gradient
from tagwise.optimizers.lbfgs import lbfgs, lbfgs_domain
from tagwise.optimizers.owlqn import owlqn, owlqn_domain


@dataclass(frozen=True)
class Optimizer:
    """An optimiser and its capabilities."""

    name: str
    #: Function of an objective and start weights. "sgd" and "dual" need sentences: learners.stochastic, learners.dual.
    run: Callable[..., Iterator[Step]]
    domain: Callable[[int], Domain]  # domain of its state for a number of weights, in a checkpoint
    l1: bool  # whether it supports c ||w||_1, whose gradient is discontinuous
    help: str


def _by_sentences(*_: object, **__: object) -> Iterator[Step]:
    raise TypeError(
        "stochastic descent and dual ascent need sentences, not an objective. Use tagwise.learners.stochastic.sgd or "
        "tagwise.learners.dual.steps"
    )


def _by_learners(_: int) -> Domain:
    raise TypeError(
        "the states of stochastic descent and dual ascent are checked in tagwise.learners.stochastic and dual"
    )


OPTIMIZERS: dict[str, Optimizer] = {
    "lbfgs": Optimizer(
        "lbfgs", lbfgs, lbfgs_domain, False, "limited-memory BFGS with a strong Wolfe line search"
    ),
    "cg": Optimizer(
        "cg", conjugate_gradient, cg_domain, False, "nonlinear conjugate gradient, as in the papers"
    ),
    "sgd": Optimizer(
        "sgd", _by_sentences, _by_learners, False, "stochastic descent, step size found on a sample"
    ),
    "dual": Optimizer(
        "dual",
        _by_sentences,
        _by_learners,
        False,
        "dual block ascent with a certificate, for the log loss, l2 > 0",
    ),
    "owlqn": Optimizer(
        "owlqn", owlqn, owlqn_domain, True, "orthant-wise limited-memory quasi-Newton, for L1"
    ),
}

__all__ = ["OPTIMIZERS", "Evaluate", "Optimizer", "State", "Step", "conjugate_gradient", "lbfgs", "owlqn"]
