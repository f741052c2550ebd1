"""The order of packages, read off the imports: a package imports only those before it, and the library no extension.

Imports inside functions and imports for type checkers count like any other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE, CRATE = ROOT / "python" / "tagwise", ROOT / "rust" / "src"

#: Packages of the library, in order: each may import itself and those before it.
LIBRARY = (
    *("base", "corpus", "evaluation", "features", "dataset", "scores"),
    *("optimizers", "learners", "decoding", "model", "estimators"),
)
#: Extensions may import the library and the extensions before them.
EXTENSIONS = ("torch", "ray", "compat", "apps", "cli")
#: Modules outside of packages. They wire everything together and may import everything.
LOOSE = ("__init__", "__main__")
RUST = ("machine", "features", "chain", "dataset", "scores", "learners", "decoding", "foreign", "py")
LOOSE_SOURCES = 2


# --- Python -------------------------------------------------------------------------------------------------


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    parts = ["tagwise", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import of the package, wherever it stands; the native module is left out."""
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.split(".")[0] == "tagwise" and not name.startswith("tagwise._core"):
                yield node.lineno, name


def package_of(name: str) -> str:
    """The package below `tagwise` that a dotted name belongs to; "" for `tagwise` itself."""
    return [*name.split("."), ""][1]


def faults(path: Path, source: str) -> list[str]:
    """Imports of a module that its package may not have."""
    here, order = package_of(name_of(path)), (*LIBRARY, *EXTENSIONS)
    if here in ("", "__main__"):
        return []
    out = []
    for line, name in imported(source):
        package = package_of(name)
        if package not in order[: order.index(here) + 1] and not (here == "cli" and package == ""):
            out.append(f"{path.relative_to(ROOT)}:{line}: {here} imports {name}")
    return out


def test_packages_import_in_order() -> None:
    found = [fault for path in MODULES.values() for fault in faults(path, path.read_text("utf-8"))]
    assert not found, "\n".join(found)


def module_of(name: str) -> str:
    """The module that an imported name is, or is in."""
    while name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def test_no_modules_import_each_other() -> None:
    """No cycle between modules, also through several of them, counting lazy and type-only imports."""
    graph = {
        name: {module_of(found) for _, found in imported(path.read_text("utf-8"))} - {name}
        for name, path in MODULES.items()
        if name != "tagwise"
    }
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join((*above[above.index(name) :], name))
        if name in done or name not in graph:
            return
        for other in sorted(graph[name]):
            visit(other, (*above, name))
        done.add(name)

    for name in graph:
        visit(name, ())


def test_imports_are_absolute() -> None:
    """`from tagwise.corpus...`, never `from .` and never from the package itself, which is above all of them."""
    wrong = re.compile(r"^\s*(from tagwise import|from \.)", re.M)
    assert not [str(path) for path in MODULES.values() if wrong.search(path.read_text("utf-8"))]


def test_every_module_is_in_a_package() -> None:
    assert sorted(path.stem for path in PACKAGE.glob("*.py")) == sorted(LOOSE)
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages == {*LIBRARY, *EXTENSIONS}


def test_a_wrong_import_is_reported() -> None:
    """With file, line and both packages: in functions and for type checkers too."""
    source = (
        "import tagwise._core as _core\n"
        "from tagwise.corpus.schemes import spans\n"
        "if TYPE_CHECKING:\n    from tagwise.model.model import Model\n"
        "def late():\n    from tagwise.decoding import paths\n"
        "import tagwise.torch\n"
        "from tagwise.nowhere import nothing\n"
    )
    assert sorted(faults(PACKAGE / "scores" / "new.py", source)) == [
        "python/tagwise/scores/new.py:4: scores imports tagwise.model.model.Model",
        "python/tagwise/scores/new.py:6: scores imports tagwise.decoding.paths",
        "python/tagwise/scores/new.py:7: scores imports tagwise.torch",
        "python/tagwise/scores/new.py:8: scores imports tagwise.nowhere.nothing",
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
