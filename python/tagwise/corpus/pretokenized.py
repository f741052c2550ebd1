"""Tokenized text: one sentence per line, tokens separated by spaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tagwise.base.exceptions import CorpusError
from tagwise.corpus.columns import OpenFile
from tagwise.corpus.row_blocks import lines_of
from tagwise.corpus.sentence import Sentence
from tagwise.corpus.streams import File, shown, writer
from tagwise.corpus.text.tokenizer import ABBREVIATIONS

#: Tokens that stand alone only in tokenized text.
_ALONE = frozenset([*'.,;:!?()[]"', "''", "``", "...", "n't", "'s", "-LRB-", "-RRB-"])
#: Marks that no language sets apart from the word before.
_STOPS = frozenset(".,")
#: Closing quotes and brackets.
_CLOSING = frozenset("\"')]\u00bb\u201d\u2019")


def detect(head: str, rows: list[str]) -> bool:
    """Return whether a text looks tokenized: punctuation stands alone more often than at the end of a word.

    Full stops and commas decide if there are any, because French puts a space before other marks. A dot after an
    abbreviation, an initial or a number does not count, because tokenized text has it too.
    """
    alone = {True: 0, False: 0}  # tokens, by whether they are full stops or commas
    attached = {True: 0, False: 0}
    for row in rows:
        for token in row.replace("\t", " ").split(" "):
            if token in _ALONE:
                alone[token in _STOPS] += 1
            elif len(token) > 1 and token[-1] in ".,;:!?" and token[-2] not in ".,;:!?":
                stem = token[:-1]
                keeps_dot = len(stem) == 1 or "." in stem or stem.isdigit() or stem.lower() in ABBREVIATIONS
                is_word = stem[-1].isalnum() or stem[-1] in _CLOSING
                attached[token[-1] in _STOPS] += is_word and not (token[-1] == "." and keeps_dot)
    decisive = alone[True] + attached[True] > 0
    return alone[decisive] > attached[decisive]


def iter_open(file: OpenFile) -> Iterator[Sentence]:
    """Return the sentences of an open file: one per line, tokens separated by spaces. Blank lines are skipped."""
    return text_sentences(file.chunks)


def text_sentences(chunks: Iterator[str]) -> Iterator[Sentence]:
    for number, line in lines_of(chunks):
        if "\t" in line:
            line = line.replace("\t", " ")
        words = line.split(" ")
        if "" in words:
            words = [w for w in words if w]
        yield Sentence({"word": words}, line=number)


def format_text(sentence: Sentence, *, join: str | None = None) -> str:
    """Return a sentence as a line of tokens separated by spaces, or of word/label pairs with ``join="/"``."""
    values = sentence.tokens
    if join is not None:
        values = [f"{w}{join}{y}" for w, y in zip(values, sentence.labels)]
    text = " ".join(values)
    if not values or text.count(" ") != len(values) - 1 or "" in values or any(c in text for c in "\t\n\r\0"):
        raise CorpusError(
            f"{shown(text)}: a token that is empty or contains a space or a line end cannot be written as text. "
            "Replace it, or write JSONL, which can contain any text."
        )
    return text + "\n"


def write_text(sentences: Iterable[Sentence], file: File, *, join: str | None = None) -> None:
    r"""Write sentences as tokenized text: one sentence per line, tokens separated by spaces.

    Args:
        sentences: Corpus or iterable of Sentence.
        file: path, '-' or open file. '-' means stdout. A file at a path appears only when it is complete. The
            extensions .gz, .xz and .bz2 compress it.
        join: str or None, default=None. Separator between each token and its label, as in ``dog/NN``. None means that
            labels are not written.

    Raises:
        CorpusError: A token is empty or contains a space or a line end, a sentence has no labels for ``join``, or the
            file cannot be written.

    >>> from pathlib import Path
    >>> import tagwise as tw
    >>> write_text([tw.Sentence({"word": ["a", "dog"], "label": ["DT", "NN"]}, "label")], "tagged.txt", join="/")
    >>> Path("tagged.txt").read_text()
    'a/DT dog/NN\n'
    """
    with writer(file) as write:
        for s in sentences:
            write(format_text(s, join=join))
