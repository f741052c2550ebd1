"""Chains of concatenated sentences: kernels on CUDA, padded batches in plain PyTorch elsewhere.

Emissions are (tokens, L), `places` has the first token of each sentence, and `lengths` (B,) their lengths. Results have
the layout of `engines.cuda`. Without a GPU sums are taken in double precision, since that path only serves tests. For
more labels than `engines.cuda` supports, groups of sentences are padded for `many_labels`, and recursions are
(2, tokens, L).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tagwise.torch.engines import cuda, many_labels, reference
from tagwise.torch.protocol import Chain, ForwardBackward, Gradient, Places

#: Maximum number of emissions in a padded group of sentences, and of label pairs at one token of all its sentences.
_CELLS, _PAIRS = 1 << 25, 1 << 27


def groups(lengths: NDArray[np.int64], labels: int) -> tuple[tuple[int, int, int], ...]:
    """Return ranges (begin, end, maximum length) of sentences, longest first, to pad together.

    Return none if `engines.cuda` supports the number of labels.
    """
    if labels <= cuda.MOST_LABELS:
        return ()
    return tuple(runs(lengths, _CELLS // labels, _PAIRS // (labels * labels)))


def runs(lengths: NDArray[np.int64], cells: int, most: int = 1 << 31) -> Iterator[tuple[int, int, int]]:
    """Yield ranges of sentences, longest first, of up to `cells` padded tokens and `most` sentences, at least one."""
    begin = 0
    while begin < len(lengths):
        longest = int(lengths[begin])
        end = min(len(lengths), begin + max(1, min(cells // max(longest, 1), most)))
        yield begin, end, longest
        begin = end


def part(chain: Chain, begin: int, end: int, longest: int) -> Chain:
    """Return the chain of a range of sentences."""
    assert chain.places is not None
    assert chain.lengths is not None
    some = slice(begin, end)
    return chain._replace(lengths=chain.lengths[some], places=Places(chain.places.first[some], longest))


def _grouped(chain: Chain) -> Iterator[tuple[Chain, Chain, slice]]:
    """Yield each group of sentences, concatenated and as a padded batch, and their range."""
    assert chain.places is not None
    for begin, end, longest in chain.places.groups:
        some = part(chain, begin, end, longest)
        yield some, _padded(some), slice(begin, end)


def cells(chain: Chain) -> tuple[Tensor, Tensor]:
    """Return the token of each cell of the padded batch (B, T), and a mask of cells that are not padding."""
    assert chain.places is not None
    assert chain.lengths is not None
    time = torch.arange(chain.places.longest, device=chain.emissions.device)
    mask = time < chain.lengths[:, None]
    return torch.where(mask, chain.places.first[:, None] + time, 0), mask


def _padded(chain: Chain) -> Chain:
    """Return the sentences as a padded batch."""
    at, _ = cells(chain)
    tags = None if chain.tags is None else chain.tags[at]
    return chain._replace(emissions=chain.emissions[at], tags=tags, places=None)


def _batch(chain: Chain) -> Chain:
    return _padded(chain).double()


def _into(chain: Chain, found: Gradient, into: Gradient, add: bool = False) -> Gradient:
    at, mask = cells(chain)
    into.emissions[at[mask]] = found.emissions[mask].to(into.emissions.dtype)
    for ours, theirs in zip(into[1:], found[1:]):
        ours.copy_(ours + theirs if add else theirs)
    return into


def _on_gpu(chain: Chain) -> bool:
    return bool(chain.emissions.device.type == "cuda")


def _has_many_labels(chain: Chain) -> bool:
    """Return whether the chain has more labels than `engines.cuda` supports."""
    return chain.places is not None and bool(chain.places.groups)


def forward_backward(chain: Chain) -> ForwardBackward:
    """Return log Z of each sentence, or the log-likelihood of tags (tokens,), as doubles, and the recursions."""
    if not _on_gpu(chain):
        return reference.forward_backward(_batch(chain))
    if not _has_many_labels(chain):
        return cuda.forward_backward(chain)
    rows = chain.emissions.new_empty(2, *chain.emissions.shape)
    values = []
    for some, batch, _ in _grouped(chain):
        value, padded = many_labels.forward_backward(batch)
        values.append(value.double())
        at, mask = cells(some)
        rows[:, at[mask]] = padded[:, mask]
    return ForwardBackward(torch.cat(values), rows)


def expectations(chain: Chain, rows: Tensor, scale: Tensor, into: Gradient) -> Gradient:
    """Write the gradient of sum_b scale_b value_b to `into` and return it."""
    if not _on_gpu(chain):
        return _into(chain, reference.expectations(_batch(chain), rows, scale.double()), into)
    if not _has_many_labels(chain):
        return cuda.expectations(chain, rows, scale, into)
    for some, batch, which in _grouped(chain):
        found = many_labels.expectations(batch, rows[:, cells(some)[0]], scale[which])
        _into(some, found, into, add=which.start > 0)
    return into


def hessian_product(chain: Chain, rows: Tensor, along: Tensor, into: Gradient) -> Gradient:
    """Write to `into` the Hessian of sum_b log Z_b times a direction of the emissions (tokens, L), and return it."""
    assert chain.places is not None
    one = chain.start.new_ones(len(chain.places.first))
    if not _on_gpu(chain):
        batch = _batch(chain)
        direction = Gradient(along.double()[cells(chain)[0]], *map(torch.zeros_like, batch[1:4]))
        return _into(chain, reference.hessian_product(batch, rows, one.double(), direction)[0], into)
    if not _has_many_labels(chain):
        return cuda.hessian_product(chain, rows, one, Gradient(along, None, None, None), into)[0]
    for some, batch, which in _grouped(chain):
        at = cells(some)[0]
        direction = Gradient(along[at], *map(torch.zeros_like, batch[1:4]))
        found = many_labels.hessian_product(batch, rows[:, at], one[which], direction)[0]
        _into(some, found, into, add=which.start > 0)
    return into


def log_marginals(chain: Chain, rows: Tensor, tags: Tensor) -> Tensor:
    """Return log p_t (tokens,) of one label per token, in double precision."""
    if _on_gpu(chain):
        if _has_many_labels(chain):
            both = rows.sum(0)
        else:  # logarithms to the base 2
            ahead, behind = cuda.halves(rows, len(chain.start))
            both = (ahead + behind) * 0.6931471805599453
        return (both.gather(1, tags[:, None]).squeeze(1) - torch.logsumexp(both, 1)).double()
    at, mask = cells(chain)
    both = torch.log_softmax(rows.sum(0), 2)
    out = both.new_zeros(len(tags))
    out[at[mask]] = both[mask].gather(1, tags[at[mask]][:, None]).squeeze(1)
    return out


def viterbi(chain: Chain) -> Tensor:
    """Return the Viterbi path of each sentence, concatenated (tokens,)."""
    if _on_gpu(chain) and not _has_many_labels(chain):
        return cuda.viterbi(chain)[0]
    out = torch.empty(len(chain.emissions), dtype=torch.int64, device=chain.emissions.device)
    grouped = _grouped(chain) if _has_many_labels(chain) else [(chain, _batch(chain), slice(None))]
    for some, batch, _ in grouped:
        path, _value = many_labels.viterbi(batch) if _has_many_labels(chain) else reference.viterbi(batch)
        at, mask = cells(some)
        out[at[mask]] = path[mask]
    return out
