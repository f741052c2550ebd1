"""Chains on the CPU in single precision: the SIMD code of the core on PyTorch's memory, with PyTorch's threads.

`sums` keeps nothing for `expect`, which runs the recursions again with the weights of the sentences. If all weights are
equal, `gradient` runs them once for both.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import tagwise._core as _core
from tagwise.torch.engines import reference
from tagwise.torch.protocol import Chain, Gradient, Sums


def _array(x: Tensor, kind: torch.dtype) -> Any:
    """Return a tensor as a contiguous NumPy array of dtype `kind`, without a copy if it is one already."""
    x = x.detach()
    if x.dtype != kind or not x.is_contiguous():
        x = x.to(kind).contiguous()
    return x.numpy()


def _chains(chain: Chain) -> _core.Chains:
    node, edge, start, end = (_array(x, torch.float32) for x in chain[:4])
    many = None if chain.lengths is None else _array(chain.lengths, torch.int32)
    tags = None if chain.tags is None else _array(chain.tags, torch.int64)
    return _core.Chains(node, many, edge, start, end, tags)


def sums(chain: Chain) -> Sums:
    """Implement `Engine.sums` without the recursions. The value is NaN if a tag is not a label."""
    value = torch.from_numpy(_chains(chain).values(torch.get_num_threads()))
    return Sums(value.to(chain.start.dtype), chain.start.new_empty(0))


def _derived(chain: Chain, scale: Tensor | None) -> tuple[Any, Gradient]:
    """Return the values and the gradient of sum_b scale_b value_b (scale 1 if None)."""
    weights = None if scale is None else _array(scale, torch.float64)
    flat = torch.contiguous_format
    out = [torch.empty_like(x, dtype=torch.float32, memory_format=flat) for x in chain[:4]]
    node, edge, start, end = (x.numpy() for x in out)
    value = _chains(chain).gradient(weights, node, edge, start, end, torch.get_num_threads())
    kinds = (given.dtype for given in chain[:4])
    return value, Gradient(*(x if kind == x.dtype else x.to(kind) for x, kind in zip(out, kinds)))


def gradient(chain: Chain) -> tuple[Tensor, Gradient]:
    """Return the sum of the values and its gradient: `sums` and `expect` in one pass."""
    value, found = _derived(chain, None)
    return torch.scalar_tensor(value.sum(), dtype=chain.start.dtype), found


def scale(found: Gradient, by: Tensor) -> None:
    """Multiply a gradient by a number, in place."""
    factor = by.item()
    if factor != 1.0:
        torch._foreach_mul_(found, factor)


def expect(chain: Chain, rows: Tensor, scale: Tensor) -> Gradient:
    """Implement `Engine.expect`. `rows` are ignored."""
    return _derived(chain, scale)[1]


def bend(chain: Chain, rows: Tensor, scale: Tensor, along: Gradient) -> tuple[Gradient, Tensor]:
    """Implement `Engine.bend` with the reference implementation and its recursions. `rows` are ignored."""
    return reference.bend(chain, reference.sums(chain._replace(tags=None)).rows, scale, along)


def best(chain: Chain) -> tuple[Tensor, Tensor]:
    """Implement `Engine.best`."""
    path = torch.empty(chain.emissions.shape[:2], dtype=torch.int64)
    value = _chains(chain._replace(tags=None)).best(path.numpy(), torch.get_num_threads())
    return path, torch.from_numpy(value).to(chain.start.dtype)
