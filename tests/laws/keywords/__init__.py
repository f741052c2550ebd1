"""Tests of each argument of each method: a row for every one of them, run by test_keywords.

- ``rows``        the table, and briefly trained taggers
- ``training``    rows of fit, partial_fit, and the training state in a file
- ``predicting``  rows of a fitted tagger's methods: predictions, scores, explanations, files
"""

from . import predicting, training
from .rows import ONLINE, ROWS

__all__ = ["ONLINE", "ROWS", "predicting", "training"]
