"""Linear chains for PyTorch: a CRF layer, losses, a distribution. `import tagwise.torch as tt`; see docs/torch.md."""

from tagwise.torch.distribution import LinearChain
from tagwise.torch.heads import Heads
from tagwise.torch.layer import CRF
from tagwise.torch.losses import LOSSES

__all__ = ["CRF", "LOSSES", "Heads", "LinearChain"]
