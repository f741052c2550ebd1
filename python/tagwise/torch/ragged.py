"""Chains of sentences that lie one after the other: by kernels on CUDA, elsewhere padded and in plain PyTorch.

Emissions are (tokens, L), `places` says where each sentence begins, `lengths` (B,) how long it is. What comes out is as
in `gpu`; elsewhere sums are taken in double precision, which nothing but comparisons needs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tagwise.torch import gpu, plain
from tagwise.torch.protocol import Chain, Gradient, Sums


def _cells(chain: Chain) -> tuple[Tensor, Tensor]:
    """The token of each cell of the padded batch (B, T), and which cells there are."""
    assert chain.places is not None
    assert chain.lengths is not None
    time = torch.arange(chain.places.longest, device=chain.emissions.device)
    there = time < chain.lengths[:, None]
    return torch.where(there, chain.places.first[:, None] + time, 0), there


def _batch(chain: Chain) -> Chain:
    """The same sentences as a padded batch, in double precision."""
    cells, _ = _cells(chain)
    tags = None if chain.tags is None else chain.tags[cells]
    return chain._replace(emissions=chain.emissions[cells], tags=tags, places=None).double()


def _into(chain: Chain, found: Gradient, into: Gradient) -> Gradient:
    cells, there = _cells(chain)
    into.emissions[cells[there]] = found.emissions[there].to(into.emissions.dtype)
    for ours, theirs in zip(into[1:], found[1:]):
        ours.copy_(theirs)
    return into


def _on_gpu(chain: Chain) -> bool:
    return bool(chain.emissions.device.type == "cuda")


def sums(chain: Chain) -> Sums:
    """log Z of each sentence, or the log-likelihood of tags (tokens,), in double precision; and the recursions."""
    return gpu.sums(chain) if _on_gpu(chain) else plain.sums(_batch(chain))


def expect(chain: Chain, rows: Tensor, scale: Tensor, into: Gradient) -> Gradient:
    """The gradient of sum_b scale_b value_b."""
    if _on_gpu(chain):
        return gpu.expect(chain, rows, scale, into)
    return _into(chain, plain.expect(_batch(chain), rows, scale.double()), into)


def bend(chain: Chain, rows: Tensor, along: Tensor, into: Gradient) -> Gradient:
    """How the gradient of sum_b log Z_b changes along a direction of the scores (tokens, L)."""
    assert chain.places is not None
    one = chain.start.new_ones(len(chain.places.first))
    if _on_gpu(chain):
        return gpu.bend(chain, rows, one, Gradient(along, None, None, None), into)[0]
    batch = _batch(chain)
    way = Gradient(along.double()[_cells(chain)[0]], *map(torch.zeros_like, batch[1:4]))
    return _into(chain, plain.bend(batch, rows, one.double(), way)[0], into)


def log_chance(chain: Chain, rows: Tensor, tags: Tensor) -> Tensor:
    """log p_t of a label of each token (tokens,), in double precision."""
    if _on_gpu(chain):  # logarithms to the base 2
        ahead, behind = gpu.halves(rows, len(chain.start))
        both = (ahead + behind) * 0.6931471805599453
        return (both.gather(1, tags[:, None]).squeeze(1) - torch.logsumexp(both, 1)).double()
    cells, there = _cells(chain)
    both = torch.log_softmax(rows.sum(0), 2)
    out = both.new_zeros(len(tags))
    out[cells[there]] = both[there].gather(1, tags[cells[there]][:, None]).squeeze(1)
    return out


def best(chain: Chain) -> Tensor:
    """The best path of each sentence, by tokens (tokens,)."""
    if _on_gpu(chain):
        return gpu.best(chain)[0]
    cells, there = _cells(chain)
    path, _ = plain.best(_batch(chain))
    out = torch.empty(len(chain.emissions), dtype=torch.int64, device=chain.emissions.device)
    out[cells[there]] = path[there]
    return out
