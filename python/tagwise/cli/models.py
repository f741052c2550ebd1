"""Models on the command line: a file or a pretrained tagger, and the functions that a file names."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import Any

import rich_click as click

from tagwise.base.exceptions import ModelFileError, ParameterError, file_error
from tagwise.base.imports import function_at
from tagwise.base.parameters import meant
from tagwise.cli.app import say
from tagwise.cli.files import is_model
from tagwise.cli.help import MACHINE, MODEL, in_options
from tagwise.cli.options import option, together

#: Devices of a CRF: the names in `learners.backends`, which takes long to import for a shell completion.
DEVICES = ("cpu", "cuda")


def _import_functions(
    _context: click.Context, _parameter: click.Parameter, paths: tuple[str, ...]
) -> dict[str, Any]:
    """Import functions, and return them by import path and by name. Modules may be in the working directory."""
    out: dict[str, Any] = {}
    if paths and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    for path in paths:
        module, _, name = path.partition(":")
        if not name or module.endswith(".py"):
            example = (
                f"{os.path.basename(module)[:-3]}:{name or 'shapes'}"
                if module.endswith(".py")
                else "mymodule:shapes"
            )
            raise click.BadParameter(
                f"{path!r}: expected module:name, such as {example}", param_hint="--functions"
            )
        try:
            out[path] = out[name] = function_at(path, "the function")
        except ParameterError as error:
            raise click.BadParameter(str(error), param_hint="--functions") from error
    return out


def need_probabilities(tagger: Any, option: str) -> None:
    """Reject an option that needs probabilities if the scores of the model are not."""
    if not tagger.probabilistic:
        raise click.UsageError(
            f"{option}: the scores of {tagger.name} are not probabilities. Train crf, hmm or memm, or use "
            "tagwise tag --nbest 2 for scores"
        )


#: Options for functions that a model names.
function_options = together(
    option(
        "--functions MOD:NAME",
        "Import a function that MODEL names, such as a feature function or a kernel. Repeatable.",
        MODEL,
        multiple=True,
        callback=_import_functions,
    ),
    option(
        "--trust",
        "Import the modules that MODEL names. This runs their code, so trust the author of the file.",
        MODEL,
    ),
)


def _check_device(context: click.Context, _: click.Parameter, name: str | None) -> str | None:
    """Reject a device that the machine lacks, before anything is read."""
    from tagwise.learners.backends import find

    try:
        if name is not None:
            find(name).check()
    except ParameterError as error:
        message = in_options(str(error).removeprefix("device='cuda': "), context.command)
        raise click.BadParameter(message, param_hint="--device") from error
    return name


#: ``--device``.
device_option = option(
    "--device DEVICE",
    "Device of a CRF: cpu, or cuda for a GPU (needs pip install 'tagwise[torch]').",
    MACHINE,
    type=click.Choice(DEVICES),
    show_default="cpu",
    callback=_check_device,
)


def is_pretrained(name: str) -> bool:
    """Return whether a name is that of a pretrained tagger. A file of the same name has precedence."""
    from tagwise.apps.pretrained import TAGGERS

    return name in TAGGERS and not os.path.exists(name)


def names_model(name: str) -> bool:
    """Return whether a name is that of a model file or of a pretrained tagger."""
    return is_pretrained(name) or is_model(name)


def load_pretrained(name: str) -> Any:
    """Return a pretrained tagger. A message is printed if it is trained now."""
    from tagwise.apps.pretrained import info_of, pretrained

    info = info_of(name)
    path = info.path()
    if path is None or path.exists():
        return pretrained(name, verbose=1)
    say(f"training {name} on {info.corpus} at first use. The model is kept in {path.parent}")
    begin = time.perf_counter()
    tagger = pretrained(name, verbose=1)
    say(f"trained {name} in {time.perf_counter() - begin:.1f} s")
    return tagger


def load_model(name: str, functions: Mapping[str, Any] | None = None, trust: bool = False) -> Any:
    """Load a model file or a pretrained tagger."""
    import tagwise as tw
    from tagwise.apps.pretrained import TAGGERS

    if is_pretrained(name):
        return load_pretrained(name)
    try:
        return tw.load(name, functions=functions, trust=trust)
    except FileNotFoundError as error:
        if hint := meant(name, TAGGERS):
            message = f"no model file or pretrained tagger is named {name!r}{hint}"
            raise file_error(ModelFileError, message, name, error.errno or 2) from error
        raise
