"""Intervals by the bootstrap and corrected p-values, compared with their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwise.evaluation.significance import adjusted, intervals

from .reference.bootstrap import SCORES, bootstrap, holm

Counts = list[list[int]]


def drawn_counts(seed: int, n: int, right: float = 0.8) -> Counts:
    """Return random counts of sentences."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        tokens = int(rng.integers(1, 30))
        gold, predicted = int(rng.integers(0, 4)), int(rng.integers(0, 4))
        correct = int(rng.binomial(min(gold, predicted), right))
        out.append([tokens, int(rng.binomial(tokens, right)), gold, predicted, correct])
    return out


@pytest.mark.parametrize("runs", [1, 3])
def test_intervals_equal_the_reference(runs: int) -> None:
    """Multinomial draws of kinds of sentences have the distribution of sentences drawn one by one."""
    counts = [drawn_counts(7 + run, 60) for run in range(runs)]
    found = intervals(counts, resamples=40_000, seed=2)
    for name in SCORES:
        slow = bootstrap(counts, name, 6_000, seed=1)
        low, high = found[name]
        wanted = tuple(np.quantile(slow, [0.025, 0.975]))
        assert (low, high) == pytest.approx(wanted, abs=0.06 * (high - low)), name


def test_interval_coverage() -> None:
    """About 95 % of the intervals of samples contain the score of the population, and about half at level 0.5."""
    hits = {0.95: 0, 0.5: 0}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        right = rng.binomial(10, 0.7, 150)
        counts = [[[10, int(r), 0, 0, 0] for r in right]]
        for level in hits:
            low, high = intervals(counts, level=level, resamples=400)["accuracy"]
            hits[level] += low <= 0.7 <= high
    assert 180 <= hits[0.95] <= 199
    assert 80 <= hits[0.5] <= 120


def test_equal_sentences_have_zero_width() -> None:
    """A corpus whose sentences all have the same counts has an interval of width 0 at its score."""
    found = intervals([[[4, 3, 2, 2, 1]] * 50])
    expected = {"accuracy": 0.75, "sequence_accuracy": 0.0, "f1": 0.5, "precision": 0.5, "recall": 0.5}
    assert found == {name: pytest.approx((value, value)) for name, value in expected.items()}


def test_interval_depends_on_seed_and_resamples_not_order() -> None:
    """The order of sentences has no effect. The seed does, and so does the number of samples."""
    counts = drawn_counts(0, 80)
    found = intervals([counts])
    assert found == intervals([counts]) == intervals([counts[::-1]])
    assert found != intervals([counts], seed=1)
    assert found != intervals([counts], resamples=100)


def test_width_falls_with_square_root_of_sentences() -> None:
    """The width falls with the square root of the number of sentences."""
    few, many = (intervals([drawn_counts(3, 50) * times])["f1"] for times in (1, 16))
    assert (few[1] - few[0]) / (many[1] - many[0]) == pytest.approx(4.0, rel=0.15)


def test_empty_and_invalid_counts() -> None:
    """An empty test set has no interval, and counts of another form are an error."""
    assert intervals([[]]) == intervals([]) == {}
    with pytest.raises(ValueError, match="one test set"):
        intervals([[[1, 1, 0, 0]]])


@given(st.lists(st.floats(0.0, 1.0), max_size=8))
def test_adjusted_p_values_equal_reference(p_values: list[float]) -> None:
    """They equal the definition, keep the order and are never smaller than the p-values, nor above Bonferroni's."""
    found = adjusted(p_values)
    assert found == pytest.approx(holm(p_values))
    for p, corrected in zip(p_values, found):
        assert p <= corrected <= min(1.0, len(p_values) * p) + 1e-12
    assert [found[i] for i in np.argsort(p_values, kind="stable")] == sorted(found)
