"""Length weights of sentences: computed as logarithms, 1 on average, with a warning on underflow."""

from __future__ import annotations

import logging
from itertools import pairwise
from math import log
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.dataset.weights import length_weights

rng = np.random.default_rng(5)
LONG = [f"w{rng.integers(9)}" for _ in range(400)]
SHORT = [f"w{i}" for i in range(9)]
#: One feature per round, on whole sentences.
PAPER: dict[str, Any] = {"features_per_round": 1, "max_length": None}


def labelled(*sentences: list[str]) -> tuple[list[list[str]], list[list[str]]]:
    """Return the sentences, and labels that are distinct for each word."""
    return list(sentences), [[f"L{word[1:]}" for word in sentence] for sentence in sentences]


def weights(lengths: list[int], pi: float, given: list[float] | None = None, **more: bool) -> np.ndarray:
    """Return the weights of sentences of these lengths."""
    data = _core.encode_attributes(_core.Vocabulary(), [[["a"]] * n for n in lengths])
    sample = None if given is None else np.array(given)
    found = length_weights(data, pi, sample, **{"exponential": False, **more})
    assert found is not None
    return found


@pytest.mark.parametrize(
    "tagger", [tw.Boosting(max_iter=60, **PAPER), tw.CRF(max_iter=30), tw.CRF(loss="exp", max_iter=30)]
)
def test_long_sentences_keep_a_weight(tagger: tw.Tagger) -> None:
    """(1/9)^400 underflows, but the sentence still has a weight."""
    X, y = labelled(LONG)
    tagger.set_params(features="S1", pi=1 / 9).fit(X, y)
    assert tagger.score(X, y) > 0.99


def test_boosting_uses_long_and_short_sentences() -> None:
    """Before the first round pi^T e^l is 1 for both: weights are as far above 1 as below, and both count."""
    X, y = labelled(LONG, SHORT[:3])
    tagger = tw.Boosting(features="S1", all_pairs=True, pi=1 / 9, max_iter=0, **PAPER).fit(X, y)
    assert tagger.objective_ == pytest.approx((400 - 3) / 2 * log(9) + log(2 * 9**3 - 1), rel=1e-9)
    chosen = tw.Boosting(features="S1", pi=1 / 9, max_iter=9, **PAPER).fit(X, y).rounds_
    assert all(b.log_loss < a.log_loss for a, b in pairwise(chosen))


def test_mean_weight_is_one() -> None:
    """Ratios are those of pi^T, duplicates count like weights, and sentences of weight 0 are ignored."""
    found = weights([1, 4, 2, 7], 0.5)
    assert found.mean() == pytest.approx(1.0)
    np.testing.assert_allclose(found / found[0], 0.5 ** np.array([0.0, 3.0, 1.0, 6.0]))
    np.testing.assert_allclose(weights([5, 5, 5], 0.2), 1.0)
    twice, doubled = weights([1, 1, 4], 0.5), weights([1, 4], 0.5, [2.0, 1.0])
    np.testing.assert_allclose([twice[:2].sum(), twice[2]], doubled)
    np.testing.assert_allclose(weights([1, 4, 2], 0.5, [0.0, 1.0, 3.0])[1:], weights([4, 2], 0.5, [1.0, 3.0]))


def test_zero_weight_sentences_have_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    """Sentences of weight 0 affect neither the range of lengths nor the check for overflow."""
    with caplog.at_level(logging.WARNING, "tagwise"):
        np.testing.assert_allclose(weights([1, 400, 401], 0.1, [0.0, 1.0, 1.0])[1:], [20 / 11, 2 / 11])
        np.testing.assert_allclose(weights([400, 1, 2], 0.1, [0.0, 1.0, 1.0])[1:], [20 / 11, 2 / 11])
        weights([1, 2, 900], 0.1, [1.0, 1.0, 0.0], exponential=True)
    assert caplog.text == ""


def test_underflow_warns_and_overflow_raises(caplog: pytest.LogCaptureFixture) -> None:
    """A loss that does not grow like e^T logs a warning. One that does raises an error."""
    with caplog.at_level(logging.WARNING, "tagwise"):
        assert weights([1, 400], 0.1).tolist() == [2.0, 0.0]
    assert "pi=0.1: the weight of sentence 1 (400 tokens) underflows" in caplog.text
    X, y = labelled(LONG, SHORT[:1])
    with pytest.raises(tw.exceptions.ParameterError, match=r"sentence 0 \(400 tokens\) .*max_length"):
        tw.CRF(features="S1", loss="exp", pi=0.1).fit(X, y)
    with pytest.raises(tw.exceptions.ParameterError, match=r"sentence 1 \(900 tokens\)"):
        weights([1, 900], 0.1, exponential=True, penalised=False)
