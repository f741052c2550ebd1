"""When searches for best paths subtract the best score of a position: the rule of the core, for tensors and kernels.

Scores of prefixes grow with every token, and the rounding of float32 with them; see
`rust/src/chain/viterbi/renormalize.rs`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tagwise._core import RENORMALIZED

FIRST, EVERY = RENORMALIZED


def is_due(t: int) -> bool:
    """Whether the best score of position t is subtracted."""
    return t >= FIRST and t % EVERY == 0


def renormalized(state: Tensor, total: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
    """Scores (B, ...) less the best of each sentence that is `inside` (B,), which is added to `total` (B,), doubles."""
    top = state.flatten(1).amax(1)
    top = torch.where(inside & torch.isfinite(top), top, 0.0)
    return state - top.view(-1, *[1] * (state.dim() - 1)), total + top.double()
