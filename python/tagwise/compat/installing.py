"""`import pycrfsuite` and `import sklearn_crfsuite` mean ours in this process.

Modules are told by name, so that pickles made with the originals, which name modules and classes, load too.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

from tagwise.base.exceptions import ParameterError

#: Set to 1: they are installed as soon as tagwise is imported.
VARIABLE = "TAGWISE_CRFSUITE"
NAMES = ("pycrfsuite", "sklearn_crfsuite")
_HOME = "tagwise.compat"


class _Alias(importlib.abc.Loader):
    """The loader of a module that is another."""

    def __init__(self, real: str) -> None:
        self.real = real

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """The module itself, under its own name."""
        module = importlib.import_module(self.real)
        self.kept = (module.__spec__, module.__loader__)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do but to leave the module what it was before Python named it anew."""
        module.__spec__, module.__loader__ = self.kept


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the names of the originals, and every module below them, among ours."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A module of ours under the name of theirs."""
        if name.split(".")[0] not in NAMES:
            return None
        real = f"{_HOME}.{name}"
        try:
            found = importlib.util.find_spec(real)
        except ModuleNotFoundError:
            found = None
        if found is None:
            return None
        package = found.submodule_search_locations is not None
        return importlib.machinery.ModuleSpec(name, _Alias(real), is_package=package)


_FINDER = _Finder()


def installed() -> bool:
    """Whether the names mean ours."""
    return _FINDER in sys.meta_path


def install() -> None:
    """Let `pycrfsuite` and `sklearn_crfsuite` mean ours from here on, for imports and for pickles.

    Call it before anything imports them: objects of two kinds in one process would not know each other. Where the
    originals are there already, this is an ImportError that names them.
    """
    for name in NAMES:
        found = sys.modules.get(name)
        if found is not None and found is not sys.modules.get(f"{_HOME}.{name}"):
            where = getattr(found, "__file__", None) or "built in"
            raise ImportError(
                f"{name} is imported already ({where}); call tagwise.compat.install() before anything imports it, or "
                f"set {VARIABLE}=1 and import tagwise.compat first",
                name=name,
            )
    if not installed():
        sys.meta_path.insert(0, _FINDER)


def install_as_asked(value: str) -> None:
    """Install if the environment variable is 1; a value that is neither 0 nor 1 is an error."""
    if value.strip() not in ("0", "1"):
        raise ParameterError(
            f"{VARIABLE}={value!r}: expected 0 or 1; correct the environment variable or unset it"
        )
    if value.strip() == "1":
        install()


def uninstall() -> None:
    """Let the names mean what they meant before, for imports to come; objects that were made stay what they are."""
    if installed():
        sys.meta_path.remove(_FINDER)
    for name in [name for name in sys.modules if name.split(".")[0] in NAMES]:
        if sys.modules[name] is sys.modules.get(f"{_HOME}.{name}"):
            del sys.modules[name]
