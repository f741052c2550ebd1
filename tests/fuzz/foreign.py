"""Damaged model files of CRFsuite, Wapiti and CRF++, each drawn from a seed, and the laws they must obey."""

from __future__ import annotations

import random
import struct

from tagwise.base.exceptions import ModelFileError
from tagwise.compat.pycrfsuite import Tagger
from tagwise.model.formats.chain import parts_of
from tagwise.model.formats.table import FORMATS
from tagwise.model.model import Model

from ..foreign.test_model_files import SAMPLES
from .readers import mutated

NUMBERS = (0, 1, 2, 3, 7, 48, 255, 256, 2072, 2**16 - 1, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 8)
WORDS = (
    b"0", b"1", b"9" * 18, b"-1", b":", b",", b"=", b"#", b"\n", b"\n\n", b"nan", b"inf", b"0x1p+5000", b"%x[", b"u",
    b"B",
)  # fmt: skip


def renumbered(rng: random.Random, data: bytes) -> bytes:
    """Return a binary file with some numbers changed: to odd values, to each other, or slightly."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(0, max(1, len(out) - 4))
        if rng.random() < 0.7:
            at &= ~3
        if at + 4 > len(out):
            continue
        (old,) = struct.unpack_from("<I", out, at)
        choice = rng.randrange(3)
        new = rng.choice(NUMBERS) if choice == 0 else old + rng.choice((-8, -4, -1, 1, 4, 8))
        if choice == 2:
            other = rng.randrange(0, len(out) - 3) & ~3
            (new,) = struct.unpack_from("<I", out, other)
        struct.pack_into("<I", out, at, new % 2**32)
    return bytes(out)


def reworded(rng: random.Random, data: bytes) -> bytes:
    """Return a text file with words inserted or replaced."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data) + 1)
        data = data[:at] + rng.choice(WORDS) + data[at + rng.randrange(4) :]
    return data


#: The undamaged files. The position of the damage matters, not its surroundings.
WHOLE = {name: make() for name, make in SAMPLES.items()}


def read_damaged(rng: random.Random, format: str) -> str:
    """Return "read" or "refused". A model that was read can tag and survives a round trip."""
    data = WHOLE[format]
    if rng.random() < 0.7:
        data = (renumbered if format in ("crfsuite", "crfpp") else reworded)(rng, data)
    else:
        data = mutated(rng, data)
    try:
        model = Model(**parts_of(FORMATS[format].read(data)))
    except ModelFileError:
        return "refused"
    recipe = model.recipe
    plain = recipe.kind == "attributes" or not recipe.columns
    words = [["a"], ["b"]] if plain else {column: ["a", "b"] for column in recipe.columns}
    if not (plain and recipe.kind == "patterns"):
        model.predict([words])
        model.marginals([words])
    try:
        again = FORMATS[format].read(model.exported(format))
    except ModelFileError as error:
        return "read" if "cannot express" in str(error) else f"written and refused: {error}"
    return "read" if again.labels == model.labels else "written otherwise"


def open_damaged(rng: random.Random) -> str:
    """Use the drop-in tagger, which reads a CRFsuite file in place and checks only the parts it visits.

    The full reader may refuse a file for parts that the sequence did not visit. If both accept it, labels agree.
    """
    data = WHOLE["crfsuite"]
    data = renumbered(rng, data) if rng.random() < 0.7 else mutated(rng, data)
    tagger, words = Tagger(), [["a"], ["b", "a", "other"], []]
    try:
        tagger.open_inmemory(data)
        found = tagger.tag(words)
        tagger.tag_many([words, [], words])
        if found:
            tagger.probability(found)
            tagger.marginal(found[0], 0)
    except (ModelFileError, ValueError):
        return "refused"
    try:
        model = Model(**parts_of(FORMATS["crfsuite"].read(data)))
    except ModelFileError:
        return "read"
    same = not model.labels or len(found) == len(words)
    return "read" if same else f"{len(found)} labels of {len(words)} items"


#: Trials by name. Each takes a generator.
FOREIGN = {
    **{name: lambda rng, name=name: read_damaged(rng, name) for name in FORMATS},
    "crfsuite as it lies": open_damaged,
}
