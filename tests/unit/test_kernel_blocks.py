"""Blocks of tokens, kernels by name, path and function, and their names in a model file."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.base.exceptions import ModelFileError, ParameterError
from tagwise.base.imports import Functions, function_at, path_of
from tagwise.dataset.layout import without_nodes
from tagwise.scores.kernels import KernelFunction, TokenMatrix, kernel_of

HERE = "tests.unit.test_kernel_blocks"


def own(a: TokenMatrix, b: TokenMatrix) -> np.ndarray:
    """Return a custom kernel."""
    return a.dots(b) + 1.0


class Holder:
    """A namespace for a function that is not at the top level."""

    @staticmethod
    def inner(a: TokenMatrix, b: TokenMatrix) -> np.ndarray:
        return a.dots(b)


NUMBER = 3


def block(dense: np.ndarray) -> TokenMatrix:
    """Return a dense matrix as a block without its zeros."""
    rows, columns = np.nonzero(dense)
    indptr = np.searchsorted(rows, np.arange(len(dense) + 1)).astype(np.uint64)
    return TokenMatrix(indptr, columns.astype(np.uint32), dense[rows, columns], dense.shape)


@pytest.mark.parametrize("seed", range(5))
def test_blocks_equal_dense_matrices(seed: int) -> None:
    """The dense matrix, products of rows and squared norms, including empty rows and columns."""
    rng = np.random.default_rng(seed)
    A, B = (rng.normal(size=(n, 7)) * (rng.random((n, 7)) < 0.4) for n in (5, 3))
    A[2] = B[0] = 0.0
    A[:, 3] = B[:, 4] = 0.0
    a, b = block(A), block(B)
    np.testing.assert_array_equal(a.toarray(), A)
    np.testing.assert_allclose(a.dots(b), A @ B.T, atol=1e-15)
    np.testing.assert_allclose(b.dots(a), B @ A.T, atol=1e-15)
    np.testing.assert_allclose(a.squares(), (A**2).sum(axis=1), atol=1e-12)
    empty = block(np.zeros((2, 7)))
    assert empty.squares().tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(empty.dots(a), np.zeros((2, 5)))
    np.testing.assert_array_equal(a.dots(empty), np.zeros((5, 2)))


def scores(kernel: KernelFunction, n_attributes: int) -> np.ndarray:
    """Return node scores of the tokens x = (2) and x' = (3). The first is the support token, with beta (1, 0)."""
    vocabulary = _core.Vocabulary()
    data = _core.encode_attributes(vocabulary, [[{"a": 2.0}, {"a": 3.0}]])
    data = data.with_gold(np.array([0, 1], dtype=np.uint16))
    layout = without_nodes(_core.Layout.build(data, len(vocabulary), 2))
    base = _core.Scorer(layout, np.zeros(len(layout), dtype=np.float32))
    beta = np.array([1.0, 0.0, 0.0, 0.0])
    native = _core.KernelScorer.of_training(base, kernel.spec(n_attributes), data, beta)
    return native.node_scores(data)


def test_kernels_are_passed_to_the_core() -> None:
    """Name and parameters. A function gets blocks with one column per attribute, and its result becomes float64."""
    found = scores(KernelFunction("poly", 3, 0.5, 2.0), 1)
    np.testing.assert_allclose(found, [[(0.5 + 2 * 4) ** 3, 0.0], [(0.5 + 2 * 6) ** 3, 0.0]], rtol=1e-6)
    np.testing.assert_allclose(
        scores(KernelFunction("rbf", gamma=0.5), 1)[:, 0], [1.0, np.exp(-0.5)], rtol=1e-6
    )
    seen: list[tuple[TokenMatrix, TokenMatrix]] = []

    def whole(a: TokenMatrix, b: TokenMatrix) -> list[list[int]]:
        seen.append((a, b))
        return own(a, b).astype(int).tolist()

    np.testing.assert_array_equal(
        scores(KernelFunction("function", function=whole), 9), [[5.0, 0.0], [7.0, 0.0]]
    )
    assert seen
    assert {x.shape[1] for pair in seen for x in pair} == {9}
    assert {float(v) for pair in seen for x in pair for v in x.data} <= {2.0, 3.0}


