"""The linear CRF on a GPU: the objective of a training set, and the scorer of weights.

Weights are spread over rows, one an attribute, padded to whole lines of 32 labels; scores of a token are the sum of its
attributes' rows, and the gradient of an attribute is the sum of its tokens' rows of residuals. Both sums are taken in
a fixed order: long lists in pieces of UNIT, whose sums are summed again. An evaluation is one CUDA graph.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import tagwise._core as _core
from tagwise.dataset.layout import blocks_of, node_attributes
from tagwise.errors import ParameterError, TrainingError
from tagwise.torch import gpu
from tagwise.torch.launching import kernel, launch

#: Rows of a list that one warp sums.
UNIT = 128
_WARPS = 4
Support = tuple[NDArray[np.bool_], NDArray[np.uint32]]


def device() -> torch.device:
    """The GPU that is used; an error that names the way out where there is none."""
    if not torch.cuda.is_available():
        raise ParameterError("device='cuda': PyTorch sees no GPU here; use device='cpu'")
    return torch.device("cuda", torch.cuda.current_device())


def refuse(problem: Any) -> None:
    """Say what of a problem a GPU cannot do."""
    odd = {
        "pointwise losses": problem.loss not in ("log", "exp"),
        "cost and class_weight": problem.cost is not None,
        "order > 1": problem.order is not None,
        "labels that occur once": problem.once is not None,
        "edge attributes": bool(problem.data.n_edge_attributes),
        "vectors": problem.data.vectors is not None,
        "max_length": problem.n_sentences is not None,
        f"more than {gpu.MOST_LABELS} labels": problem.layout.n_labels > gpu.MOST_LABELS,
    }
    what = next((what for what, there in odd.items() if there), None)
    if what is not None:
        raise ParameterError(f"device='cuda' cannot do {what}; use device='cpu'")


class _Level(NamedTuple):
    """Units of one round of sums: [begins[u], begins[u + 1]) of a list of rows."""

    begins: Tensor
    list: Tensor
    values: Tensor | None
    source: int  # the level whose sums are summed; -1: the tokens' rows
    first: int  # row of the first sum among all levels' sums


class Rows:
    """A layout's weights as rows, and the sums of rows for the tokens of a dataset."""

    def __init__(self, layout: _core.Layout, on: torch.device) -> None:
        blocks, arrays, self.labels = blocks_of(layout), layout.arrays(), layout.n_labels
        self.device, self.width = on, -(-self.labels // 32) * 32
        self.attributes, self.blocks = layout.n_attributes, blocks
        attribute = node_attributes(layout).astype(np.int64)
        label = arrays["node_label"].astype(np.int64)
        self.node = _on(attribute * self.width + label, on)
        self.edges = _on(arrays["edges"].astype(np.int64), on)
        self.starts = _on(arrays["starts"].astype(np.int64), on)
        self.ends = _on(arrays["ends"].astype(np.int64), on)
        self.owner, self.label = _on(attribute, on), _on(label, on)
        self.table = torch.zeros(self.attributes * self.width, device=on)
        self.free = torch.zeros(self.labels, self.labels, device=on)
        self.start, self.end = torch.zeros(self.labels, device=on), torch.zeros(self.labels, device=on)

    def forbid(self, pairs: NDArray[np.uint32] | None) -> None:
        """Let these pairs of labels, label' * L + label, be no steps."""
        if pairs is not None and len(pairs):
            self.free.view(-1)[_on(pairs.astype(np.int64), self.device)] = -torch.inf

    def spread(self, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Weights into rows; transitions, start and end."""
        blocks, single = self.blocks, w.float()
        self.table.index_copy_(0, self.node, single[blocks.node])
        transitions = self.free.view(-1).index_add(0, self.edges, single[blocks.edge])
        self.start.index_copy_(0, self.starts, single[blocks.start])
        self.end.index_copy_(0, self.ends, single[blocks.end])
        return transitions.view(self.labels, self.labels), self.start, self.end

    def sums(self, begins: Tensor, members: Tensor, values: Tensor | None, rows: Tensor, out: Tensor) -> None:
        """out[u] = the sum of rows[members], times their values, over [begins[u], begins[u + 1])."""
        units, index = len(begins) - 1, self.device.index or 0
        if units <= 0:
            return
        what = kernel("linear", index, (("WIDTH", self.width),), "linear_sums")
        given = begins.data_ptr(), members.data_ptr(), 0 if values is None else values.data_ptr()
        launch(
            what, index, (-(-units // _WARPS), 1), 32 * _WARPS, *given, rows.data_ptr(), units, out.data_ptr()
        )


def _on(array: NDArray[Any], on: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(on)


class Sentences:
    """A dataset on the device: attributes of tokens, sentences longest first, sets of labels that may be."""

    def __init__(self, data: _core.Dataset, rows: Rows, allowed: Support | None = None) -> None:
        pointers, ids, values = data.sparse()
        if len(ids) >= 2**31:
            raise ParameterError(
                f"device='cuda' cannot do {len(ids):,} attributes of tokens; use device='cpu'"
            )
        on = rows.device
        self.rows, self.tokens = rows, data.n_tokens
        self.pointers, self.ids = _on(pointers.astype(np.int32), on), _on(ids.astype(np.int32), on)
        self.values = _on(values.astype(np.float32), on) if len(values) else None
        offsets = data.offsets.astype(np.int64)
        lengths = np.diff(offsets)
        self.order = np.argsort(-lengths, kind="stable")
        self.lengths = _on(lengths[self.order].astype(np.int32), on)
        first = _on(offsets[:-1][self.order], on)
        self.places = gpu.Places(first, int(lengths.max(initial=0)))
        self.scores = torch.zeros(self.tokens, rows.width, device=on)
        self.barred = None if allowed is None else _barred(allowed, rows)

    def score(self) -> Tensor:
        """Scores [tokens, L] of the rows as they are, a view of whole lines; what is not allowed is -inf."""
        rows = self.rows
        rows.sums(self.pointers, self.ids, self.values, rows.table, self.scores)
        scores = self.scores[:, : rows.labels]
        if self.barred is not None:
            scores.masked_fill_(self.barred, -torch.inf)
        return scores


def _barred(allowed: Support, rows: Rows) -> Tensor:
    sets, which = allowed
    return ~_on(sets, rows.device)[_on(which.astype(np.int64), rows.device)]


class Back:
    """From residuals of tokens to gradients of node features: sums over each attribute's tokens, in units."""

    def __init__(self, sentences: Sentences) -> None:
        rows = sentences.rows
        on, attributes = rows.device, rows.attributes
        per_token = (sentences.pointers[1:] - sentences.pointers[:-1]).long()
        token = torch.repeat_interleave(torch.arange(sentences.tokens, device=on), per_token)
        ids, order = torch.sort(sentences.ids, stable=True)
        values = None if sentences.values is None else sentences.values[order]
        begins = torch.searchsorted(ids, torch.arange(attributes + 1, device=on, dtype=ids.dtype))
        rest = token[order].int()
        self.levels: list[_Level] = []
        self.where = torch.zeros(attributes, dtype=torch.long, device=on)
        source, first = -1, 0
        owners = torch.arange(attributes, device=on)
        while len(owners):
            counts = begins[1:] - begins[:-1]
            units = (counts + UNIT - 1) // UNIT
            owner = torch.repeat_interleave(torch.arange(len(owners), device=on), units)
            ends_of = units.cumsum(0)
            place = torch.arange(len(owner), device=on) - (ends_of - units)[owner]
            starts = begins[:-1][owner] + place * UNIT
            stops = torch.minimum(starts + UNIT, begins[1:][owner])
            edges = torch.cat([starts, stops[-1:]]) if len(starts) else begins[:1]
            self.levels.append(_Level(edges.int().contiguous(), rest, values, source, first))
            alone = units == 1
            self.where[owners[alone]] = first + (ends_of - units)[alone]
            more = units > 1
            # Units of attributes with several: a list, since those of the others lie between them.
            chosen = more[owner].nonzero().squeeze(1)
            counts = units[more]
            begins = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
            rest, values = chosen.int(), None
            owners, source, first = owners[more], source + 1, first + len(owner)
        self.sums = torch.zeros(
            first + 1, rows.width, device=on
        )  # the last row is of attributes that are not met
        counts_all = torch.bincount(sentences.ids, minlength=attributes)
        self.where[counts_all == 0] = first
        self.index = self.where[rows.owner] * rows.width + rows.label
        self.rows = rows

    def gradient(self, residuals: Tensor) -> Tensor:
        """Of node features, from residuals [tokens, WIDTH]."""
        for level in self.levels:
            source = residuals if level.source < 0 else self.sums[self.levels[level.source].first :]
            self.rows.sums(level.begins, level.list, level.values, source, self.sums[level.first :])
        return self.sums.view(-1)[self.index]


class Objective:
    """Loss and gradient of a training set, on the device; weights and gradients are NumPy's or tensors there.

    log: sum_i w_i l_i;  exp: sum_i w_i e^{l_i};  l_i = log Z - score of the gold labels, or, where labels are partly
    known, less the log Z of the paths that agree with them.
    """

    def __init__(self, problem: Any) -> None:
        refuse(problem)
        on = device()
        self.rows = Rows(problem.layout, on)
        self.rows.forbid(problem.forbidden)
        self.sentences = Sentences(problem.data, self.rows, problem.allowed)
        self.back = Back(self.sentences)
        self.exponential = problem.loss == "exp"
        many = len(problem.data)
        weight = np.ones(many) if problem.sample_weight is None else np.asarray(problem.sample_weight)
        self.weight = _on(weight[self.sentences.order].astype(np.float32), on)
        self.log_weight = self.weight.double().log()
        self.partial = None if problem.partial is None else _barred(problem.partial, self.rows)
        gold = problem.data.gold
        self.tags = None if self.partial is not None else _on(gold.astype(np.int64), on)
        if self.tags is not None and len(gold) and int(gold.max()) >= self.rows.labels:
            raise TrainingError("device='cuda': a token has no gold label; use device='cpu'")
        size = len(problem.layout)
        self.w = torch.zeros(size, dtype=torch.float64, device=on)
        self.out = torch.zeros(size, dtype=torch.float64, device=on)
        self.figures = torch.zeros(2, dtype=torch.float64, device=on)
        self.residuals = torch.zeros(self.sentences.tokens, self.rows.width, device=on)
        self._graphs: dict[bool, torch.cuda.CUDAGraph] = {}

    def _evaluate(self, in_logs: bool) -> None:
        """From `w` to `out` and `figures`: the loss (or, `in_logs`, its logarithm) and the largest l_i + log w_i."""
        sentences, places = self.sentences, self.sentences.places
        chain = self.rows.spread(self.w)
        scores = sentences.score()
        found = gpu.sums(scores, *chain, sentences.lengths, self.tags, places)
        inside = None
        if self.partial is None:
            losses = -found.value.double()
        else:
            some = scores.masked_fill(self.partial, -torch.inf)
            inside = gpu.sums(some, *chain, sentences.lengths, None, places)
            losses = found.value.double() - inside.value.double()
        high = losses + self.log_weight
        self.figures[1] = high.max()
        if in_logs:
            self.figures[0] = torch.logsumexp(high, 0)
            slope = (high - self.figures[0]).exp().float()
        elif self.exponential:
            self.figures[0] = high.exp().sum()
            slope = high.exp().float()
        else:
            self.figures[0] = (self.weight.double() * losses).sum()
            slope = self.weight
        sign = -slope if self.partial is None else slope
        into = self.residuals[:, : self.rows.labels]
        by = gpu.expect(
            scores, *chain, sentences.lengths, self.tags, found.ahead, found.behind, sign, places, into
        )
        node = self.back.gradient(self.residuals)
        rest = [by.transitions, by.start, by.end]
        if inside is not None:
            less = gpu.expect(
                some, *chain, sentences.lengths, None, inside.ahead, inside.behind, -slope, places, into
            )
            node = node + self.back.gradient(self.residuals)
            rest = [a + b for a, b in zip(rest, less[1:])]
        blocks, rows = self.rows.blocks, self.rows
        self.out[blocks.node] = node.double()
        self.out[blocks.edge] = rest[0].view(-1)[rows.edges].double()
        self.out[blocks.start] = rest[1][rows.starts].double()
        self.out[blocks.end] = rest[2][rows.ends].double()

    def _run(self, w: Any, gradient: Any, in_logs: bool) -> tuple[float, float]:
        self.w.copy_(w if isinstance(w, Tensor) else torch.from_numpy(w))
        graph = self._graphs.get(in_logs)
        if graph is None:
            self._evaluate(in_logs)  # compiles
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._evaluate(in_logs)
            self._graphs[in_logs] = graph
        graph.replay()
        if isinstance(gradient, Tensor):
            gradient.copy_(self.out)
        else:
            torch.from_numpy(gradient).copy_(self.out)
        value, largest = self.figures.tolist()
        return value, largest

    def value(self, w: Any, gradient: Any, n_jobs: int = 0, /) -> tuple[float, float]:
        """As the protocol says."""
        return self._run(w, gradient, False)

    def log_value(self, w: Any, gradient: Any, n_jobs: int = 0, /) -> tuple[float, float]:
        """As the protocol says."""
        return self._run(w, gradient, True)


class Scorer:
    """Best paths and marginals on the device; what else is asked, the CPU does from the same weights."""

    def __init__(
        self,
        layout: _core.Layout,
        weights: NDArray[np.float32],
        forbidden: NDArray[np.uint32] | None,
        local: bool,
    ) -> None:
        if local:
            raise ParameterError(
                "device='cuda' cannot do steps that are normalised one by one; use device='cpu'"
            )
        self.layout, self.weights, self.local = layout, weights, local
        self._native = _core.Scorer(layout, weights, forbidden, local=local)
        self._rows = Rows(layout, device())
        self._rows.forbid(forbidden)
        self._chain = self._rows.spread(_on(np.asarray(weights), self._rows.device))

    def viterbi(
        self, dataset: _core.Dataset, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> NDArray[np.uint16]:
        """As the protocol says."""
        if not dataset.n_tokens or dataset.n_edge_attributes or dataset.vectors is not None:
            return self._native.viterbi(dataset, allowed=allowed, n_jobs=n_jobs)
        sentences = Sentences(dataset, self._rows, allowed)
        path, _ = gpu.best(sentences.score(), *self._chain, sentences.lengths, sentences.places)
        found: NDArray[np.uint16] = path.to(torch.int32).cpu().numpy().astype(np.uint16)
        return found

    def kbest(
        self, dataset: _core.Dataset, k: int, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> Any:
        """As the protocol says, by the CPU."""
        return self._native.kbest(dataset, k, allowed=allowed, n_jobs=n_jobs)

    def marginals(
        self, dataset: _core.Dataset, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """As the protocol says."""
        if not dataset.n_tokens or dataset.n_edge_attributes or dataset.vectors is not None:
            return self._native.marginals(dataset, allowed=allowed, n_jobs=n_jobs)
        sentences = Sentences(dataset, self._rows, allowed)
        scores = sentences.score()
        found = gpu.sums(scores, *self._chain, sentences.lengths, None, sentences.places)
        one = torch.ones_like(found.value)
        into = torch.empty(dataset.n_tokens, self.layout.n_labels, device=self._rows.device)
        gpu.expect(
            scores,
            *self._chain,
            sentences.lengths,
            None,
            *found[1:],
            one,
            sentences.places,
            into,
        )
        total = np.empty(len(dataset))
        total[sentences.order] = found.value.double().cpu().numpy()
        return into.cpu().numpy(), total
