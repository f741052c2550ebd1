"""The reference has every public name, and every public name says what it is and shows how it is used.

Read from the sources: neither mkdocs nor torch nor Ray is needed.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

import tagwise

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "tagwise"
#: Modules beside `tagwise` itself whose names people import.
PUBLIC = ("torch", "ray", "compat", "compat.pycrfsuite", "compat.sklearn_crfsuite")
#: Modules that are public as a whole, by the name they have in `tagwise`: their functions are on their page.
MODULES = {
    "lattice": "scores.lattice",
    "losses": "scores.losses",
    "schemes": "corpus.schemes",
    "plot": "apps.compare.plots",
}
#: Beyond `__all__`, since pages name them.
MORE = {
    "tagwise.features.resolve",
    "tagwise.features.template_text",
    "tagwise.evaluation.errors.find_errors",
}
#: What is handed out rather than called, or needs a package of others: shown by the name in front of the reason.
NO_EXAMPLE = {
    "tagwise.Alignment": "spans_to_labels returns it",
    "tagwise.Misaligned": "spans_to_labels returns it",
    "tagwise.RegularizationPath": "regularization_path returns it",
    "tagwise.TaggerInfo": "taggers returns it",
    "tagwise.spacy_component": "needs spaCy: docs/inputs.md",
    "tagwise.to_series": "needs pandas: docs/inputs.md",
    "tagwise.ray.encode": "needs a cluster: docs/scale.md",
    "tagwise.compat.install": "changes a whole process: docs/switching.md",
    "tagwise.compat.uninstall": "changes a whole process: docs/switching.md",
    "tagwise.compat.installed": "changes a whole process: docs/switching.md",
    "tagwise.compat.pycrfsuite.Trainer": "the example of its module",
    "tagwise.compat.pycrfsuite.BaseTrainer": "the example of its module",
    "tagwise.compat.pycrfsuite.Tagger": "the example of its module",
    "tagwise.compat.sklearn_crfsuite.CRF": "needs scikit-learn: docs/switching.md",
}


def source(module: str) -> Path:
    """The file of a module."""
    at = PACKAGE.joinpath(*module.split(".")) if module else PACKAGE
    return at / "__init__.py" if at.is_dir() else at.with_suffix(".py")


@functools.cache
def parsed(path: Path) -> ast.Module:
    """A file, read once."""
    return ast.parse(path.read_text("utf-8"))


def listed(module: str) -> list[str]:
    """`__all__`, as it is written."""
    for node in parsed(source(module)).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise AssertionError(f"{module} has no __all__")


def expected() -> set[str]:
    """Every public name by its whole path; modules by that of their file."""
    out = {f"tagwise.{name}" for name in tagwise.__all__ if name != "__version__"}
    out = {f"tagwise.{MODULES.get(name[8:], name[8:])}" for name in out}
    out |= {f"tagwise.{module}.{name}" for module in PUBLIC for name in listed(module)}
    return (out | MORE | {"tagwise.apps.compare.compare"}) - {"tagwise.compare"}


def on_pages() -> list[str]:
    """The names that the pages of the reference have entries for."""
    pages = sorted((ROOT / "docs" / "reference").glob("*.md"))
    return [
        name for page in pages for name in re.findall(r"^::: (\S+)", page.read_text("utf-8"), re.MULTILINE)
    ]


def definition(name: str) -> ast.ClassDef | ast.FunctionDef | ast.Module | None:
    """Where a name is defined: through the imports of the package that hands it on. None for a value."""
    module, _, last = name.removeprefix("tagwise.").rpartition(".")
    if not (module and source(module).exists()) and source(name.removeprefix("tagwise.")).exists():
        return parsed(source(name.removeprefix("tagwise.")))
    if name.removeprefix("tagwise.") in MODULES.values():
        return parsed(source(name.removeprefix("tagwise.")))
    tree = parsed(source(module))
    guarded = [n for node in tree.body if isinstance(node, ast.If) for n in node.body]
    for node in [*tree.body, *guarded]:  # imports for type checkers stand behind a condition
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == last:
            return node
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tagwise."):
            for alias in node.names:
                if (alias.asname or alias.name) == last and node.module != "tagwise":
                    return definition(f"{node.module}.{alias.name}")
    return None


def test_no_public_name_is_missing() -> None:
    """And none is there twice, or is not public any more."""
    found = on_pages()
    assert len(found) == len(set(found)), sorted(name for name in found if found.count(name) > 1)
    assert set(found) == expected(), (
        f"missing: {sorted(expected() - set(found))}; too many: {sorted(set(found) - expected())}"
    )


@pytest.mark.parametrize("name", sorted(expected()))
def test_every_public_name_says_what_it_is(name: str) -> None:
    """A docstring; an example where people call it; of a class, a word about every method that it is first with."""
    node = definition(name)
    if node is None:  # a value, such as a version: a comment is enough
        assert name.rpartition(".")[2].isupper(), f"{name} is defined nowhere"
        return
    said = ast.get_docstring(node) or ""
    assert said, f"{name}: no docstring"
    if isinstance(node, ast.Module):
        functions = [n for n in node.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]
        assert all(ast.get_docstring(n) for n in functions), name
        return
    if isinstance(node, ast.ClassDef):
        methods = [n for n in node.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]
        silent = {n.name for n in methods} - {n.name for n in methods if ast.get_docstring(n)}
        assert not silent or node.bases, f"{name}: methods without a word: {silent}"
        if name.endswith("Error"):
            return
    assert (">>> " in said) != (name in NO_EXAMPLE), f"{name}: an example, or a reason for none"
