"""Parameter objects: settings that belong together, as one value of a learner's parameter.

Each object is frozen and compares by value. Learners accept short forms in place of objects, the command line accepts
texts, and model files store mappings.

>>> DICTIONARY.convert(5), LOOKBACK.parse("1,inf:document=true")
(Dictionary(), Lookback(p=inf, document=True))
>>> KERNEL.parse("poly:degree=3"), KERNEL.convert({"name": "rbf", "gamma": 0.5})
(Poly(degree=3), RBF(gamma=0.5))
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import tagwise._core as _core
from tagwise.base.domains import Choice, Domain, Domains, Flag, Integer, Real, Text, plain
from tagwise.base.exceptions import ParameterError
from tagwise.base.imports import MissingFunction
from tagwise.base.markup import object_html
from tagwise.base.parameters import arguments_help, checked, lookup


class Option:
    """Base class of parameter objects. `FIELDS` has the domain of each field."""

    FIELDS: ClassVar[Domains] = {}

    def __post_init__(self) -> None:
        for name, domain in self.FIELDS.items():
            value = checked(f"{type(self).__name__}.{name}", getattr(self, name), domain)
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        shown = [
            f"{one.name}={value!r}"
            for one in self._declared()
            if (value := getattr(self, one.name)) != one.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _declared(self) -> list[dataclasses.Field[Any]]:
        """Return the fields in the order of the signature."""
        fields = (one for one in dataclasses.fields(self) if one.init)  # type: ignore[arg-type]
        return sorted(fields, key=lambda one: bool(one.kw_only))

    def _repr_html_(self) -> str:
        """Return the representation for notebooks: the fields with their meaning."""
        helps = arguments_help(inspect.getdoc(type(self)) or "")
        rows = [
            (one.name, repr(getattr(self, one.name)), helps[one.name].split(". ")[0])
            for one in self._declared()
        ]
        return object_html(self, rows)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values for a model file.

        Returns:
            A dict of names and values that JSON can express.
        """
        return {name: getattr(self, name) for name in self.FIELDS}


@dataclass(frozen=True, repr=False)
class Dictionary(Option):
    """Tag dictionary, learnt in training: frequent words may only take labels that were seen with them.

    Args:
        min_count: Minimum count of a word in training. Rarer words may take any label. Try 3 to 10 for parts of speech.
            1 is too strict.
        share: Minimum share of a word's tokens with a label for the dictionary to allow this label. Raise it to 0.01 to
            0.05 if annotation errors fill the dictionary.

    >>> Dictionary(min_count=3) == Dictionary(3, share=0.0), Dictionary(share=0.01)
    (True, Dictionary(share=0.01))
    """

    min_count: int = 5
    share: float = 0.0

    FIELDS: ClassVar[Domains] = {"min_count": Integer(1), "share": Real(0.0, 1.0)}


@dataclass(frozen=True, repr=False)
class Partial(Option):
    """Notation of partial labels in text: sets of possible labels, and unknown labels.

    Args:
        separator: Text between the labels of a set. Change it if labels contain this text.
        unknown: Label of a token that may have any label. Change it if this text is one of the labels.

    >>> Partial(unknown="?")
    Partial(unknown='?')
    """

    separator: str = "|"
    unknown: str = "_"

    FIELDS: ClassVar[Domains] = {"separator": Text(), "unknown": Text()}


@dataclass(frozen=True)
class _Distance(Domain):
    """Integer >= 1, or infinity."""

    NOUN: ClassVar[str] = "integer >= 1, or inf"

    def convert(self, value: Any) -> Any:
        value = math.inf if value in ("inf", "infinity") else value
        return value if value == math.inf else Integer(1).convert(value)

    def holds(self, value: Any) -> bool:
        return value == math.inf or Integer(1).holds(value)

    def read(self, text: str) -> Any:
        return math.inf if text in ("inf", "infinity") else int(text)


