"""The regularisation path: warm starts end where cold ones do, and the choice looks at dev alone."""

from __future__ import annotations

import pytest

import tagwise as tw
from tagwise.errors import CorpusError, ParameterError

train, dev, _ = tw.load_corpus("wnut17-ner")


def test_every_step_is_the_optimum_of_its_strength() -> None:
    base = tw.CRF(features="S1", tol=1e-7, max_iter=500)
    path = tw.regularization_path(base, train[:150], dev[:50], strengths=[0.1, 1.0])
    assert [step.strength for step in path] == [1.0, 0.1]
    for step in path:
        cold = tw.CRF(features="S1", tol=1e-7, max_iter=500, l2=step.strength).fit(train[:150])
        assert step.tagger.objective_ == pytest.approx(cold.objective_, rel=1e-4)
        assert step.score == step.tagger.evaluate(dev[:50]).score
    assert path.best.score == max(step.score for step in path)
    assert not hasattr(base, "model_")
    assert "0.1" in str(path)


def test_a_part_is_held_out_where_there_is_no_dev() -> None:
    X, y = train[:100].tokens, train[:100].labels
    path = tw.regularization_path(
        tw.CRF(features="S1", max_iter=5), X, y=y, strengths=[1.0], holdout=0.2, refit=True
    )
    assert path.best.tagger.n_features_ > tw.CRF(features="S1", max_iter=1).fit(X[:80], y[:80]).n_features_


def test_l1_gets_denser_and_perceptrons_have_none() -> None:
    path = tw.regularization_path(
        tw.CRF(features="S1", l2=0.0, max_iter=50),
        train[:100],
        dev[:20],
        strengths=[1.0, 0.1],
        parameter="l1",
    )
    assert path[0].tagger.n_nonzero_ < path[1].tagger.n_nonzero_
    with pytest.raises(ParameterError, match="l2"):
        tw.regularization_path(tw.Perceptron(), train[:10])
    with pytest.raises(ParameterError, match="at least one"):
        tw.regularization_path(tw.CRF(), train[:10], strengths=[])
    with pytest.raises(CorpusError, match="two training sentences"):
        tw.regularization_path(tw.CRF(), train[:1])
    with pytest.raises(ParameterError, match="holdout"):
        tw.regularization_path(tw.CRF(), train[:10], holdout=2.0)
