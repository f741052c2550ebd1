"""What each parameter of each estimator does: a row for every one of them, run by test_parameters.

- ``rows``      the table, tiny problems, and weights of a fitted tagger at the places of the slow twins
- ``crf``, ``online``, ``margin``, ``boosting``, ``baselines``: rows of single learners
- ``common``    rows that several learners share
- ``domains``   defaults and domains, written down by hand
"""

from . import baselines, boosting, common, crf, margin, online
from .rows import ROWS, Bench

__all__ = ["ROWS", "Bench", "baselines", "boosting", "common", "crf", "margin", "online"]
