"""Named feature sets as template texts over the available columns.

S1, S2 and S3 are from Altun, Johnson and Hofmann (2003), pos and ner from Gimpel and Cohen (2007), Tables 1 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import combinations

from tagwise.base.exceptions import TemplateError
from tagwise.base.parameters import meant

DEFAULT_COLUMN = "word"


def is_crfpp(text: str) -> bool:
    """Return whether a text is a CRF++ template: lines that begin with U or B, at least one with a %x macro."""
    lines = [line.strip() for line in text.splitlines()]
    return "%x[" in text and all(re.match("[UB#]|$", line) for line in lines)


def quoted(column: str) -> str:
    """Return a column name in the syntax of templates, quoted if necessary.

    >>> quoted("word"), quoted("my pos")
    ('word', '"my pos"')
    """
    if re.fullmatch(r"[^\W\d]\w*", column):
        return column
    return '"' + column.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _s1(columns: Sequence[str], window: int = 0) -> str:
    """Return S1: the word. The previous label is part of every model."""
    return f"{quoted(columns[0])}[0]\n"


def _s3(columns: Sequence[str], window: int = 1) -> str:
    """Return S3: the observations of S2 for every word at most `window` tokens away."""
    word = quoted(columns[0])
    near = f"{word}[{-window}..{window}]" if window else f"{word}[0]"
    lines = [near, f"{near}.suffix(1..3)", f"{near}.initial", f"{near}.is_upper?", f"{near}.has_hyphen?"]
    for offset in range(-window, window + 1):
        lines.append(f"{word}[{offset}].is_capitalized? & {word}[{offset}].has_dot?")
    return "\n".join(lines) + "\n"


def _s2(columns: Sequence[str], window: int = 0) -> str:
    """Return S2: word, suffixes of 1-3 letters, class of the first letter, capital and dot, all caps, hyphen."""
    return _s3(columns, 0)


def _pairs(columns: Sequence[str], window: int = 0) -> str:
    """Return S2pairs: the attributes of S2 and all conjunctions of two of them.

    Two tokens that share n attributes of S2 share n (n + 1) / 2 of these. A linear model with S2pairs is therefore a
    model with S2 and the corresponding polynomial kernel of degree 2, in explicit form.
    """
    word = f"{quoted(columns[0])}[0]"
    of = [word, *(f"{word}.suffix({n})" for n in (1, 2, 3)), f"{word}.initial", f"{word}.is_upper?"]
    of += [f"{word}.has_hyphen?", f"{word}.is_capitalized? & {word}.has_dot?"]
    return "\n".join([*of, *(f"{a} & {b}" for a, b in combinations(of, 2))]) + "\n"


def _default(columns: Sequence[str], window: int = 2) -> str:
    """Return default: a rich set for tagging, chunking and entities, including other columns (POS, chunk)."""
    word = quoted(columns[0])
    text = _DEFAULT.replace("word[", f"{word}[").replace("WINDOW", str(window))
    for column in columns[1:]:
        text += _DEFAULT_COLUMN.replace("pos[", f"{quoted(column)}[").replace("word[", f"{word}[")
    return text


_DEFAULT = """\
bias
first
last
word[-WINDOW..WINDOW].lower
word[0]
word[0].lower.prefix(1..4)
word[0].lower.suffix(1..4)
word[-1,1].lower.suffix(1..3)
word[-1..1].short_shape
word[0].shape
word[0].is_capitalized?
first & word[0].is_capitalized?
word[0].has_digit?
word[0].has_hyphen?
word[-1].lower & word[0].lower
word[0].lower & word[1].lower
word[-1].short_shape & word[0].short_shape
word[0].short_shape & word[1].short_shape
"""

_DEFAULT_COLUMN = """\
pos[-2..2]
pos[-2] & pos[-1]
pos[-1] & pos[0]
pos[0] & pos[1]
pos[1] & pos[2]
pos[-1] & pos[0] & pos[1]
pos[0] & word[0].lower
"""


def _pos(columns: Sequence[str], window: int = 0) -> str:
    """Return pos: Table 1 of Gimpel and Cohen (word, rareness, capitals, numbers, three suffixes)."""
    return _POS.replace("word[", f"{quoted(columns[0])}[")


_POS = """\
word[0]
word[0].is_rare(3)?
word[0].is_upper?
word[0].is_capitalized?
word[0].is_number?
word[0].ends_with("ing")?
word[0].ends_with("ed")?
word[0].ends_with("s")?
"""

#: Columns of parts of speech, in order of preference.
TAG_COLUMNS = ("pos", "xpos", "upos", "tag")


def _ner(columns: Sequence[str], window: int = 1) -> str:
    """Return ner: Table 4 of Gimpel and Cohen (words, POS, shapes, affixes, lists, quotes and brackets).

    The POS column is the one named pos, xpos, upos or tag, or else the second column. Without a second column, the POS
    lines are omitted.
    """
    lists = {"TITLES": _TITLES, "MONTHS": _MONTHS, "DAYS": _DAYS}
    text = _NER
    for name, words in lists.items():
        text = text.replace(name, ", ".join(f'"{word}"' for word in words.split()))
    text = text.replace("word[", f"{quoted(columns[0])}[")
    others = list(columns[1:])
    tag = next((name for name in TAG_COLUMNS if name in others), others[0] if others else None)
    if tag is not None:
        text += _NER_TAG.replace("pos[", f"{quoted(tag)}[").replace("word[", f"{quoted(columns[0])}[")
    return text


_TITLES = """mr mr. mrs mrs. ms ms. miss dr dr. prof prof. sir lord lady dame rev rev. fr fr. st st. jr jr. sr sr.
gen gen. col col. maj maj. capt capt. lt lt. sgt sgt. adm adm. cmdr cmdr. sen sen. rep rep. gov gov. hon hon.
president vice-president premier chancellor minister prime-minister secretary ambassador senator congressman
congresswoman governor mayor judge justice king queen prince princess duke duchess emperor pope cardinal archbishop
bishop father sister brother reverend rabbi sheikh ayatollah imam general colonel major captain lieutenant sergeant
admiral commander marshal chairman chairwoman chief director doctor professor coach spokesman spokeswoman"""
_MONTHS = """january february march april may june july august september october november december
jan jan. feb feb. mar mar. apr apr. jun jun. jul jul. aug aug. sep sep. sept sept. oct oct. nov nov. dec dec."""
_DAYS = """monday tuesday wednesday thursday friday saturday sunday
mon mon. tue tue. tues tues. wed wed. thu thu. thur thur. thurs thurs. fri fri. sat sat. sun sun."""

_NER = r"""
first
word[-1..1]
word[-1..1].shape
word[-1].shape & word[0]
word[-1..1].is_capitalized?
word[-1..1].is_upper?
word[-1..1].is_lower?
word[-1,0].is_digit?
word[0].ends_with("s")?
word[0].longer_than(4)?
month = word[0].lower.one_of(MONTHS)?
day = word[0].lower.one_of(DAYS)?
word[-1..1].prefix(3)
word[-1..1].suffix(3)
title = word[-1..1].lower.one_of(TITLES)?
quoted = word[-1].one_of("\"", "'", "`", "``", "''", "“", "‘")? & word[1].one_of("\"", "'", "''", "”", "’")?
bracketed = word[-1].one_of("(", "[", "-LRB-")? & word[1].one_of(")", "]", "-RRB-")?
word[-1].is_capitalized? & word[1].is_capitalized?
""".lstrip()

_NER_TAG = """\
pos[-1..1]
pos[0] & word[0]
pos[-1] & word[0]
pos[-1] & pos[0] & word[0]
"""

#: Functions that return the template of each named set, given the columns and the half-width of the window.
SETS: dict[str, Callable[..., str]] = {
    "S1": _s1,
    "S2": _s2,
    "S3": _s3,
    "S2pairs": _pairs,
    "pos": _pos,
    "ner": _ner,
    "default": _default,
}
_FIXED = {
    "S1": "uses only the current word. For a window, use S3(window={}).",
    "S2": "uses only the current word. For a window, use S3(window={}).",
    "S2pairs": "uses only the current word. To add others, write a template.",
    "pos": "uses only the current word. To add others, write a template.",
    "ner": "has a fixed window of one word. To add others, write a template.",
}


def template_text(name: str, columns: Sequence[str] = (DEFAULT_COLUMN,)) -> str:
    """Return the template of a named set, which may have parameters as in `S3(window=2)`.

    >>> print(template_text("S1"), end="")
    word[0]
    """
    match = re.fullmatch(r"\s*(\w+)\s*(?:\(\s*(?:window\s*=\s*)?(\d+)?\s*\))?\s*", name)
    if re.search(r"\+\s*classes\s*$", name):
        raise TemplateError(
            f"{name!r} names no classes. Add those of tagwise.WordClasses.learn(text), or name a file: {name}:FILE"
        )
    if match is None or match[1] not in SETS:
        raise TemplateError(
            f"no feature set {name!r}{meant(name, SETS)}. Use {', '.join(SETS)}, or a template such as word[0]."
        )
    if match[2] is None:
        return SETS[match[1]](columns)
    if match[1] in _FIXED:
        raise TemplateError(f"{match[1]} {_FIXED[match[1]].format(match[2])}")
    if int(match[2]) > 50:
        raise TemplateError(f"window={match[2]} is wider than 50 words. Choose a smaller half-width.")
    return SETS[match[1]](columns, int(match[2]))
