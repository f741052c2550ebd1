"""Tests of each parameter of each estimator: a row for every one of them, run by test_parameters.

- ``rows``      the table, tiny problems, and a fitted tagger's weights in the reference order
- ``crf``, ``online``, ``margin``, ``boosting``, ``baselines``: rows of single learners
- ``common``    rows that several learners share
- ``domains``   defaults and domains, written by hand
"""

from . import baselines, boosting, common, crf, margin, online
from .rows import ROWS, Bench

__all__ = ["ROWS", "Bench", "baselines", "boosting", "common", "crf", "margin", "online"]
