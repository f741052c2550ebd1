"""Warnings about files of rows that were probably not read as intended.

They have a header among the tokens, no sentence ends, or whole texts as tokens.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from tagwise.corpus.conll import LABEL
from tagwise.corpus.sentence import Sentence
from tagwise.corpus.streams import shown

#: Tokens of a single sentence from which on its file probably has no sentence ends.
LONG = 200
#: Number of first tokens that are searched for texts of several words.
_FIRST = 20

logger = logging.getLogger("tagwise")


def checked_rows(source: str, sentences: Iterator[Sentence]) -> Iterator[Sentence]:
    """Yield sentences, and log a warning after the last of them.

    There is one if the only sentence has more than `LONG` tokens, if the first tokens are texts of several words, or if
    the label of the first row does not occur again and is unlike the usual ones, which are all others or most of many.
    """
    count = tokens = 0
    texts: list[str] = []  # the first tokens
    usual = True  # whether all labels but that of the first row are usual ones
    seen: set[str] = set()
    label: str | None = None  # of the first row, until it occurs again
    first = ""
    for sentence in sentences:
        labels = sentence.labels if sentence.label is not None else []
        if count == 0 and labels and not LABEL.fullmatch(labels[0]):
            label, first = labels[0], sentence.tokens[0]
            if labels.count(label) > 1:
                label = None
        elif label is not None and label in labels:
            label = None
        if label is not None and usual:
            new = {y for y in labels if y not in seen and y != label}
            usual = all(map(LABEL.fullmatch, new))
            seen |= new
        if len(texts) < _FIRST:
            texts += sentence.tokens[:_FIRST]
        count += 1
        tokens += len(sentence)
        yield sentence
    if count == 1 and tokens > LONG:
        logger.warning(
            "%s: the file is one sentence of %s tokens. Write a blank line between sentences, or a header with a "
            "column sentence_id.",
            source,
            f"{tokens:,}",
        )
    if texts and 2 * sum(text.count(" ") > 1 for text in texts) > len(texts):
        logger.warning(
            "%s: most tokens have several words, such as %s. Write one token per row. tagwise labels tokens, not whole "
            "texts.",
            source,
            shown(next(text for text in texts if text.count(" ") > 1)),
        )
    if label is not None and (tokens > LONG or (usual and seen)):
        logger.warning(
            "%s: the label %r occurs only in the first row, with the token %r. If that row is a header, name the "
            "columns exactly as it does, or remove it.",
            source,
            label,
            first,
        )
