"""scikit-learn's base class, where there is one."""

try:
    from sklearn.base import BaseEstimator
except ImportError:  # pragma: no cover

    class BaseEstimator:  # type: ignore[no-redef]
        """What stands for it."""


__all__ = ["BaseEstimator"]
