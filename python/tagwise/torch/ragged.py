"""Chains of sentences that lie one after the other: by kernels on CUDA, elsewhere padded and in plain PyTorch.

Scores are (tokens, L), `places` says where each sentence begins, `lengths` (B,) how long it is. What comes out is as in
`gpu`; elsewhere sums are taken in double precision, which nothing but comparisons needs.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tagwise.torch import gpu, plain
from tagwise.torch.gpu import Places
from tagwise.torch.plain import Gradient, Sums


class Chain(NamedTuple):
    """Scores of the sentences: of tokens (tokens, L), of pairs (L, L), of first and last labels (L,)."""

    scores: Tensor
    transitions: Tensor
    start: Tensor
    end: Tensor
    lengths: Tensor
    places: Places


def _cells(chain: Chain) -> tuple[Tensor, Tensor]:
    """The token of each cell of the padded batch (B, T), and which cells there are."""
    time = torch.arange(chain.places.longest, device=chain.scores.device)
    there = time < chain.lengths[:, None]
    return torch.where(there, chain.places.first[:, None] + time, 0), there


def _padded(chain: Chain, values: Tensor | None) -> Tensor | None:
    return None if values is None else values[_cells(chain)[0]]


def _batch(chain: Chain) -> tuple[Tensor, ...]:
    scores = _padded(chain, chain.scores)
    assert scores is not None
    return *(x.double() for x in (scores, *chain[1:4])), chain.lengths


def _into(chain: Chain, found: Gradient, into: Gradient) -> Gradient:
    cells, there = _cells(chain)
    into.emissions[cells[there]] = found.emissions[there].to(into.emissions.dtype)
    for ours, theirs in zip(into[1:], found[1:]):
        ours.copy_(theirs)
    return into


def _on_gpu(chain: Chain) -> bool:
    return bool(chain.scores.device.type == "cuda")


def sums(chain: Chain, tags: Tensor | None = None) -> Sums:
    """log Z of each sentence, or the log-likelihood of tags (tokens,), in double precision; and the recursions."""
    if _on_gpu(chain):
        return gpu.sums(*chain[:5], tags, chain.places)
    return plain.sums(*_batch(chain), _padded(chain, tags))  # type: ignore[call-arg]


def expect(chain: Chain, tags: Tensor | None, found: Sums, scale: Tensor, into: Gradient) -> Gradient:
    """The gradient of sum_b scale_b value_b."""
    if _on_gpu(chain):
        return gpu.expect(*chain[:5], tags, *found[1:], scale, chain.places, into)
    by = plain.expect(*_batch(chain), _padded(chain, tags), *found[1:], scale.double())  # type: ignore[call-arg]
    return _into(chain, by, into)


def bend(chain: Chain, found: Sums, along: Tensor, into: Gradient) -> Gradient:
    """How the gradient of sum_b log Z_b changes along a direction of the scores (tokens, L)."""
    if _on_gpu(chain):
        one = chain.start.new_ones(len(found.value))
        way = Gradient(along, None, None, None)
        return gpu.bend(*chain[:5], None, *found[1:], one, way, chain.places, into)[0]
    scores, transitions, start, end, lengths = _batch(chain)
    one, v = found.value.new_ones(len(found.value)), _padded(chain, along.double())
    assert v is not None
    way = Gradient(v, *(torch.zeros_like(x) for x in (transitions, start, end)))
    change, _ = plain.bend(scores, transitions, start, end, lengths, None, *found[1:], one, way)
    return _into(chain, change, into)


def log_chance(chain: Chain, found: Sums, tags: Tensor) -> Tensor:
    """log p_t of a label of each token (tokens,), in double precision."""
    labels = len(chain.start)
    if _on_gpu(chain):  # logarithms to the base 2
        both = (found.ahead[:, :labels] + found.behind) * 0.6931471805599453
        return (both.gather(1, tags[:, None]).squeeze(1) - torch.logsumexp(both, 1)).double()
    cells, there = _cells(chain)
    both = torch.log_softmax(found.ahead + found.behind, 2)
    out = both.new_zeros(len(tags))
    out[cells[there]] = both[there].gather(1, tags[cells[there]][:, None]).squeeze(1)
    return out


def best(chain: Chain) -> Tensor:
    """The best path of each sentence, by tokens (tokens,)."""
    if _on_gpu(chain):
        return gpu.best(*chain[:5], chain.places)[0]
    cells, there = _cells(chain)
    path, _ = plain.best(*_batch(chain))
    out = torch.empty(len(chain.scores), dtype=torch.int64, device=chain.scores.device)
    out[cells[there]] = path[there]
    return out
