"""Every parameter of every learner and every argument of every public method, with meaningless values.

A value is accepted or raises a TagwiseError. No other exception is raised.
"""

from __future__ import annotations

import copy
import inspect
import logging
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.base.parameters import parameters_of
from tagwise.estimators import LEARNERS

X = [["a", "b", "c"], ["b", "c"]]
Y = [["B-X", "I-X", "O"], ["O", "B-X"]]


#: Created again for each call, because an iterator can be used only once.
VALUES: dict[str, Callable[[], Any]] = {
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
    "-1": lambda: -1,
    "0": lambda: 0,
    "1e-300": lambda: 1e-300,
    "1e300": lambda: 1e300,
    "10**18": lambda: 10**18,
    "10**29": lambda: 10**29,
    "2**64": lambda: 2**64,
    "-2**64": lambda: -(2**64),
    "10**400": lambda: 10**400,
    "empty text": lambda: "",
    "surrogate": lambda: "\ud800",
    "NUL": lambda: "x\0",
    "bytes": lambda: b"x",
    "None": lambda: None,
    "True": lambda: True,
    "empty list": list,
    "empty tuple": lambda: (),
    "empty dict": dict, "object": object,
    "function": lambda: lambda *_: 1,
    "iterator": lambda: iter([1]),
    "numbers": lambda: [1, math.nan],
    "list of None": lambda: [None, None],
    "lists of None": lambda: [[None], [None]],
    "lists of numbers": lambda: [[1], [2.5]],
    "lists of objects": lambda: [[object()], [object()]],
    "lists of lists": lambda: [[["a"]], [["b"]]],
    "surrogates": lambda: [["\ud800"], ["a"]],
    "mapping": lambda: {"a": 1},
    "array": lambda: np.zeros(3),
    "matrix": lambda: np.zeros((2, 2)),
    "NumPy's nan": lambda: np.float32("nan"),
}  # fmt: skip
#: Valid arguments for each call.
SOUND = {
    "X": X,
    "y": Y,
    "sentence": X[0],
    "chunks": [[("X", 0, 2)], []],
    "texts": ["a b c"],
}
#: Parameters that limit the training time. A large number is valid.
LONG = {"epochs", "max_iter", "rounds"}
#: Methods of scikit-learn. `to` moves a model to a GPU.
LEFT = {"get_metadata_routing", "get_params", "set_fit_request", "set_partial_fit_request", "to"}


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        caplog.set_level(logging.CRITICAL, "tagwise")
        yield


def tried(call: Callable[[], Any], description: str) -> str | None:
    """Return a description of an invalid outcome, or None."""
    try:
        call()
    except tw.TagwiseError as error:
        return None if str(error) else f"{description}: an error without a message"
    except Exception as error:
        return f"{description}: {type(error).__name__}: {error}"[:200]
    return None


@pytest.mark.parametrize("name", LEARNERS)
def test_meaningless_parameters_raise_typed_errors(name: str) -> None:
    learner, wrong = LEARNERS[name], []
    few = {name: 2 for name in parameters_of(learner) if name in LONG}
    for param in parameters_of(learner):
        for kind, value in VALUES.items():
            if kind == "10**18" and param in LONG:
                continue
            call = lambda: learner(**{**few, param: value()}).fit(X, Y).predict(X)  # noqa: B023, E731
            wrong.append(tried(call, f"{param}={kind}"))
    assert not list(filter(None, wrong))


def methods(tagger: tw.Tagger) -> Iterator[tuple[str, inspect.Signature]]:
    """Yield the public methods of a tagger."""
    for name in dir(type(tagger)):
        found = getattr(type(tagger), name)
        if not name.startswith("_") and name not in LEFT and inspect.isfunction(inspect.unwrap(found)):
            yield name, inspect.signature(getattr(tagger, name))


@pytest.mark.parametrize("name", LEARNERS)
def test_meaningless_method_arguments_raise_typed_errors(
    name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # `save` accepts any name
    learner, wrong = LEARNERS[name], []
    few = {name: 2 for name in parameters_of(learner) if name in LONG}
    fitted = learner(**few).fit(X, Y)
    for method, signature in methods(fitted):
        takes = [
            p.name for p in signature.parameters.values() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        ]
        needs = {name: SOUND[name] for name in takes if name in SOUND}
        for argument in takes:
            for kind, value in VALUES.items():
                if kind == "10**18" and argument in LONG:
                    continue
                tagger = copy.deepcopy(fitted) if method.endswith("fit") else fitted
                given = {**needs, argument: value()}
                if method == "save":
                    given.setdefault("path", "model")
                description = f"{method}({argument}={kind})"
                wrong.append(tried(lambda: getattr(tagger, method)(**given), description))  # noqa: B023
    assert not list(filter(None, wrong))


@pytest.mark.parametrize("function", ["load", "evaluate"])
def test_meaningless_function_arguments_raise_typed_errors(function: str) -> None:
    call, wrong = getattr(tw, function), []
    names = [p.name for p in inspect.signature(call).parameters.values()]
    for kind, value in VALUES.items():
        first = {names[0]: value()}
        if function == "evaluate":
            first["predicted"] = Y
        wrong.append(tried(lambda: call(**first), f"{function}({kind})"))  # noqa: B023
    assert not list(filter(None, wrong))


def test_messages_name_the_argument_and_valid_values() -> None:
    """The error gives the argument and its valid values."""
    tagger = tw.CRF(max_iter=2).fit(X, Y)
    for call, words in (
        (lambda: tagger.predict_kbest(X, k=2**64), r"k=18446744073709551616: expected integer >= 1"),
        (lambda: tagger.predict_kbest(X, k=0), "k=0: expected integer >= 1"),
        (lambda: tagger.predict(None), "X is NoneType, expected a list of sentences"),
        (lambda: tagger.predict(5), "X is int, expected a list of sentences"),
        (
            lambda: tw.CRF(class_weight=math.nan).fit(X, Y),
            "class_weight=nan: expected balanced, a number > 0",
        ),
        (
            lambda: tw.CRF(class_weight=math.inf).fit(X, Y),
            "class_weight=inf: expected balanced, a number > 0",
        ),
        (lambda: tw.CRF(min_count=10**18).fit(X, Y), "min_count=1000000000000000000: expected integer >= 1"),
        (lambda: tw.MIRA(C=math.inf).fit(X, Y), "C=inf: expected finite number > 0"),
        (lambda: tagger.fit(X, Y, callbacks=[3]), "callbacks: 3 is not callable"),
        (lambda: tagger.evaluate(X, [[None] * 3, ["O"] * 2]), "sentence 0, token 0: expected one label"),
    ):
        with pytest.raises(tw.TagwiseError, match=words):
            call()
