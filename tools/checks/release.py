"""Releases: versions, dates, bounds, licences and environments agree wherever they are stated."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from packaging.requirements import Requirement
from packaging.version import Version

import tagwise as tw
from tools import environments
from tools.checks import ROOT, text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def toml(name: str) -> Any:
    """Parse a TOML file of the repository."""
    return tomllib.loads(text(name))


VERSION = toml("Cargo.toml")["package"]["version"]
PROJECT = toml("pyproject.toml")["project"]
EXTRAS = PROJECT["optional-dependencies"]


def check_version() -> Iterator[str]:
    """Every place that names the version has that of Cargo.toml."""
    major, minor, _ = VERSION.split(".")
    drop_in = toml("packaging/tagwise-crfsuite/pyproject.toml")["project"]
    places = {
        "the native module (run make dev)": (tw.__version__, VERSION),
        "pyproject.toml": ((PROJECT["dynamic"], "version" in PROJECT), (["version"], False)),
        "Cargo.lock": ([p["version"] for p in toml("Cargo.lock")["package"] if p["name"] == "tagwise-core"], [VERSION]),
        "tagwise-crfsuite": (drop_in["version"], VERSION),
        "its dependency": (drop_in["dependencies"], [f"tagwise>={major}.{minor},<{major}.{int(minor) + 1}"]),
    }  # fmt: skip
    yield from (
        f"{place}: {found}, expected {wanted}" for place, (found, wanted) in places.items() if found != wanted
    )


def check_changelog() -> Iterator[str]:
    """Unreleased is first, followed by versions in descending order with dates. CITATION.cff has the newest."""
    log = text("CHANGELOG.md")
    found = re.findall(r"^## \[(.*?)\](?: - (\d{4}-\d\d-\d\d))?$", log, re.M)
    versions, days = (
        [tuple(map(int, name.split("."))) for name, _ in found[1:]],
        [day for _, day in found[1:]],
    )
    if len(found) != log.count("\n## ") or found[0] != ("Unreleased", "") or not all(days):
        yield "headings must be [Unreleased] and [VERSION] - DATE"
    if versions != sorted(versions, reverse=True) or days != sorted(days, reverse=True):
        yield "versions or dates are out of order"
    cited = dict(re.findall(r"^(version|date-released): (.*)$", text("CITATION.cff"), re.M))
    if found[1][0] != VERSION or cited != {"version": VERSION, "date-released": found[1][1]}:
        yield f"{VERSION}: the changelog has {found[1]}, CITATION.cff {cited}"


def bounds(requirements: list[str]) -> dict[str, str]:
    """Return the lower bounds by name.

    >>> bounds(["torch>=2.6", "tomli>=2.0; python_version < '3.11'", "seqeval"])
    {'torch': '2.6', 'tomli': '2.0'}
    """
    found = [re.match(r"([\w-]+)[^;]*>=([\d.]+)", one) for one in requirements]
    return {match[1]: match[2] for match in found if match}


def check_bounds() -> Iterator[str]:
    """The oldest environment has the lower bounds of pyproject.toml, and docs/reference/support.md states them."""
    promised = bounds([*PROJECT["dependencies"], *EXTRAS["sklearn"], *EXTRAS["plot"]])
    tried = dict(re.findall(r"^([\w-]+)==([\d.]+)", "\n".join(environments.ENVIRONMENTS["oldest"]), re.M))
    for name, bound in promised.items():
        if Version(tried[name]) != Version(bound):
            yield f"{name}: {bound} is the lower bound, but {tried[name]} is tested"
    stated = {
        "Python (CPython)": PROJECT["requires-python"].removeprefix(">="),
        "NumPy": promised["numpy"],
        "scikit-learn (optional)": promised["scikit-learn"],
        "matplotlib (optional)": promised["matplotlib"],
        "PyTorch (optional)": bounds(EXTRAS["torch"])["torch"],
        "Ray (optional)": bounds(EXTRAS["ray"])["ray"],
        "Rust (to build)": toml("Cargo.toml")["package"]["rust-version"],
    }
    for name, bound in stated.items():
        if f"| {name} | {bound} |" not in text("docs/reference/support.md"):
            yield f"docs/reference/support.md does not state {name} {bound}"


def check_links_of_releases() -> Iterator[str]:
    """packaging/urls.py leaves no relative link in README.md and adds [project.urls], which pyproject.toml has not."""
    urls = runpy.run_path(str(ROOT / "packaging" / "urls.py"))
    yield from (
        f"README.md: {link[0]}"
        for link in urls["LINK"].finditer(urls["absolute"](text("README.md"), "https://h/r", "v1"))
    )
    found = tomllib.loads(urls["with_urls"](text("pyproject.toml"), "https://h/r", "v1"))["project"]["urls"]
    if found["Source"] != "https://h/r" or set(found) != set(urls["PAGES"]):
        yield f"[project.urls] is {found}"


def check_licences() -> Iterator[str]:
    """Every locked crate and every named package is on the page, with a licence that deny.toml allows."""
    script = str(ROOT / "packaging" / "licences.py")
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    if done.returncode:
        yield done.stdout + done.stderr
    page, locked = text("docs/internals/licences.md"), toml("Cargo.lock")["package"]
    if "| ? |" in page:
        yield "a dependency has no licence"
    if len({one["name"] for one in locked}) != len(locked):
        yield "a crate is locked in two versions"
    sources = {one["source"] for one in locked if "source" in one}
    if sources != {"registry+https://github.com/rust-lang/crates.io-index"}:
        yield f"crates from {sources}"
    allowed = set(toml("deny.toml")["licenses"]["allow"])
    for licence in re.findall(r"^\| `[\w-]+` \| [\d.]+ \| ([^|]+) \|$", page, re.M):
        for part in re.sub(r"[()]", "", licence).split(" AND "):
            if not allowed & set(part.split(" OR ")):
                yield f"{licence} is not allowed"


def check_dependencies() -> Iterator[str]:
    """docs/internals/dependencies.md gives reasons for all packages and crates, and wheels contain only the package."""
    required = [*PROJECT["dependencies"], *(one for extra in EXTRAS.values() for one in extra)]
    names = {re.split(r"[^\w-]", one)[0] for one in required} | toml("Cargo.toml")["dependencies"].keys()
    page = text("docs/internals/dependencies.md")
    yield from (
        f"docs/internals/dependencies.md does not mention {name}"
        for name in sorted(names)
        if f"`{name}`" not in page
    )
    if "include" in toml("pyproject.toml")["tool"]["maturin"]:
        yield "files listed in tool.maturin.include end up in the root of site-packages"


def check_environments() -> Iterator[str]:
    """Every version of Python gets one version of each package, and all environments have the same test runners."""
    for name, listed in environments.ENVIRONMENTS.items():
        for version in ("3.10", "3.11", "3.13"):
            entries = [Requirement(one) for one in listed]
            chosen = [
                r.name for r in entries if r.marker is None or r.marker.evaluate({"python_version": version})
            ]
            if len(set(chosen)) != len(chosen) or not {"hypothesis", "pytest", "pytest-xdist"} <= set(chosen):
                yield f"{name}, Python {version}: {chosen}"


def check_making() -> Iterator[str]:
    """An environment is created once, also after a killed run, and a failed run leaves nothing behind."""

    def fill(folder: Path, requirements: tuple[str, ...]) -> None:
        (folder / "bin").mkdir()
        (folder / "bin" / "python").write_text("\n".join(requirements))
        if requirements == ("fails",):
            raise subprocess.CalledProcessError(1, "pip")

    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, XDG_CACHE_HOME=folder),
        mock.patch.dict(environments.ENVIRONMENTS, small=("nothing==1",), broken=("fails",)),
        mock.patch.object(environments, "_fill", side_effect=fill) as filled,
    ):
        place = environments.place("small")
        (place / "bin").mkdir(parents=True)
        left = place.with_name(f"{place.name}.making-dead")
        left.mkdir()
        python = environments.make("small")
        if (
            python.read_text() != "nothing==1"
            or environments.make("small") != python
            or filled.call_count != 1
        ):
            yield "an environment is not created exactly once"
        if left.exists() or not (place / environments.STAMP).exists():
            yield "files of a killed run are not removed"
        try:
            environments.make("broken")
        except subprocess.CalledProcessError:
            if any(
                path.name.startswith("broken") and path.is_dir() for path in environments.folder().iterdir()
            ):
                yield "a failed run leaves a folder"
        else:
            yield "a failure is not reported"
    if environments.key(("a==1", "b==2")) != environments.key(("b==2", "a==1")):
        yield "a key depends on the order of requirements"
    if environments.key(("a==1",)) == environments.key(("a==2",)):
        yield "a key does not depend on versions"
