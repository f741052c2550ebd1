"""CoNLL columns: one token per line, columns separated by tabs or spaces, a blank line between sentences."""

from __future__ import annotations

import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NoReturn

from tagwise.base.exceptions import CorpusError
from tagwise.base.parameters import meant
from tagwise.corpus.columns import OpenFile
from tagwise.corpus.row_blocks import StringCache, blocks, doc_of, tidy_spaces, tidy_tabs
from tagwise.corpus.sentence import Sentence
from tagwise.corpus.source_lines import Raw
from tagwise.corpus.streams import (
    File,
    check_size,
    fail,
    limit,
    refuse_breaks,
    shown,
    writer,
)

DOCSTART = "-DOCSTART-"


def default_columns(k: int, label: str | None) -> tuple[str, ...]:
    """Return names for k unnamed columns: word, pos, chunk, col4, ... The last column becomes the label column."""
    names = ["word", "pos", "chunk", *(f"col{i}" for i in range(4, k + 1))][:k]
    if label is not None and k > 1 and label not in names:
        if label != "label" and k > 2:  # with two columns, the label can only be the second
            raise CorpusError(
                f"no column is named {label!r}: the {k} columns of the file have no names. Name them all, as in "
                f"columns=({', '.join(map(repr, [*names[:-1], label]))})."
            )
        names[-1] = label
    return tuple(names)


def _expected_columns(names: tuple[str, ...] | None) -> str:
    return f"{len(names)} ({', '.join(names)})" if names else "the same number as in the first row"


class Columns:
    """State of the reader of one CoNLL file. The first rows determine the separator and the columns."""

    def __init__(
        self, name: str, columns: tuple[str, ...] | None, label: str | None, optional_label: bool
    ) -> None:
        self.name = name
        self.declared = columns
        self.names: tuple[str, ...] = ()
        self.places: list[tuple[str, int]] = []
        self.label = label
        self.optional_label = optional_label
        self.separator = "\t"
        self.shared = StringCache()
        self.raw: Raw | None = None

    def set_columns(self, k: int, line: int, row: str) -> None:
        """Fix the column names from the number of columns in the first row."""
        names = self.declared if self.declared is not None else default_columns(k, self.label)
        if self.declared is not None and len(names) != k:
            if self.optional_label and self.label == names[-1] and len(names) - 1 == k:
                names = names[:-1]
            else:
                self.bad_row(line, row, k)
        self.names = names
        self.places = [(name, i) for i, name in enumerate(names) if name != "_"]
        if self.raw is not None:
            self.raw.separator, self.raw.columns = self.separator, len(names)
        if self.label not in names:
            self.label = None

    def bad_row(self, line: int, row: str, k: int) -> NoReturn:
        by = "a tab" if self.separator == "\t" else "spaces"
        hint = " Pass comments=True if lines that begin with # are comments." if row.startswith("#") else ""
        fail(
            self.name,
            line,
            f"{k} column{'s' * (k != 1)} separated by {by} in {shown(row)}, "
            f"expected {_expected_columns(self.names or self.declared)}",
            f"Give every token the same columns, or name the columns of the file with columns=(...).{hint}",
        )

    def bad_block(self, line: int, lines: list[str]) -> NoReturn:
        """Raise a CorpusError for the first malformed row of a block."""
        sep = self.separator
        k = len(self.names or self.declared or lines[0].split(sep))
        for i, row in enumerate(lines):
            cells = row.split(sep)
            if "" in cells[:k] or (cells[-1] == "" and len(cells) <= k + 1):
                at = cells.index("")
                names = self.names or self.declared or default_columns(k, self.label)
                column = names[at] if at < len(names) else f"number {at + 1}"
                problem = "an empty label" if column == self.label else f"an empty value in column {column}"
                fail(
                    self.name,
                    line + i,
                    f"{problem} in {shown(row)}",
                    "Write a value in every column (for example O or _), and no tab at the end of a line.",
                )
            if len(cells) != k:
                self.bad_row(line + i, row, len(cells))
        raise AssertionError(f"{self.name}:{line}: the rows are valid, but the sentence is not")

    def sentence(self, line: int, block: str, comments: tuple[str, ...], doc: str | None) -> Sentence:
        """Build a sentence from its rows.

        One split yields all cells, with line ends as separate cells. Every row has k columns if and only if
        exactly the cells k, 2k+1, 3k+2, ... are line ends.
        """
        sep = self.separator
        if not self.names:
            row = block.split("\n", 1)[0]
            if sep == "\t" and (row[0] == "\t" or row[-1] == "\t" or "\t\t" in row):
                self.bad_block(line, [row])
            self.set_columns(row.count(sep) + 1, line, row)
        k, stride = len(self.names), len(self.names) + 1
        cells = block.replace("\n", f"{sep}\n{sep}").split(sep)
        T = block.count("\n") + 1
        ragged = len(cells) != T * stride - 1 or cells[k::stride].count("\n") != T - 1
        if ragged or (sep == "\t" and "" in cells):
            self.bad_block(line, block.split("\n"))
        share = self.shared.column
        fields = {name: share(cells[i::stride]) for name, i in self.places}
        refuse_breaks(self.name, fields.get(self.label or ""), line, 1)
        return Sentence(fields, self.label, comments=comments, doc=doc, line=line)


