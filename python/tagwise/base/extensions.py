"""Registry of extensions, so that the library can use them without importing them.

`tagwise/__init__.py`, which is above both, registers the module that implements each name. Library code looks a name up
by its kind and gets the module, which is imported at that moment:

- kind "device", name "cuda": a module with `BACKEND`, a `learners.backends.Backend`,
- kind "shards", name "ray": a module with `backend(shards, workers)`, which returns a `ShardBackend`,
- kind "encoding", name "ray": a module with `encode`, which takes `workers` and the arguments of `tagwise.encode`.
"""

from __future__ import annotations

import importlib
from typing import Any

from tagwise.base.exceptions import ParameterError

#: Backend of this process. Others are extensions.
LOCAL = "local"

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


def backends() -> tuple[str, ...]:
    """Return the names of the backends that can encode and train.

    Returns:
        "local" and the names of registered extensions.
    """
    return (LOCAL, *names("shards"))


def check_backend(name: str) -> None:
    """Raise a ParameterError if there is no backend of this name."""
    if name not in backends():
        from tagwise.base.parameters import meant  # imports NumPy

        raise ParameterError(
            f"backend={name!r}: expected one of {', '.join(backends())}{meant(str(name), backends())}"
        )


def check_local(workers: int | None) -> None:
    """Raise a ParameterError if workers are given to the local backend, which has threads instead."""
    if workers is not None:
        raise ParameterError(f"workers={workers!r} needs backend='ray'. Leave it out, or set n_jobs")
