"""Renormalisation of Viterbi scores, with the schedule of the core, for tensors and kernels.

Scores of prefixes grow with every token, and the rounding errors of float32 with them. Subtracting the best score of a
position now and then keeps them small. See `rust/src/chain/viterbi/renormalize.rs`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tagwise._core import RENORMALIZED

FIRST, EVERY = RENORMALIZED


def is_due(t: int) -> bool:
    """Return whether the best score of position t is subtracted."""
    return t >= FIRST and t % EVERY == 0


def renormalized(state: Tensor, total: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
    """Subtract from scores (B, ...) the best of each sentence that is `inside` (B,), and add it to `total` (B,).

    `total` has double precision.
    """
    top = state.flatten(1).amax(1)
    top = torch.where(inside & torch.isfinite(top), top, 0.0)
    return state - top.view(-1, *[1] * (state.dim() - 1)), total + top.double()
