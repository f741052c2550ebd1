"""Tests of online learners over shards: a sequential pass equals the corpus in memory, and parts are mixed."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.learners.sharded.config import LocalParts
from tagwise.learners.sharded.engines import ranges
from tagwise.learners.sharded.online import OnlineConfig, OnlineShards, mixed

from .online import corpus, learner, native

SOME = tw.load_corpus("wnut17-ner")[0][:90]
RULES: dict[str, Any] = {
    "perceptron": lambda: _core.Rule("perceptron"),
    "mira": lambda: _core.Rule("mira", k=3),
    "pa": lambda: _core.Rule("pa", limit=0.5),
    "arow": lambda: _core.Rule("arow", gamma=2.0),
}


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> tw.Shards:
    """Return five shards."""
    folder = tmp_path_factory.mktemp("online")
    tw.write(SOME, folder / "a.conll", "conll")
    made = tw.encode(folder / "a.conll", folder / "many", features="S1", shard_tokens=350)
    assert len(made) == 5
    return made


@pytest.fixture(scope="module")
def whole(shards: tw.Shards) -> _core.Dataset:
    """Return all sentences in one dataset."""
    path = shards.path.parent
    return tw.encode(path / "a.conll", path / "one", features="S1", shard_tokens=10**6).dataset(0)


def state_bytes(weights: dict[str, Any]) -> tuple[bytes, ...]:
    return tuple(np.asarray(weights[name]).tobytes() for name in ("weights", "sums", "variance", "steps"))


def visited(shards: tw.Shards, config: OnlineConfig, numbers: range, epoch: int) -> np.ndarray:
    """Return the corpus sentences in the order of a pass over these shards."""
    first = np.cumsum([0, *(shards.sentences(k) for k in range(len(shards)))])
    order = [numbers[i] for i in config.order(len(numbers), epoch, len(shards) + numbers.start)]
    found = [first[k] + config.order(shards.sentences(k), epoch, k) for k in order]
    return np.concatenate(found).astype(np.uint32)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("shuffle", "memory"), [(False, None), (True, None), (True, 1)])
def test_sequential_shards_equal_the_corpus_in_memory(
    shards: tw.Shards, whole: _core.Dataset, rule: str, shuffle: bool, memory: int | None
) -> None:
    """Weights, sums and variances equal those of the sentences in memory in the same order, to the bit."""
    config = OnlineConfig(shards.layout(), rule=RULES[rule], shuffle=shuffle, seed=3)
    ours = OnlineShards(LocalParts(shards, config, memory), config, np.zeros(len(config.layout)))
    theirs = _core.Online(whole, config.layout, RULES[rule]())
    for epoch in range(2):
        order = visited(shards, config, range(len(shards)), epoch)
        assert sorted(order) == list(range(len(SOME)))
        assert ours.epoch() == pytest.approx(theirs.epoch(order), rel=1e-12)
        assert state_bytes(ours.state()) == state_bytes(theirs.state())
        assert ours.weights().tobytes() == theirs.weights().tobytes()
    assert ours.epochs == theirs.epochs == 2
    if shuffle:
        assert visited(shards, config, range(5), 0).tolist() != visited(shards, config, range(5), 1).tolist()


@pytest.mark.parametrize("name", ["perceptron", "mira-5", "arow"])
def test_mixing_equals_that_of_the_core(name: str) -> None:
    """The core's parts are sentences i mod 3. Their mixed states equal its state to the bit."""
    p = corpus(6, 4)
    n = native(p)
    theirs = learner(n, name, shards=3, shuffle=False)
    state: dict[str, Any] = {"weights": np.zeros(len(n.layout)), "steps": 0.0, "epochs": 0}
    for _ in range(3):
        theirs.epoch()
        parts = []
        for s in range(3):
            alone = learner(n, name)
            alone.restore({k: v for k, v in state.items() if k in ("weights", "variance")})
            alone.epoch(np.arange(s, len(p.X), 3, dtype=np.uint32))
            parts.append(alone.state())
        state = mixed(state, parts)
        assert state_bytes(state) == state_bytes(theirs.state())
        assert state["epochs"] == theirs.epochs


