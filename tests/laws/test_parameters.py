"""Tests that every parameter matters: each parameter of each estimator has a row."""

from __future__ import annotations

import inspect
import logging
from typing import Any

import pytest

import tagwise as tw
from tagwise.base.parameters import checked_parameters, parameters_of
from tagwise.estimators import LEARNERS

from .parameters import ROWS, Bench
from .parameters.domains import DOMAINS, OWN, domain


@pytest.mark.parametrize(("learner", "parameter"), ROWS, ids=map("-".join, ROWS))
def test_parameter_has_its_documented_effect(
    learner: str, parameter: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The statement of the row holds."""
    caplog.set_level(logging.INFO, logger="tagwise")
    ROWS[learner, parameter](Bench(LEARNERS[learner], monkeypatch, caplog))


def test_every_parameter_has_a_row() -> None:
    """Every parameter has a row, every row a parameter, and each row a docstring."""
    assert set(ROWS) == set(EACH)
    assert all(check.__doc__ for check in ROWS.values())


# -- defaults and domains ---------------------------------------------------------------------------------

EACH = [(name, parameter) for name, kind in LEARNERS.items() for parameter in parameters_of(kind)]


def defaults_of(learner: str) -> dict[str, Any]:
    """Return the defaults in the signature of the constructor."""
    return {name: p.default for name, p in inspect.signature(LEARNERS[learner]).parameters.items()}


@pytest.mark.parametrize("learner", LEARNERS)
def test_defaults_agree_with_signature_and_get_params(learner: str) -> None:
    """Defaults agree in the object, in its signature and in `get_params`, and the repr omits unchanged parameters."""
    kind, defaults = LEARNERS[learner], defaults_of(learner)
    tagger = kind()
    assert tagger.get_params() == checked_parameters(tagger) == defaults
    assert {name: getattr(tagger, name) for name in defaults} == defaults
    assert {name: parameter.default for name, parameter in parameters_of(kind).items()} == defaults
    assert repr(tagger) == f"{kind.__name__}()"


@pytest.mark.parametrize(("learner", "parameter"), EACH, ids=map("-".join, EACH))
def test_domain_boundaries_are_enforced(learner: str, parameter: str) -> None:
    """Valid values are normalised. `fit` rejects invalid ones and names the parameter."""
    wanted, kind = domain(learner, parameter), LEARNERS[learner]
    for given, kept in wanted.taken:
        tagger = kind(**{parameter: given})
        found = checked_parameters(tagger)[parameter]
        assert found == kept
        assert type(found) is type(kept)
        assert tagger.get_params()[parameter] is given  # as it was set
    for given in wanted.refused:
        with pytest.raises(tw.exceptions.ParameterError, match=rf"^{parameter}="):
            kind(**{parameter: given}).fit([["a"]], [["x"]])
    declared = parameters_of(kind)[parameter]
    for text, value in wanted.texts:
        assert declared.parse(text) == value
        assert type(declared.parse(text)) is type(value)
    if wanted.refused:
        with pytest.raises(tw.exceptions.ParameterError, match=rf"^{parameter}='nonsense'"):
            declared.parse("nonsense")


@pytest.mark.parametrize("learner", LEARNERS)
def test_set_params_sets_parameters_by_name(learner: str) -> None:
    """`set_params` changes the named parameters, returns the tagger, and rejects unknown names."""
    kind = LEARNERS[learner]
    tagger = kind()
    name, value = ("rare", 3) if learner == "hmm" else ("min_count", 3)
    assert tagger.set_params(**{name: value}) is tagger
    assert tagger.get_params() == {**defaults_of(learner), name: value}
    assert kind(**{name: value}).get_params() == tagger.get_params()
    assert repr(tagger) == f"{kind.__name__}({name}={value})"
    for wrong in (lambda: tagger.set_params(nonsense=1), lambda: kind(nonsense=1)):
        with pytest.raises(
            tw.exceptions.ParameterError,
            match=f"{kind.__name__} has no parameter 'nonsense'. It has: features",
        ):
            wrong()
    assert kind().get_params() == defaults_of(learner)  # instances share no state


def test_table_of_domains_is_complete() -> None:
    """Every parameter has a domain, and nothing else has."""
    assert set(DOMAINS) == {parameter for _, parameter in EACH}
    assert set(OWN) <= set(EACH)
