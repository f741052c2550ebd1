"""Chains of many labels: each step of both recursions is a matrix product, by `many_labels_cuda` or plain PyTorch.

    log sum_i exp(a(i) + W(i, j)) = m + c_j + log sum_i exp(a(i) - m) exp(W(i, j) - c_j)

m is the maximum of a, and c_j that of a column. Forward and backward run together. If a sum in plain PyTorch is so
small that it may have underflowed, `reference` repeats the batch in logarithms. The expectations use the same fallback
on every device, at the price of one synchronisation.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tagwise.torch.engines import many_labels_cuda, reference
from tagwise.torch.protocol import Chain, ForwardBackward, Gradient


def _tiny(like: Tensor) -> float:
    return 1e-280 if like.dtype == torch.float64 else 1e-30


def _bounded(values: Tensor) -> Tensor:
    return torch.where(values == -torch.inf, 0.0, values)


def forward_backward(chain: Chain) -> ForwardBackward:
    """Implement `Engine.forward_backward`. The recursions have the layout of `reference.forward_backward`."""
    emissions, transitions, start, end, lengths, tags, _ = chain
    batch, time, labels = emissions.shape
    if not batch or not time:
        return reference.forward_backward(chain)
    if many_labels_cuda.serves(emissions):
        return many_labels_cuda.forward_backward(chain)
    e = emissions.to(start.dtype)
    n_tokens = reference._lengths(e, lengths)
    tops = torch.stack([_bounded(transitions.amax(0)), _bounded(transitions.amax(1))])[:, None]
    factors = torch.stack([(transitions - tops[0]).exp(), (transitions - tops[1].T).exp().T])
    rows = e.new_zeros(2, batch, time, labels)
    forward, backward = rows
    last = (n_tokens - 1).clamp(min=0)
    sentence = torch.arange(batch, device=e.device)
    # Backward begins at the end of each sentence: step k is token k of `ahead` and token n - 1 - k of `behind`.
    state = torch.stack([start + e[:, 0], end + e[sentence, last]])
    backward[sentence, last] = end
    offset, low = e.new_zeros(batch), e.new_full((), torch.inf)
    zero = e.new_zeros(())
    for k in range(time):
        inside = (k < n_tokens)[:, None]
        at = (last - k).clamp(min=0)
        if k:
            x = (state - _bounded(state.amax(2, keepdim=True))).exp()
            total = torch.bmm(x, factors)
            low = torch.minimum(low, torch.where(inside, total, torch.inf).amin())
            grown = total.log() + tops + _bounded(state.amax(2, keepdim=True))
            previous = grown[1] - _bounded(grown[1].amax(1, keepdim=True))
            backward[sentence, at] = torch.where(inside, previous, backward[sentence, at])
            state = torch.where(inside, grown + torch.stack([e[:, k], e[sentence, at]]), state)
        top = _bounded(state.amax(2, keepdim=True))
        state = state - top
        offset = offset + torch.where(inside, top[0], zero).squeeze(1)
        forward[:, k] = torch.where(inside, state[0], zero)
    if bool(low < _tiny(e)):
        return reference.forward_backward(chain._replace(emissions=e))
    value = torch.where(n_tokens > 0, reference.log_sum_exp(state[0] + end, 1) + offset, zero)
    if tags is not None:
        scored = reference.path_score(chain._replace(emissions=e))
        value = torch.where(value == -torch.inf, -torch.inf, scored - value)
    return ForwardBackward(value, rows)


def expectations(chain: Chain, rows: Tensor, scale: Tensor) -> Gradient:
    """Implement `Engine.expectations`. Pairwise expectations are one matrix product over all tokens."""
    (emissions, transitions, start, _, lengths, tags, _), (forward, backward) = chain, rows
    batch, time, labels = emissions.shape
    if not batch or not time:
        return reference.expectations(chain, rows, scale)
    e = emissions.to(start.dtype)
    n_tokens = reference._lengths(e, lengths)
    inside = torch.arange(time, device=e.device) < n_tokens[:, None]
    sign = (scale if tags is None else -scale)[:, None, None]
    both = forward + backward
    # False if no path passes through the token.
    reachable = inside[:, :, None] & (both.amax(2, keepdim=True) != -torch.inf)
    one = torch.where(reachable, torch.softmax(both, 2), 0.0)
    by = sign * one
    after = e[:, 1:] + backward[:, 1:]
    after = (after - _bounded(after.amax(2, keepdim=True))).exp()
    before = (forward[:, :-1] - _bounded(forward[:, :-1].amax(2, keepdim=True))).exp()
    tops = _bounded(transitions.amax(0))
    factors = (transitions - tops).exp()
    after = torch.where(inside[:, 1:, None], after * (tops - tops.amax()).exp(), 0.0)  # no 0 * NaN of padding
    total = ((before @ factors) * after).sum(2, keepdim=True)
    if bool((inside[:, 1:, None] & (total < _tiny(e))).any()):
        return reference.expectations(chain._replace(emissions=e), rows, scale)
    share = torch.where(inside[:, 1:, None], sign / total, 0.0)
    pairs = factors * ((before * share).flatten(0, 1).T @ after.flatten(0, 1))
    if tags is not None:
        gold = torch.nn.functional.one_hot(torch.where(inside, tags, 0), labels).to(e.dtype)
        gold = gold * torch.where(inside, scale[:, None], 0.0)[:, :, None]
        by = by + gold
        codes = torch.where(inside[:, 1:], tags[:, :-1] * labels + tags[:, 1:], 0).flatten()
        weight = torch.where(inside[:, 1:], scale[:, None], 0.0).flatten()
        pairs = pairs + _sum_by_index(codes, weight, labels * labels).view(labels, labels)
    last = by[torch.arange(batch, device=e.device), (n_tokens - 1).clamp(min=0)]
    ends = torch.where(n_tokens[:, None] > 0, last, 0.0).sum(0)
    return Gradient(by.to(emissions.dtype), pairs, by[:, 0].sum(0), ends)


def _sum_by_index(at: Tensor, weight: Tensor, size: int) -> Tensor:
    """Sum weights by index in a deterministic order: sort them, and take differences of one cumulative sum."""
    at, order = torch.sort(at, stable=True)
    running = torch.cat([weight.new_zeros(1, dtype=torch.float64), weight[order].double().cumsum(0)])
    edges = torch.searchsorted(at, torch.arange(size + 1, device=at.device))
    return (running[edges[1:]] - running[edges[:-1]]).to(weight.dtype)


def hessian_product(chain: Chain, rows: Tensor, scale: Tensor, along: Gradient) -> tuple[Gradient, Tensor]:
    """Implement `Engine.hessian_product` with the reference implementation."""
    return reference.hessian_product(chain, rows, scale, along)


def viterbi(chain: Chain) -> tuple[Tensor, Tensor]:
    """Implement `Engine.viterbi`."""
    emissions = chain.emissions
    find = (
        many_labels_cuda.viterbi
        if emissions.numel() and many_labels_cuda.serves(emissions)
        else reference.viterbi
    )
    return find(chain)
