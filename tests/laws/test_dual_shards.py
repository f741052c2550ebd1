"""Tests of dual ascent over shards: parallel parts reach the common optimum, with bits independent of the workers."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.learners import dual
from tagwise.learners.sharded.config import LocalParts
from tagwise.learners.sharded.dual import SWEEPS, DualConfig, DualShards, PartSet

from .corpora import Corpus, random_corpus
from .parameters.rows import names, problem
from .reference import dual as twin
from .reference.optimum import newton, paths_of

PARTS = (1, 2, 5)
CORPUS = random_corpus(3, 3, n=5, longest=3)


def cut(n: int, parts: int) -> list[range]:
    """Split n neighbours into parts."""
    return [range(n * i // parts, n * (i + 1) // parts) for i in range(parts)]


def paths(corpus: Corpus) -> list[Any]:
    places = np.array(corpus.places())
    return [paths_of(x, y, corpus.labels, places) for x, y in zip(corpus.X, corpus.gold)]


@pytest.mark.parametrize("parts", [1, 2])
def test_reference_gap_closes_at_newtons_optimum(parts: int) -> None:
    """The gap closes in any number of parts, and D never decreases."""
    corpus = random_corpus(3, 3, n=5, longest=3)
    sentences = paths(corpus)
    found = twin.rounds(sentences, np.ones(5), 0.5, cut(5, parts), parts, 60 * parts)
    best, _ = newton(sentences, "log", 0.5, len(corpus.layout))
    assert all(d <= best + 1e-9 <= p + 2e-9 for p, d in found)
    assert all(after >= before - 1e-9 for (_, before), (_, after) in itertools.pairwise(found))
    assert found[-1] == pytest.approx((best, best), rel=1e-6)


def test_equal_parts_need_scaled_steps() -> None:
    """With the same sentence in every part, unscaled sums of steps overshoot the optimum and oscillate."""
    corpus = random_corpus(3, 3, n=1, longest=3)
    sentences = paths(corpus) * 6
    alone, safe = (twin.rounds(sentences, np.ones(6), 0.1, cut(6, 6), sigma, 12) for sigma in (1.0, 6.0))
    assert all(after >= before - 1e-9 for (_, before), (_, after) in itertools.pairwise(safe))
    assert any(after < before for (_, before), (_, after) in itertools.pairwise(alone))


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> tw.Shards:
    """Return some shards of short sentences with three labels."""
    folder = tmp_path_factory.mktemp("rounds")
    rng = np.random.default_rng(5)
    words = [[f"w{int(w)}" for w in rng.zipf(1.7, int(n)) % 25] for n in rng.integers(1, 5, 40)]
    labels = [["ABC"[(len(w) + ord(w[-1]) + int(rng.random() < 0.2)) % 3] for w in one] for one in words]
    tw.write(tw.Corpus.from_lists(words, labels), folder / "a.conll", "conll")
    made = tw.encode(folder / "a.conll", folder / "enc", features="word[-1..1]\n", shard_tokens=10)
    assert len(made) >= 8
    return made


def of_shards(shards: tw.Shards) -> Corpus:
    """Return the sentences of all shards as dense matrices."""
    layout, X, gold = shards.layout(), [], []
    for k in range(len(shards)):
        data = shards.dataset(k)
        ptr, ids, _ = data.node()
        rows = np.zeros((data.n_tokens, layout.n_attributes))
        for t in range(data.n_tokens):
            rows[t, ids[int(ptr[t]) : int(ptr[t + 1])]] = 1.0
        for begin, end in itertools.pairwise(data.offsets.astype(int)):
            X.append(rows[begin:end])
            gold.append(tuple(int(y) for y in data.gold[begin:end]))
    return Corpus(shards.dataset(0), layout, X, [], gold, layout.n_labels)


def ascent(shards: tw.Shards, parts: int, l2: float = 0.5, memory: int | None = None) -> DualShards:
    config = DualConfig(shards.layout(), parts, l2=l2)
    return DualShards(config, LocalParts(shards, config, memory))


@pytest.mark.parametrize("parts", PARTS)
def test_certificate_bounds_the_enumerated_optimum(shards: tw.Shards, parts: int) -> None:
    corpus = of_shards(shards)
    best, w = newton(paths(corpus), "log", 0.5, len(corpus.layout))
    found, gaps = ascent(shards, parts), []
    for _ in range(50 * parts):
        tokens, failed, distance = found.epoch(0)
        assert tokens > 0
        assert (failed, distance > 0.0) == (0, True)
        primal, below = found.certificate()
        assert below <= best * (1 + 1e-10)
        assert best <= primal * (1 + 1e-10)
        assert primal == pytest.approx(found.primal(), rel=1e-6)
        gaps.append((primal - below) / primal)
    assert min(gaps) < 1e-4
    assert found.weights() == pytest.approx(w, abs=2e-2)


@pytest.mark.parametrize("parts", PARTS)
def test_weights_belong_to_the_dual_points_of_all_parts(shards: tw.Shards, parts: int) -> None:
    """w = 1/(2 l2) sum_i (F(y_i) - F(mu_i)) over the points of all parts, after any number of rounds."""
    corpus, l2 = of_shards(shards), 0.7
    found, edges = ascent(shards, parts, l2), shards.layout().arrays()["edges"].astype(int)
    for _ in range(3):
        found.epoch(1)
        _, nodes, pairs, _, _ = found.state()
        mu = np.concatenate([rows.reshape(-1, 16) for rows in nodes])[:, : corpus.labels]
        moves = np.concatenate([rows.reshape(-1, len(edges)) for rows in pairs])
        want, begin = np.zeros(len(corpus.layout)), 0
        for i, gold in enumerate(corpus.gold):
            d = np.eye(corpus.labels)[list(gold)] - mu[begin : begin + len(gold)]
            begin += len(gold)
            block = np.zeros((corpus.labels, corpus.labels))
            for a, b in itertools.pairwise(gold):
                block[a, b] += 1.0
            block.ravel()[edges] -= moves[i]
            flat = np.concatenate([(corpus.X[i].T @ d).ravel(), block.ravel(), d[0], d[-1]])
            want += flat[np.array(corpus.places())] / (2 * l2)
        assert found.weights() == pytest.approx(want, abs=1e-4 * max(1.0, np.abs(want).max()))
        assert np.abs(want).max() > 0.1


def test_certificate_follows_from_its_terms() -> None:
    """P and P - D of one training set follow from its loss, its divergence and its feature residuals."""
    corpus = random_corpus(6, 18, n=30, valued=True)
    core = _core.Dual(corpus.data, corpus.layout, 0.4, sample_weight=np.linspace(0.0, 2.0, 30))
    w = (
        np.random.default_rng(0)
        .normal(scale=0.3, size=len(corpus.layout))
        .astype(np.float32)
        .astype(np.float64)
    )
    for given in (None, w):
        core.epoch(0)
        if given is not None:
            core.set_weights(given)
            np.testing.assert_array_equal(core.weights(), given)
        loss, divergence, slack, observed = core.terms()
        at = core.weights()
        off = at - observed / 0.8
        primal = loss + 0.4 * at @ at
        found = (primal, primal - divergence - 0.4 * off @ off)
        assert found == pytest.approx(core.certificate(), rel=1e-9)
        assert core.certificate() == _core.dual_bounds(at, 0.4, loss, divergence, slack, observed)
        assert np.abs(observed).max() > 1e-3
        assert 0.0 < slack < 1e-8
        assert core.loss() == pytest.approx(loss, rel=1e-6)
    with pytest.raises(ValueError, match="features"):
        core.set_weights(w[1:])


def test_results_are_bit_identical_for_threads_and_files(shards: tw.Shards) -> None:
    found = []
    for memory, n_jobs in ((None, 1), (None, 2), (None, 4), (0, 2)):
        one = ascent(shards, 5, memory=memory)
        values = [(one.epoch(3, n_jobs), one.primal(n_jobs), one.certificate(n_jobs)) for _ in range(3)]
        found.append((values, one.weights().tobytes()))
    assert all(one == found[0] for one in found)
    other = ascent(shards, 5)
    for _ in range(3):
        other.epoch(4)
    assert other.weights().tobytes() != found[0][1]  # the seed has an effect


def test_arrays_are_paged_to_files_if_memory_is_short(tmp_path: Path) -> None:
    tw.write(tw.load_corpus("wnut17-ner")[0][:300], tmp_path / "a.conll", "conll")
    shards = tw.encode(tmp_path / "a.conll", tmp_path / "enc", features="S2", shard_tokens=2000)
    config = DualConfig(shards.layout(), 2)
    assert PartSet(shards, config, range(2), None).paged == 0
    needed = config.bytes_each(shards) * shards.manifest["node_attributes"]
    paged = PartSet(shards, config, range(2), 1000).paged
    assert 0.3 * needed < paged < 2.0 * needed


@pytest.mark.parametrize("parts", [1, 3])
def test_resumed_state_is_bit_identical(shards: tw.Shards, parts: int) -> None:
    whole, first, second = (ascent(shards, parts) for _ in range(3))
    for _ in range(4):
        whole.epoch(2)
    first.epoch(2)
    second.restore(*first.state())
    assert second.epochs == 1
    for _ in range(3):
        second.epoch(2)
    assert second.weights().tobytes() == whole.weights().tobytes()
    assert second.certificate() == whole.certificate()


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> tw.Shards:
    """Return enough sentences for a measurable decrease of the gap per round."""
    folder = tmp_path_factory.mktemp("larger")
    tw.write(tw.load_corpus("wnut17-ner")[0][:300], folder / "a.conll", "conll")
    return tw.encode(folder / "a.conll", folder / "enc", features="S1", shard_tokens=1000)


SPREAD = problem(4, [4, 2, 3, 5, 2, 4, 3, 4])
SETTINGS: dict[str, Any] = {"optimizer": "dual", "l2": 2.0, "tol": 1e-3}


def bits(tagger: tw.Tagger) -> tuple[float, bytes]:
    return tagger.objective_, tagger.model_.scorer.weights.tobytes()


GIVEN: dict[str, dict[str, Any]] = {
    "plain": {},
    "min_count": {"min_count": 2},
    "rules": {"constraints": {"scheme": "IOB2", "forbidden": [["I-group", None]]}},
    "no ends": {"start_end": False},
}


@pytest.mark.parametrize("name", GIVEN)
def test_training_reaches_the_optimum_of_all_parts(larger: tw.Shards, name: str) -> None:
    given = GIVEN[name]
    best = tw.fit_shards(tw.CRF(optimizer="lbfgs", l2=2.0, tol=1e-9, **given), larger)
    for parts in (1, 3):
        tagger = tw.fit_shards(tw.CRF(**SETTINGS, **given), larger, parts=parts)
        assert best.objective_ <= tagger.objective_ * (1 + 1e-6)
        assert tagger.objective_ <= best.objective_ * (1 + 1e-3)
        assert all(entry.get("dual", 0.0) <= best.objective_ * (1 + 1e-6) for entry in tagger.history_)
        if parts == 1:
            assert "certified" in tagger.stopped_
            assert tagger.history_[-1]["gap"] <= 1e-3


def test_number_of_parts_is_used_and_checked(shards: tw.Shards) -> None:
    given = {**SETTINGS, "max_iter": 3, "tol": 1e-9}
    one, two = (tw.fit_shards(tw.CRF(**given), shards, parts=n) for n in (1, 2))
    assert bits(one) != bits(two)
    assert bits(two) == bits(tw.fit_shards(tw.CRF(**given, n_jobs=1), shards, parts=2))
    with pytest.raises(tw.exceptions.ParameterError, match="number of shards on disk"):
        tw.fit_shards(tw.CRF(**SETTINGS), shards, parts=99)
    with pytest.raises(tw.exceptions.ParameterError, match="trains parts in parallel"):
        tw.fit_shards(tw.CRF(), shards, parts=2)
    with pytest.raises(tw.exceptions.ParameterError, match="does not support l2=0"):
        tw.fit_shards(tw.CRF(**{**SETTINGS, "l2": 0.0}), shards)
    with pytest.raises(tw.exceptions.ParameterError, match="does not support loss='exp'"):
        tw.fit_shards(tw.CRF(**SETTINGS, loss="exp"), shards)


def test_flat_ascent_hands_over_to_lbfgs_if_it_switches_early() -> None:
    """Flat means less than a hundredth in four epochs. Otherwise, or without `switches_early`, ascent continues."""
    for switches_early, values, flat in (
        (True, [[4, 100.0], [8, 99.5]], True),
        (True, [[4, 100.0], [8, 98.0]], False),
        (True, [[6, 100.0], [8, 99.9]], False),
        (True, [[2, 110.0], [6, 100.0], [8, 99.9]], False),
        (True, [[0, 102.0], [8, 101.0]], True),
        (False, [[4, 100.0], [8, 99.5]], False),
        (True, [], False),
    ):
        ascent = dual.Ascent(_core.Dual(CORPUS.data, CORPUS.layout, 1.0), 1, 0, switches_early=switches_early)
        ascent.values = values
        assert ascent.is_flat == flat


def test_slow_ascent_hands_over_to_lbfgs(shards: tw.Shards) -> None:
    best = tw.fit_shards(tw.CRF(optimizer="lbfgs", l2=1e-4, tol=1e-8), shards)
    tagger = tw.fit_shards(tw.CRF(optimizer="dual", l2=1e-4, tol=1e-6), shards, parts=2)
    first, last = tagger.history_[0], tagger.history_[-1]
    assert ("gradient_norm" in first, "gradient_norm" in last) == (False, True)  # of L-BFGS alone
    assert tagger.objective_ == pytest.approx(best.objective_, rel=1e-5)


def test_resumed_run_is_bit_identical(larger: tw.Shards, tmp_path: Path) -> None:
    given = {**SETTINGS, "tol": 1e-9, "max_iter": 6}
    whole = tw.fit_shards(tw.CRF(**given), larger, parts=3)

    keep = {"path": tmp_path / "run.checkpoint", "every": 1}
    stop = [lambda entry: entry.iteration == 3]
    tw.fit_shards(tw.CRF(**given), larger, parts=3, checkpoint=tw.Checkpoint(**keep), callbacks=stop)
    seen: list[int] = []
    with pytest.raises(tw.TagwiseError, match="checkpoint"):
        tw.fit_shards(tw.CRF(**given), larger, parts=2, checkpoint=tw.Checkpoint(**keep, resume=True))
    again = tw.fit_shards(
        tw.CRF(**given),
        larger,
        parts=3,
        checkpoint=tw.Checkpoint(**keep, resume=True),
        callbacks=[lambda entry: seen.append(entry.iteration) or None],
    )
    assert min(seen) > 0
    assert bits(again) == bits(whole)


@pytest.mark.parametrize("in_files", [False, True])
def test_joined_datasets_keep_the_order_of_sentences(tmp_path: Path, in_files: bool) -> None:
    """The result has values if one part has them. A single dataset is unchanged. The files are removed at once."""
    ones, valued = random_corpus(1, 3, n=7), random_corpus(2, 3, n=5, valued=True)
    for parts in ([ones], [ones, valued], [valued, ones], [ones, ones, valued]):
        made = _core.Dataset.joined((part.data for part in parts), tmp_path if in_files else None)
        assert not list(tmp_path.iterdir())
        assert made.gold.tolist() == [y for part in parts for y in part.data.gold.tolist()]
        lengths = [n for part in parts for n in np.diff(part.data.offsets.astype(int)).tolist()]
        assert np.diff(made.offsets.astype(int)).tolist() == lengths
        found = []
        for data in [made, *(part.data for part in parts)]:
            ptr, ids, values = data.node()
            values = values if len(values) else np.ones(len(ids), np.float32)
            found.append([list(zip(ids[a:b], values[a:b])) for a, b in itertools.pairwise(ptr.astype(int))])
        assert found[0] == [row for rows in found[1:] for row in rows]
    for odd in (random_corpus(1, 3, n=4, edge_attributes=True).data, ones.data.cut(2)[0]):
        with pytest.raises(ValueError, match="without edge attributes"):
            _core.Dataset.joined([ones.data, odd])
    with pytest.raises(tw.exceptions.MemoryLimitError, match="cannot move training data to a file"):
        _core.Dataset.joined([ones.data], tmp_path / "missing")


@pytest.mark.parametrize("parts", PARTS)
def test_invalid_sentences_are_reported_by_line(shards: tw.Shards, parts: int) -> None:
    """A forbidden pair in a later shard is reported as by an objective of shards."""
    gold = [tuple(shards.labels[y] for y in one) for one in of_shards(shards).gold]
    first = {}
    for i, one in enumerate(gold):
        for pair in itertools.pairwise(one):
            first.setdefault(pair, i)
    late = max(first, key=lambda pair: first[pair])
    assert first[late] >= shards.sentences(0)
    messages = []
    for optimizer, n in (("lbfgs", 1), ("dual", parts)):
        with pytest.raises(tw.exceptions.TrainingError) as error:
            tw.fit_shards(
                tw.CRF(optimizer=optimizer, constraints={"forbidden": [list(late)]}), shards, parts=n
            )
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert "a.conll" in messages[0]


def test_parts_ascend_independently_and_their_mean_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of n parts ascends like the core with l2 / n."""
    words = [["".join("xo"[int(v > 0)] for v in x) for x in sentence] for sentence in SPREAD.X]
    tw.write(tw.Corpus.from_lists(words, names(SPREAD)), f"{tmp_path}/a.conll", "conll")
    made = tw.encode(f"{tmp_path}/a.conll", f"{tmp_path}/enc", features="word[0]\n", shard_tokens=4)
    layout = made.layout()
    for n in (1, 2, 3):
        w = np.zeros(len(layout))
        for i in range(n):
            part = range(len(made) * i // n, len(made) * (i + 1) // n)
            data = _core.Dataset.joined([made.dataset(k) for k in part])
            core = _core.Dual(data, layout, 0.7 / n, sweeps=SWEEPS)
            core.epoch(5 + i)
            w += core.weights() / n
        given = {"optimizer": "dual", "l2": 0.7, "tol": 0.0, "max_iter": 1, "random_state": 5}
        with monkeypatch.context() as patched:
            patched.setattr(dual, "MOST", 1)
            tagger = tw.fit_shards(tw.CRF(**given), made, parts=n)
        np.testing.assert_allclose(tagger.model_.scorer.weights, w, rtol=1e-5, atol=1e-6)
