"""Agreement of two annotators: kappa of tokens, F1 of spans, and the sentences that differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tagwise.base.exceptions import CorpusError
from tagwise.corpus import schemes
from tagwise.corpus.sentence import Corpus
from tagwise.evaluation.metrics import evaluate


@dataclass(frozen=True)
class Disagreement:
    """A sentence with different labels in two files, and the positions of these tokens."""

    sentence: int
    tokens: list[int]
    one: list[str]
    two: list[str]


@dataclass(frozen=True)
class Agreement:
    """Agreement of two files with the same sentences.

    Attributes:
        accuracy: Fraction of tokens with the same label.
        kappa: Accuracy corrected for chance (Cohen 1960), 1 if both files use a single label.
        f1: F1 of spans, which is symmetric in the two files. None if labels do not mark spans.
    """

    sentences: int
    tokens: int
    accuracy: float
    kappa: float
    f1: float | None
    disagreements: list[Disagreement]


def agreement(one: Corpus, two: Corpus) -> Agreement:
    """Compare two files, or raise a CorpusError that names the first sentence that differs."""
    if len(one) != len(two):
        raise CorpusError(
            f"the first file has {len(one)} sentences, the second has {len(two)}. "
            "Give two files with the same sentences in the same order"
        )
    for i, (a, b) in enumerate(zip(one, two)):
        if a.tokens != b.tokens:
            raise CorpusError(
                f"sentence {i + 1} is {' '.join(a.tokens[:6])!r} in the first file and {' '.join(b.tokens[:6])!r} "
                "in the "
                "second. Give two files with the same sentences in the same order"
            )
    first, second = one.labels, two.labels
    pairs = Counter((x, y) for a, b in zip(first, second) for x, y in zip(a, b))
    n = sum(pairs.values())
    if not n:
        raise CorpusError("the files have no tokens. Give two files with labelled sentences")
    same = sum(count for (x, y), count in pairs.items() if x == y) / n
    left: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for (x, y), count in pairs.items():
        left[x] += count
        right[y] += count
    chance = sum(left[y] * right[y] for y in left) / (n * n)
    kappa = 1.0 if chance >= 1.0 else (same - chance) / (1.0 - chance)
    chunked = schemes.has_chunks({*left, *right})
    differ = [
        Disagreement(i, [t for t, (x, y) in enumerate(zip(a, b)) if x != y], a, b)
        for i, (a, b) in enumerate(zip(first, second))
        if a != b
    ]
    return Agreement(len(one), n, same, kappa, evaluate(first, second).f1 if chunked else None, differ)
