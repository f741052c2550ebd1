"""The line of docs/architecture.md, read off the imports: a room uses only what stands before it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE, CRATE = ROOT / "python" / "tagwise", ROOT / "rust" / "src"

#: Rooms and loose modules in the order of the line. What comes later may use what comes earlier.
PYTHON = (
    *("errors", "params", "importing", "writing", "files", "terminal"),
    *("corpus", "metrics", "features", "dataset", "shards", "scores", "torch"),
    *("optimizers", "learners", "decoding", "foreign", "model", "ray", "estimators"),
    *("compat", "compare", "ready", "report", "plot"),
    *("web", "serve", "annotate"),
    *("", "cli", "__main__"),  # "" is the package itself: the names of `tw.`
)
RUST = ("machine", "features", "chain", "dataset", "scores", "learners", "decoding", "foreign", "py")
#: Modules and source files that may lie outside the rooms.
LOOSE_MODULES, LOOSE_SOURCES = 8, 2


# --- Python -------------------------------------------------------------------------------------------------


def room_of(path: Path) -> str:
    """The room of a module of the package, by its place; "" for the package itself."""
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and room of every import of the package, inside functions too; those for type checkers alone are exempt."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = ["." * node.level + (node.module or "")]
            if node.module == "tagwise":
                modules = [f"tagwise.{alias.name}" for alias in node.names]
        for module in modules:
            if module.split(".")[0] in ("tagwise", ""):
                yield node.lineno, module.partition(".")[2].split(".")[0]
        yield from imported(node)


def python_faults(path: Path, source: str) -> list[str]:
    """Imports of a module that go up the line."""
    here = room_of(path)
    out = []
    for line, room in imported(ast.parse(source)):
        if room.startswith("_"):  # the native module
            continue
        if room not in PYTHON or PYTHON.index(room) > PYTHON.index(here):
            out.append(f"{path.relative_to(ROOT)}:{line}: {here or 'tagwise'} uses {room or 'tagwise'}")
    return out


MODULES = sorted(PACKAGE.rglob("*.py"))


def test_python_goes_one_way() -> None:
    """No module uses a room that stands behind its own."""
    faults = [fault for path in MODULES for fault in python_faults(path, path.read_text("utf-8"))]
    assert not faults, "\n".join(faults)


def test_the_package_is_imported_by_its_modules_names() -> None:
    """Absolute imports, and no `from tagwise import ...` inside: the package itself stands at the end of the line."""
    wrong = re.compile(r"^\s*(from tagwise import|from \.)", re.M)
    assert not [str(path) for path in MODULES if wrong.search(path.read_text("utf-8"))]


def test_few_modules_are_loose() -> None:
    """Everything else is in a room."""
    loose = [path.name for path in PACKAGE.glob("*.py")]
    assert len(loose) <= LOOSE_MODULES, loose
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert rooms <= set(PYTHON)


def test_a_wrong_import_is_named() -> None:
    """The file, the line, both rooms; in functions too, not for type checkers, not of what lies before."""
    source = (
        "import tagwise._core as _core\n"
        "from tagwise.corpus.schemes import spans\n"
        "if TYPE_CHECKING:\n    from tagwise.model.model import Model\n"
        "def late():\n    from tagwise.decoding import paths\n"
        "import tagwise as tw\n"
        "from tagwise import nowhere\n"
    )
    assert python_faults(PACKAGE / "scores" / "new.py", source) == [
        "python/tagwise/scores/new.py:6: scores uses decoding",
        "python/tagwise/scores/new.py:7: scores uses tagwise",
        "python/tagwise/scores/new.py:8: scores uses nowhere",
    ]


# --- Rust ---------------------------------------------------------------------------------------------------


def without_tests(source: str) -> str:
    """A source file up to its tests, which may use anything; comments are blanked, lines stay."""
    source = re.split(r"(?m)^#\[cfg\((?:all\()?test\b", source)[0]
    return re.sub(r"//[^\n]*", "", source)


def rust_faults(path: Path, source: str) -> list[str]:
    """Uses of `crate::room` that go up the line, groups such as `crate::{a, b}` included."""
    here = path.relative_to(CRATE).parts[0].removesuffix(".rs")
    out = []
    code = without_tests(source)
    for found in re.finditer(r"\bcrate::(?:(\w+)|\{([^;]*?)\};)", code):
        names = (
            [found[1]] if found[1] else re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"\{[^{}]*\}", "", found[2]))
        )
        line = code.count("\n", 0, found.start()) + 1
        for room in names:
            if room in RUST and RUST.index(room) > RUST.index(here):
                out.append(f"{path.relative_to(ROOT)}:{line}: {here} uses {room}")
    return out


def test_rust_goes_one_way() -> None:
    """No source file uses a room that stands behind its own."""
    sources = [path for path in sorted(CRATE.rglob("*.rs")) if path.parent != CRATE]
    faults = [fault for path in sources for fault in rust_faults(path, path.read_text("utf-8"))]
    assert not faults, "\n".join(faults)
    loose = [path.name for path in CRATE.glob("*.rs")]
    assert len(loose) <= LOOSE_SOURCES, loose
    assert {path.name for path in CRATE.iterdir() if path.is_dir()} <= set(RUST)


def test_a_wrong_use_is_named() -> None:
    """The file, the line, both rooms; not in comments, not in tests."""
    source = (
        "//! crate::decoding is far away\n"
        "use crate::{\n    decoding::best::Output,\n    machine::simd,\n};\n"
        "fn f() { crate::py::common::pool() }\n"
        "#[cfg(test)]\nmod tests { use crate::learners; }\n"
    )
    assert rust_faults(CRATE / "scores" / "new.rs", source) == [
        "rust/src/scores/new.rs:2: scores uses decoding",
        "rust/src/scores/new.rs:6: scores uses py",
    ]
