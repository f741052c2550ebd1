"""Ray clusters on the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rich_click as click

from tagwise.base.extensions import backends
from tagwise.cli.options import COUNT, Decorated, option, require, together


def cluster_options(
    help: str, panel: str, default: str | None = None, *, workers: bool = True
) -> Callable[[Decorated], Decorated]:
    """Return ``--backend``, with its own help, ``--address`` and ``--workers`` for a command."""
    backend = option(
        "--backend BACKEND",
        f"{help} Results are the same.",
        panel,
        type=click.Choice(backends()),
        default=default,
        show_default="local",
    )
    address = option(
        "--address HOST:PORT", "Address of the Ray cluster, or auto for the one on this machine.", panel
    )
    number = option(
        "--workers N", "Number of workers on the Ray cluster.", panel, type=COUNT, show_default="one per CPU"
    )
    return together(backend, address, *([number] if workers else []))


def connect(backend: str | None, address: str | None, **options: Any) -> None:
    """Connect to the cluster if the backend is ``ray``. Otherwise, reject the other options of a cluster."""
    if backend == "ray":
        from tagwise.ray.pool import connected

        connected(address)
    else:
        require("--backend ray", False, address=address, **options)
