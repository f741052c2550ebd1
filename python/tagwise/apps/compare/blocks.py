"""A comparison as text: a block per corpus, with the columns that fit the width. Figures are never truncated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len, chop_cells
from rich.console import Group, RenderableType
from rich.text import Text

from tagwise.base.terminal import plain, visible

#: Columns of words. They are aligned left and can be folded.
WORDS = ("learner", "loss", "features", "chosen")
#: Columns that move to the title of a block if all of its rows agree.
COMMON = ("sentences", "features")
#: Columns that distinguish rows, the most important first.
IDENTITY = ("learner", "features", "sentences", "loss")
#: Columns by priority. A published figure has the priority of its measure. Columns that are not listed come before
#: ``loss``.
RANKS = (
    *("learner", "features", "sentences", "F1", "accuracy", "chosen", "p", "seconds", "sequences"),
    *("non-zero features", "precision", "recall", "dev F1", "dev accuracy", "dev precision", "dev recall"),
    *("loss", "passes", "peak MiB", "CPU s"),
)
TEST = "p, against "
GAP = 2  # spaces between columns
MARGIN = 2  # of a block, to the left
FOLDED = 16  # width of a column of words if a score needs the space
NARROWEST = 8  # minimum width of a column of words


def rank(head: str) -> float:
    """Return the priority of a column. Smaller numbers come first.

    >>> sorted(["CPU s", "margin", "F1, paper", "F1", "p, against crf", "loss"], key=rank)
    ['F1', 'F1, paper', 'p, against crf', 'margin', 'loss', 'CPU s']
    """
    if head.startswith(TEST):
        return RANKS.index("p")
    name = head.removesuffix(", paper")
    place = RANKS.index(name) if name in RANKS else RANKS.index("loss") - 0.5
    return place + (0.25 if name != head else 0.0)


def folded(text: str, width: int) -> list[str]:
    """Wrap a text at spaces to at most `width` cells, breaking longer words.

    >>> folded("mira(k=10, cost=f1)", 11), folded("abcdef", 4)
    (['mira(k=10,', 'cost=f1)'], ['abcd', 'ef'])
    """
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(joined) <= width:
            lines[-1] = joined
        else:
            lines += chop_cells(word, width)
    return lines if lines[0] else lines[1:] or [""]


def wrapped_head(head: str, width: int) -> list[str]:
    """Wrap the head of a column to `width` cells or to its longest word.

    >>> wrapped_head("non-zero features", 6)
    ['non-zero', 'features']
    """
    head = "p" if head.startswith(TEST) else head
    return folded(head, max(width, *map(cell_len, head.split(" "))))


@dataclass
class TableBlock:
    """The rows of one corpus, without columns that are empty or have the same value in every row."""

    corpus: str
    head: list[str]
    body: list[list[str]]
    common: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, corpus: str, head: Sequence[str], body: Sequence[Sequence[str]]) -> TableBlock:
        values = {name: {row[head.index(name)] for row in body} for name in COMMON if name in head}
        shared = {name: min(found) for name, found in values.items() if len(found) == 1 < len(body)}
        common = [f"{v} {name}" if name == "sentences" else f"{name} {v}" for name, v in shared.items()]
        columns = [i for i, name in enumerate(head) if name not in shared and any(row[i] for row in body)]
        return cls(corpus, [head[i] for i in columns], [[row[i] for i in columns] for row in body], common)

    @property
    def title(self) -> Text:
        """Return the corpus and the values that all rows share."""
        return Text.assemble((self.corpus, "bold"), *(f", {text}" for text in self.common))

    def needed(self) -> set[str]:
        """Return the columns that are needed to distinguish all rows."""
        chosen = [name for name in ("learner",) if name in self.head] or self.head[:1]
        for name in IDENTITY:
            places = [self.head.index(n) for n in chosen]
            if len({tuple(row[i] for i in places) for row in self.body}) == len(self.body):
                break
            if name in self.head and name not in chosen:
                chosen.append(name)
        return set(chosen)


def widths(blocks: Sequence[TableBlock], available: int | None) -> dict[str, int]:
    """Return the width of each column over all blocks. Heads are wrapped if `available` is limited."""
    whole, out = _widths(blocks, broken=False), _widths(blocks, broken=True)
    return whole if available is None or all(total(b.head, whole) <= available for b in blocks) else out


def _widths(blocks: Sequence[TableBlock], broken: bool) -> dict[str, int]:
    out: dict[str, int] = {}
    for block in blocks:
        for name, cells in zip(block.head, zip(*block.body)):
            figures = max(map(cell_len, cells))
            head = max(map(cell_len, wrapped_head(name, figures if broken else cell_len(name))))
            out[name] = max(out.get(name, 0), figures, head)
    return out


def total(names: Sequence[str], width: Mapping[str, int]) -> int:
    """Return the total width of these columns."""
    return MARGIN + sum(width[n] for n in names) + GAP * max(len(names) - 1, 0)


def choose(blocks: Sequence[TableBlock], width: Mapping[str, int], available: int) -> set[str]:
    """Return the columns that fit: those that distinguish rows, then by rank until one does not fit every block.

    Columns of words are folded to make space for scores only.
    """
    short = {name: min(w, FOLDED) if name in WORDS else w for name, w in width.items()}
    chosen = set().union(*(block.needed() for block in blocks))
    for name in sorted(width, key=rank):
        if name in chosen:
            continue
        more = {*chosen, name}
        sizes = short if rank(name) <= RANKS.index("p") else width
        if any(total([n for n in block.head if n in more], sizes) > available for block in blocks):
            break
        chosen = more
    return chosen


def squeezed(names: Sequence[str], width: Mapping[str, int], available: int) -> dict[str, int]:
    """Return widths that fit, by shrinking columns of words, the widest first. Columns of figures keep their width."""
    out = {name: width[name] for name in names}
    while (over := total(names, out) - available) > 0:
        words = [n for n in names if n in WORDS and out[n] > NARROWEST]
        if not words:
            break
        widest = max(words, key=out.__getitem__)
        second = max((out[n] for n in words if n != widest), default=NARROWEST)
        out[widest] = max(out[widest] - over, min(second, out[widest] - 1), NARROWEST)
    return out


def aligned(text: str, name: str, width: int) -> str:
    """Align a line of a cell: words left, figures right."""
    space = " " * (width - cell_len(text))
    return text + space if name in WORDS else space + text


def block_lines(block: TableBlock, names: Sequence[str], width: Mapping[str, int]) -> list[Text]:
    """Return the lines of a block with these columns."""
    margin, gap = " " * MARGIN, " " * GAP

    def lines(cells: Sequence[list[str]], style: str = "", *, low: bool = False) -> list[Text]:
        height = max(map(len, cells))
        full = [[""] * (height - len(c)) + c if low else c + [""] * (height - len(c)) for c in cells]
        rows = (gap.join(aligned(part, n, width[n]) for part, n in zip(row, names)) for row in zip(*full))
        return [Text(f"{margin}{row}".rstrip(), style=style) for row in rows]

    out = lines([wrapped_head(name, width[name]) for name in names], "bold", low=True)
    out.append(Text(margin + "─" * (total(names, width) - MARGIN)))
    places = [block.head.index(name) for name in names]
    for row in block.body:
        out += lines([folded(row[i], width[n]) if n in WORDS else [row[i]] for i, n in zip(places, names)])
    return out


def comparison_blocks(
    head: Sequence[str],
    body: Sequence[Sequence[str]],
    width: int | None = None,
    title: str = "",
    caption: str = "",
) -> RenderableType:
    """Render a comparison in `width` characters, or with all columns if `width` is None.

    Columns that do not fit are omitted, those of the lowest priority first, and listed below the table.
    """
    body = [[visible(cell) for cell in row] for row in body]
    at = head.index("corpus")
    others = [i for i in range(len(head)) if i != at]
    found: dict[str, list[list[str]]] = {}
    for row in body:
        found.setdefault(row[at], []).append([row[i] for i in others])
    blocks = [TableBlock.of(corpus, [head[i] for i in others], rows) for corpus, rows in found.items()]
    sizes = widths(blocks, width)
    chosen = set(sizes) if width is None else choose(blocks, sizes, width)
    lines: list[RenderableType] = [plain(title, "italic")] if title else []
    for block in blocks:
        names = [name for name in block.head if name in chosen]
        fitted = sizes if width is None else squeezed(names, sizes, width)
        lines += [Text(""), block.title, *block_lines(block, names, fitted)]
    lines += [Text("")] if blocks else []
    below = [
        f"{name}: paired approximate randomisation over test sentences"
        for name in chosen
        if name.startswith(TEST)
    ]
    left = [name for name in sorted(sizes, key=rank) if name not in chosen]
    if left:
        below.append(f"omitted at this width: {', '.join(left)} (--wide shows them)")
    lines += [Text(visible(text, keep="\n"), style="dim") for text in (*below, caption) if text]
    return Group(*lines)
