"""The import name pycrfsuite for `tagwise.compat.pycrfsuite`."""

import importlib
import sys

from tagwise.compat import install

del sys.modules[__name__]
install()
sys.modules[__name__] = importlib.import_module(f"tagwise.compat.{__name__}")
