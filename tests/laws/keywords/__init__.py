"""What each argument of each method does: a row for every one of them, run by test_keywords.

- ``rows``        the table, and taggers of little training
- ``training``    rows of what trains: fit, going on, and the state that a file keeps for it
- ``predicting``  rows of what a fitted tagger does: predictions against the twin, scores, explanations, files
"""

from . import predicting, training
from .rows import ONLINE, ROWS

__all__ = ["ONLINE", "ROWS", "predicting", "training"]
