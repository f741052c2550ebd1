"""What is asked of a batch of chains, whether edge scores are shared or each token has its own.

Shared ones go through the operators of `ops`, others through the loops of `varying`. A sentence b of n tokens scores a
path y by

    start(y_0) + sum_t e_t(y_t) + sum_{t>0} (W + E_t)(y_{t-1}, y_t) + end(y_{n-1}).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tagwise.torch import ops
from tagwise.torch.engines import varying
from tagwise.torch.protocol import Chains


def count(chains: Chains) -> Tensor:
    """Tokens of each sentence (B,), int64."""
    batch, time, _ = chains.emissions.shape
    if chains.lengths is not None:
        return chains.lengths.to(torch.int64)
    return torch.full((batch,), time, dtype=torch.int64, device=chains.emissions.device)


def inside(chains: Chains) -> Tensor:
    """Which tokens there are (B, T)."""
    return torch.arange(chains.emissions.shape[1], device=chains.emissions.device) < count(chains)[:, None]


def restricted(chains: Chains, support: Tensor) -> Chains:
    """The chains over the paths of a support (B, T, L)."""
    return chains._replace(emissions=chains.emissions.masked_fill(~support, -torch.inf))


def exact(chains: Chains) -> Chains:
    """The emissions in the type of the sums: what is more than a value is not to be rounded to half precision."""
    return chains._replace(emissions=chains.emissions.to(chains.start.dtype))


def score(chains: Chains, tags: Tensor) -> Tensor:
    """The score of paths (..., B, T) -> (..., B)."""
    emissions, transitions, start, end, _, edges = chains
    there = inside(chains)
    y = torch.where(there, tags, 0)
    picked = emissions.expand(*y.shape[:-2], *emissions.shape).gather(-1, y[..., None]).squeeze(-1)
    zero = start.new_zeros(())
    total = torch.where(there, picked.to(start.dtype), zero).sum(-1)
    steps = transitions[y[..., :-1], y[..., 1:]]
    if edges is not None:
        steps = steps + varying.at_path(edges, y)
    total = total + torch.where(there[:, 1:], steps, zero).sum(-1)
    last = (count(chains) - 1).clamp(min=0).expand(y.shape[:-1])
    return total + start[y[..., 0]] + end[y.gather(-1, last[..., None]).squeeze(-1)]


def log_partition(chains: Chains) -> Tensor:
    """log Z (B,)."""
    if chains.edges is not None:
        return varying.log_partition(chains)
    return ops.chain(*chains[:5], None)


def log_likelihood(chains: Chains, tags: Tensor, added: bool = False) -> Tensor:
    """log p(tags) (B,), or the sum over the sentences."""
    if chains.edges is not None:
        value = score(chains, tags) - varying.log_partition(chains)
        return value.sum() if added else value
    return ops.chain(*chains[:5], tags, added)


def marginals(chains: Chains) -> Tensor:
    """p_t(y) (B, T, L), 0 beyond an end: the derivative of log Z, which can be derived again."""
    if chains.edges is not None:
        return varying.marginals(chains)[0]
    whole = exact(chains)[:5]
    value, rows = ops.recursions(*whole, None)
    return ops.expect(*whole, None, rows, torch.ones_like(value))[0]


def best(chains: Chains) -> tuple[Tensor, Tensor]:
    """The best path (B, T), -1 beyond an end, and its score (B,)."""
    if chains.edges is not None:
        with torch.no_grad():
            return varying.best(chains)
    return ops.best(*chains[:5])


def mean(chains: Chains, value: Chains) -> Tensor:
    """E[value of the path] (B,) for paths drawn from `chains`, where `value` scores them as chains do."""
    if chains.edges is not None or value.edges is not None:
        return varying.mean(chains, value)
    return _Mean.apply(*exact(chains)[:5], *exact(value)[:4])


def finite(chains: Chains) -> Chains:
    """-inf, which has no probability, replaced by 0, so that 0 times it is 0."""

    def zeroed(x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(map(zeroed, x))
        return None if x is None else x.masked_fill(x == -torch.inf, 0.0)

    parts = (chains.emissions, chains.transitions, chains.start, chains.end)
    emissions, transitions, start, end = map(zeroed, parts)
    emissions = torch.where(inside(chains)[:, :, None], emissions, 0.0)  # padding may be anything
    return Chains(emissions, transitions, start, end, chains.lengths, zeroed(chains.edges))


def entropy(chains: Chains) -> Tensor:
    """-E[log p] = log Z - E[score] (B,)."""
    return log_partition(exact(chains)) - mean(chains, finite(chains))


class _Mean(torch.autograd.Function):  # type: ignore[misc]
    """<v, gradient of log Z_b> for each sentence.

    Its derivative along a weight g of the sentences is the curvature of log Z times v by the scores (`ops.bend`), and
    the expectations (`ops.expect`) by v.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        chain, along = inputs[:5], inputs[5:]
        value, rows = ops.recursions(*chain, None)
        ctx.save_for_backward(*inputs, rows)
        return ops.bend(*chain, None, rows, torch.ones_like(value), *along)[4]

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, slope: Tensor) -> Any:
        *inputs, rows = ctx.saved_tensors
        chain, along = inputs[:5], inputs[5:]
        change = ops.bend(*chain, None, rows, slope, *along)[:4]
        return *change, None, *ops.expect(*chain, None, rows, slope)
