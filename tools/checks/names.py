"""Names: mentioned files exist, the reference is complete, type names are unique, enumerations are written once."""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tagwise
from tagwise import _core
from tools.checks import ROOT

PACKAGE = ROOT / "python" / "tagwise"

# --- files --------------------------------------------------------------------------------------------------

NAMED = re.compile(r"(?<![\w./*<-])((?:[\w-]+/)*[\w-]+\.(?:rs|py))(?![\w*/])")
FOLDERS = ("python", "rust", "tests", "benchmarks", "examples", "packaging", "tools")
#: Placeholders, and files of the reader.
EXAMPLES = {"NAME", "mycosts", "mykernels", "mymodule", "features"}
SOURCES = [p for folder in FOLDERS for kind in ("py", "rs") for p in (ROOT / folder).rglob(f"*.{kind}")]
ENDINGS = frozenset(
    "/".join(parts[at:])
    for path in SOURCES
    for parts in [path.relative_to(ROOT).parts]
    for at in range(len(parts))
)


def missing(text: str) -> list[str]:
    """Return the names of source files, or ends of paths, that do not exist.

    >>> missing("tools/checks/names.py, `checks/names.py`, corpus/NAME.py, *.rs, a.rst and docs.rs/pyo3")
    []
    >>> missing("see `rust/src/nowhere.rs` or learners/missing.py: gone.rs")
    ['rust/src/nowhere.rs', 'learners/missing.py', 'gone.rs']
    """
    return [n for n in NAMED.findall(text) if Path(n).stem not in EXAMPLES and n not in ENDINGS]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a page, or the lines of comments and docstrings of a source file."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        yield from enumerate(text.splitlines(), 1)
    elif not NAMED.search(text):
        return
    elif path.suffix == ".rs":
        yield from ((n, s.partition("//")[2]) for n, s in enumerate(text.splitlines(), 1) if "//" in s)
    else:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            docstring = token.type == tokenize.STRING and token.string.startswith(('"""', 'r"""'))
            if token.type == tokenize.COMMENT or docstring:
                yield from enumerate(token.string.splitlines(), token.start[0])


