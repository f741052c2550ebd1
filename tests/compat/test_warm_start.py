"""Starting point of L-BFGS: dual ascent for runs with default stopping criteria, zero otherwise."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise._core as _core
from tagwise.compat.pycrfsuite import Trainer
from tagwise.model.formats import crfsuite
from tagwise.optimizers.lbfgs import lbfgs, state_from_points


def corpus(n: int = 240) -> list[tuple[list[dict[str, Any]], list[str]]]:
    """Return sentences whose labels depend on an attribute with a value and on the previous label."""
    rng = random.Random(11)
    found = []
    for _ in range(n):
        before, x, y = 0, [], []
        for _ in range(rng.randint(1, 8)):
            label = rng.choice([before, rng.randrange(4)])
            signal = label if rng.random() < 0.8 else rng.randrange(4)
            x.append({f"a{signal}": rng.choice([1.0, 0.5, 2.0]), "w": str(rng.randrange(60))})
            y.append(f"L{label}")
            before = label
        found.append((x, y))
    return found


def run(path: Path, holdout: int = -1, n: int = 240, **params: object) -> tuple[list[Mapping[str, Any]], Any]:
    """Train, and return the iterations of the log and the model."""
    trainer = Trainer("lbfgs", params, verbose=False)
    for i, (x, y) in enumerate(corpus(n)):
        trainer.append(x, y, int(i >= 220))
    trainer.train(str(path), holdout=holdout)
    assert trainer.logparser is not None
    return trainer.logparser.iterations, crfsuite.read(path.read_bytes())


@pytest.mark.parametrize("c2", [1.0, 0.01])
def test_default_stopping_reaches_the_optimum(c2: float, tmp_path: Path) -> None:
    """Its loss is within 1e-5 of a run from zero with the same features, after fewer iterations."""
    whole, model = run(tmp_path / "whole", c2=c2)
    zero, other = run(tmp_path / "zero", c2=c2, max_iterations=100_000)
    assert whole[-1]["loss"] <= zero[-1]["loss"] * (1.0 + 1e-5)
    assert len(whole) < len(zero)
    assert [info["num"] for info in whole] == list(range(1, len(whole) + 1))
    assert all(info["error_norm"] > 0.0 and info["linesearch_trials"] >= 1 for info in whole)
    assert model.node.codes.tolist() == other.node.codes.tolist()
    assert np.abs(model.node.weights - other.node.weights).max() < 0.03


@pytest.mark.parametrize(
    "params",
    [{"max_iterations": 3}, {"epsilon": 0.1}, {"period": 2}, {"delta": 1e-3}, {"c1": 0.1}, {"holdout": 1}],
    ids=str,
)
def test_other_stopping_criteria_start_at_zero(params: dict[str, Any], tmp_path: Path) -> None:
    """The first loss is far above the last, since the result depends on the path from zero."""
    found, _ = run(tmp_path / "m", **params)
    assert found[0]["loss"] > 1.05 * found[-1]["loss"]


def test_large_and_small_problems_start_at_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L-BFGS starts at zero if the dual point does not fit into memory, and for few sentences."""

    def refused(*_: object) -> None:
        raise MemoryError("the dual point would take 1 TiB")

    monkeypatch.setattr(_core, "Dual", refused)
    large, _ = run(tmp_path / "large")
    assert large[0]["loss"] > 1.05 * large[-1]["loss"]
    few, _ = run(tmp_path / "few", n=150)
    assert few[0]["loss"] > 1.05 * few[-1]["loss"]


def test_lbfgs_starts_with_the_curvature_of_points() -> None:
    """On a parabola the pair of two points on a line is the exact curvature: one line search with one trial ends."""
    d = np.array([1.0, 4.0, 0.25])

    def parabola(w: Any, gradient: Any) -> float:
        gradient[:] = d * w
        return float(0.5 * (w @ gradient)) + 1.0

    points = [np.array([0.0, 3.0, 0.0]), np.array([0.0, 1.0, 0.0])]
    state = state_from_points(parabola, points)
    steps = lbfgs(parabola, points[-1], resume=state)
    first, second = next(steps), next(steps)
    assert first.value == 3.0
    assert second.value == pytest.approx(1.0, abs=1e-6)
    assert (first.evaluations, second.evaluations) == (2, 3)
