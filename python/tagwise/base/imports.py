"""Functions by import path: how model files name what people wrote in Python, and who may resolve such a name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from tagwise.base.exceptions import MissingFunctionError, ParameterError


class Missing:
    """Stands where a file names a function that nobody handed over: it has the name, and refuses to be called."""

    def __init__(self, path: str, what: str) -> None:
        self.path, self.what = path, what

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        raise MissingFunctionError(
            f"{self.what} {self.path!r} is not there: a model file names it, and loading imports nothing that a file "
            f"names. Hand it over: tagwise.load(path, functions={{{self.path!r}: function}}), on the command line "
            f"--functions {self.path}; or, where you trust the author of the file, trust=True (--trust) imports it"
        )

    def __repr__(self) -> str:
        return f"<missing function {self.path!r}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Missing) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)


class Functions:
    """What stands for the functions that a file names: those handed over; others are imported only where trusted.

    given: by import path ("module:name"), or by what stands behind the colon. Names that no file asks for do no harm.
    """

    def __init__(self, given: Mapping[str, Callable[..., Any]] | None = None, trust: bool = False) -> None:
        if given is not None and not isinstance(given, Mapping):
            raise ParameterError(f"functions={given!r}: expected a mapping of name -> function")
        for name, function in (given or {}).items():
            if not isinstance(name, str) or not callable(function):
                raise ParameterError(f"functions: {name!r} -> {function!r}; expected a name and a function")
        self.given, self.trust = dict(given or {}), bool(trust)

    def find(self, path: str, what: str) -> Callable[..., Any]:
        """The function of this import path; one that refuses to be called where nobody answers for the path."""
        for name in (path, path.partition(":")[2]):
            if name and name in self.given:
                return self.given[name]
        found: Callable[..., Any] = function_at(path, what) if self.trust else Missing(path, what)
        return found


#: Nobody answers for any name.
NO_FUNCTIONS = Functions()


def present(function: Any) -> Any:
    """The function, or a MissingFunctionError where it is one that nobody handed over."""
    if isinstance(function, Missing):
        function()
    return function


def alias(function: Any, path: str) -> str:
    """The import path by which a file names a function, where that is not the function's own; else nothing."""
    if isinstance(function, Missing):
        return ""
    own = f"{getattr(function, '__module__', None)}:{getattr(function, '__qualname__', None)}"
    return "" if own == path else path


def path_of(function: Any, what: str) -> str:
    """The import path of a function ("module:name"), or a ParameterError where it has none; `what` is it in words."""
    if isinstance(function, Missing):
        return function.path
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    path = f"{module}:{name}"
    try:
        found = module not in (None, "__main__") and function_at(path, what) is function
    except ParameterError:
        found = False
    if not found:
        raise ParameterError(
            f"{what} cannot be imported as {path!r}, so a model cannot name it; "
            "define it at the top level of a module that is importable where the model is loaded"
        )
    return path


def function_at(path: str, what: str) -> Any:
    """The function of an import path that a user named, or trusts: its module is imported, and so runs."""
    module, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ParameterError(
            f"{what} {path!r} cannot be imported ({error}); put its module on the Python path"
        ) from error
    if not callable(found):
        raise ParameterError(f"{path!r} is not a function; the module has changed since the model was saved")
    return found
