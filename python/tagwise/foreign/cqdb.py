"""CQDB, the part of a CRFsuite model that numbers strings: records, 256 hash tables, offsets by id.

    head 24 B · 256 x (offset, slots) · records (id, length with NUL, bytes) · tables of (hash, offset) · offsets by id

Offsets count from the first byte of the CQDB. A table of m strings has 2m slots; a string goes to the first empty slot
from (hash >> 8) % 2m on, in the order of writing. The hash is Bob Jenkins' lookup3 (hashlittle) with its NUL.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tagwise.errors import ModelFileError

HEAD, STRINGS = 24, 24 + 2048
MARK = 0x62445371
Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


def u32_at(data: Bytes, at: Places) -> Places:
    """The little-endian numbers at these bytes, all inside."""
    if not len(at):
        return np.zeros(0, np.int64)
    if not (at & 3).any():
        whole = data[: len(data) & ~3].view("<u4")
        found: Places = whole[at >> 2].astype(np.int64)
        return found
    four: Bytes = data[at[:, None] + np.arange(4)]
    return np.asarray(four.view("<u4")[:, 0], np.int64)


# --- the hash ------------------------------------------------------------------------------------------------


def _rotated(x: NDArray[np.uint32], k: int) -> NDArray[np.uint32]:
    turned: NDArray[np.uint32] = (x << np.uint32(k)) | (x >> np.uint32(32 - k))
    return turned


def _flat(strings: Sequence[bytes]) -> tuple[Places, Bytes]:
    """Lengths of strings with their NUL, and all of them one after the other."""
    length = np.fromiter(map(len, strings), np.int64, len(strings)) + 1
    return length, np.frombuffer(b"".join((b"\0".join(strings), b"\0")) if strings else b"", np.uint8)


def _spread(at: Places, length: Places) -> Places:
    """Places of the bytes of strings, one after the other, each string beginning at its `at`."""
    begin = np.cumsum(length) - length
    return np.repeat(at - begin, length) + np.arange(int(length.sum()))


def hashes(strings: Sequence[bytes]) -> NDArray[np.uint32]:
    """lookup3 of each string with its NUL: blocks of 12 bytes are mixed, the last 1 to 12 of them finished.

    All strings a block at a time, the longest first, so that those which have a block more come first.
    """
    length, text = _flat(strings)
    blocks = (length + 11) // 12
    order = np.argsort(-blocks, kind="stable")
    first = np.empty(len(strings), np.int64)
    first[order] = np.cumsum(blocks[order]) - blocks[order]
    padded = np.zeros(12 * int(blocks.sum()), np.uint8)
    padded[_spread(12 * first, length)] = text
    first = first[order]
    words = padded.view("<u4").reshape(-1, 3)
    start = np.uint32(0xDEADBEEF) + length[order].astype(np.uint32)
    state = [start.copy(), start.copy(), start.copy()]
    left = -blocks[order]  # ascending
    for block in range(int(blocks.max(initial=1)) - 1):
        active = int(np.searchsorted(left, -(block + 1)))  # those with more blocks than this one and the last
        part = [x[:active] + words[first[:active] + block, i] for i, x in enumerate(state)]
        for x, y, z, k in (
            *((0, 1, 2, 4), (1, 2, 0, 6), (2, 0, 1, 8)),
            *((0, 1, 2, 16), (1, 2, 0, 19), (2, 0, 1, 4)),
        ):
            part[x] = (part[x] - part[z]) ^ _rotated(part[z], k)
            part[z] = part[z] + part[y]
        for x, done in zip(state, part):
            x[:active] = done
    if len(strings):
        last = first + blocks[order] - 1
        state = [x + words[last, i] for i, x in enumerate(state)]
        for x, y, k in ((2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24)):
            state[x] = (state[x] ^ state[y]) - _rotated(state[y], k)
    out = np.empty(len(strings), np.uint32)
    out[order] = state[2]
    return out


# --- writing -------------------------------------------------------------------------------------------------


def _placed(home: Places, begin: Places, size: Places) -> Places:
    """The slot of each string: the first from `home` on (wrapping in its table) that no earlier string has.

    Whoever comes first keeps a slot: the stable matching of strings, which like slots by distance, and slots, which
    like strings by their order. So strings may ask in any order, all at once, and be sent on when an earlier one asks.
    """
    n = len(home)
    holder = np.full(int(size.sum()) if n == 0 else int((begin + size).max()), n, np.int64)
    step, asking = np.zeros(n, np.int64), np.arange(n)
    while len(asking):
        slot = begin[asking] + (home[asking] + step[asking]) % size[asking]
        before = holder[slot]
        np.minimum.at(holder, slot, asking)
        now = holder[slot]
        lost = asking[now != asking]
        sent = np.unique(before[(before < n) & (before != now)])
        asking = np.concatenate([lost, sent])
        step[asking] += 1
    return begin + (home + step) % size


def written(strings: Sequence[bytes]) -> bytes:
    """The CQDB of strings, which differ and have no NUL, numbered in their order."""
    m = len(strings)
    length, text = _flat(strings)
    at = STRINGS + np.concatenate([[0], np.cumsum(length + 8)]).astype(np.int64)
    records = np.zeros(int(at[-1]) - STRINGS, np.uint8)
    records[_spread(at[:-1] - STRINGS + 8, length)] = text
    heads = np.stack([np.arange(m), length], axis=1).astype("<u4").view(np.uint8).reshape(m, 8)
    records[(at[:-1] - STRINGS)[:, None] + np.arange(8)] = heads
    found = hashes(strings).astype(np.int64)
    table = found & 255
    counts = np.bincount(table, minlength=256)
    begins = np.concatenate([[0], np.cumsum(2 * counts)[:-1]]).astype(np.int64)
    slots = np.zeros((2 * m, 2), "<u4")
    if m:
        size = 2 * counts[table]
        slot = _placed((found >> 8) % size, begins[table], size)
        slots[slot, 0], slots[slot, 1] = found, at[:-1]
    base = int(at[-1])
    refs = np.zeros((256, 2), "<u4")
    used = counts > 0
    refs[used, 0], refs[used, 1] = base + 8 * begins[used], 2 * counts[used]
    back = base + 16 * m
    head = struct.pack("<4s5I", b"CQDB", back + 4 * m, 0, MARK, m, back if m else 0)
    return b"".join(
        (head, refs.tobytes(), records.tobytes(), slots.tobytes(), at[:-1].astype("<u4").tobytes())
    )


# --- reading -------------------------------------------------------------------------------------------------


def read(data: Bytes, at: int, count: int, what: str) -> list[bytes]:
    """The strings of the CQDB at a byte of a file, by id: exactly 0 to count - 1, each checked both ways."""

    def wrong(found: str) -> ModelFileError:
        return ModelFileError(f"the {what}: {found}; the file is damaged, copy it again")

    if at + HEAD + 2048 > len(data):
        raise wrong("they lie outside the file")
    name, size, _, mark, entries, back = struct.unpack("<4s5I", data[at : at + HEAD].tobytes())
    if name != b"CQDB" or mark != MARK:
        raise wrong(f"expected a CQDB of this byte order, found {name!a} with the mark {mark:#x}")
    if not STRINGS <= size <= len(data) - at:
        raise wrong(f"a CQDB of {size} bytes, of which the file has {len(data) - at}")
    data = data[at : at + size]
    refs = data[HEAD:STRINGS].copy().view("<u4").reshape(-1, 2).astype(np.int64)
    refs = refs[refs[:, 1] > 0]
    begin, slots = refs[:, 0], refs[:, 1]
    if (slots & 1).any() or int(slots.sum()) > size // 8 or (begin + 8 * slots > size).any():
        raise wrong("a hash table of odd size, or outside the CQDB")
    total = int(slots.sum())
    inside = np.arange(total) - np.repeat(np.cumsum(slots) - slots, slots)
    where = u32_at(data, np.repeat(begin, slots) + 8 * inside + 4)
    taken = where != 0
    if (np.bincount(np.repeat(np.arange(len(slots)), slots)[taken], minlength=len(slots)) >= slots).any():
        raise wrong("a hash table without an empty slot")
    where = where[taken]
    if len(where) != count:
        raise wrong(f"expected {count}, as the header says, found {len(where)}")
    if (where < STRINGS).any() or (where + 9 > size).any():
        raise wrong("a string outside the CQDB")
    ids, lengths = u32_at(data, where), u32_at(data, where + 4)
    if (lengths < 1).any() or (where + 8 + lengths > size).any():
        raise wrong("a string outside the CQDB")
    if entries < count or (entries and back + 4 * entries > size) or (ids >= count).any():
        raise wrong("a number outside those that the header counts")
    seen = np.zeros(count, bool)
    seen[ids] = True
    if (u32_at(data, back + 4 * ids) != where).any() or not seen.all():
        raise wrong("numbers and strings that disagree")
    ends = where + 8 + lengths - 1
    nuls = np.cumsum(data == 0, dtype=np.int64)
    if (data[ends] != 0).any() or (nuls[ends] - nuls[where + 7] != 1).any():
        raise wrong("a string that does not end where its length says")
    order = np.argsort(ids)
    if int(lengths.sum()) > size:
        raise wrong("strings that overlap")
    whole = data.tobytes()
    strings = [whole[a:b] for a, b in zip((where[order] + 8).tolist(), ends[order].tolist())]
    if len(set(strings)) < count:
        raise wrong("a string with two numbers")
    return strings
