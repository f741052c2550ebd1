"""Another thread stops native calls and loops in Python. Concurrent calls continue."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import tagwise as tw
from tagwise import _core
from tagwise.base.exceptions import StoppedError, TagwiseError

WORDS = ["Rosa", "runs", "to", "Lund", "."]


@pytest.fixture(scope="module")
def tagger() -> tw.CRF:
    return tw.CRF(features="S2", max_iter=5).fit([WORDS] * 3, [["P", "O", "O", "L", "O"]] * 3)


def calls(tagger: tw.CRF) -> dict[str, Callable[[], Any]]:
    """Return the calls a server makes for requests, on more data than a thread processes in a second."""
    many, text = [WORDS * 4] * 20_000, " ".join(WORDS * 100_000)
    return {
        "predict": lambda: tagger.predict(many),
        "kbest": lambda: tagger.predict_kbest(many, 20),
        "confidence": lambda: list(tagger.predict_confidence(many)),
        "explain": lambda: tagger.explain(WORDS * 20_000),
        "tokenize": lambda: [tw.Tokenizer()(text) for _ in range(10)],
    }


@pytest.mark.parametrize("name", ["predict", "kbest", "confidence", "explain", "tokenize"])
def test_native_calls_end_soon_after_a_stop(tagger: tw.CRF, name: str) -> None:
    call, stop, started = calls(tagger)[name], _core.Stop(), threading.Event()
    ends: list[tuple[str, float]] = []

    def body() -> None:
        try:
            with stop:
                started.set()
                while True:
                    call()
        except StoppedError:
            ends.append(("stopped", time.process_time()))

    thread = threading.Thread(target=body)
    thread.start()
    started.wait()
    time.sleep(0.3)
    stop_time = time.process_time()
    stop.request()
    thread.join(60)
    ((how, when),) = ends
    assert how == "stopped"
    assert when - stop_time < 1.0
    assert tagger.predict([WORDS]) == [["P", "O", "O", "L", "O"]]  # this thread is not in a block


def test_stop_applies_within_its_block_only(tagger: tw.CRF) -> None:
    """Calls after `ask` stop at once, calls after the block do not, and blocks cannot be nested."""
    stop = _core.Stop()
    stop.request()
    with stop, pytest.raises(StoppedError, match="stopped by another thread"):
        tagger.predict([WORDS])
    with stop, pytest.raises(StoppedError):
        _core.Stop.check()
    _core.Stop.check()
    assert issubclass(StoppedError, TagwiseError)
    assert tagger.predict([WORDS])
    with _core.Stop(), pytest.raises(ValueError, match="already"), _core.Stop():
        pass
    _core.Stop.check()


def test_python_pattern_rendering_is_stopped() -> None:
    """Wapiti patterns are rendered in Python, token by token."""
    rendered = tw.CRF(features='u:%t[0,0,"a*b"]', max_iter=2).fit([["a", "b"]], [["x", "y"]])
    stop = _core.Stop()
    timer = threading.Timer(0.2, stop.request)
    timer.start()
    with stop, pytest.raises(StoppedError):
        rendered.predict([["ab"] * 1000] * 10_000)
    timer.join()
