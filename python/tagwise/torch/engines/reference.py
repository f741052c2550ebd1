"""Linear chains in plain PyTorch, for any device and dtype: the reference implementation for the kernels.

Recursions are natural logarithms. The score of a path y of n tokens is

    start(y_0) + sum_t e_t(y_t) + sum_{t>0} W(y_{t-1}, y_t) + end(y_{n-1}).

Loops run over tokens, and each step over the whole batch. Memory is O(B T L).
"""

from __future__ import annotations

import torch
from torch import Tensor

from tagwise.torch.protocol import Chain, ForwardBackward, Gradient
from tagwise.torch.renormalize import is_due, renormalized


def _lengths(emissions: Tensor, lengths: Tensor | None) -> Tensor:
    if lengths is not None:
        return lengths.to(torch.int64)
    return torch.full((emissions.shape[0],), emissions.shape[1], dtype=torch.int64, device=emissions.device)


def _at(values: Tensor, index: Tensor) -> Tensor:
    """Return values[b, index[b]] for values (B, T, ...)."""
    return values[torch.arange(values.shape[0], device=values.device), index]


def path_score(chain: Chain) -> Tensor:
    """Return the score of the tags of each sentence."""
    emissions, transitions, start, end, lengths, tags, _ = chain
    assert tags is not None
    n_tokens = _lengths(emissions, lengths)
    inside = torch.arange(emissions.shape[1], device=emissions.device) < n_tokens[:, None]
    y = torch.where(inside, tags, 0)
    zero = emissions.new_zeros(())
    score = torch.where(inside, emissions.gather(2, y[:, :, None]).squeeze(2), zero).sum(1)
    steps = transitions[y[:, :-1], y[:, 1:]]
    score = score + torch.where(inside[:, 1:], steps, zero).sum(1)
    ends = start[y[:, 0]] + end[_at(y, (n_tokens - 1).clamp(min=0))]
    return torch.where(n_tokens > 0, score + ends, zero)


def log_sum_exp(values: Tensor, dim: int) -> Tensor:
    """Return log-sum-exp with the derivative 0, not NaN, if all values are -inf. NaN propagates."""
    top = values.detach().amax(dim, keepdim=True)
    top = torch.where(top == -torch.inf, torch.zeros_like(top), top)
    total = (values - top).exp().sum(dim)
    return torch.where(total == 0, torch.ones_like(total), total).log().where(
        total != 0, total.new_full((), -torch.inf)
    ) + top.squeeze(dim)


def forward_backward(chain: Chain) -> ForwardBackward:
    """Return log Z, or the log-likelihood of the tags, and the forward and backward recursions (2, B, T, L).

        a_t(j) = e_t(j) + log sum_i exp(a_{t-1}(i) + W(i, j)),            a_0 = start + e_0
        b_t(i) = log sum_j exp(W(i, j) + e_{t+1}(j) + b_{t+1}(j)),        b_{n-1} = end

    Rows are shifted to a maximum of 0, except the last backward row. Padding is 0.
    """
    emissions, transitions, start, end, lengths, tags, _ = chain
    batch, time, labels = emissions.shape
    n_tokens = _lengths(emissions, lengths)
    rows = emissions.new_zeros(2, batch, time, labels)
    forward, backward = rows
    offset = emissions.new_zeros(batch)
    state = start + emissions[:, 0] if time else emissions.new_zeros(batch, labels)
    for t in range(time):
        if t:
            moved = log_sum_exp(state[:, :, None] + transitions, 1) + emissions[:, t]
            state = torch.where((t < n_tokens)[:, None], moved, state)
        top = state.amax(1)
        top = torch.where(top == -torch.inf, torch.zeros_like(top), top)
        state, offset = state - top[:, None], offset + top
        forward[:, t] = torch.where((t < n_tokens)[:, None], state, 0.0)
    total = log_sum_exp(state + end, 1) + offset if labels else offset
    value = torch.where(n_tokens > 0, total, 0.0)
    state = end.expand(batch, labels)
    for t in range(time - 1, -1, -1):
        if t + 1 < time:
            moved = log_sum_exp(transitions + (emissions[:, t + 1] + state)[:, None, :], 2)
            moved = moved - torch.nan_to_num(moved.amax(1, keepdim=True), neginf=0.0)
            state = torch.where((t + 1 < n_tokens)[:, None], moved, state)
        backward[:, t] = torch.where((t < n_tokens)[:, None], state, 0.0)
    if tags is not None:
        value = torch.where(value == -torch.inf, -torch.inf, path_score(chain) - value)
    return ForwardBackward(value, rows)


