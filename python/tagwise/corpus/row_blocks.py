"""Helpers of line-based formats: blocks of non-blank lines with line numbers, lines of JSON, and shared strings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tagwise.corpus.streams import check_size, fail, limit, shown

_BLANK = re.compile(r"(?m)^\t+$")
_TRAILING = re.compile(r"(?m) +$")
_LEADING = re.compile(r"(?m)^ +")
_AROUND_TAB = re.compile(r" *\t *")
_SPACES = re.compile(r"[ \t]+")
_BORDER_SPACE = re.compile(r"(?m)^ | $")
_NEWDOC = re.compile(r"#\s*newdoc(?:\s+id\s*=\s*(.*?))?\s*$")
_SHARED_STRINGS = 1 << 16


class StringCache(dict[str, str]):
    """Cache with one object for equal strings, which saves memory and hashing. Its size is bounded, for streams."""

    def column(self, values: Sequence[str]) -> list[str]:
        if len(self) > _SHARED_STRINGS:
            self.clear()
        return list(map(self.setdefault, values, values))


def tidy_tabs(text: str) -> str:
    """Remove spaces around the cells of tab-separated lines, and all characters of blank lines."""
    if " " in text:
        if " \t" in text or "\t " in text:
            text = _AROUND_TAB.sub("\t", text)
        if "\n " in text or text[0] == " ":
            text = _LEADING.sub("", text)
        if " \n" in text:
            text = _TRAILING.sub("", text)
    if "\t\n" in text:
        text = _BLANK.sub("", text)
    return text


def tidy_spaces(text: str) -> str:
    """Separate the cells of each line by exactly one space, and remove all characters of blank lines."""
    if "\t" in text or "  " in text:
        text = _SPACES.sub(" ", text)
    if " \n" in text or "\n " in text or text[0] == " ":
        text = _BORDER_SPACE.sub("", text)
    return text


def blocks(name: str, chunks: Iterator[str], tidy: Callable[[str], str]) -> Iterator[tuple[int, str]]:
    """Yield blocks of non-blank lines, each with the number of its first line.

    Memory is bounded by the size of one chunk and one block, which TAGWISE_MAX_SENTENCE limits.
    """
    parts: list[str] = []
    held, most = 0, limit("TAGWISE_MAX_SENTENCE")
    line = 1
    for chunk in chunks:
        text = tidy(chunk)
        parts.append(text)
        if text[0] != "\n" and "\n\n" not in text:
            held += len(text)
            check_size(name, line, held, most)
            continue
        text = "".join(parts)
        cut = text.rfind("\n\n")
        if cut < 0:  # the file begins with an empty line
            continue
        parts = [text[cut + 2 :]]
        held = len(parts[0])
        for block in text[:cut].split("\n\n"):
            if block and block[0] != "\n" != block[-1]:
                yield line, block
            else:  # consecutive blank lines leave one at the beginning or the end of a block
                kept = block.lstrip("\n")
                if kept:
                    yield line + len(block) - len(kept), kept.rstrip("\n")
            line += block.count("\n") + 2
    text = "".join(parts)
    kept = text.strip("\n")
    if kept:
        yield line + len(text) - len(text.lstrip("\n")), kept


def doc_of(comment: str, doc: str | None) -> str | None:
    """Return the name of the document that a comment begins, or `doc` for any other comment."""
    if "newdoc" in comment:
        match = _NEWDOC.match(comment)
        if match:
            return match[1] or ""
    return doc


def line_batches(chunks: Iterator[str]) -> Iterator[list[tuple[int, str]]]:
    """Yield the unmodified lines of each chunk, with their numbers."""
    number = 0
    for chunk in chunks:
        lines = chunk[:-1].split("\n")
        yield list(enumerate(lines, number + 1))
        number += len(lines)


def lines_of(chunks: Iterator[str]) -> Iterator[tuple[int, str]]:
    """Yield non-blank lines with their numbers, stripped of surrounding spaces and tabs."""
    for batch in line_batches(chunks):
        for number, line in batch:
            line = line.strip(" \t")
            if line:
                yield number, line


def json_value(source: str, line: int, text: str, remedy: str) -> Any:
    """Parse a line of JSON, or raise a CorpusError with the remedy."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as e:
        fail(source, line, f"not valid JSON ({str(e)[:80]}) in {shown(text)}", remedy, e)
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as e:
            fail(source, line, "a lone surrogate (\\ud800 to \\udfff)", "Write whole characters.", e)
    return value


def document_of(source: str, line: int, newdoc: Any) -> str | None:
    """Return the name of the document that the member ``newdoc`` begins, or None if it begins none."""
    if not (newdoc is None or isinstance(newdoc, (str, bool))) or (
        isinstance(newdoc, str) and "\n" in newdoc
    ):
        fail(source, line, "'newdoc' is not a name", "Give a string in one line, or true.")
    return newdoc if isinstance(newdoc, str) else "" if newdoc else None
