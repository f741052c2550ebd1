"""Constraints on label sequences: schemes, forbidden and required transitions, labels that occur once.

>>> rules = Constraints.parse("bio").rules(["O", "B-PER", "I-PER"])
>>> rules.start.tolist(), rules.pairs[0].tolist()
([True, True, False], [True, True, False])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.domains import Anything
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.base.parameters import meant
from tagwise.corpus import schemes
from tagwise.corpus.labels import text, type_name
from tagwise.dataset.layout import codes_of

Bools = NDArray[np.bool_]
#: Sets of labels [sets, L] and the set of each token [tokens], in the form of the core.
Support = tuple[Bools, NDArray[np.uint32]]
Pair = tuple[str | None, str | None]
#: Group of each label [L], and whether a span begins between two labels [L + 1, L].
Groups = tuple[NDArray[np.uint32], Bools]

_KEYS = ("scheme", "forbidden", "required", "once")


@dataclass(frozen=True)
class Rules:
    """Constraints over the labels of one model."""

    start: Bools  # [L] whether a label may begin a sentence
    pairs: Bools  # [L, L] whether a label may follow another
    end: Bools  # [L] whether a label may end a sentence
    group: NDArray[np.uint32]  # [L] number in `once` that each label belongs to, or NO_GROUP
    begins: Bools  # [L + 1, L] whether a span begins between two labels (row L: start of the sentence)

    @property
    def forbidden(self) -> NDArray[np.uint32]:
        """Forbidden pairs in the numbering of the core."""
        return np.flatnonzero(~self.pairs.ravel()).astype(np.uint32)

    @property
    def once(self) -> Groups | None:
        """Labels that may form only one span, in the form of the core, or None."""
        return (self.group, self.begins) if (self.group != NO_GROUP).any() else None


NO_GROUP = _core.NO_GROUP


@dataclass(frozen=True)
class Constraints:
    """Constraints as a user declares them.

    Attributes:
        scheme: IOB1, IOB2, IOE1, IOE2, IOBES or BILOU, or "auto" for that of the training data.
        forbidden: Pairs (label, next label). None is the start or the end of a sentence.
        required: Labels, and the only labels that may follow each.
        once: Labels or types of chunks that form at most one contiguous span per sentence.
    """

    scheme: str | None = None
    forbidden: tuple[Pair, ...] = ()
    required: tuple[tuple[str, tuple[str | None, ...]], ...] = ()
    once: tuple[str, ...] = ()

    @staticmethod
    def parse(value: Any) -> Constraints:
        """Parse the value of a user: the name of a scheme, "auto", or a mapping of the four names."""
        if isinstance(value, Constraints):
            return value
        if isinstance(value, str):
            value = {"scheme": value}
        if not isinstance(value, Mapping) or any(key not in _KEYS for key in value):
            raise ParameterError(
                f"constraints={value!r}: expected auto, the name of a scheme such as IOB2, or a mapping with some of "
                f"{', '.join(_KEYS)}"
            )
        scheme = value.get("scheme")
        if scheme is not None and scheme != "auto":
            try:
                scheme = schemes.scheme_name(str(scheme))
            except CorpusError:
                known = ("auto", *schemes.SCHEMES)
                hint = meant(str(scheme), known) or meant(str(scheme).upper(), known)
                raise ParameterError(
                    f"constraints: unknown label scheme {scheme!r}{hint}. Use one of {', '.join(known)}."
                ) from None
        required = value.get("required") or {}
        pairs = required.items() if isinstance(required, Mapping) else required
        try:
            return Constraints(
                scheme,
                tuple((_text(a), _text(b)) for a, b in value.get("forbidden") or ()),
                tuple((text(a), tuple(map(_text, _listed(b, [None])))) for a, b in pairs),
                tuple(map(text, _listed(value.get("once")))),
            )
        except (TypeError, ValueError):
            raise ParameterError(
                f"constraints={value!r}: expected forbidden as a list of pairs, required as a mapping of label -> "
                "labels, and once as a list of labels"
            ) from None

    def resolved(
        self, labels: Sequence[str], gold: Any = None, layout: _core.Layout | None = None
    ) -> Constraints:
        """Return a copy with "auto" replaced by the scheme of the gold labels or of the observed transitions."""
        if self.scheme != "auto":
            return self
        found = schemes.detect(gold) if gold is not None else scheme_of(labels, layout)
        return Constraints(found, self.forbidden, self.required, self.once)

    def rules(self, labels: Sequence[str]) -> Rules:
        """Return the constraints over these labels."""
        n, index = len(labels), {label: i for i, label in enumerate(labels)}
        start, end = np.ones(n, dtype=np.bool_), np.ones(n, dtype=np.bool_)
        pairs = np.ones((n, n), dtype=np.bool_)
        if self.scheme is not None:
            found = schemes.allowed(labels, self.scheme)
            start, pairs, end = (np.array(part, dtype=np.bool_).copy() for part in found)

        def place(label: str) -> int:
            if label not in index:
                raise ParameterError(
                    f"constraints: unknown label {label!r}{meant(label, labels)}. The labels are: {' '.join(labels)}"
                )
            return index[label]

        for before, after in self.forbidden:
            if before is not None and after is not None:
                pairs[place(before), place(after)] = False
            elif after is not None:
                start[place(after)] = False
            elif before is not None:
                end[place(before)] = False
            else:
                raise ParameterError(
                    "constraints: forbidden has the pair (None, None). Name a label on one side"
                )
        for before, following in self.required:
            row = np.zeros(n, dtype=np.bool_)
            row[[place(after) for after in following if after is not None]] = True
            pairs[place(before)] &= row
            end[place(before)] &= None in following
        return Rules(start, pairs, end, *self._groups(labels))

    def _groups(self, labels: Sequence[str]) -> tuple[NDArray[np.uint32], Bools]:
        n = len(labels)
        group = np.full(n, NO_GROUP, dtype=np.uint32)
        chunks = schemes.has_chunks(labels)
        for number, name in enumerate(self.once):
            mine = [y == name or (chunks and y != "O" and schemes.split_label(y)[1] == name) for y in labels]
            if not any(mine):
                raise ParameterError(
                    f"constraints: once names {name!r}{meant(name, labels)}, which is neither a label nor a chunk "
                    f"type. The labels are: {' '.join(labels)}"
                )
            group[np.array(mine)] = number
        begins = np.ones((n + 1, n), dtype=np.bool_)
        for a, before in enumerate(labels):
            for b, after in enumerate(labels):
                begins[a, b] = schemes.boundary(before, after)[1] if chunks else before != after
        return group, begins

    def to_json(self) -> dict[str, Any]:
        """Return the constraints for a model file."""
        return {
            "scheme": self.scheme,
            "forbidden": [list(pair) for pair in self.forbidden],
            "required": [[label, list(following)] for label, following in self.required],
            "once": list(self.once),
        }


#: Type of the parameter `constraints`.
ConstraintsLike = str | Mapping[str, Any] | None

CONSTRAINTS = Anything(
    f"auto, bio, IOBES ..., a mapping with {', '.join(_KEYS)}",
    function=lambda constrained: Constraints.parse(constrained).to_json(),
    optional=True,
)


def _listed(names: Any, none: Iterable[Any] = ()) -> Iterable[Any]:
    if names is None:
        return none
    return (names,) if type_name(type(names)) else names


def _text(label: Any) -> str | None:
    return None if label is None else text(label)


def scheme_of(labels: Sequence[str], layout: _core.Layout | None) -> str | None:
    """Return the scheme with the fewest violations in the observed transitions of a model, or None without chunks."""
    if not schemes.has_chunks(labels):
        return None
    pairs: list[tuple[str | None, str | None]] = []
    if layout is not None:
        _, edges, starts, ends, _ = (codes.tolist() for codes in codes_of(layout))
        pairs += [(labels[e // len(labels)], labels[e % len(labels)]) for e in edges]
        pairs += [(None, labels[y]) for y in starts]
        pairs += [(labels[y], None) for y in ends]
    counts = {
        scheme: sum(not schemes.valid(a, b, scheme) for a, b in pairs)
        for scheme in schemes.SCHEMES
        if all(
            schemes.valid(y, y, scheme) or schemes.valid(None, y, scheme) or schemes.valid(y, None, scheme)
            for y in labels
        )
    }
    return min(counts, key=counts.__getitem__) if counts else None


# --- supports -----------------------------------------------------------------------------------------------


def boundary_support(rules: Rules, offsets: NDArray[np.uint64]) -> Support | None:
    """Return the labels that may begin and end sentences as sets, or None if all may."""
    if rules.start.all() and rules.end.all():
        return None
    bounds = offsets.astype(np.int64)
    full = bounds[:-1][np.diff(bounds) > 0], bounds[1:][np.diff(bounds) > 0] - 1
    of = np.zeros(int(bounds[-1]), dtype=np.uint32)
    of[full[0]] |= 1
    of[full[1]] |= 2
    all_labels = np.ones_like(rules.start)
    return np.array([all_labels, rules.start, rules.end, rules.start & rules.end]), of


def intersect(*supports: Support | None) -> Support | None:
    """Return the labels that all supports allow."""
    constrained = [s for s in supports if s is not None]
    if len(constrained) < 2:
        return constrained[0] if constrained else None
    sets, of = constrained[0]
    for more, other in constrained[1:]:
        code = of.astype(np.int64) * len(more) + other
        used, where = np.unique(code, return_inverse=True)
        sets = sets[used // len(more)] & more[used % len(more)]
        of = where.astype(np.uint32)
    return sets, of
