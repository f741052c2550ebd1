"""The command group: how errors, Ctrl-C and closed pipes become messages and exit codes."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import rich_click as click
from click import exceptions
from click.exceptions import Abort, Exit

from tagwise._core import __version__
from tagwise.base.exceptions import InternalError, TagwiseError
from tagwise.base.terminal import visible

# 0 is success. 2: what was given cannot be used, whether options, files, data or models; click's own code for wrong
# usage. 1: nothing is wrong with it, but the machine (memory, a full disk) or tagwise itself failed.
EXIT_FAILED = 1
EXIT_REFUSED = 2
EXIT_INTERRUPTED = 130
EXIT_CLOSED_PIPE = 141

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_DEBUG = "tagwise.debug"


def _remember_debug(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.find_root().meta[_DEBUG] = True


def debug_option(command: Decorated) -> Decorated:
    """Let a command take ``--debug``."""
    option = click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_remember_debug,
        help="Show the traceback of an error.",
    )
    return option(command)


def say(message: str) -> None:
    """A line for the person at the terminal: stderr, so that stdout stays data. Commands to it are made visible."""
    click.echo(visible(message, keep="\n"), err=True)


def fail(message: str) -> None:
    """The one line an error is told in, however many it was written in."""
    say("error: " + " ".join(message.split()))


def _close_stdout() -> None:
    """Give stdout somewhere to flush to: the interpreter complains about a closed pipe at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)


class App(click.RichGroup):
    """A group whose commands end in a message and a code; in a traceback only with ``--debug``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of work, not of the alphabet."""
        return list(self.commands)

    def make_context(self, *args: Any, **settings: Any) -> click.Context:
        """Read the group's own arguments."""
        try:
            return super().make_context(*args, **settings)
        except click.UsageError as error:
            raise _refused(error) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except click.ClickException as error:
            raise _refused(error) from None
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
            fail(_in_words(error))
            ctx.exit(exit_code(error))


#: A command without arguments shows its help, which clicks from 8.2 on raise as an error.
_MENU: tuple[type[Exception], ...] = tuple(filter(None, [getattr(exceptions, "NoArgsIsHelpError", None)]))


def _refused(error: click.ClickException) -> click.ClickException | Exit:
    """The end of a command that was called wrongly: one line, with the command whose help says more."""
    if isinstance(error, _MENU):
        return error
    message = error.format_message().rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    fail(message if context is None else f"{message}; see {context.command_path} -h")
    return Exit(EXIT_REFUSED)


#: What the system says where nothing is wrong with what was asked: no room, no memory, a disk that fails.
_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE}


def exit_code(error: Exception) -> int:
    """Whether an error is of what was given or of who was to work on it."""
    if isinstance(error, (InternalError, MemoryError)):
        return EXIT_FAILED
    if isinstance(error, OSError):
        return EXIT_FAILED if error.errno in _MACHINE else EXIT_REFUSED
    return EXIT_REFUSED if isinstance(error, (TagwiseError, ValueError)) else EXIT_FAILED


def _in_words(error: Exception) -> str:
    if isinstance(error, TagwiseError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, (OSError, ValueError)) and str(error):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory; train on fewer sentences, or raise min_count"
    return f"{type(error).__name__}: {error} (this is a defect of tagwise; --debug shows where)"


@click.group(cls=App, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tagwise", message="%(prog)s %(version)s")
@debug_option
def cli() -> None:
    """Label sequences: train a tagger, tag with it, measure it.

    Corpora are files (CoNLL columns, CoNLL-U, JSONL, plain text; .gz too), - for stdin, or known by name:
    ewt-pos, wnut17-ner:dev.

    \b
    Examples:
      tagwise train train.txt --dev dev.txt -o model.tagwise
      tagwise tag model.tagwise input.txt > tagged.txt
      tagwise eval model.tagwise test.txt
      tagwise compare
    """
