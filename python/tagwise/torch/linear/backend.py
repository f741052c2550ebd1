"""The backend of `device="cuda"`: the objective, the scorer and the optimiser's vectors on a GPU."""

from typing import Any

import torch

from tagwise.learners.backends import Backend
from tagwise.torch.linear.edges import EdgeObjective
from tagwise.torch.linear.objective import Objective, Scorer, device
from tagwise.torch.linear.vectors import Vectors


def objective(problem: Any, on: torch.device | None = None) -> Objective:
    """Return the objective of a problem."""
    return (EdgeObjective if problem.data.n_edge_attributes else Objective)(problem, on)


BACKEND = Backend("cuda", objective, Scorer, vectors=lambda n_jobs: Vectors(), check=device)

__all__ = ["BACKEND", "Objective", "Scorer", "Vectors", "device", "objective"]
