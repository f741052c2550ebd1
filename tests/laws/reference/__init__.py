"""The slow twins: every algorithm of the papers as a few lines of plain NumPy, to read and to test against.

Reading order follows the library's own line:

- ``model``       weights and dense features -> scores, and back (the seam)
- ``chain``       scores -> log Z, marginals, Viterbi, k-best, conditional expectations
- ``listed``      the same for chains most of whose transitions score 0, by lists of the others
- ``enumeration`` the same by looking at all L**T paths: the oracle of the oracles
- ``losses``      the four losses, softmax-margin, partial labels; penalties
- ``optimize``    a plain minimiser for the convex cases
- ``perceptron``, ``costs``, ``mira``, ``qp``, ``svm``, ``boosting``, ``history``, ``generative``: by topic

Nothing here is fast, nothing here is shared with the package: agreement with it means something.
"""

from . import (
    boosting,
    chain,
    costs,
    enumeration,
    generative,
    history,
    listed,
    losses,
    mira,
    model,
    optimize,
    perceptron,
    qp,
    svm,
)
from .chain import Scores, scores

__all__ = [
    "Scores",
    "boosting",
    "chain",
    "costs",
    "enumeration",
    "generative",
    "history",
    "listed",
    "losses",
    "mira",
    "model",
    "optimize",
    "perceptron",
    "qp",
    "scores",
    "svm",
]
