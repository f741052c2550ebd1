"""Chains of sentences that lie one after the other: by kernels on CUDA, elsewhere padded and in plain PyTorch.

Emissions are (tokens, L), `places` says where each sentence begins, `lengths` (B,) how long it is. What comes out is as
in `gpu`; elsewhere sums are taken in double precision, which nothing but comparisons needs. Where there are more labels
than `gpu` serves, groups of sentences are padded for `wide`, and recursions lie by tokens, (2, tokens, L).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tagwise.torch.engines import cuda, many_labels, reference
from tagwise.torch.protocol import Chain, Gradient, Places, Sums

#: Numbers of a padded group of sentences at most, and of their pairs of labels at one token.
_CELLS, _PAIRS = 1 << 25, 1 << 27


def groups(lengths: NDArray[np.int64], labels: int) -> tuple[tuple[int, int, int], ...]:
    """Sentences, longest first, in runs (from, to, the longest) that are padded together; none where `gpu` serves."""
    if labels <= cuda.MOST_LABELS:
        return ()
    return tuple(runs(lengths, _CELLS // labels, _PAIRS // (labels * labels)))


def runs(lengths: NDArray[np.int64], cells: int, most: int = 1 << 31) -> Iterator[tuple[int, int, int]]:
    """Sentences, longest first, in runs of so many padded tokens and sentences at most, one sentence at least."""
    begin = 0
    while begin < len(lengths):
        longest = int(lengths[begin])
        end = min(len(lengths), begin + max(1, min(cells // max(longest, 1), most)))
        yield begin, end, longest
        begin = end


def part(chain: Chain, begin: int, end: int, longest: int) -> Chain:
    """Some of the sentences."""
    assert chain.places is not None
    assert chain.lengths is not None
    some = slice(begin, end)
    return chain._replace(lengths=chain.lengths[some], places=Places(chain.places.first[some], longest))


def _grouped(chain: Chain) -> Iterator[tuple[Chain, Chain, slice]]:
    """Each group as it lies, as a padded batch, and which sentences it has."""
    assert chain.places is not None
    for begin, end, longest in chain.places.groups:
        some = part(chain, begin, end, longest)
        yield some, _padded(some), slice(begin, end)


def cells(chain: Chain) -> tuple[Tensor, Tensor]:
    """The token of each cell of the padded batch (B, T), and which cells there are."""
    assert chain.places is not None
    assert chain.lengths is not None
    time = torch.arange(chain.places.longest, device=chain.emissions.device)
    there = time < chain.lengths[:, None]
    return torch.where(there, chain.places.first[:, None] + time, 0), there


def _padded(chain: Chain) -> Chain:
    """The same sentences as a padded batch."""
    at, _ = cells(chain)
    tags = None if chain.tags is None else chain.tags[at]
    return chain._replace(emissions=chain.emissions[at], tags=tags, places=None)


def _batch(chain: Chain) -> Chain:
    return _padded(chain).double()


def _into(chain: Chain, found: Gradient, into: Gradient, add: bool = False) -> Gradient:
    at, there = cells(chain)
    into.emissions[at[there]] = found.emissions[there].to(into.emissions.dtype)
    for ours, theirs in zip(into[1:], found[1:]):
        ours.copy_(ours + theirs if add else theirs)
    return into


def _on_gpu(chain: Chain) -> bool:
    return bool(chain.emissions.device.type == "cuda")


def _many(chain: Chain) -> bool:
    """Whether there are more labels than `gpu` serves."""
    return chain.places is not None and bool(chain.places.groups)


def sums(chain: Chain) -> Sums:
    """log Z of each sentence, or the log-likelihood of tags (tokens,), in double precision; and the recursions."""
    if not _on_gpu(chain):
        return reference.sums(_batch(chain))
    if not _many(chain):
        return cuda.sums(chain)
    rows = chain.emissions.new_empty(2, *chain.emissions.shape)
    values = []
    for some, batch, _ in _grouped(chain):
        value, padded = many_labels.sums(batch)
        values.append(value.double())
        at, there = cells(some)
        rows[:, at[there]] = padded[:, there]
    return Sums(torch.cat(values), rows)


def expect(chain: Chain, rows: Tensor, scale: Tensor, into: Gradient) -> Gradient:
    """The gradient of sum_b scale_b value_b."""
    if not _on_gpu(chain):
        return _into(chain, reference.expect(_batch(chain), rows, scale.double()), into)
    if not _many(chain):
        return cuda.expect(chain, rows, scale, into)
    for some, batch, which in _grouped(chain):
        found = many_labels.expect(batch, rows[:, cells(some)[0]], scale[which])
        _into(some, found, into, add=which.start > 0)
    return into


def bend(chain: Chain, rows: Tensor, along: Tensor, into: Gradient) -> Gradient:
    """How the gradient of sum_b log Z_b changes along a direction of the scores (tokens, L)."""
    assert chain.places is not None
    one = chain.start.new_ones(len(chain.places.first))
    if not _on_gpu(chain):
        batch = _batch(chain)
        way = Gradient(along.double()[cells(chain)[0]], *map(torch.zeros_like, batch[1:4]))
        return _into(chain, reference.bend(batch, rows, one.double(), way)[0], into)
    if not _many(chain):
        return cuda.bend(chain, rows, one, Gradient(along, None, None, None), into)[0]
    for some, batch, which in _grouped(chain):
        at = cells(some)[0]
        way = Gradient(along[at], *map(torch.zeros_like, batch[1:4]))
        found = many_labels.bend(batch, rows[:, at], one[which], way)[0]
        _into(some, found, into, add=which.start > 0)
    return into


def log_chance(chain: Chain, rows: Tensor, tags: Tensor) -> Tensor:
    """log p_t of a label of each token (tokens,), in double precision."""
    if _on_gpu(chain):
        if _many(chain):
            both = rows.sum(0)
        else:  # logarithms to the base 2
            ahead, behind = cuda.halves(rows, len(chain.start))
            both = (ahead + behind) * 0.6931471805599453
        return (both.gather(1, tags[:, None]).squeeze(1) - torch.logsumexp(both, 1)).double()
    at, there = cells(chain)
    both = torch.log_softmax(rows.sum(0), 2)
    out = both.new_zeros(len(tags))
    out[at[there]] = both[there].gather(1, tags[at[there]][:, None]).squeeze(1)
    return out


def best(chain: Chain) -> Tensor:
    """The best path of each sentence, by tokens (tokens,)."""
    if _on_gpu(chain) and not _many(chain):
        return cuda.best(chain)[0]
    out = torch.empty(len(chain.emissions), dtype=torch.int64, device=chain.emissions.device)
    grouped = _grouped(chain) if _many(chain) else [(chain, _batch(chain), slice(None))]
    for some, batch, _ in grouped:
        path, _value = many_labels.best(batch) if _many(chain) else reference.best(batch)
        at, there = cells(some)
        out[at[there]] = path[there]
    return out
