"""Tag dictionaries: allowed labels of frequent words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.cached import cached
from tagwise.base.exceptions import ModelFileError
from tagwise.scores.constraints import NO_GROUP, Bools, Rules, Support, intersect


@dataclass(frozen=True)
class TagDictionary:
    """Labels of frequent words, which may take no others.

    Attributes:
        sets: Sets of labels [sets, L], of which the first has all labels.
        of: Set of each word.
    """

    sets: Bools
    of: Mapping[str, int] = field(repr=False)

    @staticmethod
    def build(
        words: Iterable[Sequence[str]],
        gold: NDArray[np.uint16],
        n_labels: int,
        count: int,
        share: float = 0.0,
    ) -> TagDictionary:
        """Build from training tokens: words that occur `count` times or more, labels with at least `share` of these."""
        seen: Counter[tuple[str, int]] = Counter(
            zip((word for sentence in words for word in sentence), gold.tolist())
        )
        total: Counter[str] = Counter()
        for (word, _), n in seen.items():
            total[word] += n
        labels: dict[str, list[int]] = {}
        for (word, label), n in seen.items():
            if total[word] >= count and n >= share * total[word]:
                labels.setdefault(word, []).append(label)
        return TagDictionary.of_labels(labels, n_labels)

    @staticmethod
    def of_labels(labels: Mapping[str, Iterable[int]], n_labels: int) -> TagDictionary:
        """Build from the label numbers of each word."""
        rows: dict[frozenset[int], int] = {}
        of = {word: rows.setdefault(frozenset(found), len(rows) + 1) for word, found in labels.items()}
        sets = np.zeros((len(rows) + 1, n_labels), dtype=np.bool_)
        sets[0] = True
        for found, row in rows.items():
            sets[row, sorted(found)] = True
        return TagDictionary(sets, of)

    def joined(self, before: TagDictionary) -> TagDictionary:
        """Return the union with a dictionary over the first of these labels: each word may take the labels of both."""
        labels: dict[str, set[int]] = {}
        for dictionary in (before, self):
            for word, row in dictionary.of.items():
                labels.setdefault(word, set()).update(np.flatnonzero(dictionary.sets[row]).tolist())
        return TagDictionary.of_labels(labels, self.sets.shape[1])

    def support(self, words: Iterable[Sequence[str]]) -> Support:
        """Return the sets and the set of each token."""
        return self.sets, self.words.of(words if isinstance(words, list) else list(words))

    @property
    @cached
    def words(self) -> _core.WordSets:
        """Words in the lookup table of the core."""
        return _core.WordSets([_bytes(word) for word in self.of], list(self.of.values()))

    def __reduce__(self) -> tuple[Any, ...]:
        return (TagDictionary, (self.sets, self.of))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for a model file."""
        texts = [_bytes(word) for word in self.of]
        return {
            "dictionary.text": np.frombuffer(b"".join(texts), dtype=np.uint8).copy(),
            "dictionary.end": np.cumsum([len(t) for t in texts], dtype=np.int64).astype(np.uint32),
            "dictionary.of": np.fromiter(self.of.values(), dtype=np.uint32),
            "dictionary.sets": self.sets.astype(np.uint8).ravel(),
        }

    @staticmethod
    def from_arrays(arrays: Mapping[str, NDArray[Any]], n_labels: int) -> TagDictionary:
        """Rebuild a dictionary from the arrays of a model file."""
        text, rows = arrays["dictionary.text"].tobytes(), arrays["dictionary.of"].tolist()
        sets, ends = arrays["dictionary.sets"], arrays["dictionary.end"].tolist()
        bounds = [0, *ends]
        if bounds != sorted(bounds) or bounds[-1] != len(text) or len(rows) != len(ends):
            raise ModelFileError("dictionary: expected words inside its text, and one set per word")
        if len(sets) == 0 or len(sets) % n_labels or sets.max() > 1:
            raise ModelFileError(f"dictionary.sets: expected rows of {n_labels} values 0 or 1")
        table = sets.reshape(-1, n_labels).astype(np.bool_)
        if not table[0].all() or not table.any(axis=1).all() or max(rows, default=0) >= len(table):
            raise ModelFileError(
                "dictionary: expected a non-empty set for every word, and all labels in the first set"
            )
        words = [text[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(bounds)]
        of = dict(zip(words, rows))
        if len(of) < len(words):
            raise ModelFileError("dictionary: a word occurs twice")
        return TagDictionary(table, of)


def _bytes(word: str) -> bytes:
    """Encode a word for files. Any string is valid, also one with lone surrogates."""
    return word.encode("utf-8", "surrogatepass")


def with_dictionary(
    dictionary: Support, other: Support | None, rules: Rules | None, offsets: NDArray[np.uint64]
) -> Support:
    """Return the intersection of the dictionary with other constraints.

    The dictionary does not apply to sentences that would have no path left.
    """
    if other is None and (rules is None or (rules.pairs.all() and rules.once is None)):
        return dictionary
    both = intersect(dictionary, other)
    if both is None:
        return dictionary
    n = dictionary[0].shape[1]
    pairs = np.ones((n, n), dtype=np.bool_) if rules is None else rules.pairs
    possible = _core.feasible(offsets, both[0], both[1], pairs)
    bounds = offsets.astype(np.int64)
    if rules is not None and rules.once is not None:
        for s in np.flatnonzero(possible).tolist():
            possible[s] = _once_leaves_a_path(both[0][both[1][bounds[s] : bounds[s + 1]]], rules)
    if possible.all():
        return both
    lengths = bounds[1:] - bounds[:-1]
    loose = dictionary[1].copy()
    loose[~np.repeat(possible, lengths)] = 0
    return intersect((dictionary[0], loose), other) or dictionary


def _once_leaves_a_path(sets: Bools, rules: Rules) -> bool:
    """Return whether some path inside these sets [T, L] follows the pairs and begins every group at most once.

    Of the paths that end in one label, only those with minimal sets of begun groups matter.
    """
    n, no_groups = len(rules.group), frozenset[int]()
    ends: dict[int, list[frozenset[int]]] = {n: [no_groups]}  # label -> groups begun (n is the start)
    for allowed in sets:
        after: dict[int, list[frozenset[int]]] = {}
        for y in np.flatnonzero(allowed).tolist():
            group = int(rules.group[y])
            found: set[frozenset[int]] = set()
            for before, group_sets in ends.items():
                if before < n and not rules.pairs[before, y]:
                    continue
                if group == NO_GROUP or not rules.begins[before, y]:
                    found.update(group_sets)
                else:
                    found.update(groups | {group} for groups in group_sets if group not in groups)
            kept = [groups for groups in found if not any(other < groups for other in found)]
            if kept:
                after[y] = kept
        if not after:
            return False
        ends = after
    return True
