"""What predictions come in: an array of lists, or of labels where all sequences have one length, as the original's.

scikit-learn puts the predictions of folds together with numpy.concatenate, which refuses arrays of one and of two
dimensions; ours are joined as lists then. What is taken out of them, and what they look like, are plain arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Predictions(np.ndarray):
    """Labels, or probabilities, of sequences."""

    @staticmethod
    def of(rows: Sequence[Sequence[Any]]) -> Predictions:
        """[N] of lists where lengths differ, [N, T] where they are one, [0] for none."""
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
    """One array [N] of lists."""
    rows = [list(row) for part in parts for row in part]
    out = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        out[i] = row
    return out.view(Predictions)


__all__ = ["Predictions", "joined"]
