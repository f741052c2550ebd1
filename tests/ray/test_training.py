"""Training with Ray is bit-identical to a single process, for any number of workers and with lost workers."""

from __future__ import annotations

import functools
import logging
import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.learners.sharded.config import LocalParts
from tagwise.learners.sharded.engines import ranges
from tagwise.learners.sharded.objective import ObjectiveConfig, OverShards
from tagwise.learners.sharded.online import OnlineConfig, OnlineShards

pytest.importorskip("ray", reason="ray is not installed: make test-ray")

from tagwise.ray.backend import RayParts

SETTINGS: dict[str, Any] = {"max_iter": 6, "optimizer": "lbfgs", "l2": 0.3}


def bits(tagger: tw.Tagger) -> tuple[float, bytes]:
    return tagger.objective_, tagger.model_.scorer.weights.tobytes()


@pytest.fixture(scope="module")
def single_process(shards: tw.Shards) -> tw.Tagger:
    """Train a model in this process."""
    return tw.fit_shards(tw.CRF(**SETTINGS), shards)


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_weights_do_not_depend_on_the_workers(
    nodes: Any, shards: tw.Shards, single_process: tw.Tagger, workers: int
) -> None:
    assert bits(tw.fit_shards(tw.CRF(**SETTINGS), shards, backend="ray", workers=workers)) == bits(
        single_process
    )


