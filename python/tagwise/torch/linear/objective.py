"""The linear CRF on a GPU: weights as rows, sentences on the device, and the objective of a training set.

Weights are spread over rows, one per attribute, padded to whole sectors of 8 labels. The scores of a token are the sum
of its attributes' rows, and the gradient of an attribute is the sum of its tokens' rows of residuals. Both sums are
taken in a fixed order: long lists in units of UNIT rows, whose sums are summed again. An evaluation is one CUDA graph,
except with more labels than `engines.cuda` supports: then `many_labels` processes padded groups of sentences.

Everything also runs on the CPU in plain PyTorch, slowly, so that the code around the kernels can be tested without a
GPU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import tagwise._core as _core
from tagwise.base.exceptions import ParameterError, TrainingError
from tagwise.dataset.layout import node_attributes
from tagwise.torch.engines import cuda, launching
from tagwise.torch.formulas import Pointwise, Sequential, formula_of
from tagwise.torch.linear import ragged
from tagwise.torch.protocol import Chain, Gradient, Places

#: Maximum number of rows in one sum, and floats in a sector of memory, to which rows are padded.
UNIT, SECTOR = 128, 8
_CREW, _THREADS = 128, 256
Support = tuple[NDArray[np.bool_], NDArray[np.uint32]]


def device() -> torch.device:
    """Return the current GPU. Raise ParameterError if PyTorch finds none."""
    if not torch.cuda.is_available():
        raise ParameterError("device='cuda': PyTorch finds no GPU. Use device='cpu'")
    return torch.device("cuda", torch.cuda.current_device())


def unsupported_message(feature: str) -> str:
    """Return the message for a feature that needs the CPU."""
    return f"device='cuda' does not support {feature}. Use device='cpu'"


def check_supported(problem: Any) -> None:
    """Raise ParameterError if a problem has a property that training on a GPU does not support."""
    edges = bool(problem.data.n_edge_attributes)
    unsupported = {
        "order > 1": problem.order is not None,
        "the constraint once": problem.once is not None,
        f"edge attributes with more than {cuda.MOST_LABELS} labels": edges
        and problem.layout.n_labels > cuda.MOST_LABELS,
        "vectors": problem.data.vectors is not None,
    }
    feature = next((feature for feature, present in unsupported.items() if present), None)
    if feature is not None:
        raise ParameterError(unsupported_message(feature))


class _Level(NamedTuple):
    """Units of one level of sums: unit u adds the rows [begins[u], begins[u + 1]) of a list."""

    begins: Tensor
    list: Tensor
    values: Tensor | None
    source: int  # the level whose sums are added, or -1 for the rows of tokens
    first: int  # index of the level's first sum among those of all levels


class WeightRows:
    """Weights of a layout as rows, and the sums of rows for the tokens of a dataset.

    One buffer holds the rows of all attributes, then transitions, start and end. `place` has the position of each
    feature in it.
    """

    def __init__(self, layout: _core.Layout, on: torch.device) -> None:
        arrays, self.labels = layout.arrays(), layout.n_labels
        self.device, self.width = on, -(-self.labels // SECTOR) * SECTOR
        self.attributes = layout.n_attributes
        self.owner = to_device(node_attributes(layout).astype(np.int64), on)
        self.label = to_device(arrays["node_label"].astype(np.int64), on)
        codes = (arrays[name].astype(np.int64) for name in ("edges", "starts", "ends"))
        self.edges, self.starts, self.ends = (to_device(code, on) for code in codes)
        size = self.attributes * self.width
        self.place = torch.cat([self.owner * self.width + self.label, self.tail_places(size)])
        self.held = torch.zeros(size + self.labels * (self.labels + 2), device=on)
        self.table, (self.transitions, self.start, self.end) = self.held[:size], self.cut(self.held[size:])
        self.short = _short(self.place, self.held)
        self.forbidden: Tensor | None = None

    def kernel(self, name: str) -> launching.CompiledKernel:
        """Return a kernel of `linear.cu`."""
        return launching.kernel("linear", self.device.index or 0, (("WIDTH", self.width),), name)

    def tail_places(self, size: int) -> Tensor:
        """Return the positions of the features of pairs, first and last labels after the first `size` of a buffer."""
        pairs = self.labels * self.labels
        return torch.cat(
            [self.edges + size, self.starts + (size + pairs), self.ends + (size + pairs + self.labels)]
        )

    def cut(self, tail: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return views of that part of a buffer as transitions, start and end."""
        n = self.labels
        return tail[: n * n].view(n, n), tail[n * n : n * n + n], tail[n * n + n :]

    def forbid(self, pairs: NDArray[np.uint32] | None) -> None:
        """Forbid transitions, given as label' * L + label."""
        if pairs is not None and len(pairs):
            self.forbidden = torch.zeros(self.labels, self.labels, dtype=torch.bool, device=self.device)
            self.forbidden.view(-1)[to_device(pairs.astype(np.int64), self.device)] = True

    def spread(self, w: Tensor) -> None:
        """Copy weights to rows, transitions, start and end, except those of edge attributes, which come last."""
        if self.short is not None and w.dtype == torch.float64:
            arguments = w.data_ptr(), self.short.data_ptr(), len(self.place), self.held.data_ptr()
            self.kernel("linear_spread")(_blocks(len(self.place)), _THREADS, *arguments)
        else:
            self.held.index_copy_(0, self.place, w[: len(self.place)].float())
        if self.forbidden is not None:
            self.transitions.masked_fill_(self.forbidden, -torch.inf)

    def sums(self, begins: Tensor, members: Tensor, values: Tensor | None, rows: Tensor, out: Tensor) -> None:
        """Set out[u] to the sum of values * rows[members] over [begins[u], begins[u + 1])."""
        units = len(begins) - 1
        if units <= 0:
            return
        if not _on_gpu(self.device):
            many = (begins[1:] - begins[:-1]).long()
            chosen = members[int(begins[0]) : int(begins[-1])].long()
            selected = rows.reshape(-1, self.width)[chosen]
            if values is not None:
                selected = selected * values[int(begins[0]) : int(begins[-1]), None]
            found = torch.zeros(units, self.width).index_add_(
                0, torch.repeat_interleave(torch.arange(units), many), selected
            )
            out.reshape(-1, self.width)[:units] = found
            return
        arguments = begins.data_ptr(), members.data_ptr(), 0 if values is None else values.data_ptr()
        at_once = _CREW // lanes(self.width)
        self.kernel("linear_sums")(
            (-(-units // at_once), 1, 1), _CREW, *arguments, rows.data_ptr(), units, out.data_ptr()
        )


def lanes(width: int) -> int:
    """Return the number of threads per row in `linear_sums`: one for four labels, at least 2, at most a warp."""
    return min(32, max(2, 1 << (-(-width // 4) - 1).bit_length()))


def _on_gpu(on: torch.device) -> bool:
    return bool(on.type == "cuda")


def _blocks(many: int) -> tuple[int, int, int]:
    return -(-many // _THREADS), 1, 1


def _short(places: Tensor, held: Tensor) -> Tensor | None:
    """Return positions in a buffer as int32 for the kernels, or None without a GPU or if they exceed 32 bits."""
    return places.int() if _on_gpu(held.device) and len(places) and held.numel() < 2**31 else None


def to_device(array: NDArray[Any], on: torch.device) -> Tensor:
    """Return an array as a tensor on a device."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(on)


class Sentences:
    """A dataset on the device: attributes of tokens, sentences longest first, sets of allowed labels."""

    def __init__(
        self,
        data: _core.Dataset,
        rows: WeightRows,
        allowed: Support | None = None,
        pieces: NDArray[np.uint32] | None = None,
    ) -> None:
        pointers, ids, values = data.sparse()
        if len(ids) >= 2**31:
            raise ParameterError(
                unsupported_message(f"more than {2**31 - 1:,} attributes of tokens (got {len(ids):,})")
            )
        on = rows.device
        self.rows, self.tokens = rows, data.n_tokens
        self.pointers, self.ids = (
            to_device(pointers.astype(np.int32), on),
            to_device(ids.astype(np.int32), on),
        )
        self.values = to_device(values.astype(np.float32), on) if len(values) else None
        offsets = data.offsets.astype(np.int64)
        lengths = np.diff(offsets)
        self.order = np.argsort(-lengths, kind="stable")
        self.lengths = to_device(lengths[self.order].astype(np.int32), on)
        first = to_device(offsets[:-1][self.order], on)
        groups = ragged.groups(lengths[self.order], rows.labels)
        self.places = Places(first, int(lengths.max(initial=0)), groups)
        self.ends = None if pieces is None else _true_ends(offsets, pieces, on)
        self.scores = torch.zeros(self.tokens, rows.width, device=on)
        self.barred = None if allowed is None else _barred(allowed, rows)

    def chain(self) -> Chain:
        """Return the sentences, scored by the current rows. Labels that are not allowed score -inf."""
        rows = self.rows
        rows.sums(self.pointers, self.ids, self.values, rows.table, self.scores)
        scores = self.scores[:, : rows.labels]
        start, end = rows.start, rows.end
        if self.ends is not None:  # only the outer ends of a sentence that was cut into pieces have scores
            for tokens, more in zip(self.ends, (start, end)):
                scores[tokens] = scores[tokens] + more
            start = end = torch.zeros_like(start)
        if self.barred is not None:
            scores.masked_fill_(self.barred, -torch.inf)
        return Chain(scores, rows.transitions, start, end, self.lengths, None, self.places)

    def of_tokens(self, values: Tensor) -> Tensor:
        """Return for each token the value of its sentence. `values` are in the order longest first."""
        many = self.lengths.long()
        owner = torch.repeat_interleave(torch.arange(len(many), device=many.device), many)
        within = torch.arange(self.tokens, device=many.device) - (many.cumsum(0) - many)[owner]
        out = values.new_empty(self.tokens)
        out[self.places.first[owner] + within] = values[owner]
        return out


def _true_ends(
    offsets: NDArray[np.int64], pieces: NDArray[np.uint32], on: torch.device
) -> tuple[Tensor, Tensor]:
    """Return the first and last tokens of sentences that were cut into pieces."""
    first = np.diff(pieces.astype(np.int64), prepend=-1) != 0
    last = np.roll(first, -1)
    return to_device(offsets[:-1][first], on), to_device(offsets[1:][last] - 1, on)


def _barred(allowed: Support, rows: WeightRows) -> Tensor:
    sets, which = allowed
    return ~to_device(sets, rows.device)[to_device(which.astype(np.int64), rows.device)]


def _by_size(starts: Tensor, stops: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sort units by size, largest first, so that those of a warp are equal.

    The members of unit u are [starts[u], stops[u]) of a list. Return the bounds of the sorted units, their members in
    that order, and the rank of each unit.
    """
    size, order = torch.sort(stops - starts, descending=True, stable=True)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order), device=order.device)
    bounds = torch.cat([size.new_zeros(1), size.cumsum(0)])
    members = torch.repeat_interleave(starts[order] - bounds[:-1], size)
    return bounds.int(), members + torch.arange(len(members), device=members.device), rank


class Back:
    """Gradient of node features from the residuals of tokens: sums over the tokens of each attribute, in units."""

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
            edges, members, rank = _by_size(starts, stops)
            of_members = None if values is None else values[members]
            self.levels.append(_Level(edges, rest[members].contiguous(), of_members, source, first))
            alone = units == 1
            self.where[owners[alone]] = first + rank[(ends_of - units)[alone]]
            more = units > 1
            # A list of the units of attributes that have several, since the units of other attributes are in between.
            chosen = rank[more[owner].nonzero().squeeze(1)]
            counts = units[more]
            begins = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
            rest, values = chosen.int(), None
            owners, source, first = owners[more], source + 1, first + len(owner)
        counts_all = torch.bincount(sentences.ids, minlength=attributes)
        self.where[counts_all == 0] = first
        # Sums, the last one (0) for attributes without tokens, then the gradients of pairs, first and last labels.
        size = (first + 1) * rows.width
        self.held = torch.zeros(size + rows.labels * (rows.labels + 2), device=on)
        self.sums = self.held[:size].view(first + 1, rows.width)
        self.residuals = torch.zeros(sentences.tokens, rows.width, device=on)
        self.into = Gradient(self.residuals[:, : rows.labels], *rows.cut(self.held[size:]))
        self.index = torch.cat([self.where[rows.owner] * rows.width + rows.label, rows.tail_places(size)])
        self.short, self.rows, self.ends = _short(self.index, self.held), rows, sentences.ends

    def gradient(self, out: Tensor) -> None:
        """Compute the gradient of all features except those of edge attributes from the contents of `into`."""
        if self.ends is not None:
            for tokens, by in zip(self.ends, self.into[2:]):
                by.copy_(self.into.emissions[tokens].sum(0))
        for level in self.levels:
            source = self.residuals if level.source < 0 else self.sums[self.levels[level.source].first :]
            self.rows.sums(level.begins, level.list, level.values, source, self.sums[level.first :])
        if self.short is None:
            out[: len(self.index)] = self.held.index_select(0, self.index)
            return
        arguments = self.held.data_ptr(), self.short.data_ptr(), len(self.index), out.data_ptr()
        self.rows.kernel("linear_collect")(_blocks(len(self.index)), _THREADS, *arguments)


class DeviceObjective:
    """Loss and gradient of a training set on the device. Weights and gradients are NumPy arrays or tensors there.

        log            sum_i w_i l_i                       exp            sum_i w_i (e^{l_i} - 1)
        pointwise_log  -sum_i w_i sum_t log p_t            pointwise_exp  sum_i w_i sum_t 1 / p_t

    l_i is log Z minus the score of the gold labels. If these are partly known, it is log Z minus the log Z of the paths
    that agree with them. p_t is the marginal of the gold label. A cost is added to the scores of wrong labels.
    """

    captured = True  # an evaluation is a CUDA graph

    def __init__(self, problem: Any, on: torch.device | None = None) -> None:
        check_supported(problem)
        on = device() if on is None else on
        self.rows = WeightRows(problem.layout, on)
        self.rows.forbid(problem.forbidden)
        self.sentences = Sentences(problem.data, self.rows, problem.allowed, problem.pieces)
        self.back = Back(self.sentences)
        self.loss, self.formula = problem.loss, formula_of(problem.loss)
        many = len(problem.data)
        weight = np.ones(many) if problem.sample_weight is None else np.asarray(problem.sample_weight)
        self.weight = to_device(weight[self.sentences.order].astype(np.float32), on)
        self.log_weight, self.negative_weight = self.weight.double().log(), -self.weight
        self.partial = None if problem.partial is None else _barred(problem.partial, self.rows)
        gold = problem.data.gold
        self.tags = None if self.partial is not None else to_device(gold.astype(np.int64), on)
        if self.tags is not None and len(gold) and int(gold.max()) >= self.rows.labels:
            raise TrainingError(unsupported_message("tokens without gold labels"))
        self.margin: Tensor | None = None
        if problem.cost is not None:
            self.margin = to_device(np.asarray(problem.cost, np.float32), on)[self.tags]
        if isinstance(self.formula, Pointwise):
            self.token_weight = self.sentences.of_tokens(self.log_weight)
        size = len(problem.layout)
        self.w = torch.zeros(size, dtype=torch.float64, device=on)
        self.out = torch.zeros(size, dtype=torch.float64, device=on)
        self.figures = torch.zeros(2, dtype=torch.float64, device=on)
        self._graphs: dict[bool, torch.cuda.CUDAGraph] = {}

    def _evaluate(self, in_logs: bool) -> None:
        """Compute `out` and `figures` from `w`: the loss (`in_logs`: its logarithm) and the largest l_i + log w_i."""
        self.rows.spread(self.w)
        chain = self.sentences.chain()
        if self.margin is not None:
            chain.emissions.add_(self.margin)
        if isinstance(self.formula, Pointwise):
            self._pointwise(chain, self.formula)
        elif self.loss == "log" and self.partial is None and not in_logs and _on_gpu(self.rows.device):
            self._logarithmic(chain)
        else:
            self._sequential(chain, self.formula, in_logs)

    def _sequential(self, chain: Chain, formula: Sequential, in_logs: bool) -> None:
        chain = chain._replace(tags=self.tags)
        found, inside, back = ragged.forward_backward(chain), None, self.back
        if self.partial is None:
            losses = -found.value
        else:
            some = chain._replace(emissions=chain.emissions.masked_fill(self.partial, -torch.inf))
            inside = ragged.forward_backward(some)
            losses = found.value - inside.value
        high = losses + self.log_weight
        self.figures[1] = high.max()
        if in_logs:
            self.figures[0] = torch.logsumexp(high, 0)
            slope = (high - self.figures[0]).exp().float()
        else:
            self.figures[0] = (self.weight.double() * formula.value(losses)).sum()
            slope = formula.slope(self.weight, high).float()
        ragged.expectations(chain, found.rows, -slope if self.partial is None else slope, back.into)
        back.gradient(self.out)
        if inside is not None:
            ragged.expectations(some, inside.rows, -slope, back.into)
            more = torch.empty_like(self.out)
            back.gradient(more)
            self.out.add_(more)

    def _logarithmic(self, chain: Chain) -> None:
        """Compute the log loss of known labels with fewer kernels than `_sequential`."""
        chain = chain._replace(tags=self.tags)
        found, rows = ragged.forward_backward(chain), self.rows
        arguments = (x.data_ptr() for x in (found.value, self.weight, self.log_weight))
        rows.kernel("linear_figures")(
            (1, 1, 1), _THREADS, *arguments, len(self.weight), self.figures.data_ptr()
        )
        ragged.expectations(chain, found.rows, self.negative_weight, self.back.into)
        self.back.gradient(self.out)

    def _pointwise(self, chain: Chain, formula: Pointwise) -> None:
        """Compute a pointwise loss.

        The derivatives -omega_t / p_t with respect to p_t are divided by the largest, which scales the gradient last.
        """
        assert self.tags is not None
        rows = ragged.forward_backward(chain).rows
        log_p = ragged.log_marginals(chain, rows, self.tags)
        high = formula.log_omega(self.token_weight, log_p)
        self.figures[0], self.figures[1] = formula.value(high, log_p).sum(), (-log_p).max()
        steep = high - log_p
        most = steep.max()
        along = torch.zeros_like(self.back.into.emissions).contiguous()
        along.scatter_(1, self.tags[:, None], -(steep - most).exp().float()[:, None])
        ragged.hessian_product(chain, rows, along, self.back.into)
        self.back.gradient(self.out)
        self.out.mul_(most.exp())

    def _run(self, w: Any, gradient: Any, in_logs: bool) -> tuple[float, float]:
        self.w.copy_(w if isinstance(w, Tensor) else torch.from_numpy(w))
        if self.w.device.type == "cuda" and self.captured and not self.sentences.places.groups:
            self._graph(in_logs).replay()
        else:
            self._evaluate(in_logs)
        if isinstance(gradient, Tensor):
            gradient.copy_(self.out)
        else:
            torch.from_numpy(gradient).copy_(self.out)
        value, largest = self.figures.tolist()
        return value, largest

    def _graph(self, in_logs: bool) -> torch.cuda.CUDAGraph:
        """Return the captured graph of an evaluation."""
        graph = self._graphs.get(in_logs)
        if graph is None:
            self._evaluate(in_logs)  # compiles
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._evaluate(in_logs)
            self._graphs[in_logs] = graph
        return graph

    def value(self, w: Any, gradient: Any, n_jobs: int = 0, /) -> tuple[float, float]:
        """Implement `Objective.value` of the backend protocol."""
        return self._run(w, gradient, False)

    def log_value(self, w: Any, gradient: Any, n_jobs: int = 0, /) -> tuple[float, float]:
        """Implement `Objective.log_value` of the backend protocol."""
        return self._run(w, gradient, True)
