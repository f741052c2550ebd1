"""Raw text: one untokenized text per line, of one or more sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tagwise.base.exceptions import CorpusError
from tagwise.corpus.columns import OpenFile
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
    """Iterate over the sentences of a file of raw text, one text per line.

    Args:
        file: path, '-' or open file. '-' means stdin. Compression (gz, xz, bz2) is detected from the contents.
        tokenizer: Tokenizer, callable or None, default=None. Tokenizer, or function that maps a text to its tokens.
            None means ``Tokenizer()``. Use the tokenizer of the training corpus.
        encoding: str, default="utf-8". Encoding of the file, which must contain ASCII.

    Returns:
        An iterator over unlabelled `Sentence` objects. Blank lines are skipped.

    Raises:
        CorpusError: The file cannot be read, or the tokens are not pieces of the text. Errors in the file are raised
            during iteration.

    >>> import io
    >>> [sentence.tokens for sentence in iter_raw(io.StringIO("It's late. Go!"))]
    [['It', "'s", 'late', '.'], ['Go', '!']]
    """
    _, chunks = open_text(file, encoding)
    return line_sentences(chunks, tokenizer=tokenizer)


def detect(head: str, rows: list[str]) -> bool:
    """Return True, because every text can be read as raw text."""
    return True


def iter_open(file: OpenFile) -> Iterator[Sentence]:
    """Return the sentences of an open file."""
    return line_sentences(file.chunks, names_of(file))


def line_sentences(
    chunks: Iterator[str], names: tuple[str, str] = ("word", "label"), *, tokenizer: Tokenizes | None = None
) -> Iterator[Sentence]:
    """Yield sentences. The lines of each chunk are tokenized in one call."""
    for batch in line_batches(chunks):
        texts = tokenized([text for _, text in batch], tokenizer)
        for (line, _), text in zip(batch, texts):
            if len(text):
                yield from sentences_of(text, names=names, line=line)


def read_raw(file: File, *, tokenizer: Tokenizes | None = None, encoding: str = "utf-8") -> Corpus:
    """Read a file of raw text, one text per line. For tokenized text, use `read_text`.

    Args:
        file: path, '-' or open file. '-' means stdin. Compression (gz, xz, bz2) is detected from the contents.
        tokenizer: Tokenizer, callable or None, default=None. Tokenizer, or function that maps a text to its tokens.
            None means ``Tokenizer()``. Use the tokenizer of the training corpus.
        encoding: str, default="utf-8". Encoding of the file, which must contain ASCII.

    Returns:
        An unlabelled `Corpus` with the column ``word``, in which a text may be several sentences.

    Raises:
        CorpusError: The file cannot be read, or the tokens are not pieces of the text.

    >>> import io
    >>> len(read_raw(io.StringIO("It's late. Go!")))
    2
    """
    return Corpus(
        iter_raw(file, tokenizer=tokenizer, encoding=encoding), columns=("word",), source=source_name(file)
    )


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
    >>> write_raw(tw.span_corpus(["Anna left. She did."], [[]]), "texts.txt")
    >>> Path("texts.txt").read_text()
    'Anna left. She did.\n'
    """
    with writer(file) as write:
        for sentence in sentences:
            write(format_raw(sentence))
