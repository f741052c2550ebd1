"""A comparison of learners on the labelled sentences, with progress events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tagwise.apps.annotate.session import Session
from tagwise.apps.annotate.simulate import picked
from tagwise.apps.compare import Comparison, check_learner, collect, plan, resolve_corpora, run
from tagwise.apps.compare.cache import Cache
from tagwise.apps.compare.pool import Event
from tagwise.apps.compare.report import html
from tagwise.base.exceptions import ParameterError, TagwiseError

#: Default learners, and the maximum number of them.
LEARNERS, MOST = ("mira", "perceptron", "crf"), 8
FEWEST = 10


class Comparing:
    """Runs at most one comparison at a time. `notify` is called with its events."""

    def __init__(self, session: Session, notify: Callable[[str, dict[str, Any]], object]) -> None:
        self._session, self._notify = session, notify
        self._lock = threading.Lock()
        self._running = False
        self._table: Comparison | None = None

    def begin(self, learners: Sequence[str] | None = None) -> dict[str, Any]:
        """Train each learner on the labelled sentences, and score it on the dev corpus or on every fifth sentence."""
        names = list(LEARNERS) if learners is None else learners
        if (
            not isinstance(names, list)
            or not 0 < len(names) <= MOST
            or not all(isinstance(x, str) for x in names)
        ):
            raise ParameterError(f"learners: expected a list of 1 to {MOST} names of learners")
        for name in names:
            check_learner(name)
        corpus = self._session._corpus()
        if len(corpus) < FEWEST:
            raise ParameterError(
                f"{len(corpus)} sentences are labelled, but a comparison needs {FEWEST}. Label more"
            )
        test = self._session.dev
        train = corpus
        if test is None:
            train = picked(corpus, (i for i in range(len(corpus)) if i % 5))
            test = picked(corpus, range(0, len(corpus), 5))
        with self._lock:
            if self._running:
                raise ParameterError("a comparison is already running. Wait until it finishes")
            self._running = True
        threading.Thread(target=self._run, args=(names, train, test), daemon=True).start()
        return {"learners": names, "train": len(train), "test": len(test)}

    def _run(self, names: list[str], train: Any, test: Any) -> None:
        try:
            data = resolve_corpora({"labelled": (train, test)})
            cells = plan(names, list(data), ["default"], None, 1, params={})
            self._table = table = Comparison(title="labelled sentences", tests={"labelled": test})
            done = 0

            def watch(event: Event) -> None:
                nonlocal done
                done += event.kind == "done"
                rows = [_row(row) for row in table.rows]
                self._notify(
                    "compare",
                    {
                        "kind": event.kind,
                        "cell": event.cell.describe(),
                        "text": event.text,
                        "done": done,
                        "total": len(cells),
                        "rows": rows,
                    },
                )

            collect(table, run(cells, data, cache=Cache(None), workers=0, n_jobs=1), cells, watch)
            self._notify(
                "compare",
                {"kind": "end", "done": done, "total": len(cells), "rows": [_row(r) for r in table.rows]},
            )
        except TagwiseError as error:
            self._notify("compare", {"kind": "failed", "text": str(error)})
        finally:
            with self._lock:
                self._running = False

    def page(self) -> str | None:
        """Return the report of the last comparison that has rows."""
        table = self._table
        return None if table is None or not table.rows or self._running else html.page(table)


def _row(row: Any) -> Mapping[str, Any]:
    return {
        "learner": row.learner,
        "f1": row.f1,
        "accuracy": row.accuracy,
        "seconds": row.seconds,
    }
