"""Other packages that sum over chains: log Z forward and backward, if they are installed.

torch-struct (0.5) takes one matrix per step. flash-semicrf (0.2) sums over segmentations, which are label paths for
segments of one token. Both are optional: `pip install torch-struct flash-semicrf`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

#: log Z (B,) of emissions (B, T, L), transitions, start and end.
Sum = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def _torch_struct() -> Sum:
    from torch_struct import LinearChainCRF

    def total(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Tensor:
        steps = transitions.T + emissions[:, 1:, :, None]  # (B, T - 1, label, label before)
        first = (start + emissions[:, 0])[:, None, None, :]
        steps = torch.cat([steps[:, :1] + first, steps[:, 1:]], 1)
        steps = torch.cat([steps[:, :-1], steps[:, -1:] + end[:, None]], 1)
        found: Tensor = LinearChainCRF(steps).partition
        return found

    return total


def _flash_semicrf() -> Sum:
    from flash_semicrf import semi_crf_streaming_forward

    def total(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Tensor:
        batch, time, labels = emissions.shape
        into = start - torch.logsumexp(transitions, 0)  # sums over labels before the first token too
        edged = torch.cat([emissions[:, :1] + into, emissions[:, 1:]], 1)
        edged = torch.cat([edged[:, :-1], edged[:, -1:] + end], 1)
        summed = torch.cat([edged.new_zeros(batch, 1, labels), edged.cumsum(1)], 1)
        lengths = torch.full((batch,), time, device=emissions.device)
        found: Tensor = semi_crf_streaming_forward(
            summed, transitions, transitions.new_zeros(1, labels), lengths, 1
        )
        return found

    return total


def peers() -> dict[str, Sum]:
    """Return the installed packages by name."""
    found: dict[str, Sum] = {}
    for name, make in (("torch-struct", _torch_struct), ("flash-semicrf", _flash_semicrf)):
        try:
            found[name] = make()
        except ImportError:
            continue
    return found


def step(total: Sum, given: tuple[Any, ...]) -> Callable[[], Tensor]:
    """Return a call for forward and backward of sum_b log Z_b."""

    def run() -> Tensor:
        for x in given:
            x.grad = None
        value = total(*given).sum()
        value.backward()
        return value.detach()

    return run
