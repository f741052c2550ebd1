"""Kernels on attribute vectors, and models whose node scores come from support tokens.

    s_t(y) = sum_s beta_s(y) K(x_t, x_s)

with K linear <x, x'>, polynomial (coef + gamma <x, x'>)^degree, rbf exp(-gamma ||x - x'||^2), or a function of two
blocks of tokens. Transitions, starts and ends have weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.exceptions import ModelFileError, ParameterError
from tagwise.base.imports import NO_FUNCTIONS, Functions, alias, function_at, path_of, require_function
from tagwise.base.options import Kernel
from tagwise.scores.protocols import Lists, Support

#: Name of a kernel function in messages.
KERNEL = "the kernel function"
#: Kernels by name, and the parameters of each.
KERNELS = dict(_core.KERNELS)
ARRAYS = ("support.ptr", "support.ids", "support.values", "beta.ptr", "beta.label", "beta.value")


class TokenMatrix(NamedTuple):
    """Tokens as a sparse matrix in CSR form, with the names of SciPy: one row per token, one column per attribute."""

    indptr: NDArray[np.uint64]
    indices: NDArray[np.uint32]
    data: NDArray[np.float64]
    shape: tuple[int, int]

    def toarray(self) -> NDArray[np.float64]:
        """Return the dense matrix, which is large if there are many attributes."""
        out = np.zeros(self.shape)
        out[self._rows(), self.indices] = self.data
        return out

    def dots(self, other: TokenMatrix) -> NDArray[np.float64]:
        """Return <x, x'> of every row of this block with every row of the other, [rows, rows]."""
        used = np.unique(self.indices)
        found: NDArray[np.float64] = self._columns(used) @ other._columns(used).T
        return found

    def squares(self) -> NDArray[np.float64]:
        """Return ||x||^2 of every row."""
        total = np.concatenate([[0.0], np.cumsum(self.data**2)])
        ends: NDArray[np.float64] = np.diff(total[self.indptr.astype(np.int64)])
        return ends

    def _rows(self) -> NDArray[np.int64]:
        """Return the row of every entry."""
        pointers = self.indptr.astype(np.int64)
        return np.repeat(np.arange(self.shape[0]), pointers[1:] - pointers[:-1])

    def _columns(self, used: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return the dense matrix of these columns, which are in ascending order."""
        out = np.zeros((self.shape[0], len(used)))
        rows = self._rows()
        at = np.minimum(np.searchsorted(used, self.indices), max(len(used) - 1, 0))
        known = used[at] == self.indices if len(used) else np.zeros(len(rows), dtype=np.bool_)
        out[rows[known], at[known]] = self.data[known]
        return out


Function = Callable[[TokenMatrix, TokenMatrix], Any]


@dataclass(frozen=True)
class KernelFunction:
    """Kernel with all its numbers, as models evaluate it.

    `function` is user-defined. `path` is its name in a file if it differs.
    """

    name: str
    degree: int = 2
    coef: float = 1.0
    gamma: float = 1.0
    function: Function | None = None
    path: str = field(default="", compare=False)

    def spec(self, n_attributes: int, form: str = "auto", cache_bytes: int = 1 << 28) -> _core.Kernel:
        """Return the kernel for the core, with the form of its values and the memory for training."""
        function = self.function
        if function is None:
            numbers = (self.degree, self.coef, self.gamma)
            return _core.Kernel(self.name, *numbers, form=form, cache_bytes=cache_bytes)

        def call(a: tuple[Any, Any, Any], b: tuple[Any, Any, Any]) -> NDArray[np.float64]:
            blocks = (TokenMatrix(*rows, (len(rows[0]) - 1, n_attributes)) for rows in (a, b))
            return np.ascontiguousarray(function(*blocks), dtype=np.float64)

        return _core.Kernel(call, form=form, cache_bytes=cache_bytes)

    def to_json(self) -> dict[str, Any]:
        """Return the kernel for a model file. A function is stored by its import path."""
        if self.function is not None:
            return {"name": "function", "function": self.path or path_of(self.function, KERNEL)}
        return {"name": self.name, **{name: getattr(self, name) for name in KERNELS[self.name]}}

    @staticmethod
    def from_json(data: Mapping[str, Any], functions: Functions = NO_FUNCTIONS) -> KernelFunction:
        """Rebuild a kernel from `to_json`. A function is one of `functions`, or missing."""
        if data.get("name") == "function":
            path = data["function"]
            function = functions.find(path, KERNEL)
            return KernelFunction("function", function=function, path=alias(function, path))
        if str(data.get("name")) not in KERNELS:
            raise ModelFileError(
                f"unknown kernel {data.get('name')!r}. The model is from a newer tagwise, or damaged"
            )
        return KernelFunction(**data)


def kernel_of(given: Kernel, gamma: float) -> KernelFunction:
    """Return the function of a kernel. `gamma` replaces a value of None."""
    if given.name == "function":
        found = given.function
        return KernelFunction(
            "function", function=require_function(found if callable(found) else function_at(found, KERNEL))
        )
    numbers = {name: getattr(given, name) for name in KERNELS[given.name]}
    if numbers.get("gamma", gamma) is None:
        numbers["gamma"] = gamma
    return KernelFunction(given.name, **numbers)


class KernelScorer:
    """Scorer with support tokens. It has the interface of `_core.Scorer`, except for marginals.

    `base` has the weights of transitions, starts and ends, in a layout without node features.
    """

    def __init__(self, base: _core.Scorer, native: _core.KernelScorer, kernel: KernelFunction) -> None:
        self.base = base
        self.native = native
        self.kernel = kernel

    @staticmethod
    def of_training(
        layout: _core.Layout,
        w: NDArray[np.float64],
        kernel: KernelFunction,
        data: _core.Dataset,
        forbidden: NDArray[np.uint32] | None = None,
    ) -> KernelScorer:
        """Build from the weights of a kernel learner: those of the layout, then beta of each distinct token."""
        base = _core.Scorer(layout, w[: len(layout)].astype(np.float32), forbidden)
        spec = kernel.spec(layout.n_attributes)
        return KernelScorer(base, _core.KernelScorer.of_training(base, spec, data, w[len(layout) :]), kernel)

    @staticmethod
    def of_arrays(
        base: _core.Scorer, kernel: KernelFunction, arrays: Mapping[str, NDArray[Any]]
    ) -> KernelScorer:
        """Build from the arrays of a model file."""
        spec = kernel.spec(base.layout.n_attributes)
        return KernelScorer(base, _core.KernelScorer(base, spec, dict(arrays)), kernel)

    def over(self, base: _core.Scorer) -> KernelScorer:
        """Return a scorer with these support tokens and other transitions."""
        return KernelScorer.of_arrays(base, self.kernel, self.arrays())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the support tokens and their betas."""
        return self.native.arrays()

    @property
    def layout(self) -> _core.Layout:
        return self.base.layout

    @property
    def weights(self) -> NDArray[np.float32]:
        """Weights of transitions, starts and ends."""
        return self.base.weights

    @property
    def local(self) -> bool:
        """False, since steps are not normalised separately."""
        return False

    @property
    def n_support(self) -> int:
        """Number of support tokens."""
        return len(self.native)

    @property
    def n_betas(self) -> int:
        """Number of (support token, label) pairs whose beta is not 0."""
        return len(self.native.arrays()["beta.value"])

    def viterbi(
        self, dataset: _core.Dataset, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> NDArray[np.uint16]:
        """Return the best path of each sentence, one label id per token, [tokens]."""
        require_function(self.kernel.function)
        return self.native.viterbi(dataset, allowed=allowed, n_jobs=n_jobs)

    def kbest(
        self, dataset: _core.Dataset, k: int, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> Lists:
        """Return the k best paths of each sentence: their number [N], their scores, their labels concatenated."""
        require_function(self.kernel.function)
        return self.native.kbest(dataset, k, allowed=allowed, n_jobs=n_jobs)

    def marginals(
        self, dataset: _core.Dataset, *, allowed: Support | None = None, n_jobs: int = 0
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Raise a ParameterError, since margins are not probabilities."""
        raise ParameterError(
            "a kernel model has scores but no probabilities. Use decoder='viterbi' or predict_kbest, or train a CRF"
        )
