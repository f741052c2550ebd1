"""Arguments for the calls of `_core`: a small dataset, its layout, weights and constraints."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from tagwise import _core

f32, f64, u16, u32, u64 = np.float32, np.float64, np.uint16, np.uint32, np.uint64

#: The callable and its arguments.
Targets = dict[str, tuple[Callable[[], Callable[..., Any]], dict[str, Any]]]


class Made:
    """Objects that are consistent with each other."""

    def __init__(self) -> None:
        self.template = _core.Template("word[-1..1]", ["word"])
        self.vocabulary = _core.Vocabulary()
        sentences = [[["a", "b", "c"]], [["a"]], [["b", "c"]]]
        self.dataset = _core.encode_tokens(self.template, self.vocabulary, sentences)
        self.gold = np.array([0, 1, 2, 0, 1, 2], u16)
        self.dataset = self.dataset.with_gold(self.gold)
        self.layout = _core.Layout.build(self.dataset, len(self.vocabulary), 3)
        none = {"node_ptr": np.zeros(len(self.vocabulary) + 1, u64), "node_label": np.zeros(0, u16)}
        self.bare = _core.Layout.from_arrays(len(self.vocabulary), 3, self.layout.arrays() | none)
        self.base = _core.Scorer(self.bare, np.zeros(len(self.bare), f32))
        self.weights = np.linspace(-1, 1, len(self.layout)).astype(f32)
        self.scorer = _core.Scorer(self.layout, self.weights)
        self.terms = _core.LookbackSpec(3, 2, 1, tuples=True)
        self.history_scorer = _core.HistoryScorer(self.terms, np.zeros(len(self.terms), f32))
        self.order = _core.Order(self.dataset, self.layout, 2)
        self.entities = (np.array([0, 1, 65535], u16), np.zeros((4, 3), np.uint8))
        self.once = (np.array([0, 2**32 - 1, 2**32 - 1], u32), np.ones((4, 3), bool))
        self.allowed = (np.ones((1, 3), bool), np.zeros(6, u32))
        self.kernel = _core.Kernel("poly", 2, 1.0, 1.0)
        self.limits = _core.Limits(np.zeros(0, u32), self.allowed)
        self.w = np.zeros(len(self.layout))
        self.w_order = np.zeros(len(self.layout) + len(self.order))


class Table(Targets):
    """Callables by name, with valid arguments. Arguments of usual names and values are given by their names."""

    def __init__(self, m: Made) -> None:
        self.usual: dict[str, Any] = {
            "dataset": m.dataset,
            "layout": m.layout,
            "w": m.w,
            "gradient": np.zeros_like(m.w),
            "n_jobs": 1,
            "sample_weight": np.ones(3),
            "forbidden": np.zeros(0, u32),
            "allowed": m.allowed,
            "once": m.once,
            "scorer": m.scorer,
            "kernel": m.kernel,
            "terms": m.terms,
            "entities": m.entities,
            "vocab": _core.Vocabulary(),
            "loss": "log",
            "seed": 1,
            "shuffle": True,
            "average": True,
        }

    def given(self, names: str = "", /, **more: Any) -> dict[str, Any]:
        """Return arguments: the usual values of these names, and others."""
        return {name: self.usual[name] for name in names.split()} | more

    def call(
        self, name: str, names: str = "", make: Callable[[], Callable[..., Any]] | None = None, /, **more: Any
    ) -> None:
        """Add a callable, which `make` returns if it is not the function or class of that name."""
        self[name] = (make or (lambda: attrgetter(name)(_core)), self.given(names, **more))

    def methods(self, kind: str, make: Callable[[], Any], /, **methods: dict[str, Any]) -> None:
        """Add methods of the object that `make` returns, with their arguments."""
        for name, arguments in methods.items():
            self[f"{kind}.{name}"] = (partial(getattr_of, make, name), arguments)

    def options(self, name: str, use: Callable[[Any], Any], names: str = "", /, **more: Any) -> None:
        """Add a class of options, which are checked when an object that uses them is made."""
        make = getattr(_core, name)
        self.call(name, names, lambda: lambda **options: use(make(**options)), **more)


def getattr_of(make: Callable[[], Any], name: str) -> Any:
    """Return an attribute of a new object."""
    return getattr(make(), name)
