"""Hidden Markov SVM and kernels: 300 sentences as in the large-margin paper, conll2002-es, a dual perceptron.

small   `tagwise compare small-300`: 300 sentences of conll2002-es (NER) and of ptb-sample (POS), features S3, tested on
        the last 1,000 sentences of the training part. The first 300 and five random draws. l2 and C are chosen by
        cross-validation on the 300 sentences of each draw.
full    conll2002-es with S3: C and the margin chosen on the last tenth of the training part. F1, and the time to a
        relative gap of 1e-2 compared with our CRF, and with the structural SVM of dlib if it is installed.
dual    a perceptron on 3,000 sentences of conll2003-en, linear and polynomial, on attributes of one token each: S2 (the
        token itself), S3 (also its neighbours). Means over three orders of the sentences.
"""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import replace
from typing import Any

import tagwise as tw
from tagwise.apps.compare import PRESETS, collect, resolve_corpora
from tagwise.apps.compare import run as run_cells
from tagwise.apps.compare.table import Comparison

from . import ours, svm_peer
from .harness import Context, Ratio, Result, alternate, duration, stopwatch
from .workloads import NoData, data_folder

TASKS = {"conll2002-es": "NER", "ptb-sample": "POS"}
# Order of accuracy in the paper: each is at least as accurate as the next.
PAPER_ORDER = ("hmsvm", "crf", "boosting", "hmm")
# rescale, C: chosen on the last tenth of the training part
GRID = tuple((rescale, C) for rescale in ("margin", None) for C in (0.3, 1.0, 3.0))
L2 = 0.1  # of the CRF, not tuned here
PEER_SENTENCES = 1000


def small(context: Context, result: Result) -> None:
    """Add accuracy on 1,000 held-out sentences after 300. Quick: two draws, no tuning, without the slow learners."""
    data_folder()
    preset = PRESETS["small-300"]
    if context.quick:
        slow = {"boosting", "hmsvm poly"}
        names = tuple(x for x in preset.learners if getattr(x, "name", x) not in slow)
        preset = replace(preset, learners=names, seeds=2, tune={})
    data = resolve_corpora(preset.corpora, preset.limits, preset.held)
    cells = preset.cells(list(data))
    begin = time.perf_counter()
    jobs = min(2, os.cpu_count() or 1)
    table = collect(
        Comparison(published=preset.published), run_cells(cells, data, workers=jobs, n_jobs=1), cells
    )
    wall = time.perf_counter() - begin
    means: dict[tuple[str, str], float] = {}
    for corpus, task in TASKS.items():
        for learner in dict.fromkeys(row.learner for row in table):
            rows = [row for row in table if (row.corpus, row.learner) == (corpus, learner)]
            each = {row.seed: 100 * row.accuracy for row in rows}
            drawn = [x for seed, x in each.items() if seed]
            means[task, learner] = statistics.mean(drawn)
            paper = [p.value for p in preset.published if (p.corpus, p.learner) == (corpus, learner)]
            cells_shown = {
                "first 300": f"{each[0]:.2f}",
                "random draws": f"{means[task, learner]:.2f} ({min(drawn):.2f}-{max(drawn):.2f})",
                "paper": f"{paper[0]:.2f}" if paper else "",
                "chosen": " ".join(dict.fromkeys(row.chosen for row in rows if row.chosen)),
                "CPU": f"{statistics.mean(row.cpu or 0.0 for row in rows):.2f} s",
            }
            result.add(f"{task}, {learner}", cells_shown)
            result.raw[f"small {task} {learner}"] = {"accuracy": each, "chosen": [r.chosen for r in rows]}
    for task in TASKS.values():
        best = max(x for (t, name), x in means.items() if t == task and name.startswith("hmsvm"))
        order = [("best HM-SVM", best), *((n, means[task, n]) for n in PAPER_ORDER if (task, n) in means)]
        shown = " ".join(f"{name} {x:.2f}" for name, x in order)
        result.notes.append(
            f"{task}, order in the paper: hmsvm >= crf > boosting, hmm. Means of draws: {shown}"
        )
    result.notes.append(f"small: {len(cells)} cells in {wall:.0f} s with {jobs} processes, including tuning")


def choice(train: Any, context: Context) -> tuple[str | None, float, dict[str, float]]:
    """Return rescale and C with the best F1 on the last tenth of the training part. Quick: the previously best ones."""
    if context.quick:
        return "margin", 1.0, {}
    cut = len(train) * 9 // 10
    tried = {
        (rescale, C): float(
            tw.HMSVM(features="S3", C=C, rescale=rescale, n_jobs=1).fit(train[:cut]).score(train[cut:])
        )
        for rescale, C in GRID
    }
    best = max(GRID, key=lambda pair: tried[pair])
    return *best, {f"rescale={r} C={C:g}": x for (r, C), x in tried.items()}


