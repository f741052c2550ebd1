"""The scikit-learn face: one class a learner, thin presets over the straight line.

`__init__` stores parameters, `fit` checks them, a second `fit` forgets the first; learned attributes end in `_`.

>>> import tagwise as tw
>>> tagger = tw.CRF(features="S2", l2=0.1, max_iter=20)
>>> X, y = [["the", "dog", "barks"], ["a", "cat"]], [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]
>>> tagger.fit(X, y).predict([["the", "cat", "barks"]])
[['DET', 'NOUN', 'VERB']]
"""

from __future__ import annotations

import os

from tagwise.errors import ModelFileError
from tagwise.estimators.base import Tagger
from tagwise.estimators.baselines import HMM, MEMM
from tagwise.estimators.boosting import Boosting
from tagwise.estimators.crf import CRF, LOSSES
from tagwise.estimators.mira import AROW, MIRA, PassiveAggressive
from tagwise.estimators.perceptron import Perceptron
from tagwise.estimators.svm import HMSVM
from tagwise.learners.loop import Iteration
from tagwise.model.model import Model

__all__ = [
    "AROW",
    "CRF",
    "HMM",
    "HMSVM",
    "LEARNERS",
    "LOSSES",
    "MEMM",
    "MIRA",
    "Boosting",
    "Iteration",
    "PassiveAggressive",
    "Perceptron",
    "Tagger",
    "load",
]

#: Every learner by its name on the command line.
LEARNERS: dict[str, type[Tagger]] = {
    kind.name: kind for kind in (CRF, Perceptron, MIRA, PassiveAggressive, AROW, HMSVM, Boosting, HMM, MEMM)
}


def load(path: str | os.PathLike[str], *, mmap: bool = False) -> Tagger:
    """The tagger of a model file.

    The file is read into memory and may be changed, moved or deleted afterwards.

    Args:
        path: the file.
        mmap: use weights and texts where they lie in the file, so that processes share one copy of them. While the
            tagger lives nobody may write to the file or cut it short: predictions would be others, or the process would
            end with SIGBUS. Replace it by renaming another one over it, as `save` does.
    """
    model = Model.load(path, mmap=mmap)
    learner = model.meta.get("learner")
    if learner not in LEARNERS:
        raise ModelFileError(
            f"{os.fspath(path)}: made by learner {learner!r}, which this tagwise does not know; "
            f"it knows: {', '.join(LEARNERS)}"
        )
    kind = LEARNERS[learner]
    known = {param.name for param in kind.PARAMS}
    tagger = kind(**{name: value for name, value in model.meta.get("params", {}).items() if name in known})
    tagger.model_ = model
    metrics = model.meta.get("metrics", {})
    tagger.history_ = []
    tagger.objective_ = float(metrics.get("objective", float("nan")))
    tagger.best_iteration_ = int(metrics.get("best_iteration", 0))
    tagger.stopped_ = str(metrics.get("stopped", ""))
    return tagger
