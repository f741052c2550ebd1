"""Chains on CUDA: the kernels of `kernels/`, for up to MOST_LABELS labels, which fit into the registers of a block.

Sentences are rows of a batch, emissions (B, T, L) of any strides, or concatenated: emissions (tokens, L) with `Places`.
The recursions are logarithms to the base 2: forward rows of all tokens, each followed by one offset, then backward rows
(`halves`).
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from tagwise.torch.engines import launching
from tagwise.torch.protocol import Chain, ForwardBackward, Gradient
from tagwise.torch.renormalize import EVERY, FIRST

#: Maximum number of labels of these kernels. `many_labels` handles more.
MOST_LABELS = 64
#: Batches with sentences of LONG tokens or more, and at most one sentence per multiprocessor, are cut into pieces of
#: PIECE tokens that are summed in parallel.
LONG, PIECE = 2048, 512
_INPUTS = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2, torch.float64: 3}
_TOKENS, _HESSIAN_TOKENS = 32, 16


#: Macros for many more recursions than run at a time, when occupancy matters more than the latency of one.
_OCCUPANCY: launching.Macros = (("PREFETCH", 4), ("RESIDENT", 16))


class KernelSet:
    """Kernels for a number of labels, a dtype of emissions and a device. Each is compiled at first use."""

    def __init__(self, labels: int, kind: torch.dtype, device: int, crowded: bool) -> None:
        warps = -(-labels // 32)
        self.device, self.threads = device, 32 * warps
        self.macros: launching.Macros = (
            ("L", labels),
            ("WARPS", warps),
            ("DOUBLE", int(kind == torch.float64)),
            ("INPUT", _INPUTS[kind]),
            ("FIRST", FIRST),
            ("EVERY", EVERY),
            *(_OCCUPANCY if crowded else ()),
        )
        self.processors = launching.processors(device)
        self._small = (-(-labels // 4)) ** 2 <= 128  # 128 threads are enough for the tiles of pairs
        self._kernels: dict[str, launching.CompiledKernel] = {}

    def blocks(self, batch: int, time: int) -> tuple[int, int]:
        """Return the numbers of blocks and threads per block of `expectations_pairs`."""
        most = (8 if self._small else 4) * self.processors
        return min(batch * -(-time // _TOKENS), most), 128 if self._small else 256

    def __getitem__(self, name: str) -> launching.CompiledKernel:
        """Return a kernel by name, which is that of its source, an underscore and one more word."""
        found = self._kernels.get(name)
        if found is None:
            source = name.rpartition("_")[0]
            found = self._kernels[name] = launching.kernel(source, self.device, self.macros, name)
        return found


@cache
def plan(labels: int, kind: torch.dtype, device: int | None, crowded: bool = False) -> KernelSet:
    """Return the cached plan. `crowded`: for many more sentences than run at a time."""
    return KernelSet(labels, kind, device or 0, crowded)


def _pointer(tensor: Tensor | None) -> int:
    return 0 if tensor is None else int(tensor.data_ptr())


def _batch_arguments(chain: Chain) -> tuple[int, int, int, tuple[int, ...]]:
    """Return the numbers of sentences, of tokens at most, and of labels, and the batch arguments of every kernel."""
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
    arguments = (
        *(emissions.data_ptr(), *strides),
        *(transitions.data_ptr(), start.data_ptr(), end.data_ptr()),
        *(_pointer(lengths), first, _pointer(tags), *by_tag, batch, time),
    )
    return batch, time, labels, arguments


def width(labels: int) -> int:
    """Return how many numbers the recursions store per token."""
    return 2 * labels + 1


def _forward_size(rows: Tensor, labels: int) -> int:
    """Return how many numbers of the recursions precede the backward rows."""
    return int(rows.numel()) // width(labels) * (labels + 1)


def halves(rows: Tensor, labels: int) -> tuple[Tensor, Tensor]:
    """Return views of the forward and backward recursions, (tokens, L) each."""
    cut = _forward_size(rows, labels)
    flat = rows.view(-1)
    return flat[:cut].view(-1, labels + 1)[:, :labels], flat[cut:].view(-1, labels)


def _recursion_addresses(rows: Tensor, labels: int) -> tuple[int, int]:
    """Return the addresses of the forward and backward recursions."""
    at = rows.data_ptr()
    return at, at + _forward_size(rows, labels) * rows.element_size()


def forward_backward(chain: Chain) -> ForwardBackward:
    """Implement `Engine.forward_backward`. Values of concatenated sentences are doubles for summation."""
    batch, time, labels, arguments = _batch_arguments(chain)
    emissions, start, places = chain.emissions, chain.start, chain.places
    crowded = (
        places is not None and labels <= 32 and batch > 16 * launching.processors(emissions.device.index or 0)
    )
    on = plan(labels, emissions.dtype, emissions.device.index, crowded)
    rows = start.new_empty((*emissions.shape[:-1], width(labels)))
    value = start.new_empty(batch, dtype=start.dtype if places is None else torch.float64)
    if not batch:
        return ForwardBackward(value, rows)
    at = value.data_ptr()
    out = *_recursion_addresses(rows, labels), *((at, 0) if places is None else (0, at))
    if time < LONG or batch > on.processors:
        on["chain_forward"]((batch, 2, 1), on.threads, *arguments, *out, time, 1, 0, 0, 0)
        return ForwardBackward(value, rows)
    pieces = -(-time // PIECE)
    matrices = start.new_empty(batch * pieces * labels * (labels + 3 * (labels + 1)))
    scratch = matrices.data_ptr() + batch * pieces * labels * labels * matrices.element_size()
    doubles = start.new_empty(batch * pieces * (labels + 2), dtype=torch.float64)
    offsets = doubles.data_ptr() + 8 * batch * pieces * labels
    parts = offsets + 8 * batch * pieces
    entries = start.new_empty(2 * batch * pieces * labels)
    found = matrices.data_ptr(), doubles.data_ptr()
    on["chain_matrices"](
        (batch * pieces * labels, 1, 1), on.threads, *arguments, PIECE, pieces, *found, scratch, parts
    )
    whole = _pointer(chain.lengths), batch, time, chain.end.data_ptr()
    begun = entries.data_ptr(), offsets
    on["chain_join"]((batch, 2, 1), on.threads, *whole, PIECE, pieces, *found, *begun)
    on["chain_forward"]((batch * pieces, 2, 1), on.threads, *arguments, *out, PIECE, pieces, *begun, parts)
    return ForwardBackward(value, rows)


def _output(chain: Chain, into: Gradient | None) -> tuple[Gradient, tuple[int, ...]]:
    """Return the output buffers of a gradient, `into` or new ones, and the strides of its emissions."""
    out = Gradient(*map(torch.empty_like, chain[:4])) if into is None else into
    by = out.emissions.stride()
    return out, by if chain.places is None else (0, *by)


def _reduce(
    on: KernelSet,
    labels: int,
    work: tuple[int, ...],
    blocks: int,
    out: Gradient,
    values: tuple[int, int, int] = (0, 0, 0),
) -> None:
    """Add the partial sums of blocks into `out`. `values`: address and number of values, and address of their sum."""
    pairs, starts, ends = work
    on["expectations_sum"](
        (-(-(labels * labels + 2 * labels + 1) // 32), 1, 1),
        256,
        *(pairs, blocks, starts, ends),
        *(out.transitions.data_ptr(), out.start.data_ptr(), out.end.data_ptr(), *values),
    )


def _parts(start: Tensor, labels: int, blocks: int) -> tuple[Tensor, tuple[int, ...]]:
    """Allocate buffers for the partial sums of each block over pairs, first and last tokens."""
    work = start.new_empty(blocks * labels * (labels + 2))
    return work, _partial_addresses(work.data_ptr(), labels, blocks, work.element_size())


def _partial_addresses(pairs: int, labels: int, blocks: int, item: int) -> tuple[int, ...]:
    """Return the addresses of the partial sums over pairs, first and last tokens in memory that begins at `pairs`."""
    starts = pairs + blocks * labels * labels * item
    return pairs, starts, starts + blocks * labels * item


def expectations(chain: Chain, rows: Tensor, scale: Tensor, into: Gradient | None = None) -> Gradient:
    """Implement `Engine.expectations`, deterministically. A 0-dimensional scale applies to all sentences.

    `into`: output buffers. New ones are allocated if None.
    """
    batch, time, labels, arguments = _batch_arguments(chain)
    out, by = _output(chain, into)
    if not batch or not time:
        return Gradient(*(x.zero_() for x in out))
    on = plan(labels, chain.emissions.dtype, chain.emissions.device.index)
    blocks, threads = on.blocks(batch, time)
    held, work = _parts(chain.start, labels, blocks)
    on["expectations_pairs"](
        (blocks, 1, 1),
        threads,
        *arguments,
        *(*_recursion_addresses(rows, labels), scale.data_ptr(), scale.stride(0) if scale.dim() else 0),
        *(out.emissions.data_ptr(), *by, *work),
    )
    _reduce(on, labels, work, blocks, out)
    del held  # `work` points into it
    return out


def gradient(chain: Chain) -> tuple[Tensor, Gradient]:
    """Return the sum of the values and its gradient with as few calls as possible.

    Steps of small batches are limited by the host, so all temporary memory is one allocation.
    """
    batch, time, labels, arguments = _batch_arguments(chain)
    emissions, start = chain.emissions, chain.start
    on = plan(labels, emissions.dtype, emissions.device.index)
    if not batch or (time >= LONG and batch <= on.processors):
        found = forward_backward(chain)
        return found.value.sum(), expectations(chain, found.rows, start.new_ones(()))
    out = Gradient(*map(torch.empty_like, chain[:4]))
    blocks, threads = on.blocks(batch, time)
    n_forward, n_backward = batch * time * (labels + 1), batch * time * labels
    held = start.new_empty(n_forward + n_backward + batch + blocks * labels * (labels + 2))
    total, item = start.new_empty(()), held.element_size()
    at = held.data_ptr()
    values = at + (n_forward + n_backward) * item
    recursions = at, at + n_forward * item
    work = _partial_addresses(values + batch * item, labels, blocks, item)
    on["chain_forward"]((batch, 2, 1), on.threads, *arguments, *recursions, values, 0, time, 1, 0, 0, 0)
    by = out.emissions.data_ptr(), *out.emissions.stride()
    on["expectations_pairs"]((blocks, 1, 1), threads, *arguments, *recursions, 0, 0, *by, *work)
    _reduce(on, labels, work, blocks, out, (values, batch, total.data_ptr()))
    del held  # `recursions`, `values` and `work` point into it
    return total, out


def scale(found: Gradient, by: Tensor) -> None:
    """Multiply a gradient returned by `gradient` by a number on the device, in place. Its tensors are contiguous."""
    emissions, transitions, start, end = (x.data_ptr() for x in found)
    on = plan(len(found.start), found.emissions.dtype, found.emissions.device.index)
    size = found.emissions.numel()
    blocks = min(1 + size // 1024, 8 * on.processors)
    on["expectations_scale"]((blocks, 1, 1), 256, by.data_ptr(), emissions, size, transitions, start, end)


def hessian_product(
    chain: Chain, rows: Tensor, scale: Tensor, along: Gradient, into: Gradient | None = None
) -> tuple[Gradient, Tensor]:
    """Implement `Engine.hessian_product`. Parts of the direction that are None count as 0."""
    batch, time, labels, arguments = _batch_arguments(chain._replace(tags=None))
    out, by = _output(chain, into)
    start = chain.start
    total = start.new_empty(batch)
    pieces = batch * -(-time // _HESSIAN_TOKENS)
    if not pieces:
        return Gradient(*(x.zero_() for x in out)), total.zero_()
    on = plan(labels, chain.emissions.dtype, chain.emissions.device.index)
    v_e, v_w, v_s, v_n = (None if x is None else x.to(start.dtype).contiguous() for x in along)
    assert v_e is not None
    tokens = chain.emissions.shape[:-1]
    derivatives, means = start.new_empty((3, *tokens, labels)), start.new_empty(tokens)
    head, norm, tail = (derivatives[k].data_ptr() for k in range(3))
    recursions = _recursion_addresses(rows, labels)
    on["hessian_walk"](
        (batch, 2, 1),
        on.threads,
        *(*arguments, *recursions, v_e.data_ptr(), _pointer(v_w), _pointer(v_s), _pointer(v_n)),
        *(head, means.data_ptr(), norm, tail, total.data_ptr()),
    )
    blocks = min(pieces, 4 * on.processors)
    held, work = _parts(start, labels, blocks)
    on["hessian_pairs"](
        (blocks, 1, 1),
        256,
        *(*arguments, *recursions, scale.data_ptr(), scale.stride(0) if scale.dim() else 0),
        *(v_e.data_ptr(), _pointer(v_w), head, means.data_ptr(), norm, tail),
        *(out.emissions.data_ptr(), *by, *work),
    )
    _reduce(on, labels, work, blocks, out)
    del held
    return out, total


def viterbi(chain: Chain) -> tuple[Tensor, Tensor]:
    """Implement `Engine.viterbi`."""
    batch, _, labels, arguments = _batch_arguments(chain._replace(tags=None))
    emissions = chain.emissions
    tokens = emissions.shape[:-1]
    path = torch.empty(tokens, dtype=torch.int64, device=emissions.device)
    value = chain.start.new_empty(batch)
    if batch:
        on = plan(labels, emissions.dtype, emissions.device.index)
        back = torch.empty((*tokens, labels), dtype=torch.uint8, device=emissions.device)
        out = back.data_ptr(), path.data_ptr(), value.data_ptr()
        on["viterbi_path"]((batch, 1, 1), on.threads, *arguments, *out)
    return path, value
