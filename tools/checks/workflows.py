"""Workflows: names in them exist, and they have only the permissions they need."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from tools.checks import ROOT, text

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
#: Actions of the operators of the build servers and of the package index. All others are pinned by commit.
TRUSTED = ("actions/", "pypa/gh-action-pypi-publish@release/v1")
PUBLISHER = {"publish": {"id-token": "write", "attestations": "write"}}


def values(tree: Any) -> Iterator[str]:
    """Yield all strings of a YAML tree."""
    if isinstance(tree, (dict, list)):
        for inside in tree.values() if isinstance(tree, dict) else tree:
            yield from values(inside)
    else:
        yield str(tree)


def step_faults(step: dict[str, Any]) -> Iterator[str]:
    """Yield the faults of one step.

    >>> list(step_faults({"uses": "example/action@v1"}))
    ['example/action@v1 is not pinned by commit']
    >>> list(step_faults({"run": "echo ${{ github.head_ref }}"}))
    ['an expression in a script allows code injection']
    """
    used = step.get("uses", "actions/")
    if not used.startswith(TRUSTED) and not re.search(r"@[0-9a-f]{40}$", used):
        yield f"{used} is not pinned by commit"
    if used.startswith("actions/checkout@") and step["with"]["persist-credentials"] is not False:
        yield "checkout persists credentials"
    if "${{" in step.get("run", ""):
        yield "an expression in a script allows code injection"


def check_jobs() -> Iterator[str]:
    """Jobs have valid permissions, dependencies and limits, and the make targets, scripts and files they name exist."""
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.M))
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text("utf-8"))
        jobs = workflow["jobs"]
        if workflow["permissions"] != {"contents": "read"}:
            yield f"{path.stem}: permissions {workflow['permissions']}"
        granted = {name: job["permissions"] for name, job in jobs.items() if "permissions" in job}
        if granted != (PUBLISHER if path.stem == "release" else {}):
            yield f"{path.stem}: jobs with permissions {granted}"
        for name, job in jobs.items():
            where = f"{path.stem}, {name}"
            yield from (
                f"{where}: needs unknown job {other}" for other in set(job.get("needs", [])) - jobs.keys()
            )
            if "uses" in job:
                if not (ROOT / job["uses"]).exists():
                    yield f"{where}: no file {job['uses']}"
                continue
            if job["timeout-minutes"] > 60:
                yield f"{where}: the time limit is more than an hour"
            yield from (f"{where}: {fault}" for step in job["steps"] for fault in step_faults(step))
            words = "\n".join(values(job))
            named = set(re.findall(r"\bmake ([a-z-]+)", words)) | set(
                re.findall(r"^test-[a-z]+$", words, re.M)
            )
            yield from (f"{where}: no target {target}" for target in sorted(named - targets))
            files = re.findall(
                r"(?<![\w/$])(?:/here/)?((?:packaging|tests|tools|python|docs)/[\w./-]+)", words
            )
            yield from (f"{where}: no file {file}" for file in files if not (ROOT / file).exists())


def check_publishing() -> Iterator[str]:
    """The publishing job needs every other job and runs only for tags, and wheels of all platforms are built."""
    jobs = yaml.safe_load(text(".github/workflows/release.yml"))["jobs"]
    publish = jobs["publish"]
    if set(publish["needs"]) != jobs.keys() - {"publish"}:
        yield "publish does not need all jobs"
    if publish["if"] != "startsWith(github.ref, 'refs/tags/')" or publish["environment"]["name"] != "pypi":
        yield "publish must be limited to tags and the environment pypi"
    linux = {f"{libc}-{machine}" for libc in ("manylinux", "musllinux") for machine in ("x86_64", "aarch64")}
    wheels = {row["name"] for row in jobs["wheels"]["strategy"]["matrix"]["include"]}
    if wheels != linux | {"macos-x86_64", "macos-arm64", "windows-x64"}:
        yield f"unexpected set of wheels: {sorted(wheels)}"


def check_forms() -> Iterator[str]:
    """Forms and settings parse, and every field has a label."""
    for name in ("ISSUE_TEMPLATE/*.yml", "dependabot.yml", "zizmor.yml"):
        found = list((ROOT / ".github").glob(name))
        if not found:
            yield f"no {name}"
        for path in found:
            for field in yaml.safe_load(path.read_text("utf-8")).get("body", ()):
                if field["type"] != "markdown" and not field["attributes"]["label"]:
                    yield f"{path.name}: field without a label"
