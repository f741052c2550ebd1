"""Tests that every argument of every method of an estimator matters: each has a row."""

from __future__ import annotations

import inspect
from pathlib import Path as File

import pytest

import tagwise as tw
from tagwise.estimators import LEARNERS

from .keywords import ONLINE, ROWS

#: Methods whose rows use a single tagger: they test predictions, not learners.
ONCE = ("predict", "predict_kbest", "predict_marginals", "predict_confidence", "sequence_probability")
ONCE += ("chunk_probability", "inspect", "choose_threshold", "to")
CASES = sorted(
    {
        (method, check.__name__, learner): check
        for (method, _), check in ROWS.items()
        for learner in (["crf"] if method in ONCE else ONLINE if method == "partial_fit" else LEARNERS)
    }.items(),
    key=lambda case: case[0],
)
CHECKS = {(name, learner): check for (_, name, learner), check in CASES}


@pytest.mark.parametrize(("name", "learner"), CHECKS, ids=map("-".join, CHECKS))
def test_argument_has_its_documented_effect(name: str, learner: str, tmp_path: File) -> None:
    """The statement of the row holds."""
    CHECKS[name, learner](learner, tmp_path)


def test_every_argument_has_a_row() -> None:
    """Every argument of a public method has a row, and every row has an argument."""
    found = set()
    for kind in (*LEARNERS.values(), tw.Tagger):
        for method, function in inspect.getmembers(kind, inspect.isfunction):
            if method.startswith(("_", "set_")) or method == "get_params":
                continue
            for name, parameter in inspect.signature(function).parameters.items():
                if name != "self" and parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                    found.add((method, name))
    assert found == set(ROWS)
