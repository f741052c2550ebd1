"""The regularisation path: warm starts end where cold ones do, and the choice looks at dev alone."""

from __future__ import annotations

import pytest

import tagwise as tw
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.estimators.path import RegularizationPath, Step
from tagwise.evaluation.metrics import evaluate

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
    """The last sentences are scored and the others trained; the best strength is then trained on all, if asked for."""
    X, y = train[:100].tokens, train[:100].labels
    for holdout, cut in ((0.2, 80), (0.1, 90), (0.004, 99), (0.999, 1)):
        one, again = (
            tw.regularization_path(quick(), X, y=y, strengths=[1.0], holdout=holdout, refit=refit)[0]
            for refit in (False, True)
        )
        held = quick().fit(X[:cut], y[:cut])
        assert weights(one.tagger) == weights(held)
        assert weights(again.tagger) == weights(quick().fit(X, y, warm_start=held))
        assert one.score == again.score == held.evaluate(X[cut:], y[cut:]).score
    by_default = tw.regularization_path(quick(), train[:100], strengths=[1.0])[0]
    assert weights(by_default.tagger) == weights(quick().fit(X[:90], y[:90]))
    with_dev = tw.regularization_path(quick(), train[:100], dev[:9], strengths=[1.0], refit=True)[0]
    assert weights(with_dev.tagger) == weights(quick().fit(train[:100]))


def quick(**params: object) -> tw.CRF:
    """A CRF of few iterations, so that its start shows."""
    return tw.CRF(**{"features": "S1", "max_iter": 2, **params})


def weights(tagger: tw.Tagger) -> dict[str, list[tuple[str, float]]]:
    """All weights by label."""
    return tagger.explain(10**6).labels


def test_each_step_begins_where_the_last_ended() -> None:
    """From strong to weak, whatever the order given; the first from `warm_start`; `progress` sees each."""
    data, model = train[:60], tw.CRF(features="S1", l2=0.01, max_iter=30).fit(train[:60])
    for start in (None, model):
        seen: list[float] = []
        path = tw.regularization_path(
            quick(),
            data,
            dev[:20],
            strengths=[0.1, 5, 1.0, 5.0],
            warm_start=start,
            progress=lambda step, seen=seen: seen.append(step.strength),
        )
        assert [step.strength for step in path] == seen == [5.0, 1.0, 0.1]
        last = start
        for step in path:
            last = quick(l2=step.strength).fit(data, warm_start=last)
            assert weights(step.tagger) == weights(last)
            assert step.score == last.evaluate(dev[:20]).score
            assert step.iterations == 2
    assert [
        s.strength for s in tw.regularization_path(quick(), data, dev[:9], strengths=[1, 3], parameter="l2")
    ] == [
        3,
        1,
    ]


def test_strength_may_grow_the_other_way() -> None:
    """A wide prior and a large C are weak: they come last."""
    steps = tw.regularization_path(quick(), train[:30], dev[:9], strengths=[9.0, 1.0], parameter="sigma")
    assert [step.strength for step in steps] == [1.0, 9.0]


def test_learners_that_cannot_start_warm_begin_anew() -> None:
    """Large margins have a path over C; each step, and the last on all sentences, is a training of its own."""
    data = train[:20]
    svm = tw.HMSVM(features="S1", max_epochs=3)
    path = tw.regularization_path(svm, data, dev[:9], strengths=[3.0, 0.1], parameter="C")
    assert [step.strength for step in path] == [0.1, 3.0]
    for step in path:
        alone = tw.HMSVM(features="S1", max_epochs=3, C=step.strength).fit(data)
        assert weights(step.tagger) == weights(alone)
    (step,) = tw.regularization_path(svm, data, strengths=[2.0], parameter="C", refit=True)
    assert weights(step.tagger) == weights(tw.HMSVM(features="S1", max_epochs=3, C=2.0).fit(data))
    with pytest.raises(ParameterError, match="leave warm_start out"):
        tw.regularization_path(svm, data, strengths=[2.0], parameter="C", warm_start=quick().fit(data))


def test_the_best_of_equals_is_the_stronger() -> None:
    """By the score, then the stronger, which for C is the smaller; the table shows every step."""
    tagger = quick().fit(train[:30])
    good, bad = (evaluate([["B-A", "O"]], [guess]) for guess in (["B-A", "O"], ["O", "O"]))
    steps = [
        Step(s, tagger, report, 7, 1.25) for s, report in ((10.0, bad), (5.0, good), (1.0, good), (0.1, bad))
    ]
    path = RegularizationPath("l2", steps)
    assert path.best.strength == 5.0
    assert RegularizationPath("C", steps[::-1]).best.strength == 1.0
    assert (len(path), path[1].strength, [s.strength for s in path]) == (4, 5.0, [10.0, 5.0, 1.0, 0.1])
    lines = [line.replace("│", " ").replace("|", " ").split() for line in str(path).splitlines()]
    counts = [f"{tagger.n_nonzero_:,}", f"{tagger.objective_:,.2f}", "7", "1.2"]
    for strength, score in (("10", "0.00"), ("5", "100.00"), ("1", "100.00"), ("0.1", "0.00")):
        assert [strength, score, *counts] in lines


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
