"""Parameters accepted by `fit` can be saved: values are converted to plain types or refused before training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw

X, Y = [["a", "b"], ["c"]], [["A", "B"], ["A"]]
LONE = "\ud800"


@pytest.mark.parametrize(
    ("learner", "given", "kept"),
    [
        (tw.CRF, {"random_state": np.int64(3), "l2": np.float32(0.5)}, {"random_state": 3, "l2": 0.5}),
        (tw.CRF, {"start_end": np.bool_(False)}, {"start_end": False}),
        (tw.CRF, {"start_end": np.array(True)}, {"start_end": True}),
        (tw.CRF, {"loss": np.str_("log")}, {"loss": "log"}),
        (tw.CRF, {"class_weight": np.float32(0.5)}, {"class_weight": 0.5}),
        (tw.CRF, {"class_weight": {np.str_("A"): np.float32(0.5)}}, {"class_weight": {"A": 0.5}}),
        (tw.CRF, {"partial": {"unknown": np.str_("?")}}, {"partial": {"separator": "|", "unknown": "?"}}),
        (tw.CRF, {"features": np.str_("S1")}, {"features": "S1"}),
        (
            tw.Perceptron,
            {"kernel": {"name": np.str_("poly"), "degree": np.uint8(3)}},
            {"kernel": tw.Poly(3).to_json()},
        ),
        (tw.Perceptron, {"lookback": np.array([1, 2])}, {"lookback": tw.Lookback(1, 2).to_json()}),
    ],
)
def test_numpy_parameters_become_python_objects(
    learner: Any, given: dict[str, Any], kept: dict[str, Any], tmp_path: Path
) -> None:
    """They are Python objects after `fit`, in the file and after loading."""
    tagger = learner(**{"features": "S1", **given}).fit(X, Y)
    tagger.save(tmp_path / "m")
    again = tw.load(tmp_path / "m")
    for name, value in kept.items():
        found = again.model_.meta["params"][name]
        assert (found, type(found)) == (value, type(value))
    assert again.predict(X) == tagger.predict(X)


@pytest.mark.parametrize(
    ("learner", "given", "message"),
    [
        (tw.CRF, {"partial": {"separator": b"|"}}, "partial=.*expected text, found bytes"),
        (tw.CRF, {"partial": {"separator": 3}}, "partial=.*separator=3: expected text"),
        (tw.CRF, {"partial": {"unknown": object()}}, "partial=.*unknown=.*expected text"),
        (tw.CRF, {"partial": {"unknown": LONE}}, "partial=.*lone surrogate"),
        (tw.CRF, {"class_weight": {"A": b"1"}}, "class_weight=.*found bytes"),
        (tw.CRF, {"features": f'word[0].one_of("{LONE}")?'}, "features=.*lone surrogate"),
        (tw.CRF, {"features": b"S1"}, "features=.*found bytes"),
        (tw.CRF, {"l2": 10**400}, "l2=.*expected finite number"),
        (tw.CRF, {"l2": np.array([1.0, 2.0])}, "l2=.*expected number"),
        (tw.CRF, {"max_iter": 10**400}, "max_iter=.*expected integer"),
        (tw.CRF, {"loss": np.array(["log"])}, "loss=.*expected one of"),
        (tw.CRF, {"loss": ["log"]}, "loss=.*expected one of"),
        (tw.Perceptron, {"random_state": 2**64}, r"random_state=.*below 2\*\*63"),
        (tw.Perceptron, {"kernel": np.array(["poly"])}, "kernel=.*expected linear"),
        (tw.MIRA, {"cost": b"f1"}, "cost=.*found bytes"),
    ],
)
def test_unserializable_parameters_fail_before_training(
    learner: Any, given: dict[str, Any], message: str
) -> None:
    """The error names the parameter."""
    with pytest.raises(tw.exceptions.ParameterError, match=message):
        learner(**given).fit(X, Y)


@pytest.mark.parametrize(
    "labels", [{1, "A"}, {LONE}, [b"A"], 7, []], ids=["mixed", "surrogate", "bytes", "number", "none"]
)
def test_sets_of_non_string_labels(labels: Any) -> None:
    """In partial labels too."""
    with pytest.raises(tw.exceptions.CorpusError, match=r"label"):
        tw.CRF(partial=True).fit(X, [[labels, "B"], ["A"]])


def test_column_names_are_saved_and_must_be_strings() -> None:
    """Column names are stored in the file and must be strings."""
    with pytest.raises(tw.exceptions.CorpusError, match="is not valid Unicode"):
        tw.CRF(features="S1").fit([{LONE: ["a", "b"]}, {LONE: ["c"]}], Y)
    sentence = tw.Sentence({"word": ["a"], LONE: ["A"]}, LONE)
    with pytest.raises(tw.exceptions.CorpusError, match="is not valid Unicode"):
        tw.CRF(features="S1", max_iter=1).fit(tw.Corpus([sentence]))
