"""The losses of training on a device as functions of l = log Z - score, or of gold marginals.

The table `FORMULAS` has every loss of the core. Objectives take their formula from it and compare no names.
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
    """A loss of sentences.

    value: l -> the loss of a sentence of weight 1.
    slope: (w, l + log w) -> w times its derivative by l.
    """

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Pointwise:
    """A loss of tokens, whose derivative by p is -omega / p.

    log_omega: (log w, log p) -> log omega.
    value: (log omega, log p) -> the loss of a token.
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
            f"loss={loss!r} is not trained on device='cuda'; use device='cpu', or one of {', '.join(FORMULAS)}"
        )
    return FORMULAS[loss]