@dataclass(frozen=True, repr=False)
class Lookback(Option):
    """Labels further back than one that features depend on.

    Args:
        m: Number of labels of a search state, 1 to 3. Larger values search more exactly and take longer.
        p: Distance up to which labels have features, read along the best path of a search state. `math.inf` means any
            distance. Try 2 for names.
        pool: Distance from which on all labels share one weight table, with p = inf. Nearer labels have a table each.
            Lower it to 4 to 16 for small corpora.
        document: Add features on the labels of earlier tokens of the document with the same word. Set it to True for
            names, if the corpus marks its documents.

    >>> Lookback(1, 2), Lookback(m=1, p=math.inf, document=True).p
    (Lookback(p=2), inf)
    """

    m: int = 1
    p: float = 1
    pool: int = 128
    document: bool = False

    FIELDS: ClassVar[Domains] = {
        "m": Integer(1, 3),
        "p": _Distance(),
        "pool": Integer(2, 1000),
        "document": Flag(),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pool != type(self).pool and self.p != math.inf:
            raise ParameterError(
                f"Lookback.pool={self.pool} needs p=inf, found p={self.p}. Leave pool out, or set p=inf"
            )

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values for a model file. JSON has no infinity.

        Returns:
            A dict of names and values, with "inf" for an infinite `p`.
        """
        return {**super().to_json(), "p": "inf" if self.p == math.inf else self.p}


_MEMORY: Domains = {"cache_mb": Integer(1), "budget": Integer(1, optional=True)}


@dataclass(frozen=True, repr=False)
class Kernel(Option):
    """Kernel of a learner: a function of two blocks of tokens, or "linear".

    Use `Poly` and `RBF` for these kernels. Transitions stay linear with every kernel.

    Args:
        function: Function of two blocks of tokens that returns the matrix of their similarities, its import path
            ("module:function"), or "linear".
        cache_mb: Megabytes of memory for kernel rows while training. Raise it if training is slow and there is memory
            to spare.
        budget: Maximum number of support tokens of a perceptron. None means unlimited. Set it to some thousands if the
            model is too large or predicts too slowly.

    >>> Kernel("linear", cache_mb=64)
    Kernel(function='linear', cache_mb=64)
    """

    function: Any
    cache_mb: int = field(default=256, kw_only=True)
    budget: int | None = field(default=None, kw_only=True)

    FIELDS: ClassVar[Domains] = _MEMORY

    def __post_init__(self) -> None:
        super().__post_init__()
        named = self.function == "linear" or type(self) is not Kernel
        path = isinstance(self.function, str) and ":" in self.function
        if not (named or path or callable(self.function)):
            raise ParameterError(
                f"Kernel.function={self.function!r}: expected a function of two blocks of tokens, module:function, or "
                "linear"
            )

    @property
    def name(self) -> str:
        """Name of the kernel in model files: linear, poly, rbf or function."""
        known = isinstance(self.function, str) and self.function in _NAMED
        return str(self.function) if known else "function"

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values for a model file. A function is stored by its import path.

        Returns:
            A dict of names and values, with the name of the kernel.
        """
        named = {"function": _path(self.function)} if self.name == "function" else {}
        return {"name": self.name, **named, **super().to_json()}


def _path(function: Any) -> str:
    """Return the import path of a function, whether it can be imported or not."""
    if isinstance(function, MissingFunction):
        return function.path
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return function if isinstance(function, str) else f"{getattr(function, '__module__', '')}:{name}"


@dataclass(frozen=True, repr=False)
class Poly(Kernel):
    """Polynomial kernel (coef + gamma <x, x'>)^degree.

    Args:
        degree: Degree, 1 to 64. 2 covers all pairs of attributes. 3 and above overfit easily.
        coef: Constant term. Raise it, up to 10, to weigh single attributes more than their products.
        gamma: Factor of <x, x'>. None is 1. Try a tenth to ten times the default.
        form: "rows" evaluates rows of the kernel matrix, "expanded" the products of attributes of degree 2. The model
            is the same. "auto" takes the cheaper form. Name one if "auto" is slow.
        cache_mb: Megabytes of memory for kernel rows while training. Raise it if training is slow and there is memory
            to spare.
        budget: Maximum number of support tokens of a perceptron. None means unlimited. Set it to some thousands if the
            model is too large or predicts too slowly.

    >>> Poly(3, coef=0.5)
    Poly(degree=3, coef=0.5)
    """

    function: Any = field(default="poly", init=False)
    degree: int = 2
    coef: float = 1.0
    gamma: float | None = None
    form: str = "auto"

    FIELDS: ClassVar[Domains] = {
        "degree": Integer(1, 64),
        "coef": Real(0.0),
        "gamma": Real(0.0, open_low=True, optional=True),
        "form": Choice(_core.FORMS),
        **_MEMORY,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.form == "expanded" and self.degree > 2:
            raise ParameterError(
                f"Poly.form='expanded' needs degree=1 or 2, found degree={self.degree}. Use form='rows'"
            )


@dataclass(frozen=True, repr=False)
class RBF(Kernel):
    """Gaussian kernel exp(-gamma ||x - x'||^2).

    Args:
        gamma: Factor of ||x - x'||^2. None is 1 over the mean of ||x||^2 of the training tokens. Try a tenth to ten
            times the default.
        cache_mb: Megabytes of memory for kernel rows while training. Raise it if training is slow and there is memory
            to spare.
        budget: Maximum number of support tokens of a perceptron. None means unlimited. Set it to some thousands if the
            model is too large or predicts too slowly.

    >>> RBF(gamma=0.5)
    RBF(gamma=0.5)
    """

    function: Any = field(default="rbf", init=False)
    gamma: float | None = None

    FIELDS: ClassVar[Domains] = {"gamma": Real(0.0, open_low=True, optional=True), **_MEMORY}


#: Type of the parameter `kernel`: a name, module:function, a function of two blocks of tokens, or an object.
KernelLike = str | Callable[[Any, Any], Any] | Kernel | None

#: Classes of the kernels that have a name.
_NAMED: dict[str, type[Kernel]] = {"linear": Kernel, **{kind.function: kind for kind in (Poly, RBF)}}


def _named(name: str, settings: Mapping[str, Any]) -> Kernel:
    """Return the kernel of a name."""
    kind = _NAMED[name]
    return Kernel(name, **settings) if kind is Kernel else kind(**settings)


# --- domains ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OptionDomain(Domain):
    """Domain of a parameter object.

    `of` returns the object for a short form or a mapping, and `text` for a text of the command line. Both raise a
    ValueError, TypeError or KeyError for anything else.
    """

    kind: type[Option]
    what: str
    of: Callable[[Any], Any]
    text: Callable[[str], Any]

    def noun(self) -> str:
        return self.what

    def holds(self, value: Any) -> bool:
        return isinstance(value, self.kind) or value is False

    def convert(self, value: Any) -> Any:
        value = plain(value)
        if isinstance(value, self.kind) or (value is None and self.optional):
            return value
        if value == "":
            raise ValueError(f"expected {self.describe()}")
        return self.parse(value) if isinstance(value, str) else self._made(self.of, value)

    def parse(self, text: str) -> Any:
        if self.optional and text.lower() in ("none", ""):
            return None
        if text.lstrip().startswith("{"):
            return self._made(lambda given: self.of(json.loads(given)), text)
        inner = text.strip()
        return self._made(self.text, inner[1:-1] if inner[:1] == "(" and inner[-1:] == ")" else inner)

    def _made(self, make: Callable[[Any], Any], value: Any) -> Any:
        """Return the object, or raise a ValueError that describes the domain."""
        try:
            return make(value)
        except ParameterError:
            raise
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"expected {self.describe()}") from None


def _settings(kind: type[Option], text: str) -> dict[str, Any]:
    """Parse "name=value,name=value" as fields of an object."""
    out = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = part.partition("=")
        domain = lookup(kind.FIELDS, name.strip(), kind.__name__)
        out[name.strip()] = checked(
            f"{kind.__name__}.{name.strip()}", value.strip(), domain, "", domain.parse
        )
        if not equals:
            raise ValueError(part)
    return out


def _dictionary(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Dictionary(**value)
    if type(Integer(1).convert(value)) is not int:
        raise TypeError
    return Dictionary(value)


def _dictionary_text(text: str) -> Any:
    count, _, rest = text.partition(":")
    return Dictionary(int(count), **_settings(Dictionary, rest))


def _partial(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Partial(**value)
    flag = Flag().convert(value)
    if type(flag) is not bool:
        raise TypeError
    return Partial() if flag else False


def _partial_text(text: str) -> Any:
    flag, _, rest = text.partition(":")
    return Partial(**_settings(Partial, rest)) if Flag().read(flag) else False


def _lookback(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Lookback(**value)
    m, p = value
    return Lookback(m, p)


def _lookback_text(text: str) -> Any:
    pair, _, rest = text.partition(":")
    m, p = (part.strip() for part in pair.split(","))
    return Lookback(int(m), _Distance().read(p), **_settings(Lookback, rest))


def _kernel(value: Any) -> Any:
    if isinstance(value, Mapping):
        given = dict(value)
        name = given.pop("name")
        return Kernel(**given) if name == "function" else _named(name, given)
    if not callable(value):
        raise TypeError
    return Kernel(value)


def _kernel_text(text: str) -> Any:
    name, _, rest = text.partition(":")
    if name in _NAMED:
        return _named(name, _settings(_NAMED[name], rest))
    function, _, settings = rest.partition(":")
    if not function:
        raise ValueError
    return Kernel(f"{name}:{function}", **_settings(Kernel, settings))


DICTIONARY = OptionDomain(
    Dictionary, "integer >= 1, or a Dictionary", _dictionary, _dictionary_text, optional=True
)
PARTIAL = OptionDomain(Partial, "true or false, or a Partial", _partial, _partial_text)
LOOKBACK = OptionDomain(
    Lookback,
    "(m, p) with m = 1, 2, 3 and p >= 1 or inf, or a Lookback",
    _lookback,
    _lookback_text,
    optional=True,
)
KERNEL = OptionDomain(
    Kernel,
    "linear, poly, rbf, module:function, a function of two blocks of tokens, or a Kernel",
    _kernel,
    _kernel_text,
    optional=True,
)
