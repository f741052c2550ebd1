"""A comparison for people to read: a block a corpus, as many columns as the width holds, every figure whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len, chop_cells
from rich.console import Group, RenderableType
from rich.text import Text

from tagwise.base.terminal import plain, visible

#: Columns of words: they stand left and may be folded where figures leave no room.
WORDS = ("learner", "loss", "features", "chosen")
#: What stands above a block where all of its rows agree.
COMMON = ("sentences", "features")
#: What tells rows apart, the most telling first.
IDENTITY = ("learner", "features", "sentences", "loss")
#: Columns in the order in which they are given room. A paper's figure goes with its measure; a column that is not
#: named here comes before ``loss``.
RANKS = (
    *("learner", "features", "sentences", "F1", "accuracy", "chosen", "p", "seconds", "sequences"),
    *("non-zero features", "precision", "recall", "dev F1", "dev accuracy"),
    *("loss", "passes", "peak MiB", "CPU s"),
)
TEST = "p, against "
GAP = 2  # spaces between columns
MARGIN = 2  # of a block, to the left
FOLDED = 16  # cells of a column of words, where a score needs the room
NARROWEST = 8  # that a column of words may become


def rank(head: str) -> float:
    """The place of a column in the order in which columns are given room; less is earlier.

    >>> sorted(["CPU s", "margin", "F1, paper", "F1", "p, against crf", "loss"], key=rank)
    ['F1', 'F1, paper', 'p, against crf', 'margin', 'loss', 'CPU s']
    """
    if head.startswith(TEST):
        return RANKS.index("p")
    name = head.removesuffix(", paper")
    place = RANKS.index(name) if name in RANKS else RANKS.index("loss") - 0.5
    return place + (0.25 if name != head else 0.0)


def folded(text: str, width: int) -> list[str]:
    """A text in lines of at most `width` cells, broken at spaces where they allow it.

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


def shown_head(head: str, width: int) -> list[str]:
    """A head in lines that are no wider than `width` or its longest word.

    >>> shown_head("non-zero features", 6)
    ['non-zero', 'features']
    """
    head = "p" if head.startswith(TEST) else head
    return folded(head, max(width, *map(cell_len, head.split(" "))))


@dataclass
class TableBlock:
    """The rows of one corpus: head and body without the columns that are empty here or the same in every row."""

    corpus: str
    head: list[str]
    body: list[list[str]]
    common: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, corpus: str, head: Sequence[str], body: Sequence[Sequence[str]]) -> TableBlock:
        values = {name: {row[head.index(name)] for row in body} for name in COMMON if name in head}
        said = {name: min(found) for name, found in values.items() if len(found) == 1 < len(body)}
        common = [f"{v} {name}" if name == "sentences" else f"{name} {v}" for name, v in said.items()]
        kept = [i for i, name in enumerate(head) if name not in said and any(row[i] for row in body)]
        return cls(corpus, [head[i] for i in kept], [[row[i] for i in kept] for row in body], common)

    @property
    def title(self) -> Text:
        """The corpus, and what all of its rows have in common."""
        return Text.assemble((self.corpus, "bold"), *(f", {text}" for text in self.common))

    def needed(self) -> set[str]:
        """The columns without which two rows would read the same."""
        chosen = [name for name in ("learner",) if name in self.head] or self.head[:1]
        for name in IDENTITY:
            places = [self.head.index(n) for n in chosen]
            if len({tuple(row[i] for i in places) for row in self.body}) == len(self.body):
                break
            if name in self.head and name not in chosen:
                chosen.append(name)
        return set(chosen)


def widths(blocks: Sequence[TableBlock], room: int | None) -> dict[str, int]:
    """Of each column, over all blocks: its widest cell or its head, which is broken into words where room is scarce."""
    whole, out = _widths(blocks, broken=False), _widths(blocks, broken=True)
    return whole if room is None or all(total(b.head, whole) <= room for b in blocks) else out


