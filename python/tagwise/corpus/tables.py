"""Tables with one token per row, separated by commas, semicolons, bars or tabs, with or without a header and quotes.

Sentences are told apart by a column such as ``Sentence #`` or ``sentence_id``, or else by blank rows. A blank cell in
that column continues the sentence of the row above.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

from tagwise.base.exceptions import CorpusError
from tagwise.base.parameters import meant
from tagwise.corpus.columns import LABELS, SENTENCES, TOKENS, OpenFile
from tagwise.corpus.conll import DOCSTART, LABEL, default_columns
from tagwise.corpus.labels import first_break
from tagwise.corpus.row_blocks import StringCache, line_batches
from tagwise.corpus.sentence import Sentence
from tagwise.corpus.streams import File, check_size, fail, limit, refuse_breaks, shown, writer
from tagwise.corpus.table_cells import (
    SENTENCE_ID,
    cells_of,
    continues,
    first_rows,
    has_header,
    is_header,
    names_sentences,
    separator_of,
)

NAME = "csv"
#: Lines that a quoted cell may span. A quote that is not closed is thereby reported near its row.
_CELL_LINES = 100
#: Recent names of sentences. One that occurs again after another sentence is an error.
_NAMES = 1 << 16


def detect(head: str, rows: list[str]) -> bool:
    """Return whether the first row is a header, or whether rows separated by ``,``, ``;`` or ``|`` end in labels.

    The first of them need not, since it may be a header with unusual names.
    """
    found = first_rows(head)
    if has_header(head):
        return True
    separator = separator_of(found)
    if separator == "\t" or len(found) < 3 or any("\t" in row for row in found):
        return False
    rows_of_cells = [cells_of(row, separator) for row in found]
    widths = set(map(len, rows_of_cells))
    return (
        len(widths) == 1 and widths != {1} and all(LABEL.fullmatch(cells[-1]) for cells in rows_of_cells[1:])
    )


class Table:
    """State of the reader of one table. The first row determines the columns."""

    def __init__(self, file: OpenFile, separator: str, rows: Sequence[Sequence[str]]) -> None:
        first = rows[0]
        self.file = file
        self.separator = separator
        self.width = len(first)
        self.header = list(first) if is_header(first, file.columns) else None
        self.label: str | None = file.label
        self.sentence: int | None = None  # position of the column that names the sentence
        self.places: list[tuple[str, int]] = []  # columns to keep, with their positions
        self.shared = StringCache()
        if self.header is None:
            self.set_unnamed([cells[0] for cells in rows])
        else:
            self.set_named([name.strip() for name in self.header])
        if self.label not in [name for name, _ in self.places]:
            self.label = None
        if file.raw is not None:
            file.raw.separator, file.raw.columns = separator, self.width

    def refuse(self, problem: str, remedy: str, line: int | None = None) -> NoReturn:
        fail(self.file.name, line, problem, remedy)

    def set_unnamed(self, first: Sequence[str]) -> None:
        """Name the columns of a table without a header, whose first rows begin with the cells `first`."""
        declared, label = self.file.columns, self.file.label
        if declared is None and self.width > 2 and names_sentences(first):
            declared = (SENTENCE_ID, *default_columns(self.width - 1, label))
        names = declared if declared is not None else default_columns(self.width, label)
        if len(names) == self.width + 1 and self.file.optional_label and names[-1] == label:
            names = names[:-1]
        if len(names) != self.width:
            self.refuse(
                f"{self.width} columns separated by {self.separator!r} without a header, expected {len(names)} "
                f"({', '.join(names)})",
                "Name the columns of the file with columns=(...).",
                1,
            )
        self.set_places(names)

    def set_places(self, names: Sequence[str]) -> None:
        """Keep all columns but those that are skipped or name the sentence."""
        for i, name in enumerate(names):
            if name.casefold() in SENTENCES and self.sentence is None:
                self.sentence = i
            elif name != "_":
                self.places.append((name, i))

    def set_named(self, names: list[str]) -> None:
        """Choose the columns of a table with a header."""
        folded = [name.casefold() for name in names]
        declared = self.file.columns
        twice = next((name for i, name in enumerate(names) if name and folded[i] in folded[:i]), None)
        if twice is not None and (declared is None or len(declared) != len(names)):
            self.refuse(
                f"the header has several columns named {twice!r}",
                "Rename one of them, or name all columns in the order of the file with columns=(...).",
                1,
            )
        self.sentence = next((i for i, name in enumerate(folded) if name in SENTENCES), None)
        word = self.word(folded)
        label = None if twice is not None else self.label_place(names, folded, word)
        aliases = {"word": word, **({} if label is None else {"label": label, str(self.label): label})}

        def place_of(name: str) -> int | None:
            return folded.index(name.casefold()) if name.casefold() in folded else aliases.get(name)

        if declared is None:
            rest = [i for i, name in enumerate(names) if name and i not in (self.sentence, word, label)]
            self.places = [("word", word), *((names[i], i) for i in rest)]
            if label is not None:
                self.places.append((str(self.label), label))
            return
        chosen = [] if twice is not None else [(name, place_of(name)) for name in declared]
        if chosen and "_" not in declared and all(i is not None for _, i in chosen):
            self.places = [(name, i) for name, i in chosen if i is not None and i != self.sentence]
            return
        own = None if self.sentence is None or len(declared) != len(names) else declared[self.sentence]
        if len(declared) != len(names) or (
            own is not None and own != "_" and own.casefold() not in SENTENCES
        ):
            missing = next((name for name, i in chosen if i is None), "_")
            self.refuse(
                f"no column is named {missing!r}{meant(missing, names)}. The header has {', '.join(names)}",
                "Name some of these columns with columns=(...), or all of them in the order of the file.",
                1,
            )
        at, self.sentence = self.sentence, None
        self.set_places(declared)
        self.sentence = at if self.sentence is None else self.sentence

    def word(self, folded: list[str]) -> int:
        """Return the position of the tokens: the first usual name, or else the first column that is not a sentence."""
        usual = [i for i, name in enumerate(folded) if name in TOKENS]
        others = [i for i, name in enumerate(folded) if name and i != self.sentence]
        if not usual and not others:
            self.refuse("the header has no column of tokens", "Name it 'word'.", 1)
        return (usual or others)[0]

    def label_place(self, names: list[str], folded: list[str], word: int) -> int | None:
        """Return the position of the labels: the given name, or the only usual one, or else the last column."""
        label = self.file.label
        if label is None:
            return None
        if label.casefold() in folded:
            return folded.index(label.casefold())
        if label != "label" and self.file.columns is not None and label in self.file.columns:
            return None  # a name for a position
        if label != "label":
            self.refuse(
                f"no column is named {label!r}{meant(label, names)}. The header has {', '.join(names)}",
                "Name one of these columns with label='...'.",
                1,
            )
        usual = [i for i, name in enumerate(folded) if name in LABELS and i != word]
        if len(usual) > 1:
            found = [names[i] for i in usual]
            self.refuse(
                f"several columns may hold the labels: {', '.join(found)}",
                f"Name one, as in label={found[-1]!r}.",
                1,
            )
        last = [i for i, name in enumerate(folded) if name and i not in (word, self.sentence)][-1:]
        return next(iter(usual or last), None)

    def is_open(self, row: str) -> bool:
        """Return whether the next line belongs to the last cell of a row."""
        return (
            '"' in row
            and len(cells_of(row, self.separator, self.width)) != self.width
            and continues(row, self.separator)
        )

    def cells(self, row: str, line: int) -> list[str]:
        """Return the checked cells of a row."""
        cells = cells_of(row, self.separator, self.width)
        if len(cells) != self.width:
            if continues(row, self.separator):
                self.refuse(
                    f"a quote that is not closed in {shown(row)}",
                    "Close it, or write the cell on one line: a quote inside a cell is written twice.",
                    line,
                )
            self.refuse(
                f"{len(cells)} column{'s' * (len(cells) != 1)} separated by {self.separator!r} in {shown(row)}, "
                f"expected {self.width}",
                "Give every row the same columns, and put cells that contain the separator in quotes.",
                line,
            )
        for name, i in self.places:
            if not cells[i].strip():
                problem = "an empty label" if name == self.label else f"an empty value in column {name}"
                remedy = "Write a value in every row, for example O or _."
                if i == 0 and self.header is None and self.file.columns is None and self.width > 2:
                    names = ", ".join(map(repr, default_columns(self.width - 1, self.file.label)))
                    remedy += f" If the first column numbers the sentences, pass columns=({SENTENCE_ID!r}, {names})."
                self.refuse(f"{problem} in {shown(row)}", remedy, line)
        self.refuse_sentence(cells, line)
        return cells

    def refuse_sentence(self, cells: list[str], line: int) -> None:
        """Raise a CorpusError if a row holds a whole sentence: a list, or at least three words and as many labels."""
        places = dict(self.places)
        if self.label is None:
            return
        label, token = cells[places[self.label]], cells[self.places[0][1]]
        if label[0] == "[" and len(label) > 1 and label[-1] == "]" and token[0] == "[" and token[-1] == "]":
            self.refuse(
                f"a row with lists of tokens and labels, {shown(token)}, expected one token per row",
                "Save the lists as JSON lines, as to_json of datasets and to_json(orient='records', lines=True) of "
                "pandas do.",
                line,
            )
        if " " not in label:
            return
        n = len(label.split())
        if n > 2 and len(token.split()) == n:
            self.refuse(
                f"a row with {n} words and {n} labels, expected one token per row",
                'Write one row per token, or lines such as {"tokens": ["In", "Oslo"], "labels": ["O", "B-LOC"]}.',
                line,
            )

    def built(self, rows: list[list[str]], line: int, lines: list[int], doc: str | None) -> Sentence:
        """Return the sentence of some rows."""
        fields = {name: self.shared.column([cells[i] for cells in rows]) for name, i in self.places}
        labels = fields.get(self.label or "")
        at = None if labels is None else first_break(labels)
        if labels is not None and at is not None:
            refuse_breaks(self.file.name, labels[at : at + 1], lines[at])
        return Sentence(fields, self.label, doc=doc, line=line)


def iter_open(file: OpenFile, *, separator: str | None = None) -> Iterator[Sentence]:
    """Return the sentences of an open table.

    Args:
        file: The file, with the requested columns.
        separator: Separator of the cells. None means the one of tab, comma, semicolon and bar that fits the first rows.

    Raises:
        CorpusError: The separator is not a single character, or a row is not valid.
    """
    check_separator(separator)
    return table_sentences(file, separator)


def check_separator(separator: Any) -> None:
    """Raise a CorpusError unless a separator of tables is None or a single character."""
    if separator is not None and (
        not isinstance(separator, str) or len(separator) != 1 or separator in '" \n\r\0'
    ):
        raise CorpusError(
            f"separator={separator!r} is not a separator of tables. Pass one of '\\t', ',', ';', '|'."
        )


def table_sentences(file: OpenFile, separator: str | None) -> Iterator[Sentence]:
    """Yield the sentences of a table."""
    most = limit("TAGWISE_MAX_SENTENCE")
    table: Table | None = None
    rows: list[list[str]] = []
    lines: list[int] = []
    held = 0  # characters of the sentence
    current: str | None = None
    recent: set[str] = set()
    doc: str | None = None
    open_row: list[str] = []  # lines of a row whose last cell is not complete
    for batch in line_batches(file.chunks):
        for line, text in batch:
            if table is not None and open_row:
                open_row.append(text)
                line -= len(open_row) - 1
                text = "\n".join(open_row)
                if len(open_row) <= _CELL_LINES and continues(text, table.separator):
                    continue
                open_row = []
            row = text.strip(" ")
            blank = not row or not row.strip(
                f" {separator or ''}" if table is None else f" {table.separator}"
            )
            if blank:
                if rows and table is not None and table.sentence is None:
                    yield table.built(rows, lines[0], lines, doc)
                    rows, lines, held, doc = [], [], 0, None
                continue
            if table is None:
                first = first_rows("\n".join(t for n, t in batch if n >= line))
                separator = separator or separator_of(first)
                table = Table(file, separator, [cells_of(text.strip(" "), separator) for text in first])
                if table.header is not None:
                    continue
            if file.raw is None and "\n" not in row and table.is_open(row):
                open_row = [row]
                continue
            cells = table.cells(row, line)
            name = cells[table.sentence].strip() if table.sentence is not None else ""
            is_mark = cells[table.places[0][1]] == DOCSTART
            begins = is_mark or (name != "" and name != current)
            if begins and rows:
                yield table.built(rows, lines[0], lines, doc)
                rows, lines, held, doc = [], [], 0, None
            if is_mark:
                doc, current = "", None
                continue
            if table.sentence is not None and begins:
                if name in recent:
                    table.refuse(
                        f"sentence {name!r} continues after another sentence",
                        "Sort the rows by sentence, and give every sentence its own name.",
                        line,
                    )
                if len(recent) >= _NAMES:
                    recent.clear()
                recent.add(name)
                current = name
            rows.append(cells)
            lines.append(line)
            held += len(text)
            check_size(file.name, lines[0], held, most)
    if table is not None and open_row:
        table.cells("\n".join(open_row), line)
    if rows and table is not None:
        yield table.built(rows, lines[0], lines, doc)


def quoted(cell: str, separator: str) -> str:
    """Return a cell with quotes if it needs them."""
    if separator in cell or '"' in cell or cell != cell.strip(" "):
        return '"' + cell.replace('"', '""') + '"'
    return cell


class TableWriter:
    """Converts sentences to rows. The header precedes the first of them."""

    def __init__(self, separator: str = ",") -> None:
        self.separator = separator
        self.names: list[str] | None = None
        self.number = 0

    def row(self, cells: Iterable[str]) -> str:
        return self.separator.join(quoted(cell, self.separator) for cell in cells) + "\n"

    def __call__(self, sentence: Sentence) -> str:
        """Return the rows of a sentence."""
        names = list(sentence.fields)
        out = []
        if self.names is None:
            taken = next((name for name in names if name.casefold() in SENTENCES), None)
            if taken is not None:
                raise CorpusError(
                    f"column {taken!r} has the name of a column of sentences. Rename it, or write JSONL."
                )
            self.names = names
            out.append(self.row([SENTENCE_ID, *names]))
        if names != self.names:
            raise CorpusError(
                f"a table has the same columns in every row, found {', '.join(names)} after {', '.join(self.names)}"
            )
        if not len(sentence):
            raise CorpusError("a table cannot contain a sentence without tokens. Remove it, or write JSONL.")
        self.number += 1
        for values in sentence.fields.values():
            for t, value in enumerate(values):
                if not value.strip() or any(c in value for c in "\n\r\0") or value == DOCSTART:
                    raise CorpusError(
                        f"token {t} of sentence {self.number}: {shown(value)} cannot be written in a table. Replace "
                        "it, or write JSONL, which can contain any text."
                    )
        if sentence.doc is not None:
            out.append(self.row(["", DOCSTART, *["O"] * (len(names) - 1)]))
        out += [self.row([str(self.number), *cells]) for cells in zip(*sentence.fields.values())]
        return "".join(out)


def write_csv(sentences: Iterable[Sentence], file: File, *, separator: str = ",") -> None:
    r"""Write sentences as a table with a header. The first column is the number of the sentence.

    Args:
        sentences: Corpus or iterable of Sentence.
        file: path, '-' or open file, as in `write`.
        separator: str, default=",". A single character, such as a tab or ';'.

    Raises:
        CorpusError: A value is blank or contains a line end, columns differ, or the file cannot be written.

    >>> from pathlib import Path
    >>> import tagwise as tw
    >>> write_csv([tw.Sentence({"word": ["a", ","], "label": ["DT", "PUNCT"]}, "label")], "two.csv")
    >>> Path("two.csv").read_text()
    'sentence_id,word,label\n1,a,DT\n1,",",PUNCT\n'
    """
    check_separator(separator)
    rows = TableWriter(separator)
    with writer(file) as write:
        for sentence in sentences:
            write(rows(sentence))
