"""Shared parts of `tagwise serve` and `tagwise annotate`: guards, limits, errors as JSON and the server.

Guards and limits are ASGI middleware around an application, guards outermost:
``Guards(Limited(app, RequestLimits()), bound=host, token=new_token())``.
"""

from __future__ import annotations

import importlib.util

from tagwise.base.exceptions import TagwiseError

#: Required packages of `tagwise[web]`.
PACKAGES = ("starlette", "uvicorn")


def need(command: str) -> None:
    """Raise an error if a package of `tagwise[web]` is missing. `command` is the one that needs it."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise TagwiseError(f"{command} needs {' and '.join(missing)}. Run pip install 'tagwise[web]'")


__all__ = ["PACKAGES", "need"]
