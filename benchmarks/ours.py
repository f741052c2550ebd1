"""The tagwise side of the benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise as tw
from tagwise import _core
from tagwise.base.parameters import checked_parameters
from tagwise.dataset.encode import collect_labels, encode_labels
from tagwise.estimators.task import dev_scorer
from tagwise.features.inputs import Inputs

from .workloads import Attributes, data_folder, workload


def crf(n_jobs: int | None = 1, **parameters: Any) -> Any:
    """Return a CRF over attribute lists with the objective of CRFsuite, unless ``parameters`` override it."""
    return tw.CRF(**{"features": None, "l2": 1.0, "start_end": False, "n_jobs": n_jobs, **parameters})


def named(features: str, n_jobs: int | None = 1, **parameters: Any) -> Any:
    """Return a CRF over tokens with a named feature set."""
    return tw.CRF(features=features, n_jobs=n_jobs, **parameters)


def perceptron(features: str, **parameters: Any) -> Any:
    """Return a perceptron over tokens with a named feature set."""
    return tw.Perceptron(features=features, n_jobs=1, **parameters)


def trained(name: str, iterations: int, n_jobs: int = 1) -> Any:
    """Return a CRF of a workload after a few iterations."""
    return crf(n_jobs=n_jobs, max_iter=iterations).fit(*workload(name))


def fit_to(tagger: Any, X: Sequence[Attributes], y: Sequence[Sequence[str]], target: float) -> None:
    """Train until the objective is at most ``target``."""
    tagger.fit(X, y, callbacks=[lambda iteration: bool(iteration.objective <= target)])


class Evaluation:
    """Objective of a training set, evaluated with any number of threads."""

    def __init__(self, X: list[Attributes], y: list[list[str]]) -> None:
        vocabulary = _core.Vocabulary()
        encoded = _core.encode_attributes(vocabulary, X)
        labels = collect_labels(y)  # in the order of the estimators
        data = encoded.with_gold(encode_labels(y, labels))
        layout = _core.Layout.build(data, len(vocabulary), len(labels), start_end=False)
        self.data, self.layout = data, layout
        self.objective = _core.Objective(data, layout)
        self.size = len(layout)
        self.edges = slice(layout.n_node, layout.n_node + layout.n_edge)  # transitions in the vector
        self.gradient = np.zeros(self.size)

    def __call__(self, w: NDArray[np.float64], n_jobs: int) -> float:
        """Return the loss at ``w`` and write the gradient to ``self.gradient``."""
        value: float = self.objective.evaluate(w, self.gradient, n_jobs)
        return value

    def decoding(self, w: NDArray[np.float64], *, whole: bool = False) -> dict[str, Callable[[], object]]:
        """Return calls for best paths, marginals and k-best lists of the training set at ``w``, with one thread.

        With ``whole``, decoding uses full transition matrices even if few label pairs are features.
        """
        before = _core.force("whole" if whole else "")
        try:
            scorer = _core.Scorer(self.layout, w.astype(np.float32))
        finally:
            _core.force(before)
        return {
            "best": lambda: scorer.viterbi(self.data, n_jobs=1),
            "marginals": lambda: scorer.marginals(self.data, n_jobs=1),
            "5 best": lambda: scorer.kbest(self.data, 5, n_jobs=1),
        }


def online(X: list[Attributes], y: list[list[str]], kind: str, **numbers: Any) -> _core.Online:
    """Return an online learner of attribute lists with the features of CRFsuite, before its first epoch."""
    vocabulary = _core.Vocabulary()
    encoded = _core.encode_attributes(vocabulary, X)
    ids: dict[str, int] = {}
    gold = [ids.setdefault(label, len(ids)) for labels in y for label in labels]
    data = encoded.with_gold(np.array(gold, dtype=np.uint16))
    layout = _core.Layout.build(data, len(vocabulary), len(ids), start_end=False)
    return _core.Online(data, layout, _core.Rule(kind, **numbers))


def load(path: Path) -> Any:
    """Open a model file."""
    return tw.load(path)


def corpus(name: str) -> tuple[Any, Any, Any]:
    """Return (train, dev, test). Raise NoData if the corpus is neither bundled nor installed."""
    if name != "ewt-pos":
        data_folder()
    train, dev, test = tw.load_corpus(name)
    return train, dev, test


def token_corpus(name: str) -> tuple[list[list[str]], list[list[str]], list[list[str]]]:
    """Return (X, y) to train on and the tokens to tag: copies of the test part with at least 100,000 tokens."""
    train, _, test = corpus(name)
    tokens = test.tokens
    times = -(-100_000 // sum(map(len, tokens)))
    return train.tokens, train.labels, tokens * times


def boosting(n_jobs: int | None = 1, **parameters: Any) -> Any:
    """Return a boosted tagger."""
    return tw.Boosting(n_jobs=n_jobs, **parameters)


def scorer(tagger: Any, task: Any, part: Any) -> Any:
    """Return a function that scores a weight vector on a corpus."""
    return dev_scorer(lambda w: tagger._model(task, w), task, Inputs.of(part), part.labels)


def _pieces(features: str, train: Any, max_length: int) -> tuple[Any, Any]:
    tagger = tw.Boosting(features=features, n_jobs=1)
    task = tagger._task(Inputs.of(train), train.labels, checked_parameters(tagger))
    return task.data.cut(max_length)[0], task.layout


def booster(features: str, train: Any, max_length: int, **options: Any) -> Any:
    """Return a core booster with one thread and pieces of at most `max_length` tokens."""
    data, layout = _pieces(features, train, max_length)
    rounds = _core.Rounds(smoothing=1.0 / len(data), max_step=5.0, **options)
    return _core.Boosting(data, layout, rounds, n_jobs=1)


def engine_pass(features: str, train: Any, max_length: int) -> Callable[[], float]:
    """Return a call for one evaluation of the exponential loss and its gradient on the same pieces, with one thread."""
    data, layout = _pieces(features, train, max_length)
    objective = _core.Objective(data, layout, loss="exp")
    w, gradient = np.zeros(len(layout)), np.zeros(len(layout))
    return lambda: objective.evaluate(w, gradient, 1)
