"""Every parameter matters: a row for each parameter of each estimator says how."""

from __future__ import annotations

import logging

import pytest

import tagwise as tw

from .parameters import ROWS, Bench


@pytest.mark.parametrize(("learner", "parameter"), ROWS, ids=map("-".join, ROWS))
def test_a_parameter_does_what_it_says(
    learner: str, parameter: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The row's own statement."""
    caplog.set_level(logging.INFO, logger="tagwise")
    ROWS[learner, parameter](Bench(tw.LEARNERS[learner], monkeypatch, caplog))


def test_every_parameter_has_a_row() -> None:
    """No parameter without a row, no row without its parameter, and each row says in words what it asks."""
    declared = {(name, param.name) for name, kind in tw.LEARNERS.items() for param in kind.PARAMS}
    assert set(ROWS) == declared
    assert all(check.__doc__ for check in ROWS.values())
