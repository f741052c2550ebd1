"""scikit-learn's tools accept the estimators: clones, searches, pipelines, diagrams, metadata, checks, errors."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tagwise as tw

from ..corpora import X, Y, quick

sklearn: Any = pytest.importorskip(
    "sklearn", reason="scikit-learn is not installed: pip install tagwise[sklearn]"
)

from sklearn import model_selection, pipeline, preprocessing  # noqa: E402

from tagwise.estimators import LEARNERS  # noqa: E402


@pytest.mark.parametrize("learner", LEARNERS)
def test_clones_have_parameters_and_no_model(learner: str) -> None:
    tagger = quick(learner).fit(X, Y)
    again = sklearn.base.clone(tagger)
    assert again.get_params() == tagger.get_params()
    assert not hasattr(again, "model_")
    assert again.fit(X, Y).predict(X) == tagger.predict(X)


@pytest.mark.parametrize("learner", LEARNERS)
def test_cross_val_predict_joins_folds(learner: str) -> None:
    """`cross_val_predict` gives every sentence the labels of the model that was not trained on it."""
    tagger = quick(learner)
    found = model_selection.cross_val_predict(tagger, X, Y, cv=model_selection.KFold(3))
    assert len(found) == len(X)
    for fit, left in model_selection.KFold(3).split(X):
        tagger.fit([X[i] for i in fit], [Y[i] for i in fit])
        assert [found[i] for i in left] == tagger.predict([X[i] for i in left])
    assert tw.evaluate(Y, list(found)).accuracy > 0.5


def test_predictions_are_lists() -> None:
    """NumPy support does not change the type: lists that compare and pickle as lists."""
    found = quick("crf").fit(X, Y).predict(X)
    assert isinstance(found, list)
    assert isinstance(found[0], list)
    assert found == [list(labels) for labels in found]
    assert pickle.loads(pickle.dumps(found)) == found
    for part in (found[:1], found[:2], found):  # of one length or of several
        array = np.asarray(type(found)(part))
        assert array.shape == (len(part),)
        assert array.tolist() == part


def test_grid_search_finds_the_best_score() -> None:
    search = model_selection.GridSearchCV(quick("crf"), {"l2": [1e-3, 1e3]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"l2": 1e-3}
    assert search.predict(X) == search.best_estimator_.predict(X)


def test_pipelines_pass_sentences_and_weights() -> None:
    steps = [
        ("lower", preprocessing.FunctionTransformer(lambda X: [[w.lower() for w in x] for x in X])),
        ("tagger", quick("crf")),
    ]
    shouted = [[word.upper() for word in sentence] for sentence in X]
    made = pipeline.Pipeline(steps).fit(shouted, Y, tagger__sample_weight=np.ones(len(X)))
    plain = quick("crf").fit([[w.lower() for w in x] for x in X], Y)
    assert made.predict(shouted) == plain.predict([[w.lower() for w in x] for x in X])
    assert "CRF(" in repr(made)


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("learner", LEARNERS)
def test_sample_weights_are_routed_on_request(learner: str) -> None:
    """In a search, a weight of 0 excludes a sentence, and False ignores the weights."""
    odd = [["VERB"] * len(sentence) for sentence in X]
    given, labels = [*X, *X], [*Y, *odd]
    weight = np.repeat([1.0, 0.0], len(X))
    folds = [(np.arange(len(given)), np.arange(4))]

    def searched(wanted: bool) -> Any:
        tagger = quick(learner).set_fit_request(sample_weight=wanted)
        search = model_selection.GridSearchCV(tagger, {"features": ["S1"]}, cv=folds)
        return search.fit(given, labels, **({"sample_weight": weight} if wanted else {})).best_estimator_

    direct = quick(learner).fit(given, labels, sample_weight=weight)
    assert searched(True).predict(X) == direct.predict(X)
    assert searched(False).predict(X) == quick(learner).fit(given, labels).predict(X)
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
        model_selection.GridSearchCV(quick(learner), {"features": ["S1"]}, cv=folds).fit(
            given, labels, sample_weight=weight
        )


@pytest.mark.usefixtures("routing")
def test_metadata_requests_survive_clone() -> None:
    tagger = tw.Perceptron().set_fit_request(sample_weight="w").set_partial_fit_request(sample_weight=True)
    routed = sklearn.base.clone(tagger).get_metadata_routing()
    assert routed.fit.requests == {"sample_weight": "w", "dev": None, "dev_y": None}
    assert routed.partial_fit.requests == {"sample_weight": True, "dev": None, "dev_y": None}
    again = tagger.set_fit_request(dev=True).get_metadata_routing().fit.requests
    assert again == {"sample_weight": "w", "dev": True, "dev_y": None}
    assert set(tw.Perceptron().get_metadata_routing().fit.requests.values()) == {None}


def dev_scores(tagger: Any) -> list[float | None]:
    return [entry.get("dev_score") for entry in tagger.history_]


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("learner", ["crf", "mira", "memm"])
def test_development_sets_are_routed_on_request(learner: str) -> None:
    """A search and a pipeline pass the whole dev set to `fit`, and refuse it without a request."""
    dev, dev_y = X[:2], [Y[0], ["VERB"] * len(X[1])]
    direct = quick(learner).fit(X, Y, dev=dev, dev_y=dev_y)
    assert None not in dev_scores(direct)
    folds = [(np.arange(len(X)), np.arange(4))]
    tagger = quick(learner).set_fit_request(dev=True, dev_y=True)
    search = model_selection.GridSearchCV(tagger, {"features": ["S1"]}, cv=folds)
    assert dev_scores(search.fit(X, Y, dev=dev, dev_y=dev_y).best_estimator_) == dev_scores(direct)
    corpus = tw.Corpus.from_lists(dev, dev_y)
    made = pipeline.make_pipeline(
        preprocessing.FunctionTransformer(), quick(learner).set_fit_request(dev="held")
    )
    assert dev_scores(made.fit(X, Y, held=corpus)[-1]) == dev_scores(direct)
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="dev"):
        model_selection.GridSearchCV(quick(learner), {"features": ["S1"]}, cv=folds).fit(X, Y, dev=corpus)


def test_html_repr_follows_the_display_setting() -> None:
    with sklearn.config_context(display="diagram"):
        assert "sk-" in tw.CRF()._repr_html_()
        assert "CRF" in pipeline.make_pipeline("passthrough", tw.CRF())._repr_html_()
    with sklearn.config_context(display="text"):
        assert (
            tw.CRF()._repr_html_() == '<p style="overflow-wrap:anywhere"><code>CRF()</code> (not fitted)</p>'
        )


def test_unfitted_error_is_also_not_fitted_error() -> None:
    with pytest.raises(
        sklearn.exceptions.NotFittedError, match=r"this CRF is not fitted\. Call fit"
    ) as caught:
        tw.CRF().predict(X)
    assert isinstance(caught.value, tw.exceptions.NotFittedError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (type(caught.value), str(caught.value))
    with pytest.raises(sklearn.exceptions.NotFittedError):
        sklearn.utils.validation.check_is_fitted(tw.CRF())
    sklearn.utils.validation.check_is_fitted(quick("crf").fit(X, Y))


def test_tagwise_does_not_import_scikit_learn() -> None:
    """Neither `import tagwise` nor an error, a diagram or training imports scikit-learn."""
    program = (
        "import sys, tagwise as tw\n"
        "try: tw.CRF().predict([])\n"
        "except tw.exceptions.NotFittedError: pass\n"
        "assert 'CRF' in tw.CRF()._repr_html_()\n"
        "tw.HMM().fit([['a']], [['X']]).predict([['a']])\n"
        "print([name for name in sys.modules if name.startswith('sklearn')])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
