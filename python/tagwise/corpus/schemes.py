"""Label schemes for chunks: IOB1, IOB2, IOE1, IOE2, IOBES and BILOU.

A label is a tag, or a tag and a type joined by the first hyphen: ``O``, ``B-PER``, ``B-creative-work``.

=======  ==============================================================================================
IOB1     I inside, B only for a chunk right after one of the same type (Ramshaw & Marcus 1995)
IOB2     every chunk begins with B
IOE1     I inside, E only for a chunk right before one of the same type (Tjong Kim Sang & Veenstra 1999)
IOE2     every chunk ends with E
IOBES    B, I and E for longer chunks, S for chunks of one token
BILOU    IOBES with L for E and U for S
=======  ==============================================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from tagwise.base.exceptions import CorpusError
from tagwise.base.parameters import meant

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
_SAME = {"L": "E", "U": "S"}  # BILOU tag -> IOBES tag
_CHUNK_TAGS = frozenset("BIESLU[]")


class Span(NamedTuple):
    """A chunk of tokens.

    Attributes:
        type: Type of the chunk, such as ``PER``. Empty for labels without a type.
        begin: Index of the first token.
        end: Index after the last token.

    >>> Span("PER", 0, 2).end
    2
    """

    type: str
    begin: int
    end: int

    def _repr_html_(self) -> str:
        from tagwise.base.markup import label_html, object_html

        return object_html(self, [("type", label_html(self.type)), ("tokens", f"{self.begin} to {self.end}")])


def scheme_name(scheme: str) -> str:
    """Return the canonical name of a scheme.

    Args:
        scheme: str. Name or alias in any case, such as ``bio``.

    Returns:
        One of ``SCHEMES``.

    Raises:
        CorpusError: The scheme is unknown.

    >>> scheme_name("bio")
    'IOB2'
    """
    name = _ALIASES.get(scheme.upper(), scheme.upper())
    if name not in _TAGS:
        raise CorpusError(
            f"unknown label scheme {scheme!r}{meant(name, SCHEMES)}. Use one of {', '.join(SCHEMES)}."
        )
    return name


def split_label(label: str) -> tuple[str, str]:
    """Split a label into tag and type at the first hyphen, as conlleval does.

    Args:
        label: str. A label such as ``B-PER``.

    Returns:
        The tuple ``(tag, type)``. The type is empty if there is no hyphen.

    >>> split_label("B-creative-work")
    ('B', 'creative-work')
    """
    tag, _, kind = label.partition("-")
    return tag, kind


@lru_cache(maxsize=1 << 16)
def boundary(previous: str, label: str) -> tuple[bool, bool]:
    """Return whether a chunk ends and whether a chunk begins between two neighbouring labels.

    The rules are those of conlleval (Tjong Kim Sang & Buchholz 2000), which accept ill-formed sequences: a chunk also
    begins at an I after O and at every change of type. IOBES follows later versions of conlleval: E and S always end
    a chunk, S always begins one, and so does B after E or S.

    Args:
        previous: str. Label of a token, or ``O`` at the beginning of a sequence.
        label: str. Label of the next token.

    Returns:
        The tuple ``(ends, begins)``.

    >>> boundary("B-PER", "I-PER"), boundary("I-PER", "I-LOC")
    ((False, False), (True, True))
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
    """Return whether a label can belong to a chunk scheme.

    Args:
        label: str. Any label.

    Returns:
        True for ``O`` and for a chunk tag with or without a type.

    >>> is_chunk_label("B-PER"), is_chunk_label("NN")
    (True, False)
    """
    tag, kind = split_label(label)
    return label == "O" or (tag in _CHUNK_TAGS and (bool(kind) or "-" not in label))


def has_chunks(labels: Iterable[str]) -> bool:
    """Return whether labels mark chunks, as opposed to parts of speech, for example.

    Args:
        labels: iterable of str. Labels, in any order.

    Returns:
        True if all are chunk labels, and some have a type or the tags include B or I.

    >>> has_chunks(["B-PER", "O"]), has_chunks(["NN", "-LRB-", "O"])
    (True, False)
    """
    distinct = set(labels)
    if not all(map(is_chunk_label, distinct)):
        return False
    typed = any("-" in y for y in distinct)
    return typed or (bool(distinct & {"B", "I"}) and "O" in distinct) or {"B", "I"} <= distinct


def spans(labels: Sequence[str], scheme: str | None = None) -> list[Span]:
    """Return the chunks of a label sequence, in order.

    The rules (see `boundary`) are the same for every scheme and accept ill-formed sequences.

    Args:
        labels: sequence of str. Labels of one sentence.
        scheme: str or None, default=None. Reject labels with tags that are not part of this scheme. None accepts any
            scheme.

    Returns:
        A list of `Span`.

    Raises:
        CorpusError: A label is not a chunk label, or not one of ``scheme``.

    >>> spans(["B-PER", "I-PER", "O", "B-LOC"])
    [Span(type='PER', begin=0, end=2), Span(type='LOC', begin=3, end=4)]
    """
    if scheme is not None:
        tags = _TAGS[scheme_name(scheme)]
        for t, y in enumerate(labels):
            if split_label(y)[0] not in tags:
                raise CorpusError(f"token {t}: {y!r} is not a label of {scheme_name(scheme)}. {_EXPECTED}")
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
                raise CorpusError(f"token {t}: label {y!r} does not belong to a chunk scheme. {_EXPECTED}")
            begin, kind = t, split_label(y)[1]
        previous = y
    if begin >= 0:
        found.append(Span(kind, begin, len(labels)))
    return found


