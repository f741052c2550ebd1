"""Explanation of a label by the contribution of each feature to the difference of two paths.

The score of a path is linear in the weights: s(y) = sum_t sum_a x_ta w[a, y_t] + sum_t A[y_t-1, y_t] + start + end. So

    s(y) - s(y') = sum of the differences of the features

exactly, for any two paths. If paths have probabilities P = exp(s) / Z, it is log P(y|x) - log P(y'|x), the log-odds.
A model of local classifiers (MEMM) subtracts log Z_t(y_t-1) at every step, which are separate terms.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.cached import cached
from tagwise.dataset.layout import blocks_of
from tagwise.model.runners_up import Detour

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType


class Vote(NamedTuple):
    """Contribution of one feature at one token to s(path) - s(other).

    Attributes:
        token: Index of the token.
        kind: "node", "edge", "start", "end", "pair" (an attribute with two labels) or "normaliser" (of a step of a
            MEMM).
        feature: Description of the feature.
        weight: Score that it gives the path.
        other: Score that it gives the other path.
        amount: weight - other.
    """

    token: int
    kind: str
    feature: str
    weight: float
    other: float
    amount: float


@dataclass(frozen=True)
class Decision:
    """Comparison of the label of one token with another label: two paths and the votes that sum to their difference.

    Attributes:
        token: Index of the token.
        tokens: Tokens of the sentence.
        labels: Labels of the predicted path.
        begin: First token at which the paths differ.
        detour: Labels of the other path from `begin` on. Outside them both paths agree.
        score: Score of the predicted path.
        votes: Contributions of the features, strongest first.
        probability: Marginal probability of the predicted label, or None if the model has no probabilities.
        other_probability: Marginal probability of the other label, or None.
    """

    token: int
    tokens: Sequence[str]
    labels: Sequence[Any]  # in the type they had in training
    begin: int
    detour: Sequence[Any]
    score: float
    votes: Sequence[Vote]
    probability: float | None = None
    other_probability: float | None = None

    def __repr__(self) -> str:
        from tagwise.base.terminal import brief

        return f"<Decision: {brief(self.title, 120)}>"

    def _repr_html_(self) -> str:
        return decisions_html(Decisions(self.tokens, self.labels, [self]))

    @property
    def difference(self) -> float:
        """Difference of the scores, the sum of the votes."""
        return math.fsum(vote.amount for vote in self.votes)

    @property
    def other(self) -> list[Any]:
        """Labels of the other path."""
        return [*self.labels[: self.begin], *self.detour, *self.labels[self.begin + len(self.detour) :]]

    @property
    def other_score(self) -> float:
        """Score of the other path."""
        return self.score - self.difference

    @property
    def log_odds(self) -> float | None:
        """Log P(labels | x) / P(other | x), or None if the model has no probabilities. It equals `difference`."""
        return None if self.probability is None else self.difference

    @property
    def label(self) -> Any:
        """Label of the predicted path at this token."""
        return self.labels[self.token]

    @property
    def runner_up(self) -> Any:
        """Label of the other path at this token."""
        at = self.token - self.begin
        return self.detour[at] if 0 <= at < len(self.detour) else self.label

    @property
    def title(self) -> str:
        """Summary in one line."""
        chance = "" if self.probability is None else f" ({100 * self.probability:.1f} %)"
        other = "" if self.other_probability is None else f" ({100 * self.other_probability:.1f} %)"
        word = self.tokens[self.token]
        return f"{word}: {self.label}{chance} against {self.runner_up}{other}, {self.difference:+.4f}"

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as plain data. `other` has the labels of `detour`.

        Returns:
            A dict for JSON.
        """
        plain = {
            name: getattr(self, name) for name in ("token", "label", "runner_up", "score", "other_score")
        }
        chances = {name: getattr(self, name) for name in ("probability", "other_probability", "log_odds")}
        return {
            **plain,
            "word": self.tokens[self.token],
            "begin": self.begin,
            "other": list(self.detour),
            "difference": self.difference,
            **chances,
            "votes": [vote._asdict() for vote in self.votes],
        }

    def rows(self, top: int | None) -> list[tuple[str, str, str, str]]:
        """Return the strongest votes as cells of a table, with one more row for the rest.

        Args:
            top: Number of votes. None shows all.

        Returns:
            Rows of amount, token, feature and both weights.
        """
        shown = [v for v in self.votes if v.amount][:top]
        cells = [
            (f"{v.amount:+.4f}", self.tokens[v.token], v.feature, f"{v.weight:+.4f} / {v.other:+.4f}")
            for v in shown
        ]
        rest = self.difference - math.fsum(v.amount for v in shown)
        n = sum(1 for v in self.votes if v.amount) - len(shown)
        return [*cells, (f"{rest:+.4f}", "", f"{n} more", "")] if n else cells


