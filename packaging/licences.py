"""Write docs/internals/licences.md: the crates of Cargo.lock and the packages of pyproject.toml, each with its licence.

python packaging/licences.py            # uses cargo (offline) and, for packages that are not installed, pypi.org
python packaging/licences.py --check    # check that the page matches these files, without network or cargo
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from importlib import metadata
from pathlib import Path
from typing import Any

import tomllib

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "internals" / "licences.md"
#: SPDX names of licences that distributions name differently.
SPDX = {
    "BSD License": "BSD-3-Clause",
    "BSD 3-Clause": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}
HEAD = """# Licences

tagwise itself is under the MIT licence. The corpora in the package: `ewt-pos` CC BY-SA 4.0, `wnut17-ner` CC BY 4.0.
`make licences` writes this page, `make lint` compares it with `Cargo.lock` and `pyproject.toml`, and `cargo deny`
(`deny.toml`) rejects crates under other licences.
"""


def crates() -> dict[str, str]:
    """Return the version of every crate of the native module by name."""
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text("utf-8"))["package"]
    return {one["name"]: one["version"] for one in locked if "source" in one}


def packages() -> dict[str, str]:
    """Return the extras that require each package ("always" for dependencies), by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = {"always": project["dependencies"], **project["optional-dependencies"]}
    found: dict[str, list[str]] = {}
    for place, requirements in wanted.items():
        for requirement in requirements:
            found.setdefault(re.split(r"[^\w-]", requirement)[0].lower(), []).append(place)
    return {name: ", ".join(dict.fromkeys(places)) for name, places in sorted(found.items())}


def licences_of_crates() -> dict[str, str]:
    """Return the licences of the crates by name, from cargo."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {one["name"]: one["license"].replace("/", " OR ") for one in json.loads(done.stdout)["packages"]}


def licence_of_package(name: str) -> str:
    """Return the licence that a distribution declares: an expression, a classifier, or a short text."""
    about: dict[str, Any]
    try:
        about = metadata.metadata(name).json
        classifiers = about.get("classifier", [])
    except metadata.PackageNotFoundError:
        with urllib.request.urlopen(f"https://pypi.org/pypi/{name}/json", timeout=30) as answer:
            about = json.load(answer)["info"]
        classifiers = about["classifiers"]
    if about.get("license_expression"):
        return str(about["license_expression"])
    text = (about.get("license") or "").strip()
    if re.fullmatch(
        r"[A-Z][\w.]*-[\w.-]+", text
    ):  # such as BSD-2-Clause, for which the classifier is "BSD License"
        return text
    named = [c.split(" :: ")[-1] for c in classifiers if c.startswith("License :: ")]
    names = named or [text.splitlines()[0] if text else "?"]
    return " OR ".join(SPDX.get(one, one) for one in names if one != "OSI Approved")


def rows(text: str) -> dict[str, str]:
    """Return the second cell of each row by name."""
    return dict(re.findall(r"^\| `([\w-]+)` \| ([^|]*) \| [^|]+ \|$", text, re.M))


def faults() -> list[str]:
    """Return the differences between the page and the files."""
    _, *parts = PAGE.read_text("utf-8").split("\n## ")
    out = []
    for stated, actual in zip(map(rows, parts), (packages(), crates()), strict=True):
        for name in sorted(stated.keys() | actual.keys()):
            if stated.get(name) != actual.get(name):
                out.append(f"{name}: {stated.get(name)} on the page, expected {actual.get(name)}")
    return out


def page() -> str:
    """Return the text of the page."""
    of_crates = licences_of_crates()
    lines = [HEAD, "## Packages of pyproject.toml\n", "| package | required by | licence |", "|---|---|---|"]
    lines += [f"| `{name}` | {places} | {licence_of_package(name)} |" for name, places in packages().items()]
    lines += ["\n## Crates of Cargo.lock\n", "| crate | version | licence |", "|---|---|---|"]
    lines += [f"| `{name}` | {version} | {of_crates[name]} |" for name, version in sorted(crates().items())]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Write the page or check it."""
    if arguments == ["--check"]:
        found = faults()
        print(
            "\n".join(
                [*found, "run make licences to update docs/internals/licences.md"]
                if found
                else ["docs/internals/licences.md is current"]
            )
        )
        return int(bool(found))
    PAGE.write_text(page(), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
