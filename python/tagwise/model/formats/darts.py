"""Double arrays (Darts), the dictionaries of CRF++: units of (base, check).

The root is unit 0. The child by byte c of a node with base b is unit p = b + c + 1 with check[p] == b. A key ends at a
node with base b if unit b has check[b] == b and base < 0. Its value is -base - 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tagwise.base.exceptions import ModelFileError

UNIT = np.dtype([("base", "<i4"), ("check", "<u4")])
#: Number of units after the last used one.
ROOM = 257


def keys_of(units: NDArray[np.void], most: int) -> list[tuple[bytes, int]]:
    """Return the keys and values of an array, in byte order. All keys together may have `most` bytes.

    Every node is visited once, and a second parent or a cycle is an error, so the loop ends. The bytes on the way to a
    node are kept once for all nodes, so that a chain of n nodes takes n steps and not n^2.
    """
    wrong = ModelFileError("the dictionary is not a tree. The file is damaged, copy it again")
    n = len(units)
    if not n:
        raise wrong
    base, check = units["base"].astype(np.int64), units["check"].astype(np.int64)
    order = np.argsort(check, kind="stable")
    places, bases = order.tolist(), base.tolist()
    begins = np.searchsorted(
        check[order], np.arange(n + 1)
    ).tolist()  # first unit with each base as its check
    out: list[tuple[bytes, int]] = []
    seen: set[int] = set()
    total, key = 0, bytearray()
    todo: list[tuple[int, int, int]] = [(bases[0], 0, 0)]  # base, depth, byte that leads to it
    while todo:
        b, depth, byte = todo.pop()
        if b in seen or not 0 < b < n:
            raise wrong
        seen.add(b)
        if depth:
            del key[depth - 1 :]
            key.append(byte)
        children = []
        for p in places[begins[b] : begins[b + 1]]:  # ascending
            if p == b:
                if bases[p] >= 0:
                    raise wrong
                total += depth
                if total > most:
                    raise ModelFileError(
                        f"the keys of the dictionary exceed {most} bytes in total. The file is damaged, copy it again"
                    )
                out.append((bytes(key), -bases[p] - 1))
            elif 0 < p - b <= 256:
                children.append((bases[p], depth + 1, p - b - 1))
        todo += reversed(children)
    return out


def built(keys: Sequence[bytes], values: Sequence[int]) -> NDArray[np.void]:
    """Build the array of distinct keys in byte order, exactly as Darts builds it.

    Siblings are placed depth first. A group of codes goes to the first free unit, from `after` on, where its first code
    fits, no other group has the base, and the units of all other codes are free. `after` is the first free unit that
    was found, or the place of the group if `95 %` of the units before it were taken.
    """
    taken, used = bytearray(8192), bytearray(8192)
    base, check = {0: 1}, {}
    after, size = 0, 0
    todo: list[tuple[int, int, int, int]] = [(-1, 0, len(keys), 0)]  # unit of the parent, keys, depth
    while todo:
        parent, left, right, depth = todo.pop()
        siblings = _siblings(keys, left, right, depth)
        if siblings is None:
            base[parent] = -values[left] - 1
            continue
        codes = [code for code, _, _ in siblings]
        first, span = codes[0], codes[-1] - codes[0]
        at, skipped, placed_first = max(first + 1, after) - 1, 0, False
        while True:
            if at + span + 600 > len(taken):
                taken += bytes(len(taken) + span + 600)
                used += bytes(len(taken) - len(used))
            free = taken.find(0, at + 1)
            if free < 0 or free + span + 600 > len(taken):
                taken += bytes(len(taken) + span + 600)
                used += bytes(len(taken) - len(used))
                continue
            skipped += free - at - 1
            at = free
            if not placed_first:
                after, placed_first = at, True
            begin = at - first
            if not used[begin] and not any(taken[begin + code] for code in codes[1:]):
                break
        if skipped / (at - after + 1) >= 0.95:
            after = at
        used[begin] = 1
        size = max(size, begin + codes[-1] + 1)
        for code in codes:
            taken[begin + code] = 1
            check[begin + code] = begin
        if parent >= 0:
            base[parent] = begin
        todo += [(begin + code, low, high, depth + 1) for code, low, high in reversed(siblings)]
    units = np.zeros(size + ROOM, UNIT)
    for name, found in (("base", base), ("check", check)):
        if found:
            units[name][np.fromiter(found.keys(), np.int64)] = np.fromiter(found.values(), np.int64)
    return units


def _siblings(keys: Sequence[bytes], left: int, right: int, depth: int) -> list[tuple[int, int, int]] | None:
    """Return (code, first key, last key) of the next bytes of keys, or None if the only key has ended."""
    out: list[tuple[int, int, int]] = []
    if left + 1 == right and len(keys[left]) < depth:
        return None
    at = left
    while at < right:
        if len(keys[at]) < depth:
            at += 1
            continue
        code = keys[at][depth] + 1 if len(keys[at]) > depth else 0
        end = at + 1
        while end < right and code and len(keys[end]) > depth and keys[end][depth] + 1 == code:
            end += 1
        out.append((code, at, end))
        at = end
    return out or None
