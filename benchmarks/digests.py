"""SHA-256 of the model files of every learner on slices of the bundled corpora, which refactoring must not change.

Run `python -m benchmarks digests` before and after. benchmarks/out/digests.json has the last run.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tagwise as tw
from tagwise.estimators import LEARNERS

from .harness import Context, Result

SENTENCES = 250
#: Every learner, with the options that select different code.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "crf": ("crf", {"max_iter": 15}),
    "crf exp": ("crf", {"loss": "exp", "max_iter": 10}),
    "crf pointwise_log": ("crf", {"loss": "pointwise_log", "max_iter": 10}),
    "crf pointwise_exp": ("crf", {"loss": "pointwise_exp", "max_iter": 10}),
    "crf l1": ("crf", {"l1": 0.3, "l2": 0.0, "max_iter": 15}),
    "crf cg": ("crf", {"optimizer": "cg", "max_iter": 10}),
    "crf sgd": ("crf", {"optimizer": "sgd", "max_iter": 5}),
    "crf order 2": ("crf", {"order": 2, "max_iter": 5, "features": "S1"}),
    "crf rules": ("crf", {"constraints": "auto", "dictionary": 5, "max_iter": 10}),
    "crf pieces": ("crf", {"max_length": 12, "pi": 0.9, "max_iter": 10}),
    "perceptron": ("perceptron", {"max_iter": 4}),
    "perceptron batch": ("perceptron", {"max_iter": 4, "mode": "batch"}),
    "perceptron history": ("perceptron", {"max_iter": 3, "lookback": (1, 3)}),
    "perceptron kernel": ("perceptron", {"max_iter": 2, "kernel": tw.Poly(degree=2), "features": "S1"}),
    "mira": ("mira", {"max_iter": 3}),
    "mira f1": ("mira", {"max_iter": 3, "cost": "f1", "k": 2}),
    "pa": ("pa", {"max_iter": 3}),
    "arow": ("arow", {"max_iter": 3}),
    "hmsvm": ("hmsvm", {"max_iter": 3}),
    "hmsvm kernel": ("hmsvm", {"max_iter": 2, "kernel": "rbf", "features": "S1"}),
    "boosting": ("boosting", {"max_iter": 60, "features_per_round": 1, "max_length": None}),
    "boosting tight": (
        "boosting",
        {"max_iter": 40, "step": "line_search", "features_per_round": 1, "max_length": None},
    ),
    "hmm": ("hmm", {"features": "S1"}),
    "memm": ("memm", {"max_iter": 10}),
}


def digests(corpus: str) -> Iterator[tuple[str, str]]:
    """Yield each kind of learner with the digest of its model file and its predictions."""
    train, _, test = tw.load_corpus(corpus)
    with tempfile.TemporaryDirectory() as folder:
        for name, (learner, params) in KINDS.items():
            tagger = LEARNERS[learner](**{"features": "S2", **params}).fit(train[:SENTENCES])
            path = Path(folder) / "model.tagwise"
            tagger.save(path)
            digest = hashlib.sha256(path.read_bytes())
            digest.update(repr(tagger.predict(test[:50])).encode())
            yield name, digest.hexdigest()


def run(context: Context) -> Iterator[Result]:
    """Yield a table of digests for each bundled corpus."""
    for corpus in ("ewt-pos", "wnut17-ner"):
        result = Result(f"digests-{corpus}", f"Model files and predictions of every learner, {corpus}")
        for name, digest in digests(corpus):
            result.add(name, {"sha256": digest[:16]})
            result.raw[name] = digest
        yield result
