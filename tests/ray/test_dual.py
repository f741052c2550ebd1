"""Dual ascent with Ray is bit-identical to a single process, for any number of workers and with lost workers."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tagwise.learners.sharded.config import LocalParts
from tagwise.learners.sharded.dual import DualConfig, DualShards

pytest.importorskip("ray", reason="ray is not installed: make test-ray")

from tagwise.ray.backend import RayParts

SETTINGS: dict[str, Any] = {"max_iter": 4, "optimizer": "dual", "l2": 1.0, "tol": 1e-6}
PARTS = 4


def bits(tagger: tw.Tagger) -> tuple[float, bytes]:
    return tagger.objective_, tagger.model_.scorer.weights.tobytes()


@pytest.fixture(scope="module")
def single_process(shards: tw.Shards) -> tw.Tagger:
    """Train a model in this process."""
    return tw.fit_shards(tw.CRF(**SETTINGS), shards, parts=PARTS)


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_weights_do_not_depend_on_the_workers(
    nodes: Any, shards: tw.Shards, single_process: tw.Tagger, workers: int
) -> None:
    assert bits(
        tw.fit_shards(tw.CRF(**SETTINGS), shards, parts=PARTS, backend="ray", workers=workers)
    ) == bits(single_process)


def test_constraints_and_min_count(nodes: Any, shards: tw.Shards) -> None:
    """Workers get the constraints and min_count in addition to the layout."""
    rules = {"constraints": {"scheme": "IOB2", "forbidden": [["I-group", None]]}, "min_count": 2}
    given = {**SETTINGS, **rules}
    theirs = tw.fit_shards(tw.CRF(**given), shards, parts=PARTS, backend="ray", workers=2)
    assert bits(theirs) == bits(tw.fit_shards(tw.CRF(**given), shards, parts=PARTS))
    assert bits(theirs) != bits(tw.fit_shards(tw.CRF(**{**given, "constraints": None}), shards, parts=PARTS))


def test_lbfgs_continues_with_ray(nodes: Any, shards: tw.Shards) -> None:
    """The actors of the ascent are stopped first, since the cluster may not have resources for both."""
    given = {**SETTINGS, "l2": 1e-4, "max_iter": 30}
    theirs = tw.fit_shards(tw.CRF(**given), shards, parts=2, backend="ray", workers=2)
    assert "certified" not in theirs.stopped_
    assert bits(theirs) == bits(tw.fit_shards(tw.CRF(**given), shards, parts=2))


def test_single_part_is_rejected(nodes: Any, shards: tw.Shards) -> None:
    with pytest.raises(tw.exceptions.ParameterError, match="parts=2"):
        tw.fit_shards(tw.CRF(optimizer="dual"), shards, backend="ray")


def test_killed_workers_replay_their_rounds(nodes: Any, shards: tw.Shards) -> None:
    """Workers are killed between rounds, during a round, before a certificate, and before `state`."""
    config = DualConfig(shards.layout(), 3)
    workers = RayParts(shards, config, 2)
    theirs, ours = DualShards(config, workers), DualShards(config, LocalParts(shards, config))

    def kill(wait: float) -> threading.Timer:
        victim = workers.pool._result(0, lambda actor: actor.ready.remote())
        timer = threading.Timer(wait, os.kill, (victim, signal.SIGKILL))
        timer.start()
        return timer

    assert theirs.epoch(2) == ours.epoch(2)
    for wait in (0.0, 0.02):
        timer = kill(wait)
        assert theirs.epoch(2) == ours.epoch(2)
        timer.join()
    timer = kill(0.0)
    timer.join()
    assert theirs.certificate() == ours.certificate()
    timer = kill(0.0)
    timer.join()
    ended, wanted = theirs.state(), ours.state()
    assert ended[0].tobytes() == wanted[0].tobytes()
    for a, b in zip(ended[1:4], wanted[1:4]):
        assert [x.tobytes() for x in a] == [x.tobytes() for x in b]
    workers.pool.call_all(lambda actor: actor.ready.remote())
    assert workers.lost == 4
    workers.close()


def test_a_stopped_driver_resumes(
    nodes: Any, shards: tw.Shards, single_process: tw.Tagger, tmp_path: Path
) -> None:
    kept = tw.Checkpoint(tmp_path / "run.checkpoint", every=1)
    stop = [lambda entry: entry.iteration == 2]
    tw.fit_shards(
        tw.CRF(**SETTINGS), shards, parts=PARTS, backend="ray", workers=2, checkpoint=kept, callbacks=stop
    )
    again = tw.Checkpoint(kept.path, every=1, resume=True)
    assert bits(
        tw.fit_shards(tw.CRF(**SETTINGS), shards, parts=PARTS, backend="ray", workers=3, checkpoint=again)
    ) == bits(single_process)
