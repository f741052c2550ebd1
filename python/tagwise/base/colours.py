"""Colours of labels: one colour per label, the same in every sentence, notebook and page."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping

#: Colours that are distinguishable on light and on dark paper if drawn with OPACITY. Any two have a CIEDE2000
#: difference of at least 12 on white and on near-black paper, and text on them has a contrast of at least 4.5.
#: The first CALM ones are neither muddy on dark paper nor glaring on light paper, and are used before the others.
PALETTE = (
    *("#ff88aa", "#88aaee", "#ff8855", "#cc88ff", "#aaaa00", "#00bbcc", "#33bb77", "#ee8800"),
    *("#11cc00", "#ff0066", "#0022ff", "#006699", "#771177", "#883300", "#889977", "#ff0000"),
    *("#ff00ee", "#226600", "#881122", "#223377", "#aa8877", "#554400", "#004433", "#553344"),
)
CALM = 8
OPACITY = 0.5


def preferred(label: str) -> int:
    """Return the index of the colour that a label has unless another label uses it already.

    >>> preferred("PER") == preferred("PER")
    True
    """
    digest = hashlib.blake2b(label.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % CALM


def unused(label: str, uses: Mapping[int, int]) -> int:
    """Return the index of the colour of a new label: its own, or the next one of those that the fewest labels have.

    The calm colours come before the others.

    >>> unused("PER", {}) == preferred("PER"), unused("PER", {preferred("PER"): 1}) == preferred("PER")
    (True, False)
    """
    first = preferred(label)
    places: list[int] = [*range(first, CALM), *range(first), *range(CALM, len(PALETTE))]
    return min(places, key=lambda place: uses.get(place, 0))


def tint(index: int) -> str:
    """Return a colour of the palette as CSS, translucent so that it suits light and dark paper.

    >>> tint(0)
    'rgba(255,136,170,.5)'
    """
    red, green, blue = (int(PALETTE[index][i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{OPACITY:g})".replace("0.", ".")


class LabelColours:
    """Colours of labels by index in PALETTE.

    A label has the colour that its text prescribes (`preferred`). If another label has it, the label gets the next one
    of those that the fewest labels have, and keeps it. Colours repeat only with more labels than colours.

    >>> colours = LabelColours(["LOC", "ORG", "PER"])
    >>> len({colours.index(name) for name in ("PER", "LOC", "ORG")})
    3
    """

    def __init__(self, labels: Iterable[str] = ()) -> None:
        self._index: dict[str, int] = {}
        self._uses: Counter[int] = Counter()
        for label in sorted(set(labels)):
            self.index(label)

    def index(self, label: str) -> int:
        """Return the index of the colour of a label."""
        if label not in self._index:
            self._index[label] = unused(label, self._uses)
            self._uses[self._index[label]] += 1
        return self._index[label]

    def tint(self, label: str) -> str:
        """Return the colour of a label as CSS."""
        return tint(self.index(label))


#: Colours of everything that is displayed one sentence at a time, as in notebooks.
SHARED = LabelColours()
