"""Hidden Markov SVMs on dense problems, run until their gap closes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tagwise import _core

from .strategies import Problem


def encode(p: Problem) -> tuple[_core.Vocabulary, _core.Dataset]:
    vocabulary = _core.Vocabulary()
    X = [[{str(a): float(v) for a, v in enumerate(x) if v} for x in sentence] for sentence in p.X]
    data = _core.encode_attributes(vocabulary, X, X if p.shape.edge_attributes else None)
    return vocabulary, data.with_gold(np.array([y for path in p.y for y in path], dtype=np.uint16))


def run(solver: Any, tol: float, most: int = 3000) -> dict[str, Any]:
    """Run epochs until the absolute gap is at most `tol`."""
    state: dict[str, Any] = {}
    for _ in range(most):
        state = solver.epoch()
        if state["primal"] - state["dual"] <= tol:
            break
    return state
