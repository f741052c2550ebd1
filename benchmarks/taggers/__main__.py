"""Run the comparison: `python -m benchmarks.taggers --help`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from ..harness import Context, NoCommit, save, show
from ..page import FOLDER
from .cell import TOOLS
from .corpora import CORPORA
from .schedule import merged, run_cells


def main(arguments: list[str]) -> int:
    """Run or store."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.taggers",
        description="Score, training time, speed, memory and model size of taggers on whole corpora.",
    )
    parser.add_argument("--corpus", action="append", choices=CORPORA, help="default: all, may be repeated")
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help=f"tagwise, linear, neural, or a tagger, may be repeated: {', '.join(TOOLS)}",
    )
    parser.add_argument("--sentences", type=int, metavar="N", help="sentences of each part (default: all)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at a time (default: 1)")
    parser.add_argument(
        "--limit",
        type=float,
        default=1200,
        metavar="S",
        help="seconds for each tagger (default: %(default)g)",
    )
    parser.add_argument("--minutes", type=float, metavar="M", help="time for all of them")
    parser.add_argument(
        "--store",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="store one or more runs of a commit in docs/benchmarks/taggers.json",
    )
    chosen = parser.parse_args(arguments)
    if chosen.store:
        path = FOLDER / "taggers.json"
        path.write_text(json.dumps(merged(chosen.store), indent=1) + "\n", "utf-8")
        print(f"{path}: now run python -m benchmarks.cited")
        return 0
    unknown = set(chosen.only or ()) - set(TOOLS) - {tool.group for tool in TOOLS.values()}
    if unknown:
        parser.error(f"unknown tagger {', '.join(sorted(unknown))}")
    result = run_cells(
        [
            (name, corpus)
            for corpus in chosen.corpus or CORPORA
            for name, tool in TOOLS.items()
            if not chosen.only or {name, tool.group} & set(chosen.only)
        ],
        sentences=chosen.sentences,
        jobs=chosen.jobs,
        limit=chosen.limit,
        minutes=chosen.minutes,
    )
    show(result, Console())
    try:
        print(save(result, Context(quick=chosen.sentences is not None, repeat=1)))
    except NoCommit as reason:
        print(f"not stored: {reason}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