#: Learners with an objective, covering all its options.
LEARNERS: dict[str, tuple[Any, dict[str, Any]]] = {
    **{loss: (tw.CRF, {"loss": loss}) for loss in _core.LOSSES if loss != "log"},
    "l1": (tw.CRF, {"l1": 0.1, "optimizer": "auto"}),
    "cost": (tw.CRF, {"class_weight": "balanced"}),
    "rules": (tw.CRF, {"constraints": {"scheme": "IOB2", "forbidden": [["I-group", None]]}}),
    "memm": (tw.MEMM, {"class_weight": "balanced"}),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_with_an_objective(nodes: Any, shards: tw.Shards, name: str) -> None:
    kind, given = LEARNERS[name]
    settings = {**SETTINGS, "max_iter": 3, **given}
    theirs = tw.fit_shards(kind(**settings), shards, backend="ray", workers=3)
    assert bits(theirs) == bits(tw.fit_shards(kind(**settings), shards))


def test_edge_attributes(nodes: Any, tmp_path: Path) -> None:
    tw.write(tw.load_corpus("wnut17-ner")[0][:60], tmp_path / "a.conll", "conll")
    features = "word[-1..1]\nedge: word[0].shape\n"
    shards = tw.encode(tmp_path / "a.conll", tmp_path / "enc", features=features, shard_tokens=300)
    theirs = tw.fit_shards(tw.CRF(**SETTINGS), shards, backend="ray", workers=2)
    assert bits(theirs) == bits(tw.fit_shards(tw.CRF(**SETTINGS), shards))


def test_every_shard_has_a_worker() -> None:
    for n in range(1, 9):
        for workers in range(1, 10):
            found = ranges(n, workers)
            assert [k for numbers in found for k in numbers] == list(range(n))
            assert len(found) == min(n, workers)


def test_killed_workers_are_replaced(nodes: Any, shards: tw.Shards, caplog: pytest.LogCaptureFixture) -> None:
    """Evaluations are bit-identical although workers are killed at random moments."""
    config = ObjectiveConfig(shards.layout())
    workers, here = RayParts(shards, config, 2), OverShards(LocalParts(shards, config))
    chance = random.Random(7)
    w = np.zeros(len(config.layout))
    with caplog.at_level(logging.WARNING, "tagwise"):
        for kill in range(3):
            w = np.random.default_rng(kill).normal(size=len(w))
            gradient, theirs = np.empty(len(w)), np.empty(len(w))
            victim = workers.pool._result(chance.randrange(2), lambda actor: actor.ready.remote())
            timer = threading.Timer(chance.random() * 0.02, os.kill, (victim, signal.SIGKILL))
            timer.start()
            found = OverShards(workers).value(w, gradient)
            timer.join()
            assert (found, gradient.tobytes()) == (here.value(w, theirs), theirs.tobytes())
        workers.call("sums", w, "value", n_jobs=1)  # detects a kill after the last evaluation
    assert workers.lost == 3
    assert sum("was lost" in record.message for record in caplog.records) == workers.lost


@pytest.mark.parametrize(("kind", "workers"), [(tw.MIRA, 2), (tw.AROW, 3)])
def test_mixing_does_not_depend_on_the_workers(
    nodes: Any, shards: tw.Shards, kind: Any, workers: int
) -> None:
    """Training with four parts is bit-identical for any number of workers."""
    given: dict[str, Any] = {"max_iter": 2, "parts": 4}
    assert bits(tw.fit_shards(kind(**given), shards, backend="ray", workers=workers)) == bits(
        tw.fit_shards(kind(**given), shards)
    )


def test_mixing_needs_parts(nodes: Any, shards: tw.Shards) -> None:
    with pytest.raises(tw.exceptions.ParameterError, match="parts=2"):
        tw.fit_shards(tw.MIRA(max_iter=1), shards, backend="ray")


def test_killed_online_workers_are_replaced(nodes: Any, shards: tw.Shards) -> None:
    """Mixed weights are bit-identical although workers are killed before and during an epoch."""
    config = OnlineConfig(shards.layout(), 4, rule=functools.partial(_core.Rule, "arow"))
    begin = np.zeros(len(config.layout))
    learners = RayParts(shards, config, 2)
    theirs = OnlineShards(learners, config, begin)
    ours = OnlineShards(LocalParts(shards, config), config, begin)
    for wait in (0.0, 0.02):
        victim = learners.pool._result(1, lambda actor: actor.ready.remote())
        timer = threading.Timer(wait, os.kill, (victim, signal.SIGKILL))
        timer.start()
        assert theirs.epoch() == ours.epoch()
        timer.join()
        assert theirs.weights().tobytes() == ours.weights().tobytes()
    learners.pool.call_all(lambda actor: actor.ready.remote())
    assert learners.pool.lost == 2


def test_a_damaged_shard_is_named(nodes: Any, tmp_path: Path) -> None:
    tw.write(tw.load_corpus("wnut17-ner")[0][:40], tmp_path / "a.conll", "conll")
    shards = tw.encode(tmp_path / "a.conll", tmp_path / "enc", features="S1", shard_tokens=300)
    layout = shards.layout()
    path = shards.path / "shard-00001.arrays"
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    with pytest.raises(tw.exceptions.CorpusError, match=r"shard-00001\.arrays: a damaged file"):
        RayParts(shards, ObjectiveConfig(layout), 2)
    left = tw.Shards(shards.path, on_error="skip")
    assert left.skipped == (1,)
    theirs = tw.fit_shards(tw.CRF(**SETTINGS), left, backend="ray", workers=2)
    assert bits(theirs) == bits(tw.fit_shards(tw.CRF(**SETTINGS), left))


def test_a_stopped_driver_resumes(
    nodes: Any, shards: tw.Shards, single_process: tw.Tagger, tmp_path: Path
) -> None:
    kept = tw.Checkpoint(tmp_path / "run.checkpoint", every=1)
    stop = [lambda entry: entry.iteration == 3]
    tw.fit_shards(tw.CRF(**SETTINGS), shards, backend="ray", workers=2, checkpoint=kept, callbacks=stop)
    again = tw.Checkpoint(kept.path, every=1, resume=True)
    assert bits(
        tw.fit_shards(tw.CRF(**SETTINGS), shards, backend="ray", workers=3, checkpoint=again)
    ) == bits(single_process)


def test_train_command_with_ray(
    nodes: Any, shards: tw.Shards, single_process: tw.Tagger, tmp_path: Path
) -> None:
    from click.testing import CliRunner

    from tagwise.cli import cli

    given = ["train", str(shards.path), "-o", str(tmp_path / "m"), "--backend", "ray", "--workers", "2"]
    given += [text for name, value in SETTINGS.items() for text in ("--set", f"{name}={value}")]
    done = CliRunner().invoke(cli, given)
    assert done.exit_code == 0, done.output
    assert tw.load(tmp_path / "m").model_.scorer.weights.tobytes() == bits(single_process)[1]
