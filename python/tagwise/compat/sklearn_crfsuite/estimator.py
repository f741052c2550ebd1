"""`CRF`: python-crfsuite behind fit and predict."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Iterator
from typing import Any

from tagwise.base.exceptions import not_fitted
from tagwise.compat.pycrfsuite import Tagger
from tagwise.compat.sklearn_crfsuite._fileresource import FileResource
from tagwise.compat.sklearn_crfsuite.compat import BaseEstimator
from tagwise.compat.sklearn_crfsuite.predictions import Predictions
from tagwise.compat.sklearn_crfsuite.trainer import LinePerIterationTrainer

#: Parameters of the trainers by the names they have here.
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


def _pairs(X: Iterable[Any], y: Iterable[Any], what: str) -> Iterator[tuple[Any, Any]]:
    """Sequences with their labels, as many of the ones as of the others."""
    left, right = iter(X), iter(y)
    for i, xseq in enumerate(left):
        yseq = next(right, _MISSING)
        if yseq is _MISSING:
            raise ValueError(f"{what}: sequence {i} has no labels; X and y differ in length")
        yield xseq, yseq
    if next(right, _MISSING) is not _MISSING:
        raise ValueError(
            f"{what}: there are more sequences of labels than of items; X and y differ in length"
        )


class CRF(BaseEstimator):  # type: ignore[misc]
    """A linear-chain CRF with the interface of scikit-learn. None stands for the trainer's default.

    Args:
        algorithm: lbfgs, l2sgd, ap, pa or arow.
        min_freq: least sum of the values of a feature.
        all_possible_states: features of attributes with labels that they do not occur with, too.
        all_possible_transitions: features of pairs of labels that do not occur, too.
        c1: L1 penalty (lbfgs: OWL-QN).
        c2: L2 penalty (lbfgs, l2sgd).
        max_iterations: most iterations.
        num_memories: curvature pairs (lbfgs).
        epsilon: when it has converged.
        period: over how many iterations improvement is measured (lbfgs, l2sgd).
        delta: least improvement (lbfgs, l2sgd).
        linesearch: kept for the original's sake; one line search serves all (lbfgs).
        max_linesearch: the same.
        calibration_eta: first learning rate tried (l2sgd).
        calibration_rate: factor between those tried (l2sgd).
        calibration_samples: instances to try on (l2sgd).
        calibration_candidates: how many good ones to find (l2sgd).
        calibration_max_trials: most trials (l2sgd).
        pa_type: 0, 1 or 2 (pa).
        c: aggressiveness (pa).
        error_sensitive: the cost grows with the number of wrong labels (pa).
        averaging: average the weights (pa).
        variance: of each weight at first (arow).
        gamma: tradeoff of loss and change (arow).
        verbose: print the trainer's log.
        model_filename: the model is written there by fit, and read from there without it.
        keep_tempfiles: leave temporary files behind.
        trainer_cls: a class of trainers.
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
        given = locals()
        for name in (*_NAMES,):
            setattr(self, name, given[name])
        self._modelfile: FileResource | None = None
        self.training_log_ = None
        self._tagger: Tagger | None = None
        self._info_cached: Any = None

    # --- the model ------------------------------------------------------------------------------------------

    @property
    def modelfile(self) -> FileResource:
        """The model's file, by the parameters as they are now."""
        wanted = None if self.model_filename is None else os.fspath(self.model_filename)
        known = self._modelfile
        if known is None or (wanted is not None and (known.auto or known.name != wanted)):
            known = FileResource(wanted, self.keep_tempfiles, suffix=".crfsuite", prefix="model")
            self._modelfile, self._tagger, self._info_cached = known, None, None
        return known

    @modelfile.setter
    def modelfile(self, value: FileResource) -> None:
        self._modelfile = value

    def fit(self, X: Any, y: Any, X_dev: Any = None, y_dev: Any = None) -> CRF:
        """Train on sequences of items (as python-crfsuite takes them) and their labels.

        Args:
            X: sequences of items.
            y: their labels.
            X_dev: sequences to evaluate on after every iteration.
            y_dev: their labels.
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
        self.modelfile.filled()
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
        """Whether there is a model: of fit, or in the file that it is told."""
        file = self.modelfile
        return file.data is not None or (file.name is not None and os.path.isfile(file.name))

    @property
    def tagger_(self) -> Tagger | None:
        """The tagger of the model; None where there is none."""
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
            raise not_fitted("this CRF is not fitted; call fit, or give model_filename")
        return tagger

    # --- prediction -----------------------------------------------------------------------------------------

    def predict(self, X: Iterable[Any]) -> Predictions:
        """Labels of sequences: an array of lists, or of labels [N, T] where all have one length."""
        return Predictions.of(self._fitted().tag_many(list(X)))

    def predict_single(self, xseq: Any) -> list[str]:
        """Labels of one sequence."""
        return self._fitted().tag(xseq)

    def predict_marginals(self, X: Iterable[Any]) -> Predictions:
        """Probabilities of all labels of every item, as dicts, in the shape of `predict`."""
        return Predictions.of([self.predict_marginals_single(xseq) for xseq in X])

    def predict_marginals_single(self, xseq: Any) -> list[dict[str, float]]:
        """Probabilities of all labels of every item of one sequence."""
        tagger = self._fitted()
        tagger.set(xseq)
        return tagger.marginals()

    def score(self, X: Any, y: Any) -> Any:
        """The share of right labels."""
        from tagwise.compat.sklearn_crfsuite.metrics import flat_accuracy_score

        return flat_accuracy_score(y, self.predict(X))

    # --- looking inside -------------------------------------------------------------------------------------

    @property
    def _info(self) -> Any:
        tagger = self.tagger_
        if tagger is not None and self._info_cached is None:
            self._info_cached = tagger.info()
        return None if tagger is None else self._info_cached

    @property
    def classes_(self) -> list[str] | None:
        """The labels."""
        tagger = self.tagger_
        return None if tagger is None else tagger.labels()

    @property
    def size_(self) -> int | None:
        """Bytes of the model."""
        return None if self._info is None else int(self._info.header["size"])

    @property
    def num_attributes_(self) -> int | None:
        """Number of attributes."""
        return None if self._info is None else int(self._info.header["num_attrs"])

    @property
    def attributes_(self) -> list[str] | None:
        """The attributes, by number."""
        return None if self._info is None else list(self._info.attributes)

    @property
    def state_features_(self) -> dict[tuple[str, str], float] | None:
        """Weights by (attribute, label)."""
        return None if self._info is None else self._info.state_features

    @property
    def transition_features_(self) -> dict[tuple[str, str], float] | None:
        """Weights by (from, to)."""
        return None if self._info is None else self._info.transitions

    # --- files ----------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state = {name: x for name, x in self.__dict__.items() if name != "_modelfile"}
        return state | {"modelfile": copy.copy(self.modelfile), "_tagger": None, "_info_cached": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, default in _NAMES.items():
            setattr(self, name, state.get(name, default))
        rest = {name: x for name, x in state.items() if name not in ("modelfile", *_NAMES)}
        self.__dict__.update({"training_log_": None, **rest, "_tagger": None, "_info_cached": None})
        file = state.get("modelfile")
        self._modelfile = file
        if file is not None and "model_filename" not in state and not file.auto:
            self.model_filename = file.name


#: The parameters and their defaults.
_NAMES: dict[str, Any] = {
    "algorithm": None,
    **dict.fromkeys(TRAINER),
    "verbose": False,
    "model_filename": None,
    "keep_tempfiles": False,
    "trainer_cls": None,
}