def data_lines(head: str) -> list[str]:
    """Return the first lines (at most 200) that hold tokens.

    A text without tokens yields its document marks, or its comments if it has no marks either.
    """
    found = (line.strip(" \t\n") for line in io.StringIO(head))
    lines = list(itertools.islice((line for line in found if line and not is_comment(line)), 200))
    rows = [line for line in lines if not line.startswith(DOCSTART)]
    return rows or lines or [line for line in head.split("\n", 200)[:200] if line.strip(" \t")]


def is_comment(line: str) -> bool:
    """Return whether a line may be a comment. A line with a tab is a token even if it begins with #."""
    return line.startswith("#") and "\t" not in line


def is_comment_or_docstart(line: str) -> bool:
    """Return whether a line looks like a comment or a document mark."""
    return is_comment(line) or line.startswith(DOCSTART)


def detect(head: str, rows: list[str]) -> bool:
    """Return whether the first lines of a text are rows of columns: tabs, document marks, or rows of equal width."""
    if DOCSTART in head:
        return True
    if is_prose(rows) and len({row.count("\t") for row in rows}) > 1:
        return False  # text with a tab in some of its lines
    if any("\t" in row for row in rows):
        return True
    if is_prose(rows):
        return False
    sizes = {sum(map(bool, row.split(" "))) for row in rows}
    blank = len(rows) > 1 and "\n\n" in head.lstrip("\n")
    return len(sizes) == 1 and (blank or len(rows) > 2 or 1 in sizes)


#: End of a sentence in text that is not tokenized: a word, its punctuation, and closing quotes or brackets.
_PROSE = re.compile(r"\w[.!?\u2026\u3002\uff01\uff1f]+[\"')\]\u00bb\u201d\u2019\u300d\u300f]*$")


def is_prose(rows: list[str]) -> bool:
    """Return whether most lines end like a sentence of text that is not tokenized."""
    return 2 * sum(_PROSE.search(row) is not None for row in rows) > len(rows)


#: Typical labels of corpora: O, NN, B-PER, PRP$. The last words of all lines of a text never look like this.
LABEL = re.compile(r"O|[A-Z]{2,}[A-Z0-9$]*|[BIOESLU][-_]\w+")