def check_files() -> Iterator[str]:
    """Source files named in pages, docstrings and comments exist. The changelog may name files of the past."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
    for path in [p for p in pages if p.name != "CHANGELOG.md"] + SOURCES:
        for line, text in prose(path) if path != Path(__file__) else ():
            yield from (f"{path.relative_to(ROOT)}:{line}: no file {name}" for name in missing(text))


# --- the reference ------------------------------------------------------------------------------------------

#: Public modules in addition to `tagwise` itself.
PUBLIC = ("torch", "ray", "compat", "compat.pycrfsuite", "compat.sklearn_crfsuite")
#: Submodules that are public as a whole.
MODULES = {"exceptions", "lattice", "losses", "plot", "scorers", "spans"}
#: A string.
NOT_LISTED = {"__version__"}
#: Names in addition to `__all__`, since pages name them.
MORE = {
    "tagwise.apps.pretrained.TaggerInfo",
    "tagwise.corpus.corpus_of",
    "tagwise.corpus.to_series",
    "tagwise.estimators.LEARNERS",
    "tagwise.estimators.RegularizationPath",
    "tagwise.estimators.regularization_path",
    "tagwise.estimators.documents.spacy_component",
    "tagwise.evaluation.Calibration",
    "tagwise.evaluation.Report",
    "tagwise.evaluation.calibration",
    "tagwise.evaluation.find_errors",
    "tagwise.features.resolve",
    "tagwise.features.template_text",
    "tagwise.model.Model",
}
#: Names without an example, with the reason.
NO_EXAMPLE = {
    "tagwise.estimators.documents.spacy_component": "needs spaCy: docs/howto/formats.md",
    "tagwise.corpus.to_series": "needs pandas: docs/howto/formats.md",
    "tagwise.compat.install": "changes a whole process: docs/migrate/crfsuite.md",
    "tagwise.compat.uninstall": "changes a whole process: docs/migrate/crfsuite.md",
    "tagwise.compat.installed": "changes a whole process: docs/migrate/crfsuite.md",
    "tagwise.compat.pycrfsuite.Trainer": "the example of its module",
    "tagwise.compat.pycrfsuite.BaseTrainer": "the example of its module",
    "tagwise.compat.pycrfsuite.Tagger": "the example of its module",
    "tagwise.compat.sklearn_crfsuite.CRF": "needs scikit-learn: docs/migrate/crfsuite.md",
}


def source(module: str) -> Path:
    """Return the file of a module."""
    at = PACKAGE.joinpath(*module.split(".")) if module else PACKAGE
    return at / "__init__.py" if at.is_dir() else at.with_suffix(".py")


@functools.cache
def parsed(path: Path) -> ast.Module:
    """Parse a file, once."""
    return ast.parse(path.read_text("utf-8"))


def exported(module: str) -> list[str]:
    """Return `__all__` of a module from its source, so that neither torch nor Ray is needed."""
    for node in parsed(source(module)).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise ValueError(f"{module} has no __all__")


def expected() -> set[str]:
    """Return every public name by its full path."""
    out = {f"tagwise.{name}" for name in tagwise.__all__ if name not in NOT_LISTED}
    out |= {f"tagwise.{module}.{name}" for module in PUBLIC for name in exported(module)}
    return out | MORE


def definition(name: str) -> ast.ClassDef | ast.FunctionDef | ast.Module | None:
    """Return the node that defines a name, found through the imports of its package. None for a value."""
    short = name.removeprefix("tagwise.")
    module, _, last = short.rpartition(".")
    if short in MODULES:
        return parsed(source(short))
    tree = parsed(source(module))
    guarded = [n for node in tree.body if isinstance(node, ast.If) for n in node.body]
    for node in [*tree.body, *guarded]:  # type-checking imports are inside a condition
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == last:
            return node
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tagwise."):
            for alias in node.names:
                if (alias.asname or alias.name) == last:
                    return definition(f"{node.module}.{alias.name}")
    return None


def undocumented(name: str) -> Iterator[str]:
    """Yield the parts of the documentation of a public name that are missing: docstrings, an example."""
    node = definition(name)
    if node is None:
        if not name.rpartition(".")[2].isupper():
            yield "not defined"
        return
    docstring = ast.get_docstring(node) or ""
    if not docstring:
        yield "no docstring"
    inside = [] if isinstance(node, ast.FunctionDef) else node.body
    functions = [n for n in inside if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]
    silent = sorted({n.name for n in functions} - {n.name for n in functions if ast.get_docstring(n)})
    if silent and not (isinstance(node, ast.ClassDef) and node.bases):
        yield f"no docstring for {', '.join(silent)}"
    has_none = isinstance(node, ast.Module) or (isinstance(node, ast.ClassDef) and name.endswith("Error"))
    if not has_none and (">>> " in docstring) == (name in NO_EXAMPLE):
        yield "must have either an example or a reason in NO_EXAMPLE"


def check_reference() -> Iterator[str]:
    """The pages of the reference have every public name once, and each has a docstring and an example."""
    pages = sorted((ROOT / "docs" / "reference").glob("*.md"))
    found = [name for page in pages for name in re.findall(r"^::: (\S+)", page.read_text("utf-8"), re.M)]
    yield from (f"{name} is listed twice" for name in sorted(set(found)) if found.count(name) > 1)
    yield from (f"{name} is missing" for name in sorted(expected() - set(found)))
    yield from (f"{name} is not public" for name in sorted(set(found) - expected()))
    yield from (f"{name}: {fault}" for name in sorted(expected()) for fault in undocumented(name))


# --- enumerations of the core -------------------------------------------------------------------------------

ENUMERATIONS: dict[str, set[Any]] = {
    "loss": set(_core.LOSSES),
    "online learner": set(_core.RULES),
    "cost": {name for name, _ in _core.COSTS},
    "kernel": {name for name, _ in _core.KERNELS},
    "form": set(_core.FORMS),
    "slack": set(_core.SLACKS),
    "bound": set(_core.BOUNDS),
    "boosted loss": set(_core.BOOSTED),
    "sum over label sequences": set(_core.SUMS),
    "list that is searched": set(_core.ONCE_LISTS),
}
#: Tables that must have a row for every name: module, enumeration, name of the table.
TABLES = (("torch/formulas.py", "loss", "FORMULAS"),)


def second_lists(code: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that write out an enumeration of the core. Types (`Literal[...]`) and larger tables do not count.

    >>> list(second_lists(f"A = 1\\nB = {_core.LOSSES[::-1]!r}"))
    [(2, 'loss')]
    >>> list(second_lists('{"linear": (), "rbf": 1, "poly": 2}'))
    [(1, 'kernel')]
    >>> list(second_lists(f"x = 'log', 'exp'; y: Literal[{', '.join(map(repr, _core.LOSSES))}]"))
    []
    """
    tree = ast.parse(code)
    types = {
        id(x.slice)
        for x in ast.walk(tree)
        if isinstance(x, ast.Subscript) and "Literal" in ast.unparse(x.value)
    }
    for node in ast.walk(tree):
        if isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.Dict)) and id(node) not in types:
            parts = node.keys if isinstance(node, ast.Dict) else node.elts
            found = {x.value for x in parts if isinstance(x, ast.Constant)}
            for enumeration, names in ENUMERATIONS.items():
                if names <= found and len(found - names) <= 1:
                    yield node.lineno, enumeration


