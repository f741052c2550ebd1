"""Losses of the core as functions of l = log Z - score, or of gold marginals.

The table `FORMULAS` contains every loss of the core. The layer and the objectives of training on a GPU look formulas
up and never compare names of losses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tagwise.base.exceptions import ParameterError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Sequential:
    """Loss that is a sum over sentences.

    value: l -> loss of a sentence of weight 1.
    slope: (w, l + log w) -> w times the derivative of the loss with respect to l.
    """

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Pointwise:
    """Loss that is a sum over tokens, with the derivative -omega / p with respect to p.

    log_omega: (log w, log p) -> log omega.
    value: (log omega, log p) -> loss of a token.
    """

    log_omega: Callable[[Tensor, Tensor], Tensor]
    value: Callable[[Tensor, Tensor], Tensor]


#: Every loss of `_core.LOSSES`.
FORMULAS: dict[str, Sequential | Pointwise] = {
    "log": Sequential(lambda loss: loss, lambda w, high: w),
    "exp": Sequential(lambda loss: loss.expm1(), lambda w, high: high.exp()),
    "pointwise_log": Pointwise(lambda log_w, log_p: log_w, lambda log_omega, log_p: -log_omega.exp() * log_p),
    "pointwise_exp": Pointwise(lambda log_w, log_p: log_w - log_p, lambda log_omega, log_p: log_omega.exp()),
}


def formula_of(loss: str) -> Sequential | Pointwise:
    """Return the formula of a loss, or raise a ParameterError."""
    if loss not in FORMULAS:
        raise ParameterError(
            f"device='cuda' does not support loss={loss!r}. Use device='cpu', or one of {', '.join(FORMULAS)}"
        )
    return FORMULAS[loss]
