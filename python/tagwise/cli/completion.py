"""Shell completion of files and of the names of corpora, taggers, learners and features."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable
from typing import Any

import rich_click as click
from click.shell_completion import CompletionItem
from click.types import StringParamType

NameSource = Callable[[], Iterable[str]]


def _corpora() -> list[str]:
    from tagwise.cli.files import PARTS
    from tagwise.corpus.bundled import list_corpora

    return [
        name for info in list_corpora() for name in (info.name, *(f"{info.name}:{part}" for part in PARTS))
    ]


def _corpus_names() -> list[str]:
    from tagwise.corpus.bundled import list_corpora

    return [info.name for info in list_corpora()]


def _taggers() -> list[str]:
    from tagwise.apps.pretrained import TAGGERS

    return list(TAGGERS)


def _learners() -> list[str]:
    from tagwise.apps.compare import learner_names

    return learner_names()


def _sets() -> list[str]:
    from tagwise.features.sets import SETS

    return list(SETS)


def _losses() -> list[str]:
    import tagwise._core as _core

    return list(_core.LOSSES)


def _none() -> list[str]:
    return []


class Suggested(StringParamType):
    """A text to complete from known names, and from files if `paths` is "file", or folders if it is "dir"."""

    def __init__(self, names: NameSource, paths: str = "") -> None:
        self.names, self.paths = names, paths

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the matching names, or delegate to the file completion of the shell, which descends into folders."""
        names = [name for name in self.names() if name.startswith(incomplete)]
        paths = (
            sorted(glob.glob(glob.escape(incomplete) + "*")) if self.paths and (names and incomplete) else []
        )
        if self.paths and not paths and (not names or not incomplete):
            return [CompletionItem(incomplete, type=self.paths)]
        return [CompletionItem(name) for name in [*names, *paths]]


#: Completion by the metavar of a parameter.
METAVARS: dict[str, tuple[NameSource, str]] = {
    "TRAIN": (_corpora, "file"),
    "DEV": (_corpora, "file"),
    "[INPUT]": (_corpora, "file"),
    "[PREDICTED|TEST]": (_corpora, "file"),
    "FILE": (_corpora, "file"),
    "IN": (_corpora, "file"),
    "[OUT]": (_none, "file"),
    "DIR": (_none, "dir"),
    "MODEL": (_taggers, "file"),
    "GOLD|MODEL": (lambda: [*_taggers(), *_corpora()], "file"),
    "[NAME]...": (_taggers, ""),
    "SET": (_sets, "file"),
}
#: Completion by the name of a parameter. It has precedence over the metavar.
NAMES: dict[str, tuple[NameSource, str]] = {
    "learner": (_learners, ""),
    "learners": (_learners, ""),
    "loss": (_losses, ""),
    "losses": (_losses, ""),
    "names": (_corpus_names, ""),
    "output": (_none, "file"),
    "outputs": (_none, "file"),
    "report": (_none, "file"),
    "plot": (_none, "file"),
}


def suggest(command: click.Command) -> None:
    """Add shell completion to the parameters of a command."""
    for parameter in command.params:
        metavar: Any = parameter.metavar
        found = METAVARS.get(metavar) if metavar == "[NAME]..." else None
        found = found or NAMES.get(parameter.name or "") or METAVARS.get(metavar)
        if found is not None and type(parameter.type) is StringParamType:
            parameter.type = Suggested(*found)
