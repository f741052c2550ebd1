"""Reference implementations: every algorithm of the papers in a few lines of plain NumPy.

The reading order follows the pipeline of the library:

- ``model``       weights and dense features -> scores, and back (the score interface)
- ``chain``       scores -> log Z, marginals, Viterbi, k-best, conditional expectations
- ``listed``      inference by lists of transitions, for chains most of whose transitions score 0
- ``enumeration`` inference by enumeration of all L**T paths, which tests the others
- ``losses``      the four losses, softmax-margin, partial labels, penalties
- ``perceptron``, ``costs``, ``mira``, ``qp``, ``svm``, ``boosting``, ``history``, ``generative``,
  ``bootstrap``, ``classes``: by topic

The modules are slow and share no code with the package, so that agreement with it is evidence.
"""

from . import (
    boosting,
    bootstrap,
    chain,
    classes,
    costs,
    enumeration,
    generative,
    history,
    listed,
    losses,
    mira,
    model,
    perceptron,
    qp,
    svm,
)
from .chain import Scores, scores

__all__ = [
    "Scores", "boosting", "bootstrap", "chain", "classes", "costs", "enumeration", "generative", "history", "listed",
    "losses", "mira", "model", "perceptron", "qp", "scores", "svm",
]  # fmt: skip
