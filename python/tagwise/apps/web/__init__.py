"""What `tagwise serve` and `tagwise annotate` share: guards, limits, errors as JSON, a server that ends well.

`guards`, `limits` and `problems` are plain ASGI and need no package; `running` needs uvicorn. They stand around an
application in this order: ``Guards(Limited(app, Limits()), bound=host, token=new_token())``.
"""

from __future__ import annotations

import importlib.util

from tagwise.base.exceptions import TagwiseError

#: Packages of `tagwise[web]` without which no page is shown; a server of models does without the first.
PACKAGES = ("starlette", "uvicorn")


def need(what: str, packages: tuple[str, ...] = PACKAGES) -> None:
    """Refuse to go on where a package of `tagwise[web]` is missing; `what` is the command that needs it."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise TagwiseError(
            f"{what} needs {' and '.join(missing)}, not installed here. Install: pip install 'tagwise[web]'"
        )


__all__ = ["PACKAGES", "need"]
