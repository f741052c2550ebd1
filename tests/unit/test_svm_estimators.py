"""HMSVM and kernel estimators: learning, repetition, saving and loading, rejected arguments."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tagwise.scores.kernels import KernelScorer, TokenMatrix

from ..corpora import X, Y
from ..names import named


def squared(a: TokenMatrix, b: TokenMatrix) -> Any:
    """Return an importable kernel."""
    return (1.0 + a.dots(b)) ** 2


TAGGERS = [
    tw.HMSVM(features="S2"),
    tw.HMSVM(features="S2", rescale="margin", C=0.5),
    tw.HMSVM(features="S2", slack=("sequence", 20)),
    tw.HMSVM(features="S2", kernel=tw.Poly(degree=3)),
    tw.HMSVM(features="S2", kernel="rbf", rescale="margin"),
    tw.Perceptron(features="S2", kernel="linear"),
    tw.Perceptron(features="S2", kernel=tw.Poly(form="expanded")),
    tw.Perceptron(features="S2", kernel=tw.Poly(form="rows"), average=False),
    tw.Perceptron(features="S2", kernel=tw.RBF(gamma=0.1, budget=5), max_iter=30),
    tw.Perceptron(features="S2", kernel=squared),
]


@pytest.mark.parametrize("tagger", TAGGERS, ids=named)
def test_estimators_learn_repeat_and_round_trip(tagger: tw.Tagger, tmp_path: Path) -> None:
    assert tagger.fit(X, Y).predict(X) == Y
    best = tagger.predict_kbest(X, k=3)
    assert [paths[0][0] for paths in best] == Y
    assert all(a[1] >= b[1] for paths in best for a, b in pairwise(paths))
    tagger.save(tmp_path / "first")
    tagger.fit(X, Y).save(tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    loaded = tw.load(tmp_path / "first", functions={"squared": squared})
    assert type(loaded) is type(tagger)
    assert loaded.predict_kbest(X, k=3) == best
    assert pickle.loads(pickle.dumps(tagger)).predict_kbest(X, k=3) == best
    if isinstance(tagger.model_.scorer, KernelScorer):
        assert 0 < tagger.n_support_ <= len({word for sentence in X for word in sentence})  # type: ignore[attr-defined]
        assert tagger.n_features_ >= tagger.n_nonzero_ > tagger.n_support_  # type: ignore[attr-defined]
        with pytest.raises(tw.exceptions.ParameterError, match="not probabilities"):
            tagger.predict_marginals(X)
        with pytest.raises(tw.exceptions.ParameterError, match="no probabilities"):
            tagger.predict(X, decoder="pointwise")
    assert tagger.inspect().transitions


def test_dev_scores_and_allowed_labels_work_with_kernels() -> None:
    for tagger in (tw.HMSVM(features="S2", kernel="poly"), tw.Perceptron(features="S2", kernel="poly")):
        tagger.fit(X, Y, dev=X, dev_y=Y)
        assert tagger.history_[-1]["dev_score"] == 1.0
        assert tagger.score(X, Y) == 1.0
        only = tagger.classes_[0]
        assert tagger.predict([["the", "cat"]], allowed=[[[only], [only]]]) == [[only, only]]


def test_tag_dictionary_works_with_a_kernel(tmp_path: Path) -> None:
    tagger = tw.HMSVM(features="S2", kernel="poly", dictionary=5).fit(X, Y)
    tagger.save(tmp_path / "model")
    for model in (tagger, tw.load(tmp_path / "model")):
        best = model.predict_kbest([["the", "the"]], k=9)[0]
        assert [path for path, _ in best] == [["DET", "DET"]]


def test_invalid_combinations_are_rejected() -> None:
    fitted = tw.CRF(features="S2", max_iter=3).fit(X, Y)
    cases: list[tuple[tw.Tagger, dict[str, Any], str]] = [
        (tw.HMSVM(kernel="nonsense"), {}, "kernel"),
        (tw.HMSVM(rescale="slack"), {}, "rescale"),
        (tw.HMSVM(C=0), {}, "C="),
        (tw.HMSVM(features="S2"), {"warm_start": fitted}, "start"),
        (tw.HMSVM(features="S2", kernel="rbf"), {"warm_start": fitted}, "start"),
        (tw.Perceptron(features="S2", kernel="poly"), {"warm_start": fitted}, "start"),
        (
            tw.CRF(features="S2"),
            {"warm_start": tw.HMSVM(features="S2", kernel="poly").fit(X, Y)},
            "support tokens",
        ),
        (tw.Perceptron(features="S2", kernel="poly", lookback=(1, 2)), {}, "lookback"),
        (tw.Perceptron(kernel="poly", mode="batch"), {}, "a kernel requires mode=.online."),
        (tw.Perceptron(kernel="poly", parts=2), {}, "a kernel requires parts=1"),
        (tw.Perceptron(kernel="no_such_module_:f"), {}, "imported"),
    ]
    for tagger, arguments, message in cases:
        with pytest.raises(tw.exceptions.ParameterError, match=message):
            tagger.fit(X, Y, **arguments)


def test_invalid_kernel_settings_are_rejected_by_the_object() -> None:
    with pytest.raises(tw.exceptions.ParameterError, match="degree"):
        tw.Poly(degree=0)


def test_anonymous_kernel_functions_cannot_be_saved(tmp_path: Path) -> None:
    tagger = tw.Perceptron(features="S2", kernel=lambda a, b: a.dots(b)).fit(X, Y)
    assert tagger.predict(X) == Y
    with pytest.raises(tw.exceptions.ParameterError, match="the kernel function has no name"):
        tagger.save(tmp_path / "model")
