"""The name pycrfsuite, which means `tagwise.compat.pycrfsuite` here."""

import importlib
import sys

from tagwise.compat import install

del sys.modules[__name__]
install()
sys.modules[__name__] = importlib.import_module(f"tagwise.compat.{__name__}")
