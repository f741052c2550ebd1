"""Names of what is compared: an estimator and the parameters that its name settles.

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
from tagwise.base.parameters import lookup, parameters_of

#: Which estimator a short name stands for, and what it settles; usable where the learner declares such values.
NAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "crf-l1": ("crf", {"l1": 0.1, "l2": 0.0}),
    **{f"crf-{loss.replace('_', '-')}": ("crf", {"loss": loss}) for loss in _core.LOSSES if loss != "log"},
    "hmm": ("hmm", {"features": "S1"}),
    "hmm-overlapping": ("hmm", {"overlapping": True}),
}


@dataclass(frozen=True)
class ComparedLearner:
    """A row of a comparison: the name that is shown, the estimator, the parameters that the name settles."""

    name: str
    kind: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def accepted(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Those of some common parameters that the estimator has and the name does not settle."""
        declared = parameters_of(estimator(self.kind))
        return {k: v for k, v in params.items() if k in declared and k not in self.params}

    def make(self, **params: Any) -> Any:
        """The estimator. Parameters given win over those of the name."""
        return estimator(self.kind)(**{**self.params, **params})


def estimator(kind: str) -> Any:
    """The estimator class of a learner."""
    from tagwise.estimators import LEARNERS

    if kind not in LEARNERS:
        raise ParameterError(f"there is no learner {kind!r}. Use one of: {', '.join(learner_names())}.")
    return LEARNERS[kind]


def learner_names() -> list[str]:
    """Every name that stands for a learner."""
    from tagwise.estimators import LEARNERS

    def declared(kind: str, settled: Mapping[str, Any]) -> bool:
        params = parameters_of(LEARNERS[kind]) if kind in LEARNERS else {}
        try:
            return kind in LEARNERS and all(
                params[key].check(value) == value for key, value in settled.items()
            )
        except (KeyError, ParameterError):
            return False

    return sorted({*LEARNERS, *(name for name, entry in NAMES.items() if declared(*entry))})


def parse(spec: str | ComparedLearner) -> ComparedLearner:
    """The learner of a name, parameters in brackets included; a ParameterError names those there are."""
    if isinstance(spec, ComparedLearner):
        estimator(spec.kind)
        return spec
    match = re.fullmatch(r"\s*([\w.-]+)\s*(?:\((.*)\))?\s*", spec, re.DOTALL)
    name = match[1] if match else spec
    if match is None or name not in (known := learner_names()):
        raise ParameterError(
            f"there is no learner {name!r}. Use one of: {', '.join(known if match else learner_names())}."
        )
    kind, settled = NAMES.get(name, (name, {}))
    given: dict[str, Any] = {}
    for part in _split(match[2] or ""):
        key, sign, text = part.partition("=")
        if not sign:
            raise ParameterError(f"learner {spec!r}: expected name=value in brackets, found {part!r}")
        param = lookup(parameters_of(estimator(kind)), key.strip(), name)
        given[key.strip()] = param.parse(text.strip())
    return ComparedLearner(spec.strip(), kind, {**settled, **given})


def _split(text: str) -> list[str]:
    """Parts between commas that stand in no bracket."""
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
    return [part for part in (*parts, text[begin:]) if part.strip()]


def check_learner(name: str) -> tuple[Any, dict[str, Any]]:
    """The estimator class a name stands for, and the parameters it settles."""
    learner = parse(name)
    return estimator(learner.kind), dict(learner.params)


def make(name: str, **params: Any) -> Any:
    """The estimator a name stands for. Parameters given win over those of the name."""
    return parse(name).make(**params)
