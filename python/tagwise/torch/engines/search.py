"""k-best search and sampling of paths: loops over tokens, each step over the whole batch."""

from __future__ import annotations

import torch
from torch import Tensor

from tagwise.torch.chains import count
from tagwise.torch.engines import varying
from tagwise.torch.engines.reference import log_sum_exp as log_sum_exp
from tagwise.torch.protocol import Chains
from tagwise.torch.renormalize import is_due, renormalized


@torch.no_grad()  # type: ignore[untyped-decorator]
def kbest(chains: Chains, k: int) -> tuple[Tensor, Tensor]:
    """Return the k best paths (B, k, T), padded with -1, and their scores (B, k), best first.

    A cell holds the k best prefixes that end in a label, with back pointers label * k + rank. If a sentence has fewer
    than k paths, the remaining entries have score -inf and labels -1.
    """
    node, lengths = varying.nodes(chains), count(chains)
    batch, time, labels = node.shape
    state = node.new_full((batch, labels, k), -torch.inf)
    state[:, :, 0] = node[:, 0]
    stay = torch.arange(labels * k, device=node.device).view(1, labels, k)
    back, total = [stay.expand(batch, labels, k)], node.new_zeros(batch, dtype=torch.float64)
    for t, edge in enumerate(varying.steps(chains), 1):
        reached = (state[:, :, :, None] + edge[:, :, None, :]).reshape(batch, labels * k, labels)
        top, where = reached.topk(k, dim=1)
        inside = (t < lengths)[:, None, None]
        state = torch.where(inside, top.transpose(1, 2) + node[:, t, :, None], state)
        back.append(torch.where(inside, where.transpose(1, 2), stay))
        if is_due(t):
            state, total = renormalized(state, total, t < lengths)
    value, cell = state.reshape(batch, labels * k).topk(k, dim=1)
    value = (value + total[:, None]).to(value.dtype)
    exists = value > -torch.inf
    path = torch.full((batch, k, time), -1, dtype=torch.int64, device=node.device)
    for t in range(time - 1, -1, -1):
        label = torch.div(cell, k, rounding_mode="floor")
        path[:, :, t] = torch.where(exists & (t < lengths)[:, None], label, -1)
        cell = back[t].reshape(batch, labels * k).gather(1, cell)
    return path, value


@torch.no_grad()  # type: ignore[untyped-decorator]
def sample(chains: Chains, n: int, generator: torch.Generator | None = None) -> Tensor:
    """Draw n paths per sentence (n, B, T), padded with -1.

    Forward filtering, backward sampling: p(y_t | y_{t+1}) is proportional to exp(a_t(y_t) + W(y_t, y_{t+1})). Labels
    are drawn as the argmax of score plus Gumbel noise.
    """
    node, edges, lengths = varying.nodes(chains), varying.steps(chains), count(chains)
    batch, time, labels = node.shape
    forward = [node[:, 0]]
    for t, edge in enumerate(edges, 1):
        moved = log_sum_exp(forward[-1][:, :, None] + edge, 1) + node[:, t]
        forward.append(torch.where((t < lengths)[:, None], moved, forward[-1]))
    rows = torch.arange(batch, device=node.device)
    label = torch.zeros(n, batch, dtype=torch.int64, device=node.device)
    path = []
    for t in range(time - 1, -1, -1):
        scores = forward[t].expand(n, batch, labels)
        if t + 1 < time:
            # (n, B, L): from each label to the one drawn at t + 1.
            onward = edges[t].transpose(1, 2)[rows, label]
            scores = torch.where((t + 1 < lengths)[:, None], scores + onward, scores)
        uniform = torch.rand(scores.shape, dtype=node.dtype, device=node.device, generator=generator)
        tiny = torch.finfo(node.dtype).tiny
        label = (scores - uniform.clamp_min(tiny).log().neg().clamp_min(tiny).log()).argmax(-1)
        path.append(torch.where(t < lengths, label, -1))
    return torch.stack(path[::-1], -1)
