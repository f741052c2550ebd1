"""Training run: features, weights, and the model in CRFsuite's format. The log has the pieces of CRFsuite's."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.compat.pycrfsuite import l2sgd, online
from tagwise.compat.pycrfsuite.data import FeatureCodes, Instances
from tagwise.compat.pycrfsuite.errors import OVERFLOW, CRFSuiteError
from tagwise.compat.pycrfsuite.holdout import performance, tagged
from tagwise.compat.pycrfsuite.parameters import Parameters
from tagwise.compat.pycrfsuite.warm_start import ascent_points, has_default_stopping
from tagwise.features.escape import encode_name
from tagwise.features.recipe import Recipe
from tagwise.learners.problem import curvature_scale
from tagwise.model.formats import crfsuite
from tagwise.model.formats.chain import FeatureWeights, ForeignModel
from tagwise.optimizers.base import Step
from tagwise.optimizers.lbfgs import lbfgs, state_from_points
from tagwise.optimizers.owlqn import owlqn

Log = Callable[[str], None]
Vector = NDArray[np.float64]
LINESEARCHES = ("MoreThuente", "Backtracking", "StrongBacktracking")
#: Error code of liblbfgs for a problem without variables.
NO_VARIABLE = -1020


class Clock:
    """CPU seconds of this process since the last call, formatted for the log."""

    def __init__(self) -> None:
        self.begun = time.process_time()

    def __call__(self) -> str:
        now = time.process_time()
        text, self.begun = f"{now - self.begun:.3f}", now
        return text


class Training:
    """Training on the instances of a trainer."""

    def __init__(self, instances: Instances, params: Parameters, holdout: int, log: Log) -> None:
        self.params, self.log, self.holdout = params, log, holdout
        self.engine = instances.engine
        self.labels = self.engine.labels
        self.label_texts = [encode_name(label).decode("utf-8", "replace") for label in self.labels]
        self.texts = self.engine.texts()
        self.holdout_data = self.engine.dataset(holdout, True) if holdout >= 0 else None

    def run(self) -> ForeignModel:
        """Generate features, train their weights, and return the model."""
        if self.holdout >= 0:
            self.log(f"Holdout group: {self.holdout + 1}\n")
            self.log("\n")
        features = self._features()
        clock = Clock()
        weights = self._weights(features)
        self.log(f"Total seconds required for training: {clock()}\n")
        self.log("\n")
        n = len(features.node)
        return ForeignModel(
            tuple(self.labels),
            self.texts,
            FeatureWeights(features.node, weights[:n]),
            FeatureWeights(features.edge, weights[n:]),
            FeatureWeights.none(),
            Recipe("attributes", "attributes"),
        )

    def _features(self) -> FeatureCodes:
        params, log, clock = self.params, self.log, Clock()
        states, transitions = params["feature.possible_states"], params["feature.possible_transitions"]
        least = params["feature.minfreq"]
        log("Feature generation\n")
        log("type: CRF1d\n")
        log(f"feature.minfreq: {least:f}\n")
        log(f"feature.possible_states: {states}\n")
        log(f"feature.possible_transitions: {transitions}\n")
        node, edge, cut = self.engine.features(self.holdout, least, bool(states), bool(transitions))
        found = FeatureCodes(node, edge, len(self.texts), len(self.labels), cut if least <= 0.0 else 0)
        for percent in range(51):
            log("." if percent % 5 else str(percent // 5))
        log("\n")
        log(f"Number of features: {len(found)}\n")
        log(f"Seconds required: {clock()}\n")
        log("\n")
        if found.cut:
            warnings.warn(
                f"{found.cut} features whose values sum to less than 0 are dropped, as in CRFsuite with "
                "feature.minfreq=0. Set it to a negative number to keep them",
                RuntimeWarning,
                stacklevel=4,
            )
        return found

    def _weights(self, features: FeatureCodes) -> Vector:
        if self.params.algorithm == "lbfgs":
            return self._lbfgs(features)
        if self.params.algorithm == "l2sgd":
            return self._l2sgd(features)
        return self._online(features)

    def _log_holdout(self, layout: _core.Layout, weights: Vector) -> None:
        if self.holdout_data is None:
            return
        if len(self.holdout_data):
            found = tagged(layout, weights, self.holdout_data)
        else:
            found = np.zeros(0, np.uint16)
        for line in performance(self.label_texts, self.holdout_data.offsets, self.holdout_data.gold, found):
            self.log(line)

    # --- batch ----------------------------------------------------------------------------------------------

    def _lbfgs(self, features: FeatureCodes) -> Vector:
        params, log = self.params, self.log
        search = params["linesearch"] if params["linesearch"] in LINESEARCHES else LINESEARCHES[0]
        self._warn_of_search(search)
        log("L-BFGS optimization\n")
        for name, key in (("c1", "c1"), ("c2", "c2")):
            log(f"{name}: {params[key]:f}\n")
        log(f"num_memories: {params['num_memories']}\n")
        log(f"max_iterations: {params['max_iterations']}\n")
        log(f"epsilon: {params['epsilon']:f}\n")
        log(f"stop: {params['period']}\n")
        log(f"delta: {params['delta']:f}\n")
        log(f"linesearch: {search}\n")
        log(f"linesearch.max_iterations: {params['max_linesearch']}\n")
        log("\n")
        if not len(features):
            log(f"L-BFGS terminated with error code ({NO_VARIABLE})\n")
            return np.zeros(0)
        layout = features.layout()
        data = self.engine.dataset(self.holdout, False)
        c1, c2, memory = float(params["c1"]), float(params["c2"]), max(1, params["num_memories"])
        converges = self.holdout_data is None and has_default_stopping(params)
        points = ascent_points(data, layout, c2) if converges else []
        objective = _core.Objective(data, layout, loss="log")

        def evaluate(w: Vector, gradient: Vector) -> float:
            value = objective.evaluate(w, gradient)
            return value + _core.add_ridge(w, c2, gradient)

        if c1 > 0.0:
            steps = owlqn(evaluate, np.zeros(len(features)), l1=c1, memory=memory)
        elif points:
            scale, state = curvature_scale(data, layout), state_from_points(evaluate, points)
            steps = lbfgs(evaluate, points[-1], memory=memory, scale=scale, resume=state)
        else:
            steps = lbfgs(evaluate, np.zeros(len(features)), memory=memory)
        first = next(steps)
        if not math.isfinite(first.value):
            raise CRFSuiteError(
                OVERFLOW, f"the loss is {first.value} before the first step. Scale the feature values down"
            )
        if first.gradient_norm <= params["epsilon"]:
            log("L-BFGS resulted in convergence\n")
            return np.array(first.w)
        return self._descended(steps, first, layout)

    def _warn_of_search(self, search: str) -> None:
        """Warn if line search parameters are set, since the line search always meets the strong Wolfe conditions."""
        defaults, params = Parameters("lbfgs"), self.params
        ignored = [name for name in ("linesearch", "max_linesearch") if params[name] != defaults[name]]
        ignored = [name for name in ignored if name != "linesearch" or search != defaults[name]]
        if ignored:
            warnings.warn(
                f"{' and '.join(ignored)} ignored: the line search always meets the strong Wolfe conditions. The "
                "optimum is the same, but the steps towards it differ from CRFsuite's",
                RuntimeWarning,
                stacklevel=5,
            )

    def _descended(self, steps: Iterator[Step], first: Step, layout: _core.Layout) -> Vector:
        """Run steps until one of the stopping tests of liblbfgs succeeds, and return the weights."""
        params, log, clock = self.params, self.log, Clock()
        past, period, trials = [first.value], params["period"], first.evaluations
        reason, w = "resulted in convergence", first.w
        for k, step in enumerate(steps, 1):
            w = step.w
            assert step.gradient_norm is not None  # L-BFGS computes it
            norm = math.sqrt(_core.dot(w, w))
            log(f"***** Iteration #{k} *****\n")
            log(f"Loss: {step.value:f}\n")
            log(f"Feature norm: {norm:f}\n")
            log(f"Error norm: {step.gradient_norm:f}\n")
            log(f"Active features: {np.count_nonzero(w)}\n")
            log(f"Line search trials: {step.evaluations - trials}\n")
            log(f"Line search step: {step.step:f}\n")
            log(f"Seconds required for this iteration: {clock()}\n")
            trials = step.evaluations
            self._log_holdout(layout, w)
            log("\n")
            if step.gradient_norm / max(1.0, norm) <= params["epsilon"]:
                break
            if 0 < period <= k and (past[k - period] - step.value) / step.value < params["delta"]:
                reason = "terminated with the stopping criteria"
                break
            past.append(step.value)
            if params["max_iterations"] and k >= params["max_iterations"]:
                reason = "terminated with the maximum number of iterations"
                break
        log(f"L-BFGS {reason}\n")
        return np.array(w)

    # --- online ---------------------------------------------------------------------------------------------

    def _l2sgd(self, features: FeatureCodes) -> Vector:
        params, log = self.params, self.log
        log("Stochastic Gradient Descent (SGD)\n")
        log(f"c2: {params['c2']:f}\n")
        log(f"max_iterations: {params['max_iterations']}\n")
        log(f"period: {params['period']}\n")
        log(f"delta: {params['delta']:f}\n")
        log("\n")
        layout, clock = features.layout() if self.labels else None, Clock()
        best, best_loss = np.zeros(len(features)), math.inf
        reason = "terminated with the maximum number of iterations"
        if params["c2"] <= 0.0:
            raise ValueError(f"c2={params['c2']}: expected more than 0, since l2sgd needs a penalty")
        loss, sequences = math.inf, l2sgd.TrainingSequences(self.engine, self.holdout, features)
        for k, epoch in enumerate(l2sgd.epochs(sequences, params, log, clock), 1):
            loss = epoch.loss
            if loss < best_loss:
                best, best_loss = epoch.weights, loss
            log(f"***** Epoch #{k} *****\n")
            log(f"Loss: {loss:f}\n")
            if epoch.improvement is not None:
                log(f"Improvement ratio: {epoch.improvement:f}\n")
            log(f"Feature L2-norm: {epoch.norm:f}\n")
            log(f"Learning rate (eta): {epoch.eta:f}\n")
            log(f"Total number of feature updates: {epoch.updates}\n")
            log(f"Seconds required for this iteration: {clock()}\n")
            if layout is not None:
                self._log_holdout(layout, epoch.weights)
            log("\n")
            if epoch.improvement is not None and epoch.improvement < params["delta"]:
                reason = "terminated with the stopping criteria"
            if not math.isfinite(loss):
                raise CRFSuiteError(
                    OVERFLOW, f"the loss is {loss} after epoch {k}. Scale the feature values down"
                )
        log(f"SGD {reason}\n")
        log(f"Loss: {best_loss if math.isfinite(best_loss) else loss:f}\n")
        return best

    def _online(self, features: FeatureCodes) -> Vector:
        params, log = self.params, self.log
        titles = {
            "ap": "Averaged perceptron",
            "pa": "Passive Aggressive",
            "arow": "Adaptive Regularization of Weights (AROW)",
        }
        log(f"{titles[params.algorithm]}\n")
        for name in list(params.table)[3:]:
            value = params[name]
            log(f"{name}: {value:f}\n" if isinstance(value, float) else f"{name}: {value}\n")
        log("\n")
        layout, clock = features.layout() if self.labels else None, Clock()
        weights = np.zeros(len(features))
        for k, epoch in enumerate(online.epochs(self.engine, self.holdout, features, params), 1):
            weights = epoch.weights
            if not math.isfinite(epoch.loss):
                raise CRFSuiteError(
                    OVERFLOW, f"the loss is {epoch.loss} in iteration {k}. Scale the feature values down"
                )
            log(f"***** Iteration #{k} *****\n")
            log(f"Loss: {epoch.loss:f}\n")
            log(f"Feature norm: {epoch.norm:f}\n")
            log(f"Seconds required for this iteration: {clock()}\n")
            if layout is not None:
                self._log_holdout(layout, weights)
            log("\n")
            if epoch.stop:
                log("Terminated with the stopping criterion\n")
                log("\n")
        return weights


def serialized(chain: ForeignModel, log: Log, n_attributes: int) -> bytes:
    """Return the bytes of the model file, and log that they are written."""
    clock = Clock()
    node, n = chain.node.present, len(chain.labels)
    active = len(node.codes) + np.count_nonzero(chain.edge.weights)
    used = np.count_nonzero(np.diff(node.codes // max(n, 1), prepend=-1))
    total = len(chain.node.codes) + len(chain.edge.codes)
    log("Storing the model\n")
    log(f"Number of active features: {active} ({total})\n")
    log(f"Number of active attributes: {used} ({n_attributes})\n")
    log(f"Number of active labels: {n} ({n})\n")
    data = crfsuite.write(chain)
    for section in (
        *("labels", "attributes"),
        *("feature references for transitions", "feature references for attributes"),
    ):
        log(f"Writing {section}\n")
    log(f"Seconds required: {clock()}\n")
    log("\n")
    return data


__all__: Sequence[str] = ("Training", "serialized")
