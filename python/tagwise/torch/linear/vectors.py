"""Vector operations of the optimisers on a GPU: sums, products, and the curvature pairs of L-BFGS."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tagwise.torch.linear.objective import device


class DevicePairs:
    """Curvature pairs of L-BFGS: steps s, changes of the gradient y, and the direction -H g from inner products.

    The two-loop recursion (Nocedal 1980) runs on coefficients: with B = [s_1 .. s_m, y_1 .. y_m, g] the direction is
    B c, and c needs only B^T B (Chen, Wang and Zhou 2014). In variables w / d, s is divided by d, and y and g are
    multiplied by d. A new pair costs one pass over B for all its products, and a direction another.
    """

    def __init__(self, memory: int, scale: Tensor | None) -> None:
        self.memory, self.scale = memory, scale
        self.basis: Tensor | None = None  # rows: s by place, y by place, and the gradient
        self.places: list[int] = []  # oldest first
        self.products: NDArray[np.float64] = np.zeros((2 * memory, 2 * memory))
        self._cached: tuple[Tensor, int, NDArray[np.float64]] | None = None  # gradient, version, products

    def __len__(self) -> int:
        return len(self.places)

    def clear(self) -> None:
        """Forget all pairs."""
        self.places = []

    def _ensure_basis(self, like: Tensor) -> Tensor:
        if self.basis is None:
            self.basis = like.new_zeros(2 * self.memory + 1, len(like))
        return self.basis

    def _store(self, gradient: Tensor, place: int = 0, *ends: Tensor) -> NDArray[np.float64]:
        """Store the gradient, and the pair from w0, w1, g0 if given, in the basis.

        Return the products of its rows with s, y and g (2m + 1, 3).
        """
        m, basis = self.memory, self._ensure_basis(gradient)
        d = 1.0 if self.scale is None else self.scale
        new = basis.new_zeros(3, basis.shape[1])
        if ends:
            w0, w1, g0 = ends
            new[0], new[1] = (w1 - w0) / d, (gradient - g0) * d
            basis[place], basis[m + place] = new[0], new[1]
        new[2] = basis[2 * m] = gradient * d
        found: NDArray[np.float64] = (basis @ new.T).cpu().numpy()
        return found

    def push(self, w0: Tensor, w1: Tensor, g0: Tensor, g1: Tensor) -> None:
        """Store the step from (w0, g0) to (w1, g1) if its curvature is positive."""
        m = self.memory
        free = [place for place in range(m) if place not in self.places]
        place = free[0] if free else self.places.pop(0)
        new = self._store(g1, place, w0, w1, g0)
        self._cached = g1, g1._version, new[:, 2]
        if not new[m + place, 0] > 1e-12 * new[m + place, 1]:
            return
        for column, at in ((0, place), (1, m + place)):
            self.products[:, at] = self.products[at, :] = new[: 2 * m, column]
        self.places.append(place)

    def direction(self, gradient: Tensor, direction: Tensor) -> float:
        """Set direction = -H gradient, and return the directional derivative."""
        m, count, cached = self.memory, len(self.places), self._cached
        if cached is None or cached[0] is not gradient or cached[1] != gradient._version:
            cached = gradient, gradient._version, self._store(gradient)[:, 2]
        by = cached[2]
        at = np.array(self.places, dtype=np.int64)
        of_s, of_y = by[at], by[m + at]
        sy, yy = self.products[np.ix_(at, m + at)], self.products[np.ix_(m + at, m + at)]
        alpha, coefficient = np.zeros(count), np.zeros(count)
        for i in range(count - 1, -1, -1):  # s_i . (g - sum_j alpha_j y_j)
            alpha[i] = (of_s[i] - sy[i, i + 1 :] @ alpha[i + 1 :]) / sy[i, i]
        size = sy[-1, -1] / yy[-1, -1] if count else 1.0
        for i in range(count):  # alpha_i - y_i . (the vector so far) / s_i . y_i
            along = size * (of_y[i] - yy[i] @ alpha) + coefficient[:i] @ sy[:i, i]
            coefficient[i] = alpha[i] - along / sy[i, i]
        c = np.zeros(2 * m + 1)
        c[at], c[m + at], c[2 * m] = coefficient, -size * alpha, size
        self._mix(-c, direction)
        return float(-c @ by)

    def _mix(self, c: NDArray[np.float64], out: Tensor) -> None:
        """Set out = d * sum_r c_r (row r of the basis)."""
        basis = self._ensure_basis(out)
        torch.mv(basis.T, torch.from_numpy(c).to(basis.device), out=out)
        if self.scale is not None:
            out.mul_(self.scale)

    def state(self) -> list[list[NDArray[np.float64]]]:
        """Return the pairs as [s, y], oldest first."""
        if self.basis is None:
            return []
        held = self.basis.cpu().numpy()
        return [[held[place], held[self.memory + place]] for place in self.places]

    def restore(self, pairs: list[list[NDArray[np.float64]]]) -> None:
        """Replace all pairs by these."""
        self.clear()
        for place, (s, y) in enumerate(pairs):
            basis = self._ensure_basis(torch.zeros(len(s), dtype=torch.float64, device=device()))
            basis[place].copy_(torch.from_numpy(s))
            basis[self.memory + place].copy_(torch.from_numpy(y))
            self.places.append(place)
        if self.basis is not None:
            rows = self.basis[: 2 * self.memory]
            self.products = (rows @ rows.T).cpu().numpy()


class DeviceVectors:
    """Implementation of `optimizers.base.VectorSpace` for float64 tensors on the device."""

    def __init__(self, on: torch.device | None = None) -> None:
        self.device = device() if on is None else on
        self._host: Tensor | None = None

    def held(self, w: NDArray[np.float64]) -> Tensor:
        """Return a copy of a vector on the device."""
        return torch.from_numpy(np.array(w, dtype=np.float64)).to(self.device)

    def host(self, w: Tensor) -> NDArray[np.float64]:
        """Return a vector as a NumPy array, in a buffer that the next call overwrites."""
        if self._host is None or len(self._host) != len(w):
            self._host = torch.empty(len(w), dtype=torch.float64, pin_memory=self.device.type == "cuda")
        self._host.copy_(w)
        found: NDArray[np.float64] = self._host.numpy()
        return found

    def like(self, w: Tensor) -> Tensor:
        """Return an uninitialised vector of the same size."""
        return torch.empty_like(w)

    def add_scaled(self, w: Tensor, step: float, direction: Tensor, out: Tensor) -> None:
        """Set out = w + step * direction."""
        torch.add(w, direction, alpha=step, out=out)

    def dot(self, a: Tensor, b: Tensor) -> float:
        """Return the inner product."""
        return float(a @ b)

    def add_ridge(self, w: Tensor, strength: float, gradient: Tensor) -> float:
        """Return strength * |w|^2, and add its derivative to the gradient."""
        gradient.add_(w, alpha=2.0 * strength)
        return strength * float(w @ w)

    def pairs(self, memory: int, scale: Any = None, *, keep: bool = False) -> DevicePairs:
        """Return an empty set of curvature pairs, in variables w / scale."""
        scaled = None if scale is None else torch.from_numpy(np.asarray(scale, np.float64)).to(self.device)
        return DevicePairs(memory, scaled)
