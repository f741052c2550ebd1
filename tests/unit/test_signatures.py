"""Constructors are written out for people and their tools; `PARAMS` is what they must say."""

from __future__ import annotations

import inspect
import typing

import pytest

import tagwise as tw
from tagwise.base.parameters import Choice, Flag, Number, Param


def annotation(param: Param) -> typing.Any:
    """The type that a domain stands for; Any where the receiver checks for itself."""
    domain = param.domain
    if isinstance(domain, Flag):
        return bool
    if isinstance(domain, Number):
        kind: typing.Any = int if domain.integer else float
    elif isinstance(domain, Choice):
        kind = typing.Literal[domain.names]
    else:
        return typing.Any
    return kind | None if domain.optional else kind


def documented(param: Param) -> str:
    """What the constructor says of a parameter: its help, and its domain where the type does not tell."""
    told = isinstance(param.domain, (Flag, Number, Choice))
    return f"{param.name}: {param.help}" + ("" if told else f" ({param.domain.describe()})")


def entries(doc: str) -> list[str]:
    """The entries of a docstring's Args, each on one line."""
    out: list[str] = []
    for line in inspect.cleandoc(doc).split("Args:\n")[1].splitlines():
        if line.startswith("     "):
            out[-1] += " " + line.strip()
        else:
            out.append(line.strip())
    return out


@pytest.mark.parametrize("learner", tw.LEARNERS)
def test_a_constructor_says_what_the_table_declares(learner: str) -> None:
    """Names in their order, keywords alone, defaults, types and words."""
    kind = tw.LEARNERS[learner]
    own = vars(kind)["__init__"]  # its own, not one inherited
    _, *shown = inspect.signature(own).parameters.values()
    assert [parameter.name for parameter in shown] == [param.name for param in kind.PARAMS]
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in shown)
    types = typing.get_type_hints(own)
    for parameter, param in zip(shown, kind.PARAMS):
        assert parameter.default == param.default
        assert type(parameter.default) is type(param.default)
        wanted = annotation(param)
        assert wanted is typing.Any or types[param.name] == wanted, param.name
    wanted_text = [documented(param) for param in kind.PARAMS]
    assert entries(own.__doc__) == wanted_text, "the constructor's Args are to read:\n" + "\n".join(
        wanted_text
    )
    assert list(inspect.signature(kind).parameters.values()) == shown


def test_a_name_that_is_nearly_one_is_asked_about() -> None:
    """Of a constructor and of `set_params`, with the list of all there are."""
    for wrong in (lambda: tw.CRF(max_iters=3), lambda: tw.CRF().set_params(max_iters=3)):
        with pytest.raises(
            tw.ParameterError,
            match=r"CRF has no parameter 'max_iters' \(did you mean 'max_iter'\?\); it has: features, loss",
        ):
            wrong()
    with pytest.raises(tw.ParameterError, match="no parameter 'nonsense'; it has"):
        tw.CRF(nonsense=1)


def test_a_learner_of_ones_own_may_have_more_parameters() -> None:
    """A subclass has the constructor that it is given, which may take what it likes."""

    class Mine(tw.CRF):
        def __init__(self, extra: int = 1, **params: object) -> None:
            super().__init__(**params)
            self.extra = extra

    made = Mine(extra=2, l2=0.5)
    assert (made.extra, made.l2, made.loss) == (2, 0.5, "log")
