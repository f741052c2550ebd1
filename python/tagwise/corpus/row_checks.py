"""Warnings about files of rows that were probably not read as intended: a header among the tokens, no sentence ends."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from tagwise.corpus.conll import LABEL
from tagwise.corpus.sentence import Sentence

#: Tokens of a single sentence from which on its file probably has no sentence ends.
LONG = 200

logger = logging.getLogger("tagwise")


def checked_rows(source: str, sentences: Iterator[Sentence]) -> Iterator[Sentence]:
    """Yield sentences, and log a warning after the last of them.

    There is one if the only sentence has more than `LONG` tokens, or if the label of the first row is unlike the usual
    ones and does not occur again.
    """
    count = tokens = 0
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
    if label is not None and tokens > LONG:
        logger.warning(
            "%s: the label %r occurs only in the first row, with the token %r. If that row is a header, name the "
            "columns exactly as it does, or remove it.",
            source,
            label,
            first,
        )
