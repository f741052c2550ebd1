"""Array type of predictions: [N] of lists, or [N, T] of labels if all sequences have equal length, as in the original.

scikit-learn joins the predictions of folds with numpy.concatenate, which rejects a mixture of one- and two-dimensional
arrays. These predictions are then joined as lists. Slices and representations are those of plain arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Predictions(np.ndarray):
    """Labels or probabilities of sequences."""

    @staticmethod
    def of(rows: Sequence[Sequence[Any]]) -> Predictions:
        """Return [N] lists if lengths differ, [N, T] elements if they are equal, and [0] for no sequences."""
        return np.array(rows, dtype=object).view(Predictions)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return found.view(np.ndarray) if isinstance(found, Predictions) else found

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Iterable[Any], kwargs: Any
    ) -> Any:
        if func is np.concatenate and not kwargs.get("axis"):
            parts = list(next(iter(args)))
            if len({part.shape[1:] for part in parts if isinstance(part, np.ndarray)}) > 1:
                return joined(parts)
        return super().__array_function__(func, types, args, kwargs)


def joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Join arrays of predictions into one array [N] of lists."""
    rows = [list(row) for part in parts for row in part]
    out = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        out[i] = row
    return out.view(Predictions)
