"""Tests of the arguments of the regularisation path."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import tagwise as tw
from tagwise.estimators import LEARNERS, regularization_path
from tagwise.estimators.path import STRENGTHS, PathStep, RegularizationPath, hold_out
from tagwise.evaluation.metrics import evaluate

from .parameters.rows import bits

X = [["a", "b", "a"], ["b", "a"], ["c", "a", "b"], ["b", "c"], ["a"], ["c", "c", "b"], ["a", "b"], ["c"]]
Y = [["x", "y", "y"], ["y", "x"], ["x", "x", "y"], ["x", "x"], ["y"], ["y", "x", "y"], ["x", "y"], ["x"]]
DEV, DEV_Y = [["a", "c", "b"], ["b", "a"]], [["x", "y", "y"], ["y", "x"]]


def crf(**params: Any) -> tw.CRF:
    return tw.CRF(**{"features": "S1", "max_iter": 3, **params})


def path(tagger: tw.Tagger | None = None, **arguments: Any) -> RegularizationPath:
    given = {"dev": DEV, "dev_y": DEV_Y, "strengths": [1.0, 0.1], **arguments}
    return regularization_path(crf() if tagger is None else tagger, X, y=Y, **given)


def chained(values: list[float], parameter: str = "l2", start: Any = None) -> list[tw.Tagger]:
    """Return the expected steps: one strength after the other, each from the weights of the last."""
    out: list[tw.Tagger] = []
    for value in values:
        out.append(crf(**{parameter: value}).fit(X, Y, warm_start=out[-1] if out else start))
    return out


def test_every_argument_has_a_test() -> None:
    """Every argument has a test. A new one must be added here."""
    known = {
        "tagger",
        "X",
        "dev",
        "y",
        "dev_y",
        "strengths",
        "parameter",
        "holdout",
        "refit",
        "warm_start",
        "forget",
        "callbacks",
    }
    assert set(inspect.signature(regularization_path).parameters) == known


def test_each_step_starts_from_the_previous_weights() -> None:
    """Each step makes three iterations from the last weights, not from zero. The given tagger is unchanged."""
    given = crf(max_iter=3, l2=7.0)
    found = path(given)
    assert [bits(step.tagger) for step in found] == [bits(tagger) for tagger in chained([1.0, 0.1])]
    assert [step.iterations for step in found] == [3, 3]
    assert not hasattr(given, "model_")
    assert given.l2 == 7.0
    for step in found:
        assert step.report == evaluate(DEV_Y, step.tagger.predict(DEV))
        assert step.score == step.tagger.score(DEV, DEV_Y)
        assert step.tagger.get_params()["max_iter"] == 3


@pytest.mark.parametrize(
    ("learner", "parameter", "order"),
    [
        ("crf", "l2", [3.0, 1.0, 0.5]),
        ("crf", "l1", [3.0, 1.0, 0.5]),
        ("memm", "l2", [3.0, 1.0, 0.5]),
        ("mira", "C", [0.5, 1.0, 3.0]),
        ("pa", "C", [0.5, 1.0, 3.0]),
        ("hmsvm", "C", [0.5, 1.0, 3.0]),
    ],
)
def test_strengths_are_sorted_from_the_strongest(learner: str, parameter: str, order: list[float]) -> None:
    """Strengths are sorted from any order, without duplicates."""
    tagger = LEARNERS[learner](features="S1")
    found = path(tagger, strengths=[1.0, 3.0, 0.5, 1.0], parameter=parameter)
    assert [step.strength for step in found] == order
    assert found.parameter == parameter
    assert [getattr(step.tagger, parameter) for step in found] == order
    if learner == "crf":
        # each is the optimum of its own strength
        deep = path(crf(max_iter=300, tol=1e-9), strengths=order, parameter=parameter)
        for step in deep:
            cold = crf(max_iter=300, tol=1e-9, **{parameter: step.strength}).fit(X, Y)
            assert step.tagger.objective_ == pytest.approx(cold.objective_, rel=1e-4)


def test_default_strengths_are_three_per_decade() -> None:
    """The default strengths run from 10 to 0.01."""
    assert STRENGTHS == (10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
    found = regularization_path(crf(max_iter=1), X, DEV, y=Y, dev_y=DEV_Y)
    assert [step.strength for step in found] == list(STRENGTHS)
    for wrong, message in (([], "at least one"), ([-1.0], r"^l2=-1")):
        with pytest.raises(tw.exceptions.ParameterError, match=message):
            path(strengths=wrong)
    with pytest.raises(tw.exceptions.ParameterError, match="no parameter 'nonsense'"):
        path(parameter="nonsense")


@pytest.mark.parametrize(
    ("share", "kept"), [(0.1, 7), (0.25, 6), (0.5, 4), (0.9, 1), (0.01, 7), (0.99, 1), (0.3, 6), (0.32, 5)]
)
def test_last_sentences_are_held_out(share: float, kept: int) -> None:
    """The last sentences are held out, rounded to the nearest number, with at least one on either side."""
    parts = hold_out(X, Y, share)
    assert parts == (X[:kept], Y[:kept], X[kept:], Y[kept:])
    whole = tw.Corpus.from_lists(X, Y)
    train, no_y, dev, no_dev_y = hold_out(whole, None, share)
    assert (train.tokens, dev.tokens, no_y, no_dev_y) == (X[:kept], X[kept:], None, None)
    found = path(dev=None, dev_y=None, holdout=share)
    for step, tagger in zip(found, held(kept)):
        assert bits(step.tagger) == bits(tagger)
        assert step.score == tagger.score(X[kept:], Y[kept:])


def held(kept: int) -> list[tw.Tagger]:
    first = crf(l2=1.0).fit(X[:kept], Y[:kept])
    return [first, crf(l2=0.1).fit(X[:kept], Y[:kept], warm_start=first)]


def test_held_out_share_is_checked_and_defaults_to_a_tenth() -> None:
    """A share of 0 or 1 is an error. The default holds out one of eight sentences."""
    for share in (0.0, 1.0, -0.1, 2.0):
        with pytest.raises(tw.exceptions.ParameterError, match="holdout"):
            path(dev=None, dev_y=None, holdout=share)
    usual = path(dev=None, dev_y=None)
    assert [bits(step.tagger) for step in usual] == [bits(tagger) for tagger in held(7)]
    assert inspect.signature(regularization_path).parameters["holdout"].default == 0.1


def test_refit_trains_the_best_step_on_all_sentences() -> None:
    """With a held-out part the best step is refitted from its weights. Other steps and the scores do not change."""
    plain, again = (path(dev=None, dev_y=None, holdout=0.5, refit=flag) for flag in (False, True))
    best = plain.best
    wanted = crf(l2=best.strength).fit(X, Y, warm_start=best.tagger)
    assert bits(again.best.tagger) == bits(wanted)
    assert again.best.strength == best.strength
    assert [step.report for step in again] == [step.report for step in plain]
    for old, new in zip(plain, again):
        assert (bits(old.tagger) == bits(new.tagger)) is (old.strength != best.strength)
    # with a separate dev set there is nothing more to train on
    assert [bits(step.tagger) for step in path(refit=True)] == [bits(step.tagger) for step in path()]


def test_labels_of_the_warm_start_are_kept_in_all_steps_or_none() -> None:
    """Labels of the warm start stay in all steps, or in none."""
    start = crf(l2=1.0).fit([["old"]], [["OLD"]])
    assert all("OLD" in step.tagger.classes_ for step in path(warm_start=start))
    assert not any("OLD" in step.tagger.classes_ for step in path(warm_start=start, forget=True))


def test_warm_start_applies_to_the_first_step_only() -> None:
    """The other steps start from the step before, as usual."""
    start = crf(max_iter=9, l2=0.01).fit(X, Y)
    found = path(warm_start=start)
    assert [bits(step.tagger) for step in found] == [bits(t) for t in chained([1.0, 0.1], start=start)]
    assert bits(found[0].tagger) != bits(path()[0].tagger)


def test_progress_is_reported_per_step() -> None:
    """Steps are reported in order, each before the next begins."""
    seen: list[PathStep] = []
    found = path(callbacks=[seen.append])
    assert seen == list(found)


def test_corpora_replace_lists() -> None:
    """Corpora replace lists in both parts."""
    whole, dev = tw.Corpus.from_lists(X, Y), tw.Corpus.from_lists(DEV, DEV_Y)
    found = regularization_path(crf(), whole, dev, strengths=[1.0, 0.1])
    assert [(bits(s.tagger), s.score) for s in found] == [(bits(s.tagger), s.score) for s in path()]


def test_learners_without_warm_start_train_each_step_separately() -> None:
    """Each step of a Hidden Markov SVM, and the refit on all sentences, is a separate training."""
    svm = tw.HMSVM(features="S1", max_iter=3)
    for step in path(svm, strengths=[3.0, 0.1], parameter="C"):
        assert bits(step.tagger) == bits(tw.HMSVM(features="S1", max_iter=3, C=step.strength).fit(X, Y))
    (step,) = path(svm, dev=None, dev_y=None, strengths=[2.0], parameter="C", refit=True)
    assert bits(step.tagger) == bits(tw.HMSVM(features="S1", max_iter=3, C=2.0).fit(X, Y))
    with pytest.raises(tw.exceptions.ParameterError, match="Leave warm_start out"):
        path(svm, strengths=[2.0], parameter="C", warm_start=crf().fit(X, Y))


def test_missing_strengths_and_single_sentences_are_rejected() -> None:
    """The error names the missing parameter, or the number of sentences that a path needs."""
    with pytest.raises(tw.exceptions.ParameterError, match="l2"):
        path(tw.Perceptron())
    with pytest.raises(tw.exceptions.CorpusError, match="two training sentences"):
        regularization_path(crf(), X[:1], y=Y[:1])


def test_path_table_has_one_row_per_strength() -> None:
    """A row has the score in percent, nonzero weights, objective, iterations and seconds."""
    found = path()
    lines = [line.replace("│", " ").replace("|", " ").split() for line in str(found).splitlines()]
    for step in found:
        tagger = step.tagger
        figures = [f"{tagger.n_nonzero_:,}", f"{tagger.objective_:,.2f}", "3", f"{step.seconds:.1f}"]
        assert [f"{step.strength:g}", f"{100 * step.score:.2f}", *figures] in lines


class Scored:
    """A minimal report."""

    def __init__(self, score: float) -> None:
        self.score = self.accuracy = score


@pytest.mark.parametrize(
    ("parameter", "strengths", "scores", "best"),
    [
        ("l2", [10.0, 1.0, 0.1], [0.5, 0.7, 0.6], 1.0),
        ("l2", [10.0, 1.0, 0.1], [0.7, 0.7, 0.6], 10.0),  # of equal scores the stronger
        ("l2", [10.0, 1.0, 0.1], [0.6, 0.7, 0.7], 1.0),
        ("C", [0.1, 1.0, 10.0], [0.6, 0.7, 0.7], 1.0),
    ],
)
def test_best_step_prefers_the_stronger_of_equal_scores(
    parameter: str, strengths: list[float], scores: list[float], best: float
) -> None:
    """The best step has the highest score. Of equal scores the stronger wins: smaller C, larger l1 or l2."""
    tagger: Any = crf().fit(X, Y)
    report: Any = [Scored(score) for score in scores]
    steps = [PathStep(value, tagger, report[i], 1, 0.0) for i, value in enumerate(strengths)]
    found = RegularizationPath(parameter, steps)
    assert found.best.strength == best
    assert (len(found), found[0], list(found)) == (3, steps[0], steps)
