"""Names of choices are declared in the core, which accepts every name that it exports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.base.domains import Choice
from tagwise.base.parameters import checked_parameters, parameters_of
from tagwise.estimators import LEARNERS


def objective(loss: str) -> object:
    """Return an objective of one sentence."""
    vocabulary = _core.Vocabulary()
    data = _core.encode_attributes(vocabulary, [[["a"], ["b"]]]).with_gold(np.array([0, 1], dtype=np.uint16))
    return _core.Objective(data, _core.Layout.build(data, len(vocabulary), 2), loss=loss)


def boosting(**options: str) -> object:
    """Return a booster of one sentence."""
    vocabulary = _core.Vocabulary()
    data = _core.encode_attributes(vocabulary, [[["a"], ["b"]]]).with_gold(np.array([0, 1], dtype=np.uint16))
    return _core.Boosting(data, _core.Layout.build(data, len(vocabulary), 2), **options)


def first(pairs: tuple[tuple[str, Any], ...]) -> tuple[str, ...]:
    return tuple(name for name, _ in pairs)


#: The name of each enumeration in messages, its values, and a function that takes them.
ENUMERATIONS: dict[str, tuple[tuple[str, ...], Callable[[str], object]]] = {
    "loss": (_core.LOSSES, objective),
    "online learner": (_core.RULES, _core.Rule),
    "cost": (first(_core.COSTS), lambda name: _core.Cost(name, dict(_core.COSTS).get(name, ()))),
    "kernel": (first(_core.KERNELS), _core.Kernel),
    "form": (_core.FORMS, lambda form: _core.Kernel("poly", form=form)),
    "slack": (_core.SLACKS, lambda slack: _core.Margins(slack=slack)),
    "bound": (_core.BOUNDS, _core.Rounds),
    "boosted loss": (_core.BOOSTED, lambda name: boosting(loss=name)),
    "sum over label sequences": (_core.SUMS, lambda name: boosting(over=name)),
}


@pytest.mark.parametrize("enumeration", ENUMERATIONS)
def test_core_accepts_every_exported_name(enumeration: str) -> None:
    names, take = ENUMERATIONS[enumeration]
    assert len(set(names)) == len(names) > 1
    for name in names:
        assert take(name) is not None
    with pytest.raises(ValueError, match=f'no {enumeration} "nothing"; there are: {", ".join(names)}'):
        take("nothing")


def test_only_sequential_losses_support_once_labels() -> None:
    """The core rejects the other losses before training begins."""
    groups = (np.array([0, _core.NO_GROUP], dtype=np.uint32), np.ones((3, 2), dtype=np.bool_))
    vocabulary = _core.Vocabulary()
    data = _core.encode_attributes(vocabulary, [[["a"], ["b"]]]).with_gold(np.array([0, 1], dtype=np.uint16))
    layout = _core.Layout.build(data, len(vocabulary), 2)

    def take(loss: str) -> _core.Objective:
        return _core.Objective(data, layout, loss=loss, limits=_core.Limits(once=groups))

    for loss in _core.SEQUENTIAL_LOSSES:
        assert take(loss) is not None
    others = set(_core.LOSSES) - set(_core.SEQUENTIAL_LOSSES)
    assert len(others) == len(_core.LOSSES) - len(_core.SEQUENTIAL_LOSSES) > 0
    for loss in others:
        with pytest.raises(ValueError, match="occur once"):
            take(loss)


@pytest.mark.parametrize("cost", first(_core.COSTS))
def test_costs_require_their_number_of_arguments(cost: str) -> None:
    numbers = dict(_core.COSTS)[cost]
    with pytest.raises(
        ValueError, match=f"the cost {cost} takes {len(numbers)} numbers, got {len(numbers) + 1}"
    ):
        _core.Cost(cost, [*numbers, 1.0])


def test_estimator_choices_equal_those_of_the_core() -> None:
    """Choices declared by the core list all its names. Online learners are named after their update rules."""
    choices = {
        (name, param.name): param.domain.names
        for name, learner in LEARNERS.items()
        for param in parameters_of(learner).values()
        if isinstance(param.domain, Choice)
    }
    assert choices["crf", "loss"] == _core.LOSSES
    for slack in _core.SLACKS:
        checked_parameters(LEARNERS["hmsvm"](slack=slack))
    assert choices["boosting", "bound"] == _core.BOUNDS
    assert choices["boosting", "over"] == _core.SUMS
    assert choices["boosting", "loss"] == _core.BOOSTED
    assert set(_core.BOOSTED) < set(_core.LOSSES)
    assert tw.Poly.FIELDS["form"] == Choice(_core.FORMS)
    assert set(_core.RULES) <= set(LEARNERS)