def ragged(head: str) -> tuple[int, str, int] | None:
    """Find the row that prevents the first lines of a text from being columns.

    Return its line number, its text and the number of columns of the other rows, or None.

    A text rarely has lines of mostly equal width, so an exception is probably an error in a file of columns.
    "Mostly" means four rows of five, or more than half if all of these end in a label. If the usual width is one
    token, two neighbouring rows and a blank line are required as well.
    """
    lines = enumerate(head.split("\n", 200)[:200], 1)
    rows = [(n, [c for c in line.replace("\t", " ").split(" ") if c.strip()]) for n, line in lines]
    rows = [(n, cells) for n, cells in rows if cells and not is_comment_or_docstart(cells[0])]
    if len(rows) < 3:
        return None
    k, most = Counter(len(cells) for _, cells in rows).most_common(1)[0]
    if most == len(rows):
        return None
    typical = [cells for _, cells in rows if len(cells) == k]
    labelled = k > 1 and 2 * most > len(rows) and all(LABEL.fullmatch(cells[-1]) for cells in typical)
    has_blocks = k > 1 or (
        "\n\n" in head.strip("\n") and any(b == a + 1 for (a, _), (b, _) in pairwise(rows))
    )
    if labelled or (has_blocks and len(rows) >= 5 and 5 * most >= 4 * len(rows)):
        line, cells = next((n, cells) for n, cells in rows if len(cells) != k)
        return line, " ".join(cells), k
    return None


def iter_open(
    file: OpenFile, *, separator: str | None = None, comments: bool | None = None
) -> Iterator[Sentence]:
    """Return the sentences of an open file. A ``-DOCSTART-`` row begins a document and is not a sentence.

    Args:
        file: The file, with the requested columns.
        separator: A tab, or ' ' for runs of spaces and tabs. None means a tab if the first rows contain one.
        comments: Whether lines that begin with # and have no tab are comments. None means True for files with several
            columns separated by tabs, where such a line cannot be a token.

    Raises:
        CorpusError: `separator` is not valid, or a row has the wrong number of columns.
    """
    if separator not in (None, "\t", " "):
        raise CorpusError(f"separator={separator!r} is neither a tab nor a space. Pass '\\t', ' ' or None.")
    state = Columns(file.name, file.columns, file.label, file.optional_label)
    state.raw = file.raw
    return conll_sentences(file.chunks, state, separator, comments)


def conll_sentences(
    chunks: Iterator[str], state: Columns, separator: str | None, comments: bool | None
) -> Iterator[Sentence]:
    most = limit("TAGWISE_MAX_SENTENCE")
    head = ""  # up to the first chunk with a token, which determines the separator
    for chunk in chunks:
        head += chunk
        if any(not is_comment_or_docstart(row) for row in data_lines(chunk)):
            break
        check_size(state.name, 1, len(head), most)
    rows = data_lines(head)
    tabs = separator == "\t" or (separator is None and any("\t" in row for row in rows[:50]))
    state.separator = "\t" if tabs else " "
    several_columns = len(state.declared or ()) > 1 or (
        state.declared is None and any("\t" in row for row in rows[:1])
    )
    hashes = comments is True or (comments is None and tabs and several_columns)
    pending: list[str] = []
    doc: str | None = None
    held = 0  # characters of pending comments
    for line, block in blocks(
        state.name, itertools.chain([head] if head else [], chunks), tidy_tabs if tabs else tidy_spaces
    ):
        if DOCSTART not in block and not (hashes and "#" in block):
            if pending or doc is not None:
                yield state.sentence(line, block, tuple(pending), doc)
                pending, doc = [], None
            else:
                yield state.sentence(line, block, (), None)
            continue
        kept: list[str] = []
        begin = line
        for i, row in enumerate(block.split("\n")):
            marks = row.startswith(DOCSTART) and row[len(DOCSTART) :][:1] in ("", state.separator)
            if marks or (hashes and is_comment(row)):
                if marks and kept:
                    yield state.sentence(begin, "\n".join(kept), tuple(pending), doc)
                    kept, pending, doc = [], [], None
                if marks:
                    doc = doc or ""  # a preceding comment may have named the document
                else:
                    pending.append(row)
                    held = held + len(row) if len(pending) > 1 else len(row)
                    check_size(state.name, line + i, held, most)
                    doc = doc_of(row, doc)
                continue
            if not kept:
                begin = line + i
            kept.append(row)
        if kept:
            yield state.sentence(begin, "\n".join(kept), tuple(pending), doc)
            pending, doc = [], None


