"""Trainers that go instance by instance: the averaged perceptron, passive-aggressive, AROW.

    ap:    w += F(y) - F(y*)
    pa:    cost = s(y*) - s(y) + sqrt(#wrong) (or + 1),  tau = cost / |d|^2,  w += tau d
    arow:  cost = s(y*) - s(y) + #wrong,  alpha = cost / (gamma + sum d^2 v),  w += alpha v d,  1/v += d^2 / gamma

with d = F(y) - F(y*) on an error. What is averaged is w - ws / c, c counting instances from 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tagwise.compat.pycrfsuite.chains import Table, Weights, difference, path_score
from tagwise.compat.pycrfsuite.data import Features, Ids, Instance
from tagwise.compat.pycrfsuite.parameters import Parameters
from tagwise.compat.pycrfsuite.rand import Rand

Sparse = tuple[Ids, Table]


class Epoch(NamedTuple):
    """Where training stands after an epoch: weights of the features, the loss, the norm that is logged."""

    weights: Table
    loss: float
    norm: float
    stop: bool


class Rule:
    """What is done with a wrong path."""

    def __init__(self, features: Features, params: Parameters) -> None:
        self.params = params
        self.weights = Weights(features)
        self.sums = Weights(features)
        self.count = 1.0

    def update(self, row: Instance, path: Ids, score: float, wrong: int) -> float:
        """Change the weights for a wrong path; its loss."""
        raise NotImplementedError

    def add(self, node: Sparse, edge: Sparse, by: float) -> None:
        """w += by d; what is averaged grows with it."""
        for table, sums, (codes, values) in (
            (self.weights.node, self.sums.node, node),
            (self.weights.edge, self.sums.edge, edge),
        ):
            table[codes] += by * values
            sums[codes] += by * self.count * values

    def cost(self, row: Instance, score: float) -> float:
        """s(y*) - s(y)."""
        return score - path_score(*self.weights.scores(row), row.labels)

    @property
    def averages(self) -> bool:
        """Whether the weights are averages."""
        return True

    def result(self) -> Table:
        """The weights so far, averaged perhaps."""
        vector = self.weights.vector()
        return vector - self.sums.vector() / self.count if self.averages else vector

    def stops(self, mean: float) -> bool:
        """Whether a mean loss is small enough."""
        return mean < float(self.params["epsilon"])


class Perceptron(Rule):
    """The averaged perceptron."""

    def update(self, row: Instance, path: Ids, score: float, wrong: int) -> float:
        """w += F(y) - F(y*), one path after the other; the loss is the share of wrong labels.

        Features of both paths are added and taken back, with the rounding of both: it decides ties later on.
        """
        n, counts = self.weights.n, np.diff(row.ptr)
        values = np.ones(len(row.ids)) if row.values is None else row.values
        for labels, sign in ((row.labels, 1.0), (path, -1.0)):
            codes, pairs = row.ids * n + np.repeat(labels, counts), labels[:-1] * n + labels[1:]
            known, passed = self.weights.is_node[codes], self.weights.is_edge[pairs]
            for into, by in ((self.weights, sign), (self.sums, sign * self.count)):
                np.add.at(into.node, codes[known], by * values[known])
                np.add.at(into.edge, pairs[passed], by)
        return wrong / len(row)


class PassiveAggressive(Rule):
    """Passive-aggressive steps, of three kinds."""

    @property
    def averages(self) -> bool:
        """As the parameter says."""
        return bool(self.params["averaging"])

    def update(self, row: Instance, path: Ids, score: float, wrong: int) -> float:
        """w += tau d; the loss is the cost."""
        cost = self.cost(row, score) + (math.sqrt(wrong) if self.params["error_sensitive"] else 1.0)
        node, edge = difference(self.weights, row, path)
        norm = float(node[1] @ node[1]) + float(edge[1] @ edge[1])
        kind, c = self.params["type"], self.params["c"]
        if norm == 0.0 and kind != 2:
            return cost
        tau = cost / (norm + (1.0 / (2.0 * c) if kind == 2 else 0.0))
        self.add(node, edge, min(c, tau) if kind == 1 else tau)
        return cost


class Arow(Rule):
    """Adaptive regularisation of weights: every weight has a variance."""

    def __init__(self, features: Features, params: Parameters) -> None:
        super().__init__(features, params)
        self.sums.node[:] = self.sums.edge[:] = float(params["variance"])

    @property
    def averages(self) -> bool:
        """No."""
        return False

    def update(self, row: Instance, path: Ids, score: float, wrong: int) -> float:
        """w += alpha v d; the loss is the cost."""
        cost, gamma = self.cost(row, score) + wrong, float(self.params["gamma"])
        parts = list(
            zip(
                (self.weights.node, self.weights.edge),
                (self.sums.node, self.sums.edge),
                difference(self.weights, row, path),
            )
        )
        below = gamma + sum(float((d * d) @ variance[codes]) for _, variance, (codes, d) in parts)
        alpha = cost / below
        for table, variance, (codes, d) in parts:
            table[codes] += alpha * variance[codes] * d
            variance[codes] = 1.0 / (1.0 / variance[codes] + d * d / gamma)
        return cost

    def stops(self, mean: float) -> bool:
        """Here the bound itself counts."""
        return mean <= float(self.params["epsilon"])


RULES: dict[str, Callable[[Features, Parameters], Rule]] = {
    "ap": Perceptron,
    "pa": PassiveAggressive,
    "arow": Arow,
}


def epochs(rows: Sequence[Instance], features: Features, params: Parameters) -> Iterator[Epoch]:
    """One epoch after the other, each in an order of its own."""
    rule, stream = RULES[params.algorithm](features, params), Rand()
    order = list(range(len(rows)))
    for _ in range(params["max_iterations"]):
        stream.shuffle(order)
        loss = 0.0
        for i in order:
            row = rows[i]
            score, path = rule.weights.best(row)
            wrong = int((path != row.labels).sum())
            if wrong:
                loss += rule.update(row, path, score, wrong)
            rule.count += 1.0
        weights = rule.result()
        shown = rule.weights.vector() if params.algorithm == "pa" else weights
        stop = rule.stops(loss / max(1, len(rows)))
        yield Epoch(weights, loss, float(np.linalg.norm(shown)), stop)
        if stop:
            return
