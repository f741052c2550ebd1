"""Kill jobs at random moments and check the files they leave: `python -m tests.kill --kills 200 --seed 1`.

Each job runs in a process forked from one that has imported everything and done nothing. Every other kill comes after a
random part of the time that the undisturbed job takes, the others shortly after a temporary file appears, while the job
writes. Then its files are checked, temporary files are made to look old, the job is repeated without a kill and checked
again, and no temporary file may be left.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import tagwise.cli  # imported once, before any child
from tests.kill.jobs import JOBS, Job, left_behind

assert tagwise.cli


def child(work: Callable[[Path], None], folder: Path) -> int:
    """Fork a process that does the work and exits with 0, or with 1 and a traceback."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 1)
        report = os.dup(2)
        os.dup2(sink, 2)
        try:
            work(folder)
            code = 0
        except BaseException:
            os.write(report, traceback.format_exc().encode())
    finally:
        os._exit(code)


def done(work: Callable[[Path], None], folder: Path, what: str) -> float:
    """Do work in a child to its end and return the seconds it took."""
    begin = time.perf_counter()
    _, status = os.waitpid(child(work, folder), 0)
    if status:
        raise SystemExit(f"{what} in {folder} went wrong (status {status})")
    return time.perf_counter() - begin


def killed(job: Job, folder: Path, moment: float, writing: bool) -> bool:
    """Kill a job after `moment` seconds (after its first write if `writing`). Return whether it was still running."""
    pid = child(job.work, folder)
    handle = os.pidfd_open(pid)
    try:
        while writing and not left_behind(folder) and not select.select([handle], [], [], 0)[0]:
            pass
        select.select([handle], [], [], moment)  # ends at the job's end or at the moment
        os.kill(pid, signal.SIGKILL)
    finally:
        os.close(handle)
    status = os.waitpid(pid, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit(f"{job.name} in {folder} failed before it was killed")
    return os.WIFSIGNALED(status)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.kill", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="kills of all jobs together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--job", choices=[job.name for job in JOBS], action="append", help="only these")
    given = parser.parse_args()
    draw = random.Random(given.seed)
    jobs = [job for job in JOBS if not given.job or job.name in given.job]
    counts: dict[str, Counter[str]] = {job.name: Counter() for job in jobs}
    root = Path(tempfile.mkdtemp(prefix="tagwise-kill-"))
    usual: dict[str, float] = {}
    for number in range(given.kills):
        job = jobs[number % len(jobs)]
        folder = root / f"{number}-{job.name}"
        folder.mkdir()
        done(job.prepare, folder, f"preparing {job.name}")
        if job.name not in usual:
            usual[job.name] = done(job.work, folder, job.name)
        found = counts[job.name]
        found["kills"] += 1
        writing = number // len(jobs) % 2 == 1
        moment = draw.random() * (0.002 if writing else usual[job.name])
        found["at work"] += killed(job, folder, moment, writing)
        found["left a temporary file"] += bool(left := left_behind(folder))
        for path in left:
            os.utime(path, (0, 0))
        done(job.check, folder, f"checking {job.name} after a kill")
        done(job.work, folder, f"{job.name} again after a kill")
        done(job.check, folder, f"checking {job.name} done again")
        if left := left_behind(folder):
            raise SystemExit(f"{job.name} done again after a kill leaves {left}")
        shutil.rmtree(folder)
    root.rmdir()
    json.dump(counts, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
