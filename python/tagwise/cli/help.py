"""Help pages: options in groups and aligned columns, readable on a terminal of 80 columns."""

from __future__ import annotations

import re
import shlex
from typing import Any

import rich_click as click
from click import get_current_context
from rich.table import Table
from rich_click.rich_panel import RichCommandPanel, RichOptionPanel

# Titles of groups that several commands have.
DATA = "Data"
OUTPUT = "Output"
MODEL = "Model"
LEARNER = "Learner"
RESUMING = "Stopping and resuming"
LARGE = "Large corpora"
MACHINE = "Machine"
HELP = "Help"  # also the group of --help itself

COMMAND_LINE = "tagwise.command_line"  # key of the command line in the context

#: Settings of rich-click for every help page. "[default: ...]" and "[required]" follow the help of an option.
CONFIG: dict[str, Any] = {
    "theme": "slim",
    "options_table_column_types": ["opt_all_metavar", "help"],
    "options_table_help_sections": ["help", "required", "default"],
    "options_panel_title": HELP,
    "show_arguments": False,
    "commands_before_options": True,
    "text_paragraph_linebreaks": "\n\n",
    "padding_helptext_first_line": (0, 0, 1, 0),
    "delimiter_comma": ", ",
    "append_metavars_help_string": "{}",
    "default_string": r"\[default: {}]",
    "required_long_string": r"\[required]",
}


class OptionGroup(RichOptionPanel):
    """A group of options whose help begins at the same column in every group of a command."""

    def get_table(self, command: Any, ctx: Any, formatter: Any) -> Table:
        """Return one row per option, the first column as wide as the longest option of the command."""
        table = super().get_table(command, ctx, formatter)
        records = [option.get_help_record(ctx) for option in command.get_params(ctx)]
        table.columns[0].width = max(len(record[0]) for record in records if record is not None)
        return table


class CommandGroup(RichCommandPanel):
    """A group of commands whose help begins at the same column in every group."""

    def get_table(self, command: Any, ctx: Any, formatter: Any) -> Table:
        """Return one row per command, the first column as wide as the longest name of all."""
        table = super().get_table(command, ctx, formatter)
        table.columns[0].width = max(map(len, command.list_commands(ctx)))
        return table


class HelpFormatter(click.RichHelpFormatter):
    """The formatter of every help page."""

    option_panel_class = OptionGroup
    command_panel_class = CommandGroup


class Context(click.RichContext):
    """A context whose help pages are written by `HelpFormatter`."""

    formatter_class = HelpFormatter


class Command(click.RichCommand):
    """A command of ``tagwise``."""

    context_class = Context

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and keep the command line for `command_line`."""
        ctx.meta[COMMAND_LINE] = shlex.join([*ctx.command_path.split(" "), *args])
        return super().parse_args(ctx, args)


def command_line() -> str:
    """Return the command line of the running command, quoted for a shell."""
    line: str = get_current_context().meta[COMMAND_LINE]
    return line


#: A call, which is left as it is, or a keyword argument with or without its value. Paths and quoted text do not match.
_VALUE = r"'[^']*'|\"[^\"]*\"|\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|\.\.\.|[^\s,;:()]*[^\s,;:().]"
#: Options that are not named after their parameter.
OPTION_NAMES = {"random_state": "seed"}
_ARGUMENT = re.compile(
    rf"[\w.]+\([^()]*\)|(?<![\w.'\"/-])(?<!--set )(?P<name>[a-z]\w*)\b(?:=(?P<value>{_VALUE}))?"
)


def option_of(parameter: str) -> str:
    """Return the option of a parameter of a learner."""
    return f"--{OPTION_NAMES.get(parameter, parameter).replace('_', '-')}"


def _import_path(name: str) -> str:
    """Return the import path of a function, in which MODULE stands for an unknown module."""
    return name if ":" in name else f"MODULE:{name}"


def in_options(message: str, command: click.Command) -> str:
    """Return a message of the library with options of `command` in place of Python arguments.

    Parameters of learners become ``--set`` if the command has that option. Other words stay.

    >>> options = [click.Option(["--device"]), click.Option(["--columns"], metavar="NAMES"), click.Option(["--set"])]
    >>> train = click.Command("train", params=options)
    >>> in_options("use device='cpu', or optimizer='lbfgs'. Name the columns with columns=(...).", train)
    'use --device cpu, or --set optimizer=lbfgs. Name the columns with --columns NAMES.'
    """
    from tagwise.base.parameters import parameters_of
    from tagwise.estimators import LEARNERS

    flags = {name: option for option in command.params for name in option.opts if name.startswith("--")}
    parameters = {name for kind in LEARNERS.values() for name in parameters_of(kind)}

    def spelled(found: re.Match[str]) -> str:
        name, value = found["name"] or "", found["value"]
        flag = option_of(name)
        option = flags.get(flag)
        if value is None:
            return flag if option is not None and "_" in name else found[0]
        mapping = re.match(r"\{'([^']*)'", value)  # of names to functions
        value = re.sub(r"[][()'\" ]", "", value) if mapping is None else _import_path(mapping[1])
        if option is None:
            return f"--set {name}={value}" if "--set" in flags and name in parameters else found[0]
        if getattr(option, "is_flag", False):
            return flag
        return f"{flag} {option.metavar or name.upper() if value == '...' else value}"

    return _ARGUMENT.sub(spelled, message)