_EXPECTED = "Expected O, or B-, I-, E- ... with a type. Name the right scheme or label column."


def from_spans(chunks: Iterable[Span | tuple[str, int, int]], length: int, scheme: str) -> list[str]:
    """Return the labels of a sequence of tokens with given chunks.

    Args:
        chunks: iterable of Span or (type, begin, end). Disjoint chunks in order.
        length: int. Number of tokens.
        scheme: str. Scheme of the labels.

    Returns:
        A list of ``length`` labels.

    Raises:
        CorpusError: The scheme is unknown, or the chunks overlap, are out of order or out of range.

    >>> from_spans([("PER", 0, 2)], 3, "IOBES")
    ['B-PER', 'E-PER', 'O']
    """
    scheme = scheme_name(scheme)
    single, last = {"IOBES": ("S", "E"), "BILOU": ("U", "L")}.get(scheme, ("", ""))
    labels = ["O"] * length
    ordered = [Span(*c) for c in chunks]
    at = 0
    for i, (kind, begin, end) in enumerate(ordered):
        if not at <= begin < end <= length:
            raise CorpusError(
                f"chunk {kind or '(no type)'} from {begin} to {end} overlaps another one or is not inside the "
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
    """Convert a label sequence to another scheme.

    Args:
        labels: sequence of str. Labels of one sentence.
        source: str or None. Scheme of the labels. None accepts any scheme.
        target: str. Scheme of the result.

    Returns:
        The labels of the same chunks in the scheme ``target``.

    Raises:
        CorpusError: A scheme is unknown, or a label is not a chunk label or not one of ``source``.

    >>> convert(["I-PER", "I-PER", "O"], "IOB1", "IOBES")
    ['B-PER', 'E-PER', 'O']
    """
    for t, y in enumerate(labels):
        if not is_chunk_label(y):
            raise CorpusError(f"token {t}: label {y!r} does not belong to a chunk scheme. {_EXPECTED}")
    return from_spans(spans(labels, source), len(labels), target)


def valid(previous: str | None, following: str | None, scheme: str) -> bool:
    """Return whether a scheme allows one label after another.

    Args:
        previous: str or None. The first label. None means the start of the sequence.
        following: str or None. The second label. None means the end of the sequence.
        scheme: str. Name of the scheme.

    Returns:
        False if either label is not part of the scheme, or if the pair is not allowed.

    Raises:
        CorpusError: The scheme is unknown.

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
    """Allowed transitions between labels.

    Attributes:
        start: Whether each label may begin a sequence.
        pairs: ``pairs[i][j]`` is whether label j may follow label i.
        end: Whether each label may end a sequence.

    >>> allowed(["O", "B-PER", "I-PER"], "IOB2").start
    [True, True, False]
    """

    start: list[bool]
    pairs: list[list[bool]]
    end: list[bool]

    def __repr__(self) -> str:
        n, pairs = len(self.start), sum(map(sum, self.pairs))
        return f"<Allowed: {n} labels, {pairs} of {n * n} pairs>"

    def _repr_html_(self) -> str:
        from tagwise.base.markup import object_html

        rows = [
            ("may begin", sum(self.start)),
            ("pairs", sum(map(sum, self.pairs))),
            ("may end", sum(self.end)),
        ]
        return object_html(self, rows)


def allowed(labels: Sequence[str], scheme: str) -> Allowed:
    """Return the transitions between labels that a scheme allows, for constrained decoding.

    Args:
        labels: sequence of str. Distinct labels.
        scheme: str. Name of the scheme.

    Returns:
        An `Allowed` with one entry per label.

    Raises:
        CorpusError: The scheme is unknown.

    >>> allowed(["O", "B-PER", "I-PER"], "IOB2").pairs[0]
    [True, True, False]
    """
    return Allowed(
        [valid(None, y, scheme) for y in labels],
        [[valid(y, z, scheme) for z in labels] for y in labels],
        [valid(y, None, scheme) for y in labels],
    )


def detect(labels: Iterable[str] | Iterable[Sequence[str]]) -> str | None:
    """Detect the scheme of one or more label sequences.

    The result is the scheme with the fewest violations. A tie is resolved in the order IOB2, IOE2, IOBES, BILOU,
    IOB1, IOE1.

    Args:
        labels: iterable of str or of sequences of str. One label sequence, or several.

    Returns:
        The name of the scheme, or None for labels that do not mark chunks.

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
