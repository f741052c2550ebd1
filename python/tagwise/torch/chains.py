"""Queries on a batch of chains, with edge scores that are shared or specific to each token.

Shared edge scores use the operators of `ops`, others the loops of `varying`. The score of a path y of n tokens is

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
    """Return the number of tokens of each sentence (B,), int64."""
    batch, time, _ = chains.emissions.shape
    if chains.lengths is not None:
        return chains.lengths.to(torch.int64)
    return torch.full((batch,), time, dtype=torch.int64, device=chains.emissions.device)


def inside(chains: Chains) -> Tensor:
    """Return a mask (B, T) of tokens that are not padding."""
    return torch.arange(chains.emissions.shape[1], device=chains.emissions.device) < count(chains)[:, None]


def restricted(chains: Chains, support: Tensor) -> Chains:
    """Restrict the chains to the paths of a support (B, T, L)."""
    return chains._replace(emissions=chains.emissions.masked_fill(~support, -torch.inf))


def exact(chains: Chains) -> Chains:
    """Convert the emissions to the dtype of the sums, so that derivatives are not rounded to half precision."""
    return chains._replace(emissions=chains.emissions.to(chains.start.dtype))


def score(chains: Chains, tags: Tensor) -> Tensor:
    """Return the scores (..., B) of paths (..., B, T)."""
    emissions, transitions, start, end, _, edges = chains
    mask = inside(chains)
    y = torch.where(mask, tags, 0)
    picked = emissions.expand(*y.shape[:-2], *emissions.shape).gather(-1, y[..., None]).squeeze(-1)
    zero = start.new_zeros(())
    total = torch.where(mask, picked.to(start.dtype), zero).sum(-1)
    steps = transitions[y[..., :-1], y[..., 1:]]
    if edges is not None:
        steps = steps + varying.at_path(edges, y)
    total = total + torch.where(mask[:, 1:], steps, zero).sum(-1)
    last = (count(chains) - 1).clamp(min=0).expand(y.shape[:-1])
    return total + start[y[..., 0]] + end[y.gather(-1, last[..., None]).squeeze(-1)]


def log_partition(chains: Chains) -> Tensor:
    """Return log Z (B,)."""
    if chains.edges is not None:
        return varying.log_partition(chains)
    return ops.chain(*chains[:5], None)


def log_likelihood(chains: Chains, tags: Tensor, summed: bool = False) -> Tensor:
    """Return log p(tags) (B,), or its sum over the sentences."""
    if chains.edges is not None:
        value = score(chains, tags) - varying.log_partition(chains)
        return value.sum() if summed else value
    return ops.chain(*chains[:5], tags, summed)


def marginals(chains: Chains) -> Tensor:
    """Return the marginals p_t(y) (B, T, L), padded with 0. They are the gradient of log Z, and differentiable."""
    if chains.edges is not None:
        return varying.marginals(chains)[0]
    whole = exact(chains)[:5]
    value, rows = ops.recursions(*whole, None)
    return ops.expectations(*whole, None, rows, torch.ones_like(value))[0]


def viterbi(chains: Chains) -> tuple[Tensor, Tensor]:
    """Return the Viterbi path (B, T), padded with -1, and its score (B,)."""
    if chains.edges is not None:
        with torch.no_grad():
            return varying.viterbi(chains)
    return ops.viterbi(*chains[:5])


def mean(chains: Chains, value: Chains) -> Tensor:
    """Return the expectation (B,), under `chains`, of the score that `value` assigns to a path."""
    if chains.edges is not None or value.edges is not None:
        return varying.mean(chains, value)
    return _Mean.apply(*exact(chains)[:5], *exact(value)[:4])


def finite(chains: Chains) -> Chains:
    """Replace -inf by 0. Such scores have probability 0, and 0 * -inf would be NaN."""

    def zeroed(x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(map(zeroed, x))
        return None if x is None else x.masked_fill(x == -torch.inf, 0.0)

    parts = (chains.emissions, chains.transitions, chains.start, chains.end)
    emissions, transitions, start, end = map(zeroed, parts)
    emissions = torch.where(inside(chains)[:, :, None], emissions, 0.0)  # padding is arbitrary
    return Chains(emissions, transitions, start, end, chains.lengths, zeroed(chains.edges))


def entropy(chains: Chains) -> Tensor:
    """Return the entropy -E[log p] = log Z - E[score] (B,)."""
    return log_partition(exact(chains)) - mean(chains, finite(chains))


class _Mean(torch.autograd.Function):  # type: ignore[misc]
    """Autograd function of <v, gradient of log Z_b> for each sentence.

    With weights g of the sentences, its derivative with respect to the scores is the Hessian of log Z times v
    (`ops.hessian_product`), and its derivative with respect to v the expectations (`ops.expectations`).
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        chain, along = inputs[:5], inputs[5:]
        value, rows = ops.recursions(*chain, None)
        ctx.save_for_backward(*inputs, rows)
        return ops.hessian_product(*chain, None, rows, torch.ones_like(value), *along)[4]

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, slope: Tensor) -> Any:
        *inputs, rows = ctx.saved_tensors
        chain, along = inputs[:5], inputs[5:]
        change = ops.hessian_product(*chain, None, rows, slope, *along)[:4]
        return *change, None, *ops.expectations(*chain, None, rows, slope)
