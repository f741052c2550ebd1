"""Comparison of learners, losses, feature sets, corpora and training sizes in one table.

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
from tagwise.apps.compare.plan import (
    HELD_OUT,
    Cell,
    CorpusSpec,
    Data,
    check_against,
    draw,
    plan,
    resolve_corpora,
)
from tagwise.apps.compare.pool import Event
from tagwise.apps.compare.presets import PRESETS, Preset
from tagwise.apps.compare.run import run
from tagwise.apps.compare.table import Comparison, Published
from tagwise.base import extensions
from tagwise.base.domains import Integer
from tagwise.base.exceptions import ParameterError, TrainingError
from tagwise.base.parameters import checked
from tagwise.base.progress import TrainingProgress, progress
from tagwise.dataset.shards.files import memory_of
from tagwise.evaluation.significance import p_value
from tagwise.learners.loop import logger
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
    risks: int | None = None,
    title: str = "",
    caption: str = "",
    cache: str | os.PathLike[str] | bool = False,
    memory: int | float | str | None = None,
    backend: str = extensions.LOCAL,
    workers: int | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Comparison:
    """Train every learner with every feature set on every corpus, and score each on the test part.

    Each combination of learner, loss, feature set, corpus, size and seed is a cell, which is trained once. Runs that
    differ in the seed alone share a row of the summary.

    Args:
        learners: Names of learners from ``tagwise.estimators.LEARNERS``, variants such as ``crf-l1``, or names with
            parameters such as ``mira(k=10)``.
        corpus: Name of a bundled corpus, a list of names, a tuple (train, test) or (train, dev, test), a single Corpus
            for cross-validation, or a mapping of names to such tuples or corpora.
        features: List of feature sets, templates, functions or `Features`, as estimators accept them.
            ``"default+classes"`` adds word classes, learned from the words of all parts of the corpus without labels.
        losses: Losses of the learners that have one. Each is a row. By default each learner uses its own.
        sizes: Numbers of training sentences. Give several for a learning curve. None uses all sentences.
        seeds: Number of runs per cell. Seed 0 trains on the first sentences, others draw a sample. Use 3 or more to
            see how much scores vary.
        params: Parameters for all learners that have them, such as ``{"max_iter": 50}``.
        tune: Values to choose from on held-out training sentences, such as ``{"crf": {"l2": [0.1, 1.0]}}``. All
            combinations are tried, and all learners hold out the same sentences. Tune for a fair comparison of
            learners whose defaults do not suit the corpus.
        folds: Number of folds, each a fifth of the training sentences, to score these values on. 1 is fastest, 5 is
            cross-validation, 0 uses the dev part instead. For a single Corpus it is the number of folds of its
            cross-validation, at least 2, and the table shows means over the folds.
        against: Learner to test the others against by paired approximate randomisation. The table then shows p-values.
        risks: Length of k-best lists in which gold paths of the test part are ranked. The table then shows rank risk
            and margins in addition to the 0-1 risk (sequences) and the Hamming risk (accuracy). None skips them.
        title: Title of the table.
        caption: Text below the table.
        cache: Folder that keeps results, or True for the default one. Cells found there are not trained again.
        memory: Memory that all processes together may use, such as ``"8G"``. None does not limit them.
        backend: ``"local"`` trains on this machine, ``"ray"`` on the Ray cluster that this process is connected to,
            with the memory that each cell needs. Results are the same.
        workers: Number of processes that train cells at the same time. 0 trains in this process, as None does
            without a cluster. On a cluster, None takes one worker per CPU.
        n_jobs: Number of threads per process. None uses all cores, or one if there are several workers.
        verbose: 1 shows a progress line on a terminal or in a notebook and logs every cell to the logger ``tagwise``.

    Returns:
        A `Comparison`. It prints as a table, and has `rows`, `summary()`, `to_csv()`, `to_json()`, `to_markdown()` and
        `to_latex()`.

    Raises:
        ParameterError: If a name or a value is unknown, or `against` is not one of the learners.
        CorpusError: If a corpus cannot be read.
        TrainingError: If cells failed. It is raised after all other cells are trained, and lists the failures.

    >>> import tagwise as tw
    >>> train, _, test = tw.load_corpus("wnut17-ner")
    >>> table = tw.compare(["perceptron", "hmm"], corpus={"few": (train[:20], test[:20])}, features=["S1"])
    >>> [(row["learner"], row["features"], row["sentences"]) for row in table.summary()]
    [('perceptron', 'S1', 20), ('hmm', 'S1', 20)]
    """
    data = resolve_corpora(corpus, folds=folds)
    if crossed := any(parts.folds for parts in data.values()):
        if seeds != 1 or not all(parts.folds for parts in data.values()):
            raise ParameterError(
                "corpus: cross-validation of a single Corpus runs once per fold. Leave out seeds and other corpora"
            )
        seeds = folds
    extensions.check_backend(backend)
    workers = checked("workers", workers, Integer(0, optional=True))
    n_jobs = checked("n_jobs", n_jobs, Integer(1, optional=True))
    verbose, limit = checked("verbose", verbose, Integer(0)), memory_of(memory)
    if "n_jobs" in (params or {}):
        raise ParameterError("params: n_jobs is an argument of compare itself. Pass n_jobs=... in its place")
    if n_jobs is None and (workers or 0) > 1:
        n_jobs = 1
    cells = plan(
        learners,
        list(data),
        features,
        sizes,
        seeds,
        losses=losses,
        params=params,
        tune=tune,
        folds=HELD_OUT if crossed else folds,
        risks=risks,
    )
    results = Cache(default_folder() if cache is True else cache or None)
    base = None if against is None else check_against(against, cells)
    tests = {name: parts.test for name, parts in data.items() if not parts.folds}
    table = Comparison(title=title, caption=caption, tests=tests, against=base)
    events = run(
        cells, data, cache=results, memory=limit, backend=backend, workers=workers or 0, n_jobs=n_jobs
    )
    with progress("compare", verbose) as line:
        return collect(
            table, events, cells, reporter(line, len(cells)) if line is not None else lambda _: None
        )


def reporter(line: TrainingProgress, total: int) -> Callable[[Event], None]:
    """Return a function that shows the events of a comparison in the progress line and in the log."""
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
    """Fill a table from the events of `run`, with rows in the order of the cells.

    A TrainingError that lists failed cells is raised at the end.
    """
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
