"""Label schemes for chunks: IOB1, IOB2, IOE1, IOE2, IOBES and BILOU.

A label is a tag, or a tag and a type joined by the first hyphen: ``O``, ``B-PER``, ``B-creative-work``.

=======  ==============================================================================================
IOB1     I inside; B only where a chunk follows one of its own type (Ramshaw & Marcus 1995)
IOB2     every chunk begins with B
IOE1     I inside; E only where a chunk is followed by one of its own type (Tjong Kim Sang & Veenstra 1999)
IOE2     every chunk ends with E
IOBES    B, I, E for longer chunks and S for those of one token
BILOU    the same with L for E and U for S
=======  ==============================================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from tagwise.base.exceptions import CorpusError

SCHEMES = ("IOB2", "IOE2", "IOBES", "BILOU", "IOB1", "IOE1")

_TAGS = {
    "IOB1": frozenset("IOB"),
    "IOB2": frozenset("IOB"),
    "IOE1": frozenset("IOE"),
    "IOE2": frozenset("IOE"),
    "IOBES": frozenset("IOBES"),
    "BILOU": frozenset("BILOU"),
}
_ALIASES = {"BIO": "IOB2", "BIO2": "IOB2", "IOB": "IOB1", "IOE": "IOE2", "BIOES": "IOBES", "BIOUL": "BILOU"}
_SAME = {"L": "E", "U": "S"}  # BILOU's letters for IOBES's
_CHUNK_TAGS = frozenset("BIESLU[]")


class Span(NamedTuple):
    """A chunk: its type and the tokens ``begin`` to ``end``, the latter excluded."""

    type: str
    begin: int
    end: int


def scheme_name(scheme: str) -> str:
    """The canonical name of a scheme (``bio`` -> ``IOB2``); CorpusError where there is none."""
    name = _ALIASES.get(scheme.upper(), scheme.upper())
    if name not in _TAGS:
        raise CorpusError(f"there is no label scheme {scheme!r}. Use one of {', '.join(SCHEMES)}.")
    return name


def split_label(label: str) -> tuple[str, str]:
    """Tag and type of a label, as conlleval splits them: at the first hyphen."""
    tag, _, kind = label.partition("-")
    return tag, kind


@lru_cache(maxsize=1 << 16)
def boundary(previous: str, label: str) -> tuple[bool, bool]:
    """Whether between two labels a chunk ends, and whether one begins.

    These are the rules of conlleval (Tjong Kim Sang & Buchholz 2000), which take ill-formed sequences too: a
    chunk also begins at an I after O and wherever the type changes. To them IOBES is added as later versions
    have it: E and S always end a chunk, S always begins one, and so does B after either.
    """
    (p, p_type), (t, t_type) = split_label(previous), split_label(label)
    p, t = _SAME.get(p, p), _SAME.get(t, t)
    ends = (
        p in ("E", "S", "[", "]")
        or (p in ("B", "I") and t in ("B", "S", "O"))
        or (p not in ("O", ".") and p_type != t_type)
    )
    begins = (
        t in ("S", "[", "]")
        or (t == "B" and p in ("B", "I", "O", "E", "S"))
        or (t in ("I", "E") and p in ("O", "E", "S"))
        or (t not in ("O", ".") and p_type != t_type)
    )
    return ends, begins


def is_chunk_label(label: str) -> bool:
    """Whether a label can belong to a chunk scheme."""
    tag, kind = split_label(label)
    return label == "O" or (tag in _CHUNK_TAGS and (bool(kind) or "-" not in label))


def has_chunks(labels: Iterable[str]) -> bool:
    """Whether a set of labels is one of chunks and not, say, of parts of speech.

    >>> has_chunks(["B-PER", "O"]), has_chunks(["NN", "-LRB-", "O"])
    (True, False)
    """
    distinct = set(labels)
    if not all(map(is_chunk_label, distinct)):
        return False
    typed = any("-" in y for y in distinct)
    return typed or (bool(distinct & {"B", "I"}) and "O" in distinct) or {"B", "I"} <= distinct


def spans(labels: Sequence[str], scheme: str | None = None) -> list[Span]:
    """The chunks of a label sequence, in order.

    One set of rules reads every scheme (see boundary): ``scheme`` serves only to refuse labels of another.

    >>> spans(["B-PER", "I-PER", "O", "B-LOC"])
    [Span(type='PER', begin=0, end=2), Span(type='LOC', begin=3, end=4)]
    """
    if scheme is not None:
        tags = _TAGS[scheme_name(scheme)]
        for t, y in enumerate(labels):
            if split_label(y)[0] not in tags:
                raise CorpusError(f"token {t}: label {y!r} is not one of {scheme_name(scheme)}. {_EXPECTED}")
    found: list[Span] = []
    previous, begin, kind = "O", -1, ""
    for t, y in enumerate(labels):
        if y == "O" == previous:
            continue
        ends, begins = boundary(previous, y)
        if begin >= 0 and (ends or begins):
            found.append(Span(kind, begin, t))
            begin = -1
        if begins:
            if not is_chunk_label(y):
                raise CorpusError(f"token {t}: label {y!r} belongs to no chunk scheme. {_EXPECTED}")
            begin, kind = t, split_label(y)[1]
        previous = y
    if begin >= 0:
        found.append(Span(kind, begin, len(labels)))
    return found


_EXPECTED = "Expected O, or B-, I-, E- ... with a type; name the right scheme or label column."


def from_spans(chunks: Iterable[Span | tuple[str, int, int]], length: int, scheme: str) -> list[str]:
    """The labels of a sequence of ``length`` tokens with these chunks (disjoint, in order)."""
    scheme = scheme_name(scheme)
    single, last = {"IOBES": ("S", "E"), "BILOU": ("U", "L")}.get(scheme, ("", ""))
    labels = ["O"] * length
    ordered = [Span(*c) for c in chunks]
    at = 0
    for i, (kind, begin, end) in enumerate(ordered):
        if not at <= begin < end <= length:
            raise CorpusError(
                f"chunk {kind or '(no type)'} from {begin} to {end} overlaps another or leaves the "
                f"{length} tokens. Give disjoint chunks in order."
            )
        touches = i > 0 and at == begin and ordered[i - 1].type == kind
        touched = i + 1 < len(ordered) and ordered[i + 1].begin == end and ordered[i + 1].type == kind
        tags = ["I"] * (end - begin)
        if single:
            tags[0], tags[-1] = "B", last
            if len(tags) == 1:
                tags[0] = single
        elif scheme == "IOB2" or (scheme == "IOB1" and touches):
            tags[0] = "B"
        elif scheme == "IOE2" or (scheme == "IOE1" and touched):
            tags[-1] = "E"
        labels[begin:end] = [f"{tag}-{kind}" if kind else tag for tag in tags]
        at = end
    return labels


def convert(labels: Sequence[str], source: str | None, target: str) -> list[str]:
    """The same chunks in another scheme; ``source`` None takes any.

    >>> convert(["I-PER", "I-PER", "O"], "IOB1", "IOBES")
    ['B-PER', 'E-PER', 'O']
    """
    for t, y in enumerate(labels):
        if not is_chunk_label(y):
            raise CorpusError(f"token {t}: label {y!r} belongs to no chunk scheme. {_EXPECTED}")
    return from_spans(spans(labels, source), len(labels), target)


def valid(previous: str | None, following: str | None, scheme: str) -> bool:
    """Whether two labels may follow one another in a scheme; None stands for the sequence's start or end.

    >>> valid("O", "I-PER", "IOB2"), valid("B-PER", "I-PER", "IOB2"), valid("B-PER", None, "IOBES")
    (False, True, False)
    """
    scheme = scheme_name(scheme)
    for y in (previous, following):
        if y is not None and (split_label(y)[0] not in _TAGS[scheme] or not is_chunk_label(y)):
            return False
    p, p_type = split_label("O" if previous is None else previous)
    t, t_type = split_label("O" if following is None else following)
    p, t = _SAME.get(p, p), _SAME.get(t, t)
    same = p != "O" != t and p_type == t_type  # both in chunks of one type
    if scheme == "IOB1":
        return t != "B" or same
    if scheme == "IOB2":
        return t != "I" or same
    if scheme == "IOE1":
        return p != "E" or same
    if scheme == "IOE2":
        return p != "I" or same
    inside = p in ("B", "I")
    return (same and t in ("I", "E")) if inside else t not in ("I", "E")


class Allowed(NamedTuple):
    """Which labels may begin a sequence, follow one another (``pairs[from][to]``) and end it."""

    start: list[bool]
    pairs: list[list[bool]]
    end: list[bool]


def allowed(labels: Sequence[str], scheme: str) -> Allowed:
    """The transitions that a scheme allows between labels, for constrained decoding."""
    return Allowed(
        [valid(None, y, scheme) for y in labels],
        [[valid(y, z, scheme) for z in labels] for y in labels],
        [valid(y, None, scheme) for y in labels],
    )


def detect(labels: Iterable[str] | Iterable[Sequence[str]]) -> str | None:
    """The scheme that label sequences (or one) are in; None for labels that mark no chunks.

    Ill-formed sequences get the scheme with the fewest violations. Those that are valid in several schemes
    get the first of IOB2, IOE2, IOBES, BILOU, IOB1, IOE1.

    >>> detect(["O", "B-PER", "I-PER"]), detect([["I-PER", "O"], ["I-LOC", "B-LOC"]]), detect(["NN", "VB"])
    ('IOB2', 'IOB1', None)
    """
    pairs: Counter[tuple[str | None, str | None]] = Counter()
    loose: list[str] = []
    for item in labels:
        if isinstance(item, str):
            loose.append(item)
        else:
            pairs.update(zip([None, *item], [*item, None]))
    if loose:
        pairs.update(zip([None, *loose], [*loose, None]))
    distinct = {y for pair in pairs for y in pair if y is not None}
    if not has_chunks(distinct):
        return None
    tags = {split_label(y)[0] for y in distinct}
    counts = {
        scheme: sum(n for (p, f), n in pairs.items() if not valid(p, f, scheme))
        for scheme in SCHEMES
        if tags <= _TAGS[scheme]
    }
    return min(counts, key=counts.__getitem__) if counts else None
