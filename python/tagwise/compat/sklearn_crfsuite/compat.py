"""Base class of scikit-learn, or a substitute if scikit-learn is not installed."""

try:
    from sklearn.base import BaseEstimator
except ImportError:  # pragma: no cover

    class BaseEstimator:  # type: ignore[no-redef]
        """Substitute for scikit-learn's base class."""


__all__ = ["BaseEstimator"]
