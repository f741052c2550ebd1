"""The API of sklearn-crfsuite 0.5.0, implemented by tagwise."""

from tagwise.compat.sklearn_crfsuite.estimator import CRF

__all__ = ["CRF"]
