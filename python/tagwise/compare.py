"""Learners by feature sets by corpora by sizes by seeds, each trained once, as one table.

>>> import tagwise as tw
>>> train, dev, test = tw.load_corpus("wnut17-ner")
>>> small = {"wnut": (train[:50], test[:20])}
>>> table = tw.compare(["crf"], corpus=small, features=["S1"], params={"max_iter": 3})
>>> table.rows[0].learner, table.rows[0].sentences
('crf', 50)
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Union

from tagwise.corpus import Corpus, load_corpus
from tagwise.errors import ParameterError

if TYPE_CHECKING:
    from rich.table import Table

# Which estimator a short name stands for, and what it settles; usable where the learner declares such values.
NAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "crf": ("crf", {}),
    "crf-l1": ("crf", {"l1": 0.1, "l2": 0.0}),
    "crf-exp": ("crf", {"loss": "exp"}),
    "crf-pointwise-log": ("crf", {"loss": "pointwise_log"}),
    "crf-pointwise-exp": ("crf", {"loss": "pointwise_exp"}),
}

CorpusSpec = Union[str, "Mapping[str, str | tuple[Corpus, Corpus]]", "Sequence[str]", "tuple[Corpus, Corpus]"]


@dataclass(frozen=True)
class Row:
    """One trained cell and what it measured."""

    corpus: str
    learner: str
    loss: str
    features: str
    sentences: int
    seed: int
    accuracy: float
    f1: float | None  # None where labels are no spans
    sequence_accuracy: float
    nonzero: int
    iterations: int
    seconds: float


@dataclass(frozen=True)
class Cell:
    """One thing to train: what identifies a row before it is measured."""

    corpus: str
    learner: str
    features: str
    size: int | None
    seed: int


@dataclass(frozen=True)
class Preset:
    """A named comparison."""

    name: str
    help: str
    corpora: tuple[str, ...]
    learners: tuple[str, ...]
    features: tuple[str, ...]
    limits: Mapping[str, int] = field(default_factory=dict)  # corpus -> training sentences taken
    params: Mapping[str, Any] = field(default_factory=dict)

    def caption(self) -> str:
        """What was left out to be quick, in words."""
        parts = [f"{corpus}: first {n:,} training sentences" for corpus, n in self.limits.items()]
        parts += [f"{name} = {value}" for name, value in self.params.items()]
        return "; ".join(parts)


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "bundled",
            "The bundled corpora, every feature set; under a minute.",
            corpora=("ewt-pos", "wnut17-ner"),
            learners=("crf", "perceptron", "mira"),
            features=("S1", "S2", "S3", "default"),
            limits={"ewt-pos": 5000},
            params={"l2": 0.1, "max_iter": 80},
        ),
    )
}


class Comparison(Sequence[Row]):
    """The rows of a comparison; prints itself as a table."""

    def __init__(self, rows: Sequence[Row] = (), *, title: str = "", caption: str = "") -> None:
        self.rows = list(rows)
        self.title = title
        self.caption = caption

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __rich__(self) -> Table:
        from tagwise.report.terminal import comparison_table

        return comparison_table(self)

    def __str__(self) -> str:
        from tagwise.report.terminal import as_text

        return as_text(self.__rich__())

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.rows)} rows>"

    def summary(self) -> list[dict[str, Any]]:
        """Means over seeds, one entry for each cell; the deviation of a measure stands under ``name_sd``."""
        measures = ("accuracy", "f1", "sequence_accuracy", "nonzero", "iterations", "seconds")
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in self.rows:
            key = (row.corpus, row.learner, row.loss, row.features, row.sentences)
            groups.setdefault(key, []).append(row)
        out = []
        for key, rows in groups.items():
            entry: dict[str, Any] = dict(zip(("corpus", "learner", "loss", "features", "sentences"), key))
            entry["seeds"] = len(rows)
            for name in measures:
                values = [value for row in rows if (value := getattr(row, name)) is not None]
                entry[name] = statistics.fmean(values) if values else None
                entry[f"{name}_sd"] = statistics.stdev(values) if len(values) > 1 else None
            out.append(entry)
        return out

    def to_dicts(self) -> list[dict[str, Any]]:
        """Every row, seeds apart."""
        return [asdict(row) for row in self.rows]

    def to_json(self) -> str:
        """Title, caption and rows as JSON."""
        return json.dumps({"title": self.title, "caption": self.caption, "rows": self.to_dicts()}, indent=2)

    def to_csv(self) -> str:
        """Every row as CSV with a head line; an absent measure is empty."""
        text = io.StringIO()
        writer = csv.DictWriter(text, [f.name for f in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.to_dicts())
        return text.getvalue()

    def to_markdown(self) -> str:
        """The printed table as Markdown."""
        from tagwise.report.terminal import comparison_cells

        head, body = comparison_cells(self)
        lines = ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *body)]
        if self.caption:
            lines += ["", self.caption]
        return "\n".join(lines) + "\n"


def learner_names() -> list[str]:
    """Every name that stands for a learner."""
    from tagwise.estimators import LEARNERS

    def declared(learner: str, settled: Mapping[str, Any]) -> bool:
        params = {param.name: param for param in LEARNERS[learner].PARAMS} if learner in LEARNERS else {}
        try:
            return learner in LEARNERS and all(
                params[key].check(value) == value for key, value in settled.items()
            )
        except (KeyError, ParameterError):
            return False

    return sorted({*LEARNERS, *(name for name, entry in NAMES.items() if declared(*entry))})


def check_learner(name: str) -> tuple[Any, dict[str, Any]]:
    """The estimator class a short name stands for, and the parameters it settles."""
    from tagwise.estimators import LEARNERS

    if name not in (known := learner_names()):
        raise ParameterError(f"there is no learner {name!r}. Use one of: {', '.join(known)}.")
    learner, preset = NAMES.get(name, (name, {}))
    return LEARNERS[learner], preset


def make(name: str, **params: Any) -> Any:
    """The estimator a short name stands for. Parameters given win over those of the name."""
    kind, preset = check_learner(name)
    return kind(**{**preset, **params})


def accepted(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some common parameters that a learner has and that its short name does not settle."""
    kind, preset = check_learner(name)
    declared = {param.name for param in kind.PARAMS}
    return {key: value for key, value in params.items() if key in declared and key not in preset}


