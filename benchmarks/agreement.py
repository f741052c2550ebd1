"""F1 of the default optimizer compared with L-BFGS to a small tolerance, with the same features and the same l2."""

from __future__ import annotations

from typing import Any

from . import ours
from .harness import Context, Result, seconds
from .workloads import NoData, workload

MOST = 0.1  # maximum difference in points of F1
#: corpus, feature set, l2
NAMED = (
    *(("conll2002-es", features, 0.1) for features in ("S1", "S2", "S3")),
    ("conll2003-en", "ner", 0.1),
)
SETTINGS: dict[str, dict[str, Any]] = {"auto": {}, "L-BFGS": {"optimizer": "lbfgs", "max_iter": 1000}}


def compare(result: Result, name: str, made: Any, fitted: Any, scored: Any, l2: float) -> None:
    """Add a row with the scores, objectives and seconds of both optimizers."""
    cells, scores = {"l2": f"{l2:g}"}, {}
    for setting, parameters in SETTINGS.items():
        tagger = made(n_jobs=2, l2=l2, **parameters)
        taken = seconds(lambda t=tagger: t.fit(*fitted))
        scores[setting] = 100 * tagger.score(*scored)
        cells[setting] = f"{scores[setting]:.2f} ({tagger.objective_:.1f} in {taken:.1f} s)"
    difference = abs(scores["auto"] - scores["L-BFGS"])
    result.add(name, {**cells, "difference": f"{difference:.2f}"}, f"<= {MOST}", difference <= MOST)
    result.raw[name] = scores


def run(context: Context) -> Result:
    """Compare on conll2000 with the `chunk` attributes, then on tokens with named sets. Missing data are skipped."""
    result = Result("agreement", "F1 on test: the default optimizer and L-BFGS at the same l2 (two threads)")
    try:
        compare(result, "conll2000, chunk", ours.crf, workload("chunk"), workload("chunk", "test"), 1.0)
    except NoData as missing:
        result.notes.append(f"conll2000 skipped: {missing}")
    for corpus, features, l2 in NAMED:
        try:
            train, _, test = ours.corpus(corpus)
        except NoData as missing:
            result.notes.append(f"{corpus} skipped: {missing}")
            continue

        def made(features: str = features, **parameters: Any) -> Any:
            return ours.named(features, **parameters)

        compare(result, f"{corpus}, {features}", made, (train,), (test,), l2)
    return result
