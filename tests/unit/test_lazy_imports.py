"""`import tagwise` imports nothing heavy: public names are resolved on first access."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import tagwise as tw

SOURCE = ast.parse(Path(tw.__file__).read_text("utf-8"))


def declared() -> dict[str, str]:
    """Return the module of each name, from the imports for type checkers."""
    (block,) = (
        node for node in SOURCE.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    out = {}
    for node in block.body:
        if isinstance(node, ast.ImportFrom):
            out |= {alias.name: str(node.module) for alias in node.names}
        elif isinstance(node, ast.Import):
            out |= {alias.asname or alias.name: alias.name for alias in node.names}
    return out


def test_lazy_names_equal_the_static_ones() -> None:
    """Exactly the names of `__all__`, each from its module."""
    names = declared()
    assert {*names, "__version__"} == set(tw.__all__)
    assert dir(tw) == sorted(tw.__all__)
    for name, module in names.items():
        home = importlib.import_module(module)
        expected = home if module == f"tagwise.{name}" else getattr(home, name)
        assert getattr(tw, name) is expected, name


def test_fresh_process_imports_only_accessed_names() -> None:
    """Only accessed names are imported, and later imports do not change what a name refers to."""
    code = """
import sys
import tagwise as tw
assert not {"numpy", "rich", "tagwise.estimators", "tagwise.apps.compare"} & set(sys.modules), sorted(sys.modules)
import tagwise.cli
assert not {"torch", "tagwise.torch", "ray", "tagwise.ray"} & set(sys.modules)
import tagwise.apps.compare
import tagwise.apps.compare.table
assert tw.compare.__name__ == "compare" and callable(tw.compare)
assert tw.spans.__name__ == "tagwise.spans" and tw.plot.__name__ == "tagwise.plot"
assert tw.corpus.formats.read is tw.read
for name in ("nowhere", "_nowhere", "__wrapped__"):
    try:
        getattr(tw, name)
    except AttributeError as error:
        assert name in str(error)
    else:
        raise SystemExit(name)
from tagwise import *
assert CRF is tw.CRF
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_compare_function_can_be_replaced(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Assignments to `tw.compare` work. Only the module of that name cannot replace the function."""
    monkeypatch.setattr(tw, "compare", len)
    assert tw.compare is len
    monkeypatch.undo()
    assert callable(tw.compare)
    assert not isinstance(tw.compare, ModuleType)
