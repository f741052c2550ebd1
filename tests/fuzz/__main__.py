"""make fuzz MINUTES=10: damaged corpora and templates, and forged files, until the time or the count is reached.

Forged files are models, checkpoints, shard folders and labelling folders (`tests.forge`).

Prints the findings, then the count of each outcome. The exit code is 1 if there are findings. A trial is identified by
seed and number.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

PIECE = 5_000  # trials of a reader between two checks of the clock
FORGED = 500


def read(what: str, seed: int, first: int, count: int) -> tuple[Counter[str], list[str]]:
    """Run trials of a reader."""
    from .foreign import FOREIGN
    from .readers import TRIALS

    trials = {**TRIALS, **FOREIGN}
    seen: Counter[str] = Counter()
    found = []
    for index in range(first, first + count):
        try:
            outcome = trials[what](random.Random(f"{seed} {what} {index}"))
            seen[f"{what}: {outcome}"] += 1
            if outcome not in ("read", "refused"):
                found.append(f"{what} {seed}:{index} {outcome}")
        except Exception:
            found.append(f"{what} {seed}:{index}\n{traceback.format_exc(limit=3)}")
    return seen, found


#: Kinds of forged files (`tests.forge`).
FORGERIES = ("model", "checkpoint", "shards", "labelling")


def load(kind: str, seed: int, first: int, count: int) -> tuple[Counter[str], list[str]]:
    """Use forged files in processes that may crash."""
    from tests.forge.__main__ import run

    seen, found = run(seed, first, count, kind)
    return (
        Counter({f"forged {kind}: {what}": n for what, n in seen.items()}),
        [f"forged {kind} {seed}:{index} {outcome}\n    {actions}" for index, actions, outcome in found],
    )


def main() -> int:
    from .foreign import FOREIGN
    from .readers import TRIALS

    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--count", type=int, help="end after this number of inputs, regardless of time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    end, names = time.monotonic() + 60 * given.minutes, sorted({**TRIALS, **FOREIGN})
    seen: Counter[str] = Counter()
    found: list[str] = []
    with ProcessPoolExecutor(given.jobs) as pool:
        turn = 0
        while time.monotonic() < end and (given.count is None or seen.total() < given.count):
            pieces = [pool.submit(read, name, given.seed, turn * PIECE, PIECE) for name in names]
            pieces += [pool.submit(load, kind, given.seed, turn * FORGED, FORGED) for kind in FORGERIES]
            for piece in pieces:
                counts, reports = piece.result()
                seen += counts
                for text in reports:
                    print(text, flush=True)
                found += reports
            turn += 1
            if sys.stderr.isatty():
                print(
                    f"\r{seen.total():,} inputs, {len(found)} findings", end="", file=sys.stderr, flush=True
                )
    for what, n in sorted(seen.items()):
        print(f"{n:10,}  {what}")
    print(f"{seen.total():10,}  inputs, {len(found)} findings (seed {given.seed})")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
