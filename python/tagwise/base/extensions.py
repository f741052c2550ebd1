"""Registry of extensions, so that the library can use them without importing them.

`tagwise/__init__.py`, which is above both, registers the module that implements each name. Library code looks a name up
by its kind and gets the module, which is imported at that moment:

- kind "device", name "cuda": a module with `BACKEND`, a `learners.backends.Backend`,
- kind "shards", name "ray": a module with `backend(shards, workers)`, which returns a `ShardBackend`.
"""

from __future__ import annotations

import importlib
from typing import Any

from tagwise.base.exceptions import ParameterError

_REGISTERED: dict[tuple[str, str], tuple[str, str]] = {}


def register(kind: str, name: str, module: str, *, extra: str) -> None:
    """Register the module that implements a name, and the extra of the distribution that installs its dependencies."""
    _REGISTERED[kind, name] = (module, extra)


def names(kind: str) -> tuple[str, ...]:
    """Return the names of a kind, in the order of registration."""
    return tuple(name for registered, name in _REGISTERED if registered == kind)


def load(kind: str, name: str) -> Any:
    """Import the module that implements a name.

    Raises:
        ParameterError: If a package that the extension needs is not installed.
    """
    module, extra = _REGISTERED[kind, name]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ParameterError(
            f"{name!r} needs the package {error.name}, which is not installed: pip install 'tagwise[{extra}]'"
        ) from error
