"""Removal of features that do not change predictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.dataset.layout import kept
from tagwise.model.formats.chain import EXACT
from tagwise.model.model import Model
from tagwise.scores.kernels import KernelScorer


def prune(model: Model, keep: NDArray[np.bool_] | None = None) -> tuple[Model, NDArray[np.int64]]:
    """Return the model with only the features of `keep`, by default those whose weight is not 0.

    The second value has the new index of each old feature, or -1. Attributes without a feature are dropped too.
    """
    scorer, layout = model.scorer, model.scorer.layout
    if isinstance(scorer, KernelScorer):
        return model, np.arange(len(layout))  # support tokens without weight are dropped already
    weights = scorer.weights
    if keep is None:
        keep = weights != 0.0
        keep[model.arrays.get("boosting.feature", np.zeros(0, np.uint32))] = True  # `rounds_` refers to them
        if model.scoring.voters is not None:
            keep |= model.scoring.voters.weights.any(axis=0)
    new_layout, used = kept(layout, keep)
    index = np.where(keep, np.cumsum(keep) - 1, -1)
    forbidden = np.flatnonzero(np.isneginf(model.native.edge_scores)).astype(np.uint32)
    own = dict(model.arrays)
    if "boosting.feature" in own:
        own["boosting.feature"] = index[own["boosting.feature"]].astype(np.uint32)
    if model.scoring.voters is not None:
        own |= replace(model.scoring.voters, weights=model.scoring.voters.weights[:, keep]).arrays()
    if len(own.get(EXACT, ())) == len(keep):
        own[EXACT] = own[EXACT][keep]
    pruned = replace(
        model,
        arrays=own,
        vocabulary=model.vocabulary.kept(used),
        scorer=_core.Scorer(
            new_layout, weights[keep], forbidden if len(forbidden) else None, local=scorer.local
        ),
    )
    return pruned, index
