"""Short calls of the core run on the calling thread: equal results, no other thread, in a forked child too."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tagwise import _core

from ..corpora import X, Y


@pytest.fixture(scope="module")
def tagger() -> Any:
    return tw.CRF(features="S2", max_iter=5).fit(X, Y)


@pytest.fixture
def handed() -> Iterator[None]:
    before = _core.force("handed")
    yield
    _core.force(before)


def answers(tagger: Any) -> Any:
    return (
        tagger.predict(X),
        tagger.predict_kbest(X, 3),
        [p.tolist() for p in tagger.predict_marginals(X)],
        tw.Tokenizer().many(["Rosa runs. Oslo sings."])[0].tokens,
        tw.MIRA(features="S2", max_iter=2).fit(X, Y).partial_fit(X[:1], Y[:1]).model_.scorer.weights.tolist(),
    )


def test_inline_and_pooled_calls_agree(tagger: Any, request: pytest.FixtureRequest) -> None:
    _core.path_counts()
    here = answers(tagger)
    assert _core.path_counts()["here"] > 10
    request.getfixturevalue("handed")
    assert answers(tagger) == here
    assert "here" not in _core.path_counts()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
@pytest.mark.parametrize("n_jobs", [1, None])
def test_short_calls_start_no_thread(tagger: Any, n_jobs: int | None) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("a process of its own has no threads of other tests")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:  # a child only has the thread that forked
        tagger.set_params(n_jobs=n_jobs).predict(X[:1])
        tw.Tokenizer().many(["Rosa runs."], n_jobs)
        os.write(write, str(len(list(Path("/proc/self/task").iterdir()))).encode())
        os._exit(0)
    os.close(write)
    assert os.read(read, 100) == b"1"
    assert os.waitpid(pid, 0)[1] == 0
    os.close(read)


def test_short_lived_threads_get_results(tagger: Any) -> None:
    """More threads than may work on their own."""
    expected, found = tagger.predict(X[:1]), []

    def call() -> None:
        found.append(tagger.predict(X[:1]) == expected)

    for _ in range(300):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    assert found == [True] * 300