@dataclass(frozen=True)
class Decisions(Sequence[Decision]):
    """Decisions for the tokens of a sentence. They print as tables, in a notebook as HTML.

    Attributes:
        tokens: Tokens of the sentence.
        labels: Predicted labels.
        decisions: One decision per token.
        top: Number of votes shown per decision.
    """

    tokens: Sequence[str]
    labels: Sequence[Any]
    decisions: Sequence[Decision]
    top: int = 5  # number of votes shown per decision

    def __len__(self) -> int:
        return len(self.decisions)

    def __getitem__(self, index: Any) -> Any:
        return self.decisions[index]

    def to_dict(self) -> dict[str, Any]:
        """Return the decisions as plain data.

        Returns:
            A dict for JSON.
        """
        return {
            "tokens": list(self.tokens),
            "labels": list(self.labels),
            "decisions": [d.to_dict() for d in self.decisions],
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from tagwise.base.terminal import plain, vote_table

        for decision in self.decisions:
            yield plain(decision.title, "bold")
            yield vote_table(decision.rows(self.top))

    def __str__(self) -> str:
        from tagwise.base.terminal import as_text

        return as_text(self, 100)

    def __repr__(self) -> str:
        from tagwise.base.terminal import brief

        return f"<Decisions: {len(self)} of {len(self.tokens)} tokens, {brief(' '.join(self.tokens))}>"

    def _repr_html_(self) -> str:
        return decisions_html(self)


#: An attribute, its value, its weights.
Weighted = tuple[int, float, NDArray[np.float64]]

# --- weights of one sentence ----------------------------------------------------------------------------------


class SentenceFeatures:
    """Features of a sentence with their weights: the score that each attribute of each token gives each label."""

    def __init__(self, scorer: _core.Scorer, data: _core.Dataset) -> None:
        layout = scorer.layout
        arrays, blocks = layout.arrays(), blocks_of(layout)
        w = scorer.weights.astype(np.float64)
        self.L = L = layout.n_labels
        self.T = data.n_tokens
        self.start, self.end = np.zeros(L), np.zeros(L)
        self.start[arrays["starts"]] = w[blocks.start]
        self.end[arrays["ends"]] = w[blocks.end]
        edge = np.zeros(L * L)
        edge[arrays["edges"]] = w[blocks.edge]
        self.edge = edge.reshape(L, L)
        node, pair = w[blocks.node], w[blocks.pair]

        @functools.cache
        def node_row(a: int) -> NDArray[np.float64]:
            return _row(arrays["node_ptr"], arrays["node_label"], node, a, L)

        @functools.cache
        def pair_row(a: int) -> NDArray[np.float64]:
            return _row(arrays["pair_ptr"], arrays["pair"], pair, a, L * L)

        #: Attributes of each token, their values and their weights by label [L], or by label pair [L * L].
        self.node: list[list[Weighted]] = []
        self.pair: list[list[Weighted]] = []
        for node_attributes, pair_attributes in zip(_csr(data.node(), self.T), _csr(data.edge(), self.T)):
            _core.Stop.check()
            self.node.append([(a, x, node_row(a)) for a, x in node_attributes])
            self.pair.append([(a, x, pair_row(a)) for a, x in pair_attributes])

    @property
    @cached
    def scores(self) -> NDArray[np.float64]:
        """Node scores [T, L], including those of the start and the end of the sentence."""
        out = np.zeros((self.T, self.L))
        for t, found in enumerate(self.node):
            _core.Stop.check()
            for _, x, row in found:
                out[t] += x * row
        out[0] += self.start
        out[-1] += self.end
        return out

    def step(self, t: int, local: bool) -> NDArray[np.float64]:
        """Return the edge scores [L, L] of the step into token t >= 1."""
        out = self.edge
        for _, x, row in self.pair[t]:
            out = out + x * row.reshape(self.L, self.L)
        return out - self.normalisers[t][:, None] if local else out

    @property
    @cached
    def normalisers(self) -> list[NDArray[np.float64]]:
        """Log Z_t(y') [L] of local classifiers for every token. At the first token it is equal for all y'.

        Local classifiers have neither edge attributes nor rules.
        """
        out = []
        for t, here in enumerate(self.scores):
            _core.Stop.check()
            scores = np.tile(here, (self.L, 1)) if t == 0 else self.edge + here
            most = scores.max(axis=1, keepdims=True)
            out.append((most + np.log(np.exp(scores - most).sum(axis=1, keepdims=True)))[:, 0])
        return out


def _csr(csr: Any, T: int) -> list[list[tuple[int, float]]]:
    """Return the attributes of each token with their values, or empty lists if the matrix has no rows."""
    pointers, ids, values = csr
    if len(pointers) <= 1:
        return [[] for _ in range(T)]
    at = pointers.tolist()
    x = values.tolist() if len(values) else [1.0] * len(ids)
    found = ids.tolist()
    out = []
    for a, b in pairwise(at):
        _core.Stop.check()
        out.append(list(zip(found[a:b], x[a:b])))
    return out


def _row(
    ptr: NDArray[Any], target: NDArray[Any], w: NDArray[np.float64], a: int, width: int
) -> NDArray[np.float64]:
    """Return the weights of one attribute, with 0 for labels without a feature."""
    out = np.zeros(width)
    if len(ptr) > a + 1:
        begin, end = int(ptr[a]), int(ptr[a + 1])
        out[target[begin:end]] = w[begin:end]
    return out


def votes(
    features: SentenceFeatures,
    text_of: Callable[[int], str],
    labels: Sequence[str],
    path: Sequence[int],
    detour: Detour,
    local: bool,
) -> list[Vote]:
    """Return the contribution of each feature to s(path) - s(other). Features of both paths cancel and are left out."""
    _core.Stop.check()
    out: list[Vote] = []
    last, begin, end = features.T - 1, detour.begin, detour.begin + len(detour.labels)

    def add(t: int, kind: str, feature: str, one: float, two: float) -> None:
        out.append(Vote(t, kind, feature, float(one), float(two), float(one) - float(two)))

    for t in range(begin, min(end, last) + 1):
        y, v = path[t], detour.label(path, t)
        if y != v:
            for a, x, row in features.node[t]:
                if row[y] or row[v]:
                    add(t, "node", text_of(a), x * row[y], x * row[v])
            for kind, at, border in (("start", 0, features.start), ("end", last, features.end)):
                if t == at and (border[y] or border[v]):
                    add(t, kind, f"{kind} of the sentence", border[y], border[v])
        if t == 0:
            continue
        k, j = path[t - 1], detour.label(path, t - 1)
        if (k, y) != (j, v):
            one, two = f"{labels[k]} → {labels[y]}", f"{labels[j]} → {labels[v]}"
            if features.edge[k, y] or features.edge[j, v]:
                add(t, "edge", f"{one} / {two}", features.edge[k, y], features.edge[j, v])
            for a, x, row in features.pair[t]:
                p, q = k * features.L + y, j * features.L + v
                if row[p] or row[q]:
                    add(t, "pair", f"{text_of(a)}, {one} / {two}", x * row[p], x * row[q])
        if local and k != j:
            z = features.normalisers[t]
            add(t, "normaliser", f"all labels after {labels[k]} / {labels[j]}", -z[k], -z[j])
    return sorted(out, key=lambda vote: -abs(vote.amount))


def decisions_html(decisions: Decisions) -> str:
    """Return the decisions with their strongest votes as HTML. All but the least certain one are folded."""
    from tagwise.base.markup import safe, table_html

    if not decisions:
        return "<p>nothing to explain</p>"
    nearest = min(decisions, key=lambda d: d.difference)
    parts = []
    for decision in decisions:
        opened = " open" if decision is nearest else ""
        rows = [(cells[1], cells[2], cells[0], cells[3]) for cells in decision.rows(decisions.top)]
        parts.append(
            f"<details{opened}><summary>{safe(decision.title)}</summary>"
            f"{table_html(('token', 'feature', 'adds', 'gives either'), rows, left=2)}</details>"
        )
    return f'<div style="line-height:1.5">{"".join(parts)}</div>'
