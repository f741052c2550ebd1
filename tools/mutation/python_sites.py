"""Possible mutants of a Python file, found in its syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .mutant import SWAPS, Mutant

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}

#: Calls without an effect that a test could observe: logging, warnings and casts.
SILENT = re.compile(r"^(logger\.|logging\.|cast\(|warnings\.)")


class Finder:
    """Finder of the mutants of one file."""

    def __init__(self, name: str, source: bytes) -> None:
        self.name, self.source = name, source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return the byte range of a node."""
        at = self.starts
        return (
            at[node.lineno - 1] + node.col_offset,  # type: ignore[attr-defined]
            at[node.end_lineno - 1] + node.end_col_offset,  # type: ignore[attr-defined]
        )

    def text(self, begin: int, end: int) -> str:
        return self.source[begin:end].decode()

    def mutant(self, node: ast.AST, kind: str, text: str) -> Mutant:
        begin, end = self.span(node)
        return Mutant(self.name, begin, end, kind, text, node.lineno, self.text(begin, end))  # type: ignore[attr-defined]

    def swapped(self, node: ast.AST, left: ast.AST, right: ast.AST, old: str, new: str) -> Iterator[Mutant]:
        """Yield a node with the operator between two of its parts replaced."""
        begin, end = self.span(node)
        gap = self.span(left)[1], self.span(right)[0]
        words = re.escape(old).replace(r"\ ", r"\s+")
        between, count = re.subn(
            rf"(?<![\w<>=!*/]){words}(?![\w<>=*/])", new.replace("\\", r"\\"), self.text(*gap), count=1
        )
        if count:
            text = self.text(begin, gap[0]) + between + self.text(gap[1], end)
            yield self.mutant(node, f"{old} to {new}", text)

    def expression(self, node: ast.AST) -> Iterator[Mutant]:
        """Yield the mutants of one expression."""
        if isinstance(node, ast.BinOp):
            old = OPERATORS.get(type(node.op))
            text = isinstance(node.left, (ast.Constant, ast.JoinedStr)) and not isinstance(
                getattr(node.left, "value", None), (int, float)
            )
            if old in SWAPS and not text:
                yield from self.swapped(node, node.left, node.right, old, SWAPS[old])
        elif isinstance(node, ast.BoolOp):
            old = "and" if isinstance(node.op, ast.And) else "or"
            for left, right in zip(node.values, node.values[1:]):
                yield from self.swapped(node, left, right, old, SWAPS[old])
        elif isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
            for op, left, right in zip(node.ops, parts, parts[1:]):
                old = OPERATORS[type(op)]
                yield from self.swapped(node, left, right, old, SWAPS[old])
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
            yield self.mutant(node, "operator dropped", self.text(*self.span(node.operand)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield self.mutant(node, "flag negated", str(not node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            yield self.mutant(node, "number changed", repr(changed(node.value)))
        elif isinstance(node, ast.IfExp):
            test = self.text(*self.span(node.test))
            yield self.mutant(node.test, "condition negated", f"not ({test})")
        elif isinstance(node, ast.Call):
            yield from self.call(node)

    def call(self, node: ast.Call) -> Iterator[Mutant]:
        """Yield a call without one of its keyword arguments."""
        begin, end = self.span(node)
        given = sorted([*node.args, *(k.value for k in node.keywords)], key=lambda a: self.span(a))
        for keyword in node.keywords:
            if keyword.arg is None:
                continue
            at, stop = self.span(keyword)
            place = [self.span(a)[1] for a in given].index(self.span(keyword.value)[1])
            if place > 0:
                at = self.span(given[place - 1])[1]
            else:
                rest = re.match(r"\s*,\s*", self.text(stop, end))
                stop += rest.end() if rest else 0
            yield self.mutant(node, f"{keyword.arg}= dropped", self.text(begin, at) + self.text(stop, end))

    def statement(self, node: ast.stmt) -> Iterator[Mutant]:
        """Yield the mutants of one statement."""
        begin, end = self.span(node)
        text = self.text(begin, end)
        if isinstance(node, ast.Return) and node.value is not None:
            if not (isinstance(node.value, ast.Constant) and node.value.value is None):
                yield self.mutant(node.value, "None returned", "None")
        elif isinstance(node, (ast.If, ast.While)):
            test = self.text(*self.span(node.test))
            if test != "TYPE_CHECKING" and isinstance(node, ast.If):
                yield self.mutant(node.test, "condition negated", f"not ({test})")
        else:
            called = (
                isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not SILENT.match(text)
            )
            placed = isinstance(node, ast.Assign) and isinstance(
                node.targets[0], (ast.Attribute, ast.Subscript)
            )
            if called or placed or isinstance(node, (ast.AugAssign, ast.Raise)):
                yield self.mutant(node, "statement removed", "")

    def walk(self, node: ast.AST) -> Iterator[Mutant]:
        """Yield the mutants below a node, except in types, decorators, patterns and f-strings."""
        if isinstance(node, ast.stmt):
            yield from self.statement(node)
        elif isinstance(node, ast.expr):
            if isinstance(node, (ast.JoinedStr, ast.NamedExpr)):
                return
            yield from self.expression(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "pattern", "type_comment", "bases"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                    continue
                if isinstance(child, ast.AST):
                    yield from self.walk(child)


def changed(value: float) -> float:
    """Return a nearby number."""
    if isinstance(value, int):
        return value + 1 if value != 1 else 2
    return value * 2.0 if value else 1.0


def python_sites(name: str, source: bytes) -> list[Mutant]:
    """Return all mutants of a Python file that still parse."""
    finder = Finder(name, source)
    found = []
    for mutant in dict.fromkeys(finder.walk(ast.parse(source))):
        if "yield" in mutant.original or "await" in mutant.original or ":=" in mutant.original:
            continue
        try:
            ast.parse(f"({mutant.text})" if mutant.text else "pass")
        except SyntaxError:
            continue
        found.append(mutant)
    return found


def switched(source: bytes, mutants: dict[int, Mutant]) -> bytes:
    """Return the file with these mutants, each behind its switch."""
    out = source
    for number, m in sorted(mutants.items(), key=lambda item: -item[1].begin):
        old = source[m.begin : m.end].decode()
        if m.text:
            new = f"(({m.text}) if _mutant({number}) else ({old}))"
        else:
            new = f"if not _mutant({number}): {old}"
        out = out[: m.begin] + new.encode() + out[m.end :]
    future = b"from __future__ import annotations"
    if out.count(future) < 1:
        raise ValueError("the module does not import annotations from __future__")
    return out.replace(future, future + b"; from tagwise._mutants import on as _mutant", 1)
