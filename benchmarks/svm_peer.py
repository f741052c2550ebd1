"""Structural SVM of dlib compared with ours on the same problem: chunks without types, Hamming loss, equal features.

dlib minimizes 1/2 ||v||^2 + C/n sum_i max_y [Hamming + H_v(y) - H_v(gold)] by cutting planes and stops when the mean
loss is known to `epsilon`. With v = w/2 that is a quarter of our objective with rescaled margins at C_ours = 4 C/n, so
that a relative gap g is an epsilon of g * primal / (n C_ours). Its features are the attributes, a bias and the
transitions of B, I and O, where I may not start a sentence or follow O. Ours has the same features.

dlib is optional. Without it the comparison is skipped.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

import tagwise as tw
from tagwise import _core
from tagwise.corpus.schemes import spans
from tagwise.features import recipe_for

from .harness import Times, alternate

GAP = 1e-2


def dlib() -> Any:
    """Return the module, or None if it is not installed or has no segmenter."""
    try:
        module = import_module("dlib")
    except ImportError:
        return None
    return module if hasattr(module, "train_sequence_segmenter") else None


class Problem:
    """Training set in the formats of both."""

    def __init__(self, module: Any, corpus: Any, features: str, C: float) -> None:
        self.module, self.C = module, C
        vocabulary = _core.Vocabulary()
        data = recipe_for(features, corpus).learned(corpus).encode(corpus, vocabulary, 1)
        pointers, ids, _ = data.node()
        tokens = [sorted(part.tolist()) for part in np.split(ids, pointers[1:-1].astype(np.int64))]
        names = [vocabulary.text(a) for a in range(len(vocabulary))]
        bounds = list(zip(data.offsets.tolist(), data.offsets.tolist()[1:]))
        self.X = [[["bias", *(names[a] for a in token)] for token in tokens[b:e]] for b, e in bounds]
        self.y = [[label[0] + "-x" if label != "O" else "O" for label in labels] for labels in corpus.labels]
        self.samples, self.segments = module.sparse_vectorss(), module.rangess()
        for (begin, end), labels in zip(bounds, corpus.labels):
            sentence, found = module.sparse_vectors(), module.ranges()
            for token in tokens[begin:end]:
                vector = module.sparse_vector()
                vector.extend([module.pair(a, 1.0) for a in token])
                sentence.append(vector)
            for span in spans(labels):
                found.append(module.range(span.begin, span.end))
            self.samples.append(sentence)
            self.segments.append(found)

    def ours(self) -> Any:
        """Train our solver with one thread, including encoding."""
        tagger = tw.HMSVM(
            features=None, C=self.C, rescale="margin", tol=GAP, constraints="bio", start_end=False, n_jobs=1
        )
        return tagger.fit(self.X, self.y)

    def theirs(self, primal: float, verbose: bool = False) -> Any:
        """Train dlib with one thread to the same relative gap, given our objective."""
        n = len(self.samples)
        params = self.module.segmenter_params()
        params.use_BIO_model, params.use_high_order_features = True, False
        params.allow_negative_weights, params.window_size, params.num_threads = True, 1, 1
        params.C, params.epsilon, params.be_verbose = n * self.C / 4, GAP * primal / (n * self.C), verbose
        return self.module.train_sequence_segmenter(self.samples, self.segments, params)


def compared(module: Any, corpus: Any, C: float, rounds: int) -> tuple[dict[str, Times], float]:
    """Return the times of both to the gap, alternated, and the gap of ours."""
    problem = Problem(module, corpus, "S3", C)
    first = problem.ours().history_[-1]
    sides = {"HM-SVM": problem.ours, "dlib": lambda: problem.theirs(first["objective"])}
    return alternate(sides, rounds), float(first["gap"])
