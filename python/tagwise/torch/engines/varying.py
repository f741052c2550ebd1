"""Chains whose edge scores depend on the token: loops over tokens in plain PyTorch, differentiated by autograd.

Edge scores at t are W + E_t, or W + U_t V_t' for two factors, which are multiplied out step by step. Autograd keeps the
intermediate values: memory is O(B T L^2), as for the edge scores themselves.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tagwise.torch.engines.reference import log_sum_exp as log_sum_exp
from tagwise.torch.protocol import Chains, Edges
from tagwise.torch.renormalize import is_due, renormalized


def at_path(edges: Edges, tags: Tensor) -> Tensor:
    """Return E_t(y_{t-1}, y_t) for t > 0 (..., B, T - 1) of paths (..., B, T)."""
    before, after = tags[..., :-1], tags[..., 1:]
    if isinstance(edges, tuple):
        rank = edges[0].shape[-1]
        factors = (
            x[:, 1:].expand(*y.shape, *x.shape[2:]).gather(-2, y[..., None, None].expand(*y.shape, 1, rank))
            for x, y in zip(edges, (before, after))
        )
        left, right = factors
        return (left * right).sum((-1, -2))
    batch, time = torch.arange(edges.shape[0]), torch.arange(1, edges.shape[1])
    return edges[batch.to(edges.device)[:, None], time.to(edges.device), before, after]


def steps(chains: Chains) -> list[Tensor]:
    """Return the edge scores (B, L, L) into each token except the first."""
    batch, time, labels = chains.emissions.shape
    edges = chains.edges
    out = []
    for t in range(1, time):
        if edges is None:
            at = chains.transitions.expand(batch, labels, labels)
        elif isinstance(edges, tuple):
            at = chains.transitions + edges[0][:, t] @ edges[1][:, t].transpose(1, 2)
        else:
            at = chains.transitions + edges[:, t]
        out.append(at)
    return out


def _lengths(chains: Chains) -> Tensor:
    batch, time, _ = chains.emissions.shape
    if chains.lengths is None:
        return torch.full((batch,), time, device=chains.emissions.device)
    return chains.lengths


def nodes(chains: Chains) -> Tensor:
    """Return the emissions (B, T, L) with start scores added at first tokens and end scores at last tokens."""
    time = torch.arange(chains.emissions.shape[1], device=chains.emissions.device)
    zero = chains.start.new_zeros(())
    first = torch.where((time == 0)[:, None], chains.start, zero)
    lengths = _lengths(chains)[:, None]
    last = (time == lengths - 1)[..., None]
    inside = (time < lengths)[..., None]  # padding is arbitrary, and 0 times NaN would be NaN
    return (
        torch.where(inside, chains.emissions.to(chains.start.dtype), zero)
        + first
        + torch.where(last, chains.end, zero)
    )


def _total(node: Tensor, edge: list[Tensor], lengths: Tensor) -> Tensor:
    state = node[:, 0]
    for t, at in enumerate(edge, 1):
        moved = log_sum_exp(state[:, :, None] + at, 1) + node[:, t]
        state = torch.where((t < lengths)[:, None], moved, state)
    return log_sum_exp(state, 1)


def log_partition(chains: Chains) -> Tensor:
    """Return log Z (B,)."""
    return _total(nodes(chains), steps(chains), _lengths(chains))


def marginals(chains: Chains) -> tuple[Tensor, ...]:
    """Return p_t(y) (B, T, L), and p_t(y', y) (B, L, L) of each token except the first.

    They are differentiable if gradients are enabled.
    """
    graph = torch.is_grad_enabled()
    with torch.enable_grad():
        parts = [nodes(chains), *steps(chains)]
        if not graph:
            parts = [x.detach() for x in parts]
        parts = [x if x.requires_grad else x.requires_grad_() for x in parts]
        total = _total(parts[0], parts[1:], _lengths(chains)).sum()
        found = torch.autograd.grad(total, parts, create_graph=graph)
    return tuple(found)


def mean(chains: Chains, value: Chains) -> Tensor:
    """Return the expectation (B,), under `chains`, of the score that `value` assigns to a path."""
    one, *pairs = marginals(chains)
    total = (one * nodes(value)).sum((1, 2))
    for p, v in zip(pairs, steps(value)):
        total = total + (p * v).sum((1, 2))
    return total


def viterbi(chains: Chains) -> tuple[Tensor, Tensor]:
    """Return the Viterbi path (B, T), padded with -1, and its score. The lower label wins ties."""
    node, edge, lengths = nodes(chains), steps(chains), _lengths(chains)
    batch, time, labels = node.shape
    identity = torch.arange(labels, device=node.device).expand(batch, labels)
    state, back = node[:, 0], [identity]
    total = node.new_zeros(batch, dtype=torch.float64)
    for t, at in enumerate(edge, 1):
        top, where = (state[:, :, None] + at).max(1)
        inside = (t < lengths)[:, None]
        state = torch.where(inside, top + node[:, t], state)
        back.append(torch.where(inside, where, identity))
        if is_due(t):
            state, total = renormalized(state, total, t < lengths)
    value, label = state.max(1)
    value = (value + total).to(value.dtype)
    path = []
    for t in range(time - 1, -1, -1):
        path.append(torch.where(t < lengths, label, -1))
        label = back[t].gather(1, label[:, None]).squeeze(1)
    return torch.stack(path[::-1], 1), value
