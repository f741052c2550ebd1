"""Idioms that the writing guide replaces: at most LIMIT of them per 1,000 words, in every file.

The word list finds habits, not bad sentences. A file that passes still has to be read.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tools.checks import ROOT

#: Idioms per 1,000 words that a file may contain. Short files may contain FREE of them.
LIMIT, FREE = 3.0, 2
FOLDERS = ("python/tagwise", "rust/src", "tests", "tools", "benchmarks", "examples", "packaging")
PAGES = ("README.md", "docs/concepts/glossary.md")
_UNIT = (
    "token|sentence|line|label|word|file|model|core|pass|epoch|round|row|page|shard|request|process|port|cell|feature|"
    "attribute|learner|run|machine|call|second|minute|batch|worker"
)
IDIOMS = {
    "a for per": r"\b(?:one|two|\d[\d,.]*|bytes?|tokens?|words?|lines?|times?|ms|seconds?|labels?|file|page|module|"
    rf"process|thread|slack)\s+an?\s+(?:{_UNIT})\b",
    "is no": r"(?<!there )\b(?:is|are|was|were)\s+no\s+"
    r"(?!longer|more\b|need|way|reason|such|other|better|worse|doubt)\w+",
    "stands, lies": r"\b(?:stands?|lies?|lay)\s+(?:in|on|beside|behind|before|there|above|below|under|apart|for)\b",
    "beside": r"\bbeside\b",
    "where with a pronoun": r"\bwhere\s+(?:it|they|there|that|this|one|all|none|he|she|its|what|nothing)\b",
    "what as a subject": r"(?:^|[.;:,(]\s*)(?:what|whatever|who|whoever)\s+(?!is\s+new|about|if)"
    r"(?:a|an|the|is|are|was|has|have|comes?|goes|does|it|they|one)\b",
    "so many": r"\b(?:so many|as many as|as it comes|as ever|as before)\b",
    "anew, go on": r"\b(?:anew|gone on|goes on|go on|going on|begin behind|behind it|by itself|for itself)\b",
    "software as a person": r"\b(?:told|tells?|asked?|asks?|says? so|with a word|without a word|nobody|somebody|"
    r"knows? nothing|mended|deeds?)\b",
    "those that": r"\b(?:those|that)\s+(?:that|which)\s+(?:are|is|were|was|there)\b",
    "the same, as for": r"(?:^|[\"'/]\s*)(?:The same\b|As for\b|Likewise\b)",
    "house words": r"\b(?:rooms?|floors?|the house|the seam|slow twins?|the line\b(?!s))\b",
    "semicolons": r";(?=\s+[a-z])",
}
_ANY = [re.compile(pattern, re.IGNORECASE | re.MULTILINE) for pattern in IDIOMS.values()]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line numbers and text: lines of a page, comments of Rust and CUDA, comments and strings of Python."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        fenced = False
        for number, line in enumerate(text.splitlines(), 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            elif not fenced and not line.lstrip().startswith("<!--"):
                yield number, re.sub(r"`[^`]*`", "", line)
    elif path.suffix == ".py":
        middle = getattr(tokenize, "FSTRING_MIDDLE", -1)
        docstrings = {
            node.body[0].lineno
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        }
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
            elif token.type in {tokenize.STRING, middle} and " " in token.string:
                # Semicolons of style sheets, HTTP headers and programs in strings are not prose.
                is_prose = token.start[0] in docstrings
                shown = token.string if is_prose else token.string.replace(";", ",")
                yield from enumerate(shown.splitlines(), token.start[0])
    else:
        for number, line in enumerate(text.splitlines(), 1):
            if "//" in line:
                yield number, line.partition("//")[2].lstrip("/!")


def idioms(line: str) -> int:
    """Count the idioms of a line.

    >>> idioms("Return the log partition of each sentence.")
    0
    >>> idioms("What is asked for stands beside it; one token a line.")
    6
    """
    return sum(len(pattern.findall(line)) for pattern in _ANY)


def check_idioms() -> Iterator[str]:
    """Every source file and the pages in PAGES stay below the limit."""
    sources = [p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*"))]
    files = [p for p in sources if p.suffix in {".py", ".rs", ".cu", ".cuh"}]
    for path in [*files, *(ROOT / page for page in PAGES)]:
        if path == Path(__file__):
            continue
        lines = list(prose(path))
        words = sum(len(line.split()) for _, line in lines)
        found = [(number, line.strip()) for number, line in lines if idioms(line)]
        count = sum(idioms(line) for _, line in found)
        if count > max(FREE, LIMIT * words / 1000):
            where = f"{path.relative_to(ROOT)}:{found[0][0]}"
            yield f"{where}: {count} idioms in {words:,} words, the first in {found[0][1][:60]!r}"
