"""The linear CRF with edge attributes on a GPU: every token has its own transition scores.

The objective runs loops over tokens in plain PyTorch and double precision (`varying`), differentiated by autograd, one
group of sentences at a time. Pointwise losses are functions of marginals, which are derivatives themselves, so autograd
differentiates the loops twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import tagwise._core as _core
from tagwise.dataset.layout import blocks_of
from tagwise.torch import losses
from tagwise.torch.formulas import Pointwise
from tagwise.torch.inputs import Target
from tagwise.torch.linear import ragged
from tagwise.torch.linear.objective import DeviceObjective
from tagwise.torch.protocol import Chain, Chains

#: Maximum number of label pairs, summed over the tokens of a group: eight bytes each, and more for the backward pass.
_PAIRS = 1 << 26


class _Sum(NamedTuple):
    """Sparse matrix-vector product: out[at] = the sum of value * vector[of] over the entries of a row, in order."""

    of: Tensor
    value: Tensor
    at: Tensor
    sizes: Tensor

    def __call__(self, vector: Tensor, out: Tensor) -> None:
        out.zero_()
        if len(self.at):
            found = torch.segment_reduce(vector[self.of] * self.value, "sum", lengths=self.sizes, axis=0)
            out[self.at] = found.to(out.dtype)


def _sum(of: NDArray[np.int64], to: NDArray[np.int64], value: NDArray[np.float64], on: torch.device) -> _Sum:
    order = np.argsort(to, kind="stable")
    at, sizes = np.unique(to, return_counts=True)
    return _Sum(*(torch.from_numpy(x).to(on) for x in (of[order], value[order], at, sizes)))


class Edges:
    """Edge attributes of tokens: scores (tokens, L * L) from weights, and the gradient of weights from scores'."""

    def __init__(self, data: _core.Dataset, layout: _core.Layout, on: torch.device) -> None:
        pointers, ids, values = data.edge()
        arrays, pairs = layout.arrays(), layout.n_labels**2
        ids = ids.astype(np.int64)
        begins = arrays["pair_ptr"].astype(np.int64)
        many = begins[ids + 1] - begins[ids]
        bounds = pointers.astype(np.int64)
        token = np.repeat(np.arange(data.n_tokens), bounds[1:] - bounds[:-1])
        value = values.astype(np.float64) if len(values) else np.ones(len(ids))
        within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        feature = np.repeat(begins[ids], many) + within
        cell = np.repeat(token, many) * pairs + arrays["pair"].astype(np.int64)[feature]
        self.block = blocks_of(layout).pair
        self.scores = torch.zeros(data.n_tokens * pairs, dtype=torch.float64, device=on)
        self.gradient = torch.zeros_like(self.scores)
        self._to_scores = _sum(feature, cell, np.repeat(value, many), on)
        self._to_weights = _sum(cell, feature, np.repeat(value, many), on)

    def score(self, w: Tensor) -> None:
        """Compute the scores from the weights."""
        self._to_scores(w[self.block], self.scores)

    def collect(self, out: Tensor) -> None:
        """Compute the gradient with respect to the weights from that with respect to the scores."""
        self._to_weights(self.gradient, out[self.block])


class EdgeObjective(DeviceObjective):
    """Objective with the values and gradients of `DeviceObjective`, for transition scores that depend on the token."""

    captured = False

    def __init__(self, problem: Any, on: torch.device | None = None) -> None:
        super().__init__(problem, on)
        self.edges = Edges(problem.data, problem.layout, self.w.device)
        lengths = self.sentences.lengths.cpu().numpy().astype(np.int64)
        pairs_per_group = _PAIRS // (4 if isinstance(self.formula, Pointwise) else 1)
        self._groups = tuple(ragged.runs(lengths, pairs_per_group // self.rows.labels**2))

    def _batches(self, chain: Chain) -> Iterator[tuple[Chain, Tensor, Tensor, slice]]:
        for begin, end, longest in self._groups:
            part = ragged.part(chain, begin, end, longest)
            yield part, *ragged.cells(part), slice(begin, end)

    def _evaluate(self, in_logs: bool) -> None:
        self.rows.spread(self.w)
        self.edges.score(self.w)
        chain = self.sentences.chain()
        if self.margin is not None:
            chain.emissions.add_(self.margin)
        weight = self.log_weight.exp()
        if isinstance(self.formula, Pointwise):
            self._pointwise_figures(chain, self.formula, weight)
            self._gradient(chain, weight)
            return
        high, values = [], []
        for some, cells, _, which in self._batches(chain):
            with torch.no_grad():
                found = self._losses(self._scored(some, cells), cells)
            values.append(found)
            high.append(found + self.log_weight[which])
        every, tops = torch.cat(values), torch.cat(high)
        self.figures[1] = tops.max()
        value, slope = (weight * self.formula.value(every)).sum(), self.formula.slope(weight, tops)
        if in_logs:
            value = torch.logsumexp(tops, 0)
            slope = (tops - value).exp()
        self.figures[0] = value
        self._gradient(chain, slope)

    def _scored(self, some: Chain, cells: Tensor) -> Chains:
        labels = self.rows.labels
        edges = self.edges.scores.view(-1, labels, labels)[cells]
        e, w, start, end = (x.double() for x in (some.emissions[cells], *some[1:4]))
        return Chains(e, w, start, end, some.lengths, edges)

    def _pointwise_figures(self, chain: Chain, formula: Pointwise, weight: Tensor) -> None:
        """Compute the figures of a pointwise loss: its value, and the largest -log p_t."""
        self.figures[0], self.figures[1] = 0.0, -torch.inf
        for some, cells, _, which in self._batches(chain):
            with torch.no_grad():
                every, log_p = losses.of_tokens(formula, self._scored(some, cells), self._target(cells))
            self.figures[0] += (weight[which] * every.sum(1)).sum()
            self.figures[1] = torch.maximum(self.figures[1], -log_p.min())

    def _target(self, cells: Tensor) -> Target:
        tags = None if self.tags is None else self.tags[cells]
        return Target(tags, None if self.partial is None else ~self.partial[cells])

    def _losses(self, chains: Chains, cells: Tensor) -> Tensor:
        """Return l_i of each sentence, or its loss if the loss is pointwise."""
        loss = self.loss if isinstance(self.formula, Pointwise) else "log"
        return losses.LOSSES[loss](chains, self._target(cells), None)

    def _gradient(self, chain: Chain, slope: Tensor) -> None:
        labels, into = self.rows.labels, self.back.into
        self.edges.gradient.zero_()
        for x in into[1:]:
            x.zero_()
        by_edge = self.edges.gradient.view(-1, labels, labels)
        for some, cells, mask, which in self._batches(chain):
            chains = self._scored(some, cells)
            parts = [x.detach().requires_grad_() for x in (*chains[:4], chains.edges)]
            with torch.enable_grad():
                e, w, start, end, edges = parts
                values = self._losses(Chains(e, w, start, end, chains.lengths, edges), cells)
                found = torch.autograd.grad(values, parts, slope[which], allow_unused=True)
            got = [torch.zeros_like(x) if g is None else g for x, g in zip(parts, found)]
            into.emissions[cells[mask]] = got[0][mask].to(into.emissions.dtype)
            for ours, theirs in zip(into[1:], got[1:4]):
                ours.add_(theirs.to(ours.dtype))
            by_edge[cells[mask]] = got[4][mask]
        self.back.gradient(self.out)
        self.edges.collect(self.out)