@pytest.mark.parametrize(
    ("kernel", "data"),
    [
        (KernelFunction("linear", 5, 6.0, 7.0), {"name": "linear"}),
        (KernelFunction("poly", 5, 6.0, 7.0), {"name": "poly", "degree": 5, "coef": 6.0, "gamma": 7.0}),
        (KernelFunction("rbf", 5, 6.0, 7.0), {"name": "rbf", "gamma": 7.0}),
        (KernelFunction("function", function=own), {"name": "function", "function": f"{HERE}:own"}),
    ],
    ids=lambda v: v.name if isinstance(v, KernelFunction) else "",
)
def test_kernels_round_trip_through_files(kernel: KernelFunction, data: dict[str, Any]) -> None:
    """A kernel's parameters and a function's path are stored. Reading gives an equal kernel."""
    assert kernel.to_json() == data
    back = KernelFunction.from_json(data, Functions(trust=True))
    assert back.to_json() == data
    assert back.function is kernel.function
    assert KernelFunction.from_json(data).to_json() == data


def test_unknown_kernels_are_refused() -> None:
    """In a file and as a parameter."""
    for data in ({"name": "sigmoid"}, {}):
        with pytest.raises(ModelFileError, match=r"unknown kernel .*from a newer tagwise, or damaged"):
            KernelFunction.from_json(data)
    for given in ("sigmoid", 3, {"name": "sigmoid"}):
        with pytest.raises(ParameterError, match=r"kernel=.*expected linear, poly, rbf, module:function"):
            tw.Perceptron(kernel=given).fit([["a"]], [["x"]])


def test_kernels_by_name_path_and_function() -> None:
    """Numbers are parameters of a named kernel."""
    assert kernel_of(tw.RBF(), 6.0) == KernelFunction("rbf", gamma=6.0)
    assert kernel_of(tw.RBF(2.0), 6.0) == KernelFunction("rbf", gamma=2.0)
    assert kernel_of(tw.Poly(4, 5.0), 1.0) == KernelFunction("poly", 4, 5.0, 1.0)
    assert kernel_of(tw.Kernel("linear"), 6.0) == KernelFunction("linear")
    assert kernel_of(tw.Kernel(f"{HERE}:own"), 6.0) == KernelFunction("function", function=own)
    assert kernel_of(tw.Kernel(own), 6.0) == KernelFunction("function", function=own)


# -- import paths ---------------------------------------------------------------------------------------------


def test_function_paths_resolve_to_the_function() -> None:
    """A function at the top level, or inside a class there."""
    for function, path in (
        (own, f"{HERE}:own"),
        (Holder.inner, f"{HERE}:Holder.inner"),
        (len, "builtins:len"),
    ):
        assert path_of(function, "it") == path
        assert function_at(path, "it") is function


def test_functions_that_cannot_be_imported_are_named() -> None:
    """Functions defined in a function, in the main module, or hidden by another of the same name."""

    def local(a: TokenMatrix, b: TokenMatrix) -> None: ...

    main = type(own)(own.__code__, {}, "own")
    main.__module__ = "__main__"
    hidden = type(own)(own.__code__, {}, "own")
    hidden.__module__, hidden.__qualname__ = HERE, "own"
    assert [path_of(function, "it") for function in (local, main, hidden)] == [":local", ":own", ":own"]


@pytest.mark.parametrize("function", [lambda a, b: 0, functools.partial(own), 3])
def test_functions_without_a_name_are_refused(function: Any) -> None:
    with pytest.raises(ParameterError, match=r"the thing has no name, .* Define it with def"):
        path_of(function, "the thing")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no.such.module:f", r"the thing 'no\.such\.module:f' cannot be imported \(No module named"),
        (
            f"{HERE}:missing",
            r"cannot be imported \(.*has no attribute 'missing'\)\. Check its name, and that its module",
        ),
        (":own", r"the thing ':own' cannot be imported \("),
        (f"{HERE}:NUMBER", r"is (int|float), expected a function\. Name another one, or restore the module"),
    ],
)
def test_unresolvable_function_paths_are_rejected(path: str, message: str) -> None:
    """No such module, no such name, not a function."""
    with pytest.raises(ParameterError, match=message):
        function_at(path, "the thing")
