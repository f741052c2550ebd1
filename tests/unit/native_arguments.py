"""Arguments for the calls of `_core`: a small dataset, its layout, weights and constraints."""

from __future__ import annotations

from collections.abc import Callable
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


def given(**arguments: Any) -> dict[str, Any]:
    """Return arguments by name."""
    return arguments
