"""A mutant: one place of one file, and what stands there when it is on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Mutant:
    """Bytes [begin, end) of a file, and what stands in their place; a statement is left out, an expression replaced."""

    file: str
    begin: int
    end: int
    kind: str  # what was done, as a word
    text: str  # of the mutant; empty for a statement that is left out
    line: int
    original: str

    def __str__(self) -> str:
        was, now = (" ".join(x.split()) for x in (self.original, self.text))
        return f"{self.file}:{self.line}: {self.kind}: {was[:90]}" + (f"  ->  {now[:90]}" if now else "")


#: What takes the place of an operator: the neighbour that a slip of the hand would write.
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
    """Those that lie in no place of an earlier one: two switches cannot share a place."""
    kept: list[Mutant] = []
    for mutant in mutants:
        if all(m.file != mutant.file or m.end <= mutant.begin or mutant.end <= m.begin for m in kept):
            kept.append(mutant)
    return kept
