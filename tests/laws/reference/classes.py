"""Class bigram model, optimised by exchange, and the tree of its classes.

    F = sum_{c,d} N(c, d) log N(c, d) - 2 sum_c N(c) log N(c)

Brown et al. 1992 (objective and tree); Kneser and Ney 1993, Martin, Liermann and Ney 1998 (exchange).
"""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np


def shape(word: str) -> str:
    """Return the shape of a word with runs written once: a for small letters, A for capitals, 0 for digits."""
    classes = "".join("A" if c.isupper() else "a" if c.isalpha() else "0" if c.isdigit() else c for c in word)
    return "".join(c for c, _ in itertools.groupby(classes))


def bigrams(sentences: list[list[str]], min_count: int) -> tuple[list[tuple[bool, str]], np.ndarray]:
    """Return the words by falling frequency, and counts [V + 2, V + 2] with the boundary and the rest last.

    A word that occurs less than `min_count` times counts as its shape, (True, shape).
    """
    counts = Counter(word for sentence in sentences for word in sentence)
    members = {word: (False, word) if n >= min_count else (True, shape(word)) for word, n in counts.items()}
    totals = Counter(members[word] for sentence in sentences for word in sentence)
    words = sorted((m for m, n in totals.items() if n >= min_count), key=lambda m: (-totals[m], m))
    number = {member: i for i, member in enumerate(words)}
    boundary, rest = len(words), len(words) + 1
    table = np.zeros((len(words) + 2, len(words) + 2))
    for sentence in sentences:
        ids = [number.get(members[word], rest) for word in sentence]
        for pair in itertools.pairwise([boundary, *ids, boundary] if ids else []):
            table[pair] += 1
    return words, table


def h(n: np.ndarray) -> np.ndarray:
    """Return n log n, which is 0 at 0."""
    return n * np.log(np.maximum(n, 1))


def objective(table: np.ndarray, classes: np.ndarray) -> float:
    """Return F for the class of each word [V]. The boundary and the rest are classes of their own."""
    k = int(classes.max()) + 1
    member = np.eye(k + 2)[np.append(classes, [k, k + 1])]
    cells = member.T @ table @ member
    return float(h(cells).sum() - 2 * h(cells.sum(axis=1)).sum())


def exchange(table: np.ndarray, k: int, sweeps: int) -> np.ndarray:
    """Return the classes after visiting every word `sweeps` times, each put where F is largest."""
    classes = np.arange(len(table) - 2) % k
    for _, word in itertools.product(range(sweeps), range(len(classes))):
        found = []
        for c in range(k):
            there = classes.copy()
            there[word] = c
            found.append(objective(table, there))
        if max(found) > found[classes[word]] + 1e-6:
            classes[word] = int(np.argmax(found))
    return classes


def tree(table: np.ndarray, classes: np.ndarray) -> list[float]:
    """Return the change of F by each merger, where the merger that costs least is made first."""
    found, classes = [], classes.copy()
    while classes.max() > 0:
        best = (-np.inf, classes)
        for c, d in itertools.combinations(range(int(classes.max()) + 1), 2):
            merged = np.where(classes == d, c, classes - (classes > d))
            best = max(best, (objective(table, merged), merged), key=lambda one: one[0])
        found.append(best[0] - objective(table, classes))
        classes = best[1]
    return found
