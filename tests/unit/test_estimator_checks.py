"""`check_estimator` of scikit-learn passes for every learner, except for checks that cannot apply to sequences.

The checks train on a table of numbers with one class per row. They get a tagger whose sentences are the rows of the
table, with the class as the label of every number.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tagwise.estimators import LEARNERS

pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install tagwise[sklearn]")

from sklearn.utils import estimator_checks

from ..corpora import quick

#: Checks that cannot apply to sequences, and why.
NO_COLUMNS = "a sentence has any number of tokens, so X has no number of columns to check or store"
WORDS = "X has words: the text of any number is a valid token"
SHAPE = "X is not an array, and the message says what a list of sentences looks like"
EXPECTED = {
    "check_n_features_in": NO_COLUMNS,
    "check_n_features_in_after_fitting": NO_COLUMNS,
    "check_estimators_empty_data_messages": NO_COLUMNS,
    "check_fit2d_predict1d": SHAPE,
    "check_complex_data": SHAPE,
    "check_estimator_sparse_tag": SHAPE,
    "check_estimator_sparse_array": SHAPE,
    "check_estimator_sparse_matrix": SHAPE,
    "check_estimators_nan_inf": WORDS,
    "check_all_zero_sample_weights_error": "sentences of weight 0 still define features and labels",
    "check_requires_y_none": "y may be None, because a Corpus has its own labels. Without them the message names both",
}
#: A weight multiplies the size of an update of the weights, and two updates differ from one of twice the size.
ONLINE = {
    "check_sample_weight_equivalence_on_dense_data": "a weight of 2 is one large step, a repetition two steps"
}


def sentences(X: Any) -> Any:
    """Return each row of a table as a sentence of rounded numbers. Anything else is passed on unchanged."""
    rows = np.asarray(X)
    if rows.ndim != 2 or rows.dtype.kind not in "fiuO":
        return X
    return [[f"{float(value):.0f}" for value in row] for row in rows]


def repeated(X: Any, y: Any) -> Any:
    """Return the class of each row as the label of each of its tokens."""
    rows = np.asarray(X)
    width = rows.shape[1] if rows.ndim == 2 else 1
    return None if y is None else [[label] * width for label in np.asarray(y).ravel()]


def table_learner(kind: Any) -> Any:
    """Return a class of taggers of table rows."""

    class Rows(kind):  # type: ignore[misc]
        __init__ = kind.__init__

        def __sklearn_tags__(self) -> Any:
            tags = super().__sklearn_tags__()
            tags.input_tags.two_d_array = True
            return tags

        def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
            return super().fit(sentences(X), repeated(X, y), sample_weight=sample_weight)

        def predict(self, X: Any) -> Any:
            return np.array([path[0] for path in super().predict(sentences(X))])

        def score(self, X: Any, y: Any = None) -> float:
            return float(np.mean(self.predict(X) == y))

    if hasattr(kind, "partial_fit"):

        def partial_fit(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
            return kind.partial_fit(self, sentences(X), repeated(X, y), sample_weight=sample_weight)

        Rows.partial_fit = partial_fit  # type: ignore[attr-defined]
    Rows.__name__ = Rows.__qualname__ = kind.__name__
    return Rows


TABLES = {learner: table_learner(kind) for learner, kind in LEARNERS.items()}
globals().update({kind.__name__: kind for kind in TABLES.values()})  # pickle finds classes by name


def tagger_of(learner: str) -> Any:
    """Return a tagger of table rows that trains quickly. Those with a unique optimum reach it."""
    convex = learner in ("crf", "memm", "hmsvm")
    params = (LEARNERS[learner](features="S1") if convex else quick(learner)).get_params()
    exact = {"tol": 1e-6, "max_iter": 5000} if learner == "hmsvm" else {}
    return TABLES[learner](**(params | exact))


@pytest.mark.parametrize("learner", LEARNERS)
def test_check_estimator(learner: str) -> None:
    """All checks pass but those listed with a reason, and no check listed for all learners passes."""
    tagger = tagger_of(learner)
    expected = EXPECTED | (ONLINE if hasattr(tagger, "partial_fit") else {})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Estimator .* does not inherit from")
        found = estimator_checks.check_estimator(tagger, expected_failed_checks=expected, on_skip=None)
    known = {entry["check_name"] for entry in found}
    failed = {entry["check_name"] for entry in found if entry["status"] == "xfail"}
    assert EXPECTED.keys() & known <= failed <= expected.keys()
    assert len(found) - len(failed) >= 25
