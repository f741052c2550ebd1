"""Tests that probabilities are valid for any size of values and weights, or an error is raised."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core

LABELS = 4


def log_sum(x: np.ndarray) -> Any:
    top = x.max()
    return top + np.log(np.exp(x - top).sum())


def dataset(values: np.ndarray) -> _core.Dataset:
    """Return one sentence in which token t has the attribute t with a value."""
    vocabulary = _core.Vocabulary()
    data = _core.encode_attributes(vocabulary, [[[(f"a{t}", float(v))] for t, v in enumerate(values)]])
    return data.with_gold(np.arange(len(values), dtype=np.uint16) % LABELS)


def scorer(data: _core.Dataset, n: int, weights: Any, local: bool) -> _core.Scorer:
    layout = _core.Layout.build(data, n, LABELS, all_pairs=True, start_end=False)
    flat = np.asarray(weights(len(layout)), np.float32)
    return _core.Scorer(layout, flat, local=local)


@pytest.mark.parametrize("code_path", ["", "log", "slow"])
@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("size", [1.0, 1e4, 1e8, 1e12, 1e20, 1e30])
def test_marginals_of_large_values_sum_to_one(code_path: str, local: bool, size: float) -> None:
    """Marginals sum to one for values of 1 to 1e30, in CRFs and MEMMs."""
    rng = np.random.default_rng(1)
    values = size * rng.uniform(0.5, 1.5, 9) * rng.choice([0, 1, -1], 9)
    values[3] = 1.0
    data = dataset(values)
    model = scorer(data, 9, lambda n: rng.normal(size=n), local)
    before = _core.force(code_path)
    try:
        p, _ = model.marginals(data)
    finally:
        _core.force(before)
    assert np.allclose(p.sum(axis=1), 1, atol=1e-5)
    assert np.all((p >= 0) & (p <= 1 + 1e-5))


@pytest.mark.parametrize("size", [1.0, 1e6, 1e12, 1e30])
def test_large_values_do_not_affect_neighbouring_tokens(size: float) -> None:
    """A token with a large value leaves the probabilities of the others unchanged.

    If its value decides its label at any size, they are those of two chains given that label, each between the
    large token and an end.
    """
    rng = np.random.default_rng(2)
    values = np.array([1.0, 1.0, size, 1.0, 1.0])
    data = dataset(values)
    layout = _core.Layout.build(data, 5, LABELS, all_pairs=True, start_end=False)
    w = rng.normal(size=len(layout)).astype(np.float32)
    node, edge = w[: 5 * LABELS].reshape(5, LABELS), w[layout.n_node :].reshape(LABELS, LABELS)
    node[2] = [0, 50, 0, 0]  # decided also with a value of 1.0
    before = _core.force("log")
    try:
        p, _ = _core.Scorer(layout, w).marginals(data)
    finally:
        _core.force(before)
    node, edge = node.astype(float), edge.astype(float)
    want = np.zeros((5, LABELS))
    want[2, 1] = 1
    left = node[0][:, None] + edge + node[1][None, :] + edge[:, 1][None, :]
    right = edge[1][:, None] + node[3][:, None] + edge + node[4][None, :]
    for at, table in ((0, left), (3, right)):
        joint = np.exp(table - log_sum(table))
        want[at], want[at + 1] = joint.sum(axis=1), joint.sum(axis=0)
    assert np.allclose(p, want, atol=1e-6)


@pytest.mark.parametrize("size", [1e10, 1e20, 1e30])
@pytest.mark.parametrize("local", [False, True])
def test_large_transitions_are_exact_or_an_error(size: float, local: bool) -> None:
    """A chain is right. A local model raises an error."""
    rng = np.random.default_rng(3)
    data = dataset(np.ones(6))

    def weights(n: int) -> np.ndarray:
        w = rng.normal(size=n)
        w[6 * LABELS :] *= size
        return w

    model = scorer(data, 6, weights, local)
    if local:
        with pytest.raises(ValueError, match="scale its values down"):
            model.marginals(data)
        return
    p, _ = model.marginals(data)
    assert np.allclose(p.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("kind", [tw.MEMM, tw.CRF, tw.HMM])
def test_estimators_have_valid_probabilities(kind: Any) -> None:
    """Public estimators give valid probabilities for large values."""
    X = [[{"v": 1e12, "a": 1}, {"v": -1e12, "b": 1}], [{"b": 1}, {"v": 3e11, "a": 1}]] * 3
    if kind is tw.HMM:
        X = [["a", "b"], ["b", "a"]] * 3
    tagger = kind(**({} if kind is tw.HMM else {"max_iter": 3})).fit(X, [["A", "B"], ["B", "A"]] * 3)
    for p in tagger.predict_marginals(X):
        assert np.allclose(p.sum(axis=1), 1, atol=1e-5)
