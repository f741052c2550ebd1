"""Tests of dual ascent: the certificate bounds the optimum, and the weights belong to the dual point."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

import tagwise as tw
from tagwise import _core
from tagwise.base.exceptions import ParameterError
from tagwise.base.progress import TrainingProgress
from tagwise.cli.train import summary
from tagwise.estimators import regularization_path
from tagwise.learners import gradient
from tagwise.learners.dual import Ascent, DualPoint, steps
from tagwise.learners.loop import Iteration, Result, Stopping
from tagwise.learners.problem import Problem

from .corpora import Corpus, random_corpus
from .paths import forced
from .reference import dual as twin
from .reference.optimum import newton, paths_of

SIMD = ("", "avx2", "baseline")
#: Number of sentences from which visits are made in groups.
TOGETHER = 512


def dual(corpus: Corpus, l2: float = 0.5, **options: object) -> _core.Dual:
    return _core.Dual(corpus.data, corpus.layout, l2, **options)


def trained(
    corpus: Corpus, optimizer: str, l2: float, tol: float = 1e-5, n_jobs: int = 1, **more: object
) -> Result:
    problem = Problem(corpus.data, corpus.layout, "log", **more)
    start = np.zeros(len(corpus.layout))
    stopping = Stopping(500, tol, 10, 0)
    return gradient.train(problem, start, stopping, optimizer=optimizer, l2=l2, n_jobs=n_jobs)


def test_reference_gap_closes_at_newtons_optimum():
    corpus = random_corpus(3, 3, n=4, longest=3)
    places = np.array(corpus.places())
    sentences = [paths_of(x, y, corpus.labels, places) for x, y in zip(corpus.X, corpus.gold)]
    found = twin.ascent(sentences, np.ones(4), 0.5, 60)
    best, _ = newton(sentences, "log", 0.5, len(corpus.layout))
    assert all(d <= best + 1e-9 <= p + 2e-9 for p, d in found)
    assert all(after >= before - 1e-9 for (_, before), (_, after) in itertools.pairwise(found))
    assert found[-1] == pytest.approx((best, best), rel=1e-6)


@pytest.mark.parametrize(("code_path", "together"), [*((code_path, False) for code_path in SIMD), ("", True)])
@pytest.mark.parametrize("l2", [0.1, 1.0, 10.0])
def test_certificate_bounds_the_enumerated_optimum(l2, code_path, together):
    for seed in range(4):
        corpus = random_corpus(seed, 2 + seed % 2, n=5, longest=4, valued=seed % 2 == 1)
        places = np.array(corpus.places())
        sentences = [paths_of(x, y, corpus.labels, places) for x, y in zip(corpus.X, corpus.gold)]
        best, w = newton(sentences, "log", l2, len(corpus.layout))
        with forced(code_path):
            ascent = dual(corpus, l2)
            gaps = []
            for _ in range(60):
                ascent.epoch(0, 2, together)
                primal, below = ascent.certificate()
                assert below <= best * (1 + 1e-10)
                assert best <= primal * (1 + 1e-10)
                assert primal == pytest.approx(ascent.primal(), rel=1e-6)
                gaps.append((primal - below) / primal)
        assert gaps[-1] < gaps[0]
        assert together or min(gaps) < (1e-4 if l2 >= 1.0 else 1e-3)
        if min(gaps) < 1e-5:
            assert ascent.weights() == pytest.approx(w, abs=2e-2)


@pytest.mark.parametrize("code_path", SIMD)
@pytest.mark.parametrize(("labels", "l2"), [(3, 0.1), (9, 0.01), (20, 0.1)])
def test_certificate_chains_have_the_stored_marginals(labels, l2, code_path):
    corpus = random_corpus(7, labels, n=60, longest=12)
    with forced(code_path):
        ascent = dual(corpus, l2)
        for _ in range(10):
            ascent.epoch()
            off = (ascent.terms()[3] - 2 * l2 * ascent.weights())[: corpus.layout.n_node]
            assert np.abs(off).max() < 5e-6 * corpus.data.n_tokens  # a single round of scaling leaves up to 1


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("labels", [3, 17, 40])
def test_weights_belong_to_the_dual_point(labels, together):
    """w = 1/(2 l2) sum_i s_i (F(y_i) - F(mu_i)), after any number of epochs."""
    corpus = random_corpus(labels, labels, n=25, valued=True)
    s = np.random.default_rng(0).uniform(0.0, 3.0, 25)
    s[3] = 0.0
    ascent = dual(corpus, 0.7, sample_weight=s)
    for _ in range(3):
        ascent.epoch(1, 2, together)
        _, nodes, pairs, _, _ = ascent.state()
        nodes = nodes.reshape(corpus.data.n_tokens, -1)
        pairs = pairs.reshape(len(corpus.gold), -1)
        assert nodes[:, labels:].max(initial=0.0) == 0.0
        assert nodes.sum(axis=1) == pytest.approx(np.ones(len(nodes)), abs=1e-5)
        want, begin = np.zeros(len(corpus.layout)), 0
        edges = corpus.layout.arrays()["edges"].astype(int)
        for i, gold in enumerate(corpus.gold):
            mu = np.eye(labels)[list(gold)] - nodes[begin : begin + len(gold), :labels]
            begin += len(gold)
            block = np.zeros((labels, labels))
            for a, b in itertools.pairwise(gold):
                block[a, b] += 1.0
            block.ravel()[edges] -= pairs[i]
            node = corpus.X[i].T @ mu
            flat = np.concatenate([node.ravel(), block.ravel(), mu[0], mu[-1]])
            want += s[i] * flat[np.array(corpus.places())] / (2 * 0.7)
        assert ascent.weights() == pytest.approx(want, abs=1e-4 * max(1.0, np.abs(want).max()))


@pytest.mark.parametrize("l2", [0.3, 3.0])
@pytest.mark.parametrize("labels", [2, 9, 20])
def test_all_optimisers_reach_the_same_optimum(labels, l2):
    corpus = random_corpus(labels, labels, n=30, longest=12, valued=labels == 9)
    weights = np.random.default_rng(1).uniform(0.0, 2.0, 30)
    allowed = np.ones((2, labels), dtype=bool)
    which = np.zeros(corpus.data.n_tokens, dtype=np.uint32)
    if labels > 2:
        allowed[1, 0] = False
        which[np.concatenate(corpus.gold) != 0] = 1
    more = {"sample_weight": weights, "allowed": (allowed, which)}
    ours, other = (trained(corpus, name, l2, 1e-9, **more) for name in ("dual", "lbfgs"))
    assert ours.objective == pytest.approx(other.objective, rel=1e-6)
    certified = trained(corpus, "dual", l2, 1e-3, **more)
    assert certified.objective <= other.objective * (1 + 1e-3)
    if l2 > 1.0:
        assert "certified" in certified.reason
        assert certified.history[-1]["gap"] <= 1e-3
        assert all(entry.get("dual", 0.0) <= other.objective for entry in certified.history)


def test_forbidden_edges_are_excluded_in_training():
    corpus = random_corpus(5, 4, n=20, longest=6)
    seen = {(a, b) for gold in corpus.gold for a, b in itertools.pairwise(gold)}
    forbidden = np.array(
        [a * 4 + b for a in range(4) for b in range(4) if (a, b) not in seen], dtype=np.uint32
    )
    if not len(forbidden):
        pytest.skip("all pairs occur")
    free = trained(corpus, "dual", 1.0)
    ruled = trained(corpus, "dual", 1.0, forbidden=forbidden)
    assert ruled.objective < free.objective
    assert ruled.objective == pytest.approx(
        trained(corpus, "lbfgs", 1.0, 1e-9, forbidden=forbidden).objective, rel=2e-5
    )


@pytest.mark.parametrize("together", [False, True])
def test_results_are_bit_identical_for_any_threads(together, monkeypatch):
    monkeypatch.setenv("TAGWISE_MOST_THREADS", "4")
    corpus = random_corpus(8, 7, n=60)
    found = []
    for n_jobs in (1, 2, 3, 4, 2, 1):
        ascent = dual(corpus)
        values = []
        for _ in range(4):
            ascent.epoch(5, n_jobs, together)
            values += [ascent.primal(n_jobs), *ascent.certificate(n_jobs)]
        found.append((values, ascent.weights().tobytes()))
    assert all(one == found[0] for one in found)
    other = dual(corpus)
    other.epoch(6)
    other.epoch(6)
    same = dual(corpus)
    same.epoch(5)
    same.epoch(5)
    assert not np.array_equal(other.weights(), same.weights())  # the seed has an effect


def test_concurrent_ascents_share_the_thread_pool(monkeypatch):
    """An ascent that finds no free thread in the pool runs alone, with the same bits."""
    monkeypatch.setenv("TAGWISE_MOST_THREADS", "4")
    corpus = random_corpus(8, 7, n=60)

    def weights(_: int) -> bytes:
        ascent = dual(corpus)
        for _ in range(20):
            ascent.epoch(5, 2, True)
        return ascent.weights().tobytes()

    with ThreadPoolExecutor(6) as threads:
        assert set(threads.map(weights, range(12))) == {weights(0)}


def test_parallel_visits_make_the_steps_of_single_visits():
    """The first two visits of an epoch start from 0, and each makes the step that it would make alone."""
    corpus = random_corpus(2, 4, n=2)
    one = dual(corpus)
    one.epoch(0, 2, True)
    for i in range(2):
        alone = dual(corpus, sample_weight=np.eye(2)[i])
        alone.epoch(0)
        begin, end = corpus.data.offsets[i : i + 2]
        ours, other = (d.state()[1].reshape(corpus.data.n_tokens, -1)[begin:end] for d in (one, alone))
        assert ours.tobytes() == other.tobytes()
    after = dual(corpus)
    after.epoch(0)
    assert after.weights().tobytes() != one.weights().tobytes()


@pytest.mark.parametrize("l2", [1.0, 10.0])
def test_equal_sentences_in_a_group_do_not_overshoot(l2):
    """All visits of a group make the same step at once, and the objective must still decrease."""
    x, y = [f"w{i % 3}" for i in range(40)], ["AB"[i % 2] for i in range(40)]
    options = {"features": "S3", "l2": l2, "max_iter": 300}
    ours = tw.CRF(optimizer="dual", tol=1e-5, **options).fit([x] * TOGETHER, [y] * TOGETHER)
    other = tw.CRF(optimizer="lbfgs", tol=1e-9, **options).fit([x] * TOGETHER, [y] * TOGETHER)
    assert "certified" in ours.stopped_
    assert ours.objective_ == pytest.approx(other.objective_, rel=1e-5)


def test_resumed_state_is_bit_identical():
    corpus = random_corpus(9, 6, n=40)
    whole, first = dual(corpus), dual(corpus)
    for _ in range(5):
        whole.epoch(3)
    first.epoch(3)
    first.epoch(3)
    second = dual(corpus)
    second.restore(*first.state())
    for _ in range(3):
        second.epoch(3)
    assert second.weights().tobytes() == whole.weights().tobytes()
    assert second.certificate() == whole.certificate()
    with pytest.raises(ValueError, match="other data"):
        dual(random_corpus(1, 3, n=5)).restore(*first.state())


def test_dev_scores_request_more_evaluations():
    """Both have the same epochs and equal objectives where both evaluate. A dev score requests more evaluations."""
    corpus = random_corpus(5, 4, n=60)
    few, many = (
        {
            step.evaluations: step.value
            for step in steps(Ascent(dual(corpus, 0.3), 1, 0), 1e-6, frequent_steps=frequent_steps)
        }
        for frequent_steps in (False, True)
    )
    assert len(many) > len(few)
    assert {n: many[n] for n in few if n in many} == {n: few[n] for n in few if n in many}
    train, dev, _ = (part[:250] for part in tw.load_corpus("wnut17-ner"))
    plain, scored = (
        tw.CRF(features="S1", l2=1.0, tol=1e-4, optimizer="dual").fit(train, **given)
        for given in ({}, {"dev": dev})
    )
    assert len(scored.history_) > len(plain.history_)


def test_resumed_flat_ascent_hands_over_to_lbfgs():
    """A flat ascent that is saved and resumed ends like the original: L-BFGS continues from the same weights."""
    corpus = random_corpus(5, 4, n=30)
    ascent = Ascent(dual(corpus, 1.0), 1, 0, switches_early=True)
    whole = list(steps(ascent, 1e-9))
    assert ascent.is_flat
    assert len(whole) > 2
    again = Ascent(dual(corpus, 1.0), 1, 0, ascent.state(), switches_early=True)
    assert [step.value for step in steps(again, 1e-9)] == [whole[-1].value]


def test_certificates_rescale_earlier_gap_estimates():
    """Estimates of earlier epochs are rescaled by the measured share, so the rate does not change."""
    corpus = random_corpus(9, 6, n=40)
    ascent = Ascent(dual(corpus), 1, 0)
    distances = [ascent.core.epoch(0)[2] for _ in range(8)]
    ascent.gaps = [ascent.share * distance for distance in distances]
    before = list(ascent.gaps)
    value = ascent.certify(distances[-1])
    factor = (value - ascent.bound) / before[-1]
    assert factor != pytest.approx(1.0, rel=0.05)
    assert ascent.gaps == pytest.approx([factor * gap for gap in before], rel=1e-9)


def test_dual_point_is_valid_for_other_penalties():
    """w(q) is proportional to 1/(2 l2): the same q at l2' has (l2 / l2') w, and bounds the optimum there."""
    corpus = random_corpus(11, 5, n=40)
    problem = Problem(corpus.data, corpus.layout, "log")
    best = trained(corpus, "lbfgs", 0.2, tol=1e-9).objective
    first, point = Ascent(dual(corpus, 2.0), 1, 0), DualPoint()
    for _ in range(8):
        first.core.epoch(0)
    point.keep(problem.digest, 2.0, first)
    core = dual(corpus, 0.2)
    assert point.at("of other data", 0.2, core) is None
    state = point.at(problem.digest, 0.2, core)
    second = Ascent(core, 1, 0, state)
    assert core.weights() == pytest.approx(10.0 * first.core.weights(), rel=1e-6, abs=1e-12)
    primal, bound = core.certificate()
    assert bound <= best * (1.0 + 1e-6) <= primal * (1.0 + 2e-6)
    end = list(itertools.islice(steps(second, 1e-4), 60))[-1]
    assert end.value == pytest.approx(best, rel=1e-3)
    assert end.dual <= best * (1.0 + 1e-6)


def test_path_warm_starts_from_dual_points():
    """Every strength is certified with its own optimum, in fewer epochs than from the gold labels."""
    train = tw.load_corpus("wnut17-ner")[0][:220]
    tagger = tw.CRF(features="S2", tol=1e-3)
    found = regularization_path(tagger, train, train[:10], strengths=[3.0, 1.0, 0.3])
    alone = [tw.CRF(features="S2", tol=1e-3, l2=step.strength).fit(train) for step in found]
    for step, cold in zip(found, alone):
        assert "certified" in step.tagger.stopped_
        assert step.tagger.objective_ == pytest.approx(cold.objective_, rel=1e-3)
        assert step.tagger._point is None
    epochs = [
        sum(tagger.history_[-1]["evaluations"] for tagger in some[1:])
        for some in ([step.tagger for step in found], alone)
    ]
    assert epochs[0] < epochs[1]


def test_unsupported_parameters_are_rejected():
    X, y = [["a", "b"]], [["A", "B"]]
    for params in ({"loss": "exp"}, {"l2": 0.0}, {"order": 2}, {"class_weight": 2.0}, {"partial": True}):
        with pytest.raises(ParameterError, match="does not support"):
            tw.CRF(features="S1", optimizer="dual", **params).fit(X, y)
    with pytest.raises(ParameterError, match="l1"):
        tw.CRF(features="S1", optimizer="dual", l1=1.0).fit(X, y)
    for l2 in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="l2 > 0"):
            dual(random_corpus(1, 3, n=5), l2)


def test_small_penalties_and_tolerances_fall_back_to_lbfgs():
    corpus = random_corpus(4, 3, n=40, longest=10)
    slow = trained(corpus, "dual", 1e-4, 1e-6)
    assert "certified" not in slow.reason
    best = trained(corpus, "lbfgs", 1e-4, 1e-10)
    assert slow.objective == pytest.approx(best.objective, rel=1e-3)
    fine = trained(corpus, "dual", 1.0, 1e-10)
    assert fine.objective == pytest.approx(trained(corpus, "lbfgs", 1.0, 1e-12).objective, rel=1e-7)
    assert "certified" in fine.reason  # by the gradient of L-BFGS, which continues dual ascent
    assert fine.history[-1]["dual"] == max(entry.get("dual", 0.0) for entry in fine.history) <= fine.objective


def test_certificate_is_in_file_log_and_summary(tmp_path, caplog):
    train, _, _ = tw.load_corpus("wnut17-ner")
    with caplog.at_level("INFO", logger="tagwise"):
        tagger = tw.CRF(features="S1", l2=3.0, tol=1e-3, verbose=1).fit(train[:220])
    last = tagger.history_[-1]
    assert tagger.stopped_ == f"tol={tagger.tol:g}: certified within {last['gap']:.1e} of the optimum"
    assert last["gap"] == pytest.approx((last["objective"] - last["dual"]) / last["objective"])
    assert f"gap {last['gap']:.3g}" in caplog.messages[-1]
    tagger.save(tmp_path / "m.tagwise")
    line = summary(tagger, train, str(tmp_path / "m.tagwise"), 0.1)
    assert f"Training ended by {tagger.stopped_}" in line
    with pytest.importorskip("sklearn").config_context(display="text"):
        assert f">{last['gap']:.1e}</td>" in tagger._repr_html_()
    kept = tw.load(tmp_path / "m.tagwise").model_.meta["metrics"]
    assert (kept["dual"], kept["gap"]) == (last["dual"], last["gap"])
    progress = TrainingProgress(Console(file=StringIO()), "x")
    seen = []
    progress.update = lambda *shown: seen.append(shown)
    progress(Iteration(3, 9, 120.0, 0.02, None, 0.1, 4, 117.6, 0.02))
    progress(Iteration(4, 9, 120.0, 0.02, None, 0.1, 5))
    assert [state for _, _, state in seen] == ["objective 120.00  gap 2e-02", "objective 120.00"]
