"""What `learners.backends` takes from this room: the objective, the scorer and the vectors of a GPU, which is there."""

from tagwise.torch.linear import Objective, Scorer, device
from tagwise.torch.vectors import Vectors

__all__ = ["Objective", "Scorer", "Vectors", "device"]
