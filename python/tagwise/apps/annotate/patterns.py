"""TermList that pre-label sentences: terms of a label, as lists of words.

A file has a line per pattern, as JSON objects with `label` and `pattern` (a text, or a list of tokens with `lower` or
`text` as Prodigy writes them), or as a label and a term separated by a tab.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from tagwise.apps.annotate.folder import check_label
from tagwise.base.domains import DomainError
from tagwise.base.exceptions import FileError, ParameterError
from tagwise.base.files.regular import read_regular
from tagwise.base.files.sealed import parsed
from tagwise.corpus.text.tokenizer import Tokenizer

#: Maximum bytes of a file of patterns.
MOST_PATTERNS = 1 << 26


class TermList:
    """Terms by their words. A word matches if it is equal, or equal without regard to case if the term says so.

    Args:
        terms: Label and words of each term, and whether case matters.
    """

    def __init__(self, terms: Iterable[tuple[str, Sequence[str], bool]]) -> None:
        self.labels: list[str] = []
        self._terms: dict[str, list[tuple[tuple[str, ...], str, bool]]] = {}  # by the first word without case
        for label, words, exact in terms:
            if label not in self.labels:
                self.labels.append(label)
            if words:
                key = tuple(words) if exact else tuple(word.casefold() for word in words)
                self._terms.setdefault(words[0].casefold(), []).append((key, label, exact))
        for found in self._terms.values():
            found.sort(key=lambda one: -len(one[0]))

    def spans(self, tokens: Sequence[str]) -> list[tuple[int, int, str]]:
        """Return the longest matches from left to right as (begin, end, label)."""
        folded = [word.casefold() for word in tokens]
        out, t = [], 0
        while t < len(tokens):
            for words, label, exact in self._terms.get(folded[t], ()):
                end = t + len(words)
                if tuple((tokens if exact else folded)[t:end]) == words:
                    out.append((t, end, label))
                    t = end
                    break
            else:
                t += 1
        return out


def read_patterns(path: str | os.PathLike[str]) -> TermList:
    """Read a file of patterns.

    Raises:
        ParameterError: A line is not a pattern. The message has its number.
    """
    remedy = "Give a file with a JSON object, or a label, a tab and a term, per line."
    text = read_regular(path, MOST_PATTERNS, FileError, remedy).decode("utf-8-sig", "replace")
    terms, tokenizer = [], Tokenizer()
    for n, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            label, words, exact = _pattern(line, tokenizer)
            terms.append((check_label(label), words, exact))
        except (DomainError, ParameterError, ValueError) as error:
            raise ParameterError(f"{os.fspath(path)}:{n}: {error}. {remedy}") from error
    return TermList(terms)


def _pattern(line: str, tokenizer: Tokenizer) -> tuple[str, list[str], bool]:
    """Return label, words and whether case matters."""
    if not line.lstrip().startswith("{"):
        label, tab, term = line.partition("\t")
        if not tab:
            raise ValueError("expected a label, a tab and a term")
        return label.strip(), list(tokenizer(term.strip()).tokens), False
    found = parsed(line)
    label, pattern = found.get("label"), found.get("pattern")
    if isinstance(pattern, str):
        return label, list(tokenizer(pattern).tokens), False
    if not isinstance(pattern, list) or not pattern:
        raise ValueError("expected a pattern that is a text or a list of tokens")
    words, kinds = [], set()
    for token in pattern:
        word, kind = _token(token)
        words.append(word)
        kinds.add(kind)
    if len(kinds) > 1:
        raise ValueError("expected tokens that all have `lower`, or all `text`")
    return label, words, kinds == {"text"}


def _token(token: Any) -> tuple[str, str]:
    """Return the word of a token pattern, and whether it is `lower` or `text`."""
    for name, kind in (("lower", "lower"), ("text", "text"), ("orth", "text")):
        for key, value in token.items() if isinstance(token, dict) and len(token) == 1 else ():
            if key.lower() == name and isinstance(value, str):
                return value, kind
    raise ValueError(f"a token {str(token)[:60]!r}: only `lower` and `text` are supported")
