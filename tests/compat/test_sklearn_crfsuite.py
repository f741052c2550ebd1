"""The API of sklearn-crfsuite: shapes, attributes, pickles, and scikit-learn's tools."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from tagwise.base.exceptions import NotFittedError
from tagwise.compat.sklearn_crfsuite import CRF, metrics, scorers
from tagwise.compat.sklearn_crfsuite.trainer import LinePerIterationTrainer

X = [[{"w": "a"}, {"w": "b"}], [{"w": "b"}, {"w": "a"}], [{"w": "a"}]]
Y = [["N", "V"], ["V", "N"], ["N"]]


@pytest.fixture(scope="module")
def fitted() -> CRF:
    return CRF(c2=0.1).fit(X, Y)


def test_shapes(fitted: CRF) -> None:
    """Predictions are lists if lengths differ, a two-dimensional array if they are equal, and empty for no input."""
    assert fitted.predict(X).tolist() == Y
    assert fitted.predict(X).shape == (3,)
    assert fitted.predict(X[:2]).shape == (2, 2)
    assert fitted.predict([]).shape == (0,)
    assert fitted.predict_single(X[0]) == Y[0]
    assert isinstance(fitted.predict_single(X[0]), list)
    assert fitted.predict_marginals(X[:2]).shape == (2, 2)
    for token in fitted.predict_marginals_single(X[0]):
        assert set(token) == {"N", "V"}
        assert sum(token.values()) == pytest.approx(1.0)


def test_predictions_are_plain_arrays(fitted: CRF) -> None:
    """Representations and elements are those of plain arrays."""
    for rows in (X, X[:2], []):
        found = fitted.predict(rows)
        assert repr(found) == repr(np.array(Y[: len(rows)], dtype=object))
        assert {type(row) for row in found} == {type(row) for row in found.view(np.ndarray)}
    assert type(fitted.predict(X[:2])[0]) is np.ndarray
    assert type(fitted.predict(X[:2])[:1]) is np.ndarray


def test_folds_with_different_shapes() -> None:
    """Predictions of folds with different shapes are joined."""
    same, mixed = X[:2] * 2, X[1:] * 2
    found = cross_val_predict(CRF(), same + mixed, Y[:2] * 2 + Y[1:] * 2, cv=2)
    assert [len(y) for y in found] == [2, 2, 2, 2, 2, 1, 2, 1]


def test_scikit_learn_tools() -> None:
    """`clone`, grids of NumPy booleans, pipelines and scorers work."""
    grid = GridSearchCV(
        CRF(), {"all_possible_transitions": np.array([True, False])}, cv=2, scoring=scorers.flat_accuracy
    )
    grid.fit(X * 2, Y * 2)
    assert clone(grid.best_estimator_).get_params()["c2"] is None
    assert Pipeline([("crf", CRF())]).fit(X, Y).predict(X).tolist() == Y
    assert cross_val_score(CRF(), X * 2, Y * 2, cv=2, scoring=scorers.sequence_accuracy).max() <= 1.0


def test_attributes(fitted: CRF) -> None:
    """Attributes are None before `fit`."""
    names = (
        "classes_",
        "size_",
        "num_attributes_",
        "attributes_",
        "state_features_",
        "transition_features_",
        "tagger_",
    )
    assert [getattr(CRF(), name) for name in names] == [None] * len(names)
    assert fitted.classes_ == ["N", "V"]
    assert fitted.attributes_ == ["w:a", "w:b"]
    assert fitted.num_attributes_ == 2
    assert ("w:a", "N") in fitted.state_features_
    assert ("N", "V") in fitted.transition_features_
    assert fitted.training_log_.iterations


def test_unfitted() -> None:
    """The error is also an AttributeError and scikit-learn's NotFittedError."""
    with pytest.raises(NotFittedError):
        CRF().predict(X)
    with pytest.raises(AttributeError):
        CRF().predict(X)
    from sklearn.exceptions import NotFittedError as Theirs

    with pytest.raises(Theirs):
        check_is_fitted(CRF())


def test_fit_errors() -> None:
    """X_dev without y_dev, different lengths, and parameters of another algorithm raise errors."""
    with pytest.raises(ValueError, match="both"):
        CRF().fit(X, Y, X)
    with pytest.raises(ValueError, match="length"):
        CRF().fit(X, Y[:2])
    with pytest.raises(ValueError, match="length"):
        CRF().fit(X[:2], Y)
    with pytest.raises(ValueError, match="c1"):
        CRF("ap", c1=1.0).fit(X, Y)


def test_iterables_and_dev(capsys: pytest.CaptureFixture[str]) -> None:
    """Generators are accepted, and verbose prints one line per iteration and a table of labels."""
    CRF(verbose=True, max_iterations=2).fit(iter(X), iter(Y), X_dev=iter(X), y_dev=iter(Y))
    out = capsys.readouterr().out
    assert "Iter 1" in out
    assert "Support" in out
    assert "F1=" in out


