"""Simulation of labelling: how many sentences a strategy needs to reach a fraction of the full score.

The pool is the training part with hidden labels. A learner is trained on a few random sentences, then the labels of the
sentences with the highest priority are revealed, and so on. After each step it is scored on the test part. The result
is the number of sentences and tokens at which the curve first reaches the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tagwise.apps.annotate.ranking import View, priorities
from tagwise.apps.compare.report.svg import Chart, Line, PlotPoint
from tagwise.base.exceptions import ParameterError
from tagwise.corpus.sentence import Corpus

#: Name of random order, in place of a strategy.
RANDOM = "random"
_COLOURS = {"random": "#888888", "margin": "#c0392b", "span": "#2471a3", "committee": "#1e8449"}
_OTHER = "#8e44ad"


@dataclass
class Curve:
    """Sentences, tokens and score after each step of one strategy with one seed."""

    strategy: str
    seed: int
    sentences: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    def reached(self, target: float) -> tuple[int, int] | None:
        """Return sentences and tokens at the first step that reaches `target`, or None if no step does."""
        for n, tokens, score in zip(self.sentences, self.tokens, self.scores):
            if score >= target:
                return n, tokens
        return None


@dataclass
class Simulation:
    """All curves on one corpus, and the score of the whole pool."""

    corpus: str
    full: float
    pool: int
    share: float
    curves: list[Curve]

    @property
    def target(self) -> float:
        """Target score."""
        return self.share * self.full

    def needed(self, strategy: str) -> tuple[float, float] | None:
        """Return the mean sentences and tokens that a strategy needs, or None if a seed does not reach the target."""
        found = [curve.reached(self.target) for curve in self.curves if curve.strategy == strategy]
        if not found or any(one is None for one in found):
            return None
        each = np.array([one for one in found if one is not None], dtype=float).mean(axis=0)
        return float(each[0]), float(each[1])

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table: strategy, sentences, tokens, and both relative to random order."""
        base = self.needed(RANDOM)
        out: list[tuple[str, ...]] = []
        for name in dict.fromkeys(curve.strategy for curve in self.curves):
            found = self.needed(name)
            if found is None:
                out.append((name, f"more than {self.most(name)}", "", "", ""))
                continue
            shares = ["", ""] if base is None else [f"{100 * x / y:.0f} %" for x, y in zip(found, base)]
            out.append((name, f"{found[0]:,.0f}", f"{found[1]:,.0f}", *shares))
        return out

    def most(self, strategy: str) -> int:
        """Return the number of sentences of the longest curve of a strategy."""
        return max(curve.sentences[-1] for curve in self.curves if curve.strategy == strategy)

    def markdown(self) -> str:
        """Return the table as Markdown."""
        head = ("order", "sentences", "tokens", "of random's sentences", "of random's tokens")
        lines = [f"| {' | '.join(row)} |" for row in (head, ("---",) * 5, *self.rows())]
        return "\n".join(lines)

    def chart(self) -> Chart:
        """Return a chart of the curves of the first seed of each strategy, with the target."""
        lines, points = [], []
        for curve in self.curves:
            if curve.seed:
                continue
            colour = _COLOURS.get(curve.strategy, _OTHER)
            path = list(zip(map(float, curve.sentences), (100 * s for s in curve.scores)))
            lines.append(Line(path, curve.strategy, colour, curve.strategy))
            points.append(
                PlotPoint(*path[-1], curve.strategy, colour, curve.strategy, "none", label=curve.strategy)
            )
        end = max(self.most(curve.strategy) for curve in self.curves)
        level = [(0.0, 100 * self.target), (float(end), 100 * self.target)]
        title = f"{100 * self.share:.0f} % of the full score"
        lines.append(Line(level, "target", "#999999", title, dashed=True))
        return Chart(
            f"{self.corpus}: score against sentences labelled", "sentences labelled", "score", points, lines
        )


def simulate(
    name: str,
    pool: Corpus,
    test: Corpus,
    make: Callable[[], Any],
    *,
    strategies: Sequence[str] = ("margin",),
    seeds: int = 1,
    begin: int = 20,
    growth: float = 1.15,
    share: float = 0.95,
    watch: Callable[[Curve], object] = lambda _: None,
) -> Simulation:
    """Simulate labelling with each strategy and in random order.

    Args:
        name: Name of the corpus, for the table.
        pool: Sentences whose labels are revealed step by step.
        test: Sentences to score after each step.
        make: Function that returns an unfitted tagger.
        strategies: Names of `ranking.STRATEGIES`. Random order is always included.
        seeds: Number of runs per strategy, with different first sentences.
        begin: Number of random first sentences.
        growth: Growth factor of the labelled part per step.
        share: Target score as a fraction of the score of the whole pool.
        watch: Function that is called after each step.
    """
    if not 0.0 < share <= 1.0 or growth <= 1.0 or begin < 1 or seeds < 1:
        raise ParameterError(
            f"share={share}, growth={growth}, begin={begin}, seeds={seeds}: expected a share in (0, 1], growth above "
            "1, begin and seeds of 1 or more"
        )
    full = make().fit(pool).score(test)
    out = Simulation(name, full, len(pool), share, [])
    for strategy in dict.fromkeys([RANDOM, *strategies]):
        for seed in range(seeds):
            curve = Curve(strategy, seed)
            out.curves.append(curve)
            run_curve(curve, pool, test, make, begin, growth, out.target, watch)
    return out


def run_curve(
    curve: Curve,
    pool: Corpus,
    test: Corpus,
    make: Callable[[], Any],
    begin: int,
    growth: float,
    target: float,
    watch: Callable[[Curve], object] = lambda _: None,
) -> None:
    """Run one strategy with one seed until the target or the whole pool is reached."""
    order = np.random.default_rng(curve.seed).permutation(len(pool)).tolist()
    chosen, left = order[:begin], order[begin:]
    while True:
        tagger = make().fit(picked(pool, chosen))
        curve.sentences.append(len(chosen))
        curve.tokens.append(sum(len(pool[i]) for i in chosen))
        curve.scores.append(tagger.score(test))
        watch(curve)
        if not left or curve.scores[-1] >= target:
            return
        more = min(len(left), max(1, round(len(chosen) * (growth - 1.0))))
        left = _ordered(curve.strategy, tagger, pool, chosen, left, make)
        chosen, left = chosen + left[:more], left[more:]


def _ordered(
    strategy: str, tagger: Any, pool: Corpus, chosen: Sequence[int], left: list[int], make: Callable[[], Any]
) -> list[int]:
    """Return the remaining sentences by decreasing priority."""
    if strategy == RANDOM:
        return left
    second = None
    if strategy == "committee":  # the second model is trained on every other sentence
        second = make().fit(picked(pool, chosen[::2])).model_
    seen = {word for i in chosen for word in pool[i].tokens}
    view = View(tagger.model_, second, seen, n_jobs=1)
    scores = priorities(strategy, view, picked(pool, left))
    return [left[i] for i in np.argsort(-scores, kind="stable").tolist()]


def picked(corpus: Corpus, places: Iterable[int]) -> Corpus:
    """Return sentences of a corpus by position."""
    return Corpus(
        [corpus[i] for i in places], columns=corpus.columns, label=corpus.label, source=corpus.source
    )
