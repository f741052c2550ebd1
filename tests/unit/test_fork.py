"""A forked child predicts and trains like its parent, even if the parent's threads were busy at the fork.

Each case runs in its own process, which is killed after a timeout: a child that hangs fails the test without blocking
others.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

#: Timeout in seconds. Each process takes a few.
PATIENCE = 120

BEGIN = """
import os, socket, sys, threading, warnings
warnings.simplefilter("ignore")  # Python 3.12 warns of forks in processes with threads, which this test needs
import tagwise as tw
from tests.corpora import X, Y
X, y = X * 6, Y * 6

def learners():
    yield tw.CRF(max_iter=3, n_jobs=2)
    yield tw.Perceptron(max_iter=2, parts=2, n_jobs=2)
    yield tw.MIRA(max_iter=1, k=3, n_jobs=2)
    yield tw.HMSVM(max_iter=1, n_jobs=2)
    yield tw.Boosting(max_iter=5, n_jobs=2)
    yield tw.CRF(max_iter=1, order=2, n_jobs=2)
    yield tw.MEMM(max_iter=2, n_jobs=2)

tagger = tw.CRF(max_iter=3, n_jobs=2).fit(X, y)
want = tagger.predict(X)
"""


def run(code: str) -> None:
    """Run the code after BEGIN in a new process."""
    source = BEGIN + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", source],
        timeout=PATIENCE,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TAGWISE_MOST_THREADS": "4"},
    )
    assert done.returncode == 0, done.stderr


def test_forked_children_predict_and_train() -> None:
    """A child of os.fork and its own child predict what the parent did and train every kind of learner."""
    run("""
    def child():
        assert tagger.predict(X) == want
        assert len(tagger.predict_kbest(X[:3], 2)) == 3
        for learner in learners():
            learner.fit(X[:20], y[:20]).predict(X[:20])

    def forked(f):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                f()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0

    for learner in learners():
        learner.fit(X[:20], y[:20]).predict(X[:20])
    forked(child)
    forked(lambda: forked(child))
    assert tagger.predict(X) == want
    """)


@pytest.mark.parametrize("executor", ["Pool", "ProcessPoolExecutor"])
def test_process_pools_forked_after_and_during_use(executor: str) -> None:
    """Workers forked after the parent used its threads, and while it uses them."""
    run(f"""
    import multiprocessing as mp
    from concurrent.futures import ProcessPoolExecutor

    def work(i):
        return tagger.predict(X[i:i + 10])

    context, parts = mp.get_context("fork"), range(0, 120, 10)
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            tagger.predict(X)

    threads = [threading.Thread(target=busy) for _ in range(2)]
    [thread.start() for thread in threads]
    try:
        if {executor!r} == "Pool":
            with context.Pool(2) as pool:
                found = pool.map(work, parts)
        else:
            with ProcessPoolExecutor(2, mp_context=context) as pool:
                found = list(pool.map(work, parts))
    finally:
        stop.set()
    [thread.join() for thread in threads]
    assert [path for part in found for path in part] == want
    """)


def test_prefork_server() -> None:
    """The parent loads, predicts and listens. Each child accepts and answers several connections."""
    run("""
    import json
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            tagger.predict(X)

    thread = threading.Thread(target=busy)
    thread.start()
    listening = socket.create_server(("127.0.0.1", 0))
    children = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            try:
                while True:
                    connection, _ = listening.accept()
                    with connection, connection.makefile("rw") as stream:
                        i = json.loads(stream.readline())
                        if i is None:
                            break
                        stream.write(json.dumps(tagger.predict([X[i]])[0]) + "\\n")
                        stream.flush()
            finally:
                os._exit(0)
        children.append(pid)

    def request(i):
        with socket.create_connection(listening.getsockname()) as connection, connection.makefile("rw") as stream:
            stream.write(json.dumps(i) + "\\n")
            stream.flush()
            return stream.readline()

    for i in range(40):
        assert json.loads(request(i)) == want[i]
    for _ in children:
        request(None)
    stop.set()
    thread.join()
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in children)
    """)


def test_child_computes_a_cached_property_that_another_thread_computes_during_the_fork() -> None:
    """A child does not inherit a lock. `functools.cached_property` of Python 3.11 blocks it for ever."""
    run("""
    from tagwise.base.cached import cached
    entered, leave = threading.Event(), threading.Event()

    class Model:
        def __init__(self, compute):
            self.compute = compute

        @property
        @cached
        def value(self):
            return self.compute()

    def slow():
        entered.set()
        return leave.wait()

    thread = threading.Thread(target=lambda: Model(slow).value)
    thread.start()
    entered.wait()
    pid = os.fork()
    if pid == 0:
        os._exit(Model(lambda: 7).value)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    leave.set()
    thread.join()
    """)
