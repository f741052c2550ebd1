"""A cell of a comparison: choice of its parameters, training, scores and the details that reports show."""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

from tagwise.apps.compare.cache import Cache, Names
from tagwise.apps.compare.plan import Cell, Data, draw, tuning_parts
from tagwise.base.parameters import cores
from tagwise.base.terminal import brief
from tagwise.corpus.sentence import Corpus
from tagwise.decoding.ranks import Ranks
from tagwise.evaluation.errors import Errors, find_errors
from tagwise.evaluation.metrics import count_by_sentence
from tagwise.scores.kernels import KernelScorer

#: Bounds of a result: test sentences whose labels it keeps and the length of the longest one, kinds of errors, and
#: features per label.
KEPT_SENTENCES, LONGEST, KEPT_KINDS, KEPT_FEATURES = 2_000, 100, 400, 12

Progress = Callable[[str], None]


@dataclass(frozen=True, repr=False)
class Row:
    """Scores and costs of one trained cell."""

    corpus: str
    learner: str
    loss: str
    features: str
    sentences: int
    seed: int
    accuracy: float
    f1: float | None  # None if labels do not mark spans, like precision and recall
    sequence_accuracy: float
    nonzero: int
    iterations: int
    seconds: float
    precision: float | None = None
    recall: float | None = None
    dev_accuracy: float | None = None
    dev_f1: float | None = None
    dev_precision: float | None = None
    dev_recall: float | None = None
    passes: int = 0  # over the training data
    cpu: float | None = None  # seconds of all threads together
    memory: int | None = None  # peak of the process in bytes, if the cell had its own process
    threads: int | None = None
    chosen: str = ""  # parameters chosen on held-out sentences or the dev part
    rank: float | None = None  # mean number of wrong paths no worse than the gold one, k at most
    beyond: float | None = None  # fraction of the sentences whose gold path is not among the k best
    margin: float | None = None  # median score of the gold path over the best wrong one

    def __repr__(self) -> str:
        name = "accuracy" if self.f1 is None else "F1"
        what = " ".join(filter(None, (self.corpus, self.learner, self.loss, self.features)))
        return f"<Row: {brief(what)}, {self.sentences} sentences, {name} {100 * self.score:.2f}>"

    def _repr_html_(self) -> str:
        from tagwise.base.markup import object_html

        shown = {name: value for name, value in vars(self).items() if value not in (None, "")}
        return object_html(self, [(k, f"{v:.4f}" if isinstance(v, float) else v) for k, v in shown.items()])

    @property
    def score(self) -> float:
        """F1 if labels mark spans, else accuracy."""
        return self.accuracy if self.f1 is None else self.f1

    @classmethod
    def of(cls, values: Mapping[str, Any], **changed: Any) -> Row:
        """Return a row from its dictionary, without unknown keys."""
        known = {field.name for field in fields(cls)}
        return cls(**{k: v for k, v in {**values, **changed}.items() if k in known})


def is_result(value: Mapping[str, Any]) -> bool:
    """Return whether a value has the form of a result of `measure`: a row with all required fields, and details."""
    row = value.get("row")
    if not isinstance(row, dict) or not isinstance(value.get("detail"), dict):
        return False
    texts = ("corpus", "learner", "loss", "features", "chosen")
    required = {field.name for field in fields(Row) if field.default is MISSING}
    return required <= row.keys() and all(
        isinstance(x, str) if name in texts else x is None or isinstance(x, (int, float))
        for name, x in row.items()
    )


def is_score(value: Mapping[str, Any]) -> bool:
    """Return whether a value has the form of the score of a trial."""
    return isinstance(value.get("score"), (int, float))


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes, or None if the system does not report it."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def choose(
    cell: Cell,
    train: Corpus,
    dev: Corpus | None,
    cache: Cache,
    names: Names,
    n_jobs: int | None,
    progress: Progress,
) -> dict[str, Any]:
    """Return the values of `cell.tune` that score best on held-out training sentences or on the dev part.

    Each trial has its own entry in the cache, so a grid with one more value trains only the new trials.
    """
    if not cell.tune:
        return {}
    parts, tracked = tuning_parts(cell, train, dev), cell.track and not cell.folds
    best: dict[str, Any] = {}
    best_score = -1.0
    tuned = sorted(cell.tune)  # the first of equals wins, independently of the order of names
    for values in itertools.product(*(cell.tune[name] for name in tuned)):
        trial = dict(zip(tuned, values))
        progress("held out: " + ", ".join(f"{k}={v}" for k, v in trial.items()))

        def run(trial: dict[str, Any] = trial) -> dict[str, Any]:
            tagger = cell.learner.make(**{**cell.settings(), **trial, **threads(cell, n_jobs)})
            scores = [
                tagger.fit(fitted, dev=scored if tracked else None).score(scored) for fitted, scored in parts
            ]
            return {"score": sum(scores) / len(scores)}

        score = float(cache.once(names.key(cell, trial=trial), run, is_score)["score"])
        if score > best_score:
            best, best_score = trial, score
    return best


def threads(cell: Cell, n_jobs: int | None) -> dict[str, Any]:
    """Return the number of threads as a parameter, if the learner has it."""
    return cell.learner.accepted({"n_jobs": n_jobs})


