"""The command group, which turns errors, Ctrl-C and closed pipes into messages and exit codes."""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import re
import sys
from typing import Any

import rich_click as click
from click import exceptions
from click.exceptions import Abort, Exit
from rich.console import Console

from tagwise._core import __version__
from tagwise.base.exceptions import InternalError, TagwiseError
from tagwise.base.terminal import as_text, visible
from tagwise.cli.completion import suggest
from tagwise.cli.help import CONFIG, HELP, Command, Context, in_options
from tagwise.cli.options import option

# Success is 0. Code 2 is click's code for wrong usage. It also means unusable files, data or models. Code 1 is a
# failure of the machine (out of memory, full disk) or of tagwise itself.
EXIT_FAILED = 1
EXIT_REFUSED = 2
EXIT_INTERRUPTED = 130
EXIT_CLOSED_PIPE = 141

_DEBUG = "tagwise.debug"


def _remember_debug(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.find_root().meta[_DEBUG] = True


#: ``--debug``, an option of every command.
debug_option = option(
    "--debug",
    "Show the traceback of an error.",
    HELP,
    callback=_remember_debug,
    expose_value=False,
    is_eager=True,
)


def say(message: str) -> None:
    """Print a line to stderr, so that stdout holds data only. Control characters are made visible."""
    click.echo(visible(message, keep="\n"), err=True)


def show(result: Any, *, as_json: bool) -> None:
    """Print a result that has a table and a `to_dict`: as JSON, as a table on a terminal, or as plain text."""
    console = Console()
    if as_json:
        click.echo(json.dumps(result.to_dict(), ensure_ascii=False, indent=2))
    elif console.is_terminal:
        console.print(result)
    else:
        click.echo(as_text(result, console.width))


def fail(message: str) -> None:
    """Print an error message as one line."""
    say("error: " + " ".join(message.split()))


def _close_stdout() -> None:
    """Redirect stdout to the null device: the interpreter reports a closed pipe when it flushes at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)


class CommandEntry(Command):
    """Entry of a command in the list of commands. `App.load` imports the command itself."""

    def __init__(self, name: str, module: str, summary: str, panel: str) -> None:
        super().__init__(name=name, short_help=summary, panel=panel)
        self.module = module


class App(click.RichGroup):
    """A group that imports a command when it is used, and turns exceptions into a message and an exit code.

    ``--debug`` raises them instead.
    """

    context_class = Context

    def load(self, name: str) -> click.Command:
        """Import a command, which has the name of its module."""
        entry = self.commands[name]
        assert isinstance(entry, CommandEntry)
        module = f"tagwise.cli.{entry.module}"
        command: click.Command = getattr(importlib.import_module(module), entry.module)
        suggest(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the arguments, imported."""
        name, found, rest = super().resolve_command(ctx, args)
        return name, self.load(name) if name is not None and name in self.commands else found, rest

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which they were added."""
        return list(self.commands)

    def make_context(self, *args: Any, **settings: Any) -> click.Context:
        """Parse the arguments of the group itself."""
        try:
            return super().make_context(*args, **settings)
        except click.UsageError as error:
            raise _usage_error(error) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and translate its exceptions."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except click.ClickException as error:
            raise _usage_error(error) from None
        except (Exit, Abort):
            raise
        except BrokenPipeError:
            _close_stdout()
            ctx.exit(EXIT_CLOSED_PIPE)
        except KeyboardInterrupt:
            say("interrupted")
            ctx.exit(EXIT_INTERRUPTED)
        except Exception as error:
            if ctx.find_root().meta.get(_DEBUG):
                raise
            name = ctx.invoked_subcommand or ""
            command = self.load(name) if name in self.commands else self
            fail(in_options(_describe(error), command))
            ctx.exit(exit_code(error))


#: Raised by click 8.2 and later for a command without arguments, which shows its help.
_MENU: tuple[type[Exception], ...] = tuple(filter(None, [getattr(exceptions, "NoArgsIsHelpError", None)]))


#: Message of click about a value that is none of the names of an option.
_CHOICE = re.compile(r"(?<=: )('([^']*)') is not one of (.*)$")


def _usage_error(error: click.ClickException) -> click.ClickException | Exit:
    """Print a usage error as one line that names the help page, and return the exception that ends the command."""
    if isinstance(error, _MENU):
        return error
    message = error.format_message().rstrip(".")
    if choice := _CHOICE.search(message):
        from tagwise.base.parameters import meant  # imports NumPy

        message = (
            message[: choice.end(1)]
            + meant(choice[2], re.findall("'([^']*)'", choice[3]))
            + choice[0][len(choice[1]) :]
        )
    context = error.ctx if isinstance(error, click.UsageError) else None
    fail(message if context is None else f"{message}. See {context.command_path} -h")
    return Exit(EXIT_REFUSED)


#: System errors that are failures of the machine rather than of the input: full disk, no memory, I/O error.
_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE}


def exit_code(error: Exception) -> int:
    """Return the exit code of an exception."""
    if isinstance(error, (InternalError, MemoryError)):
        return EXIT_FAILED
    if isinstance(error, OSError):
        return EXIT_FAILED if error.errno in _MACHINE else EXIT_REFUSED
    return EXIT_REFUSED if isinstance(error, (TagwiseError, ValueError)) else EXIT_FAILED


def _describe(error: Exception) -> str:
    if isinstance(error, TagwiseError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, (OSError, ValueError)) and str(error):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory. Use fewer sentences or features, or train on shards: tagwise encode --help"
    return f"{type(error).__name__}: {error} (this is a bug in tagwise, add --debug for the traceback)"


@click.group(cls=App, context_settings={"help_option_names": ["-h", "--help"], "rich_help_config": CONFIG})
@click.version_option(__version__, prog_name="tagwise", message="%(prog)s %(version)s", panel=HELP)
@debug_option
def cli() -> None:
    """Train, apply and evaluate sequence labelling models.

    A corpus is a file (CoNLL columns, CoNLL-U, JSONL or plain text, also compressed), - for stdin, or the name of a
    bundled corpus such as ewt-pos or wnut17-ner:dev. A model is a file, or the name of a pretrained tagger such as
    en-pos. tagwise COMMAND --help shows the options of a command, with examples.

    \b
    Examples:
      tagwise train train.txt --dev dev.txt -o model.tagwise
      tagwise tag model.tagwise input.txt > tagged.txt
      tagwise eval model.tagwise test.txt
      echo "I love London !" | tagwise tag en-pos --format text
    """
