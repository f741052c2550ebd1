"""Tests of the optimisers' vector arithmetic against NumPy, at lengths around the blocks that threads share."""

from __future__ import annotations

import numpy as np
import pytest

from tagwise import _core

BLOCK = 1 << 14  # of machine/simd/vector.rs
LENGTHS = (1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 5)


def direction(pairs: list[tuple[np.ndarray, np.ndarray]], g: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return -H g by the two-loop recursion (Nocedal 1980), in the variables w / scale."""
    q, alphas = g * scale, []
    pairs = [(s / scale, y * scale) for s, y in pairs]
    for s, y in reversed(pairs):
        alphas.append(s @ q / (s @ y))
        q = q - alphas[-1] * y
    if pairs:
        s, y = pairs[-1]
        q = q * (s @ y) / (y @ y)
    for (s, y), alpha in zip(pairs, reversed(alphas)):
        q = q + (alpha - y @ q / (s @ y)) * s
    return -q * scale


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("n", LENGTHS)
def test_vector_operations_match_numpy(n: int, n_jobs: int) -> None:
    """dot, add_scaled and add_ridge match NumPy for entries of every block."""
    a, b = np.random.default_rng(n).normal(size=(2, n))
    assert _core.dot(a, b, n_jobs) == pytest.approx(float(a @ b), abs=1e-9 * n)
    out = np.empty(n)
    _core.add_scaled(a, 0.25, b, out, n_jobs)
    np.testing.assert_allclose(out, a + 0.25 * b, rtol=1e-15, atol=1e-15)
    gradient = b.copy()
    assert _core.add_ridge(a, 0.5, gradient, n_jobs) == pytest.approx(0.5 * float(a @ a), rel=1e-12)
    np.testing.assert_allclose(gradient, b + a, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("n", LENGTHS)
def test_directions_match_the_two_loop_recursion(n: int, scaled: bool) -> None:
    """Direction, slope and the dropped oldest pair are right for curvature pairs of a convex quadratic."""
    rng = np.random.default_rng(n)
    curvature, scale = rng.uniform(0.5, 2.0, n), rng.uniform(0.5, 2.0, n) if scaled else np.ones(n)
    scale = scale.astype(np.float32).astype(float)
    memory = _core.CurvaturePairs(3, 2, scale.astype(np.float32) if scaled else None)
    pairs = []
    for step in range(5):
        w0, w1 = rng.normal(size=(2, n))
        assert memory.push(w0, w1, curvature * w0, curvature * w1)
        pairs.append((w1 - w0, curvature * (w1 - w0)))
        assert len(memory) == min(step + 1, 3)
        g, out = rng.normal(size=n), np.empty(n)
        slope = memory.direction(g, out)
        want = direction(pairs[-3:], g, scale)
        np.testing.assert_allclose(out, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())
        assert slope == pytest.approx(float(g @ out), rel=1e-6, abs=1e-9)
    assert not memory.push(w0, w1, curvature * w1, curvature * w0)  # a curvature that is not positive
    memory.clear()
    assert len(memory) == 0
