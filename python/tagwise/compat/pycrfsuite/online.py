"""Online trainers: averaged perceptron, passive-aggressive, AROW.

    ap:    w += F(y) - F(y*)
    pa:    cost = s(y*) - s(y) + sqrt(#wrong) (or + 1),  tau = cost / |d|^2,  w += tau d
    arow:  cost = s(y*) - s(y) + #wrong,  alpha = cost / (gamma + sum d^2 v),  w += alpha v d,  1/v += d^2 / gamma

with d = F(y) - F(y*) on an error. The averaged weights are w - ws / c, where c counts instances from 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.compat.pycrfsuite.data import FeatureCodes
from tagwise.compat.pycrfsuite.parameters import Parameters
from tagwise.compat.pycrfsuite.rand import Rand


class OnlineEpoch(NamedTuple):
    """State after an epoch: weights of the features, loss, and the norm for the log."""

    weights: NDArray[np.float64]
    loss: float
    norm: float
    stop: bool


#: Parameters of each update rule.
RULE_PARAMETERS: dict[str, tuple[str, ...]] = {
    "ap": (),
    "pa": ("type", "c", "error_sensitive"),
    "arow": ("gamma", "variance"),
}


def epochs(
    data: _core.CrfsuiteInstances, holdout: int, features: FeatureCodes, params: Parameters
) -> Iterator[OnlineEpoch]:
    """Yield the epochs over the instances that are not held out, each in a new random order."""
    name = params.algorithm
    numbers = [float(params[key]) for key in RULE_PARAMETERS[name]]
    training = _core.CrfsuiteOnline(data, holdout, features.node, features.edge, name, numbers)
    averages = name == "ap" or (name == "pa" and bool(params["averaging"]))
    stream, order = Rand(), list(range(len(data.lengths(holdout, False))))
    for _ in range(params["max_iterations"]):
        stream.shuffle(order)
        loss = training.steps(np.array(order, np.int64))
        weights = training.averaged() if averages else training.weights()
        logged = training.weights() if name == "pa" else weights
        mean, least = loss / max(1, len(order)), float(params["epsilon"])
        stop = mean <= least if name == "arow" else mean < least
        yield OnlineEpoch(weights, loss, float(np.linalg.norm(logged)), stop)
        if stop:
            return
