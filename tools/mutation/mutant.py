"""A mutant: one place of one file, and its replacement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Mutant:
    """Bytes [begin, end) of a file and their replacement: a statement is removed, an expression replaced."""

    file: str
    begin: int
    end: int
    kind: str  # kind of the change
    text: str  # replacement, empty for a removed statement
    line: int
    original: str

    def __str__(self) -> str:
        was, now = (" ".join(x.split()) for x in (self.original, self.text))
        return f"{self.file}:{self.line}: {self.kind}: {was[:90]}" + (f"  ->  {now[:90]}" if now else "")


#: Replacements of operators, chosen as typical typing errors.
SWAPS = {
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "//": "*",
    "%": "*",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "&&": "||",
    "||": "&&",
    "and": "or",
    "or": "and",
    "<<": ">>",
    ">>": "<<",
    "&": "|",
    "|": "&",
    "^": "|",
    "in": "not in",
    "not in": "in",
    "is": "is not",
    "is not": "is",
    "+=": "-=",
    "-=": "+=",
    "*=": "/=",
    "/=": "*=",
    "|=": "&=",
    "&=": "|=",
}


def apart(mutants: list[Mutant]) -> list[Mutant]:
    """Return the mutants that do not overlap an earlier one, since two switches cannot share a place."""
    kept: list[Mutant] = []
    for mutant in mutants:
        if all(m.file != mutant.file or m.end <= mutant.begin or mutant.end <= m.begin for m in kept):
            kept.append(mutant)
    return kept
