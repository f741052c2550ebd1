"""Parameters of several learners on the command line of ``tagwise compare``: ``--set`` and ``--tune``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import rich_click as click

from tagwise.apps.compare import Preset
from tagwise.apps.compare.learners import ComparedLearner, estimator
from tagwise.apps.compare.plan import HELD_OUT, Data
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import lookup, meant, parameters_of


def as_value(text: str) -> Any:
    """Parse a value as an integer, a float, true or false, or else return the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text.lower(), text)


def check_settings(
    _context: click.Context, _parameter: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, Any]:
    """Parse ``name=value`` pairs."""
    out: dict[str, Any] = {}
    for text in pairs:
        name, sign, value = text.partition("=")
        if not sign:
            raise click.BadParameter(f"{text!r}: expected name=value, such as max_iter=50")
        out[name] = as_value(value)
    return out


def check_grid(
    _context: click.Context, _parameter: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, list[Any]]:
    """Parse ``name=value,value,...``. The last of several lists for one name counts."""
    out: dict[str, list[Any]] = {}
    for text in pairs:
        name, sign, values = text.partition("=")
        listed = [value.strip() for value in values.split(",")]
        if not sign or not all(listed):
            raise click.BadParameter(f"{text!r}: expected name=value,value,..., such as l2=0.01,0.1,1")
        out[name] = list(dict.fromkeys(map(as_value, listed)))
    return out


def unknown_parameter(name: str, learners: Sequence[ComparedLearner]) -> str:
    """Return the message for a parameter that none of the learners has."""
    names = {each for learner in learners for each in parameters_of(estimator(learner.kind))}
    return f"none of the learners has a parameter {name!r}{meant(name, names)}. tagwise train --params lists them"


def tuned(
    chosen: Preset, learners: list[ComparedLearner], grid: dict[str, list[Any]], data: Mapping[str, Data]
) -> Preset:
    """Return the preset with a grid for the learners that have its parameters.

    Values are scored on the dev parts if all corpora have one, and by cross-validation otherwise.
    """
    for name, values in grid.items():
        owners = [learner for learner in learners if learner.accepted({name: None})]
        if not owners:
            raise click.BadParameter(unknown_parameter(name, learners), param_hint="--tune")
        try:
            for kind in {learner.kind for learner in owners}:
                for value in values:
                    lookup(parameters_of(estimator(kind)), name, kind).check(value)
        except ParameterError as error:
            raise click.BadParameter(str(error), param_hint="--tune") from error
    kinds = dict.fromkeys(learner.kind for learner in learners)
    tune = {kind: found for kind in kinds if (found := ComparedLearner(kind, kind).accepted(grid))}
    folds = 0 if all(parts.dev is not None for parts in data.values()) else HELD_OUT
    return replace(chosen, tune=tune, folds=folds, tune_size=None)
