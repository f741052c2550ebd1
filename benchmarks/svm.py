"""The Hidden Markov SVM and kernels: 300 sentences as in the large-margin paper, conll2002-es, a dual perceptron.

small   300 sentences of conll2002-es (NER) and of ptb-sample (POS), features S3; tested on the last 1,000 sentences of
        the same file; the first 300 and five random draws from the rest. Strengths (l2, C) are chosen once, on the
        first 300: trained on 200 of them, scored on the other 100.
full    conll2002-es with S3: F1, and the time to a relative gap of 1e-2 beside that of our CRF.
dual    a perceptron on 3,000 sentences of conll2003-en, linear and polynomial, on attributes that look at one token
        each: S2 (the token itself), S3 (its neighbours too); means over three orders of the sentences.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

import tagwise as tw

from . import ours
from .harness import Context, Ratio, Result, alternate, duration, stopwatch
from .workloads import NoData, data_folder

TRAIN, HELD, DRAWS = 300, 1000, 5
COLUMNS = {"conll2002-es": ("word", "pos", "label"), "ptb-sample": ("word", "label")}
FILES = {"conll2002-es": "train.txt.gz", "ptb-sample": "all.txt.gz"}
# Altun & Hofmann 2003, table 1: NER, POS
PAPER = {"CRF": (94.55, 87.12), "HM-SVM": (94.92, 88.16)}

Make = Callable[[float], Any]
LEARNERS: dict[str, tuple[Make, tuple[float, ...]]] = {
    "CRF": (lambda x: tw.CRF(features="S3", l2=x, n_jobs=1), (0.03, 0.1, 0.3)),
    "HM-SVM": (lambda x: tw.HMSVM(features="S3", C=x, n_jobs=1), (0.3, 1.0, 3.0)),
    "HM-SVM, rescaled margin": (
        lambda x: tw.HMSVM(features="S3", C=x, rescale="margin", n_jobs=1),
        (0.3, 1.0, 3.0),
    ),
    "HM-SVM, poly degree 2": (
        lambda x: tw.HMSVM(features="S3", C=x, kernel="poly", n_jobs=1),
        (0.01, 0.1),
    ),
}


def accuracy(tagger: Any, held: Any) -> float:
    """Per cent of right labels."""
    return 100 * float(tagger.evaluate(held).accuracy)


def draws(corpus: Any, count: int) -> tuple[list[Any], Any]:
    """Training sets of 300 sentences, the first 300 first, and the held-out ones."""
    held, pool = corpus[-HELD:], len(corpus) - HELD
    chosen: list[list[int]] = [list(range(TRAIN))]
    for seed in range(1, count + 1):
        chosen.append(sorted(np.random.default_rng(seed).permutation(pool)[:TRAIN].tolist()))
    return [tw.Corpus([corpus[i] for i in rows]) for rows in chosen], held


def small(context: Context, result: Result) -> None:
    """Accuracy on 1,000 held-out sentences after 300."""
    count = 1 if context.quick else DRAWS
    for place, (name, task) in enumerate((("conll2002-es", "NER"), ("ptb-sample", "POS"))):
        corpus = tw.read_conll(data_folder() / name / FILES[name], columns=COLUMNS[name])
        sets, held = draws(corpus, count)
        first = sets[0]
        for learner, (make, grid) in LEARNERS.items():
            tried = {x: accuracy(make(x).fit(first[:200]), first[200:]) for x in grid}
            best = max(grid, key=lambda x: (tried[x], -x))
            each, cpu = [], 0.0
            for train in sets:
                tagger = make(best)
                cpu += stopwatch(lambda t=tagger, c=train: t.fit(c))[1]  # type: ignore[misc]
                each.append(accuracy(tagger, held))
            random = each[1:]
            paper = PAPER.get(learner)
            cells = {
                "first 300": f"{each[0]:.2f}",
                "random draws": f"{statistics.mean(random):.2f} ({min(random):.2f}-{max(random):.2f})",
                "paper": f"{paper[place]:.2f}" if paper else "",
                "strength": f"{best:g}",
                "seconds": f"{cpu / len(sets):.1f}",
            }
            result.add(f"{task}, {learner}", cells)
            result.raw[f"small {task} {learner}"] = {
                "tried": tried,
                "chosen": best,
                "accuracy": each,
                "cpu": cpu,
            }


def full(context: Context, result: Result) -> None:
    """conll2002-es with S3: F1, and time beside the CRF's."""
    train, dev, test = ours.corpus("conll2002-es")
    made: dict[str, Any] = {
        "CRF": tw.CRF(features="S3", l2=0.1, n_jobs=1),
        "HM-SVM": tw.HMSVM(features="S3", C=1.0, rescale="margin", tol=1e-2, n_jobs=1),
    }
    sides = {name: (lambda t=tagger: t.fit(train)) for name, tagger in made.items()}
    times = alternate(sides, 1 if context.quick else min(context.rounds, 3))
    for name, tagger in made.items():
        a, b = 100 * tagger.score(dev), 100 * tagger.score(test)
        cells = {"testa": f"{a:.2f}", "testb": f"{b:.2f}", "CPU": duration(times[name].cpu)}
        svm = name == "HM-SVM"
        result.add(
            f"conll2002-es S3, {name}",
            cells,
            ">= 73.7 / 77.5" if svm else "",
            (a >= 73.7 and b >= 77.5) if svm else None,
        )
        result.raw[f"full {name}"] = {
            "testa": a,
            "testb": b,
            "wall": times[name].wall,
            "cpu": times[name].cpu,
        }
    gap = made["HM-SVM"].history_[-1]["gap"]
    ratio = Ratio.of(times["HM-SVM"].cpu, times["CRF"].cpu)
    result.add(
        "time to a gap of 1e-2 / CRF's time",
        {"CPU": f"{ratio.median:.2f}", "gap": f"{gap:.4f}"},
        "<= 3",
        ratio.median <= 3,
    )


def dual(context: Context, result: Result) -> None:
    """Dual perceptron against the linear one, dev F1 on conll2003-en."""
    folder = data_folder() / "conll2003-en"
    read = [
        tw.read_conll(folder / f"{part}.txt.gz", columns=("word", "pos", "chunk", "label"))
        for part in ("train", "testa")
    ]
    train, dev = read[0][:3000], read[1]
    seeds = range(1 if context.quick else 3)
    for features, epochs, coef in (("S2", 10, 1.0), ("S2", 20, 1.0), ("S3", 10, 5.0)):
        common: dict[str, Any] = {"features": features, "epochs": epochs, "n_jobs": 1}
        f1: dict[str, list[float]] = {"linear": [], "poly degree 2": []}
        cpu: dict[str, list[float]] = {"linear": [], "poly degree 2": []}
        for seed in seeds:
            made = {
                "linear": tw.Perceptron(seed=seed, all_pairs=True, **common),
                "poly degree 2": tw.Perceptron(seed=seed, kernel="poly", coef=coef, **common),
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
    """All three; what needs missing data is left out with a word."""
    result = Result("svm", "Hidden Markov SVM and kernels")
    for part in (small, full, dual):
        try:
            part(context, result)
        except NoData as missing:
            result.notes.append(f"{part.__name__} left out: {missing}")
    result.notes.append("seconds and CPU: of one training, one thread, encoding included")
    return result
