"""Training uses the core's vector arithmetic, with `n_jobs` threads. NumPy's BLAS would start threads of its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tagwise as tw

PACKAGE = Path(tw.__file__).parent
SOURCES = sorted(p for room in ("optimizers", "learners") for p in (PACKAGE / room).glob("*.py"))
#: Functions of NumPy that call BLAS.
BLAS = ("dot", "vdot", "inner", "matmul", "tensordot", "einsum", "linalg")


def calls(source: str) -> list[str]:
    """Products of vectors or matrices that NumPy does."""
    out = []
    for node in ast.walk(ast.parse(source)):
        named = isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np" and node.attr in BLAS
        if named or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)):
            out.append(ast.unparse(node))
    return out


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_no_product_is_numpys(path: Path) -> None:
    assert not calls(path.read_text(encoding="utf-8"))


def test_products_are_noticed() -> None:
    assert calls("a @ b") == ["a @ b"]
    assert calls("np.linalg.norm(a)") == ["np.linalg"]
    assert not calls("_core.dot(a, a, 1)")