def full(context: Context, result: Result) -> None:
    """Add F1 on conll2002-es with S3, and time compared with the CRF and dlib."""
    train, dev, test = ours.corpus("conll2002-es")
    rescale, C, tried = choice(train, context)
    made: dict[str, Any] = {
        "CRF": tw.CRF(features="S3", l2=L2, n_jobs=1),
        "HM-SVM": tw.HMSVM(features="S3", C=C, rescale=rescale, tol=1e-2, n_jobs=1),
    }
    sides = {name: (lambda t=tagger: t.fit(train)) for name, tagger in made.items()}
    times = alternate(sides, 1 if context.quick else min(context.rounds, 2))
    strength = {"CRF": f"l2={L2:g}", "HM-SVM": f"C={C:g}, rescale={rescale}"}
    for name, tagger in made.items():
        a, b = 100 * tagger.score(dev), 100 * tagger.score(test)
        cells = {"testa": f"{a:.2f}", "testb": f"{b:.2f}", "CPU": duration(times[name].cpu)}
        svm = name == "HM-SVM"
        result.add(
            f"conll2002-es S3, {name}",
            {**cells, "chosen": strength[name]},
            ">= 73.7 / 77.5" if svm else "",
            (a >= 73.7 and b >= 77.5) if svm else None,
        )
        result.raw[f"full {name}"] = {
            "testa": a,
            "testb": b,
            "wall": times[name].wall,
            "cpu": times[name].cpu,
        }
    result.raw["full tried"] = tried
    gap = made["HM-SVM"].history_[-1]["gap"]
    ratio = Ratio.of(times["HM-SVM"].cpu, times["CRF"].cpu)
    result.add(
        "time to a gap of 1e-2 / time of the CRF",
        {"CPU": f"{ratio.median:.2f}", "gap": f"{gap:.4f}"},
        "<= 3",
        ratio.median <= 3,
    )
    module = svm_peer.dlib()
    if module is None:
        result.notes.append("dlib is not installed: its structural SVM is skipped")
        return
    some = train[: PEER_SENTENCES // 5 if context.quick else PEER_SENTENCES]
    both, gap = svm_peer.compared(module, some, 1.0, 1)
    for name, took in both.items():
        result.add(
            f"chunks without types, {len(some):,} sentences, gap 1e-2, {name}", {"CPU": duration(took.cpu)}
        )
    ratio = Ratio.of(both["dlib"].cpu, both["HM-SVM"].cpu)
    result.add(
        "time of dlib / ours", {"CPU": f"{ratio.median:.1f}", "gap": f"{gap:.4f}"}, "> 1", ratio.median > 1
    )
    result.raw["full dlib"] = {name: took.cpu for name, took in both.items()}


def dual(context: Context, result: Result) -> None:
    """Add dev F1 of the dual perceptron and the linear one on conll2003-en."""
    folder = data_folder() / "conll2003-en"
    read = [
        tw.read(folder / f"{part}.txt.gz", "conll", columns=("word", "pos", "chunk", "label"))
        for part in ("train", "testa")
    ]
    train, dev = read[0][:3000], read[1]
    seeds = range(1 if context.quick else 3)
    for features, epochs, coef in (("S2", 10, 1.0), ("S2", 20, 1.0), ("S3", 10, 5.0)):
        common: dict[str, Any] = {"features": features, "max_iter": epochs, "n_jobs": 1}
        f1: dict[str, list[float]] = {"linear": [], "poly degree 2": []}
        cpu: dict[str, list[float]] = {"linear": [], "poly degree 2": []}
        for seed in seeds:
            made = {
                "linear": tw.Perceptron(random_state=seed, all_pairs=True, **common),
                "poly degree 2": tw.Perceptron(random_state=seed, kernel=tw.Poly(coef=coef), **common),
            }
            for name, tagger in made.items():
                cpu[name].append(stopwatch(lambda t=tagger: t.fit(train))[1])  # type: ignore[misc]
                f1[name].append(100 * tagger.score(dev))
        for name, scores in f1.items():
            kernel = name != "linear"
            mean, linear = statistics.mean(scores), statistics.mean(f1["linear"])
            cells = {
                "dev F1": f"{mean:.2f} ({min(scores):.2f}-{max(scores):.2f})",
                "CPU": duration(cpu[name]),
            }
            result.add(
                f"conll2003-en, 3,000 sentences, {features}, {epochs} epochs, {name}",
                cells,
                "> linear" if kernel else "",
                mean > linear if kernel else None,
            )
            result.raw[f"dual {features} {epochs} {name}"] = {"f1": scores, "cpu": cpu[name]}


def run(context: Context) -> Result:
    """Run all three parts. Parts whose data are missing are skipped with a note."""
    result = Result("svm", "Hidden Markov SVM and kernels")
    for part in (small, full, dual):
        try:
            part(context, result)
        except NoData as missing:
            result.notes.append(f"{part.__name__} skipped: {missing}")
    result.notes.append("seconds and CPU: one training with one thread, including encoding")
    return result
