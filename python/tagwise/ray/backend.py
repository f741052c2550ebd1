"""The backend of `fit_shards(..., backend="ray")`: the workers of a cluster hold the shards."""

from __future__ import annotations

from tagwise.dataset.shards.reader import Shards
from tagwise.learners.sharded.online import Engine
from tagwise.ray.climbing import Workers
from tagwise.ray.crew import connected
from tagwise.ray.training import mixing, source


def backend(shards: Shards, workers: int | None = None) -> Engine:
    """Return what trains on the shards; Ray is connected to a cluster if it is not yet.

    Args:
        shards: in a folder that every node of the cluster can read.
        workers: number of workers. Default: one per CPU of the cluster.
    """
    connected()
    return Engine(
        source(shards, workers),
        lambda course, parts: mixing(shards, course, parts, workers),
        lambda climb: Workers(shards, climb, workers),
    )


__all__ = ["backend"]
