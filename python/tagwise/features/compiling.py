"""Compilation of templates, alone and followed by those of derived columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tagwise._core import Template
from tagwise.base.exceptions import TemplateError
from tagwise.base.parameters import meant
from tagwise.features.derived_columns import DerivedColumn
from tagwise.features.sets import quoted
from tagwise.features.word_classes import WordClasses


def with_suggestion(message: str, columns: Sequence[str]) -> str:
    """Add a suggestion for an unknown name to an error message about a template.

    >>> print(with_suggestion('line 1: no column "wrod"; the columns are word', ["word"]))
    line 1: no column "wrod" (did you mean 'word'?); the columns are word
    """
    place, name = re.match(r"((?:line \d+: )?)(\w*)", message).groups()  # type: ignore[union-attr]
    if message.startswith(f"{place}{name} takes no argument"):  # the name may not be a function at all
        try:
            Template(f"{quoted(columns[0])}[0].{name}", [columns[0]])
        except TemplateError as error:
            message = re.sub(r"^line \d+: ", lambda _: place, str(error))
    found = re.search(r'(?:unknown function|no column) "(\w+)"(?=; (.*))', message, re.DOTALL)
    if found is None:
        return message
    return message[: found.end()] + meant(found[1], re.findall(r"\w+", found[2])) + message[found.end() :]


def part_name(name: str) -> str:
    """Return the name of a part for the name of a sum."""
    return name.strip() if "\n" not in name.strip() else "template"


def derived_names(columns: Sequence[str], derived: Sequence[DerivedColumn]) -> list[str]:
    """Return the names of the derived columns. Raise a TemplateError if a name is not unique."""
    names: list[str] = []
    for column in derived:
        if column.name in names or column.name in columns:
            raise TemplateError(
                f"several columns are named {column.name!r}, in the corpus or as gazetteers, regular expressions and "
                f"word classes. Give {column!r} another name."
            )
        names.append(column.name)
    return names


def compiled_template(
    text: str, columns: Sequence[str], token: str, derived: Sequence[DerivedColumn], lists: Any = None
) -> Template:
    """Compile a template followed by the templates of derived columns. Word classes are looked up natively."""
    full = terminated(text) + "".join(column.template() for column in derived) if derived else text
    names = [column.name for column in of_sentences(derived)]
    at = list(columns).index(token) if derived else 0
    classes = [(column.name, at, column.table) for column in derived if isinstance(column, WordClasses)]
    return Template(full, [*columns, *names], lists, classes)


def of_sentences(derived: Sequence[DerivedColumn]) -> list[DerivedColumn]:
    """Return the derived columns whose values are computed for each sentence, and not natively."""
    return [column for column in derived if not isinstance(column, WordClasses)]


def terminated(text: str) -> str:
    """Terminate a template so that its `pad:` does not apply to a template appended to it."""
    if not text.strip():
        return ""
    return text.rstrip("\n") + "\n" + ("absent:\n" if re.search(r"\bpad\b[^:\n]*:", text) else "")
