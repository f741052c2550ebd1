"""Environments outside the clone (`tests/environments.py`): whole or not there, made once, another list another one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests import environments


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Environments go to a folder of the test, and are made of a file in place of an hour's download."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(environments.ENVIRONMENTS, "small", ("nothing==1",))
    filled: list[Path] = []

    def fill(folder: Path, requirements: tuple[str, ...]) -> None:
        filled.append(folder)
        (folder / "bin").mkdir()
        (folder / "bin" / "python").write_text("\n".join(requirements))

    monkeypatch.setattr(environments, "_fill", fill)
    return filled


def test_an_environment_is_made_once_and_moved_to_its_place(made: list[Path], tmp_path: Path) -> None:
    python = environments.make("small")
    assert python.read_text() == "nothing==1"
    assert python.is_relative_to(tmp_path / "tagwise" / "environments")
    assert environments.make("small") == python
    assert len(made) == 1
    assert not made[0].exists()


def test_what_a_killed_maker_left_is_made_again(made: list[Path]) -> None:
    """A folder without its stamp, and one that was being made, are removed."""
    there = environments.place("small")
    (there / "bin").mkdir(parents=True)
    left = there.with_name(f"{there.name}.making-dead")
    left.mkdir()
    assert environments.make("small").exists()
    assert (there / environments.STAMP).exists()
    assert not left.exists()


def test_a_maker_that_fails_leaves_nothing(made: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(folder: Path, requirements: tuple[str, ...]) -> None:
        (folder / "half").touch()
        raise subprocess.CalledProcessError(1, "pip")

    monkeypatch.setattr(environments, "_fill", fail)
    with pytest.raises(subprocess.CalledProcessError):
        environments.make("small")
    assert [path.suffix for path in environments.folder().iterdir()] == [".lock"]


def test_a_key_is_a_key() -> None:
    """The order of the list is no matter, its entries are."""
    assert environments.key(("a==1", "b==2")) == environments.key(("b==2", "a==1"))
    assert environments.key(("a==1",)) != environments.key(("a==2",))


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.13"])
@pytest.mark.parametrize("name", list(environments.ENVIRONMENTS))
def test_requirements_name_one_version_of_each_package(name: str, version: str) -> None:
    """Whatever the version of Python; every environment runs tests with the same packages."""
    entries = [Requirement(text) for text in environments.ENVIRONMENTS[name]]
    chosen = [r for r in entries if r.marker is None or r.marker.evaluate({"python_version": version})]
    names = [r.name for r in chosen]
    assert sorted(set(names)) == sorted(names)
    assert {"hypothesis", "pytest", "pytest-xdist"} <= set(names)
    assert set(environments.RUNNERS) <= set(environments.ENVIRONMENTS[name])


def test_the_package_does_not_import_torch_and_ray() -> None:
    """`import tagwise` and the command line work, and cost the same, whether these are there or not."""
    large = "{'torch', 'tagwise.torch', 'ray', 'tagwise.ray'}"
    code = f"import sys, tagwise, tagwise.cli; sys.exit(bool({large} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
