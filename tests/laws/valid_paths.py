"""Rules on label sequences as plain functions, and all quantities of a model over the valid paths.

This module does not use the package's constraints: a path is a tuple of label names, a rule is a function of
it.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from tagwise.base.cached import cached
from tagwise.decoding.lookback import DocumentState
from tagwise.decoding.plan import Query
from tagwise.model.model import Model

Path = tuple[str, ...]
Rule = Callable[[Path], bool]
Sentence = Sequence[str]

# -- rules ---------------------------------------------------------------------------------------------------


def anything(path: Path) -> bool:
    """Accept every path."""
    return True


def both(*rules: Rule) -> Rule:
    """Return the rule that accepts paths accepted by all rules."""
    return lambda path: all(rule(path) for rule in rules)


#: Whole sequences of each scheme, every label followed by a blank. X-type means any type, and a chunk has one type.
GRAMMARS = {
    "IOB2": r"(?:O |B-(\w+) (?:I-\1 )*)*",
    "IOE2": r"(?:O |(?:I-(\w+) (?=[IE]-\1 ))*E-\w+ )*",
    "IOBES": r"(?:O |S-\w+ |B-(\w+) (?:I-\1 )*E-\1 )*",
    "BILOU": r"(?:O |U-\w+ |B-(\w+) (?:I-\1 )*L-\1 )*",
}


def of_scheme(scheme: str) -> Rule:
    """Return the rule for well-formed sequences of a scheme.

    IOB1 and IOE1 are defined by their tags: B directly follows a chunk of its type, E directly precedes one.
    """

    def is_well_formed(path: Path) -> bool:
        if not {label[0] for label in path} <= set(scheme.rstrip("12")):
            return False
        if scheme == "IOB1":
            return all(a[1:] == b[1:] for a, b in zip(("", *path), path) if b[0] == "B")
        if scheme == "IOE1":
            return all(a[1:] == b[1:] for a, b in zip(path, (*path[1:], "")) if a[0] == "E")
        return re.fullmatch(GRAMMARS[scheme], "".join(f"{label} " for label in path)) is not None

    return is_well_formed


def never(before: str | None, after: str | None) -> Rule:
    """Return the rule that `after` does not follow `before`. None is the edge of the sentence."""
    return lambda path: (before, after) not in list(zip((None, *path), (*path, None)))


def none(*pairs: tuple[str | None, str | None]) -> Rule:
    """Return the rule that none of these pairs occurs."""
    return both(*(never(*pair) for pair in pairs))


def followed(label: str, *by: str | None) -> Rule:
    """Return the rule that `label` is followed by one of these. None is the end."""
    return lambda path: all(b in by for a, b in zip(path, (*path[1:], None)) if a == label)


@functools.cache
def pieces(path: Path) -> list[tuple[str, int, int]]:
    """Return chunks of B- and I- labels. A B begins one, and so does an I without its type before it."""
    found: list[tuple[str, int, int]] = []
    for t, label in enumerate(path):
        kind = label[2:]
        if label == "O":
            continue
        if label[0] == "I" and found and found[-1][0] == kind and found[-1][2] == t:
            found[-1] = (kind, found[-1][1], t + 1)
        else:
            found.append((kind, t, t + 1))
    return found


def single(*kinds: str) -> Rule:
    """Return the rule that each of these types has at most one chunk."""
    return lambda path: all(sum(piece[0] == kind for piece in pieces(path)) <= 1 for kind in kinds)


def within(sets: Sequence[Collection[str] | None]) -> Rule:
    """Return the rule that every token has one of its labels. None allows any."""
    return lambda path: all(names is None or y in names for y, names in zip(path, sets))


def counted(
    X: Iterable[Sentence], y: Iterable[Sequence[str]], count: int, share: float = 0.0
) -> dict[str, set[str]]:
    """Return the labels of each word seen at least `count` times, without labels below `share` of its tokens."""
    pairs = Counter((w, label) for words, labels in zip(X, y) for w, label in zip(words, labels))
    words = Counter(w for (w, _), n in pairs.items() for _ in range(n))
    return {
        w: {label for (v, label), n in pairs.items() if v == w and n >= share * words[w]}
        for w in words
        if words[w] >= count
    }


# -- quantities ----------------------------------------------------------------------------------------------


def every(labels: Sequence[str], length: int) -> list[Path]:
    """Return all label sequences."""
    return [tuple(path) for path in product(labels, repeat=length)]


def path_scores(
    model: Model, words: Sentence, document_state: DocumentState | None = None
) -> dict[Path, float]:
    """Return the scores of all paths, from the full list of the model without constraints and dictionary."""
    free, n = replace(model, dictionary=None), len(model.labels) ** len(words)
    (found,) = free.kbest([list(words)], n, Query(constraints=False, document_state=document_state))
    assert len(found) == n
    return {tuple(path): score for path, score in found}


class Held:
    """The valid paths with their scores, and a model's quantities over them."""

    def __init__(self, path_scores: dict[Path, float], rule: Rule) -> None:
        self.of = {path: h for path, h in path_scores.items() if rule(path)}
        h = np.array(list(self.of.values()))
        self.log_z = float(np.log(np.exp(h - h.max()).sum()) + h.max()) if len(h) else -np.inf
        self.p = {path: float(np.exp(x - self.log_z)) for path, x in self.of.items()}

    def chance(self, rule: Rule) -> float:
        """Return the probability of the paths that the rule accepts."""
        return sum(p for path, p in self.p.items() if rule(path))

    def marginals(self, labels: Sequence[str], length: int) -> np.ndarray:
        """Return P(label at token), [T, L]."""
        table = np.zeros((length, len(labels)))
        for path, p in self.p.items():
            for t, y in enumerate(path):
                table[t, labels.index(y)] += p
        return table

    @property
    @cached
    def chunks(self) -> Counter[tuple[str, int, int]]:
        """Return the probability of each chunk."""
        found: Counter[tuple[str, int, int]] = Counter()
        for path, p in self.p.items():
            for piece in pieces(path):
                found[piece] += p  # type: ignore[assignment]
        return found

    def check_list(self, found: Sequence[tuple[Sequence[str], float]], k: int, chance: bool = False) -> None:
        """A list has the k best of these paths. Ties may be in any order, scores must agree."""
        values = self.p if chance else self.of
        best = sorted(values.values(), reverse=True)[:k]
        paths = [tuple(path) for path, _ in found]
        assert len(set(paths)) == len(paths) == len(best)
        assert set(paths) <= set(values)
        want = [values[path] for path in paths]
        np.testing.assert_allclose([score for _, score in found], want, rtol=1e-4, atol=2e-5)
        np.testing.assert_allclose(want, best, rtol=1e-4, atol=2e-5)

    def check_best(self, path: Sequence[str]) -> None:
        """The path is a best one of these paths."""
        assert tuple(path) in self.of
        assert self.of[tuple(path)] >= max(self.of.values()) - 2e-5
