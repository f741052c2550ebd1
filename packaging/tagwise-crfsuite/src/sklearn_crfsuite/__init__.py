"""The import name sklearn_crfsuite for `tagwise.compat.sklearn_crfsuite`."""

import importlib
import sys

from tagwise.compat import install

del sys.modules[__name__]
install()
sys.modules[__name__] = importlib.import_module(f"tagwise.compat.{__name__}")
