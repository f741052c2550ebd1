"""What a release says of itself in several places is one thing: version, day, bounds, workflows, licences."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tests import environments

tomllib = pytest.importorskip("tomllib", reason="Python 3.11 or newer reads TOML")

ROOT = Path(__file__).parents[2]


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def toml(name: str) -> Any:
    return tomllib.loads(text(name))


VERSION = toml("Cargo.toml")["package"]["version"]
PROJECT = toml("pyproject.toml")["project"]


def test_the_version_stands_in_one_place() -> None:
    """Cargo.toml has it; what else has to name it names the same."""
    assert tw.__version__ == VERSION, "the native part is of another version: make dev"
    assert PROJECT["dynamic"] == ["version"]
    assert "version" not in PROJECT
    (locked,) = (p for p in toml("Cargo.lock")["package"] if p["name"] == "tagwise-core")
    assert locked["version"] == VERSION
    beside = toml("packaging/tagwise-crfsuite/pyproject.toml")["project"]
    major, minor, _ = VERSION.split(".")
    assert beside["version"] == VERSION
    assert beside["dependencies"] == [f"tagwise>={major}.{minor},<{major}.{int(minor) + 1}"]
    assert f"\n## {VERSION}\n" in text("docs/releases.md")


def test_the_newest_entry_of_the_changelog_is_the_version() -> None:
    """Unreleased first, then versions in falling order, each with its day; the citation has the newest one's."""
    found = re.findall(r"^## \[(.*?)\](?: - (\d{4}-\d\d-\d\d))?$", text("CHANGELOG.md"), re.M)
    assert len(found) == text("CHANGELOG.md").count("\n## ")
    assert found[0] == ("Unreleased", "")
    versions = [tuple(map(int, name.split("."))) for name, _ in found[1:]]
    assert versions == sorted(versions, reverse=True)
    days = [day for _, day in found[1:]]
    assert all(days)
    assert days == sorted(days, reverse=True)
    cited = dict(re.findall(r"^(version|date-released): (.*)$", text("CITATION.cff"), re.M))
    assert cited == {"version": VERSION, "date-released": found[1][1]}
    assert found[1][0] == VERSION


def bounds(requirements: list[str]) -> dict[str, str]:
    """name -> the lower bound of a requirement."""
    found = [re.match(r"([\w-]+)[^;]*>=([\d.]+)", one) for one in requirements]
    return {match[1]: match[2] for match in found if match}


def same(a: str, b: str) -> bool:
    """1.24 is 1.24.0."""
    return [*a.split("."), "0", "0"][:3] == [*b.split("."), "0", "0"][:3]


def test_the_oldest_environment_is_made_of_the_lower_bounds() -> None:
    """What `make test-oldest` installs is what pyproject.toml promises, and the page says."""
    extras = PROJECT["optional-dependencies"]
    promised = bounds([*PROJECT["dependencies"], *extras["sklearn"], *extras["plot"]])
    tried = dict(re.match(r"([\w-]+)==([\d.]+)", one).groups() for one in environments.ENVIRONMENTS["oldest"])  # type: ignore[union-attr]
    assert {name for name, bound in promised.items() if not same(tried[name], bound)} == set()
    page = text("docs/support.md")
    said = {
        "Python (CPython)": PROJECT["requires-python"].removeprefix(">="),
        "NumPy": promised["numpy"],
        "scikit-learn (optional)": promised["scikit-learn"],
        "matplotlib (optional)": promised["matplotlib"],
        "PyTorch (optional)": bounds(extras["torch"])["torch"],
        "Ray (optional)": bounds(extras["ray"])["ray"],
        "Rust (to build)": toml("Cargo.toml")["package"]["rust-version"],
    }
    for name, bound in said.items():
        assert f"| {name} | {bound} |" in page, name


def test_the_page_of_licences_is_of_these_dependencies() -> None:
    """Every crate of the lock file and every package that pyproject.toml names, and no other; each has a licence."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "packaging" / "licences.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    page = text("docs/licences.md")
    assert "| ? |" not in page
    locked = toml("Cargo.lock")["package"]
    assert len({one["name"] for one in locked}) == len(locked), "a crate in two versions"
    sources = {one["source"] for one in locked if "source" in one}
    assert sources == {"registry+https://github.com/rust-lang/crates.io-index"}
    allowed = set(toml("deny.toml")["licenses"]["allow"])
    for said in re.findall(r"^\| `[\w-]+` \| [\d.]+ \| ([^|]+) \|$", page, re.M):
        for part in said.replace("(", "").replace(")", "").split(" AND "):
            assert allowed & set(part.split(" OR ")), said


def test_every_dependency_has_its_reason() -> None:
    """docs/dependencies.md speaks of every package that pyproject.toml names and of every crate of Cargo.toml."""
    page = text("docs/dependencies.md")
    asked = [
        *PROJECT["dependencies"],
        *(one for many in PROJECT["optional-dependencies"].values() for one in many),
    ]
    names = {re.split(r"[^\w-]", one)[0] for one in asked} | toml("Cargo.toml")["dependencies"].keys()
    assert {name for name in names if f"`{name}`" not in page} == set()
