"""Objectives of small problems by enumeration of all paths, in double precision, and their optimum."""

from __future__ import annotations

from itertools import pairwise, product
from typing import NamedTuple

import numpy as np


class Paths(NamedTuple):
    """All paths of one sentence."""

    less: np.ndarray  # [P, K]: S(y) - S(gold)
    right: np.ndarray  # [P, T]: 1 if the path has the gold label
    weight: float = 1.0  # of the sentence


def paths_of(
    x: np.ndarray,
    gold: tuple[int, ...],
    labels: int,
    places: np.ndarray,
    weight: float = 1.0,
    forbidden: frozenset[tuple[int, int]] = frozenset(),
) -> Paths:
    """Return every path of a sentence with attributes x [T, A]. `places` are indices in (node, edge, start, end)."""
    all_paths = product(range(labels), repeat=len(gold))
    every = np.array([y for y in all_paths if forbidden.isdisjoint(pairwise(y))])
    hot = np.eye(labels)[every]  # [P, T, L]
    node = np.einsum("ta,ptl->pal", x, hot).reshape(len(every), -1)
    edge = np.einsum("pta,ptb->pab", hot[:, :-1], hot[:, 1:]).reshape(len(every), -1)
    counts = np.concatenate([node, edge, hot[:, 0], hot[:, -1]], axis=1)[:, places]
    mine = int(np.flatnonzero((every == np.array(gold)).all(axis=1))[0])
    return Paths(counts - counts[mine], (every == np.array(gold)).astype(float), weight)


def loss(sentences: list[Paths], name: str, w: np.ndarray) -> tuple[float, np.ndarray]:
    """Return value and gradient of one of the four losses."""
    value, gradient = 0.0, np.zeros_like(w)
    for less, right, s in sentences:
        scores = less @ w
        top = scores.max()
        e = np.exp(scores - top)
        p, cost = e / e.sum(), top + np.log(e.sum())
        expected = p @ less
        if name in ("log", "exp"):
            value += s * (cost if name == "log" else np.expm1(cost))
            gradient += s * expected * (1.0 if name == "log" else np.exp(cost))
            continue
        token = p @ right  # [T]: P(y_t = gold)
        given = (right * p[:, None] / token).T @ less  # [T, K]: E[S | y_t = gold]
        weight = np.ones_like(token) if name == "pointwise_log" else 1.0 / token
        value += s * (-np.log(token).sum() if name == "pointwise_log" else (1.0 / token).sum())
        gradient += s * weight @ (expected - given)
    return float(value), gradient


def hessian(sentences: list[Paths], name: str, w: np.ndarray) -> np.ndarray:
    """Return the second derivatives of the log loss (the covariance of S) or the exponential loss."""
    out = np.zeros((len(w), len(w)))
    for less, _, s in sentences:
        scores = less @ w
        top = scores.max()
        e = np.exp(scores - top)
        p, cost = e / e.sum(), top + np.log(e.sum())
        mean = p @ less
        second = (less.T * p) @ less
        out += s * (second - np.outer(mean, mean) if name == "log" else np.exp(cost) * second)
    return out


def newton(sentences: list[Paths], name: str, l2: float, size: int) -> tuple[float, np.ndarray]:
    """Minimise a convex loss + l2 ||w||^2 by damped Newton steps (Boyd and Vandenberghe 2004, algorithm 9.5)."""
    w = np.zeros(size)

    def at(v: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = loss(sentences, name, v)
        return value + l2 * float(v @ v), gradient + 2 * l2 * v

    value, gradient = at(w)
    for _ in range(200):
        curve = hessian(sentences, name, w) + 2 * l2 * np.eye(size)
        direction = -np.linalg.solve(curve, gradient)
        decrement = float(-gradient @ direction)
        if decrement <= 1e-13 * max(1.0, abs(value)):
            return value, w
        step = 1.0
        while True:
            there, there_gradient = at(w + step * direction)
            if there <= value - 0.1 * step * decrement + 1e-13 * abs(value):
                break
            step *= 0.5
        w, value, gradient = w + step * direction, there, there_gradient
    raise AssertionError("Newton's method does not end")
