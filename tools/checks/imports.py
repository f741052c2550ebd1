"""Imports: a package imports only packages before it, and the library does not import extensions.

Imports inside functions and imports for type checkers count like any other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tools.checks import ROOT

PACKAGE, CRATE = ROOT / "python" / "tagwise", ROOT / "rust" / "src"

#: Packages of the library, in order. Each may import itself and those before it.
LIBRARY = (
    *("base", "corpus", "evaluation", "features", "dataset", "scores"),
    *("optimizers", "learners", "decoding", "model", "estimators"),
)
#: Extensions may import the library and the extensions before them.
EXTENSIONS = ("torch", "ray", "compat", "apps", "cli")
#: Modules outside of packages. They connect everything and may import everything.
LOOSE = ("__init__", "__main__", "exceptions", "lattice", "losses", "plot", "scorers", "spans")
RUST = (
    "machine",
    "features",
    "classes",
    "chain",
    "dataset",
    "scores",
    "learners",
    "decoding",
    "foreign",
    "py",
)
LOOSE_SOURCES = 2


# --- Python -------------------------------------------------------------------------------------------------


def name_of(path: Path) -> str:
    """Return the dotted name of a module."""
    parts = ["tagwise", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of every import of the package, except the native module."""
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
    """Return the package below `tagwise` of a dotted name, or "" for `tagwise` itself."""
    return [*name.split("."), ""][1]


def faults(path: Path, source: str) -> list[str]:
    """Return the imports of a module that its package may not have.

    >>> late = "def late():\\n    from tagwise.decoding import paths\\nimport tagwise.torch, tagwise.corpus.schemes"
    >>> for fault in faults(PACKAGE / "scores" / "mymodule.py", late):
    ...     print(fault)
    python/tagwise/scores/mymodule.py:3: scores imports tagwise.torch
    python/tagwise/scores/mymodule.py:2: scores imports tagwise.decoding.paths
    """
    here, order = package_of(name_of(path)), (*LIBRARY, *EXTENSIONS)
    if here == "" or here in LOOSE:
        return []
    out = []
    for line, name in imported(source):
        package = package_of(name)
        if package not in order[: order.index(here) + 1] and not (here == "cli" and package == ""):
            out.append(f"{path.relative_to(ROOT)}:{line}: {here} imports {name}")
    return out


def check_order() -> Iterator[str]:
    """No package imports a later one."""
    for path in MODULES.values():
        yield from faults(path, path.read_text("utf-8"))


def module_of(name: str) -> str:
    """Return the module that an imported name is or belongs to."""
    while name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def check_cycles() -> Iterator[str]:
    """Modules have no cyclic imports, including lazy and type-only imports."""
    graph = {
        name: {module_of(found) for _, found in imported(path.read_text("utf-8"))} - {name}
        for name, path in MODULES.items()
        if name != "tagwise"
    }
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> Iterator[str]:
        if name in above:
            yield " -> ".join((*above[above.index(name) :], name))
        elif name not in done and name in graph:
            for other in sorted(graph[name]):
                yield from visit(other, (*above, name))
            done.add(name)

    for name in graph:
        yield from visit(name, ())


def check_places() -> Iterator[str]:
    """Imports are absolute and never from the package itself, and every module is in a known package."""
    wrong = re.compile(r"^\s*(from tagwise import|from \.)", re.M)
    yield from (
        f"{path}: relative import" for path in MODULES.values() if wrong.search(path.read_text("utf-8"))
    )
    loose, packages = (
        {p.stem for p in PACKAGE.glob("*.py")},
        {p.parent.name for p in PACKAGE.glob("*/__init__.py")},
    )
    if loose != set(LOOSE) or packages != {*LIBRARY, *EXTENSIONS}:
        yield f"unexpected modules or packages: {sorted(loose)}, {sorted(packages)}"


#: Functions of NumPy that call BLAS, which starts threads in addition to those of `n_jobs`.
BLAS = ("dot", "vdot", "inner", "matmul", "tensordot", "einsum", "linalg")


def products(source: str) -> list[str]:
    """Return the products of vectors or matrices that NumPy computes.

    >>> products("a @ b, np.linalg.norm(a), _core.dot(a, a, 1)")
    ['a @ b', 'np.linalg']
    """
    out = []
    for node in ast.walk(ast.parse(source)):
        named = isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np" and node.attr in BLAS
        if named or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)):
            out.append(ast.unparse(node))
    return out


def check_products() -> Iterator[str]:
    """Training uses the vector arithmetic of the core."""
    for package in ("optimizers", "learners"):
        for path in (PACKAGE / package).rglob("*.py"):
            yield from (
                f"{path.name}: {found}, use _core instead of NumPy"
                for found in products(path.read_text("utf-8"))
            )


# --- Rust ---------------------------------------------------------------------------------------------------


def without_tests(source: str) -> str:
    """Return a source file up to its tests, which may use anything, without comments and with all lines."""
    source = re.split(r"(?m)^#\[cfg\((?:all\()?test\b", source)[0]
    return re.sub(r"//[^\n]*", "", source)


def rust_faults(path: Path, source: str) -> list[str]:
    """Return the uses of later modules, including groups such as `crate::{a, b}`, except in comments and tests.

    >>> source = "// crate::py\\nuse crate::{decoding::best::Output, machine::simd};\\n#[cfg(test)]\\nuse crate::py;"
    >>> rust_faults(CRATE / "scores" / "mymodule.rs", source)
    ['rust/src/scores/mymodule.rs:2: scores uses decoding']
    """
    here = path.relative_to(CRATE).parts[0].removesuffix(".rs")
    out = []
    code = without_tests(source)
    for found in re.finditer(r"\bcrate::(?:(\w+)|\{([^;]*?)\};)", code):
        names = (
            [found[1]] if found[1] else re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"\{[^{}]*\}", "", found[2]))
        )
        line = code.count("\n", 0, found.start()) + 1
        for module in names:
            if module in RUST and RUST.index(module) > RUST.index(here):
                out.append(f"{path.relative_to(ROOT)}:{line}: {here} uses {module}")
    return out


def check_rust() -> Iterator[str]:
    """No source file uses a module after its own."""
    for path in sorted(CRATE.rglob("*.rs")):
        if path.parent != CRATE:
            yield from rust_faults(path, path.read_text("utf-8"))
    loose = [path.name for path in CRATE.glob("*.rs")]
    folders = {path.name for path in CRATE.iterdir() if path.is_dir()}
    if len(loose) > LOOSE_SOURCES or not folders <= set(RUST):
        yield f"unexpected files or folders: {loose}, {sorted(folders)}"
