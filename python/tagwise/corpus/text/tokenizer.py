"""Tokenization and sentence splitting of raw text, with character offsets. For the rules, see docs/howto/raw-text.md.

>>> found = Tokenizer()("Peter flew to London. He didn't stay.")
>>> found.tokens
['Peter', 'flew', 'to', 'London', '.', 'He', 'did', "n't", 'stay', '.']
>>> found.offsets[3].tolist(), found.sentences[1]
([14, 20], ['He', 'did', "n't", 'stay', '.'])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tagwise._core as _core
from tagwise.base.cached import cached
from tagwise.base.exceptions import CorpusError, ParameterError

#: Abbreviations. A following dot belongs to the token and does not end a sentence.
ABBREVIATIONS = (
    *(
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "st",
        "jr",
        "sr",
        "rev",
        "gen",
        "lt",
        "col",
        "capt",
        "sgt",
        "gov",
        "sen",
        "rep",
    ),
    *(
        "vs",
        "etc",
        "cf",
        "al",
        "approx",
        "dept",
        "est",
        "inc",
        "ltd",
        "corp",
        "co",
        "bros",
        "ave",
        "blvd",
        "ft",
        "mt",
    ),
    *("jan", "feb", "apr", "aug", "sept", "oct", "nov", "dec", "tue", "thu", "thur", "thurs"),
)

Places = NDArray[np.uint32]
Bounds = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Tokenized:
    """A tokenized text. Tokens are pieces of the text, in order.

    Attributes:
        text: The text.
        offsets: Offsets of the first character of each token and of the character after its last, [T, 2].
        bounds: Index of the first token of each sentence, followed by T, [S + 1].

    >>> found = Tokenizer()("Well, go. Now!")
    >>> found.tokens, found.bounds.tolist()
    (['Well', ',', 'go', '.', 'Now', '!'], [0, 4, 6])
    """

    text: str
    offsets: Places
    bounds: Bounds

    @property
    @cached
    def tokens(self) -> list[str]:
        """Tokens as strings, ``text[begin:end]``."""
        text = self.text
        return [text[begin:end] for begin, end in self.offsets.tolist()]

    @property
    def sentences(self) -> list[list[str]]:
        """Tokens of each sentence."""
        return [self.tokens[begin:end] for begin, end in pairwise(self.bounds.tolist())]

    def __len__(self) -> int:
        return len(self.offsets)

    def __repr__(self) -> str:
        from tagwise.base.terminal import brief

        return f"<Tokenized: {len(self)} tokens in {len(self.bounds) - 1} sentences, {brief(self.text)}>"

    def _repr_html_(self) -> str:
        from tagwise.base.markup import line_html, table_html

        rows = [(i, " ".join(sentence)) for i, sentence in enumerate(self.sentences[:20])]
        return line_html(repr(self)) + table_html(("", "tokens"), rows, left=2)


#: Alternative to a `Tokenizer`: a function that maps a text to its tokens, as strings or as (begin, end) offsets, or to
#: a list of sentences of these.
Tokenizes = Callable[[str], Any]


@dataclass(frozen=True)
class Tokenizer:
    """Rule-based tokenizer and sentence splitter. Choose the parameters that match the training corpus.

    Args:
        contractions: bool, default=True. Split English contractions, ``do|n't`` and ``Anna|'s``, as treebanks do.
            Set it to False for other languages.
        hyphens: bool, default=False. Split words at hyphens, ``well|-|known``. Numbers such as 2024-05-01 stay whole.
        sentences: bool, default=True. Split the text into sentences. Set it to False for texts of one sentence.
        abbreviations: tuple of str. Words in lower case, without the dot, that keep a following dot. The default is a
            list of common English abbreviations. Extend it with those of the domain.

    >>> Tokenizer()("They don't.").tokens, Tokenizer(contractions=False)("They don't.").tokens
    (['They', 'do', "n't", '.'], ['They', "don't", '.'])
    """

    contractions: bool = True
    hyphens: bool = False
    sentences: bool = True
    abbreviations: tuple[str, ...] = ABBREVIATIONS

    def __repr__(self) -> str:
        changed = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)
            if f.name != "abbreviations" and getattr(self, f.name) != f.default
        ]
        if self.abbreviations != ABBREVIATIONS:
            changed.append(f"abbreviations=<{len(self.abbreviations)} words>")
        return f"Tokenizer({', '.join(changed)})"

    def _repr_html_(self) -> str:
        from tagwise.base.markup import object_html

        shown = [(f.name, getattr(self, f.name)) for f in fields(self)[:-1]]
        return object_html(self, [*shown, ("abbreviations", " ".join(self.abbreviations))])

    def __call__(self, text: str) -> Tokenized:
        """Tokenize one text.

        Args:
            text: str. The text.

        Returns:
            A `Tokenized` text.

        Raises:
            CorpusError: The text is not a string.
        """
        return self.many([text])[0]

    def many(self, texts: Iterable[str], n_jobs: int | None = None) -> list[Tokenized]:
        """Tokenize several texts, which is faster than one call per text.

        Args:
            texts: iterable of str. The texts.
            n_jobs: int or None, default=None. Number of threads. None means one per core.

        Returns:
            A list of `Tokenized` texts.

        Raises:
            CorpusError: ``texts`` is a single string, or an element is not a string.

        >>> [len(found) for found in Tokenizer().many(["Go!", "They don't."])]
        [2, 4]
        """
        items = list_of(texts)
        places, sentences, bounds = _core.tokenize(
            items,
            list(self.abbreviations),
            contractions=self.contractions,
            hyphens=self.hyphens,
            sentences=self.sentences,
            n_jobs=n_jobs or 0,
        )
        offsets, out = places.reshape(-1, 2), []
        firsts = sentences.tolist()
        for text, (first, last) in zip(items, pairwise(bounds.tolist())):
            begin, end = firsts[first], firsts[last]
            out.append(Tokenized(text, offsets[begin:end], sentences[first : last + 1] - np.uint64(begin)))
        return out


def list_of(texts: Any) -> list[Any]:
    """Return texts as a list. Raise a CorpusError for a single string."""
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise CorpusError(
            f"expected a list of texts, found {type(texts).__name__}. Put a single text into a list."
        )
    return list(texts)


def tokenized(
    texts: Iterable[str | Tokenized], tokenizer: Tokenizes | None = None, n_jobs: int | None = None
) -> list[Tokenized]:
    """Tokenize texts with a tokenizer, `Tokenizer()` by default. Tokenized texts are returned unchanged."""
    items = list_of(texts)
    if tokenizer is not None and not callable(tokenizer):
        raise ParameterError(
            f"tokenizer={tokenizer!r} is {type(tokenizer).__name__}, expected a tagwise.Tokenizer, or a function of a "
            "text that returns its tokens"
        )
    pending = [i for i, text in enumerate(items) if not isinstance(text, Tokenized)]
    untokenized = [items[i] for i in pending]
    if tokenizer is None or isinstance(tokenizer, Tokenizer):
        found = (tokenizer or Tokenizer()).many(untokenized, n_jobs)
    else:
        found = [_placed(tokenizer, text, i) for i, text in zip(pending, untokenized)]
    for i, one in zip(pending, found):
        items[i] = one
    return items


def _placed(tokenizer: Tokenizes, text: Any, i: int) -> Tokenized:
    """Apply a user's tokenizer to a text and check the result."""
    if not isinstance(text, str):
        raise CorpusError(f"text {i}: expected a string, found {type(text).__name__}")
    made = tokenizer(text)
    if isinstance(made, Tokenized):
        if made.text != text:
            raise CorpusError(
                f"text {i}: the tokenizer returned the tokens of another text. Do not modify the text."
            )
        return made
    if isinstance(made, (str, bytes)) or not isinstance(made, Iterable):
        raise CorpusError(
            f"text {i}: the tokenizer returned {type(made).__name__}, expected a list of tokens, of pairs (begin, "
            "end), or of sentences of these"
        )
    sentences = [entry if isinstance(entry, list) else (entry,) for entry in (list(made))]
    nested = any(isinstance(entry, list) for entry in sentences)
    places: list[tuple[int, int]] = []
    bounds = [0]
    for entries in sentences:
        for entry in entries:
            places.append(
                _place(text, entry, places[-1][1] if places else 0, f"text {i}, token {len(places)}")
            )
        if nested:
            bounds.append(len(places))
    if not nested and places:
        bounds.append(len(places))
    offsets = np.array(places, dtype=np.uint32).reshape(-1, 2)
    return Tokenized(text, offsets, np.array(bounds, dtype=np.uint64))


