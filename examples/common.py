"""Functions shared by the examples: sentences from pieces, typing errors, invented names, and a baseline."""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import tagwise as tw

#: A piece of a text and its label, or None for text outside of all spans.
Piece = tuple[str, str | None]
CUT = tw.Tokenizer()


def sentence(pieces: Iterable[Piece]) -> tw.Sentence:
    """Return pieces as tokens with IOB2 labels. The tokens of a piece are one span."""
    tokens, labels = [], []
    for text, label in pieces:
        for i, token in enumerate(CUT(text).tokens):
            tokens.append(token)
            labels.append("O" if label is None else f"{'I' if i else 'B'}-{label}")
    return tw.Sentence({"word": tokens, "label": labels}, "label")


def misspelled(rng: random.Random, text: str, chance: float) -> str:
    """Return the text, with some probability with a typing error: two letters swapped, one dropped, one doubled."""
    if rng.random() >= chance or len(text) < 5:
        return text
    i = rng.randrange(1, len(text) - 2)
    if not (text[i].isalpha() and text[i + 1].isalpha()):
        return text
    return rng.choice(
        (
            text[:i] + text[i + 1] + text[i] + text[i + 2 :],
            text[:i] + text[i + 1 :],
            text[:i] + text[i] + text[i:],
        )
    )


def invented(rng: random.Random, starts: Sequence[str], middles: Sequence[str], ends: Sequence[str]) -> str:
    """Return an invented name: a start, an optional middle, an end."""
    return rng.choice(starts) + (rng.choice(middles) if rng.random() < 0.5 else "") + rng.choice(ends)


def two_lists(make: Callable[[random.Random], str], n: int, seed: int) -> tuple[list[str], list[str]]:
    """Return disjoint lists of names for training and for testing."""
    rng, known = random.Random(seed), dict[str, None]()
    while len(known) < 2 * n:
        known[make(rng)] = None
    names = list(known)
    return names[:n], names[n:]


def most_frequent(train: tw.Corpus, test: tw.Corpus) -> list[list[str]]:
    """Return the predictions of the baseline: the most frequent training label of each word, or of all words."""
    seen: dict[str, Counter[str]] = {}
    every: Counter[str] = Counter()
    for words, labels in zip(train.tokens, train.labels):
        for word, label in zip(words, labels):
            seen.setdefault(word, Counter())[label] += 1
            every[label] += 1
    usual = every.most_common(1)[0][0]
    return [[seen[w].most_common(1)[0][0] if w in seen else usual for w in words] for words in test.tokens]


def run(
    title: str,
    tagger: tw.Tagger,
    parts: Callable[[int, int], tuple[tw.Corpus, tw.Corpus]],
    sizes: tuple[int, int],
) -> tuple[float, float]:
    """Parse the options, train, and print scores and a correct sentence of several labels.

    Return F1 (or accuracy) of the tagger and of the baseline.
    """
    options = argparse.ArgumentParser(description=title)
    options.add_argument("--train", type=int, default=sizes[0], help="training sentences")
    options.add_argument("--test", type=int, default=sizes[1], help="test sentences")
    given = options.parse_args()
    return trained(title, tagger, *parts(given.train, given.test))


def trained(title: str, tagger: tw.Tagger, train: tw.Corpus, test: tw.Corpus) -> tuple[float, float]:
    """Train on existing parts, and print and return the results as in `run`."""
    tagger.fit(train)
    found = tagger.predict(test)
    report, base = tw.evaluate(test, found), tw.evaluate(test, most_frequent(train, test))
    measure = "F1" if report.chunked else "accuracy"
    print(f"{title}: {len(train):,} training sentences, {len(test):,} held out")
    print(report)
    print(
        f"{measure} {100 * report.score:.1f}, baseline (most frequent label per word) {100 * base.score:.1f}\n"
    )
    shown = next((s for s, gold in enumerate(test.labels) if found[s] == gold and len(set(gold)) > 2), 0)
    for word, label in zip(test[shown].tokens, found[shown]):
        print(f"  {word:<20} {label}")
    return report.score, base.score
