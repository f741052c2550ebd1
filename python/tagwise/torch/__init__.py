"""Linear chains for PyTorch: a CRF layer, its losses, and a distribution over label paths (see docs/howto/torch.md)."""

from tagwise.torch.distribution import LinearChain
from tagwise.torch.heads import Heads
from tagwise.torch.layer import CRF
from tagwise.torch.losses import LOSSES

__all__ = ["CRF", "LOSSES", "Heads", "LinearChain"]
