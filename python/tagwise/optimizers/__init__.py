"""Minimisers of an objective(w) -> value, gradient. They see nothing else, and yield a Step after every iteration.

Which optimiser serves which objective is data: the table below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tagwise.optimizers.base import Evaluate, State, Step
from tagwise.optimizers.cg import conjugate_gradient
from tagwise.optimizers.lbfgs import lbfgs
from tagwise.optimizers.owlqn import owlqn


@dataclass(frozen=True)
class Optimizer:
    """An optimiser and what it can do."""

    name: str
    run: Callable[
        ..., Iterator[Step]
    ]  # of an objective and a start; "sgd" and "dual" want single sentences: learners.stochastic, learners.dual
    l1: bool  # handles c ||w||_1, whose gradient jumps
    help: str


def _by_sentences(*_: object, **__: object) -> Iterator[Step]:
    raise TypeError(
        "stochastic descent and dual ascent need sentences, not an objective; see tagwise.learners.stochastic and dual"
    )


OPTIMIZERS: dict[str, Optimizer] = {
    "lbfgs": Optimizer("lbfgs", lbfgs, False, "limited-memory BFGS with a strong Wolfe line search"),
    "cg": Optimizer("cg", conjugate_gradient, False, "nonlinear conjugate gradient, as in the papers"),
    "sgd": Optimizer("sgd", _by_sentences, False, "stochastic gradient descent, step size found on a sample"),
    "dual": Optimizer(
        "dual", _by_sentences, False, "dual block ascent with a certificate, for the log loss, l2 > 0"
    ),
    "owlqn": Optimizer("owlqn", owlqn, True, "orthant-wise limited-memory quasi-Newton, for L1"),
}

__all__ = ["OPTIMIZERS", "Evaluate", "Optimizer", "State", "Step", "conjugate_gradient", "lbfgs", "owlqn"]
