"""A cluster of two nodes on this machine, bound to loopback, with a small object store."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def nodes() -> Iterator[Any]:
    """Two raylets beside the driver's Ray."""
    ray = pytest.importorskip("ray", reason="ray is not installed: make test-ray")
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    small = {"num_cpus": 2, "object_store_memory": 80 << 20}
    cluster = Cluster(initialize_head=True, head_node_args=small)
    cluster.add_node(**small)
    ray.init(
        address=cluster.address,
        log_to_driver=False,
        logging_level=logging.ERROR,
        runtime_env={"env_vars": {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT}"}},
    )
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="session")
def shards(tmp_path_factory: pytest.TempPathFactory) -> tw.Shards:
    """Seven shards of a few hundred sentences."""
    folder = tmp_path_factory.mktemp("shards")
    corpus = tw.load_corpus("wnut17-ner")[0][:300]
    tw.write_conll(corpus, folder / "a.conll")
    made = tw.encode(folder / "a.conll", folder / "enc", features="S2", shard_tokens=850)
    assert len(made) == 7
    return made
