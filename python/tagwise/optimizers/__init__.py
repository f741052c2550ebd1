"""Minimisers of an objective(w) -> value, gradient. They see nothing else, and yield a Step after every iteration.

Which optimiser serves which objective is data: the table below.
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
    """An optimiser and what it can do."""

    name: str
    run: Callable[
        ..., Iterator[Step]
    ]  # of an objective and a start; "sgd" and "dual" want single sentences: learners.stochastic, learners.dual
    domain: Callable[[int], Domain]  # of its state with so many weights, in a checkpoint
    l1: bool  # handles c ||w||_1, whose gradient jumps
    help: str


def _by_sentences(*_: object, **__: object) -> Iterator[Step]:
    raise TypeError(
        "stochastic descent and dual ascent need sentences, not an objective; see tagwise.learners.stochastic and dual"
    )


def _by_learners(_: int) -> Domain:
    raise TypeError("states of stochastic descent and dual ascent: tagwise.learners.stochastic and dual")


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
