"""AdaBoost.MR for label sequences (Altun, Hofmann & Johnson 2003): one weight per round.

F2 = N = sum_i w_i (e^{l_i} - 1), D(i) = w_i (e^{l_i} - 1) / N, u_ik(y) = S_k(x_i,y) - S_k(x_i,y_i).
Adding `step` to weight k multiplies N by
    Z_k(step) = sum_i D(i) mean of e^{step u_ik(y)} over wrong y (weighted by e^{H(y)}),
which convexity bounds through the range and the mean of u_ik.

``whole``: all y in place of the wrong ones, N = sum_i w_i e^{l_i}. The gold sequence has u = 0 and a constant share.

``pointwise``: N = sum_i w_i sum_t (1 / p_t(c_t) - 1), F4 less its least value. With Q_t = P given y_t = c_t,
    1 / p_t after a step = E_P[e^{step S}] / (p_t E_Qt[e^{step S}]) <= E_P[e^{step (S - E_Qt[S])}] / p_t  (Jensen),
so the same bounds hold with u = S - E_Qt[S], for which only |u| <= max S - min S is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .chain import Array, Path, Scores, edges, expectations, score
from .losses import minus_log_p, pointwise_exp_loss
from .model import Shape, features, pull_back, score_sentence, split


class Round(NamedTuple):
    """Quantities of all features of all sentences from one forward-backward pass."""

    loss: float  # N
    D: Array  # [n]
    m: Array  # [n, size]: D(i) times the mean of u_ik over wrong sequences
    low: Array  # [n, size]: u_ik^min
    high: Array  # [n, size]: u_ik^max


def ranges(X: Array, y: Path, shape: Shape) -> tuple[Array, Array]:
    """Return u_ik^min and u_ik^max of one sentence.

    (a, sigma): the negative and positive values of a summed, less its value on gold sigma.
    (y', y): S in [0, T-1] if y' = y, else [0, ceil((T-1)/2)]. Start and end: [0, 1].
    """
    T, L = len(y), shape.labels
    low, high = np.zeros(shape.size), np.zeros(shape.size)
    values = split(low, shape), split(high, shape)
    for part, side in zip(values, (np.minimum(X, 0), np.maximum(X, 0))):
        part[0][...] = side.sum(axis=0)[:, None]
    _, transition, start, end, _ = values[1]
    transition[...] = np.where(np.eye(L, dtype=bool), T - 1, T // 2)  # ceil((T-1)/2) = T // 2
    start[...] = end[...] = 1
    gold = features(X, y, shape)
    return low - gold, high - gold


def quantities(
    w: Array,
    X: Sequence[Array],
    y: Sequence[Path],
    shape: Shape,
    weight: Array,
    whole: bool = False,
    pointwise: bool = False,
) -> Round:
    """m_ik = w_i e^{l_i} (E[S_k] - S_k(y_i)) / N, without a division by 1 - P.

    For the pointwise loss, m is its derivative over N.
    """
    chains = [score_sentence(w, x, shape) for x in X]
    if pointwise:
        return _pointwise(chains, X, y, shape, weight, whole)
    e = weight * np.exp([minus_log_p(s, g) for s, g in zip(chains, y)])
    D = e if whole else e - weight
    N = float(D.sum())
    expected = [pull_back(expectations(s), x, shape) for s, x in zip(chains, X)]
    m = [a * (E - features(x, g, shape)) / N for a, E, x, g in zip(e, expected, X, y)]
    low, high = zip(*(ranges(x, g, shape) for x, g in zip(X, y)))
    return Round(N, D / N, np.array(m), np.array(low), np.array(high))


def _pointwise(
    chains: Sequence[Scores], X: Sequence[Array], y: Sequence[Path], shape: Shape, weight: Array, whole: bool
) -> Round:
    found = [pointwise_exp_loss(s, g, float(a)) for s, g, a in zip(chains, y, weight)]
    D = np.array([value - (0.0 if whole else a * len(g)) for (value, _), g, a in zip(found, y, weight)])
    N = float(D.sum())
    m = np.array([pull_back(gradient, x, shape) / N for (_, gradient), x in zip(found, X)])
    wide = np.array([high - low for low, high in (ranges(x, g, shape) for x, g in zip(X, y))])
    return Round(N, D / N, m, -wide, wide)


def loose(q: Round, k: int, eps: float = 0.0, cap: float = np.inf) -> tuple[float, float]:
    """Return (step, bound) with one range for all sentences, in closed form.

    r = (u^max - sum_i m_i) / (u^max - u^min)
    step = log(-r u^min / ((1-r) u^max)) / (u^max - u^min)
    bound = r e^{step u^min} + (1-r) e^{step u^max}

    ``eps`` is added above and below the ratio (Schapire & Singer 1999, section 4.2) and the step is cut at
    ``cap``. Without them it is infinite if u^max = 0.
    """
    low, high = float(q.low[:, k].min()), float(q.high[:, k].max())
    if high - low <= 0:
        return 0.0, 1.0
    r = float(np.clip((high - q.m[:, k].sum()) / (high - low), 0.0, 1.0))  # rounding may leave the range
    with np.errstate(divide="ignore"):
        step = float(np.log(-r * low + eps) - np.log((1 - r) * high + eps)) / (high - low)
    step = float(np.clip(step, -cap, cap))
    return step, float(r * np.exp(step * low) + (1 - r) * np.exp(step * high))


def tight_bound(q: Round, k: int, step: float) -> tuple[float, float]:
    """Return sum_i D(i) (r_i e^{step u_i^min} + (1-r_i) e^{step u_i^max}) and its derivative in step."""
    value = slope = 0.0
    for D, m, low, high in zip(q.D, q.m[:, k], q.low[:, k], q.high[:, k]):
        if high - low <= 0 or D <= 0:
            value += D  # the feature cannot fire here
            continue
        a, b = (D * high - m) / (high - low), (m - D * low) / (high - low)  # D r and D (1-r)
        value += a * np.exp(step * low) + b * np.exp(step * high)
        slope += a * low * np.exp(step * low) + b * high * np.exp(step * high)
    return float(value), float(slope)


def tight(q: Round, k: int, cap: float = 10.0) -> tuple[float, float]:
    """Return (step, bound) minimising the tight bound, by bisection on its increasing derivative in [-cap, cap]."""
    left, right = -cap, cap
    for _ in range(64):  # to the last bit
        middle = (left + right) / 2
        left, right = (left, middle) if tight_bound(q, k, middle)[1] > 0 else (middle, right)
    step = (left + right) / 2
    return step, tight_bound(q, k, step)[0]


def exact(
    w: Array, X: Sequence[Array], y: Sequence[Path], shape: Shape, weight: Array, k: int, step: float
) -> float:
    """Return Z_k(step), by a dynamic program whose cells carry how often feature k has fired so far."""
    total = before = 0.0
    unit = np.zeros(shape.size)
    unit[k] = 1.0
    for x, g, a in zip(X, y, weight):
        s, fires = score_sentence(w, x, shape), score_sentence(unit, x, shape)
        edge, edge_fires = edges(s), edges(fires)
        cells: list[dict[float, float]] = [
            {float(fires.start[b] + fires.node[0, b]): float(np.exp(s.start[b] + s.node[0, b]))}
            for b in range(shape.labels)
        ]
        for t in range(1, len(g)):
            new: list[dict[float, float]] = []
            for b in range(shape.labels):
                cell: dict[float, float] = {}
                for c in range(shape.labels):
                    for n, mass in cells[c].items():
                        key = n + float(edge_fires[t, c, b] + fires.node[t, b])
                        cell[key] = cell.get(key, 0.0) + mass * float(np.exp(edge[t, c, b] + s.node[t, b]))
                new.append(cell)
            cells = new
        gold_fires, gold_score = score(fires, g), score(s, g)
        for b, cell in enumerate(cells):
            for n, mass in cell.items():
                p = a * mass * float(np.exp(s.end[b] - gold_score))
                before += p
                total += p * float(np.exp(step * (n + fires.end[b] - gold_fires)))
    gold = float(np.sum(weight))  # the gold paths: u = 0 and e^{H - H(gold)} = 1
    return (total - gold) / (before - gold)


def boost(
    X: Sequence[Array],
    y: Sequence[Path],
    shape: Shape,
    rounds: int,
    bound: str = "loose",
    weight: Array | None = None,
    mask: Array | None = None,
    eps: float = 0.0,
    cap: float = 10.0,
    whole: bool = False,
    pointwise: bool = False,
) -> tuple[Array, list[tuple[int, float, float]]]:
    """Take the feature with the smallest bound in each round. Return weights and (feature, step, bound)s."""
    w, chosen = np.zeros(shape.size), []
    weight = np.ones(len(X)) if weight is None else weight
    candidates = range(shape.size) if mask is None else np.flatnonzero(mask).tolist()
    for _ in range(rounds):
        q = quantities(w, X, y, shape, weight, whole, pointwise)
        found = {k: loose(q, k, eps, cap) if bound == "loose" else tight(q, k, cap) for k in candidates}
        k = min(found, key=lambda j: (found[j][1], j))
        w[k] += found[k][0]
        chosen.append((int(k), *found[k]))
    return w, chosen
