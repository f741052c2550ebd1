"""Chains with labels that may form only one contiguous span: every quantity by enumeration of the valid paths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import enumeration
from .chain import Path, Scores, counts, edges, like, score

#: The group of a label that may occur any number of times.
NONE = np.iinfo(np.uint32).max


def begun(path: Sequence[int], group: np.ndarray, begins: np.ndarray) -> list[int]:
    """Return the groups of the spans that a path begins. Row L of `begins` is the start of the sentence."""
    steps = zip((len(group), *path), path)
    return [int(group[y]) for before, y in steps if group[y] != NONE and begins[before, y]]


def is_valid(path: Sequence[int], group: np.ndarray, begins: np.ndarray) -> bool:
    """Return whether each group begins at most one span."""
    found = begun(path, group, begins)
    return len(set(found)) == len(found)


def kbest(s: Scores, k: int, group: np.ndarray, begins: np.ndarray) -> list[tuple[float, Path]]:
    """Return the k best valid paths by score, equal scores by the reversed path."""
    ranked = sorted((-score(s, y), y[::-1]) for y in enumeration.paths(s) if is_valid(y, group, begins))
    return [(-h, y[::-1]) for h, y in ranked[:k]]


def distribution(s: Scores, group: np.ndarray, begins: np.ndarray) -> tuple[float, dict[Path, float]]:
    """Return log Z over the valid paths, and P(y|x) of each of them."""
    paths = [y for y in enumeration.paths(s) if is_valid(y, group, begins)]
    h = np.array([score(s, y) for y in paths])
    log_z = float(np.log(np.exp(h - h.max()).sum()) + h.max())
    return log_z, {y: float(np.exp(x - log_z)) for y, x in zip(paths, h)}


def log_loss(s: Scores, gold: Sequence[int], group: np.ndarray, begins: np.ndarray) -> tuple[float, Scores]:
    """Return log Z - H(x,y) with Z over the valid paths, and its gradient in the scores."""
    full = s._replace(edge=edges(s))
    log_z, p = distribution(s, group, begins)
    total = Scores(*(-a for a in counts(full, gold)))
    for y, q in p.items():
        total = Scores(*(a + q * b for a, b in zip(total, counts(full, y))))
    return log_z - score(s, gold), like(s, total)
