"""Functions by import path: how model files name what people wrote in Python."""

from __future__ import annotations

import importlib
from typing import Any

from tagwise.errors import ParameterError


def path_of(function: Any, what: str) -> str:
    """The import path of a function ("module:name"), or a ParameterError where it has none; `what` is it in words."""
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
    """The function of an import path."""
    module, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ParameterError(
            f"{what} {path!r} cannot be imported ({error}); put its module on the Python path"
        ) from error
    if not callable(found):
        raise ParameterError(f"{path!r} is not a function; the module has changed since the model was saved")
    return found
