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
from collections.abc import Callable, Mapping
from typing import Any

from tagwise.base.domains import Anything
from tagwise.base.exceptions import ModelFileError, ParameterError
from tagwise.base.imports import Functions
from tagwise.base.parameters import parameters_of
from tagwise.estimators.base import Tagger
from tagwise.estimators.baselines import HMM, MEMM
from tagwise.estimators.boosting import Boosting
from tagwise.estimators.crf import CRF, LOSSES
from tagwise.estimators.mira import AROW, MIRA, PassiveAggressive
from tagwise.estimators.perceptron import Perceptron
from tagwise.estimators.svm import HMSVM
from tagwise.estimators.task import TRANSIENT
from tagwise.learners.loop import Iteration
from tagwise.model.model import Model
from tagwise.model.reading import about

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
    "has_probabilities",
    "load",
]

#: Every learner by its name on the command line.
LEARNERS: dict[str, type[Tagger]] = {
    kind.name: kind for kind in (CRF, Perceptron, MIRA, PassiveAggressive, AROW, HMSVM, Boosting, HMM, MEMM)
}


def has_probabilities(model: Model) -> bool:
    """Whether exp(score) / Z of a model's paths are probabilities: those of its learner."""
    return LEARNERS[model.meta["learner"]].probabilistic


def load(
    path: str | os.PathLike[str],
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    trust: bool = False,
    mmap: bool = False,
) -> Tagger:
    """The tagger of a model file: of tagwise or, told by its content, of CRFsuite, Wapiti or CRF++.

    Nothing that the file names is imported or called, unless `trust` says so.

    The file is read into memory and may be changed, moved or deleted afterwards.

    Args:
        path: the file.
        functions: what stands for the functions that the file names (of features, a kernel, a cost), by import path
            ("module:name") or by name alone. Without it such a model can be looked at; predicting raises
            MissingFunctionError, which names what is missing.
        trust: import the modules that the file names, which runs their code: as safe as the file's author.
        mmap: use weights and texts where they lie in the file, so that processes share one copy of them. While the
            tagger lives nobody may write to the file or cut it short: predictions would be others, or the process would
            end with SIGBUS. Replace it by renaming another one over it, as `save` does.

    >>> import tagwise as tw
    >>> tw.CRF(features="S1").fit([["a", "dog"]], [["DT", "NN"]]).save("pos.tagwise")
    >>> load("pos.tagwise").predict([["a", "dog"]])
    [['DT', 'NN']]
    """
    model = Model.load(path, functions=functions, trust=trust, mmap=mmap)
    learner = model.meta.get("learner")
    if learner not in LEARNERS:
        raise ModelFileError(
            f"{os.fspath(path)}: made by learner {learner!r}, which this tagwise does not know; "
            f"it knows: {', '.join(LEARNERS)}"
        )
    kind = LEARNERS[learner]
    with about(os.fspath(path)), about("meta.params"):
        params = _params(kind, model.meta.get("params", {}), Functions(functions, trust))
    if model.lookback is not None and model.lookback.endless:
        params.setdefault("pool", model.lookback.pool)  # of files that do not name the parameter
    if (
        model.recipe.kind in ("sum", "patterns")
        or model.recipe.marks
        or (model.recipe.functions and not model.missing)
    ):
        params["features"] = model.recipe.spec  # the parameters in the file have its name alone
    # What was a tuple is a list in the file's JSON.
    tagger = kind(**{name: tuple(x) if isinstance(x, list) else x for name, x in params.items()})
    tagger.model_ = model
    metrics = model.meta.get("metrics", {})
    tagger.history_ = []
    tagger.objective_ = float(metrics.get("objective", float("nan")))
    tagger.best_iteration_ = int(metrics.get("best_iteration", 0))
    tagger.stopped_ = str(metrics.get("stopped", ""))
    return tagger


def _params(kind: type[Tagger], said: Mapping[str, Any], functions: Functions) -> dict[str, Any]:
    """What a file says of a learner's parameters, each inside its domain; those of the machine are not the file's."""
    out = {}
    for name, param in parameters_of(kind).items():
        if name not in said or name in TRANSIENT:
            continue
        value = said[name]
        if isinstance(param.domain, Anything) and param.domain.function is None:
            if not isinstance(value, (str, int, float, dict, type(None))):
                raise ParameterError(
                    f"{name}: expected {param.domain.describe()}, found {type(value).__name__}"
                )
            if param.domain.named and isinstance(value, str) and ":" in value:
                value = functions.find(value, f"the function of {name}")
        param.check(value)
        out[name] = value
    return out