def measure(
    cell: Cell,
    data: Data,
    *,
    cache: Cache | None = None,
    names: Names | None = None,
    n_jobs: int | None = None,
    progress: Progress = lambda _: None,
    callbacks: Sequence[Callable[[Any], Any]] = (),
    own_process: bool = False,
) -> dict[str, Any]:
    """Train and score one cell, and return {"row": ..., "detail": ...} with values for JSON."""
    names = names or Names({cell.corpus: data})
    sentences = len(data.train) // data.folds * (data.folds - 1) if data.folds else None
    data = data.part(cell.seed)
    train = draw(data.train, cell.size, cell.seed)
    chosen = choose(cell, train, data.dev, cache or Cache(None), names, n_jobs, progress)
    tagger = cell.learner.make(**{**cell.settings(), **chosen, **threads(cell, n_jobs)})
    progress("reading features")

    def report_step(step: Any) -> None:
        progress(f"iteration {step.iteration}/{step.max_iter}, objective {step.objective:,.1f}")

    begin, used = time.perf_counter(), time.process_time()
    tagger.fit(train, dev=data.dev if cell.track else None, callbacks=[report_step, *callbacks])
    seconds, cpu = time.perf_counter() - begin, time.process_time() - used
    memory = peak_memory() if own_process else None
    progress("scoring")
    predicted = tagger.predict(data.test)
    found = find_errors(data.test, predicted)
    report = found.report
    dev = tagger.evaluate(data.dev) if cell.dev and data.dev is not None else None
    ranks = ranked(tagger, data.test, cell.risks)
    row = Row(
        corpus=cell.corpus,
        learner=cell.learner.name,
        loss=str(tagger.get_params().get("loss", "")),
        features=cell.title,
        sentences=len(train) if sentences is None or cell.size is not None else sentences,
        seed=cell.seed,
        accuracy=report.accuracy,
        f1=report.f1 if report.chunked else None,
        precision=report.precision if report.chunked else None,
        recall=report.recall if report.chunked else None,
        sequence_accuracy=report.sequence_accuracy,
        dev_accuracy=dev.accuracy if dev else None,
        dev_f1=dev.f1 if dev and dev.chunked else None,
        dev_precision=dev.precision if dev and dev.chunked else None,
        dev_recall=dev.recall if dev and dev.chunked else None,
        nonzero=tagger.n_nonzero_,
        iterations=len(tagger.history_),
        passes=max((int(entry["evaluations"]) for entry in tagger.history_), default=0),
        seconds=seconds,
        cpu=cpu,
        memory=memory,
        threads=n_jobs or cores(),
        rank=ranks.risk if ranks else None,
        beyond=ranks.beyond if ranks else None,
        margin=finite(ranks.median_margin) if ranks else None,
        chosen=", ".join(f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in chosen.items()),
    )
    details = detail(tagger, data.test, predicted, found)
    if ranks is not None:
        details |= {"ranks": ranks.rank.tolist(), "margins": [finite(m) for m in ranks.margin], "k": ranks.k}
    return {"row": asdict(row), "detail": details}


def finite(x: float) -> float | None:
    """Round a number to five digits, and return None for infinities and NaN, which JSON lacks."""
    return float(f"{x:.5g}") if math.isfinite(x) else None


def ranked(tagger: Any, test: Corpus, k: int | None) -> Ranks | None:
    """Return ranks and margins of the gold paths, or None if `k` is None or the k-best lists are not exact."""
    lookback = tagger.model_.scoring.lookback
    if k is None or (lookback is not None and not lookback.exact):
        return None
    found: Ranks = tagger.model_.ranks(test, k=k)
    return found


def detail(tagger: Any, test: Corpus, predicted: list[list[str]], found: Errors) -> dict[str, Any]:
    """Return the details of a cell that a report shows in addition to its row."""
    report = found.report
    out: dict[str, Any] = {
        "labels": list(tagger.classes_),
        "n_features": tagger.n_features_,
        "history": [
            {k: entry.get(k) for k in ("iteration", "objective", "dev_score", "seconds")}
            for entry in tagger.history_
        ],
        "counts": count_by_sentence(test, predicted),
        "per_type": {
            name: [s.gold, s.predicted, s.correct]
            for name, s in (report.per_type if report.chunked else report.per_label).items()
        },
        "confusion": [[g, p, n] for (g, p), n in sorted(report.confusion.items(), key=lambda e: -e[1])],
        "errors": [[g.kind, g.gold, g.predicted, len(g.errors)] for g in found.groups[:KEPT_KINDS]],
        "wrong": wrong_sentences(test, predicted, list(tagger.classes_)),
    }
    scorer = tagger.model_.scorer
    if not isinstance(scorer, KernelScorer):  # a kernel model has no weights of features
        out["strongest"] = tagger.inspect(KEPT_FEATURES).labels
        out["transitions"] = [
            [round(float(x), 4) if abs(x) < 1e30 else None for x in line]
            for line in tagger.model_.native.edge_scores
        ]
    return out


def kept_sentences(test: Corpus) -> list[int]:
    """Return the indices of the test sentences whose labels results keep: evenly spaced, the same for every learner."""
    step = max(1, -(-len(test) // KEPT_SENTENCES))
    return [i for i in range(0, len(test), step) if len(test[i]) <= LONGEST]


def wrong_sentences(
    test: Corpus, predicted: Sequence[Sequence[str]], labels: Sequence[str]
) -> list[list[Any]]:
    """Return [index, predicted labels as indices in `labels`] of each kept sentence with a wrong label."""
    number = {label: i for i, label in enumerate(labels)}
    return [
        [i, [number[label] for label in predicted[i]]]
        for i in kept_sentences(test)
        if test[i].labels != list(predicted[i])
    ]
