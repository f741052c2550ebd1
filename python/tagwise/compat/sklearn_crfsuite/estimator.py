"""Scikit-learn estimator for the trainers and taggers of python-crfsuite."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Iterable, Iterator
from typing import Any

from tagwise.base.exceptions import not_fitted
from tagwise.compat.pycrfsuite import Tagger
from tagwise.compat.sklearn_crfsuite._fileresource import FileResource
from tagwise.compat.sklearn_crfsuite.compat import BaseEstimator
from tagwise.compat.sklearn_crfsuite.predictions import Predictions
from tagwise.compat.sklearn_crfsuite.trainer import LinePerIterationTrainer

#: Parameters of the estimator -> parameters of the trainers.
TRAINER = {
    "min_freq": "feature.minfreq",
    "all_possible_states": "feature.possible_states",
    "all_possible_transitions": "feature.possible_transitions",
    **{
        name: name
        for name in (
            *("c1", "c2", "max_iterations", "num_memories", "epsilon", "period", "delta"),
            *("linesearch", "max_linesearch"),
        )
    },
    **{
        f"calibration_{name}": f"calibration.{name}"
        for name in ("eta", "rate", "samples", "candidates", "max_trials")
    },
    "pa_type": "type",
    **{name: name for name in ("c", "error_sensitive", "averaging", "variance", "gamma")},
}
_MISSING = object()


def _pairs(X: Iterable[Any], y: Iterable[Any], name: str) -> Iterator[tuple[Any, Any]]:
    """Yield sequences with their labels. Raise ValueError if their numbers differ."""
    left, right = iter(X), iter(y)
    for i, xseq in enumerate(left):
        yseq = next(right, _MISSING)
        if yseq is _MISSING:
            raise ValueError(f"{name}: sequence {i} has no labels. X and y must have equal lengths")
        yield xseq, yseq
    if next(right, _MISSING) is not _MISSING:
        raise ValueError(
            f"{name}: there are more label sequences than item sequences. X and y must have equal lengths"
        )


def _model_file(path: str | os.PathLike[str] | None, keep: bool) -> FileResource:
    """Return the file of a model. It is temporary without a path."""
    name = None if path is None else os.fspath(path)
    return FileResource(name, keep, suffix=".crfsuite", prefix="model")


class CRF(BaseEstimator):  # type: ignore[misc]
    """Linear-chain CRF with the interface of scikit-learn. None means the default of the trainer.

    Args:
        algorithm: "lbfgs", "l2sgd", "ap", "pa" or "arow".
        min_freq: Minimum sum of the values of a feature. Rarer features are dropped.
        all_possible_states: Also generate features for attributes and labels that do not occur together.
        all_possible_transitions: Also generate features for pairs of labels that do not occur.
        c1: Strength of the L1 penalty (lbfgs, which then uses OWL-QN).
        c2: Strength of the L2 penalty (lbfgs, l2sgd).
        max_iterations: Maximum number of iterations.
        num_memories: Number of curvature pairs (lbfgs).
        epsilon: Threshold of the convergence test.
        period: Number of iterations over which the improvement is measured (lbfgs, l2sgd).
        delta: Minimum improvement. Training stops below it (lbfgs, l2sgd).
        linesearch: Accepted for compatibility. The line search is always the same (lbfgs).
        max_linesearch: Accepted for compatibility (lbfgs).
        calibration_eta: First learning rate to try (l2sgd).
        calibration_rate: Factor between successive learning rates (l2sgd).
        calibration_samples: Number of instances in a trial (l2sgd).
        calibration_candidates: Number of learning rates to find that reduce the loss (l2sgd).
        calibration_max_trials: Maximum number of trials (l2sgd).
        pa_type: Variant of the passive-aggressive update: 0, 1 or 2 (pa).
        c: Aggressiveness (pa).
        error_sensitive: Whether the cost depends on the number of wrong labels (pa).
        averaging: Whether to average the weights (pa).
        variance: Initial variance of each weight (arow).
        gamma: Tradeoff between the loss and the size of updates (arow).
        verbose: Print the log of the trainer.
        model_filename: File that `fit` writes the model to. An estimator that is not fitted reads it.
        keep_tempfiles: Do not remove temporary files.
        trainer_cls: Class of the trainer.
    """

    algorithm: str | None
    verbose: bool
    model_filename: str | os.PathLike[str] | None
    keep_tempfiles: bool
    trainer_cls: Any
    training_log_: Any

    def __init__(
        self,
        algorithm: str | None = None,
        min_freq: float | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: float | None = None,
        calibration_rate: float | None = None,
        calibration_samples: int | None = None,
        calibration_candidates: int | None = None,
        calibration_max_trials: int | None = None,
        pa_type: int | None = None,
        c: float | None = None,
        error_sensitive: bool | None = None,
        averaging: bool | None = None,
        variance: float | None = None,
        gamma: float | None = None,
        verbose: bool = False,
        model_filename: str | os.PathLike[str] | None = None,
        keep_tempfiles: bool = False,
        trainer_cls: Any = None,
    ) -> None:
        values = locals()
        for name in _NAMES:
            self._assign(name, values[name])
        self._modelfile: FileResource | None = None
        if self._is_read_only("model_filename"):
            self._modelfile = _model_file(model_filename, keep_tempfiles)
        self.training_log_ = None
        self._tagger: Tagger | None = None
        self._info_cached: Any = None

    @classmethod
    def _is_read_only(cls, name: str) -> bool:
        """Return whether a subclass defines a parameter as a property without a setter."""
        found = inspect.getattr_static(cls, name, None)
        return isinstance(found, property) and found.fset is None

    def _assign(self, name: str, value: Any) -> None:
        """Set a parameter, unless a subclass computes it."""
        if not self._is_read_only(name):
            setattr(self, name, value)

    # --- the model ------------------------------------------------------------------------------------------

    @property
    def modelfile(self) -> FileResource:
        """File of the model, according to the current parameters.

        If `model_filename` is a read-only property, the file is that of the constructor. The property may read it.
        """
        file = self._modelfile
        if file is not None and self._is_read_only("model_filename"):
            return file
        path = None if self.model_filename is None else os.fspath(self.model_filename)
        if file is None or (path is not None and (file.auto or file.name != path)):
            file = _model_file(path, self.keep_tempfiles)
            self._modelfile, self._tagger, self._info_cached = file, None, None
        return file

    @modelfile.setter
    def modelfile(self, value: FileResource) -> None:
        self._modelfile = value

    def fit(self, X: Any, y: Any, X_dev: Any = None, y_dev: Any = None) -> CRF:
        """Train on sequences of items (as python-crfsuite takes them) and their labels.

        Args:
            X: Sequences of items.
            y: Their labels.
            X_dev: Sequences to evaluate on after every iteration.
            y_dev: Their labels.
        """
        if (X_dev is None) != (y_dev is None):
            raise ValueError("Pass both X_dev and y_dev to use the holdout data")
        if self._tagger is not None:
            self._tagger.close()
        self._tagger = self._info_cached = None
        self.modelfile.refresh()
        trainer = self._get_trainer()
        for xseq, yseq in _pairs(X, y, "X"):
            trainer.append(xseq, yseq)
        if X_dev is not None:
            for xseq, yseq in _pairs(X_dev, y_dev, "X_dev"):
                trainer.append(xseq, yseq, 1)
        trainer.train(self.modelfile.name, holdout=-1 if X_dev is None else 1)
        self.modelfile.read_back()
        self.training_log_ = trainer.logparser
        return self

    def _get_trainer(self) -> Any:
        params = {theirs: getattr(self, ours) for ours, theirs in TRAINER.items()}
        kind = self.trainer_cls or LinePerIterationTrainer
        return kind(
            algorithm=self.algorithm,
            params={name: value for name, value in params.items() if value is not None},
            verbose=self.verbose,
        )

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there is a model, from `fit` or in `model_filename`."""
        file = self.modelfile
        return file.data is not None or (file.name is not None and os.path.isfile(file.name))

    @property
    def tagger_(self) -> Tagger | None:
        """Tagger of the model, or None without a model."""
        if self._tagger is None:
            file, tagger = self.modelfile, Tagger()
            if file.data is not None:
                tagger.open_inmemory(file.data)
            elif file.name is not None:
                tagger.open(file.name)
            else:
                return None
            self._tagger, self._info_cached = tagger, None
        return self._tagger

    def _fitted(self) -> Tagger:
        tagger = self.tagger_
        if tagger is None:
            raise not_fitted("this CRF is not fitted: call fit, or set model_filename")
        return tagger

    # --- prediction -----------------------------------------------------------------------------------------

    def predict(self, X: Iterable[Any]) -> Predictions:
        """Return the labels of sequences: an array [N] of lists, or [N, T] of labels if all lengths are equal."""
        return Predictions.of(self._fitted().tag_many(list(X)))

    def predict_single(self, xseq: Any) -> list[str]:
        """Return the labels of one sequence."""
        return self._fitted().tag(xseq)

    def predict_marginals(self, X: Iterable[Any]) -> Predictions:
        """Return a dict of label probabilities for every item, in the shape of `predict`."""
        return Predictions.of([self.predict_marginals_single(xseq) for xseq in X])

    def predict_marginals_single(self, xseq: Any) -> list[dict[str, float]]:
        """Return a dict of label probabilities for every item of one sequence."""
        tagger = self._fitted()
        tagger.set(xseq)
        return tagger.marginals()

    def score(self, X: Any, y: Any) -> Any:
        """Return the accuracy of the predicted labels."""
        from tagwise.compat.sklearn_crfsuite.metrics import flat_accuracy_score

        return flat_accuracy_score(y, self.predict(X))

    # --- inspection -----------------------------------------------------------------------------------------

    @property
    def _info(self) -> Any:
        tagger = self.tagger_
        if tagger is not None and self._info_cached is None:
            self._info_cached = tagger.info()
        return None if tagger is None else self._info_cached

    @property
    def classes_(self) -> list[str] | None:
        """Labels."""
        tagger = self.tagger_
        return None if tagger is None else tagger.labels()

    @property
    def size_(self) -> int | None:
        """Size of the model in bytes."""
        return None if self._info is None else int(self._info.header["size"])

    @property
    def num_attributes_(self) -> int | None:
        """Number of attributes."""
        return None if self._info is None else int(self._info.header["num_attrs"])

    @property
    def attributes_(self) -> list[str] | None:
        """Attributes, in the order of their numbers."""
        return None if self._info is None else list(self._info.attributes)

    @property
    def state_features_(self) -> dict[tuple[str, str], float] | None:
        """Weights of state features by (attribute, label)."""
        return None if self._info is None else self._info.state_features

    @property
    def transition_features_(self) -> dict[tuple[str, str], float] | None:
        """Weights of transitions by (from, to)."""
        return None if self._info is None else self._info.transitions

    # --- files ----------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state = {name: x for name, x in self.__dict__.items() if name != "_modelfile"}
        return state | {"modelfile": copy.copy(self.modelfile), "_tagger": None, "_info_cached": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, default in _NAMES.items():
            self._assign(name, state.get(name, default))
        rest = {name: x for name, x in state.items() if name not in ("modelfile", *_NAMES)}
        self.__dict__.update({"training_log_": None, **rest, "_tagger": None, "_info_cached": None})
        file = state.get("modelfile")
        self._modelfile = file
        if file is not None and "model_filename" not in state and not file.auto:
            self._assign("model_filename", file.name)


#: Parameters and their defaults.
_NAMES: dict[str, Any] = {
    "algorithm": None,
    **dict.fromkeys(TRAINER),
    "verbose": False,
    "model_filename": None,
    "keep_tempfiles": False,
    "trainer_cls": None,
}
