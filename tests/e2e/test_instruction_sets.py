"""Instruction sets: predictions do not depend on them, and training differs by rounding at most."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core

from ..golden import corpus, make
from ..golden.kinds import PLAIN

EXPECTED = make.read()
LEVELS = (
    "",
    "avx2",
    "baseline",
)  # the best of this machine, and forced levels. A missing level falls back to the next lower one
#: Kinds with their own sums, maxima, lists, kernels and vectors.
NAMES = [
    "crf", "crf-edges", "crf-order2", "crf-vectors-words", "hmsvm-rbf", "memm", "mira-history", "perceptron-poly",
]  # fmt: skip


@pytest.fixture(autouse=True)
def restore_level() -> Iterator[None]:
    before = _core.force("")
    yield
    _core.force(before)


@pytest.mark.parametrize("name", NAMES)
def test_golden_predictions_are_equal_at_every_level(name: str) -> None:
    """Labels and lists equal the golden ones. Scores and marginals agree to the stored digits."""
    kind, entry = make.ALL[make.SAVED[name][0]], EXPECTED[name]
    for level in LEVELS:
        _core.force(level)
        tagger, X = tw.load(make.FOLDER / f"{name}.tagwise"), kind.test()
        assert tagger.predict(X) == entry["predict"]
        for found, wanted in zip(tagger.predict_kbest(X, 3), entry["kbest"], strict=True):
            assert [path for path, _ in found] == [path for path, _ in wanted]
            np.testing.assert_allclose([s for _, s in found], [s for _, s in wanted], rtol=1e-5, atol=1e-6)
        for found, wanted in zip(
            tagger.predict_marginals(X) if "marginals" in entry else (), entry.get("marginals", ())
        ):
            np.testing.assert_allclose(found, wanted, atol=1.5e-5)


def trained(learner: tw.Tagger, level: str) -> tuple[np.ndarray, list[list[str]]]:
    """Return weights and labels of a learner trained and used at a level."""
    _core.force(level)
    tagger = learner.fit(corpus.words(corpus.TRAIN), corpus.LABELS)
    return tagger.model_.scorer.weights.copy(), tagger.predict(corpus.words(corpus.TEST))


def test_additive_training_is_bit_identical_at_every_level() -> None:
    """Learners that count or add whole updates do not multiply, so that rounding is equal everywhere."""
    for make_one in (lambda: tw.Perceptron(features=PLAIN, max_iter=3), lambda: tw.HMM()):
        first, *others = (trained(make_one(), level) for level in LEVELS)
        for weights, labels in others:
            assert weights.tobytes() == first[0].tobytes()
            assert labels == first[1]


def test_crf_training_differs_by_rounding_only() -> None:
    """FMA rounds once instead of twice: weights of a CRF agree approximately, and its labels are equal."""
    first, *others = (trained(tw.CRF(features=PLAIN, l2=0.05, tol=1e-9), level) for level in LEVELS)
    for weights, labels in others:
        np.testing.assert_allclose(weights, first[0], rtol=0, atol=2e-4 * np.abs(first[0]).max())
        assert labels == first[1]
