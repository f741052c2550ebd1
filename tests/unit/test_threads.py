"""Threads of the process: at most n_jobs, at most the cores, and none left from earlier values of n_jobs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tagwise as tw
from tagwise.base.parameters import cores

from ..corpora import X, Y

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")

COUNT = """
import os, sys, time
import tagwise as tw
from tests.corpora import X, Y
tagger = tw.CRF(max_iter=2, n_jobs=1).fit(X, Y)
want = tagger.predict(X)
for n in eval(sys.argv[1]):
    tagger.n_jobs = n
    assert tagger.predict(X) == want
# Threads that are let go end a little later; nothing says when.
print(min((time.sleep(0.02), len(os.listdir("/proc/self/task")))[1] for _ in range(15)))
"""


def threads(numbers: str, most: str = "") -> int:
    """Return the threads of a process that predicted with each of these n_jobs."""
    done = subprocess.run(
        [sys.executable, "-c", COUNT, numbers],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TAGWISE_MOST_THREADS": most, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_changing_n_jobs_leaves_one_thread_pool() -> None:
    """Forty values of n_jobs in turn leave at most the threads of the last one and one more."""
    assert threads("range(1, 41)", most="40") <= threads("[40]", most="40") + 1


def test_no_more_threads_than_cores() -> None:
    """A million threads are reduced to the number of cores."""
    assert threads("[10**6]") <= threads("[len(os.sched_getaffinity(0)) + 1]")


def test_results_do_not_depend_on_threads() -> None:
    """Weights are bit-identical."""
    weights = [
        tw.CRF(max_iter=4, n_jobs=n).fit(X, Y).model_.scorer.weights.tobytes() for n in (1, 2, 3, 10**6)
    ]
    assert len(set(weights)) == 1


def test_cores_follow_the_process_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cores that the process may use, or those of the machine if the system does not report them."""
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr(
        "os.sched_getaffinity", lambda process: {3, 9} if process == 0 else set(), raising=False
    )
    assert cores() == 2
    monkeypatch.delattr("os.sched_getaffinity")
    assert cores() == 64