def test_copies_and_pickles(fitted: CRF) -> None:
    """Each copy has its own model file."""
    for again_of in (copy.copy, copy.deepcopy, lambda crf: pickle.loads(pickle.dumps(crf))):
        again = again_of(fitted)
        assert again.predict(X).tolist() == Y
        assert again.get_params() == fitted.get_params()
        assert again.modelfile is not fitted.modelfile
        name = again.modelfile.name
        assert Path(name).read_bytes() == Path(fitted.modelfile.name).read_bytes()
        del again
        assert not Path(name).exists()
    assert fitted.predict(X).tolist() == Y


def test_model_filename(tmp_path: Path) -> None:
    """`fit` writes the file, and unfitted estimators read it. Paths can be set by set_params."""
    path = tmp_path / "m.crfsuite"
    CRF(model_filename=path).fit(X, Y)
    assert CRF(model_filename=str(path)).predict(X).tolist() == Y
    assert CRF().set_params(model_filename=path).predict(X).tolist() == Y
    with pytest.raises(FileNotFoundError):
        CRF(model_filename=tmp_path / "none").predict(X)


def test_trainer_classes() -> None:
    """A custom class is called with algorithm, params and verbose."""
    seen = []

    class Mine(LinePerIterationTrainer):
        def __init__(self, **given: object) -> None:
            seen.append(given)
            super().__init__(**given)  # type: ignore[arg-type]

    CRF("ap", max_iterations=2, trainer_cls=Mine).fit(X, Y)
    assert seen == [{"algorithm": "ap", "params": {"max_iterations": 2}, "verbose": False}]


def test_sequence_accuracy() -> None:
    """Sequence accuracy counts sequences, not tokens."""
    assert metrics.sequence_accuracy_score([["a", "b"], ["a", "a"]], [["a", "b"], ["a", "b"]]) == 0.5
    assert metrics.sequence_accuracy_score([], []) == 0
    assert metrics.flat_accuracy_score(Y, Y) == 1.0


THEIRS = """
import pickle, sys
import sklearn_crfsuite
X, Y = pickle.load(open(sys.argv[1], "rb"))
crf = sklearn_crfsuite.CRF(c2=0.1).fit(X, Y, X, Y)
pickle.dump((crf, crf.predict(X).tolist(), crf.predict_marginals_single(X[0])), open(sys.argv[2], "wb"))
"""
OURS = """
import pickle, sys
import tagwise.compat
tagwise.compat.install()
crf, path, p = pickle.load(open(sys.argv[2], "rb"))
X, Y = pickle.load(open(sys.argv[1], "rb"))
assert type(crf).__module__.startswith("tagwise.compat"), type(crf)
assert crf.predict(X).tolist() == path
for a, b in zip(p, crf.predict_marginals_single(X[0])):
    assert all(abs(a[y] - b[y]) < 1e-9 for y in a)
assert crf.training_log_.last_iteration["scores"]["N"].ref == 3
import pycrfsuite, pycrfsuite._logparser, sklearn_crfsuite.metrics
assert pycrfsuite.Tagger.__module__.startswith("tagwise.compat")
"""


def test_pickles_of_the_original(tmp_path: Path) -> None:
    """After `install`, pickles of the original load and give equal predictions."""
    pytest.importorskip("sklearn_crfsuite")
    (tmp_path / "data").write_bytes(pickle.dumps((X, Y)))
    for script in (THEIRS, OURS):
        command = [sys.executable, "-c", script, str(tmp_path / "data"), str(tmp_path / "crf")]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", inspect.signature(CRF).parameters)
def test_subclasses_may_compute_any_argument(name: str) -> None:
    """A read-only property takes the place of a constructor argument. Training, copies and pickles use its value."""
    value = CRF().get_params()[name]
    kind = type("Computed", (CRF,), {name: property(lambda self: value), "__module__": __name__})
    tagger = kind().fit(X, Y)
    assert name not in vars(tagger)
    for again in (tagger, copy.deepcopy(tagger)):
        assert again.predict(X).tolist() == Y
        assert getattr(again, name) == value


def test_model_filename_may_be_computed_from_the_model_file(tmp_path: Path) -> None:
    """The file of the constructor is used, also if the property returns its name."""

    class Named(CRF):
        def __init__(self, path: str) -> None:
            super().__init__(model_filename=path, c2=0.1)

        @property
        def model_filename(self) -> str | None:  # type: ignore[override]
            return self.modelfile.name

    path = str(tmp_path / "m.crfsuite")
    tagger = Named(path).fit(X, Y)
    assert tagger.model_filename == path
    assert CRF(model_filename=path).predict(X).tolist() == Named(path).predict(X).tolist() == Y


def test_constructor_sets_the_attributes_of_the_original() -> None:
    """Every attribute, with the value of the original, except for the object of the model file."""
    original = pytest.importorskip("sklearn_crfsuite").CRF
    theirs, ours = original(c1=0.5, model_filename="m"), CRF(c1=0.5, model_filename="m")
    assert inspect.signature(CRF).parameters.keys() == inspect.signature(original).parameters.keys()
    for name, value in vars(theirs).items():
        assert hasattr(ours, name), name
        assert name == "modelfile" or getattr(ours, name) == value, name
    assert (ours.modelfile.name, ours.modelfile.auto) == (theirs.modelfile.name, theirs.modelfile.auto)
