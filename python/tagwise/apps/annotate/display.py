"""Sentences as plain data for the page: their tokens, and the places at which their text has no space."""

from __future__ import annotations

from typing import Any

import numpy as np

from tagwise.base.exceptions import CorpusError
from tagwise.corpus.sentence import Sentence
from tagwise.corpus.text.span_jsonl import text_of
from tagwise.corpus.text.spans import TEXT


def joined(sentence: Sentence) -> list[int]:
    """Return the tokens that the text joins with the next one. A sentence without a text has none."""
    if TEXT not in (sentence.meta or {}):
        return []
    try:
        offsets = text_of(sentence).offsets
    except CorpusError:  # the text of a folder from elsewhere need not contain the tokens
        return []
    found: list[int] = np.flatnonzero(offsets[:-1, 1] == offsets[1:, 0]).tolist()
    return found


def displayed(sentence: Sentence, most: int | None = None) -> dict[str, Any]:
    """Return the first tokens of a sentence, at most `most`, and those that are joined with the next one."""
    tokens = sentence.tokens[:most]
    return {"tokens": tokens, "joined": [t for t in joined(sentence) if t < len(tokens) - 1]}


def contains(sentence: Sentence, text: str) -> bool:
    """Return whether a sentence contains a case-folded text, as tokens separated by spaces or in its own text."""
    if text in " ".join(sentence.tokens).casefold():
        return True
    own = (sentence.meta or {}).get(TEXT)
    return isinstance(own, str) and text in " ".join(own.split()).casefold()


def line_of(sentence: Sentence) -> str:
    """Return a sentence as a line of text, with the spaces of its text."""
    end = len(sentence) - 1
    glued = set(joined(sentence))
    return "".join(word if t in glued or t == end else f"{word} " for t, word in enumerate(sentence.tokens))
