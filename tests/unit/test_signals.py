"""Ctrl-C takes effect within a fraction of a second wherever the core is running.

A child process reports the start of a long call. The signal is sent shortly after that, and the process must end. Long
means half a minute or more without the signal.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

#: Seconds. The core checks every 50 ms, but the machine may be busy.
HEARD = 5.0

BEGIN = """
import signal, sys, time
import numpy as np
import tagwise as tw
from tagwise import _core

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has it ignored
rng = np.random.default_rng(0)

def corpus(n, length, labels, words=200):
    X = [[f"w{i}" for i in rng.integers(0, words, length)] for _ in range(n)]
    return X, [[f"L{i}" for i in rng.integers(0, labels, length)] for _ in range(n)]

def long(f):
    print("ready", flush=True)
    try:
        answer = f()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.exit(0)
    # Interrupted training keeps the last iteration and sets `stopped_`.
    stopped = getattr(answer, "stopped_", "ended on its own")
    print(stopped.partition(";")[0], flush=True)
    sys.exit(0)
"""

#: A training set for boosting. A round takes seconds, and so does the preparation of the first.
BOOSTED = """
TIMES = 30
X, y = corpus(400, 30, 12, words=3_000)
sentences = [[[w, w[:2], w[-1:], "b"] for w in x] for x in X] * TIMES
data = _core.encode_attributes(vocabulary := _core.Vocabulary(), sentences)
data = data.with_gold(np.array([int(label[1:]) for one in y for label in one] * TIMES, np.uint16))
layout = _core.Layout.build(data, len(vocabulary), 12)
rounds = _core.Rounds("tight", features_per_round=2000, overlap=True, joint=True, smoothing=0.5)
"""

#: Calls that take half a minute or more each.
CALLS = {
    "an epoch of MIRA against many paths": """
X, y = corpus(50, 30, 10)
long(lambda: tw.MIRA(k=1500, max_iter=1, features="S1").fit(X, y))
""",
    "lists of many paths": """
X, y = corpus(50, 40, 10)
tagger = tw.Perceptron(max_iter=1, features="S1").fit(X, y)
long(lambda: tagger.predict_kbest(X * 5, 60_000))
""",
    "lists of many paths in double precision": """
X, y = corpus(50, 40, 10)
tagger = tw.MEMM(max_iter=2, features="S1").fit(X, y)
long(lambda: tagger.predict_kbest(X * 5, 60_000))
""",
    "prediction with history": """
data = _core.encode_attributes(_core.Vocabulary(), [[["a"]] * 100] * 200)
layout = _core.Layout.build(data.with_gold(np.zeros(data.n_tokens, np.uint16)), 1, 60)
terms = _core.LookbackSpec(60, 3, 3)
scorer = _core.Scorer(layout, np.ones(len(layout), np.float32))
history = _core.HistoryScorer(terms, np.ones(len(terms), np.float32))
long(lambda: history.kbest(scorer, data, 1, n_jobs=1))
""",
    "encoding attributes": """
sentences = [[["a", "b", "c"]] * 20] * 20
vocabulary = _core.Vocabulary()
_core.encode_attributes(vocabulary, sentences)
vocabulary.lock()
long(lambda: [_core.encode_attributes(vocabulary, sentences * 20_000) for _ in range(100)])
""",
    "encoding tokens": """
template = _core.Template("word[-2..2]\\nword[-2..2].suffix(1..5)", ["word"])
sentences = [[[f"w{i}" for i in rng.integers(0, 100_000, 30)]] for _ in range(3000)]
long(lambda: [_core.encode_tokens(template, _core.Vocabulary(), sentences * 30) for _ in range(100)])
""",
    "best paths": """
X, y = corpus(100, 100, 150)
tagger = tw.Perceptron(max_iter=1, features="S1", all_pairs=False).fit(X, y)
data = tagger.model_.encode(X * 100)
long(lambda: [tagger.model_.scorer.viterbi(data, n_jobs=1) for _ in range(100)])
""",
    "an evaluation": """
X, y = corpus(300, 100, 100)
long(lambda: tw.CRF(max_iter=10_000, tol=1e-300, features="S1", l2=1e-9).fit(X * 20, y * 20))
""",
    "the first pass of boosting": BOOSTED
    + """
long(lambda: [_core.Boosting(data, layout, rounds, n_jobs=1) for _ in range(100)])
""",
    "rounds of boosting": BOOSTED
    + """
booster = _core.Boosting(data, layout, rounds, n_jobs=1)

def run():
    raise booster.run(10**6)["raised"]

long(run)
""",
    "kernel": """
X, y = corpus(2000, 20, 5, words=20_000)
long(lambda: tw.Perceptron(max_iter=1, features="S2", kernel="rbf").fit(X, y))
""",
}


def interrupted(code: str) -> float:
    """Return the seconds between the signal and the end of the process, which must be by KeyboardInterrupt."""
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN + code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)  # let the call get well under way
        begin = time.perf_counter()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert out == "interrupted\n", (out, err)
        return time.perf_counter() - begin
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_interrupts_every_call(name: str) -> None:
    assert interrupted(CALLS[name]) < HEARD


def test_only_the_call_of_the_main_thread_stops() -> None:
    """A concurrent call on another thread runs to its end."""
    code = """
import threading
X, y = corpus(50, 40, 10)
tagger = tw.Perceptron(max_iter=1, features="S1").fit(X, y)
want = tagger.predict(X * 40)
results, heard = [], threading.Event()

def other():
    while not heard.is_set():
        results.append(tagger.predict(X * 40) == want)
    results.append(tagger.predict(X * 40) == want)

thread = threading.Thread(target=other)
thread.start()

def both():
    try:
        tagger.predict_kbest(X * 5, 60_000)
    finally:
        heard.set()
        thread.join()
        assert results and all(results)

long(both)
"""
    assert interrupted(code) < 2 * HEARD


def test_interrupted_rounds_leave_no_partial_step() -> None:
    """Signals at many moments: the weights are the sum of the reported steps, without partial rounds."""
    code = (
        BOOSTED.replace("TIMES = 30", "TIMES = 2")
        + """
interrupted = 0

def raise_it(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, raise_it)
begun = time.perf_counter()
_core.Boosting(data, layout, rounds, n_jobs=1).run(1)
seconds = time.perf_counter() - begun
for trial in range(200):  # until a signal has interrupted an update of the sums
    if trial >= 10 and interrupted:
        break
    delay = (0.05 + 1.2 * (0.618 * trial % 1.0)) * seconds
    booster = _core.Boosting(data, layout, rounds, n_jobs=1)
    w, raised = np.zeros(len(layout)), None
    before = booster.log_loss
    signal.setitimer(signal.ITIMER_REAL, delay)
    try:
        while raised is None:
            part = booster.run(3, 0.5)
            raised = part["raised"]
            np.add.at(w, part["feature"], part["step"])
    except KeyboardInterrupt:  # between two calls
        continue
    assert isinstance(raised, KeyboardInterrupt)
    assert np.allclose(booster.weights(), w, rtol=1e-12, atol=1e-12)
    assert booster.log_loss <= before
    interrupted += booster.interrupted
    if booster.interrupted:
        try:
            booster.run(1)
        except tw.exceptions.ParameterError as error:
            assert "restore a state" in str(error)
        else:
            raise AssertionError
    elif booster.rounds < 50:
        assert len(booster.run(1)["feature"])
assert interrupted
print("held")
"""
    )
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == "held\n", done.stderr
