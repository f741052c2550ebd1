"""Tables of docs/benchmarks.md and pictures of other pages from the JSON of runs, each with machine, versions and date.

    python -m benchmarks.page --run dropin loading  # run these benchmarks, store their results, write the page
    python -m benchmarks.page                       # store the results in benchmarks/out, write the page
    python -m benchmarks.page --tables              # write the page from docs/benchmarks/*.json
    python -m benchmarks.page --check               # check that the page matches the JSON

A table is between `<!-- table NAME -->` and `<!-- end -->`, with the name of a benchmark. `<!-- table NAME: TEXT -->`
has the rows whose names begin with the text. Figures are the text that the benchmark reported: median
(smallest-largest) of its rounds. The pictures of a run are drawn to docs/pictures.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import figure
from .harness import OUT

ROOT = Path(__file__).parents[1]
PAGE, FOLDER = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "benchmarks"
PICTURES = ROOT / "docs" / "pictures"
#: Runs whose tables or pictures are on other pages. `benchmarks.taggers --store` stores its own.
ELSEWHERE, STORED = {"taggers", "examples", "mixing"}, {"taggers"}
BLOCK = re.compile(
    r"<!-- table (?P<name>[\w-]+)(?:: (?P<rows>[^>]*?))? -->\n(?P<body>.*?)<!-- end -->", re.DOTALL
)


def origin(run: Mapping[str, Any]) -> str:
    """Return command, commit, date, machine and versions of a run.

    >>> about = {"cpu": "A", "cores": 2, "load": [0.5], "python": "3.12", "system": "L"}
    >>> about |= {"versions": {"x": "1"}, "commit": "0123abcd4567", "date": "2026-11-17"}
    >>> origin({"name": "x", "machine": about, "context": {"repeat": 5, "quick": False}})
    '`python -m benchmarks x`, commit `0123abcd`, 2026-11-17: A, 2 cores (load 0.5), L, Python 3.12, x 1. 5 rounds.'
    """
    machine, context = run["machine"], run["context"]
    load = f" (load {machine['load'][0]:.1f})" if machine.get("load") else ""
    versions = {"Python": machine["python"], **machine["versions"]}
    known = ", ".join(f"{name} {found}" for name, found in versions.items() if found != "not installed")
    rounds = min(context["repeat"], 3) if context["quick"] else context["repeat"]
    return (
        f"`python -m benchmarks {run['name']}`, commit `{machine['commit'][:8]}`, {machine['date']}: {machine['cpu']}, "
        f"{machine['cores']} cores{load}, {machine['system']}, {known}. {rounds} rounds."
    )


def table(run: Mapping[str, Any], begin: str = "") -> dict[str, Any]:
    """Return the head and the rows of a run as text, for rows whose names begin so. Goals are in the JSON only."""
    rows = [row for row in run["rows"] if row["name"].startswith(begin)]
    columns = list(dict.fromkeys(name for row in rows for name in row["cells"]))
    lines = [[row["name"], *(row["cells"].get(name, "") for name in columns)] for row in rows]
    return {"head": ["", *(name.strip() for name in columns)], "rows": lines}


def markdown(run: Mapping[str, Any], begin: str = "") -> str:
    """Format a run as a table of the page: rows, notes, origin."""
    found = table(run, begin)
    lines = [found["head"], ["---"] * len(found["head"]), *found["rows"]]
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return text + "".join(f"\n{note}\n" for note in [*run["notes"], origin(run)])


def runs(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Return the stored runs by name."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}


def pictures(known: Mapping[str, Mapping[str, Any]]) -> dict[Path, str]:
    """Return the pictures of all runs by path."""
    found = {name: spec for run in known.values() for name, spec in run.get("pictures", {}).items()}
    return {
        PICTURES / f"{name}.svg": figure.svg(spec["title"], spec["x"], spec["y"], spec["curves"])
        for name, spec in found.items()
    }


def written(page: str, known: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page with its tables from the JSON."""

    def block(match: re.Match[str]) -> str:
        mark = match[0].partition("\n")[0]
        return f"{mark}\n{markdown(known[match['name']], match['rows'] or '')}<!-- end -->"

    return BLOCK.sub(block, page)


def differences(page: str, known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the differences between page and JSON."""
    blocks = list(BLOCK.finditer(page))
    named = {match["name"] for match in blocks}
    out = [f"docs/benchmarks/{name}.json: not on the page" for name in known.keys() - named - ELSEWHERE]
    out += [f"table {name}: no docs/benchmarks/{name}.json" for name in named - known.keys()]
    out += [
        f"table {match['name']} differs from the JSON"
        for match in blocks
        if match["name"] in known and match["body"] != markdown(known[match["name"]], match["rows"] or "")
    ]
    out += [
        f"{path.relative_to(ROOT)} differs from the JSON"
        for path, svg in pictures(known).items()
        if not path.is_file() or path.read_text("utf-8") != svg
    ]
    return sorted(out)


def copy_results(names: set[str]) -> list[str]:
    """Copy the newest runs of these benchmarks from benchmarks/out and return the names of those that exist."""
    taken = sorted(name for name in names if (OUT / f"{name}.json").is_file())
    FOLDER.mkdir(exist_ok=True)
    for name in taken:
        run = json.loads((OUT / f"{name}.json").read_text("utf-8"))
        kept = {
            part: run[part] for part in ("name", "title", "rows", "notes", "pictures", "context", "machine")
        }
        (FOLDER / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    return taken


def main(arguments: list[str]) -> int:
    """Run, store, write or check."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.page", description="Write the tables of docs/benchmarks.md."
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--run", nargs="+", metavar="NAME", help="run these benchmarks first")
    how.add_argument("--tables", action="store_true", help="do not copy results from benchmarks/out")
    how.add_argument(
        "--check", action="store_true", help="check that the page matches the JSON, write nothing"
    )
    chosen = parser.parse_args(arguments)
    page = PAGE.read_text("utf-8")
    if chosen.check:
        faults = differences(page, runs())
        print("\n".join(faults) or "docs/benchmarks.md is current")
        return int(bool(faults))
    named = {match["name"] for match in BLOCK.finditer(page)} | ELSEWHERE - STORED
    if chosen.run:
        done = subprocess.run([sys.executable, "-m", "benchmarks", *chosen.run], cwd=ROOT, check=False)
        if done.returncode not in (0, 1):  # 1: a goal was missed, which the page shows
            return done.returncode
        named &= set(chosen.run)
    if not chosen.tables:
        print("copied:", *copy_results(named))
    PAGE.write_text(written(page, runs()), "utf-8")
    for path, svg in pictures(runs()).items():
        path.write_text(svg, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