def _widths(blocks: Sequence[TableBlock], broken: bool) -> dict[str, int]:
    out: dict[str, int] = {}
    for block in blocks:
        for name, cells in zip(block.head, zip(*block.body)):
            figures = max(map(cell_len, cells))
            head = max(map(cell_len, shown_head(name, figures if broken else cell_len(name))))
            out[name] = max(out.get(name, 0), figures, head)
    return out


def total(names: Sequence[str], width: Mapping[str, int]) -> int:
    """What these columns take, side by side."""
    return MARGIN + sum(width[n] for n in names) + GAP * max(len(names) - 1, 0)


def choose(blocks: Sequence[TableBlock], width: Mapping[str, int], room: int) -> set[str]:
    """Columns for `room`: those that tell rows apart, then by rank until one does not fit into every block.

    For scores long words are folded, for the rest they are not.
    """
    short = {name: min(w, FOLDED) if name in WORDS else w for name, w in width.items()}
    chosen = set().union(*(block.needed() for block in blocks))
    for name in sorted(width, key=rank):
        if name in chosen:
            continue
        more = {*chosen, name}
        sizes = short if rank(name) <= RANKS.index("p") else width
        if any(total([n for n in block.head if n in more], sizes) > room for block in blocks):
            break
        chosen = more
    return chosen


def squeezed(names: Sequence[str], width: Mapping[str, int], room: int) -> dict[str, int]:
    """Widths that fit: columns of words give way, the widest first, down to a word; figures never."""
    out = {name: width[name] for name in names}
    while (over := total(names, out) - room) > 0:
        words = [n for n in names if n in WORDS and out[n] > NARROWEST]
        if not words:
            break
        widest = max(words, key=out.__getitem__)
        rest = max((out[n] for n in words if n != widest), default=NARROWEST)
        out[widest] = max(out[widest] - over, min(rest, out[widest] - 1), NARROWEST)
    return out


def placed(text: str, name: str, width: int) -> str:
    """A line of a cell at its side: words left, figures right."""
    space = " " * (width - cell_len(text))
    return text + space if name in WORDS else space + text


def drawn(block: TableBlock, names: Sequence[str], width: Mapping[str, int]) -> list[Text]:
    """The lines of a block with these columns."""
    margin, gap = " " * MARGIN, " " * GAP

    def lines(cells: Sequence[list[str]], style: str = "", *, low: bool = False) -> list[Text]:
        height = max(map(len, cells))
        full = [[""] * (height - len(c)) + c if low else c + [""] * (height - len(c)) for c in cells]
        rows = (gap.join(placed(part, n, width[n]) for part, n in zip(row, names)) for row in zip(*full))
        return [Text(f"{margin}{row}".rstrip(), style=style) for row in rows]

    out = lines([shown_head(name, width[name]) for name in names], "bold", low=True)
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
    """A comparison in `width` characters; with all columns if `width` is None.

    Columns that have no room are left out, the least telling first, and named below.
    """
    body = [[visible(cell) for cell in row] for row in body]
    at = head.index("corpus")
    rest = [i for i in range(len(head)) if i != at]
    found: dict[str, list[list[str]]] = {}
    for row in body:
        found.setdefault(row[at], []).append([row[i] for i in rest])
    blocks = [TableBlock.of(corpus, [head[i] for i in rest], rows) for corpus, rows in found.items()]
    sizes = widths(blocks, width)
    chosen = set(sizes) if width is None else choose(blocks, sizes, width)
    lines: list[RenderableType] = [plain(title, "italic")] if title else []
    for block in blocks:
        names = [name for name in block.head if name in chosen]
        fitted = sizes if width is None else squeezed(names, sizes, width)
        lines += [Text(""), block.title, *drawn(block, names, fitted)]
    lines += [Text("")] if blocks else []
    below = [
        f"{name}: paired approximate randomisation over test sentences"
        for name in chosen
        if name.startswith(TEST)
    ]
    left = [name for name in sorted(sizes, key=rank) if name not in chosen]
    if left:
        below.append(f"left out at this width: {', '.join(left)} (--wide shows them)")
    lines += [Text(visible(text, keep="\n"), style="dim") for text in (*below, caption) if text]
    return Group(*lines)
