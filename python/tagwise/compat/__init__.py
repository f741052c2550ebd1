"""Drop-in replacements for python-crfsuite and sklearn-crfsuite.

>>> from tagwise.compat import pycrfsuite
>>> pycrfsuite.ItemSequence([["a", "b"], {"c": 0.5}]).items()
[{'a': 1.0, 'b': 1.0}, {'c': 0.5}]
"""

from tagwise.compat.installing import VARIABLE, install, installed, uninstall

__all__ = ["VARIABLE", "install", "installed", "uninstall"]
