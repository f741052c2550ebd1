"""Fixtures: a cluster of two nodes on loopback with a small object store, and shards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tagwise as tw

from .faults import cluster


@pytest.fixture(scope="session")
def nodes() -> Iterator[Any]:
    """Start a cluster of two nodes."""
    pytest.importorskip("ray", reason="ray is not installed: make test-ray")
    with cluster() as made:
        yield made


@pytest.fixture(scope="session")
def shards(tmp_path_factory: pytest.TempPathFactory) -> tw.Shards:
    """Encode a few hundred sentences into nine shards."""
    folder = tmp_path_factory.mktemp("shards")
    corpus = tw.load_corpus("wnut17-ner")[0][:300]
    tw.write(corpus, folder / "a.conll", "conll")
    made = tw.encode(folder / "a.conll", folder / "enc", features="S2", shard_tokens=650)
    assert len(made) == 9
    return made
