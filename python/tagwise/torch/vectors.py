"""Long vectors on a GPU, as optimisers use them: sums, products, and the pairs of L-BFGS."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tagwise.torch.linear import device


class Pairs:
    """Steps s and changes of the gradient y, and the direction -H g from their inner products alone.

    The two loops of L-BFGS (Nocedal 1980) are carried out on coefficients: with B = [s_1 .. s_m, y_1 .. y_m, g] the
    direction is B c, and c needs B^T B only (Chen, Wang and Zhou 2014). In variables w / d, s is divided and y and g are
    multiplied by d.
    """

    def __init__(self, memory: int, scale: Tensor | None) -> None:
        self.memory, self.scale = memory, scale
        self.steps: list[Tensor] = []
        self.changes: list[Tensor] = []
        self.products: NDArray[np.float64] = np.zeros((0, 0))

    def __len__(self) -> int:
        return len(self.steps)

    def clear(self) -> None:
        """Forget all pairs."""
        self.steps, self.changes, self.products = [], [], np.zeros((0, 0))

    def push(self, w0: Tensor, w1: Tensor, g0: Tensor, g1: Tensor) -> None:
        """Remember the step from (w0, g0) to (w1, g1), where its curvature is positive."""
        s, y = w1 - w0, g1 - g0
        if self.scale is not None:
            s, y = s / self.scale, y * self.scale
        if float(s @ y) <= 1e-12 * float(y @ y):
            return
        keep = self.memory - 1
        kept = self.steps[-keep:] if keep else []
        self.steps, self.changes = [*kept, s], [*(self.changes[-keep:] if keep else []), y]
        self._multiply()

    def _multiply(self) -> None:
        """The inner products of all pairs, in one product of matrices."""
        basis = torch.stack([*self.steps, *self.changes])
        self.products = (basis @ basis.T).cpu().numpy()

    def state(self) -> list[list[NDArray[np.float64]]]:
        """The pairs, oldest first, as [s, y]."""
        return [[s.cpu().numpy(), y.cpu().numpy()] for s, y in zip(self.steps, self.changes)]

    def restore(self, pairs: list[list[NDArray[np.float64]]]) -> None:
        """Have these pairs and no others."""
        on = device()
        self.steps = [torch.from_numpy(np.array(s)).to(on) for s, _ in pairs]
        self.changes = [torch.from_numpy(np.array(y)).to(on) for _, y in pairs]
        self.products = np.zeros((0, 0))
        if pairs:
            self._multiply()

    def direction(self, gradient: Tensor, direction: Tensor) -> float:
        """direction = -H gradient; the directional derivative."""
        g = gradient if self.scale is None else gradient * self.scale
        m = len(self.steps)
        basis = torch.stack([*self.steps, *self.changes, g])
        by = (basis @ g).cpu().numpy()  # products with g
        sy, yy = self.products[:m, m:], self.products[m:, m:]
        c = np.zeros(2 * m + 1)  # coefficients of the vector at hand
        c[2 * m] = 1.0
        alpha = np.zeros(m)
        for i in range(m - 1, -1, -1):  # s_i . (g - sum_j alpha_j y_j)
            alpha[i] = (by[i] - sy[i, i + 1 :] @ alpha[i + 1 :]) / sy[i, i]
        c[m : 2 * m] = -alpha
        size = sy[m - 1, m - 1] / yy[m - 1, m - 1] if m else 1.0
        c *= size
        for i in range(m):
            along = size * (by[m + i] - yy[i] @ alpha) + c[:i] @ sy[:i, i]
            c[i] = alpha[i] - along / sy[i, i]
        found = torch.from_numpy(-c).to(basis.device) @ basis
        direction.copy_(found if self.scale is None else found * self.scale)
        return float(-c @ by)


class Vectors:
    """Vectors of float64 on the device: what `optimizers.base.Vectors` asks for."""

    def __init__(self) -> None:
        self.device = device()
        self._host: Tensor | None = None

    def held(self, w: NDArray[np.float64]) -> Tensor:
        """A copy of a vector, here."""
        return torch.from_numpy(np.array(w, dtype=np.float64)).to(self.device)

    def host(self, w: Tensor) -> NDArray[np.float64]:
        """A vector as NumPy's, in a buffer that is written anew each time."""
        if self._host is None or len(self._host) != len(w):
            self._host = torch.empty(len(w), dtype=torch.float64, pin_memory=True)
        self._host.copy_(w)
        found: NDArray[np.float64] = self._host.numpy()
        return found

    def like(self, w: Tensor) -> Tensor:
        """Room for another one."""
        return torch.empty_like(w)

    def add_scaled(self, w: Tensor, step: float, direction: Tensor, out: Tensor) -> None:
        """out = w + step direction."""
        torch.add(w, direction, alpha=step, out=out)

    def dot(self, a: Tensor, b: Tensor) -> float:
        """The inner product."""
        return float(a @ b)

    def add_ridge(self, w: Tensor, strength: float, gradient: Tensor) -> float:
        """strength |w|^2; its derivative is added to the gradient."""
        gradient.add_(w, alpha=2.0 * strength)
        return strength * float(w @ w)

    def pairs(self, memory: int, scale: Any = None, *, keep: bool = False) -> Pairs:
        """Curvature pairs, in variables w / scale."""
        scaled = None if scale is None else torch.from_numpy(np.asarray(scale, np.float64)).to(self.device)
        return Pairs(memory, scaled)
