"""Options of commands in a short notation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import rich_click as click
from click import get_current_context

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

#: Type of an option that counts something.
COUNT = click.IntRange(min=1)

#: Prefix of the keys under which a context holds values of options.
_HELD = "tagwise.held."


def hold(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Keep the value of an option in the context, as the callback of the option."""
    context.meta[_HELD + str(parameter.name)] = value
    return value


def held(name: str) -> Any:
    """Return the value of an option that the context of the running command holds, or None."""
    context = get_current_context(silent=True)
    return None if context is None else context.meta.get(_HELD + name)


def option(
    usage: str, help: str, panel: str, *, name: str | None = None, hold_by: Any = None, **settings: Any
) -> Callable[[Decorated], Decorated]:
    """Return the decorator that adds an option to a command. Help pages show its default.

    Args:
        usage: Names of the option and its metavar, as in "-o --output FILE". An option without a metavar is a flag.
        help: Help of the option.
        panel: Title of its group.
        name: Parameter of the command, if it is not named after the option.
        hold_by: Callback that keeps the value in the context, such as `hold`. The command does not get the value then.
        settings: Other settings of `click.option`.
    """
    *names, metavar = usage.split()
    if metavar.startswith("-"):
        names.append(metavar)
        settings["is_flag"] = True
    else:
        settings = {"metavar": metavar, "show_default": "default" in settings, **settings}
    if hold_by is not None:
        settings |= {"callback": hold_by, "expose_value": False}
    return click.option(*names, *filter(None, [name]), help=help, panel=panel, **settings)


def together(*options: Callable[[Decorated], Decorated]) -> Callable[[Decorated], Decorated]:
    """Return the decorator that adds several options, in the order of the help page."""

    def add(command: Decorated) -> Decorated:
        for one in reversed(options):
            command = one(command)
        return command

    return add


def require(needed: str, met: bool, **options: Any) -> None:
    """Reject options whose requirement is not met. `needed` describes it in the message."""
    for name in (name for name, value in options.items() if value not in (None, False) and not met):
        option = f"--{name.replace('_', '-')}"
        raise click.UsageError(f"{option} requires {needed}. Add it, or omit {option}")
