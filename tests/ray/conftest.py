"""A cluster of two nodes on this machine, bound to loopback, with a small object store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tagwise as tw

from .faults import cluster


@pytest.fixture(scope="session")
def nodes() -> Iterator[Any]:
    """Two raylets beside the driver's Ray."""
    pytest.importorskip("ray", reason="ray is not installed: make test-ray")
    with cluster() as made:
        yield made


@pytest.fixture(scope="session")
def shards(tmp_path_factory: pytest.TempPathFactory) -> tw.Shards:
    """Nine shards of a few hundred sentences."""
    folder = tmp_path_factory.mktemp("shards")
    corpus = tw.load_corpus("wnut17-ner")[0][:300]
    tw.write_conll(corpus, folder / "a.conll")
    made = tw.encode(folder / "a.conll", folder / "enc", features="S2", shard_tokens=650)
    assert len(made) == 9
    return made
