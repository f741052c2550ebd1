"""The backend of `device="cuda"`: the objective, the scorer and the optimiser's vectors on a GPU."""

from typing import Any

import torch

from tagwise.learners.backends import Backend
from tagwise.torch.linear.edges import EdgeObjective
from tagwise.torch.linear.objective import DeviceObjective, device
from tagwise.torch.linear.scorer import DeviceScorer
from tagwise.torch.linear.vectors import DeviceVectors


def objective(problem: Any, on: torch.device | None = None) -> DeviceObjective:
    """Return the objective of a problem."""
    return (EdgeObjective if problem.data.n_edge_attributes else DeviceObjective)(problem, on)


BACKEND = Backend("cuda", objective, DeviceScorer, vectors=lambda n_jobs: DeviceVectors(), check=device)
