"""Constructors are written out, so that defaults and help can be read from them by people and tools."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable

import pytest

import tagwise as tw
from tagwise.base.domains import AnyOf, Choice, Domain, Flag, Integer, Real, Text
from tagwise.base.options import Dictionary, Kernel, KernelLike, Lookback, OptionDomain, Partial
from tagwise.base.parameters import arguments_help, parameters_of
from tagwise.dataset.class_weights import LabelWeights
from tagwise.estimators import LEARNERS
from tagwise.features.types import FeatureSet
from tagwise.scores.constraints import ConstraintsLike

#: Types of parameters that accept an object or a short form of it.
SHORT_FORMS: dict[type, typing.Any] = {
    Dictionary: int | Dictionary | None,
    Partial: bool | Partial,
    Lookback: tuple[int, float] | Lookback | None,
    Kernel: KernelLike,
}
#: Types of parameters that `fit` checks, because their domain has no type.
CHECKED_BY_FIT: dict[str, typing.Any] = {
    "features": FeatureSet,
    "class_weight": LabelWeights,
    "constraints": ConstraintsLike,
    "cost": str | Callable[..., typing.Any],
    "slack": typing.Literal["instance", "sequence"] | tuple[typing.Literal["sequence"], int],
}


def annotation(domain: Domain) -> typing.Any:
    """Return the type of a domain, or Any if the callee checks the value."""
    if isinstance(domain, OptionDomain):
        return SHORT_FORMS[domain.kind]
    if isinstance(domain, AnyOf):
        return typing.Union[tuple(annotation(one) for one in domain.domains)]  # noqa: UP007
    if isinstance(domain, Choice):
        kind: typing.Any = typing.Literal[domain.names]
    else:
        types = {Flag: bool, Integer: int, Real: float, Text: str}
        kind = types.get(type(domain), typing.Any)
    return kind | None if domain.optional and kind is not typing.Any else kind


@pytest.mark.parametrize("learner", LEARNERS)
def test_constructors_declare_every_parameter(learner: str) -> None:
    """Keyword-only arguments, each with help and the type of its domain. Only parameters have domains."""
    kind = LEARNERS[learner]
    own = vars(kind)["__init__"]  # not inherited
    _, *shown = inspect.signature(own).parameters.values()
    params, types = parameters_of(kind), typing.get_type_hints(own)
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in shown)
    helps = arguments_help(inspect.getdoc(own) or "")
    assert [parameter.name for parameter in shown] == list(params) == list(helps)
    assert vars(kind)["_PARAMS"].keys() <= params.keys()
    for name, param in params.items():
        expected = annotation(param.domain)
        assert types[name] == (CHECKED_BY_FIT[name] if expected is typing.Any else expected), name
        assert param.help
        if expected is typing.Any:  # the help has what the type cannot express
            assert f" ({param.domain.describe()})" in helps[name]
    assert list(inspect.signature(kind).parameters.values()) == shown


def test_misspelled_parameters_get_a_suggestion() -> None:
    """The constructor and `set_params` suggest the closest name and list all names."""
    for wrong in (lambda: tw.CRF(max_iters=3), lambda: tw.CRF().set_params(max_iters=3)):
        with pytest.raises(
            tw.exceptions.ParameterError,
            match=r"CRF has no parameter 'max_iters' \(did you mean 'max_iter'\?\)\. It has: features, l2",
        ):
            wrong()
    with pytest.raises(tw.exceptions.ParameterError, match=r"no parameter 'nonsense'\. It has"):
        tw.CRF(nonsense=1)


def test_misspelled_choices_get_a_suggestion() -> None:
    """The closest name, followed by the meaning of the parameter."""
    message = r"^loss='pointwise': expected one of log, .* \(did you mean 'pointwise_log'\?\) \(loss of a sentence\)$"
    with pytest.raises(tw.exceptions.ParameterError, match=message):
        tw.CRF(loss="pointwise").fit([["a"]], [["A"]])
    with pytest.raises(
        tw.exceptions.ParameterError, match=r"^loss=3: expected one of log, [a-z_, ]* \(loss of a sentence\)$"
    ):
        tw.CRF(loss=3).fit([["a"]], [["A"]])


def test_custom_learners_keep_their_constructor() -> None:
    """A subclass keeps the constructor it defines, with any parameters."""

    class Mine(tw.CRF):
        def __init__(self, extra: int = 1, **params: object) -> None:
            super().__init__(**params)
            self.extra = extra

    made = Mine(extra=2, l2=0.5)
    assert (made.extra, made.l2, made.loss) == (2, 0.5, "log")


def test_custom_learners_can_declare_parameters() -> None:
    """Its `_PARAMS` extend those of its base. The constructor determines which exist, and their defaults."""

    class Mine(tw.CRF):
        _PARAMS: typing.ClassVar = {"rate": Real(0.0, 1.0)}

        def __init__(self, *, rate: float = 0.5, l2: float = 2.0) -> None:
            """Keep the parameters.

            Args:
                rate: How fast. Lower it to 0.1 for noisy data.
                l2: How strong.
            """
            super().__init__(l2=l2)
            self.rate = rate

    assert {name: (p.default, p.help) for name, p in parameters_of(Mine).items()} == {
        "rate": (0.5, "How fast. Lower it to 0.1 for noisy data."),
        "l2": (2.0, "How strong."),
    }
    with pytest.raises(
        tw.exceptions.ParameterError, match=r"^rate=2.0: expected number >= 0 and <= 1 \(how fast\)$"
    ):
        parameters_of(Mine)["rate"].check(2)