def _place(text: str, entry: Any, at: int, place: str) -> tuple[int, int]:
    """Return the offsets of a token of a user's tokenizer. The token must not begin before `at`."""
    if isinstance(entry, str):
        begin = text.find(entry, at)
        if not entry or begin < 0:
            raise CorpusError(
                f"{place}: {entry!r} is not in the text from character {at} on ({text[at : at + 20]!r}). Return "
                "unmodified pieces of the text in order, or pairs (begin, end)."
            )
        return begin, begin + len(entry)
    if (
        isinstance(entry, Sequence)
        and len(entry) == 2
        and all(isinstance(x, (int, np.integer)) for x in entry)
    ):
        begin, end = map(int, entry)
        if not at <= begin < end <= len(text):
            raise CorpusError(
                f"{place}: ({begin}, {end}) overlaps the previous token, is empty or is not inside the text of "
                f"{len(text)} characters. Return pairs (begin, end) in order."
            )
        return begin, end
    raise CorpusError(f"{place}: the tokenizer returned {entry!r}, expected a string or a pair (begin, end)")


def offsets_of(text: str, tokens: Sequence[str]) -> Places | None:
    """Return the offsets of tokens in a text, [T, 2], or None if the text does not contain them in this order.

    >>> offsets_of("It's so.", ["It", "'s", "so", "."]).tolist()
    [[0, 2], [2, 4], [5, 7], [7, 8]]
    >>> offsets_of("del mar", ["de", "el", "mar"]) is None
    True
    """
    at, places = 0, []
    for token in tokens:
        begin = text.find(token, at)
        if begin < 0:
            return None
        places.append((begin, begin + len(token)))
        at = begin + len(token)
    return np.array(places, dtype=np.uint32).reshape(-1, 2)
