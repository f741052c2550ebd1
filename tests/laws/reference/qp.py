"""Small quadratic programs: max b.tau - 1/2 tau' G tau over boxes or over groups with a bounded sum.

G is a Gram matrix, so w = sum tau_j d_j is unique even if tau is not.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from .chain import Array


def box(G: Array, b: Array, upper: float = np.inf, tol: float = 1e-12, sweeps: int = 100_000) -> Array:
    """Solve for 0 <= tau_j <= upper, by coordinate ascent (Hildreth 1957, Censor & Zenios 1997, section 6.4)."""
    tau = np.zeros(len(b))
    for _ in range(sweeps):
        moved = 0.0
        for j in np.flatnonzero(np.diag(G) > 0):
            new = np.clip(tau[j] + (b[j] - G[j] @ tau) / G[j, j], 0.0, upper)
            moved, tau[j] = max(moved, abs(new - tau[j])), new
        if moved <= tol:
            break
    return tau


def groups(G: Array, b: Array, group: Array, C: float, tol: float = 1e-12, steps: int = 1_000_000) -> Array:
    """Solve for tau >= 0 with sums over groups <= C, moving mass between the most violating pair of a group.

    The unused part of a group's C is a variable of its own, with zero gradient and zero curvature.
    """
    tau, used = np.zeros(len(b)), dict.fromkeys(group.tolist(), 0.0)
    for _ in range(steps):
        g = b - G @ tau  # gradient
        best = (tol, -1, -1)  # gain of moving mass from `source` to `target`, where -1 is the unused part
        for name, total in used.items():
            members = np.flatnonzero(group == name).tolist()
            top = max([*members, -1], key=lambda j: g[j] if j >= 0 else 0.0)
            givers = [j for j in members if tau[j] > 0] + ([-1] if total < C else [])
            low = min(givers, key=lambda j: g[j] if j >= 0 else 0.0)
            gain = (g[top] if top >= 0 else 0.0) - (g[low] if low >= 0 else 0.0)
            best = max(best, (gain, top, low))
        gain, top, low = best
        if top == low:
            break
        name = int(group[max(top, low)])
        curve = sum(G[i, i] for i in (top, low) if i >= 0) - (2 * G[top, low] if min(top, low) >= 0 else 0.0)
        available = tau[low] if low >= 0 else C - used[name]
        step = min(gain / curve, available) if curve > 0 else available
        for j, sign in ((top, 1.0), (low, -1.0)):
            if j >= 0:
                tau[j] = 0.0 if sign < 0 and step == available else tau[j] + sign * step
                used[name] += sign * step
    return tau


def vertices(G: Array, b: Array, C: float = np.inf) -> Array:
    """Solve for tau >= 0, sum tau <= C with few coordinates: the best stationary point of all faces.

    An optimum whose positive coordinates have independent rows exists (Caratheodory), and is the only stationary
    point of its face. Every candidate is feasible, so a badly conditioned face cannot win by its rounding errors.
    """
    k, best, most = len(b), np.zeros(len(b)), 0.0
    for size in range(1, k + 1):
        for face in map(list, combinations(range(k), size)):
            free = G[np.ix_(face, face)]
            full = np.block([[free, np.ones((size, 1))], [np.ones((1, size)), 0.0]])  # sum tau = C
            systems = [(free, b[face]), *([(full, np.append(b[face], C))] if np.isfinite(C) else [])]
            for matrix, right in systems:
                if np.linalg.matrix_rank(matrix, hermitian=True) < len(matrix):
                    continue
                tau = np.zeros(k)
                tau[face] = np.linalg.solve(matrix, right)[:size]
                value = b @ tau - tau @ G @ tau / 2
                if tau.min() >= 0 and tau.sum() <= C * (1 + 1e-12) and value > most:
                    best, most = tau, value
    return best