def plan(
    learners: Sequence[str],
    corpora: Sequence[str],
    features: Sequence[str],
    sizes: Sequence[int] | None = None,
    seeds: int = 1,
) -> list[Cell]:
    """The cells of a comparison, in the order they are run and shown."""
    product = itertools.product(corpora, sizes or (None,), learners, features, range(seeds))
    return [Cell(corpus, learner, feature, size, seed) for corpus, size, learner, feature, seed in product]


def draw(train: Corpus, size: int | None, seed: int) -> Corpus:
    """The training sentences of a cell: the first `size` for seed 0, a random draw for every other seed."""
    if size is None or size >= len(train):
        return train
    if seed == 0:
        return train[:size]
    chosen = sorted(random.Random(seed).sample(range(len(train)), size))
    return Corpus((train[i] for i in chosen), columns=train.columns, label=train.label, source=train.source)


def measure(
    cell: Cell,
    train: Corpus,
    test: Corpus,
    params: Mapping[str, Any],
    callbacks: Sequence[Callable[[Any], Any]] = (),
) -> Row:
    """Train one cell and score it on the test corpus."""
    data = draw(train, cell.size, cell.seed)
    tagger = make(
        cell.learner, **accepted(cell.learner, {"seed": cell.seed, **params}), features=cell.features
    )
    begin = time.perf_counter()
    tagger.fit(data, callbacks=callbacks)
    seconds = time.perf_counter() - begin
    report = tagger.evaluate(test)
    return Row(
        corpus=cell.corpus,
        learner=cell.learner,
        loss=str(tagger.get_params().get("loss", "")),
        features=cell.features,
        sentences=len(data),
        seed=cell.seed,
        accuracy=report.accuracy,
        f1=report.f1 if report.chunked else None,
        sequence_accuracy=report.sequence_accuracy,
        nonzero=tagger.n_nonzero_,
        iterations=len(tagger.history_),
        seconds=seconds,
    )


def iter_compare(
    cells: Sequence[Cell],
    corpora: Mapping[str, tuple[Corpus, Corpus]],
    params: Mapping[str, Any],
    callbacks: Callable[[Cell], Sequence[Callable[[Any], Any]]] = lambda _: (),
) -> Iterator[Row]:
    """Train the cells one after the other, yielding each row as it is measured."""
    for cell in cells:
        train, test = corpora[cell.corpus]
        yield measure(cell, train, test, params, callbacks(cell))


def resolve_corpora(spec: Any, limits: Mapping[str, int] | None = None) -> dict[str, tuple[Corpus, Corpus]]:
    """Training and test data by name, from bundled names, a pair of corpora, or a mapping of either."""
    if isinstance(spec, str):
        spec = {spec: spec}
    elif isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[0], Corpus):
        spec = {os.path.basename(spec[0].source or "corpus"): spec}
    elif not isinstance(spec, Mapping):
        spec = {name: name for name in spec}
    out = {}
    for name, data in spec.items():
        if isinstance(data, str):
            train, _, test = load_corpus(data)
        else:
            train, test = data[0], data[-1]
        out[name] = (draw(train, (limits or {}).get(name), 0), test)
    return out


def compare(
    learners: Sequence[str] = ("crf",),
    *,
    corpus: CorpusSpec = "ewt-pos",
    features: Sequence[str] = ("S1", "S2", "S3"),
    sizes: Sequence[int] | None = None,
    seeds: int = 1,
    params: Mapping[str, Any] | None = None,
    title: str = "",
    caption: str = "",
) -> Comparison:
    """Train every learner with every feature set on every corpus, and score each on its test part.

    Parameters
    ----------
    learners
        Short names: those of ``tagwise.estimators.LEARNERS``, and variants such as ``crf-l1``.
    corpus
        The name of a bundled corpus or several; a pair (train, test); a mapping of a name to either.
    features
        Feature sets or templates.
    sizes
        Numbers of training sentences, for learning curves; all sentences if not given.
    seeds
        How often each cell is trained. Seed 0 takes the first sentences, others draw theirs.
    params
        Parameters for every learner that has them, such as ``{"max_iter": 50, "n_jobs": 2}``.
    title, caption
        What to print above and below the table.
    """
    data = resolve_corpora(corpus)
    cells = plan(learners, list(data), features, sizes, seeds)
    rows = list(iter_compare(cells, data, params or {}))
    return Comparison(rows, title=title, caption=caption)


__all__ = [
    "NAMES",
    "PRESETS",
    "Cell",
    "Comparison",
    "Preset",
    "Row",
    "check_learner",
    "compare",
    "iter_compare",
    "make",
    "plan",
]
