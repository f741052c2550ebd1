"""Models as they are named on the command line: a file or a ready tagger, and the functions that a file names."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import rich_click as click

from tagwise.base.exceptions import ModelFileError, ParameterError, refusal
from tagwise.base.imports import function_at
from tagwise.base.parameters import meant
from tagwise.cli.app import say
from tagwise.cli.files import is_model
from tagwise.cli.help import MACHINE, MODEL, in_options

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
#: Where a CRF can compute: the engines of `learners.backends`, which a shell that completes a word need not import.
DEVICES = ("cpu", "cuda")


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


def need_probabilities(tagger: Any, option: str) -> None:
    """Refuse an option that needs probabilities for a model whose scores are not."""
    if not tagger.probabilistic:
        raise click.UsageError(
            f"{option}: the scores of {tagger.name} are not probabilities; use a model of crf, hmm or memm, or "
            "tag --nbest 2 for scores"
        )


def function_options(command: Decorated) -> Decorated:
    """Add the options for functions that a model names."""
    for option in (
        click.option(
            "--trust",
            is_flag=True,
            help="Import the modules that MODEL names. This runs their code, so trust the author of the file.",
            panel=MODEL,
        ),
        click.option(
            "--functions",
            metavar="MOD:NAME",
            multiple=True,
            callback=_imported,
            help="Import a function that MODEL names, such as a feature function or a kernel. Repeatable.",
            panel=MODEL,
        ),
    ):
        command = option(command)
    return command


def _usable(context: click.Context, _: click.Parameter, name: str | None) -> str | None:
    """Reject a device that the machine lacks, before anything is read."""
    from tagwise.learners.backends import find

    try:
        if name is not None:
            find(name).check()
    except ParameterError as error:
        message = in_options(str(error).removeprefix("device='cuda': "), context.command)
        raise click.BadParameter(message, param_hint="--device") from error
    return name


def device_option(command: Decorated) -> Decorated:
    """Add ``--device``."""
    return click.option(
        "--device",
        type=click.Choice(DEVICES),
        metavar="DEVICE",
        callback=_usable,
        show_default="cpu",
        help="Device of a CRF: cpu, or cuda for a GPU (needs pip install 'tagwise[torch]').",
        panel=MACHINE,
    )(command)


def is_ready(name: str) -> bool:
    """Whether a name stands for a ready tagger; a file of that name goes before it."""
    from tagwise.apps.pretrained import TAGGERS

    return name in TAGGERS and not os.path.exists(name)


def names_model(name: str) -> bool:
    """Whether a name stands for a model: a file that begins as models do, or a ready tagger."""
    return is_ready(name) or is_model(name)


def ready(name: str) -> Any:
    """A ready tagger; at first use a line says that it is trained now, and from what."""
    from tagwise.apps.pretrained import info_of, pretrained

    info = info_of(name)
    path = info.path()
    if path is not None and not path.exists():
        say(f"{name} is trained at first use, from {info.corpus}, and kept in {path.parent}")
    return pretrained(name, verbose=1)


def load_model(name: str, functions: Mapping[str, Any] | None = None, trust: bool = False) -> Any:
    """The tagger of a model file, or a ready one by its name."""
    import tagwise as tw
    from tagwise.apps.pretrained import TAGGERS

    if is_ready(name):
        return ready(name)
    try:
        return tw.load(name, functions=functions, trust=trust)
    except FileNotFoundError as error:
        if hint := meant(name, TAGGERS):
            raise refusal(ModelFileError, f"{error}{hint}", name, error.errno or 2) from error
        raise
