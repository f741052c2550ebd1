"""Labelling played through on a labelled corpus: how many sentences an order needs to reach a share of the full score.

The pool is the training part with its labels hidden. From a few sentences at random on, a learner is trained, the
sentences it wants most are given their labels, and so on; after each step it is scored on the test part. What is
reported is the number of sentences, and of tokens, at which the curve first reaches the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tagwise.apps.annotate.ranking import View, wanted
from tagwise.apps.compare.report.svg import Chart, Line, PlotPoint
from tagwise.base.exceptions import ParameterError
from tagwise.corpus.sentence import Corpus

#: In place of a strategy: any order.
RANDOM = "random"
_COLOURS = {"random": "#888888", "margin": "#c0392b", "span": "#2471a3", "committee": "#1e8449"}
_OTHER = "#8e44ad"


@dataclass
class Curve:
    """The course of one strategy with one seed: sentences, tokens and score after each step."""

    strategy: str
    seed: int
    sentences: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    def reached(self, target: float) -> tuple[int, int] | None:
        """Sentences and tokens at the first step whose score is no less than `target`; None where none is."""
        for n, tokens, score in zip(self.sentences, self.tokens, self.scores):
            if score >= target:
                return n, tokens
        return None


@dataclass
class Simulation:
    """All curves on one corpus, with the score of the whole pool."""

    corpus: str
    full: float
    pool: int
    share: float
    curves: list[Curve]

    @property
    def target(self) -> float:
        """The score that is asked for."""
        return self.share * self.full

    def needed(self, strategy: str) -> tuple[float, float] | None:
        """Sentences and tokens that a strategy needs, the mean over seeds; None where some seed never got there."""
        found = [curve.reached(self.target) for curve in self.curves if curve.strategy == strategy]
        if not found or any(one is None for one in found):
            return None
        each = np.array([one for one in found if one is not None], dtype=float).mean(axis=0)
        return float(each[0]), float(each[1])

    def rows(self) -> list[tuple[str, ...]]:
        """The table: strategy, sentences, tokens, both as shares of what random order needs."""
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
        """The longest course of a strategy."""
        return max(curve.sentences[-1] for curve in self.curves if curve.strategy == strategy)

    def markdown(self) -> str:
        """The table as Markdown."""
        head = ("order", "sentences", "tokens", "of random's sentences", "of random's tokens")
        lines = [f"| {' | '.join(row)} |" for row in (head, ("---",) * 5, *self.rows())]
        return "\n".join(lines)

    def chart(self) -> Chart:
        """The curves, the first seed of each strategy, with the target."""
        lines, points = [], []
        for curve in self.curves:
            if curve.seed:
                continue
            colour = _COLOURS.get(curve.strategy, _OTHER)
            course = list(zip(map(float, curve.sentences), (100 * s for s in curve.scores)))
            lines.append(Line(course, curve.strategy, colour, curve.strategy))
            points.append(
                PlotPoint(*course[-1], curve.strategy, colour, curve.strategy, "none", label=curve.strategy)
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
    """Play labelling through with each strategy, and in random order.

    Args:
        name: of the corpus, for the table.
        pool: sentences whose labels are told one step after another.
        test: what is scored after each step.
        make: makes an unfitted tagger.
        strategies: names of `ranking.STRATEGIES`; random order is always there.
        seeds: how often each is played, from other first sentences.
        begin: sentences at random to begin with.
        growth: how much larger the labelled part is after each step.
        share: of the score of the whole pool, which is the target.
        watch: called after each step.
    """
    if not 0.0 < share <= 1.0 or growth <= 1.0 or begin < 1 or seeds < 1:
        raise ParameterError(
            f"share={share}, growth={growth}, begin={begin}, seeds={seeds}; expected a share in (0, 1], growth above "
            "1, begin and seeds of 1 or more"
        )
    full = make().fit(pool).score(test)
    out = Simulation(name, full, len(pool), share, [])
    for strategy in dict.fromkeys([RANDOM, *strategies]):
        for seed in range(seeds):
            curve = Curve(strategy, seed)
            out.curves.append(curve)
            _play(curve, pool, test, make, begin, growth, out.target, watch)
    return out


def _play(
    curve: Curve,
    pool: Corpus,
    test: Corpus,
    make: Callable[[], Any],
    begin: int,
    growth: float,
    target: float,
    watch: Callable[[Curve], object],
) -> None:
    """One course, to its end: the target, or the whole pool."""
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
    """What is left, the most wanted first."""
    if strategy == RANDOM:
        return left
    second = None
    if strategy == "committee":  # the other half of the committee has seen every other sentence
        second = make().fit(picked(pool, chosen[::2])).model_
    seen = {word for i in chosen for word in pool[i].tokens}
    view = View(tagger.model_, second, seen, n_jobs=1)
    scores = wanted(strategy, view, picked(pool, left))
    return [left[i] for i in np.argsort(-scores, kind="stable").tolist()]


def picked(corpus: Corpus, places: Iterable[int]) -> Corpus:
    """Some sentences of a corpus."""
    return Corpus(
        [corpus[i] for i in places], columns=corpus.columns, label=corpus.label, source=corpus.source
    )
