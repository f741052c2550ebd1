"""The cost of a correction does not depend on the length of the queue or the number of labels."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tagwise.apps.annotate import queue as queues
from tagwise.apps.annotate import session as sessions
from tagwise.apps.annotate.folder import ProjectSettings
from tagwise.apps.annotate.learning import Learning
from tagwise.apps.annotate.project import Work
from tagwise.apps.annotate.queue import FIRST, SLICE
from tagwise.apps.annotate.session import SHOWN, Session


def opened(folder: Path, n: int) -> Session:
    """Return a session with n open sentences and a few labelled ones."""
    work = Work(folder, ProjectSettings(labels=["PER"]))
    gold = [[name, "slept", f"#{i}"] for i, name in enumerate(["Anna", "Peter", "Mary"])]
    work.add(tw.Corpus.from_lists(gold, [["B-PER", "O", "O"]] * len(gold)), "labelled")
    work.add(tw.Corpus.from_lists([["Anna", "went", f"w{i}", f"v{i % 7}"] for i in range(n)]), "open")
    return Session(work)


def until(found: Callable[[], bool]) -> None:
    """Wait until the background work satisfies a condition."""
    end = time.monotonic() + 60
    while not found():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_sentences_ranked_per_correction_do_not_depend_on_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranked: list[int] = []
    inner = queues.priorities

    def priorities(name: str, view: Any, X: Any, first: int = 0) -> Any:
        if threading.current_thread() is threading.main_thread():
            ranked.append(len(X))
        return inner(name, view, X, first)

    monkeypatch.setattr(queues, "priorities", priorities)
    found = {}
    for n in (2 * FIRST, 10 * SLICE):
        session = opened(tmp_path / str(n), n)
        until(lambda session=session: session.queue.stale == 0)  # type: ignore[misc]
        ranked.clear()
        state = session.accept(5, [])
        assert len(state["queue"]) == SHOWN
        found[n] = list(ranked)
        session.close()
    assert list(found.values()) == [[FIRST], [FIRST]]


def test_correction_does_not_read_all_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`labelled` is computed from all labels, for exports and training only, not during a request."""
    session = opened(tmp_path, 40)
    monkeypatch.setattr(Learning, "retraining_due", lambda self, labelled: False)

    def looked(self: Work) -> Any:
        raise AssertionError("a correction looked at all labels")

    monkeypatch.setattr(Work, "labelled", property(looked))
    state = session.accept(5, [])
    assert state["counts"] | {"stale": 0} == {
        "sentences": 43,
        "accepted": 1,
        "actions": 1,
        "given": 3,
        "done": 4,
        "open": 39,
        "skipped": 0,
        "flagged": 0,
        "rejected": 0,
        "stale": 0,
        "seconds": None,
    }
    assert session.accept(0, [])["counts"]["given"] == 2
    session.close()


def test_background_work_starts_after_the_drawing_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranking of further slices and full training begin after the time reserved for drawing the page."""
    monkeypatch.setattr(sessions, "DRAWING", 0.3)
    monkeypatch.setattr(Learning, "retraining_due", lambda self, labelled: True)
    session = opened(tmp_path, 3 * SLICE)
    until(lambda: session.queue.stale == 0)
    early: list[str] = []
    begun: list[str] = []

    def noted(event: str) -> None:
        begun.append(event)
        if time.monotonic() < session._drawn:
            early.append(event)

    scores, corpus = queues.Slice.scores, Work.corpus

    def slices(self: Any, sentences: Any) -> Any:
        if threading.current_thread() is session._ranker:
            noted("a slice")
        return scores(self, sentences)

    def read(self: Any, places: Any = None) -> Any:
        noted("training")
        return corpus(self, places)

    monkeypatch.setattr(queues.Slice, "scores", slices)
    monkeypatch.setattr(Work, "corpus", read)
    session.accept(5, [])
    session.learning.wait()
    until(lambda: session.queue.stale == 0)
    assert set(begun) == {"a slice", "training"}
    assert not early
    session.close()


def test_search_finds_sentences_at_the_end_of_the_queue(tmp_path: Path) -> None:
    session = opened(tmp_path, 6 * SLICE)
    found = session.listed("todo", f"w{6 * SLICE - 1}")
    assert (found["total"], found["rows"][0]["tokens"][2]) == (1, f"w{6 * SLICE - 1}")
    assert session.listed("all", "nothing like it") == {"total": 0, "offset": 0, "rows": []}
    session.close()
