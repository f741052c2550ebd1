"""Raw text: one text a line, of one sentence or more, that is yet to be cut into tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tagwise.base.exceptions import CorpusError
from tagwise.corpus.columns import Opened
from tagwise.corpus.row_blocks import line_batches
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.streams import File, open_text, shown, source_name, writer
from tagwise.corpus.text.span_jsonl import names_of, text_of
from tagwise.corpus.text.spans import CONTINUED, sentences_of
from tagwise.corpus.text.tokenizer import Tokenizes, tokenized

NAME = "raw"


def iter_raw(
    file: File, *, tokenizer: Tokenizes | None = None, encoding: str = "utf-8"
) -> Iterator[Sentence]:
    """Unlabelled sentences of a file with one text a line; tokenizer: that of the library unless given.

    >>> import io
    >>> [sentence.tokens for sentence in iter_raw(io.StringIO("It's late. Go!"))]
    [['It', "'s", 'late', '.'], ['Go', '!']]
    """
    _, chunks = open_text(file, encoding)
    return line_sentences(chunks, tokenizer=tokenizer)


def looks(head: str, rows: list[str]) -> bool:
    """Any text is raw text."""
    return True


def opened(file: Opened) -> Iterator[Sentence]:
    """The sentences of an open file."""
    return line_sentences(file.chunks, names_of(file))


def line_sentences(
    chunks: Iterator[str], names: tuple[str, str] = ("word", "label"), *, tokenizer: Tokenizes | None = None
) -> Iterator[Sentence]:
    """Sentences, the lines of a chunk tokenized at once."""
    for batch in line_batches(chunks):
        texts = tokenized([text for _, text in batch], tokenizer)
        for (line, _), text in zip(batch, texts):
            if len(text):
                yield from sentences_of(text, names=names, line=line)


def read_raw(file: File, *, tokenizer: Tokenizes | None = None, encoding: str = "utf-8") -> Corpus:
    """A whole file of raw text as an unlabelled Corpus; the arguments are those of iter_raw.

    >>> import io
    >>> len(read_raw(io.StringIO("It's late. Go!")))
    2
    """
    return Corpus(
        iter_raw(file, tokenizer=tokenizer, encoding=encoding), columns=("word",), source=source_name(file)
    )


def format_raw(sentence: Sentence, end: str = "\n") -> str:
    """The text of a sentence, or its piece of one; `end` closes a text that does not go on."""
    text = text_of(sentence).text
    if any(c in text for c in "\n\r\0"):
        raise CorpusError(
            f"{shown(text)}: a text with a line end in it cannot stand in a line. Write spans, which hold any text."
        )
    return text if (sentence.meta or {}).get(CONTINUED) is True else text + end


def write_raw(sentences: Iterable[Sentence], file: File) -> None:
    r"""Write the texts of sentences, one a line, without labels; sentences of one text are put together.

    >>> from pathlib import Path
    >>> import tagwise as tw
    >>> write_raw(tw.span_corpus(["Anna left. She did."], [[]]), "texts.txt")
    >>> Path("texts.txt").read_text()
    'Anna left. She did.\n'
    """
    with writer(file) as write:
        for sentence in sentences:
            write(format_raw(sentence))


__all__ = ["format_raw", "iter_raw", "read_raw", "write_raw"]
