"""Functions by import path, as model files name user-defined functions, and the rules for resolving them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tagwise.base.exceptions import MissingFunctionError, ParameterError


class MissingFunction:
    """Placeholder for a function that a file names and that was not passed. Calling it raises MissingFunctionError.

    `given` are the names of the functions that were passed.
    """

    def __init__(self, path: str, role: str, given: Sequence[str] = ()) -> None:
        self.path, self.role, self.given = path, role, tuple(given)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        given = f", and functions has only {', '.join(map(repr, self.given))}" if self.given else ""
        if self.path.startswith(":"):
            name = self.path[1:]
            raise MissingFunctionError(
                f"{self.role} {name!r} is missing{given}: a model file has only its name, as of every function of a "
                f"script or a notebook. Define it again and pass it when loading with functions={{{name!r}: {name}}}"
            )
        raise MissingFunctionError(
            f"{self.role} {self.path!r} is missing{given}: a model file names it, and loading does not import "
            f"functions. Pass it when loading with functions={{{self.path!r}: function}}, or if you trust the author "
            "of the file, import it with trust=True"
        )

    def __repr__(self) -> str:
        return f"<missing function {self.path!r}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MissingFunction) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)


class Functions:
    """Functions that a file may name: those that were passed. Others are imported only if trusted.

    `functions` has functions by import path ("module:name") or by the part after the colon. Unused names are ignored.
    A path without a module (":name") cannot be imported, even if trusted.
    """

    def __init__(
        self, functions: Mapping[str, Callable[..., Any]] | None = None, trust: bool = False
    ) -> None:
        if functions is not None and not isinstance(functions, Mapping):
            raise ParameterError(f"functions={functions!r}: expected a mapping of name -> function")
        for name, function in (functions or {}).items():
            if not isinstance(name, str) or not callable(function):
                raise ParameterError(
                    f"functions: {name!r} -> {function!r}, expected the name of a function and a function"
                )
        self.functions, self.trust = dict(functions or {}), bool(trust)

    def find(self, path: str, role: str) -> Callable[..., Any]:
        """Return the function of this import path, or a `MissingFunction` if it is unknown and not trusted."""
        for name in (path, path.partition(":")[2]):
            if name and name in self.functions:
                return self.functions[name]
        importable = self.trust and not path.startswith(":")
        found: Callable[..., Any] = (
            function_at(path, role) if importable else MissingFunction(path, role, list(self.functions))
        )
        return found


#: Resolves no name.
NO_FUNCTIONS = Functions()


def require_function(function: Any) -> Any:
    """Return the function, or raise a MissingFunctionError if it is a placeholder."""
    if isinstance(function, MissingFunction):
        function()
    return function


def alias(function: Any, path: str) -> str:
    """Return the import path by which a file names a function if it differs from its own, or an empty string."""
    if isinstance(function, MissingFunction):
        return ""
    own = f"{getattr(function, '__module__', None)}:{getattr(function, '__qualname__', None)}"
    return "" if own == path else path


def path_of(function: Any, role: str) -> str:
    """Return the path by which a file names a function. `role` describes the function in the error if it has none.

    The path is "module:name" if the function can be imported, otherwise ":name": functions of scripts, of notebooks and
    inside other functions exist only where they are defined.
    """
    if isinstance(function, MissingFunction):
        return function.path
    module, qualified = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module not in (None, "__main__"):
        path = f"{module}:{qualified}"
        try:
            if function_at(path, role) is function:
                return path
        except ParameterError:
            pass
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or not name.isidentifier():
        raise ParameterError(
            f"{role} has no name, so a model file cannot refer to it. Define it with def instead of as a lambda or an "
            "object"
        )
    return f":{name}"


def function_at(path: str, role: str) -> Any:
    """Return the function of an import path that a user named or trusts. Importing its module runs code."""
    module, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ParameterError(
            f"{role} {path!r} cannot be imported ({error}). Check its name, and that its module is on the Python path"
        ) from error
    if not callable(found):
        raise ParameterError(
            f"{role} {path!r} is {type(found).__name__}, expected a function. Name another one, or restore the module "
            "that the model was saved with"
        )
    return found
