"""HMSVM and kernel estimators: dev scores, allowed labels, rejected arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tagwise as tw

from ..corpora import X, Y


def test_dev_scores_and_allowed_labels_work_with_kernels() -> None:
    for tagger in (tw.HMSVM(features="S2", kernel="poly"), tw.Perceptron(features="S2", kernel="poly")):
        tagger.fit(X, Y, dev=X, dev_y=Y)
        assert tagger.history_[-1]["dev_score"] == 1.0
        assert tagger.score(X, Y) == 1.0
        only = tagger.classes_[0]
        assert tagger.predict([["the", "cat"]], allowed=[[[only], [only]]]) == [[only, only]]


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