@pytest.mark.parametrize("rule", RULES)
def test_mixed_weights_are_the_mean_over_parts(shards: tw.Shards, whole: _core.Dataset, rule: str) -> None:
    """Weights are the mean over parts trained alone, and the average is over all steps of all parts."""
    config = OnlineConfig(shards.layout(), 3, rule=RULES[rule], seed=1)
    begin = np.zeros(len(config.layout))
    ours = OnlineShards(LocalParts(shards, config), config, begin)
    state: dict[str, Any] = {"weights": begin}
    total, steps = np.zeros(len(begin)), 0
    for epoch in range(2):
        ours.epoch()
        found = []
        for part in ranges(len(shards), 3):
            alone = _core.Online(whole, config.layout, RULES[rule]())
            alone.restore(state)
            alone.epoch(visited(shards, config, part, epoch))
            found.append(alone.state())
            total += alone.steps * alone.weights()
            steps += alone.steps
        mean = np.mean([each["weights"] for each in found], axis=0)
        np.testing.assert_allclose(ours.weights(False), mean, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(ours.weights(), total / steps, rtol=1e-5, atol=1e-6)
        state = {
            name: ours.state()[name] for name in ("weights", "variance")
        }  # so that ties are broken alike
    threads = OnlineShards(LocalParts(shards, config, 1), config, begin, n_jobs=2)
    for _ in range(2):
        threads.epoch()
    assert state_bytes(threads.state()) == state_bytes(ours.state())


@pytest.mark.parametrize("kind", [tw.Perceptron, tw.MIRA, tw.PassiveAggressive, tw.AROW])
def test_tagger_of_shards_equals_that_of_the_corpus(shards: tw.Shards, kind: Any) -> None:
    """The tagger equals that of the corpus, with dev scores, both averages, and partial_fit afterwards."""
    settings = {"max_iter": 2, "shuffle": False}
    ours, theirs = kind(**settings), kind(**settings, features="S1")
    tw.fit_shards(ours, shards, dev=SOME[:20])
    theirs.fit(SOME, dev=SOME[:20])
    names = ("objective", "dev_score", "plain_dev_score")
    assert [[e[n] for n in names] for e in ours.history_] == [[e[n] for n in names] for e in theirs.history_]
    assert ours.model_.scorer.weights.tobytes() == theirs.model_.scorer.weights.tobytes()
    more = [tagger.partial_fit(SOME[:30], max_iter=1).model_.scorer.weights for tagger in (ours, theirs)]
    assert more[0].tobytes() == more[1].tobytes()


@pytest.mark.parametrize("parts", [1, 2])
def test_stopped_runs_resume(shards: tw.Shards, tmp_path: Path, parts: int) -> None:
    settings: dict[str, Any] = {"max_iter": 4, "parts": parts}
    undisturbed = tw.fit_shards(tw.AROW(**settings), shards)
    kept = tw.Checkpoint(tmp_path / "run", every=1)
    tw.fit_shards(
        tw.AROW(**settings), shards, checkpoint=kept, callbacks=[lambda entry: entry.iteration == 2]
    )
    again = tw.fit_shards(tw.AROW(**settings), shards, checkpoint=tw.Checkpoint(kept.path, resume=True))
    assert again.model_.scorer.weights.tobytes() == undisturbed.model_.scorer.weights.tobytes()
    assert [e["objective"] for e in again.history_] == [e["objective"] for e in undisturbed.history_]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"parts": 9}, "5, the number of shards"),
        ({"lookback": (1, 2)}, "lookback"),
        ({"voters": 50}, "voters"),
        ({"mode": "batch"}, "mode='online'"),
        ({"constraints": "auto"}, "constraints"),
        ({"dictionary": 2}, "dictionary"),
    ],
)
def test_unsupported_parameters_are_rejected_for_shards(
    shards: tw.Shards, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(tw.exceptions.ParameterError, match=message):
        tw.fit_shards(tw.Perceptron(**given), shards)


def test_damaged_shards_raise_or_are_skipped(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Skipped shards are named. Both kinds of learners train on the remaining ones."""
    tw.write(SOME[:40], tmp_path / "a.conll", "conll")
    whole = tw.encode(tmp_path / "a.conll", tmp_path / "enc", features="S1", shard_tokens=200)
    assert len(whole) > 2
    settings: dict[str, Any] = {"max_iter": 3, "optimizer": "lbfgs"}
    kept = [tw.Shards(whole.path, skipped=[1])]
    expected = [tw.fit_shards(tagger, kept[0]) for tagger in (tw.CRF(**settings), tw.Perceptron(max_iter=2))]
    path = whole.path / "shard-00001.arrays"
    path.write_bytes(path.read_bytes()[:-1] + b"\x7f")
    with pytest.raises(tw.exceptions.CorpusError, match=r"shard-00001\.arrays: a damaged file"):
        tw.fit_shards(tw.Perceptron(max_iter=2), tw.Shards(whole.path))
    with caplog.at_level(logging.WARNING, "tagwise"):
        left = tw.Shards(whole.path, on_error="skip")
    assert "skipping shard 1" in caplog.text
    assert "shard-00001.arrays" in caplog.text
    assert (left.skipped, len(left), left.digest) == ((1,), len(whole) - 1, kept[0].digest)
    for tagger, theirs in zip((tw.CRF(**settings), tw.Perceptron(max_iter=2)), expected):
        assert (
            tw.fit_shards(tagger, left).model_.scorer.weights.tobytes()
            == theirs.model_.scorer.weights.tobytes()
        )
    with pytest.raises(tw.exceptions.ParameterError, match="on_error"):
        tw.Shards(whole.path, on_error="ignore")
