"""Draw a sample of mutants, build them, run the tests that reach each, and report the survivors."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from . import tree as trees
from .mutant import Mutant

#: Maximum number of tests that may fail without a mutant, as on a busy machine. More mean that the copy is broken.
MAX_FLAKY = 10


def environment(tree: Path, folder: Path, mutant: int | None = None) -> dict[str, str]:
    """Return the environment of a test run on the copy, with one mutant switched on or none."""
    out = {**os.environ, "PYTHONPATH": str(tree / "python"), "TAGWISE_MUTANTS": str(folder)}
    out.pop("TAGWISE_MUTANT", None)
    return out if mutant is None else {**out, "TAGWISE_MUTANT": str(mutant)}


def reached(tree: Path, tests: list[str]) -> dict[str, dict[str, Any]]:
    """Return the mutants that each test reaches while all are off. Tests that fail then are excluded."""
    folder = tree / "reached"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.hits"):
        old.unlink()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tools.mutation.reached", "-p", "no:cacheprovider"]
    env = environment(tree, folder)
    command += [*tests]
    run = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False)
    print(run.stdout.strip().splitlines()[-1])
    found: dict[str, dict[str, Any]] = json.loads((folder / "reached.json").read_text())
    failed = sorted(name for name, entry in found.items() if entry.get("failed"))
    if run.returncode > 1 or len(failed) > MAX_FLAKY:
        raise SystemExit(run.stdout[-4000:] + run.stderr[-2000:])
    for name in failed:
        print(f"excluded, fails without a mutant: {name}", flush=True)
        del found[name]
    return found


def detected_by_core(tree: Path, env: dict[str, str]) -> bool:
    """Return whether the tests of the core fail or time out."""
    command = [tree / "core-tests", "-q"]
    try:
        return subprocess.run(command, env=env, capture_output=True, timeout=120, check=False).returncode != 0
    except subprocess.TimeoutExpired:
        return True


def verdict(
    tree: Path, number: int, native: bool, found: dict[str, dict[str, Any]], most: float
) -> tuple[str, str]:
    """Return whether the tests detect a mutant, and the test that does. "not reached" if no test reaches it."""
    always = number in found[""]["hits"]
    tests = sorted(
        (entry["seconds"], name)
        for name, entry in found.items()
        if name and (always or number in entry["hits"])
    )
    folder = tree / "runs"
    folder.mkdir(exist_ok=True)
    env = environment(tree, folder, number)
    if not tests:
        if native and detected_by_core(tree, env):
            return "killed", "tests of the core"
        return "not reached", ""
    chosen, seconds = [], 0.0
    for cost, name in tests:
        if seconds + cost > most and chosen:
            break
        chosen.append(name)
        seconds += cost
    listed = folder / f"{number}.json"
    listed.write_text(json.dumps(chosen))
    files = sorted({name.split("::")[0] for name in chosen})
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "tools.mutation.chosen",
        "-p",
        "no:cacheprovider",
    ]
    env["TAGWISE_CHOSEN"] = str(listed)
    try:
        run = subprocess.run(
            [*command, *files],
            cwd=tree,
            env=env,
            capture_output=True,
            text=True,
            timeout=60 + 4 * seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "killed", "timeout"
    (folder / f"{number}.log").write_text(run.stdout[-20000:] + run.stderr[-5000:])
    if run.returncode == 0:
        if native and detected_by_core(tree, env):
            return "killed", "tests of the core"
        whole = len(chosen) == len(tests)
        return "survived", f"{len(chosen)} tests" + ("" if whole else f" of {len(tests)}, the fastest ones")
    if run.returncode == 4 and "while loading conftest" in run.stderr:
        return "killed", "the package cannot be imported"
    if run.returncode in (4, 5):  # wrong usage, or no tests: an error of this program
        raise SystemExit(run.stdout + run.stderr)
    lines = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "killed", (lines[0].split(" - ")[0] if lines else f"exit status {run.returncode}")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=300, help="number of mutants to draw")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample")
    parser.add_argument("--only", default="", help="regular expression of the files to draw from")
    parser.add_argument(
        "--most", type=float, default=120.0, help="seconds of tests per mutant, fastest tests first"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants tested in parallel")
    parser.add_argument(
        "--tree", type=Path, default=trees.ROOT / "target" / "mutants", help="folder of the copy"
    )
    parser.add_argument("--list", action="store_true", help="only list the sample")
    parser.add_argument(
        "--again", type=Path, help="test the survivors of this result again, with the current tests"
    )
    parser.add_argument(
        "--built",
        action="store_true",
        help="use the copy built by the last run of this sample, with the current tests",
    )
    parser.add_argument("--output", type=Path, help="JSON file for the results")
    parser.add_argument("tests", nargs="*", default=["tests"], help="tests to run")
    args = parser.parse_args()
    found = trees.sites()
    print(f"{len(found)} possible mutants: {dict(Counter(Path(m.file).suffix for m in found))}")
    drawn = dict(enumerate(trees.sample(found, args.sample, args.seed, args.only)))
    if args.again:
        kept = {
            (m["file"], m["original"], m["text"])
            for m in json.loads(args.again.read_text())
            if m["verdict"] != "killed"
        }
        drawn = dict(
            enumerate(trees.apart([m for m in sorted(found) if (m.file, m.original, m.text) in kept]))
        )
    if args.list:
        for mutant in sorted(drawn.values()):
            print(mutant)
        return
    mutants = (trees.built if args.built else trees.build)(drawn, args.tree)
    tests = reached(args.tree, args.tests)
    result: list[dict[str, Any]] = []
    begin = time.perf_counter()

    def one(item: tuple[int, Mutant]) -> None:
        number, mutant = item
        word, why = verdict(args.tree, number, mutant.file.endswith(".rs"), tests, args.most)
        result.append({**vars(mutant), "number": number, "verdict": word, "why": why})
        if word != "killed":
            print(f"{word} [{number}] {mutant} ({why})", flush=True)
        if args.output:
            args.output.write_text(json.dumps(sorted(result, key=lambda r: r["number"]), indent=1))

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(one, mutants.items()))
    words = Counter(entry["verdict"] for entry in result)
    share = 100.0 * words["killed"] / max(1, len(result))
    print(f"{words['killed']} of {len(result)} killed, {share:.1f} % (seed {args.seed}): {dict(words)}")
    print(f"{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