def _token(forward: Tensor, backward: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
    """Return the marginals of a token (B, L) and the log of their normalisation constant."""
    both = forward + backward
    top = torch.nan_to_num(both.amax(1, keepdim=True), neginf=0.0)
    total = (both - top).exp().sum(1, keepdim=True)
    norm = torch.where(total > 0, total, 1.0).log() + top
    return torch.where(inside[:, None], (both - norm).exp(), 0.0), norm


def _pair(before: Tensor, transitions: Tensor, after: Tensor, inside: Tensor) -> Tensor:
    """Return the normalised pairwise marginals (B, L, L) of two neighbouring tokens."""
    scores = before[:, :, None] + transitions + after[:, None, :]
    top = torch.nan_to_num(scores.amax((1, 2), keepdim=True), neginf=0.0)
    weights = (scores - top).exp()
    total = weights.sum((1, 2), keepdim=True)
    return torch.where(inside[:, None, None] & (total > 0), weights / total, 0.0)


def expectations(chain: Chain, rows: Tensor, scale: Tensor) -> Gradient:
    """Return the gradient of sum_b scale_b value_b: expected counts, or gold minus expected counts with tags."""
    (emissions, transitions, start, end, lengths, tags, _), (forward, backward) = chain, rows
    time = emissions.shape[1]
    n_tokens = _lengths(emissions, lengths)
    out = Gradient(*(torch.zeros_like(x) for x in (emissions, transitions, start, end)))
    sign = scale if tags is None else -scale
    for t in range(time):
        inside = t < n_tokens
        one, _ = _token(forward[:, t], backward[:, t], inside)
        got = sign[:, None] * one
        if tags is not None:
            gold = torch.nn.functional.one_hot(torch.where(inside, tags[:, t], 0), one.shape[1])
            got = got + torch.where(inside, scale, 0.0)[:, None] * gold
        out.emissions[:, t] = got
        if t == 0:
            out.start.add_(got.sum(0))
        else:
            two = _pair(forward[:, t - 1], transitions, emissions[:, t] + backward[:, t], inside)
            out.transitions.add_(torch.einsum("b,bij->ij", sign, two))
            if tags is not None:
                at = torch.where(inside, tags[:, t - 1], 0), torch.where(inside, tags[:, t], 0)
                out.transitions.index_put_(at, torch.where(inside, scale, 0.0), accumulate=True)
        out.end.add_(torch.where((t == n_tokens - 1)[:, None], got, 0.0).sum(0))
    return out


def hessian_product(chain: Chain, rows: Tensor, scale: Tensor, along: Gradient) -> tuple[Gradient, Tensor]:
    """Return the Hessian-vector product of log Z with a direction v, and <v, gradient_b> of each sentence.

    The derivatives of the recursions along v are means under the chain itself,

        a'_t(j) = v_t(j) + sum_i p(i | j) (a'_{t-1}(i) + v(i, j)),

    and p' = p (a' + b' - their mean) for tokens, with an analogous formula for pairs. Subtracting from a' and b' their
    means at each token leaves the result unchanged and keeps them small. Tags are ignored.
    """
    (emissions, transitions, start, end, lengths, _, _), (forward, backward) = chain, rows
    batch, time, labels = emissions.shape
    n_tokens = _lengths(emissions, lengths)
    v_e, v_w, v_s, v_n = along
    out = Gradient(*(torch.zeros_like(x) for x in (emissions, transitions, start, end)))
    total = emissions.new_zeros(batch)
    tails = emissions.new_zeros(batch, time, labels)
    tail = v_n.expand(batch, labels)
    for t in range(time - 1, -1, -1):
        if t + 1 < time:
            inside = t + 1 < n_tokens
            after = emissions[:, t + 1] + backward[:, t + 1]
            conditional = torch.softmax(transitions + after[:, None, :], 2).nan_to_num()
            moved = (conditional * (v_w + (v_e[:, t + 1] + tail)[:, None, :])).sum(2)
            one, _ = _token(forward[:, t], backward[:, t], inside)
            moved = moved - (one * moved).sum(1, keepdim=True)
            tail = torch.where(inside[:, None], moved, tail)
        tails[:, t] = tail
    head = emissions.new_zeros(batch, labels)
    for t in range(time):
        inside = t < n_tokens
        one, _ = _token(forward[:, t], backward[:, t], inside)
        if t == 0:
            bent = v_s + v_e[:, 0]
        else:
            conditional = torch.softmax(forward[:, t - 1, :, None] + transitions, 1).nan_to_num()
            bent = v_e[:, t] + (conditional * (head[:, :, None] + v_w)).sum(1)
            two = _pair(forward[:, t - 1], transitions, emissions[:, t] + backward[:, t], inside)
            slope = head[:, :, None] + v_w + (v_e[:, t] + tails[:, t])[:, None, :]
            middle = (two * slope).sum((1, 2), keepdim=True)
            out.transitions.add_(torch.einsum("b,bij->ij", scale, two * (slope - middle)))
        slope_one = bent + tails[:, t]
        change = scale[:, None] * one * (slope_one - (one * slope_one).sum(1, keepdim=True))
        out.emissions[:, t] = change
        if t == 0:
            out.start.add_(change.sum(0))
        out.end.add_(torch.where((t == n_tokens - 1)[:, None], change, 0.0).sum(0))
        mean = (one * bent).sum(1)
        total = total + torch.where(inside, mean, 0.0)
        head = torch.where(inside[:, None], bent - mean[:, None], head)
        total = total + torch.where(t == n_tokens - 1, (one * v_n).sum(1), 0.0)
    return out, total


def viterbi(chain: Chain) -> tuple[Tensor, Tensor]:
    """Return the Viterbi path of each sentence (B, T), padded with -1, and its score. The lower label wins ties."""
    emissions, transitions, start, end, lengths, _, _ = chain
    batch, time, labels = emissions.shape
    n_tokens = _lengths(emissions, lengths)
    path = torch.full((batch, time), -1, dtype=torch.int64, device=emissions.device)
    if not time or not batch:
        return path, emissions.new_zeros(batch)
    identity = torch.arange(labels, device=emissions.device).expand(batch, labels)
    state, back = start + emissions[:, 0], [identity]
    total = emissions.new_zeros(batch, dtype=torch.float64)
    for t in range(1, time):
        top, where = (state[:, :, None] + transitions).max(1)
        inside = (t < n_tokens)[:, None]
        state = torch.where(inside, top + emissions[:, t], state)
        back.append(torch.where(inside, where, identity))
        if is_due(t):
            state, total = renormalized(state, total, t < n_tokens)
    value, label = (state + end).max(1)
    value = (value + total).to(value.dtype)
    for t in range(time - 1, -1, -1):
        path[:, t] = torch.where(t < n_tokens, label, -1)
        label = back[t].gather(1, label[:, None]).squeeze(1)
    return path, torch.where(n_tokens > 0, value, 0.0)
