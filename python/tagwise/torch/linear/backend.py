"""What `learners.backends` takes from this room: the objective, the scorer and the vectors of a GPU, which is there."""

from typing import Any

import torch

from tagwise.torch.linear.edges import EdgeObjective
from tagwise.torch.linear.objective import Objective, Scorer, device
from tagwise.torch.linear.vectors import Vectors


def objective(problem: Any, on: torch.device | None = None) -> Objective:
    """The objective of a problem."""
    return (EdgeObjective if problem.data.n_edge_attributes else Objective)(problem, on)


__all__ = ["Objective", "Scorer", "Vectors", "device", "objective"]
