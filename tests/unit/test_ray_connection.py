"""The connection to a Ray cluster, with a fake Ray: its arguments, and a new cluster on loopback only."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import tagwise as tw
from tagwise.ray.pool import LOOPBACK, connected


@pytest.mark.parametrize("before", [None, "1"])
@pytest.mark.parametrize("address", [None, "auto"])
def test_new_clusters_listen_on_loopback(
    monkeypatch: pytest.MonkeyPatch, address: str | None, before: str | None
) -> None:
    """The variable is set while Ray starts and restored afterwards. An existing cluster is not affected."""
    init_calls: list[Any] = []
    ray = SimpleNamespace(
        is_initialized=lambda: False,
        init=lambda **given: init_calls.append(
            (given["address"], os.environ.get(LOOPBACK), "include_dashboard" in given)
        ),
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.delenv(LOOPBACK, raising=False)
    if before is not None:
        monkeypatch.setenv(LOOPBACK, before)
    assert connected(address) is ray
    assert init_calls == [(address, "0" if address is None else before, address is None)]
    assert os.environ.get(LOOPBACK) == before


def test_missing_ray_error_gives_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(tw.exceptions.ParameterError, match=r"pip install 'tagwise\[ray\]'"):
        connected()
