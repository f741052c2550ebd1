"""Text for terminals: tables, and visible forms of control characters."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.columns import Columns
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

#: Control characters, and characters that change the direction of a line: C0, DEL, C1, directional marks, embeddings,
#: overrides and isolates, line and paragraph separators, lone surrogates. Joiners are part of words and stay.
_COMMANDS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def visible(text: str, keep: str = "") -> str:
    """Return a text from outside with control characters replaced by their JSON escapes.

    `keep` has characters to leave unchanged, such as the line ends of a message.

    >>> print(visible("a\x1b[2Jb"))
    a\\u001b[2Jb
    """
    return _COMMANDS.sub(lambda found: found[0] if found[0] in keep else f"\\u{ord(found[0]):04x}", text)


def brief(text: str, width: int = 60) -> str:
    """Return a text from outside for a one-line representation: without control characters and cut to a width.

    >>> brief("one\\ntwo"), brief("a long sentence", 10)
    ('one\\\\u000atwo', 'a long ...')
    """
    shown = visible(text)
    return shown if len(shown) <= width else f"{shown[: width - 3]}..."


def plain(text: str, style: str = "") -> Text:
    """Return a text from outside for a table, with visible control characters and without markup."""
    return Text(visible(text), style=style)


def table(
    head: Sequence[str], body: Sequence[Sequence[str]], *, title: str = "", caption: str = "", left: int = 1
) -> Table:
    """Return a plain table. The first `left` columns have words, the others figures."""
    out = Table(box=box.SIMPLE_HEAD, title_justify="left", caption_justify="left")
    out.title = Text(visible(title, keep="\n"), style="table.title") if title else None
    out.caption = Text(visible(caption, keep="\n"), style="table.caption") if caption else None
    for index, name in enumerate(head):
        out.add_column(plain(name), justify="left" if index < left else "right", no_wrap=True)
    for cells in body:
        out.add_row(*map(plain, cells))
    return out


def as_text(renderable: Any, width: int = 160) -> str:
    """Render an object as text without colours."""
    text = io.StringIO()
    Console(file=text, width=width, color_system=None).print(renderable)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def percent(value: float | None) -> str:
    """Format a share as a percentage with two digits, or return an empty string for None."""
    return "" if value is None else f"{100 * value:.2f}"


def pair_table(pairs: Sequence[tuple[str, str]], *, title: str = "", width: int = 0) -> Table:
    """Return a table of names and values, one per line. Names are padded to `width`."""
    out = Table(title=title or None, box=None, show_header=False, title_justify="left", padding=(0, 2, 0, 0))
    out.add_column(style="bold", no_wrap=True, min_width=width or None)
    out.add_column(overflow="fold")
    for name, value in pairs:
        out.add_row(plain(name), plain(value))
    return out


def parameter_table(learner: str, params: Iterable[Any]) -> Table:
    """Return a table of the parameters of a learner."""
    out = Table(title=learner, box=box.SIMPLE_HEAD, title_justify="left")
    for name in ("parameter", "default", "values", "meaning"):
        out.add_column(name, no_wrap=name == "parameter")
    for param in params:
        out.add_row(
            *(plain(str(text)) for text in (param.name, param.default, param.domain.describe(), param.help))
        )
    return out


def explanation_table(labels: Mapping[str, Sequence[tuple[str, float]]]) -> Table:
    """Return a table of the strongest attributes of each label."""
    out = Table(box=box.SIMPLE_HEAD, title="strongest features", title_justify="left")
    out.add_column("label", style="bold", no_wrap=True)
    out.add_column("weight", justify="right", no_wrap=True)
    out.add_column("attribute", overflow="fold")
    for label, found in labels.items():
        for index, (attribute, weight) in enumerate(found):
            last = index + 1 == len(found)
            out.add_row("" if index else plain(label), f"{weight:+.4f}", plain(attribute), end_section=last)
    return out


def explanation_columns(labels: Mapping[str, Sequence[tuple[str, float]]]) -> Group:
    """Return the strongest attributes of each label, with as many labels side by side as fit the width."""
    blocks = []
    for label, found in labels.items():
        block = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        block.add_column("weight", justify="right", no_wrap=True)
        block.add_column(plain(label), overflow="fold")
        for attribute, weight in found:
            block.add_row(f"{weight:+.4f}", plain(attribute))
        blocks.append(block)
    return Group(Text("strongest features", style="table.title"), Columns(blocks, padding=(0, 2, 0, 0)))


def vote_table(rows: Sequence[tuple[str, str, str, str]]) -> Table:
    """Return a table of the contributions of features to a decision, strongest first."""
    out = Table(box=box.SIMPLE_HEAD)
    out.add_column("adds", justify="right", no_wrap=True)
    out.add_column("token", overflow="fold")
    out.add_column("feature", overflow="fold")
    out.add_column("gives either", no_wrap=True)
    for cells in rows:
        out.add_row(*map(plain, cells))
    return out


def transition_table(transitions: Sequence[tuple[str, str, float]]) -> Table:
    """Return a table of the strongest transitions."""
    out = Table(box=box.SIMPLE_HEAD, title="strongest transitions", title_justify="left")
    for name in ("from", "to"):
        out.add_column(name, no_wrap=True)
    out.add_column("weight", justify="right")
    for before, after, weight in transitions:
        out.add_row(plain(before), plain(after), f"{weight:+.4f}")
    return out
