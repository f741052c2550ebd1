"""Learners by losses by feature sets by corpora by sizes by seeds, each trained once, as one table.

>>> import tagwise as tw
>>> train, dev, test = tw.load_corpus("wnut17-ner")
>>> small = {"wnut": (train[:50], test[:20])}
>>> table = tw.compare(["crf"], corpus=small, features=["S1"], params={"max_iter": 3})
>>> table.rows[0].learner, table.rows[0].sentences
('crf', 50)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tagwise.apps.compare.cache import Cache, default_folder
from tagwise.apps.compare.cells import Row
from tagwise.apps.compare.learners import NAMES, ComparedLearner, check_learner, learner_names, make, parse
from tagwise.apps.compare.plan import Cell, CorpusSpec, Data, check_against, draw, plan, resolve_corpora
from tagwise.apps.compare.pool import Event
from tagwise.apps.compare.presets import PRESETS, Preset
from tagwise.apps.compare.run import run
from tagwise.apps.compare.table import Comparison, Published
from tagwise.base.exceptions import ParameterError, TrainingError
from tagwise.estimators.sharded.fit import backends
from tagwise.evaluation.significance import p_value
from tagwise.learners.loop import logger
from tagwise.learners.progress import TrainingProgress, progress
from tagwise.scores.losses import loss_curves


def compare(
    learners: Sequence[str | ComparedLearner] = ("crf",),
    *,
    corpus: CorpusSpec = "ewt-pos",
    features: Sequence[Any] = ("S1", "S2", "S3"),
    losses: Sequence[str] = (),
    sizes: Sequence[int] | None = None,
    seeds: int = 1,
    params: Mapping[str, Any] | None = None,
    tune: Mapping[str, Mapping[str, Sequence[Any]]] | None = None,
    folds: int = 1,
    against: str | None = None,
    cache: str | os.PathLike[str] | bool = False,
    jobs: int = 0,
    memory: int | None = None,
    backend: str = "local",
    risks: int | None = None,
    title: str = "",
    caption: str = "",
    verbose: int = 0,
) -> Comparison:
    """Train every learner with every feature set on every corpus, and score each on its test part.

    Args:
        learners: names: those of ``tagwise.LEARNERS``, variants such as ``crf-l1``, parameters in brackets:
            ``mira(k=10)``.
        corpus: the name of a corpus or several; (train, test) or (train, dev, test); a mapping of a name to either.
        features: a list of feature sets, templates, functions or sums (`Features`), as estimators take them.
        losses: for every learner that has a loss: these, each as a row.
        sizes: numbers of training sentences, for learning curves; all sentences if not given.
        seeds: how often each cell is trained. Seed 0 takes the first sentences, others draw theirs.
        params: parameters for every learner that has them, such as ``{"max_iter": 50, "n_jobs": 2}``.
        tune: values to choose from on held-out training sentences: ``{"crf": {"l2": [0.1, 1.0]}}``; of several
            parameters every combination. The same sentences are held out for all learners.
        folds: how often every fifth sentence is held out for that, others each time: 5 is cross-validation over all of
            them; 0 chooses on the dev part instead.
        against: the learner that the others are tested against (paired approximate randomisation); the table shows p.
        cache: a folder where results are kept, True for the usual one; what lies there is not trained again.
        jobs: processes that train at a time; 0 trains in this one.
        memory: bytes that these processes may hold together.
        backend: "ray" has the workers of the Ray cluster train, `jobs` of them (0: one a CPU), each with the memory
            that it needs for its cell.
        risks: also rank the gold paths of the test part in lists of so many: rank risk and margins stand beside the
            0-1 risk (sequences) and the Hamming risk (accuracy).
        title: what to print above the table.
        caption: what to print below it.
        verbose: 1 shows a line of progress on a terminal or in a notebook, and logs every cell to the logger `tagwise`.

    >>> import tagwise as tw
    >>> train, _, test = tw.load_corpus("wnut17-ner")
    >>> table = tw.compare(["perceptron", "hmm"], corpus={"few": (train[:20], test[:20])}, features=["S1"])
    >>> [(row["learner"], row["features"], row["sentences"]) for row in table.summary()]
    [('perceptron', 'S1', 20), ('hmm', 'S1', 20)]
    """
    data = resolve_corpora(corpus)
    settings = dict(params or {})
    n_jobs = settings.pop("n_jobs", 1 if jobs > 1 else None)
    cells = plan(
        learners,
        list(data),
        features,
        sizes,
        seeds,
        losses=losses,
        params=settings,
        tune=tune,
        folds=folds,
        risks=risks,
    )
    kept = Cache(default_folder() if cache is True else cache or None)
    base = None if against is None else check_against(against, cells)
    table = Comparison(title=title, caption=caption, against=base)
    events = run(
        cells, data, cache=kept, jobs=jobs, memory=memory, n_jobs=n_jobs, backend=check_backend(backend)
    )
    with progress("compare", verbose) as line:
        return collect(table, events, cells, told(line, len(cells)) if line is not None else lambda _: None)


def check_backend(name: str) -> str:
    """Who trains cells: refused where it is nobody."""
    if name not in backends():
        raise ParameterError(f"backend={name!r}: expected one of {', '.join(backends())}")
    return name


def told(line: TrainingProgress, total: int) -> Callable[[Event], None]:
    """Who shows the events of a comparison: a line, and the log."""
    done = 0

    def watch(event: Event) -> None:
        nonlocal done
        if event.kind == "done":
            done += 1
            logger.info("%d of %d: %s", done, total, event.cell.describe())
        line.update(done, total, f"{event.cell.describe()} {event.text or event.kind}")

    return watch


def collect(
    table: Comparison,
    events: Iterable[Event],
    cells: Sequence[Cell],
    watch: Callable[[Event], Any] = lambda _: None,
) -> Comparison:
    """Fill a table from the events of `run`, rows in the order of the cells; a failed cell raises at the end."""
    found: dict[int, tuple[Row, Mapping[str, Any] | None]] = {}
    failed: list[str] = []
    for event in events:
        if event.kind == "failed":
            failed.append(f"{event.cell.describe()}: {event.text}")
        if event.kind == "done" and event.result is not None:
            cell = event.cell
            names = {"corpus": cell.corpus, "learner": cell.learner.name, "features": cell.title}
            found[event.index] = (Row.of(event.result["row"], **names), event.result["detail"])
            ordered = [found[i] for i in range(len(cells)) if i in found]
            table.rows, table.details = [row for row, _ in ordered], [detail for _, detail in ordered]
        watch(event)
    if failed:
        raise TrainingError("\n".join(failed))
    return table


__all__ = [
    "NAMES",
    "PRESETS",
    "Cache",
    "Cell",
    "ComparedLearner",
    "Comparison",
    "Data",
    "Event",
    "Preset",
    "Published",
    "Row",
    "check_learner",
    "collect",
    "compare",
    "default_folder",
    "draw",
    "learner_names",
    "loss_curves",
    "make",
    "p_value",
    "parse",
    "plan",
    "resolve_corpora",
    "run",
]
