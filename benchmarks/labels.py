"""Many labels: an iteration and tagging compared with CRFsuite by the number of labels, one thread.

Best paths, marginals and k-best lists are also compared with those from full transition matrices.

The data are the first sentences of ptb-sample with lexicalized tags: the most frequent pairs of a tag and a word become
labels until the required number is reached. The attributes are those of the workload `pos`. At most a few percent of
the L^2 transitions are features. An iteration of CRFsuite grows with L^2 and takes a millisecond per token with 546
labels, so that only 150 sentences are used. A whole training with 5,000 labels and 1,500 sentences, its time and its
memory are measured for tagwise only.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median

import numpy as np

from . import ours, peer
from .harness import Context, Ratio, Result, alternate, in_a_row, milliseconds
from .workloads import Attributes, pos, sentences

LABELS = (48, 149, 385, 546)
GOAL = 100.0  # for the largest number of labels
SENTENCES = 150
MOST, ALONE = 5000, 1500  # labels and sentences of the training
TAGGED = 30  # sentences that CRFsuite labels per round
ITERATIONS = 5  # iterations of the models used for tagging


def corpus(labels: int, n: int = SENTENCES) -> tuple[list[Attributes], list[list[str]]]:
    """Return (X, y) with that many labels, limited by the number of pairs of a tag and a word."""
    rows = sentences("pos")[:n]
    pairs = Counter((row[-1], row[0]) for s in rows for row in s)
    ranked = sorted(pairs, key=lambda pair: (-pairs[pair], pair))
    left = Counter(tag for tag, _ in pairs)  # number of words of each tag without their own label
    own: set[tuple[str, str]] = set()
    while len(own) + sum(n > 0 for n in left.values()) < labels and len(own) < len(ranked):
        own.add(ranked[len(own)])
        left[ranked[len(own) - 1][0]] -= 1
    y = [[f"{r[-1]}|{r[0]}" if (r[-1], r[0]) in own else r[-1] for r in s] for s in rows]
    return [pos(s) for s in rows], y


def against(context: Context, result: Result, labels: int) -> None:
    """Measure one number of labels: an iteration, tagging, and transition lists compared with full matrices."""
    X, y = corpus(labels)
    evaluate = ours.Evaluation(X, y)
    edges = evaluate.edges.stop - evaluate.edges.start
    row = f"{len({label for s in y for label in s})} labels, {edges:,} transitions"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        iteration(context, result, labels, row, path, evaluate, X, y)
        tagging(context, result, labels, row, path, X, y)
    compare_lists(context, result, row, evaluate)


def judged(
    result: Result, name: str, slow: list[float], fast: list[float], cells: dict[str, str], held: bool
) -> None:
    """Add a row with the ratio of two sides, which the goal applies to if `held`."""
    ratio = Ratio.of(slow, fast)
    cells = {**cells, "ratio, CPU time": str(ratio)}
    result.add(name, cells, f">= {GOAL:.0f}x" if held else "", ratio.median >= GOAL if held else None)
    result.raw[name] = {"crfsuite": slow, "ours": fast}


def iteration(
    context: Context,
    result: Result,
    labels: int,
    row: str,
    path: Path,
    evaluate: ours.Evaluation,
    X: list[Attributes],
    y: list[list[str]],
) -> None:
    """Time CRFsuite iterations with one line-search trial, each followed by ours. The model is kept at `path`."""
    w = 0.1 * np.random.default_rng(0).standard_normal(evaluate.size)
    evaluate(w, 1)  # first touch of memory
    fast: list[float] = []

    def turn(_: int) -> None:
        fast.append(median(cpu for _, cpu in in_a_row(lambda: evaluate(w, 1), 3)))

    run = peer.train(X, y, path, max(context.rounds + 2, ITERATIONS), turn)
    keep = [i for i in range(1, len(run.seconds)) if run.trials[i] == 1]
    slow, quick = [run.cpu[i] for i in keep], [fast[i] for i in keep]
    cells = {"CRFsuite": milliseconds(slow), "ours": milliseconds(quick)}
    judged(result, f"iteration, {row}", slow, quick, cells, labels == max(LABELS))


def tagging(
    context: Context,
    result: Result,
    labels: int,
    row: str,
    path: Path,
    X: list[Attributes],
    y: list[list[str]],
) -> None:
    """Time the tagging of a token from its attribute list."""
    theirs = peer.tagger(path)
    tagger = ours.crf(n_jobs=1, max_iter=ITERATIONS, optimizer="lbfgs").fit(X, y)
    few = X[:TAGGED]
    tagger.predict(X)
    sides = {"crfsuite": lambda: [theirs.tag(s) for s in few], "ours": lambda: tagger.predict(X)}
    times = alternate(sides, context.rounds)
    slow, fast = (
        [t / sum(map(len, x)) * 1e6 for t in times[k].cpu] for k, x in (("crfsuite", few), ("ours", X))
    )
    cells = {"CRFsuite": f"{median(slow):.1f} us", "ours": f"{median(fast):.2f} us"}
    judged(result, f"tagging, per token, {row}", slow, fast, cells, labels == max(LABELS))


def compare_lists(context: Context, result: Result, row: str, evaluate: ours.Evaluation) -> None:
    """Compare decoding with transition lists and with full matrices."""
    w = 0.1 * np.random.default_rng(0).standard_normal(evaluate.size)
    lists, whole = evaluate.decoding(w), evaluate.decoding(w, whole=True)
    for query in ("best", "marginals", "5 best"):
        sides = {"whole": whole[query], "lists": lists[query]}
        alternate(sides, 1)
        times = alternate(sides, context.rounds)
        cells = {
            "whole matrices": milliseconds(times["whole"].cpu),
            "ours": milliseconds(times["lists"].cpu),
            "ratio, CPU time": str(Ratio.of(times["whole"].cpu, times["lists"].cpu)),
        }
        result.add(f"{query}, {row}", cells)


def alone(context: Context, result: Result) -> None:
    """Time a default training with the largest number of labels and two threads."""
    X, y = corpus(MOST, ALONE)
    found = len({label for s in y for label in s})
    begin = time.perf_counter()
    tagger = ours.crf(n_jobs=max(context.threads)).fit(X, y)
    taken = time.perf_counter() - begin
    begin = time.perf_counter()
    tagger.predict(X)
    tagged = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cells = {
        "ours": f"{taken:.0f} s, {len(tagger.history_)} iterations, tagging {tagged:.1f} s, peak {peak:,.0f} MB"
    }
    result.add(f"training, {found:,} labels, {max(context.threads)} threads", cells, "<= 60 s", taken <= 60)
    result.raw["training"] = {
        "labels": found,
        "seconds": taken,
        "iterations": len(tagger.history_),
        "peak_mb": peak,
    }


def run(context: Context) -> Result:
    """Run all numbers of labels."""
    result = Result("labels", "Many labels: 150 sentences and one thread, unless noted")
    for labels in LABELS:
        against(context, result, labels)
    alone(context, result)
    return result
