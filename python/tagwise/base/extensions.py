"""Names that extensions answer to, so that the library can use an extension without importing it.

`tagwise/__init__.py` stands above the library and its extensions and registers where each name is implemented. Library
code looks a name up by its kind and gets the module, which is imported at that moment:

- kind "device", name "cuda": a module with `BACKEND`, a `learners.backends.Backend`;
- kind "shards", name "ray": a module with `backend(shards, workers)`, which returns a `ShardBackend`.
"""

from __future__ import annotations

import importlib
from typing import Any

from tagwise.base.exceptions import ParameterError

_REGISTERED: dict[tuple[str, str], tuple[str, str]] = {}


def register(kind: str, name: str, module: str, *, extra: str) -> None:
    """Say which module implements a name, and which extra of the distribution installs its dependencies."""
    _REGISTERED[kind, name] = (module, extra)


def names(kind: str) -> tuple[str, ...]:
    """Names of a kind, in the order of registration."""
    return tuple(name for registered, name in _REGISTERED if registered == kind)


def load(kind: str, name: str) -> Any:
    """Import the module that implements a name.

    Raises:
        ParameterError: a package that the extension needs is not installed.
    """
    module, extra = _REGISTERED[kind, name]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ParameterError(
            f"{name!r} needs the package {error.name}, which is not installed: pip install 'tagwise[{extra}]'"
        ) from error


__all__ = ["load", "names", "register"]
