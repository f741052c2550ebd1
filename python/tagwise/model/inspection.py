"""Inspection of a model by its strongest features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tagwise.base.domains import Integer
from tagwise.base.parameters import checked
from tagwise.dataset.layout import NamedLayout, blocks_of, codes_of

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class Inspection:
    """Strongest features of each label and strongest transitions. It prints as tables.

    Attributes:
        labels: Attributes and weights of each label, strongest first.
        transitions: Triples of a label, the next label and the weight, strongest first.
    """

    labels: dict[Any, list[tuple[str, float]]]  # by label, in the type it had in training
    transitions: list[tuple[Any, Any, float]]

    def __rich__(self) -> RenderableType:
        from rich.console import Group

        from tagwise.base.terminal import explanation_table, transition_table

        shown = {str(label): found for label, found in self.labels.items()}
        steps = [(str(before), str(after), w) for before, after, w in self.transitions]
        return Group(explanation_table(shown), transition_table(steps))

    def __repr__(self) -> str:
        return f"<Inspection: {len(self.labels)} labels, {len(self.transitions)} transitions>"

    def _repr_html_(self) -> str:
        """Return the representation for notebooks: one folded table per label and one of transitions."""
        from tagwise.base.markup import table_html
        from tagwise.corpus.label_markup import label_cells

        cells = dict(zip(self.labels, label_cells(self.labels)))

        parts = [
            f"<details><summary>{cells[label]}</summary>"
            + table_html(("attribute", "weight"), [(name, f"{w:+.4f}") for name, w in found])
            + "</details>"
            for label, found in self.labels.items()
        ]
        steps = [(cells[before], cells[after], f"{w:+.4f}") for before, after, w in self.transitions]
        return "".join(parts) + table_html(("from", "to", "weight"), steps, left=2)

    def __str__(self) -> str:
        from tagwise.base.terminal import as_text

        return as_text(self.__rich__())


def strongest_features(named: NamedLayout, weights: NDArray[np.float32], top: int) -> Inspection:
    """Return the `top` strongest features of each label, by magnitude, and the strongest transitions."""
    top = checked("top", top, Integer(0))
    labels, n, blocks = named.labels, len(named.labels), blocks_of(named.layout)
    nodes, edges = codes_of(named.layout)[:2]
    attribute, label = nodes // n, nodes % n
    node, edge = weights[blocks.node], weights[blocks.edge]
    strongest: dict[str, list[tuple[str, float]]] = {}
    for y, name in enumerate(labels):
        of = np.flatnonzero((label == y) & (node != 0.0))
        order = of[np.lexsort((of, -np.abs(node[of])))][:top]
        strongest[name] = [(named.vocabulary.text(int(attribute[k])), float(node[k])) for k in order]
    order = np.argsort(-np.abs(edge), kind="stable")[: max(top, n)]
    transitions = [
        (labels[int(edges[k]) // n], labels[int(edges[k]) % n], float(edge[k])) for k in order if edge[k]
    ]
    return Inspection(strongest, transitions)