def format_conll(
    sentence: Sentence, *, columns: Sequence[str] | None = None, separator: str = "\t", documents: bool = True
) -> str:
    """Return a sentence as text, including its blank line. Raise a CorpusError if the format cannot hold a value."""
    fields = sentence.fields
    names = list(fields) if columns is None else list(columns)
    missing = [n for n in names if n not in fields]
    if missing or not names:
        problem = (
            f"no column is named {missing[0]!r}{meant(missing[0], fields)}"
            if missing
            else "no columns to write"
        )
        raise CorpusError(f"{problem}. The columns are {', '.join(fields)}.")
    cols = [fields[n] for n in names]
    text = "\n".join(map(separator.join, zip(*cols)))
    T = len(sentence)
    sound = T > 0 and text.count("\n") == T - 1 and text.count(separator) == T * (len(names) - 1)
    if not sound or _unsafe(text, separator):
        _refuse(sentence, names, cols, separator)
    mark = ""
    if documents and sentence.doc is not None:
        last = names[-1] == sentence.label
        cells = [DOCSTART, *["-X-"] * (len(names) - 1 - last), *["O"] * last][: len(names)]
        mark = separator.join(cells) + "\n\n"
    return f"{mark}{text}\n\n"


def _unsafe(text: str, separator: str) -> bool:
    """Return whether reading the text back might not restore it. May report false positives."""
    if not text or "\r" in text or "\0" in text or DOCSTART in text or (separator == " " and "\t" in text):
        return True
    edges = (separator * 2, f"{separator}\n", f"\n{separator}", "\n\n", " \n", "\n ", " \t", "\t ")
    return any(e in text for e in edges) or text[0] in " \t" or text[-1] in " \t"


def _refuse(sentence: Sentence, names: list[str], cols: list[list[str]], separator: str) -> None:
    """Raise a CorpusError if a CoNLL file cannot hold one of the values."""
    if not len(sentence):
        raise CorpusError("a CoNLL file cannot contain a sentence without tokens. Remove it, or write JSONL.")
    bad = "\t\n\r\0 " if separator == " " else "\t\n\r\0"
    for name, values in zip(names, cols):
        for t, value in enumerate(values):
            wrong = not value or value != value.strip(" ") or any(c in value for c in bad)
            if wrong or (value == DOCSTART and name == names[0]):
                place = f" of the sentence at line {sentence.line}" if sentence.line else ""
                raise CorpusError(
                    f"token {t}{place}: {name} is {shown(value)}, which a CoNLL file with "
                    f"{'tabs' if separator != ' ' else 'spaces'} between columns cannot contain. "
                    "Replace it, or write JSONL, which can contain any text."
                )


def write_conll(
    sentences: Iterable[Sentence],
    file: File,
    *,
    columns: Sequence[str] | None = None,
    separator: str = "\t",
    documents: bool = True,
    comments: bool = False,
) -> None:
    r"""Write sentences as CoNLL columns.

    Sentences are written one at a time, so an iterator can be larger than memory.

    Args:
        sentences: Corpus or iterable of Sentence.
        file: path, '-' or open file. '-' means stdout. A file at a path appears only when it is complete. The
            extensions .gz, .xz and .bz2 compress it.
        columns: sequence of str or None, default=None. Columns to write, in this order. None means all.
        separator: str, default="\t". A tab or a space. Use a space for programs that do not accept tabs.
        documents: bool, default=True. Write a ``-DOCSTART-`` row at the beginning of each document.
        comments: bool, default=False. Write the comments of each sentence. Few programs skip comments.

    Raises:
        CorpusError: A column is missing, a value cannot be written in this format (empty, or with a separator or
            line end inside), or the file cannot be written.

    >>> from pathlib import Path
    >>> import tagwise as tw
    >>> write_conll([tw.Sentence({"word": ["a", "dog"], "label": ["DT", "NN"]}, "label")], "two.txt")
    >>> Path("two.txt").read_text()
    'a\tDT\ndog\tNN\n\n'
    """
    if separator not in ("\t", " "):
        raise CorpusError(f"separator={separator!r} is neither a tab nor a space. Pass '\\t' or ' '.")
    with writer(file) as write:
        for s in sentences:
            text = format_conll(s, columns=columns, separator=separator, documents=documents)
            if comments and s.comments:
                text = "\n".join(s.comments) + "\n" + text
            write(text)
