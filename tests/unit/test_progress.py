"""Progress of long calls: a line on a terminal and in a notebook, the log, nothing in a pipe."""

from __future__ import annotations

import io
import sys
import tempfile
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import tagwise as tw
from tagwise.base import progress

X = [["a", "b"], ["b", "c", "a"]]
Y = [["X", "Y"], ["Y", "X", "X"]]
CALLS = {
    "crf": lambda verbose: tw.CRF(features="S1", max_iter=4, tol=0.0, verbose=verbose).fit(X, Y),
    "perceptron": lambda verbose: tw.Perceptron(features="S1", max_iter=3, verbose=verbose).fit(X, Y),
    "partial_fit": lambda verbose: tw.MIRA(features="S1", verbose=verbose).partial_fit(X, Y, max_iter=2),
    "compare": lambda verbose: tw.compare(
        ["hmm", "perceptron"],
        corpus={"c": (tw.Corpus.from_lists(X, Y),) * 2},
        features=["S1"],
        verbose=verbose,
    ),
    "encode": lambda verbose: encoded(verbose),
    "classes": lambda verbose: tw.WordClasses.learn(X, classes=2, min_count=1, max_iter=3, verbose=verbose),
}


def encoded(verbose: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tw.write(tw.Corpus.from_lists(X, Y), f"{folder}/a.conll")
        tw.encode(f"{folder}/a.conll", f"{folder}/encoded", features="S1", verbose=verbose)


#: The last text that each call draws.
ENDS = {
    "crf": "4/4 objective",
    "perceptron": "3/3",
    "partial_fit": "2/2",
    "compare": "2/2 c perceptron S1",
    "encode": "1/1 2 sentences, 5 tokens",
    "classes": "/3 objective",
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("terminal", "verbose"), [(True, 1), (True, 0), (False, 1)])
def test_progress_line_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, call: str, terminal: bool, verbose: int
) -> None:
    """Only on a terminal and with verbose=1."""
    text = io.StringIO()
    made = Console(file=text, force_terminal=terminal, width=200, color_system=None)
    console_options: list[dict[str, Any]] = []
    monkeypatch.setattr(progress, "Console", lambda **options: console_options.append(options) or made)
    CALLS[call](verbose)
    assert console_options == [{"stderr": True}] * verbose
    if terminal and verbose:
        assert {"partial_fit": "mira"}.get(call, call) in text.getvalue()
        assert "/" in text.getvalue()
    else:
        assert text.getvalue() == ""


class Notebook:
    """A fake of IPython with a kernel, whose display can be updated."""

    def __init__(self, kernel: Any) -> None:
        self.drawn: list[str] = []
        shell = SimpleNamespace(kernel=kernel)
        self.root = SimpleNamespace(get_ipython=lambda: shell)
        self.display = SimpleNamespace(HTML=str, display=self.show)

    def show(self, text: str, display_id: bool) -> Notebook:
        assert display_id
        self.drawn.append(text)
        return self

    def update(self, text: str) -> None:
        self.drawn.append(text)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kernel", [object(), None])
def test_progress_line_in_a_notebook(monkeypatch: pytest.MonkeyPatch, call: str, kernel: Any) -> None:
    """HTML that is updated in place and removed at the end. IPython in a terminal is not a notebook."""
    book = Notebook(kernel)
    monkeypatch.setitem(sys.modules, "IPython", book.root)
    monkeypatch.setitem(sys.modules, "IPython.display", book.display)
    CALLS[call](1)
    if kernel is None:
        assert book.drawn == []
        return
    assert book.drawn[-1] == ""
    assert all("<progress " in text for text in book.drawn[:-1])
    assert ENDS[call] in book.drawn[-2]
    assert len(book.drawn) > 1
    before = len(book.drawn)
    CALLS[call](0)
    assert len(book.drawn) == before


def test_progress_line_is_removed_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is removed whatever ends training."""
    book = Notebook(object())
    monkeypatch.setitem(sys.modules, "IPython", book.root)
    monkeypatch.setitem(sys.modules, "IPython.display", book.display)

    def broken(_: Any) -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        tw.CRF(features="S1", verbose=1).fit(X, Y, callbacks=[broken])
    assert book.drawn[-1] == ""


def test_no_progress_without_verbose(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a notebook either."""
    book = Notebook(object())
    monkeypatch.setitem(sys.modules, "IPython", book.root)
    monkeypatch.setitem(sys.modules, "IPython.display", book.display)
    for quiet in (True, False):
        with progress.TrainingProgress(Console(file=io.StringIO()), "t", quiet=quiet) as line:
            line.update(1, 1, "")
        assert bool(book.drawn) is not quiet
