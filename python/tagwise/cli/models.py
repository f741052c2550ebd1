"""Models as they are named on the command line: a file, and the functions that stand for those it names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import rich_click as click

from tagwise.errors import ParameterError
from tagwise.importing import function_at

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def _imported(_: click.Context, __: click.Parameter, paths: tuple[str, ...]) -> dict[str, Any]:
    """The functions that a user names, by import path and by name."""
    out: dict[str, Any] = {}
    for path in paths:
        name = path.partition(":")[2]
        if not name:
            raise click.BadParameter(f"{path!r}: expected module:name", param_hint="--functions")
        try:
            out[path] = out[name] = function_at(path, "the function")
        except ParameterError as error:
            raise click.BadParameter(str(error), param_hint="--functions") from error
    return out


def function_options(command: Decorated) -> Decorated:
    """Let a command be handed the functions that a model names."""
    for option in (
        click.option(
            "--trust",
            is_flag=True,
            help="Import the modules that MODEL names, which runs their code: as safe as its author.",
        ),
        click.option(
            "--functions",
            metavar="MODULE:NAME",
            multiple=True,
            callback=_imported,
            help="A function that MODEL names (of features, a kernel), to be imported; may be repeated.",
        ),
    ):
        command = option(command)
    return command


__all__ = ["function_options"]
