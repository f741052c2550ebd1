"""Chains on the CPU in single precision: the SIMD code of the core on PyTorch's memory, with PyTorch's threads.

`forward_backward` keeps nothing for `expectations`, which runs the recursions again with the weights of the sentences.
If all weights are equal, `gradient` runs them once for both.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import tagwise._core as _core
from tagwise.torch.engines import reference
from tagwise.torch.protocol import Chain, ForwardBackward, Gradient


def _array(x: Tensor, kind: torch.dtype) -> Any:
    """Return a tensor as a contiguous NumPy array of dtype `kind`, without a copy if it is one already."""
    x = x.detach()
    if x.dtype != kind or not x.is_contiguous():
        x = x.to(kind).contiguous()
    return x.numpy()


def _chains(chain: Chain) -> _core.Chains:
    node, edge, start, end = (_array(x, torch.float32) for x in chain[:4])
    lengths = None if chain.lengths is None else _array(chain.lengths, torch.int32)
    tags = None if chain.tags is None else _array(chain.tags, torch.int64)
    return _core.Chains(node, lengths, edge, start, end, tags)


def forward_backward(chain: Chain) -> ForwardBackward:
    """Implement `Engine.forward_backward` without the recursions. The value is NaN if a tag is not a label."""
    value = torch.from_numpy(_chains(chain).values(torch.get_num_threads()))
    return ForwardBackward(value.to(chain.start.dtype), chain.start.new_empty(0))


def _gradient(chain: Chain, scale: Tensor | None) -> tuple[Any, Gradient]:
    """Return the values and the gradient of sum_b scale_b value_b (scale 1 if None)."""
    weights = None if scale is None else _array(scale, torch.float64)
    flat = torch.contiguous_format
    out = [torch.empty_like(x, dtype=torch.float32, memory_format=flat) for x in chain[:4]]
    node, edge, start, end = (x.numpy() for x in out)
    value = _chains(chain).gradient(weights, node, edge, start, end, torch.get_num_threads())
    kinds = (tensor.dtype for tensor in chain[:4])
    return value, Gradient(*(x if kind == x.dtype else x.to(kind) for x, kind in zip(out, kinds)))


def gradient(chain: Chain) -> tuple[Tensor, Gradient]:
    """Return the sum of the values and its gradient: `forward_backward` and `expectations` in one pass."""
    value, found = _gradient(chain, None)
    return torch.scalar_tensor(value.sum(), dtype=chain.start.dtype), found


def scale(found: Gradient, by: Tensor) -> None:
    """Multiply a gradient by a number, in place."""
    factor = by.item()
    if factor != 1.0:
        torch._foreach_mul_(found, factor)


def expectations(chain: Chain, rows: Tensor, scale: Tensor) -> Gradient:
    """Implement `Engine.expectations`. `rows` are ignored."""
    return _gradient(chain, scale)[1]


def hessian_product(chain: Chain, rows: Tensor, scale: Tensor, along: Gradient) -> tuple[Gradient, Tensor]:
    """Implement `Engine.hessian_product` with the reference implementation and its recursions. `rows` are ignored."""
    return reference.hessian_product(
        chain, reference.forward_backward(chain._replace(tags=None)).rows, scale, along
    )


def viterbi(chain: Chain) -> tuple[Tensor, Tensor]:
    """Implement `Engine.viterbi`."""
    path = torch.empty(chain.emissions.shape[:2], dtype=torch.int64)
    value = _chains(chain._replace(tags=None)).best(path.numpy(), torch.get_num_threads())
    return path, torch.from_numpy(value).to(chain.start.dtype)
