"""Chains on CUDA: the kernels of `kernels/`, for as many labels as a block's registers hold.

Sentences are rows of a batch, emissions (B, T, L) of any strides, or lie one after the other: emissions (tokens, L) and
`Places`, where each begins. `ahead` and `behind` are logarithms to the base 2 here, forward ones with a number behind
each row.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from tagwise.torch import launching
from tagwise.torch.plain import Gradient, Sums

#: Labels that these kernels serve; beyond it those of `wide` are used.
MOST_LABELS = 64
#: Sentences of so many tokens are cut into pieces of PIECE that are summed side by side, where they are few.
LONG, PIECE = 2048, 512
_INPUTS = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2, torch.float64: 3}
_TOKENS, _BENT = 32, 16


class Places(NamedTuple):
    """Sentences one after the other: the first token of each (int64), and how long the longest is."""

    first: Tensor
    longest: int


class Plan:
    """The kernels of a number of labels and a type of emissions, on a device; each is compiled when first asked for."""

    def __init__(self, labels: int, kind: torch.dtype, device: int) -> None:
        warps = -(-labels // 32)
        self.device, self.threads = device, 32 * warps
        self.macros: launching.Macros = (
            ("L", labels),
            ("WARPS", warps),
            ("WIDE", int(kind == torch.float64)),
            ("INPUT", _INPUTS[kind]),
        )
        self.processors = launching.processors(device)
        self._kernels: dict[str, launching.Kernel] = {}

    def __getitem__(self, name: str) -> launching.Kernel:
        """A kernel by its name; the best path and the second derivative are sources of their own."""
        found = self._kernels.get(name)
        if found is None:
            source = "best" if name == "chain_best" else name.partition("_")[0]
            found = self._kernels[name] = launching.kernel(source, self.device, self.macros, name)
        return found


@cache
def plan(labels: int, kind: torch.dtype, device: int | None) -> Plan:
    """The plan for these."""
    return Plan(labels, kind, device or 0)


def _pointer(tensor: Tensor | None) -> int:
    return 0 if tensor is None else int(tensor.data_ptr())


def _told(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    tags: Tensor | None,
    places: Places | None,
) -> tuple[int, int, int, tuple[int, ...]]:
    """Sentences, the longest, labels; and what every kernel is told of a batch."""
    if places is None:
        batch, time, labels = emissions.shape
        strides = emissions.stride()
        by_tag = (0, 0) if tags is None else tags.stride()
        first = 0
    else:
        batch, time, labels = len(places.first), places.longest, len(start)
        strides, by_tag = (0, *emissions.stride()), (0, 1)
        first = places.first.data_ptr()
    told = (
        *(emissions.data_ptr(), *strides),
        *(transitions.data_ptr(), start.data_ptr(), end.data_ptr()),
        *(_pointer(lengths), first, _pointer(tags), *by_tag, batch, time),
    )
    return batch, time, labels, told


def sums(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    tags: Tensor | None,
    places: Places | None = None,
) -> Sums:
    """As `plain.sums`; the values are doubles where sentences lie one after the other, whose losses are added up."""
    batch, time, labels, told = _told(emissions, transitions, start, end, lengths, tags, places)
    on = plan(labels, emissions.dtype, emissions.device.index)
    tokens = emissions.shape[:-1]
    ahead, behind = start.new_empty((*tokens, labels + 1)), start.new_empty((*tokens, labels))
    value = start.new_empty(batch, dtype=start.dtype if places is None else torch.float64)
    if not batch:
        return Sums(value, ahead, behind)
    at = value.data_ptr()
    out = ahead.data_ptr(), behind.data_ptr(), *((at, 0) if places is None else (0, at))
    if time < LONG or batch > on.processors:
        on["chain_forward"]((batch, 2, 1), on.threads, *told, *out, time, 1, 0, 0, 0)
        return Sums(value, ahead, behind)
    pieces = -(-time // PIECE)
    matrices = start.new_empty(batch * pieces * labels * (labels + 3 * (labels + 1)))
    scratch = matrices.data_ptr() + batch * pieces * labels * labels * matrices.element_size()
    doubles = start.new_empty(batch * pieces * (labels + 2), dtype=torch.float64)
    offsets = doubles.data_ptr() + 8 * batch * pieces * labels
    parts = offsets + 8 * batch * pieces
    entries = start.new_empty(2 * batch * pieces * labels)
    found = matrices.data_ptr(), doubles.data_ptr()
    on["chain_matrices"](
        (batch * pieces * labels, 1, 1), on.threads, *told, PIECE, pieces, *found, scratch, parts
    )
    whole = _pointer(lengths), batch, time, end.data_ptr()
    begun = entries.data_ptr(), offsets
    on["chain_join"]((batch, 2, 1), on.threads, *whole, PIECE, pieces, *found, *begun)
    on["chain_forward"]((batch * pieces, 2, 1), on.threads, *told, *out, PIECE, pieces, *begun, parts)
    return Sums(value, ahead, behind)


def _room(
    emissions: Tensor, start: Tensor, labels: int, places: Places | None, into: Gradient | None
) -> tuple[Gradient, tuple[int, ...]]:
    """Where a gradient goes, and the strides of that by emissions."""
    out = into
    if out is None:
        out = Gradient(
            torch.empty_like(emissions),
            start.new_empty((labels, labels)),
            start.new_empty(labels),
            start.new_empty(labels),
        )
    by = out.emissions.stride()
    return out, by if places is None else (0, *by)


def _reduce(on: Plan, labels: int, work: tuple[int, ...], blocks: int, out: Gradient) -> None:
    pairs, starts, ends = work
    on["chain_reduce"](
        (-(-(labels * labels + 2 * labels) // 32), 1, 1),
        256,
        *(pairs, blocks, starts, ends),
        *(out.transitions.data_ptr(), out.start.data_ptr(), out.end.data_ptr()),
    )


def _parts(start: Tensor, labels: int, blocks: int) -> tuple[Tensor, tuple[int, ...]]:
    """Room for the sums of each block over pairs, first and last tokens."""
    work = start.new_empty(blocks * labels * (labels + 2))
    pairs, item = work.data_ptr(), work.element_size()
    starts = pairs + blocks * labels * labels * item
    return work, (pairs, starts, starts + blocks * labels * item)


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
    into: Gradient | None = None,
) -> Gradient:
    """As `plain.expect`; a scale of no dimension is that of all. The same bits every time. `into`: where it goes."""
    batch, time, labels, told = _told(emissions, transitions, start, end, lengths, tags, places)
    out, by = _room(emissions, start, labels, places, into)
    pieces = batch * -(-time // _TOKENS)
    if not pieces:
        return Gradient(*(x.zero_() for x in out))
    on = plan(labels, emissions.dtype, emissions.device.index)
    small = (-(-labels // 4)) ** 2 <= 128  # tiles of pairs fit into as many threads
    blocks = min(pieces, (8 if small else 4) * on.processors)
    held, work = _parts(start, labels, blocks)
    on["chain_expect"](
        (blocks, 1, 1),
        128 if small else 256,
        *told,
        *(ahead.data_ptr(), behind.data_ptr(), scale.data_ptr(), scale.stride(0) if scale.dim() else 0),
        *(out.emissions.data_ptr(), *by, *work),
    )
    _reduce(on, labels, work, blocks, out)
    del held  # until here
    return out


def bend(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    tags: Tensor | None,
    ahead: Tensor,
    behind: Tensor,
    scale: Tensor,
    along: Gradient,
    places: Places | None = None,
    into: Gradient | None = None,
) -> tuple[Gradient, Tensor]:
    """As `plain.bend`, for log Z: without tags."""
    assert tags is None
    batch, time, labels, told = _told(emissions, transitions, start, end, lengths, None, places)
    out, by = _room(emissions, start, labels, places, into)
    total = start.new_empty(batch)
    pieces = batch * -(-time // _BENT)
    if not pieces:
        return Gradient(*(x.zero_() for x in out)), total.zero_()
    on = plan(labels, emissions.dtype, emissions.device.index)
    v_e, v_w, v_s, v_n = (None if x is None else x.to(start.dtype).contiguous() for x in along)
    assert v_e is not None
    rows = start.new_empty((3, *behind.shape))
    means = start.new_empty(behind.shape[:-1])
    head, norm, tail = (rows[k].data_ptr() for k in range(3))
    known = ahead.data_ptr(), behind.data_ptr()
    on["bend_walk"](
        (batch, 2, 1),
        on.threads,
        *(*told, *known, v_e.data_ptr(), _pointer(v_w), _pointer(v_s), _pointer(v_n)),
        *(head, means.data_ptr(), norm, tail, total.data_ptr()),
    )
    blocks = min(pieces, 4 * on.processors)
    held, work = _parts(start, labels, blocks)
    on["bend_pairs"](
        (blocks, 1, 1),
        256,
        *(*told, *known, scale.data_ptr(), scale.stride(0) if scale.dim() else 0),
        *(v_e.data_ptr(), _pointer(v_w), head, means.data_ptr(), norm, tail),
        *(out.emissions.data_ptr(), *by, *work),
    )
    _reduce(on, labels, work, blocks, out)
    del held
    return out, total


def best(
    emissions: Tensor,
    transitions: Tensor,
    start: Tensor,
    end: Tensor,
    lengths: Tensor | None,
    places: Places | None = None,
) -> tuple[Tensor, Tensor]:
    """As `plain.best`."""
    batch, _, labels, told = _told(emissions, transitions, start, end, lengths, None, places)
    tokens = emissions.shape[:-1]
    path = torch.empty(tokens, dtype=torch.int64, device=emissions.device)
    value = start.new_empty(batch)
    if batch:
        on = plan(labels, emissions.dtype, emissions.device.index)
        back = torch.empty((*tokens, labels), dtype=torch.uint8, device=emissions.device)
        out = back.data_ptr(), path.data_ptr(), value.data_ptr()
        on["chain_best"]((batch, 1, 1), on.threads, *told, *out)
    return path, value
