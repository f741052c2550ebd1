"""sklearn-crfsuite (0.5.0), call by call, on the engine of tagwise: `CRF`, `metrics`, `scorers`, `utils`, `trainer`."""

from tagwise.compat.sklearn_crfsuite.estimator import CRF

__all__ = ["CRF"]
