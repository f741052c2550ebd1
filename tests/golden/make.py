"""Write golden model files and their predictions for kinds that have none yet. Existing ones are never rewritten.

For a new learner, option or part of the format, add a row to `kinds.py` (to `KEPT`, or to `KINDS` to include it in the
round-trip laws). Then run, from the root of the repository and with the build to be recorded,

    python -m tests.golden.make

and commit both the file and `expected.json`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tagwise as tw

from . import corpus
from .kinds import KEPT, KINDS, Kind, fitted

FOLDER = Path(__file__).parent
EXPECTED = FOLDER / "expected.json"
ALL = KINDS | KEPT
#: Files saved with other options: name -> (kind, keywords of save).
SAVED: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in ALL if name != "crf-templates"},
    "crf-sparse-pruned": ("crf-sparse", {"prune": True}),
    "crf-templates-pruned": ("crf-templates", {"prune": True}),
    "perceptron-state": ("perceptron", {"state": True}),
    "arow-state": ("arow", {"state": True}),
}
#: Significant digits of a score and decimals of a probability that are kept.
SCORE, PROBABILITY = 7, 5


def observe(tagger: tw.Tagger, kind: Kind) -> dict[str, Any]:
    """Return predictions for the test sentences: paths, scores of the best ones, and marginals if available."""
    X = kind.test()
    ranked = tagger.predict_kbest(X, 3)
    out: dict[str, Any] = {
        "labels": list(tagger.classes_),
        "n_features": tagger.n_features_,
        "predict": tagger.predict(X),
        "kbest": [[[y, float(f"%.{SCORE}g" % s)] for y, s in best] for best in ranked],
    }
    state = tagger.model_.meta.get("state")
    if state is not None:
        out["state"] = state
    try:
        p = tagger.predict_marginals(X)
    except tw.TagwiseError:
        return out
    return out | {"marginals": [[[round(float(x), PROBABILITY) for x in row] for row in rows] for rows in p]}


def read() -> dict[str, Any]:
    """Return the predictions made when the files were written."""
    found: dict[str, Any] = json.loads(EXPECTED.read_text(encoding="utf-8")) if EXPECTED.exists() else {}
    return found


def main() -> None:
    """Write the missing files."""
    known = read()
    for name, (kind, how) in SAVED.items():
        path = FOLDER / f"{name}.tagwise"
        if name in known or path.exists():
            continue
        fitted(kind).save(path, **how)
        known[name] = {
            "bytes": path.stat().st_size,
            **observe(tw.load(path, functions=corpus.FUNCTIONS), ALL[kind]),
        }
    lines = [f"{json.dumps(name)}: {json.dumps(known[name], ensure_ascii=False)}" for name in known]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    EXPECTED.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
