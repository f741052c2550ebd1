"""Cells of tables: separators, quotes, and the rows that are headers or number the sentences."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence

from tagwise.corpus.columns import LABELS, SENTENCES, TOKENS

SEPARATORS = ("\t", ",", ";", "|")
#: Further names of columns in a header. They confirm that the first row is one.
_OTHERS = ("pos", "pos_tag", "upos", "xpos", "lemma", "chunk", "id", "token_id", "word_id", "doc", "document")
_KNOWN = {*TOKENS, *SENTENCES, *LABELS, *_OTHERS}
#: Column of the sentence numbers in written tables.
SENTENCE_ID = "sentence_id"
#: Rows of the file that determine separator and columns.
FIRST_ROWS = 50
#: Number of a sentence, such as 12 or ``Sentence: 12``.
_NUMBER = re.compile(r"((?:[^\W\d]+[ :#_-]*)?)(\d{1,9})")


def cells_of(line: str, separator: str, width: int | None = None) -> list[str]:
    """Return the cells of a row. Quotes are removed only if that yields the expected width.

    A quote that is a token itself is thereby kept, also in a file without quoting.

    >>> cells_of('1,",",O', ",", 3), cells_of('1,",O', ",", 3)
    (['1', ',', 'O'], ['1', '"', 'O'])
    """
    plain = [cell.strip(" ") for cell in line.split(separator)]
    if '"' not in line:
        return plain
    try:
        quoted = next(csv.reader([line], delimiter=separator, strict=True, skipinitialspace=True))
    except csv.Error:
        return plain
    return plain if width is not None and len(quoted) != width == len(plain) else quoted


def continues(row: str, separator: str) -> bool:
    """Return whether the last cell of a row begins with a quote that is not closed, so that it spans the next line too.

    >>> continues('1,"first line', ","), continues('1,5" pipe', ","), continues('1,",",O', ",")
    (True, False, False)
    """
    try:
        next(csv.reader([row], delimiter=separator, strict=True, skipinitialspace=True))
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False


def is_header(cells: Sequence[str], declared: Sequence[str] | None = None) -> bool:
    """Return whether a row holds names of columns: at least two usual ones, or the declared ones.

    >>> is_header(["Sentence #", "Word", "POS", "Tag"]), is_header(["Word", "NN"])
    (True, False)
    """
    names = [cell.strip().casefold() for cell in cells]
    if declared is not None and names == [name.casefold() for name in declared]:
        return True
    if not {*TOKENS, *SENTENCES} & set(names):
        return False
    return len(_KNOWN & set(names)) > 1 or names[0] == SENTENCE_ID


def has_header(head: str, declared: Sequence[str] | None = None) -> bool:
    """Return whether the first row of a text is a header in a table with one of the usual separators."""
    rows = (cells_of(row, separator) for row in first_rows(head)[:1] for separator in SEPARATORS)
    return any(len(cells) > 1 and is_header(cells, declared) for cells in rows)


def first_rows(head: str) -> list[str]:
    """Return the first rows of a text that are not blank."""
    return [line for line in head.split("\n", 4 * FIRST_ROWS) if line.strip()][:FIRST_ROWS]


def separator_of(rows: Sequence[str]) -> str:
    """Return the separator that splits most of the rows into the same number of cells, more than one."""

    def agreement(separator: str) -> int:
        widths = Counter(len(cells_of(row, separator)) for row in rows)
        return max((n for width, n in widths.items() if width > 1), default=0)

    return max(SEPARATORS, key=agreement)  # the first of equals


def names_sentences(cells: Sequence[str]) -> bool:
    """Return whether the cells of a column without a name number the sentences: they rise, and some are repeated.

    A blank cell repeats the one above.

    >>> names_sentences(["1", "1", "2"]), names_sentences(["Sentence: 1", "", "Sentence: 2"])
    (True, True)
    >>> names_sentences(["1", "2", "3"])
    False
    """
    given = [cell for cell in cells if cell]
    found = [_NUMBER.fullmatch(cell) for cell in given]
    if not cells or not cells[0] or not all(found):
        return False
    prefixes = {match[1] for match in found if match}
    numbers = [int(match[2]) for match in found if match]
    return len(prefixes) == 1 and numbers == sorted(numbers) and len(set(numbers)) < len(cells)
