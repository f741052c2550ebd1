"""Defaults and domains of all parameters, written by hand: values accepted at both ends, and values rejected."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np

import tagwise as tw

NAN, INF = math.nan, math.inf


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


FLAGS = ("start_end", "all_pairs", "average", "shuffle", "augment", "overlap", "balance", "overlapping")
COUNTS = ("min_count", "window", "parts", "k", "features_per_round", "rare")

DOMAINS: dict[str, Domain] = {
    **{name: flag() for name in FLAGS},
    **{name: at_least(1) for name in COUNTS},
    **{name: at_least(1, optional=True) for name in ("n_jobs", "max_length", "every")},
    **{name: at_least(0) for name in ("random_state", "verbose", "max_iter", "patience", "voters")},
    **{name: number(0.0) for name in ("l1", "l2", "prior", "tol")},
    **{name: number(0.0, open_low=True) for name in ("variance", "max_step", "C", "r")},
    **{name: number(0.0, 1.0, open_low=True) for name in ("pi", "candidates")},
    "epsilon": number(0.0, optional=True),
    "order": at_least(1, 3), "variant": at_least(0, 2),
    "loss": choice("log", "exp", "pointwise_log", "pointwise_exp"),
    "optimizer": choice("auto", "lbfgs", "cg", "sgd", "owlqn"),
    "device": choice("cpu", "cuda"),
    "mode": choice("online", "batch"),
    "slack": Domain(
        [("instance", "instance"), ("sequence", ("sequence", 50)), (("sequence", 9), ("sequence", 9))],
        ["nonsense", 1, None, ("sequence", 0), ("instance", 9), ("sequence",), "sequence:0"],
        [("instance", "instance"), ("sequence", ("sequence", 50)), ("sequence:9", ("sequence", 9))],
    ),
    "scoring": choice("f1", "accuracy", "sequence_accuracy", "f1_macro", "f1_weighted", optional=True),
    "unknown_words": choice("one", "shape", "suffix"),
    "smoothing": Domain(
        [("witten_bell", "witten_bell"), (0.5, 0.5), (np.float32(0.5), 0.5), (2, 2.0)],
        ["nonsense", "additive", 0.0, -1, None, NAN, INF, True, [0.5]],
        [("witten_bell", "witten_bell"), ("0.5", 0.5), ("2", 2.0)],
    ),
    "rescale": choice("margin", optional=True),
    "bound": choice("loose", "tight", "exact"),
    "over": choice("wrong", "all"),
    "step": choice("joint", "bound", "line_search"),
    "features": anything("S1", "word[0]"),
    "cost": anything("accuracy", "f1(3)", 1.5),
    "class_weight": Domain(
        [
            (None, None), ("balanced", "balanced"), ({"x": 2}, {"x": 2.0}), ({}, {}),
            ({"x": np.float32(0.5)}, {"x": 0.5}), (3, 3.0), (np.float32(0.5), 0.5),
        ],
        [
            "nonsense", 0, -1.0, INF, NAN, True, [("x", 2.0)], {"x": 0.0}, {"x": -1}, {"x": "2"}, {"x": INF},
            {"x": NAN}, {"x": True},
        ],
        [("none", None), ("", None), ("balanced", "balanced"), ('{"x": 2}', {"x": 2.0}), ("2.5", 2.5)],
    ),
    "kernel": Domain(
        [
            (None, None), ("poly", tw.Poly()), ("rbf", tw.RBF()), ("linear", tw.Kernel("linear")),
            ("operator:matmul", tw.Kernel("operator:matmul")),
            (operator.matmul, tw.Kernel(operator.matmul)),
            (tw.Poly(3), tw.Poly(3)),
            ({"name": "poly", "degree": 3}, tw.Poly(3)),
            ({"name": "function", "function": "a:b", "budget": 9}, tw.Kernel("a:b", budget=9)),
        ],
        ["nonsense", "none:", 3, True, [1], {"name": "sigmoid"}, {"degree": 2}, {"name": "rbf", "degree": 2}],
        [
            ("none", None), ("poly", tw.Poly()),
            ("poly:degree=3,coef=0.5", tw.Poly(3, 0.5)),
            ("(rbf: gamma=0.5, budget=9)", tw.RBF(0.5, budget=9)),
            ("linear:cache_mb=8", tw.Kernel("linear", cache_mb=8)),
            ("a:b", tw.Kernel("a:b")),
            ("a:b:cache_mb=8", tw.Kernel("a:b", cache_mb=8)),
            ('{"name": "rbf", "gamma": 2}', tw.RBF(2)),
        ],
    ),
    "dictionary": Domain(
        [
            (None, None), (1, tw.Dictionary(1)), (5.0, tw.Dictionary(5)), (np.int64(3), tw.Dictionary(3)),
            (tw.Dictionary(2, 0.5), tw.Dictionary(2, share=0.5)),
            ({"min_count": 2, "share": 0.5}, tw.Dictionary(2, share=0.5)),
        ],
        ["nonsense", 0, -1, 1.5, True, [1], NAN, {"min_count": 0}, {"share": 2.0}, {"count": 2}],
        [("none", None), ("", None), ("5", tw.Dictionary()), ("3:share=0.01", tw.Dictionary(3, 0.01))],
    ),
    "partial": Domain(
        [
            (False, False), (True, tw.Partial()), (0, False), (1, tw.Partial()),
            (tw.Partial("/"), tw.Partial(separator="/")),
            ({"unknown": "?"}, tw.Partial(unknown="?")),
        ],
        ["nonsense", 2, None, 0.5, [True], {"unknown": 3}, {"sep": "/"}],
        [("true", tw.Partial()), ("false", False), ("yes:separator=/,unknown=?", tw.Partial("/", "?"))],
    ),
    "constraints": Domain([(None, None)], ["nonsense", 3], [("none", None), ("", None)]),
    "lookback": Domain(
        [
            (None, None), ((1, 2), tw.Lookback(1, 2)), ([3, 100], tw.Lookback(3, 100)),
            ((1, INF), tw.Lookback(p=INF)), ((1, 10**6), tw.Lookback(1, 10**6)),
            ((np.int64(2), 2.0), tw.Lookback(2, 2)),
            (tw.Lookback(document=True), tw.Lookback(1, 1, 128, True)),
            ({"p": "inf", "pool": 9}, tw.Lookback(p=INF, pool=9)),
        ],
        ["nonsense", (0, 1), (4, 4), (1, 0), (1,), True, 1.5, 2, (1, 1.5), {"q": 2}, {"pool": 1}, {"pool": 1001}],
        [
            ("none", None), ("1,2", tw.Lookback(1, 2)), ("(2, inf)", tw.Lookback(2, INF)),
            ("1,1:document=true", tw.Lookback(document=True)),
            ("1,inf:pool=9,document=yes", tw.Lookback(p=INF, pool=9, document=True)),
        ],
    ),
}  # fmt: skip

#: Parameters whose domain differs from those of the same name in other learners.
OWN: dict[tuple[str, str], Domain] = {
    ("mira", "C"): number(0.0, open_low=True, optional=True),
    ("boosting", "max_iter"): at_least(0, optional=True),
    **{(name, "max_iter"): at_least(1) for name in ("perceptron", "mira", "pa", "arow", "hmsvm")},
    ("boosting", "loss"): choice("exp", "pointwise_exp"),
}


def domain(learner: str, parameter: str) -> Domain:
    return OWN.get((learner, parameter), DOMAINS[parameter])
