"""What lands in an environment lies inside the package or its metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

import tagwise as tw


def test_every_reader_has_its_twin_by_name() -> None:
    """Where there is a reader of whole files, there is one that holds a sentence at a time."""
    readers = {name.removeprefix("read_") for name in tw.__all__ if name.startswith("read_")}
    assert readers == {name.removeprefix("iter_") for name in tw.__all__ if name.startswith("iter_")}
    assert readers


def test_nothing_is_added_beside_the_package() -> None:
    """The licence goes into the metadata by itself; a file that is listed would lie in the root of site-packages."""
    tomllib = pytest.importorskip("tomllib", reason="Python before 3.11 reads no TOML")
    with open(Path(__file__).parents[2] / "pyproject.toml", "rb") as file:
        assert "include" not in tomllib.load(file)["tool"]["maturin"]
