"""Parameters of estimators and arguments of functions.

An estimator declares the domains of its parameters in `_PARAMS`. Defaults come from the signature of its constructor,
and help comes from the docstring. `fit`, the command line and the documentation use all three.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from tagwise.base.domains import Choice, Domain, DomainError, shown
from tagwise.base.exceptions import ParameterError


def cores() -> int:
    """Return the number of cores that this process may use: fewer than the machine has under `taskset`, for example."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


Item = TypeVar("Item")


@dataclass(frozen=True)
class Param:
    """One parameter of a learner."""

    name: str
    default: Any
    domain: Domain
    help: str

    @property
    def summary(self) -> str:
        """First sentence of the help, to be put in brackets: without a capital and a full stop."""
        first = self.help.partition(". ")[0].removesuffix(".")
        return first[:1].lower() + first[1:]

    def check(self, value: Any) -> Any:
        """Return the value in its canonical form, or raise a ParameterError that names parameter, value and domain."""
        return checked(self.name, value, self.domain, self.summary)

    def parse(self, text: str) -> Any:
        """Return the value of a text from the command line."""
        return checked(self.name, text, self.domain, self.summary, self.domain.parse)


def checked(
    name: str, value: Any, domain: Domain, help: str = "", convert: Callable[[Any], Any] | None = None
) -> Any:
    """Return an argument in its canonical form, or raise a ParameterError that names argument, value and domain.

    >>> from tagwise.base.domains import Integer
    >>> checked("k", 3.0, Integer(1))
    3
    """
    try:
        found = (convert or domain.convert)(value)
        domain.check(found, name)
        return found
    except DomainError as error:
        message = error.as_argument
    except ValueError as error:
        message = f"{name}={shown(value)}: {error}"
    if isinstance(domain, Choice) and isinstance(value, str):
        message += meant(value, domain.names)
    raise ParameterError(message + f" ({help})" * bool(help))


def checked_path(value: Any) -> str | os.PathLike[str]:
    """Return a path, or raise a ParameterError if it is not one."""
    if not isinstance(value, (str, os.PathLike)):
        raise ParameterError(f"path={shown(value)}: expected text or a path")
    return value


def parameters_of(kind: Any) -> dict[str, Param]:
    """Return the parameters of an estimator by name: those of its constructor, with the domains of `_PARAMS`.

    `_PARAMS` adds to that of the base classes. A subclass without `_PARAMS` of its own has the parameters of its base,
    whatever its constructor accepts.
    """
    return _parameters_of(kind)


def checked_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator as plain Python values, each checked against its domain."""
    known = parameters_of(type(estimator))
    return {name: param.check(getattr(estimator, name)) for name, param in known.items()}


@functools.cache
def _parameters_of(kind: Any) -> dict[str, Param]:
    owner = next(base for base in kind.__mro__ if "_PARAMS" in vars(base))
    domains = ChainMap(*(vars(base).get("_PARAMS", {}) for base in owner.__mro__))
    helps = arguments_help(inspect.getdoc(owner.__init__) or "")
    out = {}
    for name, parameter in inspect.signature(owner.__init__).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            help = helps.get(name, "").replace(f" ({domains[name].describe()})", "", 1)
            out[name] = Param(name, parameter.default, domains[name], help)
    return out


def arguments_help(doc: str) -> dict[str, str]:
    """Return the text of each argument of a docstring, on one line. Other sections are ignored.

    >>> arguments_help("Fit.\\n\\nArgs:\\n    l2: strength\\n        of the prior\\n\\nRaises:\\n    TypeError: if so")
    {'l2': 'strength of the prior'}
    """
    section = re.split(r"\n(?=\S)", doc.partition("Args:\n")[2])[0]
    found = re.findall(r"^    (\w+): (.*(?:\n {5,}.*)*)", section, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}


def require(
    feature: str, params: Mapping[str, Any], allowed: Mapping[str, tuple[Any, ...]], remedy: str = ""
) -> None:
    """Raise a ParameterError unless each parameter has one of the values that `feature` supports.

    Names that a learner does not have are ignored. The first allowed value is the default of the parameter.
    """
    for name, values in allowed.items():
        if (value := params.get(name, values[0])) not in values:
            expected = " or ".join(map(repr, values))
            raise ParameterError(f"{feature} requires {name}={expected}, found {name}={shown(value)}{remedy}")


def lookup(params: Mapping[str, Item], name: str, owner: str) -> Item:
    """Return the parameter of that name, or raise a ParameterError that lists the valid names."""
    if name in params:
        return params[name]
    raise ParameterError(
        f"{owner} has no parameter {name!r}{meant(name, params)}. It has: {', '.join(params)}"
    )


#: Names that parameters have in other libraries, with the names here.
ELSEWHERE = {
    **dict.fromkeys(
        ("epochs", "n_epochs", "max_epochs", "max_iterations", "iterations", "n_iter", "rounds"), "max_iter"
    ),
    **dict.fromkeys(("seed", "random_seed"), "random_state"),
    **dict.fromkeys(("jobs", "threads", "num_threads", "n_threads"), "n_jobs"),
    **dict.fromkeys(("c2", "sigma", "weight_decay"), "l2"),
    **dict.fromkeys(("min_freq", "min_df"), "min_count"),
    **dict.fromkeys(("all_possible_states", "all_possible_transitions"), "all_pairs"),
    "c1": "l1",
    "algorithm": "optimizer",
    "history": "lookback",
}


def meant(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'x'?)` for the closest known name, or an empty string. Case counts if it helps.

    >>> meant("sufix", ["prefix", "suffix"]), meant("TOKN", ["Token"]), meant("nonsense", ["l2"])
    (" (did you mean 'suffix'?)", " (did you mean 'Token'?)", '')
    >>> meant("epochs", ["max_iter", "l2"])
    " (did you mean 'max_iter'?)"
    """
    names = list(known)
    if ELSEWHERE.get(name) in names:
        return f" (did you mean {ELSEWHERE[name]!r}?)"
    folded = {other.casefold(): other for other in reversed(names)}
    close = difflib.get_close_matches
    found = close(name, names, n=1) or [folded[other] for other in close(name.casefold(), folded, n=1)]
    return f" (did you mean {found[0]!r}?)" if found else ""