def names_compared(code: str) -> list[str]:
    """Return the comparisons of losses by name. "log" may have a fast path.

    >>> names_compared('if self.loss == "exp": pass')
    ["self.loss == 'exp'"]
    >>> names_compared('if loss.startswith("pointwise"): pass')
    ["loss.startswith('pointwise')"]
    """
    out = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Compare):
            both = ast.unparse(node.left), *(ast.unparse(x) for x in node.comparators)
            if any(x.endswith("loss") for x in both) and "'" in "".join(both) and "'log'" not in both:
                out.append(ast.unparse(node))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("loss.startswith"):
            out.append(ast.unparse(node))
    return out


def check_enumerations() -> Iterator[str]:
    """The package has no second list, tables are complete, and code for devices does not compare losses by name."""
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        for line, enumeration in second_lists(path.read_text("utf-8")):
            if (name, enumeration) not in [table[:2] for table in TABLES]:
                yield f"{name}:{line} lists every {enumeration}"
    for module, enumeration, title in TABLES:
        assigned = [x for x in parsed(PACKAGE / module).body if isinstance(x, ast.AnnAssign)]
        table = next(x.value for x in assigned if ast.unparse(x.target) == title)
        keys = table.keys if isinstance(table, ast.Dict) else []
        if {ast.literal_eval(key) for key in keys if key is not None} != ENUMERATIONS[enumeration]:
            yield f"{module}: {title} needs a row for each {enumeration}"
    for path in (PACKAGE / "torch").rglob("*.py"):  # an unknown loss would train the last branch
        for found in names_compared(path.read_text("utf-8")):
            yield f"{path.relative_to(PACKAGE)}: {found}"


# --- one name for one thing ---------------------------------------------------------------------------------

#: Classes with the name of another class, since they copy the interface of another package.
COPIES = {
    "compat/pycrfsuite/tagger.py": "Tagger",
    "compat/sklearn_crfsuite/estimator.py": "CRF",
    "torch/layer.py": "CRF",  # as in pytorch-crf
}


#: Declarations of types in Rust. Associated types are indented and have a value or a bound.
RUST_TYPE = re.compile(
    r"^(?P<indent> *)(?:pub(?:\([^)]*\))? )?(?:unsafe )?(?P<kind>struct|enum|union|trait|type) (?P<name>[A-Z]\w*)",
    re.M,
)


def rust_types(code: str) -> Iterator[str]:
    """Yield the names of the types that Rust code declares, without associated types.

    >>> list(rust_types("pub(super) struct A<T>(T);\\npub trait B {\\n    type Item;\\n}\\ntype C = u8;\\n// struct D"))
    ['A', 'B', 'C']
    >>> list(rust_types("mod tests {\\n    type D = u8;\\n    struct E;\\n}\\nimpl X for Y {\\n    type F = u8;\\n}"))
    ['D', 'E']
    """
    block = ""
    for line in code.splitlines():
        if line and not line[0].isspace() and not line.startswith(("#", "//", "}")):
            block = line
        found = RUST_TYPE.match(line)
        inside = re.match(r"(?:pub(?:\([^)]*\))? )?(?:unsafe )?(?:impl|trait)\b", block)
        if found and not (found["kind"] == "type" and found["indent"] and inside):
            yield found["name"]


def check_rust_types() -> Iterator[str]:
    """No type name of the core stands for two types."""
    core = ROOT / "rust" / "src"
    found: dict[str, str] = {}
    for path in sorted(core.rglob("*.rs")):
        place = path.relative_to(core).as_posix()
        for name in rust_types(path.read_text("utf-8")):
            if name in found:
                yield f"type {name} is in {found[name]} and {place}"
            found[name] = place


def check_classes() -> Iterator[str]:
    """No two classes of the package have the same name."""
    found: dict[str, str] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and COPIES.get(place) != node.name:
                if node.name in found:
                    yield f"class {node.name} is in {found[node.name]} and {place}"
                found[node.name] = place
