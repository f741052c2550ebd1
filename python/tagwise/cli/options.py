"""Options of commands in a short notation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import rich_click as click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

#: Type of an option that counts something.
COUNT = click.IntRange(min=1)


def option(
    usage: str, help: str, panel: str, *, name: str | None = None, **settings: Any
) -> Callable[[Decorated], Decorated]:
    """Return the decorator that adds an option to a command. Help pages show its default.

    Args:
        usage: Names of the option and its metavar, as in "-o --output FILE". An option without a metavar is a flag.
        help: Help of the option.
        panel: Title of its group.
        name: Parameter of the command, if it is not named after the option.
        settings: Other settings of `click.option`.
    """
    *names, metavar = usage.split()
    if metavar.startswith("-"):
        names.append(metavar)
        settings["is_flag"] = True
    else:
        settings = {"metavar": metavar, "show_default": "default" in settings, **settings}
    return click.option(*names, *filter(None, [name]), help=help, panel=panel, **settings)


def together(*options: Callable[[Decorated], Decorated]) -> Callable[[Decorated], Decorated]:
    """Return the decorator that adds several options, in the order of the help page."""

    def add(command: Decorated) -> Decorated:
        for one in reversed(options):
            command = one(command)
        return command

    return add
