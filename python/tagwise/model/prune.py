"""A model without the features that do nothing: smaller file, same predictions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.model.model import Model
from tagwise.model.model import _counts as counts_of
from tagwise.scores.kernels import KernelScorer


def prune(model: Model, keep: NDArray[np.bool_] | None = None) -> tuple[Model, NDArray[np.int64]]:
    """The model with the features of `keep` alone, by default those whose weight is not 0.

    Also answers the new index of each old feature, -1 for those dropped. Attributes without a feature go too.
    """
    scorer, layout = model.scorer, model.scorer.layout
    if isinstance(scorer, KernelScorer):
        return model, np.arange(len(layout))  # its weights are support tokens, kept compactly
    weights, arrays = scorer.weights, layout.arrays()
    if keep is None:
        keep = weights != 0.0
        keep[model.arrays.get("boosting.feature", np.zeros(0, np.uint32))] = True  # the rounds name them
    counts = [layout.n_node, layout.n_edge, len(arrays["starts"]), len(arrays["ends"]), len(arrays["pair"])]
    node, edge, start, end, pair = np.split(keep, np.cumsum(counts)[:-1])
    owners = {
        name: np.repeat(np.arange(layout.n_attributes), counts_of(arrays[name]))
        for name in ("node_ptr", "pair_ptr")
        if len(arrays[name])
    }
    used = np.zeros(layout.n_attributes, dtype=np.bool_)
    used[owners["node_ptr"][node]] = True
    if "pair_ptr" in owners:
        used[owners["pair_ptr"][pair]] = True

    def pointers(owner: NDArray[np.int64], kept: NDArray[np.bool_]) -> NDArray[np.uint64]:
        per_attribute = np.bincount(owner[kept], minlength=layout.n_attributes)[used]
        return np.concatenate([[0], np.cumsum(per_attribute)]).astype(np.uint64)

    small = {
        "node_ptr": pointers(owners["node_ptr"], node),
        "node_label": arrays["node_label"][node],
        "edges": arrays["edges"][edge],
        "starts": arrays["starts"][start],
        "ends": arrays["ends"][end],
        "pair_ptr": pointers(owners["pair_ptr"], pair) if "pair_ptr" in owners else arrays["pair_ptr"],
        "pair": arrays["pair"][pair],
    }
    new_layout = _core.Layout.from_arrays(int(used.sum()), layout.n_labels, small)
    index = np.where(keep, np.cumsum(keep) - 1, -1)
    forbidden = np.flatnonzero(np.isneginf(scorer.edge_scores)).astype(np.uint32)
    own = dict(model.arrays)
    if "boosting.feature" in own:
        own["boosting.feature"] = index[own["boosting.feature"]].astype(np.uint32)
    pruned = replace(
        model,
        arrays=own,
        vocabulary=model.vocabulary.kept(used),
        scorer=_core.Scorer(
            new_layout, weights[keep], forbidden if len(forbidden) else None, local=scorer.local
        ),
    )
    return pruned, index
