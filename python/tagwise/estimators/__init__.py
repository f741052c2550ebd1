"""Estimators with the interface of scikit-learn, one class per learner.

Constructors store parameters and `fit` checks them. A second `fit` discards the first. Learned attributes end in `_`.

>>> import tagwise as tw
>>> tagger = tw.CRF(features="S2", l2=0.1, max_iter=20)
>>> X, y = [["the", "dog", "barks"], ["a", "cat"]], [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]
>>> tagger.fit(X, y).predict([["the", "cat", "barks"]])
[['DET', 'NOUN', 'VERB']]
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tagwise.base.domains import Anything
from tagwise.base.exceptions import ModelFileError, ParameterError
from tagwise.base.imports import Functions
from tagwise.base.options import Kernel
from tagwise.base.parameters import parameters_of
from tagwise.estimators.base import Tagger
from tagwise.estimators.baselines import HMM, MEMM
from tagwise.estimators.boosting import Boosting
from tagwise.estimators.crf import CRF, LOSSES
from tagwise.estimators.mira import AROW, MIRA, PassiveAggressive
from tagwise.estimators.path import RegularizationPath, regularization_path
from tagwise.estimators.perceptron import Perceptron
from tagwise.estimators.svm import HMSVM
from tagwise.estimators.task import TRANSIENT
from tagwise.learners.loop import Iteration
from tagwise.model.model import Model
from tagwise.model.reading import error_prefix

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
    "RegularizationPath",
    "Tagger",
    "has_probabilities",
    "load",
    "regularization_path",
]

#: Learners by their names on the command line.
LEARNERS: dict[str, type[Tagger]] = {
    kind.name: kind for kind in (CRF, Perceptron, MIRA, PassiveAggressive, AROW, HMSVM, Boosting, HMM, MEMM)
}


def has_probabilities(model: Model) -> bool:
    """Return whether the scores of a model are log probabilities up to log Z, which its learner decides.

    Args:
        model: A model with the name of its learner in `meta`.

    Returns:
        True for models of CRF, HMM and MEMM.
    """
    return LEARNERS[model.meta["learner"]].probabilistic


def load(
    path: str | os.PathLike[str],
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    trust: bool = False,
    mmap: bool = False,
) -> Tagger:
    """Load a tagger from a model file of tagwise, CRFsuite, Wapiti or CRF++.

    The format is detected from the content. Nothing that the file names is imported or called unless `trust` is set.
    The file is read into memory, so that it may be changed, moved or deleted afterwards.

    Args:
        path: Path of the file.
        functions: Functions that the file names (of features, a kernel, a cost), by import path ("module:name") or by
            name. Without them such a model can be inspected, and predicting raises MissingFunctionError, which names
            them.
        trust: Import the modules that the file names, which runs their code. Set it to True only if you trust the
            author of the file.
        mmap: Map the file into memory instead of reading it, so that processes share one copy. Use it for large models
            in several processes. While the tagger exists, the file must not be written to or truncated: predictions
            would change, or the process would end with SIGBUS. Replace the file by renaming another one, as `save`
            does.

    Returns:
        A fitted tagger of the class that trained the model, with its parameters.

    Raises:
        ModelFileError: If the file is damaged, not a model, or of an unknown learner.
        FileError: If the file cannot be read.

    >>> import tagwise as tw
    >>> tw.CRF(features="S1").fit([["a", "dog"]], [["DT", "NN"]]).save("pos.tagwise")
    >>> load("pos.tagwise").predict([["a", "dog"]])
    [['DT', 'NN']]
    """
    model = Model.load(path, functions=functions, trust=trust, mmap=mmap)
    learner = model.meta.get("learner")
    if learner not in LEARNERS:
        raise ModelFileError(
            f"{os.fspath(path)}: this version of tagwise has no learner {learner!r}. Load the file with a newer "
            f"version. The learners are {', '.join(LEARNERS)}"
        )
    kind = LEARNERS[learner]
    with error_prefix(os.fspath(path)), error_prefix("meta.params"):
        params = _params(kind, model.meta.get("params", {}), Functions(functions, trust))
    if (
        model.recipe.kind in ("sum", "patterns")
        or model.recipe.derived_columns
        or (model.recipe.functions and not model.missing)
    ):
        params["features"] = model.recipe.spec  # the parameters in the file have only its name
    tagger = kind(**params)
    tagger.model_ = model
    metrics = model.meta.get("metrics", {})
    tagger.history_ = []
    tagger.objective_ = float(metrics.get("objective", float("nan")))
    tagger.best_iteration_ = int(metrics.get("best_iteration", 0))
    tagger.stopped_ = str(metrics.get("stopped", ""))
    tagger.converged_ = bool(metrics.get("converged", False))
    tagger.gap_ = metrics.get("gap")
    return tagger


def _params(kind: type[Tagger], stored: Mapping[str, Any], functions: Functions) -> dict[str, Any]:
    """Return the parameters of a learner from a model file, each checked. Those of the machine are left out."""
    out = {}
    for name, param in parameters_of(kind).items():
        if name not in stored or name in TRANSIENT:
            continue
        value = stored[name]
        if isinstance(param.domain, Anything) and param.domain.function is None:
            if not isinstance(value, (str, int, float, dict, type(None))):
                raise ParameterError(
                    f"{name}: expected {param.domain.describe()}, found {type(value).__name__}"
                )
            if param.domain.named and isinstance(value, str) and ":" in value:
                value = functions.find(value, f"the function of {name}")
        value = param.check(value)
        if isinstance(value, Kernel) and isinstance(value.function, str) and ":" in value.function:
            value = replace(value, function=functions.find(value.function, f"the function of {name}"))
        out[name] = value
    return out
