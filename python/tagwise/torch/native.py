"""Chains on the CPU in single precision: the lanes of the core, on PyTorch's arrays as they lie, by all its threads.

Nothing is kept between `sums` and `expect`: the recursions are run again with the weights of the sentences, which costs
less than keeping them.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

import tagwise._core as _core
from tagwise.torch import plain
from tagwise.torch.protocol import Chain, Gradient, Sums


def _chains(chain: Chain) -> _core.Chains:
    many = plain._lengths(chain.emissions, chain.lengths).to(torch.int32)
    node = chain.emissions.detach().to(torch.float32).contiguous()
    double = [x.detach().double().contiguous().numpy() for x in chain[1:4]]
    return _core.Chains(node.numpy(), many.numpy(), *double)


def sums(chain: Chain) -> Sums:
    """As `plain.sums`, without the recursions."""
    total = torch.from_numpy(_chains(chain).log_z(torch.get_num_threads()))
    if chain.tags is not None:
        scored = plain.path_score(chain.double())
        total = torch.where(total > -torch.inf, scored - total, -torch.inf)
    return Sums(total.to(chain.start.dtype), chain.start.new_empty(0))


def expect(chain: Chain, rows: Tensor, scale: Tensor) -> Gradient:
    """As `plain.expect`."""
    emissions, transitions, start, _, lengths, tags, _ = chain
    weights = np.ascontiguousarray((scale if tags is None else -scale).detach().double().numpy())
    found = [torch.from_numpy(x) for x in _chains(chain).expect(weights, torch.get_num_threads())]
    out = Gradient(
        found[0].view(emissions.shape),
        found[1].view(transitions.shape).to(start.dtype),
        found[2].to(start.dtype),
        found[3].to(start.dtype),
    )
    if tags is not None:
        _add_gold(out, lengths, tags, scale)
    return out._replace(emissions=out.emissions.to(emissions.dtype))


def _add_gold(out: Gradient, lengths: Tensor | None, tags: Tensor, scale: Tensor) -> None:
    """The counts of the tags, weighted, on top."""
    many = plain._lengths(out.emissions, lengths)
    inside = torch.arange(tags.shape[1]) < many[:, None]
    y = torch.where(inside, tags, 0)
    weight = torch.where(inside, scale[:, None], 0.0)
    out.emissions.scatter_add_(2, y[:, :, None], weight[:, :, None].to(out.emissions.dtype))
    labels = len(out.start)
    pairs = (y[:, :-1] * labels + y[:, 1:]).flatten()
    out.transitions.view(-1).index_add_(0, pairs, weight[:, 1:].flatten())
    here = scale * (many > 0)
    if tags.shape[1]:
        out.start.index_add_(0, y[:, 0], here)
        out.end.index_add_(0, y.gather(1, (many - 1).clamp(min=0)[:, None]).squeeze(1), here)


def bend(chain: Chain, rows: Tensor, scale: Tensor, along: Gradient) -> tuple[Gradient, Tensor]:
    """As `plain.bend`, with recursions of its own."""
    return plain.bend(chain, plain.sums(chain._replace(tags=None)).rows, scale, along)


def best(chain: Chain) -> tuple[Tensor, Tensor]:
    """As `plain.best`."""
    path, value = _chains(chain).best(torch.get_num_threads())
    return torch.from_numpy(path).view(chain.emissions.shape[:2]), torch.from_numpy(value).to(
        chain.start.dtype
    )
