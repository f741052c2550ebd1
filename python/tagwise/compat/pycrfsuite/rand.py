"""Shuffling of CRFsuite's online trainers: `rand()` of glibc with its default seed 1.

    r_0 = 1,  r_i = 16807 r_{i-1} mod (2^31 - 1) for i <= 30,  r_i = r_{i-31} for 31 <= i <= 33,
    r_i = r_{i-3} + r_{i-31} mod 2^32;  output r_i >> 1 from i = 344 on

>>> stream = Rand()
>>> [stream.next() for _ in range(3)]
[1804289383, 846930886, 1681692777]
"""

from __future__ import annotations

from collections import deque


class Rand:
    """Random numbers of a process that has not called `rand()` before."""

    def __init__(self) -> None:
        first = [1]
        for _ in range(30):
            first.append(16807 * first[-1] % (2**31 - 1))
        first += first[:3]
        self._last = deque(first, maxlen=31)
        for _ in range(34, 344):
            self._step()

    def _step(self) -> int:
        number = (self._last[-3] + self._last[-31]) & 0xFFFFFFFF
        self._last.append(number)
        return number

    def next(self) -> int:
        """Return the next number, 0 to 2^31 - 1."""
        return self._step() >> 1

    def shuffle(self, order: list[int]) -> None:
        """Shuffle in place: swap each element, in order, with one at a random position of the whole list."""
        n = len(order)
        for i in range(n):
            j = self.next() % n
            order[i], order[j] = order[j], order[i]
