"""Chains on CUDA: the kernels of `kernels/`, for as many labels as a block's registers hold.

Sentences are rows of a batch, emissions (B, T, L) of any strides, or lie one after the other: emissions (tokens, L) and
`Places`, where each begins. The recursions are logarithms to the base 2 here: forward rows of all tokens, with a number
behind each, then backward rows (`halves`).
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from tagwise.torch.engines import launching
from tagwise.torch.protocol import Chain, Gradient, Sums
from tagwise.torch.renormalize import EVERY, FIRST

#: Labels that these kernels serve; beyond it those of `wide` are used.
MOST_LABELS = 64
#: Sentences of so many tokens are cut into pieces of PIECE that are summed side by side, where they are few.
LONG, PIECE = 2048, 512
_INPUTS = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2, torch.float64: 3}
_TOKENS, _BENT = 32, 16


#: Where there are more recursions than multiprocessors have room for, room counts for more than the time of one.
_CROWDED: launching.Macros = (("AHEAD", 4), ("CROWD", 16))


class Plan:
    """The kernels of a number of labels and a type of emissions, on a device; each is compiled when first asked for."""

    def __init__(self, labels: int, kind: torch.dtype, device: int, crowded: bool) -> None:
        warps = -(-labels // 32)
        self.device, self.threads = device, 32 * warps
        self.macros: launching.Macros = (
            ("L", labels),
            ("WARPS", warps),
            ("WIDE", int(kind == torch.float64)),
            ("INPUT", _INPUTS[kind]),
            ("FIRST", FIRST),
            ("EVERY", EVERY),
            *(_CROWDED if crowded else ()),
        )
        self.processors = launching.processors(device)
        self._small = (-(-labels // 4)) ** 2 <= 128  # tiles of pairs fit into as many threads
        self._kernels: dict[str, launching.Kernel] = {}

    def blocks(self, batch: int, time: int) -> tuple[int, int]:
        """Blocks that share the pieces of sentences in `expect_pairs`, and threads of each."""
        most = (8 if self._small else 4) * self.processors
        return min(batch * -(-time // _TOKENS), most), 128 if self._small else 256

    def __getitem__(self, name: str) -> launching.Kernel:
        """A kernel by its name; the best path and the second derivative are sources of their own."""
        found = self._kernels.get(name)
        if found is None:
            source = "best" if name == "chain_best" else name.partition("_")[0]
            found = self._kernels[name] = launching.kernel(source, self.device, self.macros, name)
        return found


@cache
def plan(labels: int, kind: torch.dtype, device: int | None, crowded: bool = False) -> Plan:
    """The plan for these; `crowded`: for many more sentences than run at a time."""
    return Plan(labels, kind, device or 0, crowded)


def _pointer(tensor: Tensor | None) -> int:
    return 0 if tensor is None else int(tensor.data_ptr())


def _told(chain: Chain) -> tuple[int, int, int, tuple[int, ...]]:
    """Sentences, the longest, labels; and what every kernel is told of a batch."""
    emissions, transitions, start, end, lengths, tags, places = chain
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


def width(labels: int) -> int:
    """Numbers of a token in the recursions."""
    return 2 * labels + 1


def _behind(rows: Tensor, labels: int) -> int:
    """How many numbers of the recursions are forward ones."""
    return int(rows.numel()) // width(labels) * (labels + 1)


def halves(rows: Tensor, labels: int) -> tuple[Tensor, Tensor]:
    """The recursions of tokens, forward and backward, (tokens, L) each; no copies."""
    cut = _behind(rows, labels)
    flat = rows.view(-1)
    return flat[:cut].view(-1, labels + 1)[:, :labels], flat[cut:].view(-1, labels)


def _known(rows: Tensor, labels: int) -> tuple[int, int]:
    """Where both recursions lie."""
    at = rows.data_ptr()
    return at, at + _behind(rows, labels) * rows.element_size()


def sums(chain: Chain) -> Sums:
    """As `plain.sums`; the values are doubles where sentences lie one after the other, whose losses are added up."""
    batch, time, labels, told = _told(chain)
    emissions, start, places = chain.emissions, chain.start, chain.places
    crowded = (
        places is not None and labels <= 32 and batch > 16 * launching.processors(emissions.device.index or 0)
    )
    on = plan(labels, emissions.dtype, emissions.device.index, crowded)
    rows = start.new_empty((*emissions.shape[:-1], width(labels)))
    value = start.new_empty(batch, dtype=start.dtype if places is None else torch.float64)
    if not batch:
        return Sums(value, rows)
    at = value.data_ptr()
    out = *_known(rows, labels), *((at, 0) if places is None else (0, at))
    if time < LONG or batch > on.processors:
        on["chain_forward"]((batch, 2, 1), on.threads, *told, *out, time, 1, 0, 0, 0)
        return Sums(value, rows)
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
    whole = _pointer(chain.lengths), batch, time, chain.end.data_ptr()
    begun = entries.data_ptr(), offsets
    on["chain_join"]((batch, 2, 1), on.threads, *whole, PIECE, pieces, *found, *begun)
    on["chain_forward"]((batch * pieces, 2, 1), on.threads, *told, *out, PIECE, pieces, *begun, parts)
    return Sums(value, rows)


def _room(chain: Chain, into: Gradient | None) -> tuple[Gradient, tuple[int, ...]]:
    """Where a gradient goes, and the strides of that by emissions."""
    out = Gradient(*map(torch.empty_like, chain[:4])) if into is None else into
    by = out.emissions.stride()
    return out, by if chain.places is None else (0, *by)


def _reduce(
    on: Plan,
    labels: int,
    work: tuple[int, ...],
    blocks: int,
    out: Gradient,
    values: tuple[int, int, int] = (0, 0, 0),
) -> None:
    """Sums of blocks into their sum; of values, where and how many they are, to where theirs goes."""
    pairs, starts, ends = work
    on["expect_sum"](
        (-(-(labels * labels + 2 * labels + 1) // 32), 1, 1),
        256,
        *(pairs, blocks, starts, ends),
        *(out.transitions.data_ptr(), out.start.data_ptr(), out.end.data_ptr(), *values),
    )


def _parts(start: Tensor, labels: int, blocks: int) -> tuple[Tensor, tuple[int, ...]]:
    """Room for the sums of each block over pairs, first and last tokens."""
    work = start.new_empty(blocks * labels * (labels + 2))
    return work, _cut(work.data_ptr(), labels, blocks, work.element_size())


def _cut(pairs: int, labels: int, blocks: int, item: int) -> tuple[int, ...]:
    """Where the sums of blocks lie that begin here: over pairs, first and last tokens."""
    starts = pairs + blocks * labels * labels * item
    return pairs, starts, starts + blocks * labels * item


def expect(chain: Chain, rows: Tensor, scale: Tensor, into: Gradient | None = None) -> Gradient:
    """As `plain.expect`; a scale of no dimension is that of all. The same bits every time. `into`: where it goes."""
    batch, time, labels, told = _told(chain)
    out, by = _room(chain, into)
    if not batch or not time:
        return Gradient(*(x.zero_() for x in out))
    on = plan(labels, chain.emissions.dtype, chain.emissions.device.index)
    blocks, threads = on.blocks(batch, time)
    held, work = _parts(chain.start, labels, blocks)
    on["expect_pairs"](
        (blocks, 1, 1),
        threads,
        *told,
        *(*_known(rows, labels), scale.data_ptr(), scale.stride(0) if scale.dim() else 0),
        *(out.emissions.data_ptr(), *by, *work),
    )
    _reduce(on, labels, work, blocks, out)
    del held  # until here
    return out


def gradient(chain: Chain) -> tuple[Tensor, Gradient]:
    """The sum of the values and its gradient: `sums` and `expect` at once, with as few calls as it takes.

    The host is what a step of a small batch waits for: whatever is not an answer is one piece of memory.
    """
    batch, time, labels, told = _told(chain)
    emissions, start = chain.emissions, chain.start
    on = plan(labels, emissions.dtype, emissions.device.index)
    if not batch or (time >= LONG and batch <= on.processors):
        found = sums(chain)
        return found.value.sum(), expect(chain, found.rows, start.new_ones(()))
    out = Gradient(*map(torch.empty_like, chain[:4]))
    blocks, threads = on.blocks(batch, time)
    ahead, behind = batch * time * (labels + 1), batch * time * labels
    held = start.new_empty(ahead + behind + batch + blocks * labels * (labels + 2))
    total, item = start.new_empty(()), held.element_size()
    at = held.data_ptr()
    values = at + (ahead + behind) * item
    known = at, at + ahead * item
    work = _cut(values + batch * item, labels, blocks, item)
    on["chain_forward"]((batch, 2, 1), on.threads, *told, *known, values, 0, time, 1, 0, 0, 0)
    by = out.emissions.data_ptr(), *out.emissions.stride()
    on["expect_pairs"]((blocks, 1, 1), threads, *told, *known, 0, 0, *by, *work)
    _reduce(on, labels, work, blocks, out, (values, batch, total.data_ptr()))
    del held  # until here
    return total, out


def scale(found: Gradient, by: Tensor) -> None:
    """A gradient that `gradient` found times a number on the device, in place. (Its numbers lie without gaps.)"""
    emissions, transitions, start, end = (x.data_ptr() for x in found)
    on = plan(len(found.start), found.emissions.dtype, found.emissions.device.index)
    many = found.emissions.numel()
    blocks = min(1 + many // 1024, 8 * on.processors)
    on["expect_scale"]((blocks, 1, 1), 256, by.data_ptr(), emissions, many, transitions, start, end)


def bend(
    chain: Chain, rows: Tensor, scale: Tensor, along: Gradient, into: Gradient | None = None
) -> tuple[Gradient, Tensor]:
    """As `plain.bend`; what of a direction is None is 0."""
    batch, time, labels, told = _told(chain._replace(tags=None))
    out, by = _room(chain, into)
    start = chain.start
    total = start.new_empty(batch)
    pieces = batch * -(-time // _BENT)
    if not pieces:
        return Gradient(*(x.zero_() for x in out)), total.zero_()
    on = plan(labels, chain.emissions.dtype, chain.emissions.device.index)
    v_e, v_w, v_s, v_n = (None if x is None else x.to(start.dtype).contiguous() for x in along)
    assert v_e is not None
    tokens = chain.emissions.shape[:-1]
    bent, means = start.new_empty((3, *tokens, labels)), start.new_empty(tokens)
    head, norm, tail = (bent[k].data_ptr() for k in range(3))
    known = _known(rows, labels)
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


def best(chain: Chain) -> tuple[Tensor, Tensor]:
    """As `plain.best`."""
    batch, _, labels, told = _told(chain._replace(tags=None))
    emissions = chain.emissions
    tokens = emissions.shape[:-1]
    path = torch.empty(tokens, dtype=torch.int64, device=emissions.device)
    value = chain.start.new_empty(batch)
    if batch:
        on = plan(labels, emissions.dtype, emissions.device.index)
        back = torch.empty((*tokens, labels), dtype=torch.uint8, device=emissions.device)
        out = back.data_ptr(), path.data_ptr(), value.data_ptr()
        on["chain_best"]((batch, 1, 1), on.threads, *told, *out)
    return path, value
