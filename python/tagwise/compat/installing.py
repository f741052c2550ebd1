"""Import hook that makes `import pycrfsuite` and `import sklearn_crfsuite` load the replacements in this process.

Submodules have the names of the originals, so that pickles of the originals, which refer to modules and classes by
name, load too.
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

#: Environment variable. With the value 1, importing tagwise installs the replacements.
VARIABLE = "TAGWISE_CRFSUITE"
NAMES = ("pycrfsuite", "sklearn_crfsuite")
_HOME = "tagwise.compat"


class _Alias(importlib.abc.Loader):
    """Loader that imports another module in place of the named one."""

    def __init__(self, real: str) -> None:
        self.real = real

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Import the replacement and return it."""
        module = importlib.import_module(self.real)
        self.kept = (module.__spec__, module.__loader__)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's spec and loader, which the import system has overwritten."""
        module.__spec__, module.__loader__ = self.kept


class _Finder(importlib.abc.MetaPathFinder):
    """Finder that maps the names of the originals and their submodules to the replacements."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec that loads the replacement of a module, or None if there is none."""
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
    """Return whether the import hook is installed."""
    return _FINDER in sys.meta_path


def install() -> None:
    """Make later imports and pickles of `pycrfsuite` and `sklearn_crfsuite` load the replacements.

    Call it before anything imports the originals, since objects of both kinds in one process are incompatible.

    Raises:
        ImportError: An original is already imported.
    """
    for name in NAMES:
        found = sys.modules.get(name)
        if found is not None and found is not sys.modules.get(f"{_HOME}.{name}"):
            where = getattr(found, "__file__", None) or "built in"
            raise ImportError(
                f"{name} is already imported ({where}). Call tagwise.compat.install() before anything imports it, or "
                f"set {VARIABLE}=1 and import tagwise.compat first",
                name=name,
            )
    if not installed():
        sys.meta_path.insert(0, _FINDER)


def install_from_environment(value: str) -> None:
    """Install if the value of the environment variable is 1. Raise ParameterError unless it is 0 or 1."""
    if value.strip() not in ("0", "1"):
        raise ParameterError(
            f"{VARIABLE}={value!r}: expected 0 or 1. Correct or unset the environment variable"
        )
    if value.strip() == "1":
        install()


def uninstall() -> None:
    """Remove the import hook, so that later imports load the originals. Existing objects do not change."""
    if installed():
        sys.meta_path.remove(_FINDER)
    for name in [name for name in sys.modules if name.split(".")[0] in NAMES]:
        if sys.modules[name] is sys.modules.get(f"{_HOME}.{name}"):
            del sys.modules[name]
