"""What `learners.backends` takes from this room: the objective, the scorer and the vectors of a GPU."""

from tagwise.torch.linear import Objective, Scorer
from tagwise.torch.vectors import Vectors

__all__ = ["Objective", "Scorer", "Vectors"]
