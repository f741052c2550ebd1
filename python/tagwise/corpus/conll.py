"""CoNLL columns: one token a line, columns separated by tabs or spaces, a blank line between sentences."""

from __future__ import annotations

import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NoReturn

from tagwise.base.exceptions import CorpusError
from tagwise.corpus.columns import Opened, check_columns
from tagwise.corpus.row_blocks import Shared, blocks, doc_of, tidy_spaces, tidy_tabs
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.source_lines import Raw
from tagwise.corpus.streams import (
    File,
    check_size,
    fail,
    limit,
    open_text,
    refuse_breaks,
    shown,
    source_name,
    writer,
)

DOCSTART = "-DOCSTART-"


def _default_columns(k: int, label: str | None) -> tuple[str, ...]:
    """Names for k unnamed columns: word, pos, chunk, col4 ...; the last one is the label where no other is."""
    names = ["word", "pos", "chunk", *(f"col{i}" for i in range(4, k + 1))][:k]
    if label is not None and k > 1 and label not in names:
        if label != "label" and k > 2:  # of two columns it can only be the last
            raise CorpusError(
                f"there is no column {label!r}: the {k} columns of the file have no names. Name them all, as in "
                f"columns=({', '.join(map(repr, [*names[:-1], label]))}); on the command line --columns."
            )
        names[-1] = label
    return tuple(names)


def _wanted(names: tuple[str, ...] | None) -> str:
    return f"{len(names)} ({', '.join(names)})" if names else "as many as in the first row"


class Columns:
    """The state of reading one CoNLL file: its separator and columns are settled by its first rows."""

    def __init__(
        self, name: str, columns: tuple[str, ...] | None, label: str | None, optional_label: bool
    ) -> None:
        self.name = name
        self.given = columns
        self.names: tuple[str, ...] = ()
        self.places: list[tuple[str, int]] = []
        self.label = label
        self.optional_label = optional_label
        self.separator = "\t"
        self.shared = Shared()
        self.raw: Raw | None = None

    def settle(self, k: int, line: int, row: str) -> None:
        """Fix the column names from the number of columns in the first row."""
        names = self.given if self.given is not None else _default_columns(k, self.label)
        if self.given is not None and len(names) != k:
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
        hint = "; pass comments=True if lines that begin with # are comments" if row.startswith("#") else ""
        fail(
            self.name,
            line,
            f"{k} column{'s' * (k != 1)} separated by {by} in {shown(row)}, "
            f"expected {_wanted(self.names or self.given)}",
            f"Give every token the same columns, or name those of the file with columns=(...){hint}",
        )

    def bad_block(self, line: int, lines: list[str]) -> NoReturn:
        """Say which row of a block is the wrong one."""
        sep = self.separator
        k = len(self.names or self.given or lines[0].split(sep))
        for i, row in enumerate(lines):
            cells = row.split(sep)
            if "" in cells[:k] or (cells[-1] == "" and len(cells) <= k + 1):
                at = cells.index("")
                names = self.names or self.given or _default_columns(k, self.label)
                column = names[at] if at < len(names) else f"number {at + 1}"
                what = "an empty label" if column == self.label else f"an empty value in column {column}"
                fail(
                    self.name,
                    line + i,
                    f"{what} in {shown(row)}",
                    "Write a value in every column (for example O or _), and no tab at the end of a line.",
                )
            if len(cells) != k:
                self.bad_row(line + i, row, len(cells))
        raise AssertionError(f"{self.name}:{line}: every row is sound, but not the sentence")

    def sentence(self, line: int, block: str, comments: tuple[str, ...], doc: str | None) -> Sentence:
        """One sentence from its rows.

        All cells are split off at once, with the line ends as cells of their own: every row has k columns
        if and only if the line ends are the cells k, 2k+1, 3k+2, ... and no others.
        """
        sep = self.separator
        if not self.names:
            row = block.split("\n", 1)[0]
            if sep == "\t" and (row[0] == "\t" or row[-1] == "\t" or "\t\t" in row):
                self.bad_block(line, [row])
            self.settle(row.count(sep) + 1, line, row)
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
    """The first lines of a text that hold tokens; its document marks if there are none, else its comments."""
    found = (line.strip(" \t\n") for line in io.StringIO(head))
    lines = list(itertools.islice((line for line in found if line and not is_comment(line)), 200))
    rows = [line for line in lines if not line.startswith(DOCSTART)]
    return rows or lines or [line for line in head.split("\n", 200)[:200] if line.strip(" \t")]


