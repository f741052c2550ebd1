"""Raw text: one untokenized text per line, of one or more sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tagwise.base.exceptions import CorpusError
from tagwise.corpus.columns import OpenFile
from tagwise.corpus.row_blocks import line_batches
from tagwise.corpus.sentence import Sentence
from tagwise.corpus.streams import File, shown, writer
from tagwise.corpus.text.span_jsonl import names_of, text_of
from tagwise.corpus.text.spans import CONTINUED, sentences_of
from tagwise.corpus.text.tokenizer import Tokenizes, tokenized

NAME = "raw"


def detect(head: str, rows: list[str]) -> bool:
    """Return True, because every text can be read as raw text."""
    return True


def iter_open(file: OpenFile, *, tokenizer: Tokenizes | None = None) -> Iterator[Sentence]:
    """Return the sentences of an open file. Blank lines are skipped.

    Args:
        file: The file, with the requested columns.
        tokenizer: Tokenizer, or function that maps a text to its tokens. None means ``Tokenizer()``.

    Raises:
        CorpusError: The tokens are not pieces of the text.
    """
    return line_sentences(file.chunks, names_of(file), tokenizer=tokenizer)


def line_sentences(
    chunks: Iterator[str], names: tuple[str, str] = ("word", "label"), *, tokenizer: Tokenizes | None = None
) -> Iterator[Sentence]:
    """Yield sentences. The lines of each chunk are tokenized in one call."""
    for batch in line_batches(chunks):
        texts = tokenized([text for _, text in batch], tokenizer)
        for (line, _), text in zip(batch, texts):
            if len(text):
                yield from sentences_of(text, names=names, line=line)


def format_raw(sentence: Sentence, end: str = "\n") -> str:
    """Return the text of a sentence, followed by `end` unless the next sentence continues the text."""
    text = text_of(sentence).text
    if any(c in text for c in "\n\r\0"):
        raise CorpusError(
            f"{shown(text)}: a text with a line end cannot be written as raw text. Write spans, which can contain any "
            "text."
        )
    return text if (sentence.meta or {}).get(CONTINUED) is True else text + end


def write_raw(sentences: Iterable[Sentence], file: File) -> None:
    r"""Write the raw text of sentences without labels, one text per line. Sentences of one text are joined.

    Args:
        sentences: Corpus or iterable of Sentence.
        file: path, '-' or open file. '-' means stdout. A file at a path appears only when it is complete. The
            extensions .gz, .xz and .bz2 compress it.

    Raises:
        CorpusError: A text contains a line end, tokens are not pieces of their text, or the file cannot be written.

    >>> from pathlib import Path
    >>> import tagwise as tw
    >>> write_raw(tw.spans.span_corpus(["Anna left. She did."], [[]]), "texts.txt")
    >>> Path("texts.txt").read_text()
    'Anna left. She did.\n'
    """
    with writer(file) as write:
        for sentence in sentences:
            write(format_raw(sentence))
