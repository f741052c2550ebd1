"""Chains on CUDA: the kernels of `kernels/chain.cu`, for as many labels as a block's registers hold.

Sentences are rows of a batch, emissions (B, T, L) of any strides, or lie one after the other: emissions (tokens, L) and
`Places`, where each begins.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tagwise.torch.launching import Macros, kernel, launch, processors
from tagwise.torch.plain import Gradient, Sums

#: Labels that these kernels serve; beyond it the plain path is used.
MOST_LABELS = 64
#: Sentences of so many tokens are cut into pieces of PIECE that are summed side by side, where they are few.
LONG, PIECE = 2048, 512
_INPUTS = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2, torch.float64: 3}
_TOKENS = 32


class Places(NamedTuple):
    """Sentences one after the other: the first token of each (int64), and how long the longest is."""

    first: Tensor
    longest: int


class _Chains:
    """What every kernel is told of a batch."""

    def __init__(
        self,
        emissions: Tensor,
        transitions: Tensor,
        start: Tensor,
        end: Tensor,
        lengths: Tensor | None,
        tags: Tensor | None,
        places: Places | None,
    ) -> None:
        if places is None:
            self.batch, self.time, self.labels = emissions.shape
            strides = emissions.stride()
            by_tag = (0, 0) if tags is None else tags.stride()
        else:
            self.batch, self.time, self.labels = len(places.first), places.longest, len(start)
            strides = (0, *emissions.stride())
            by_tag = (0, 1)
        self.tokens = emissions.shape[:-1]
        self.device = emissions.device.index or 0
        self.macros: Macros = (
            ("L", self.labels),
            ("WARPS", -(-self.labels // 32)),
            ("WIDE", int(emissions.dtype == torch.float64)),
            ("INPUT", _INPUTS[emissions.dtype]),
        )
        self.threads = 32 * -(-self.labels // 32)
        self.lengths = _pointer(lengths)
        self.arguments = (
            *(emissions.data_ptr(), *strides),
            *(transitions.data_ptr(), start.data_ptr(), end.data_ptr()),
            *(self.lengths, 0 if places is None else places.first.data_ptr()),
            *(_pointer(tags), *by_tag),
            *(self.batch, self.time),
        )

    def launch(self, name: str, grid: tuple[int, ...], threads: int, *arguments: int) -> None:
        launch(kernel("chain", self.device, self.macros, name), self.device, grid, threads, *arguments)


def _pointer(tensor: Tensor | None) -> int:
    return 0 if tensor is None else int(tensor.data_ptr())


def sums(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    tags: Tensor | None,
    places: Places | None = None,
) -> Sums:
    """As `plain.sums`; the recursions are logarithms to the base 2, forward ones with a number behind each row."""
    chains = _Chains(emissions, transitions, start, end, lengths, tags, places)
    batch, time, labels = chains.batch, chains.time, chains.labels
    ahead, behind = start.new_empty(*chains.tokens, labels + 1), start.new_empty(*chains.tokens, labels)
    value = start.new_empty(batch)
    if not batch:
        return Sums(value, ahead, behind)
    out = ahead.data_ptr(), behind.data_ptr(), value.data_ptr()
    if time < LONG or batch > processors(chains.device):
        chains.launch("chain_forward", (batch, 2), chains.threads, *chains.arguments, *out, time, 1, 0, 0, 0)
        return Sums(value, ahead, behind)
    pieces = -(-time // PIECE)
    matrices = start.new_empty(batch * pieces * labels * (labels + 3 * (labels + 1)))
    scratch = matrices.data_ptr() + batch * pieces * labels * labels * matrices.element_size()
    doubles = start.new_empty(batch * pieces * (labels + 2), dtype=torch.float64)
    offsets = doubles.data_ptr() + 8 * batch * pieces * labels
    parts = offsets + 8 * batch * pieces
    entries = start.new_empty(2 * batch * pieces * labels)
    found = matrices.data_ptr(), doubles.data_ptr()
    grid = batch * pieces * labels, 1
    chains.launch(
        "chain_matrices", grid, chains.threads, *chains.arguments, PIECE, pieces, *found, scratch, parts
    )
    whole = chains.lengths, batch, time, end.data_ptr()
    begun = entries.data_ptr(), offsets
    chains.launch("chain_join", (batch, 2), chains.threads, *whole, PIECE, pieces, *found, *begun)
    cut = PIECE, pieces, *begun, parts
    chains.launch("chain_forward", (batch * pieces, 2), chains.threads, *chains.arguments, *out, *cut)
    return Sums(value, ahead, behind)


def expect(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    tags: Tensor | None,
    ahead: Tensor,
    behind: Tensor,
    scale: Tensor,
    places: Places | None = None,
    into: Tensor | None = None,
) -> Gradient:
    """As `plain.expect`; the same bits every time. `into`: where the gradient by emissions goes."""
    chains = _Chains(emissions, transitions, start, end, lengths, tags, places)
    batch, labels = chains.batch, chains.labels
    out = Gradient(
        torch.empty_like(emissions) if into is None else into,
        start.new_empty(labels, labels),
        start.new_empty(labels),
        start.new_empty(labels),
    )
    pieces = batch * -(-chains.time // _TOKENS)
    if not pieces:
        return Gradient(*(x.zero_() for x in out))
    small = (-(-labels // 4)) ** 2 <= 128  # tiles of pairs fit into as many threads
    blocks = min(pieces, (8 if small else 4) * processors(chains.device))
    work = start.new_empty(blocks * labels * (labels + 2))
    pairs, item = work.data_ptr(), work.element_size()
    starts = pairs + blocks * labels * labels * item
    ends = starts + blocks * labels * item
    by = (0, *out.emissions.stride()) if places is not None else out.emissions.stride()
    chains.launch(
        "chain_expect",
        (blocks, 1),
        128 if small else 256,
        *chains.arguments,
        *(ahead.data_ptr(), behind.data_ptr(), scale.data_ptr(), *scale.stride()),
        *(out.emissions.data_ptr(), *by),
        *(pairs, starts, ends),
    )
    chains.launch(
        "chain_reduce",
        (-(-(labels * labels + 2 * labels) // 32), 1),
        256,
        *(pairs, blocks, starts, ends),
        *(x.data_ptr() for x in out[1:]),
    )
    return out


def best(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    places: Places | None = None,
) -> tuple[Tensor, Tensor]:
    """As `plain.best`."""
    chains = _Chains(emissions, transitions, start, end, lengths, None, places)
    path = torch.empty(chains.tokens, dtype=torch.int64, device=emissions.device)
    value = start.new_empty(chains.batch)
    if chains.batch:
        back = torch.empty(*chains.tokens, chains.labels, dtype=torch.uint8, device=emissions.device)
        out = back.data_ptr(), path.data_ptr(), value.data_ptr()
        chains.launch("chain_best", (chains.batch, 1), chains.threads, *chains.arguments, *out)
    return path, value
