"""Constructors of the core's learners and objectives that sort a flat list of options into the core's objects."""

from __future__ import annotations

from typing import Any

from tagwise import _core
from tagwise.scores.kernels import KernelFunction


def _taken(options: dict[str, Any], *names: str) -> dict[str, Any]:
    """Pop these options and leave the rest."""
    return {name: options.pop(name) for name in names if name in options}


def _limits(options: dict[str, Any]) -> _core.Limits:
    return _core.Limits(**_taken(options, "forbidden", "allowed", "once"))


def _epochs(options: dict[str, Any]) -> _core.Epochs:
    return _core.Epochs(**_taken(options, "average", "batch", "shuffle", "seed", "shards"))


def rule(kind: str, options: dict[str, Any]) -> _core.Rule:
    cost = _taken(options, "cost", "numbers", "entities", "augment")
    numbers = _taken(options, "k", "limit", "variant", "gamma", "variance")
    return _core.Rule(kind, cost=_core.Cost(**{"cost": "accuracy", **cost}) if cost else None, **numbers)


def online(data: _core.Dataset, layout: _core.Layout, kind: str, **options: Any) -> _core.Online:
    common = {"limits": _limits(options), "epochs": _epochs(options)}
    return _core.Online(data, layout, rule(kind, options), **common, **options)


def history_online(
    data: _core.Dataset, layout: _core.Layout, terms: _core.LookbackSpec, kind: str, **options: Any
) -> _core.HistoryOnline:
    common = {"limits": _limits(options), "epochs": _epochs(options)}
    return _core.HistoryOnline(data, layout, terms, rule(kind, options), **common, **options)


def objective(data: _core.Dataset, layout: _core.Layout, **options: Any) -> _core.Objective:
    return _core.Objective(data, layout, limits=_limits(options), **options)


def stochastic(data: _core.Dataset, layout: _core.Layout, **options: Any) -> _core.Stochastic:
    return _core.Stochastic(data, layout, limits=_limits(options), **options)


def dual(data: _core.Dataset, layout: _core.Layout, l2: float, **options: Any) -> _core.Dual:
    return _core.Dual(data, layout, l2, limits=_limits(options), **options)


def _margins(options: dict[str, Any]) -> _core.Margins:
    return _core.Margins(**_taken(options, "c", "slack", "rescale", "tolerance", "most", "shuffle", "seed"))


def svm(data: _core.Dataset, layout: _core.Layout, **options: Any) -> _core.Svm:
    return _core.Svm(data, layout, _margins(options), limits=_limits(options), **options)


def _kernel(kernel: KernelFunction, layout: _core.Layout, options: dict[str, Any]) -> _core.Kernel:
    return kernel.spec(layout.n_attributes, **_taken(options, "form", "cache_bytes"))


def kernel_svm(
    data: _core.Dataset, layout: _core.Layout, kernel: KernelFunction, **options: Any
) -> _core.KernelSvm:
    native, limits = _kernel(kernel, layout, options), _limits(options)
    return _core.KernelSvm(data, layout, native, _margins(options), limits=limits, **options)


def kernel_perceptron(
    data: _core.Dataset, layout: _core.Layout, kernel: KernelFunction, **options: Any
) -> _core.KernelPerceptron:
    native = _kernel(kernel, layout, options)
    common = {"limits": _limits(options), "epochs": _epochs(options)}
    return _core.KernelPerceptron(data, layout, native, **common, **options)


def boosting(data: _core.Dataset, layout: _core.Layout, **options: Any) -> _core.Boosting:
    rounds = _core.Rounds(
        **_taken(
            options,
            "bound",
            "line_search",
            "joint",
            "smoothing",
            "max_step",
            "candidates",
            "features_per_round",
            "overlap",
            "seed",
        )
    )
    return _core.Boosting(data, layout, rounds, **options)
