"""python -m tests.forge --count 10000 --seed 1: thousands of forged files, each used in a process that may crash.

Prints one line per finding, then the count of each outcome. The exit code is 1 if there are findings. A case is
identified by seed and number: --first N --count 1 repeats it, and --keep FILE writes its file.
"""

from __future__ import annotations

import argparse
import collections
import json
import logging
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

#: Seconds without output after which a case counts as hung, and the memory limit of a process in bytes.
PATIENCE, MEMORY = 30.0, 6 << 30


def work(seed: int, first: int, count: int, what: str = "model") -> None:
    """Run cases one after the other, and print a JSON line before and after each."""
    import resource

    from . import stored
    from . import trial as models

    def trial(seed: int, index: int, folder: Path) -> tuple[str, str]:
        return (
            models.trial(seed, index, folder) if what == "model" else stored.trial(what, seed, index, folder)
        )

    logging.disable(logging.WARNING)  # thousands of warnings about skipped shards
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        for index in range(first, first + count):
            print(json.dumps([index]), flush=True)
            print(json.dumps([index, *trial(seed, index, Path(folder))]), flush=True)


def run(
    seed: int, first: int, count: int, what: str = "model"
) -> tuple[collections.Counter[str], list[tuple[int, str, str]]]:
    """Return outcome counts and findings. A crash is a finding, and a new process continues with the next case."""
    seen: collections.Counter[str] = collections.Counter()
    found: list[tuple[int, str, str]] = []
    at, last = first, first + count
    while at < last:
        command = [sys.executable, "-m", "tests.forge", "--work"]
        command += ["--seed", str(seed), "--first", str(at), "--count", str(last - at), "--what", what]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        buffer, begun, heard = b"", at - 1, time.monotonic()
        while True:
            ready, _, _ = select.select([process.stdout], [], [], 1.0)
            if ready:
                part = os.read(process.stdout.fileno(), 1 << 16)
                if not part:
                    break
                heard = time.monotonic()
                *lines, buffer = (buffer + part).split(b"\n")
                for line in lines:
                    index, *outcome = json.loads(line)
                    begun = index
                    if outcome:
                        at = index + 1
                        seen[outcome[1] if not outcome[1].startswith("FOUND") else "FOUND"] += 1
                        if outcome[1].startswith("FOUND"):
                            found.append((index, *outcome))
            elif time.monotonic() - heard > PATIENCE:
                process.kill()
        errors = process.stderr.read().decode("utf-8", "replace")
        code = process.wait()
        process.stdout.close()
        process.stderr.close()
        if at < last:
            if begun < at:
                raise RuntimeError(f"the worker ended with {code} before its first case:\n{errors}")
            how = signal.Signals(-code).name if code < 0 else f"code {code}"
            last_line = (errors.strip().splitlines() or [""])[-1][:200]
            found.append((begun, _drawn(what, seed, begun), f"FOUND {how}: {last_line}"))
            seen["FOUND"] += 1
            at = begun + 1
    return seen, found


def _drawn(what: str, seed: int, index: int) -> str:
    """Describe the changes of a case that crashed its process."""
    if what != "model":
        return f"{what}: --first {index} --trace shows it"
    from .trial import draw

    path, _, actions = draw(seed, index)
    return f"{path.stem}: {'; '.join(actions)}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--what", choices=("model", "checkpoint", "shards", "labelling"), default="model")
    parser.add_argument("--keep", type=Path, help="write the file of the first case there, and end")
    parser.add_argument(
        "--trace", action="store_true", help="use the first case in this process; show the traceback"
    )
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.seed, given.first, given.count, given.what)
        return 0
    from .trial import draw, make, use

    if given.what != "model" and given.trace:
        from . import stored

        with tempfile.TemporaryDirectory() as folder:
            case = stored.STORED[given.what](
                stored.generator(given.what, given.seed, given.first), Path(folder)
            )
            print(case[0], flush=True)
            print(case[1]())
        return 0

    if given.keep or given.trace:
        original, forged, actions = draw(given.seed, given.first)
        print(f"{original.stem}: {'; '.join(actions)}")
        if given.keep:
            forged.write(given.keep)
            return 0
        with tempfile.TemporaryDirectory() as folder:
            path = forged.write(Path(folder) / "forged.tagwise")
            try:
                print(use(path, make.ALL[make.SAVED[original.stem][0]].test()[:2], given.first))
            except BaseException:
                traceback.print_exc()
        return 0
    seen, found = run(given.seed, given.first, given.count, given.what)
    for index, deeds_said, outcome in found:
        print(f"{given.seed}:{index} {outcome}\n    {deeds_said}")
    for outcome, times in seen.most_common():
        print(f"{times:8,}  {given.what}: {outcome}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
