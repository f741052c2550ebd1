"""Common form of the models of other programs: labels, attributes, and weights of a chain.

Features have the codes of `dataset.layout`: attribute * L + label for nodes, label' * L + label for edges,
attribute * L^2 + label' * L + label for pairs. Each block is in ascending order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.exceptions import ModelFileError
from tagwise.dataset.layout import blocks_of, codes_of, layout_of
from tagwise.features.recipe import Recipe

Codes = NDArray[np.int64]
Weights = NDArray[np.float64]
#: Array of a model with the weights of its file in double precision. Scoring uses float32.
EXACT = "exact.weights"
#: Maximum number of labels.
MOST_LABELS = 2**16 - 2


@dataclass(frozen=True)
class FeatureWeights:
    """Features of one kind in ascending order, and their weights."""

    codes: Codes
    weights: Weights

    @staticmethod
    def none() -> FeatureWeights:
        """Return an empty block."""
        return FeatureWeights(np.zeros(0, np.int64), np.zeros(0))

    @staticmethod
    def sorted(codes: Codes, weights: Weights) -> FeatureWeights:
        """Return a block of distinct features that are in any order."""
        order = np.argsort(codes, kind="stable")
        return FeatureWeights(codes[order], weights[order])

    @property
    def present(self) -> FeatureWeights:
        """Features whose weight is not 0."""
        keep = self.weights != 0.0
        return FeatureWeights(self.codes[keep], self.weights[keep])


@dataclass(frozen=True)
class ForeignModel:
    """Model of another program: a chain of labels with weights of attributes, of label pairs and of both.

    `texts` has the attributes by id. `local` models normalise every step separately (MEMM). `about` has further fields
    of the file for its writer. `border` has the features of first and last labels, which none of the programs supports.
    """

    labels: tuple[str, ...]
    texts: Sequence[str]
    node: FeatureWeights
    edge: FeatureWeights
    pair: FeatureWeights
    recipe: Recipe
    local: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)
    border: FeatureWeights = field(default_factory=FeatureWeights.none)


def vocabulary_of(texts: Sequence[str]) -> _core.Vocabulary:
    """Return a locked vocabulary of these distinct texts, numbered in their order."""
    vocabulary = _core.Vocabulary()
    _core.encode_attributes(vocabulary, [[list(texts)]])
    vocabulary.lock()
    if len(vocabulary) != len(texts):
        raise ModelFileError(
            "an attribute occurs twice, expected distinct attributes. The file is damaged, copy it again"
        )
    return vocabulary


def parts_of(chain: ForeignModel) -> dict[str, Any]:
    """Return the parts of a model, by the names of `Model`."""
    n = len(chain.labels)
    if not n:
        raise ModelFileError("the model has no labels. Train it on a corpus that is not empty")
    if n > MOST_LABELS:
        raise ModelFileError(f"{n} labels, expected at most {MOST_LABELS}")
    nothing = np.zeros(0, np.int64)
    codes = [chain.node.codes, chain.edge.codes, nothing, nothing, chain.pair.codes]
    layout = layout_of(len(chain.texts), n, codes, pairs=len(chain.pair.codes) > 0 or chain.recipe.has_edges)
    exact = np.concatenate([chain.node.weights, chain.edge.weights, chain.pair.weights])
    with np.errstate(over="ignore", under="ignore"):
        weights = exact.astype(np.float32)
    _check_finite(chain, exact, weights)
    arrays = {} if np.array_equal(weights, exact) else {EXACT: exact}
    kind = "memm" if chain.local else "crf"
    meta: dict[str, Any] = {"learner": kind, "params": {}, "foreign": dict(chain.about)}
    if chain.recipe.columns:
        names = list(chain.recipe.columns)
        meta |= {"columns": [*names, "label"], "label": "label"}
    return {
        "labels": chain.labels,
        "recipe": chain.recipe,
        "vocabulary": vocabulary_of(chain.texts),
        "scorer": _core.Scorer(layout, weights, None, local=chain.local),
        "meta": meta,
        "arrays": arrays,
    }


def _check_finite(chain: ForeignModel, exact: Weights, weights: NDArray[np.float32]) -> None:
    """Raise a ModelFileError for weights that are not finite in float32, with which no search is correct."""
    wrong = np.flatnonzero(~np.isfinite(weights))
    if not len(wrong):
        return
    k, n = int(wrong[0]), len(chain.labels)
    nodes, edges = len(chain.node.codes), len(chain.edge.codes)
    if k < nodes:
        owner, y = divmod(int(chain.node.codes[k]), n)
        name = f"{chain.texts[owner]!a} -> {chain.labels[y]!a}"
    elif k < nodes + edges:
        before, y = divmod(int(chain.edge.codes[k - nodes]), n)
        name = f"{chain.labels[before]!a} -> {chain.labels[y]!a}"
    else:
        owner, rest = divmod(int(chain.pair.codes[k - nodes - edges]), n * n)
        name = f"{chain.texts[owner]!a}, {chain.labels[rest // n]!a} -> {chain.labels[rest % n]!a}"
    raise ModelFileError(
        f"the weight of {name} is {exact[k]}, expected a number within float32. Train again, or copy the file again"
    )


def chain_of(
    labels: Sequence[str],
    recipe: Recipe,
    vocabulary: _core.Vocabulary,
    scorer: _core.Scorer,
    arrays: Mapping[str, NDArray[Any]],
    about: Mapping[str, Any],
) -> ForeignModel:
    """Return the chain of a model for a writer, with the double-precision weights of its file if they are unchanged."""
    layout, weights = scorer.layout, scorer.weights
    exact = arrays.get(EXACT)
    with np.errstate(over="ignore", under="ignore"):
        kept = exact is not None and np.array_equal(exact.astype(np.float32), weights)
    values = exact if kept and exact is not None else weights.astype(np.float64)
    node, edge, start, end, pair = (
        FeatureWeights(code, values[block]) for code, block in zip(codes_of(layout), blocks_of(layout))
    )
    border = FeatureWeights(
        np.concatenate([start.codes, end.codes]), np.concatenate([start.weights, end.weights])
    ).present
    return ForeignModel(
        tuple(labels), vocabulary.texts(), node, edge, pair, recipe, scorer.local, dict(about), border
    )


def check_no_border(chain: ForeignModel, format: str) -> None:
    """Raise a ModelFileError for weights of first and last labels, which the format cannot express."""
    if len(chain.border.codes):
        raise ModelFileError(
            f"{format} cannot express weights of first and last labels. Train with start_end=False"
        )
