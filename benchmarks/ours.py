"""The tagwise side: the only file of the benchmarks that knows its API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise as tw

from .workloads import Attributes, data_folder, workload

Evaluate = Callable[[NDArray[np.float64]], float]


def crf(n_jobs: int | None = 1, **parameters: Any) -> Any:
    """A CRF over attribute lists with CRFsuite's objective, unless ``parameters`` say otherwise."""
    return tw.CRF(**{"features": None, "l2": 1.0, "start_end": False, "n_jobs": n_jobs, **parameters})


def named(features: str, n_jobs: int | None = 1, **parameters: Any) -> Any:
    """A CRF over tokens with a named feature set."""
    return tw.CRF(features=features, n_jobs=n_jobs, **parameters)


def trained(name: str, iterations: int, n_jobs: int = 1) -> Any:
    """A CRF of a workload after a few iterations."""
    return crf(n_jobs=n_jobs, max_iter=iterations).fit(*workload(name))


def fit_to(tagger: Any, X: Sequence[Attributes], y: Sequence[Sequence[str]], target: float) -> None:
    """Train until the objective is at most ``target``."""
    tagger.fit(X, y, callbacks=[lambda iteration: iteration.objective <= target])


def load(path: Path) -> Any:
    """Open a model file."""
    return tw.load(path)


def corpus(name: str) -> tuple[Any, Any, Any]:
    """(train, dev, test); NoData where the corpus is not bundled and not here."""
    if name != "ewt-pos":
        data_folder()
    train, dev, test = tw.load_corpus(name)
    return train, dev, test


def token_corpus(name: str) -> tuple[Any, list[list[str]]]:
    """A training corpus and the tokens to tag: its test part several times over, at least 100,000 tokens."""
    train, _, test = corpus(name)
    tokens = test.tokens
    times = -(-100_000 // sum(map(len, tokens)))
    return train[:2000], tokens * times