def is_comment(line: str) -> bool:
    """Whether a line may be a comment. A line with a tab is a token even if it begins with #."""
    return line.startswith("#") and "\t" not in line


def is_mark(line: str) -> bool:
    """Whether a line looks like a comment or a document mark."""
    return is_comment(line) or line.startswith(DOCSTART)


def iter_conll(
    file: File,
    columns: Sequence[str] | None = None,
    label: str | None = "label",
    *,
    separator: str | None = None,
    comments: bool | None = None,
    optional_label: bool = False,
    encoding: str = "utf-8",
) -> Iterator[Sentence]:
    """Sentences of a file with one token a line and a blank line between sentences, one at a time.

    Args:
        file: a path, '-' for stdin, or an open file; gz, xz and bz2 are seen by their contents.
        columns: their names; '_' leaves one out. None: word, pos, chunk ... and the last one is the label.
        label: the label column; None for a file without labels.
        separator: a tab, or ' ' for runs of spaces and tabs. None: a tab where the first rows have one.
        comments: whether lines that begin with # and have no tab are comments. None: in files with several
            columns separated by tabs, where such a line cannot be a token.
        optional_label: take a file that lacks the label column where that is the last of ``columns``.
        encoding: UTF-8 unless told.

    ``-DOCSTART-`` rows begin documents and are no sentences.

    >>> import io
    >>> [s.labels for s in iter_conll(io.StringIO("EU NNP B-ORG\\n\\nHi UH O\\n"))]
    [['B-ORG'], ['O']]
    """
    names, label = check_columns(columns, label)
    if separator not in (None, "\t", " "):
        raise CorpusError(f"separator={separator!r} is neither a tab nor a space. Pass '\\t', ' ' or None.")
    name, chunks = open_text(file, encoding)
    return conll_sentences(chunks, Columns(name, names, label, optional_label), separator, comments)


def looks(head: str, rows: list[str]) -> bool:
    """Whether the first lines of a text are rows of columns: tabs, document marks, or rows of one width."""
    if any("\t" in row for row in rows) or DOCSTART in head:
        return True
    sizes = {sum(map(bool, row.split(" "))) for row in rows}
    blank = len(rows) > 1 and "\n\n" in head.lstrip("\n")
    return len(sizes) == 1 and (blank or len(rows) > 2 or 1 in sizes)


#: What the labels of corpora look like: O, NN, B-PER, PRP$; words at the end of a line seldom do, never all of them.
_LABEL = re.compile(r"O|[A-Z]{2,}[A-Z0-9$]*|[BIOESLU][-_]\w+")


def ragged(head: str) -> tuple[int, str, int] | None:
    """The row that keeps the first lines of a text from being columns: its line, its text, the columns of the others.

    Most rows have one width and some have another: in text that is rare, in columns it is a fault. Most: four of five
    (and a sentence of several rows, where that width is one token), or more than half where they all end in a label.
    """
    lines = enumerate(head.split("\n", 200)[:200], 1)
    rows = [(n, [c for c in line.replace("\t", " ").split(" ") if c.strip()]) for n, line in lines]
    rows = [(n, cells) for n, cells in rows if cells and not is_mark(cells[0])]
    if len(rows) < 3:
        return None
    k, most = Counter(len(cells) for _, cells in rows).most_common(1)[0]
    if most == len(rows):
        return None
    usual = [cells for _, cells in rows if len(cells) == k]
    labelled = k > 1 and 2 * most > len(rows) and all(_LABEL.fullmatch(cells[-1]) for cells in usual)
    together = k > 1 or ("\n\n" in head.strip("\n") and any(b == a + 1 for (a, _), (b, _) in pairwise(rows)))
    if labelled or (together and len(rows) >= 5 and 5 * most >= 4 * len(rows)):
        line, cells = next((n, cells) for n, cells in rows if len(cells) != k)
        return line, " ".join(cells), k
    return None


