"""Workflows name what is there (targets of the Makefile, scripts, jobs), and they may do no more than they must."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
#: Actions of those who run the machines and the index; all others are pinned by commit.
TRUSTED = ("actions/", "pypa/gh-action-pypi-publish@release/v1")


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def jobs() -> Iterator[Any]:
    """Every job, under its workflow's name and its own."""
    for path in WORKFLOWS:
        for name, job in loaded(path)["jobs"].items():
            yield pytest.param(job, id=f"{path.stem}-{name}")


def values(tree: Any) -> Iterator[str]:
    """All texts of a job, wherever they stand."""
    if isinstance(tree, dict):
        for inside in tree.values():
            yield from values(inside)
    elif isinstance(tree, list):
        for inside in tree:
            yield from values(inside)
    else:
        yield str(tree)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_read_and_no_more(path: Path) -> None:
    workflow = loaded(path)
    assert workflow["permissions"] == {"contents": "read"}
    asked = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    publisher = {"publish": {"id-token": "write", "attestations": "write"}}
    assert asked == (publisher if path.stem == "release" else {})
    for job in workflow["jobs"].values():
        needed = job.get("needs", [])
        assert set(needed) <= workflow["jobs"].keys()


@pytest.mark.parametrize("job", list(jobs()))
def test_what_a_job_names_is_there(job: Any) -> None:
    if "uses" in job:
        assert (ROOT / job["uses"]).exists()
        return
    assert job["timeout-minutes"] <= 60
    for step in job["steps"]:
        used = step.get("uses", "actions/")
        assert used.startswith(TRUSTED) or re.search(r"@[0-9a-f]{40}$", used), used
        if used.startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
        assert "${{" not in step.get("run", ""), "an expression in a script is code of whoever fills it in"
    text = "\n".join(values(job))
    named = set(re.findall(r"\bmake ([a-z-]+)", text)) | set(re.findall(r"^test-[a-z]+$", text, re.M))
    assert named <= TARGETS
    for path in re.findall(r"(?<![\w/$])(?:/here/)?((?:packaging|tests|python|docs)/[\w./-]+)", text):
        assert (ROOT / path).exists(), path


def test_nothing_is_published_before_all_else_went_well() -> None:
    """The publishing job waits for every other job, and runs for a tag alone."""
    release = loaded(ROOT / ".github/workflows/release.yml")
    publish = release["jobs"]["publish"]
    assert set(publish["needs"]) == release["jobs"].keys() - {"publish"}
    assert publish["if"] == "startsWith(github.ref, 'refs/tags/')"
    assert publish["environment"]["name"] == "pypi"
    names = {row["name"] for row in release["jobs"]["wheels"]["strategy"]["matrix"]["include"]}
    assert names == {
        *(f"{libc}-{machine}" for libc in ("manylinux", "musllinux") for machine in ("x86_64", "aarch64")),
        *("macos-x86_64", "macos-arm64", "windows-x64"),
    }


@pytest.mark.parametrize("name", ["ISSUE_TEMPLATE/*.yml", "dependabot.yml", "zizmor.yml"])
def test_forms_parse(name: str) -> None:
    found = [loaded(path) for path in (ROOT / ".github").glob(name)]
    assert found
    for form in found:
        for field in form.get("body", ()):
            assert field["type"] == "markdown" or field["attributes"]["label"]
