"""Names of compared learners: an estimator and the parameters that the name fixes.

>>> parse("mira(k=10, cost=precision_recall(0.25))").params
{'k': 10, 'cost': 'precision_recall(0.25)'}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import tagwise._core as _core
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import lookup, meant, parameters_of

#: Estimator and fixed parameters of each variant.
NAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "crf-l1": ("crf", {"l1": 0.1, "l2": 0.0}),
    **{f"crf-{loss.replace('_', '-')}": ("crf", {"loss": loss}) for loss in _core.LOSSES if loss != "log"},
    "hmm": ("hmm", {"features": "S1"}),
    "hmm-overlapping": ("hmm", {"overlapping": True}),
}


@dataclass(frozen=True)
class ComparedLearner:
    """A learner of a comparison: its name in the table, its estimator, and the parameters that the name fixes."""

    name: str
    kind: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def accepted(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given parameters that the estimator has and the name does not fix."""
        declared = parameters_of(estimator(self.kind))
        return {k: v for k, v in params.items() if k in declared and k not in self.params}

    def make(self, **params: Any) -> Any:
        """Create the estimator. `params` override the parameters of the name."""
        return estimator(self.kind)(**{**self.params, **params})


def estimator(kind: str) -> Any:
    """Return the estimator class of a learner."""
    from tagwise.estimators import LEARNERS

    if kind not in LEARNERS:
        raise _unknown(kind)
    return LEARNERS[kind]


def learner_names() -> list[str]:
    """Return the names of all learners and variants."""
    from tagwise.estimators import LEARNERS

    def declared(kind: str, fixed: Mapping[str, Any]) -> bool:
        params = parameters_of(LEARNERS[kind]) if kind in LEARNERS else {}
        try:
            return kind in LEARNERS and all(params[key].check(value) == value for key, value in fixed.items())
        except (KeyError, ParameterError):
            return False

    return sorted({*LEARNERS, *(name for name, entry in NAMES.items() if declared(*entry))})


def _unknown(name: str) -> ParameterError:
    known = learner_names()
    return ParameterError(f"unknown learner {name!r}{meant(name, known)}. Use one of {', '.join(known)}.")


def parse(spec: str | ComparedLearner) -> ComparedLearner:
    """Parse a name with optional parameters in brackets, or raise a ParameterError that lists the valid names."""
    if isinstance(spec, ComparedLearner):
        estimator(spec.kind)
        return spec
    match = re.fullmatch(r"\s*([\w.-]+)\s*(?:\((.*)\))?\s*", spec, re.DOTALL)
    name = match[1] if match else spec
    if match is None or name not in learner_names():
        raise _unknown(name)
    kind, fixed = NAMES.get(name, (name, {}))
    params: dict[str, Any] = {}
    for part in _split(match[2] or ""):
        key, sign, text = part.partition("=")
        if not sign:
            raise ParameterError(f"learner {spec!r}: expected name=value in brackets, found {part!r}")
        param = lookup(parameters_of(estimator(kind)), key.strip(), name)
        params[key.strip()] = param.parse(text.strip())
    return ComparedLearner(spec.strip(), kind, {**fixed, **params})


def _split(text: str) -> list[str]:
    """Split a text at commas outside brackets."""
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
    return [part for part in (*parts, text[begin:]) if part.strip()]


def check_learner(name: str) -> tuple[Any, dict[str, Any]]:
    """Return the estimator class of a name and the parameters that the name fixes."""
    learner = parse(name)
    return estimator(learner.kind), dict(learner.params)


def make(name: str, **params: Any) -> Any:
    """Create the estimator of a name. `params` override the parameters of the name."""
    return parse(name).make(**params)
