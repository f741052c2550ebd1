"""Defaults and domains of all parameters, written by hand: values accepted at both ends, and values rejected."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

NAN, INF = math.nan, math.inf

COMMON: dict[str, Any] = {
    "features": "default",
    "start_end": True,
    "min_count": 1,
    "all_pairs": False,
    "n_jobs": None,
    "seed": 0,
    "verbose": 0,
}
STOPPING: dict[str, Any] = {"max_iter": 1000, "tol": 1e-5, "window": 10, "patience": 20}
LIMITS: dict[str, Any] = {"constraints": None, "dictionary": None, "dictionary_share": 0.0}
EPOCHS: dict[str, Any] = {"epochs": 20, "average": True, "shuffle": True, "patience": 0, "parts": 1}
HISTORY: dict[str, Any] = {"history": None, "pool": 128, "document": False}
KERNEL: dict[str, Any] = {"degree": 2, "coef": 1.0, "gamma": None, "form": "auto", "cache_mb": 256}

DEFAULTS: dict[str, dict[str, Any]] = {
    "crf": {
        **COMMON,
        **STOPPING,
        **LIMITS,
        "loss": "log",
        "order": 1,
        "l1": 0.0,
        "l2": 1.0,
        "sigma": None,
        "prior": 0.0,
        "optimizer": "auto",
        "device": "cpu",
        "cost": None,
        "class_weight": None,
        "pi": 1.0,
        "max_length": None,
        "partial": False,
        "separator": "|",
        "unknown": "_",
    },
    "perceptron": {
        **COMMON,
        **EPOCHS,
        **LIMITS,
        **HISTORY,
        **KERNEL,
        "kernel": None,
        "mode": "online",
        "voters": 0,
        "budget": None,
    },
    "mira": {
        **COMMON,
        **EPOCHS,
        **LIMITS,
        **HISTORY,
        "k": 4,
        "cost": "accuracy",
        "C": None,
        "augment": False,
    },
    "pa": {**COMMON, **EPOCHS, **LIMITS, "variant": 1, "cost": "accuracy", "C": 1.0},
    "arow": {**COMMON, **EPOCHS, **LIMITS, "gamma": 1.0, "variance": 1.0, "cost": "accuracy"},
    "hmsvm": {
        **COMMON,
        **LIMITS,
        **KERNEL,
        "kernel": "linear",
        "C": 1.0,
        "pi": 1.0,
        "slack": "instance",
        "rescale": None,
        "tol": 1e-2,
        "max_epochs": 100,
        "max_paths": 50,
        "patience": 0,
        "shuffle": True,
        "all_pairs": True,
    },
    "boosting": {
        **COMMON,
        "rounds": None,
        "loss": "exp",
        "bound": "tight",
        "over": "wrong",
        "step": "joint",
        "features_per_round": 4096,
        "overlap": True,
        "candidates": 1.0,
        "smoothing": None,
        "max_step": 5.0,
        "pi": 1.0,
        "balance": False,
        "max_length": 5,
        "every": None,
        "patience": 0,
    },
    "hmm": {
        "features": "S1",
        "smoothing": "witten_bell",
        "delta": 0.1,
        "overlapping": False,
        "unknown": "suffix",
        "rare": 2,
        "start_end": True,
        "n_jobs": None,
        "verbose": 0,
    },
    "memm": {**COMMON, **STOPPING, "l1": 0.0, "l2": 1.0, "optimizer": "auto", "class_weight": None},
}


class Domain(NamedTuple):
    """Accepted values as (given, kept), rejected values, and command-line texts as (text, value)."""

    taken: list[tuple[Any, Any]]
    refused: list[Any]
    texts: list[tuple[str, Any]]


def flag() -> Domain:
    texts = [("true", True), ("yes", True), ("on", True), ("1", True), ("TRUE", True)]
    texts += [("false", False), ("no", False), ("off", False), ("0", False)]
    return Domain([(True, True), (False, False), (1, True), (0, False)], [2, -1, "true", None, 0.5], texts)


def choice(*names: str, optional: bool = False) -> Domain:
    none = [(None, None)] if optional else []
    texts = [(name, name) for name in names] + ([("none", None), ("", None)] if optional else [])
    return Domain([(n, n) for n in names] + none, ["nonsense", 1, *([] if optional else [None])], texts)


def at_least(low: int, high: int | None = None, optional: bool = False) -> Domain:
    """Return the domain of integers from `low`, optionally up to `high`."""
    top = low + 3 if high is None else high
    taken: list[tuple[Any, Any]] = [(low, low), (top, top), (float(top), top), (np.int64(low), low)]
    refused: list[Any] = [low - 1, low + 0.5, "1", True, NAN, INF, -INF, [low]]
    texts: list[tuple[str, Any]] = [(str(low), low), (str(top), top)]
    if high is None:
        taken.append((10**6, 10**6))
    else:
        refused.append(high + 1)
    if optional:
        taken.append((None, None))
        texts += [("none", None), ("None", None), ("", None)]
    else:
        refused.append(None)
    return Domain(taken, refused, texts)


def number(low: float, high: float | None = None, open_low: bool = False, optional: bool = False) -> Domain:
    """Return the domain of numbers from `low` or above it, optionally up to and including `high`."""
    inside = low + 1e-9 if high is None else high
    taken: list[tuple[Any, Any]] = [(low + 1e-9, low + 1e-9), (inside, inside), (np.float32(0.5), 0.5)]
    refused: list[Any] = [low - 1e-9, -1, "0.5", NAN, True, [0.5]]
    texts: list[tuple[str, Any]] = [("0.5", 0.5), ("5e-1", 0.5)]
    (refused if open_low else taken).append(low if open_low else (low, low))  # type: ignore[arg-type]
    if high is None:
        taken += [(1e9, 1e9), (3, 3.0)]
    else:
        refused += [high + 1e-9, INF]
    if optional:
        taken.append((None, None))
        texts += [("none", None), ("", None)]
    else:
        refused.append(None)
    return Domain(taken, refused, texts)


def anything(*values: Any) -> Domain:
    return Domain([(value, value) for value in values], [], [(v, v) for v in values if isinstance(v, str)])


FLAGS = (
    "start_end",
    "all_pairs",
    "partial",
    "average",
    "shuffle",
    "document",
    "augment",
    "overlap",
    "balance",
    "overlapping",
)
COUNTS = ("min_count", "window", "epochs", "parts", "k", "max_epochs", "max_paths", "cache_mb")
COUNTS += ("features_per_round", "rare")

DOMAINS: dict[str, Domain] = {
    **{name: flag() for name in FLAGS},
    **{name: at_least(1) for name in COUNTS},
    **{
        name: at_least(1, optional=True) for name in ("n_jobs", "max_length", "dictionary", "budget", "every")
    },
    "rounds": at_least(0, optional=True),
    **{name: at_least(0) for name in ("seed", "verbose", "max_iter", "patience", "voters")},
    **{name: number(0.0) for name in ("l1", "l2", "prior", "tol", "coef")},
    **{name: number(0.0, open_low=True) for name in ("variance", "max_step", "delta", "C", "gamma")},
    **{name: number(0.0, 1.0, open_low=True) for name in ("pi", "candidates")},
    "sigma": number(0.0, open_low=True, optional=True),
    "dictionary_share": number(0.0, 1.0),
    "smoothing": number(0.0, optional=True),
    "order": at_least(1, 3),
    "variant": at_least(0, 2),
    "degree": at_least(1, 64),
    "pool": at_least(2, 1000),
    "loss": choice("log", "exp", "pointwise_log", "pointwise_exp"),
    "optimizer": choice("auto", "lbfgs", "cg", "sgd", "owlqn"),
    "device": choice("cpu", "cuda"),
    "mode": choice("online", "batch"),
    "form": choice("auto", "rows", "expanded"),
    "slack": choice("instance", "sequence"),
    "rescale": choice("margin", optional=True),
    "bound": choice("loose", "tight", "exact"),
    "over": choice("wrong", "all"),
    "step": choice("joint", "bound", "line_search"),
    "features": anything("S1", "word[0]"),
    "cost": anything("accuracy", "f1(3)", 1.5),
    "class_weight": Domain(
        [
            (None, None),
            ("balanced", "balanced"),
            ({"x": 2}, {"x": 2.0}),
            ({}, {}),
            ({"x": np.float32(0.5)}, {"x": 0.5}),
        ],
        ["nonsense", 3, [("x", 2.0)], {"x": 0.0}, {"x": -1}, {"x": "2"}, {"x": INF}, {"x": NAN}, {"x": True}],
        [("none", None), ("", None), ("balanced", "balanced"), ('{"x": 2}', {"x": 2.0})],
    ),
    "kernel": anything("poly", "rbf", "linear", None),
    "separator": anything("|", "/"),
    "unknown": anything("_", "?"),
    "constraints": Domain([(None, None)], ["nonsense", 3], [("none", None), ("", None)]),
    "history": Domain(
        [
            (None, None),
            ((1, 2), (1, 2)),
            ("m=1,p=inf", (1, "inf")),
            ((3, 100), (3, 100)),
            ((1, 10**6), (1, 10**6)),
            (2, (2, 2)),
        ],
        ["nonsense", (0, 1), (4, 4), (1, 0), (1,), True, 1.5],
        [("none", None), ("1,2", (1, 2)), ("m=2,p=inf", (2, "inf")), ("3", (3, 3))],
    ),
}

#: Parameters whose domain differs from those of the same name in other learners.
OWN: dict[tuple[str, str], Domain] = {
    ("mira", "C"): number(0.0, open_low=True, optional=True),
    ("perceptron", "gamma"): number(0.0, open_low=True, optional=True),
    ("hmsvm", "gamma"): number(0.0, open_low=True, optional=True),
    ("hmm", "smoothing"): choice("witten_bell", "additive"),
    ("hmm", "unknown"): choice("one", "shape", "suffix"),
    ("boosting", "loss"): choice("exp", "pointwise_exp"),
}


def domain(learner: str, parameter: str) -> Domain:
    return OWN.get((learner, parameter), DOMAINS[parameter])