def opened(file: Opened) -> Iterator[Sentence]:
    """The sentences of an open file."""
    state = Columns(file.name, file.columns, file.label, file.optional_label)
    state.raw = file.raw
    return conll_sentences(file.chunks, state, None, None)


def conll_sentences(
    chunks: Iterator[str], state: Columns, separator: str | None, comments: bool | None
) -> Iterator[Sentence]:
    most = limit("TAGWISE_MAX_SENTENCE")
    head = ""  # up to the first chunk that shows a token: it settles the separator
    for chunk in chunks:
        head += chunk
        if any(not is_mark(row) for row in data_lines(chunk)):
            break
        check_size(state.name, 1, len(head), most)
    rows = data_lines(head)
    tabs = separator == "\t" or (separator is None and any("\t" in row for row in rows[:50]))
    state.separator = "\t" if tabs else " "
    many = len(state.given or ()) > 1 or (state.given is None and any("\t" in row for row in rows[:1]))
    hashes = comments is True or (comments is None and tabs and many)
    pending: list[str] = []
    doc: str | None = None
    held = 0  # characters of the comments that wait for a sentence
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
                    doc = doc or ""  # a comment before it may name the document
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


def read_conll(
    file: File,
    columns: Sequence[str] | None = None,
    label: str | None = "label",
    *,
    separator: str | None = None,
    comments: bool | None = None,
    optional_label: bool = False,
    encoding: str = "utf-8",
) -> Corpus:
    r"""A whole CoNLL file as a Corpus; the arguments are those of iter_conll.

    >>> import io
    >>> read_conll(io.StringIO("a DT\ndog NN\n\nit PRP\n")).labels
    [['DT', 'NN'], ['PRP']]
    """
    names, kept_label = check_columns(columns, label)
    sentences = iter_conll(
        file,
        columns,
        label,
        separator=separator,
        comments=comments,
        optional_label=optional_label,
        encoding=encoding,
    )
    kept = [n for n in names or () if n != "_"]
    return Corpus(sentences, columns=kept, label=kept_label if kept else None, source=source_name(file))


def format_conll(
    sentence: Sentence, *, columns: Sequence[str] | None = None, separator: str = "\t", documents: bool = True
) -> str:
    """A sentence as text, its blank line included; CorpusError for a value that the format cannot hold."""
    fields = sentence.fields
    names = list(fields) if columns is None else list(columns)
    missing = [n for n in names if n not in fields]
    if missing or not names:
        raise CorpusError(f"no column {', '.join(missing) or 'named'}. The columns are {', '.join(fields)}.")
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
    """Whether a text would be read back as something else."""
    if not text or "\r" in text or "\0" in text or DOCSTART in text or (separator == " " and "\t" in text):
        return True
    edges = (separator * 2, f"{separator}\n", f"\n{separator}", "\n\n", " \n", "\n ", " \t", "\t ")
    return any(e in text for e in edges) or text[0] in " \t" or text[-1] in " \t"


def _refuse(sentence: Sentence, names: list[str], cols: list[list[str]], separator: str) -> None:
    """Raise for the value that a CoNLL file cannot hold; return where every value is fine after all."""
    if not len(sentence):
        raise CorpusError(
            "a sentence without tokens cannot stand in a CoNLL file. Leave it out, or write JSONL."
        )
    bad = "\t\n\r\0 " if separator == " " else "\t\n\r\0"
    for name, values in zip(names, cols):
        for t, value in enumerate(values):
            wrong = not value or value != value.strip(" ") or any(c in value for c in bad)
            if wrong or (value == DOCSTART and name == names[0]):
                place = f" of the sentence at line {sentence.line}" if sentence.line else ""
                raise CorpusError(
                    f"token {t}{place}: {name} is {shown(value)}, which cannot stand in a CoNLL file with "
                    f"{'tabs' if separator != ' ' else 'spaces'} between columns. "
                    "Replace it, or write JSONL, which holds any text."
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
    r"""Write sentences as CoNLL columns, one after the other as they come.

    Args:
        sentences: a Corpus or any iterable of sentences.
        file: a path (it appears only when complete; .gz, .xz, .bz2 compress), '-' for stdout, an open file.
        columns: which columns, in which order; None: all.
        separator: a tab or a space.
        documents: write ``-DOCSTART-`` rows where documents begin.
        comments: write the sentences' comments too.

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
