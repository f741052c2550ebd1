"""Learning of word classes: texts of any kind to counts, counts to classes by exchange, classes to a tree."""

from __future__ import annotations

import glob
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, runtime_checkable

import tagwise._core as _core
from tagwise.base.domains import Integer
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.base.parameters import checked
from tagwise.corpus.formats import COMPRESSED, TABLE, iter_sentences
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.text.tokenizer import Tokenizes, tokenized

#: Maximum number of classes.
MOST_CLASSES = 1 << 16
#: Sentences that are counted at a time.
BATCH = 4096
#: Numbers of classes that are good features together.
SEVERAL = (32, 64, 128, 256, 512, 1000)
#: Extensions of files of text.
_ENDINGS = {".txt", *COMPRESSED, *(ending for found in TABLE.values() for ending in found.endings)}
#: Learning ends when a sweep moves at most this share of the words.
FEW = 0.001


@dataclass(frozen=True)
class Sweep:
    """State of learning after a sweep over all words, for callbacks.

    Attributes:
        iteration: Number of the sweep, from 1.
        max_iter: Maximum number of sweeps.
        objective: Objective of the class bigram model, which never falls.
        moved: Number of words that moved to another class.
        seconds: Time since the beginning of the first sweep.
        dev_score: None, since there is no development data.
    """

    iteration: int
    max_iter: int
    objective: float
    moved: int
    seconds: float
    dev_score: None = None


@dataclass(frozen=True)
class Learned:
    """Classes in the order of their paths: words and shapes of each by falling frequency, and facts about learning."""

    words: dict[str, list[str]]
    shapes: dict[str, list[str]]
    counts: dict[str, int]
    facts: dict[str, Any]


@runtime_checkable
class WordSource(Protocol):
    """Sentences that are stored in another form and yield their words, such as shards."""

    def iter_words(self) -> Iterator[list[str]]:
        """Yield the words of each sentence."""


def sentences_of(texts: Any, tokenizer: Tokenizes | None = None) -> Iterator[Sequence[str]]:
    """Yield the tokens of each sentence of files, corpora, lists of tokens or raw texts.

    A string that is not in a list is a path. In a list, all strings are paths if the first one is, else raw texts.
    """
    if isinstance(texts, (str, os.PathLike)):
        yield from _files(texts)
        return
    if isinstance(texts, WordSource):
        yield from texts.iter_words()
        return
    if isinstance(texts, (bytes, Mapping)) or not isinstance(texts, Iterable):
        raise CorpusError(
            f"texts are {type(texts).__name__}, expected a path, a Corpus, or a list of paths, texts or sentences"
        )
    are_paths: bool | None = None
    for i, item in enumerate(texts):
        if isinstance(item, str) and are_paths is None:
            are_paths = _is_path(item)
        if isinstance(item, Sentence):
            yield item.tokens
        elif isinstance(item, os.PathLike) or (isinstance(item, str) and are_paths):
            yield from _files(item)
        elif isinstance(item, str):
            yield from tokenized([item], tokenizer)[0].sentences
        elif isinstance(item, WordSource):
            yield from item.iter_words()
        elif isinstance(item, Corpus):
            yield from (sentence.tokens for sentence in item)
        elif isinstance(item, Mapping):
            yield next(iter(item.values()), [])
        elif isinstance(item, Iterable) and not isinstance(item, (bytes, bytearray)):
            yield item if isinstance(item, Sequence) else list(item)
        else:
            raise CorpusError(
                f"text {i} is {type(item).__name__}, expected a path, a text or a list of tokens"
            )


def matching(name: str) -> list[str]:
    """Return the files that match a pattern such as `raw/*.txt` in alphabetical order, or a name that is no pattern."""
    if not glob.has_magic(name) or os.path.exists(name):
        return [name]
    found = sorted(glob.glob(name, recursive=True))
    if not found:
        raise CorpusError(f"{name}: no file matches. Give the path of a text file.")
    return found


def _is_path(text: str) -> bool:
    """Return whether a string is the path of a file, a pattern of files, or one word that ends like a file name."""
    if len(text) >= 4096 or "\n" in text or "\0" in text:
        return False
    if os.path.isfile(text) or (glob.has_magic(text) and glob.glob(text)):
        return True
    return len(text.split()) == 1 and os.path.splitext(text)[1].lower() in _ENDINGS


def _files(path: str | os.PathLike[str]) -> Iterator[Sequence[str]]:
    """Yield the tokens of each sentence of a file of any format, labelled or not, or of all files of a pattern."""
    for name in matching(path) if isinstance(path, str) else [path]:
        for sentence in iter_sentences(name, label=None):
            yield sentence.tokens


def count(
    texts: Any, cases: Sequence[bool] = (False,), tokenizer: Tokenizes | None = None
) -> dict[bool, _core.BigramCounts]:
    """Count the bigrams of a stream of sentences, of which only a batch is in memory, for values of `ignore_case`.

    Counts without case are left out if others have no two words that differ in case only.
    """
    counted = {case: _core.BigramCounts(ignore_case=case) for case in cases}
    found = sentences_of(texts, tokenizer)
    while batch := list(islice(found, BATCH)):
        for counts in counted.values():
            counts.add(batch)
    if len(counted) > 1 and counted[True].n_words == counted[False].n_words:
        del counted[True]
    return counted


def learn(
    counts: _core.BigramCounts,
    n_classes: int | None,
    min_count: int,
    max_iter: int,
    n_jobs: int,
    callbacks: Sequence[Callable[[Sweep], Any]],
) -> Learned:
    """Learn classes from counts. The number of classes None means `default_classes`."""
    if n_classes is None:
        n_classes = default_classes(counts.n_frequent(min_count))
    check(counts, n_classes, min_count)
    state, begin = _core.ClassExchange(counts, n_classes, min_count), time.perf_counter()
    words = state.words
    sweeps = 0
    for sweeps in range(1, max_iter + 1):
        moved = state.sweep(n_jobs)
        for callback in callbacks:
            callback(Sweep(sweeps, max_iter, state.objective, moved, time.perf_counter() - begin))
        if moved <= FEW * len(words):
            break
    paths, _ = state.tree(n_jobs)
    found: tuple[dict[str, list[str]], ...] = ({}, {})
    for path in sorted(paths):
        found[0][path], found[1][path] = [], []
    for word, is_shape, of in zip(words, state.is_shape, state.classes.tolist()):
        found[is_shape][paths[of]].append(word)
    times = {
        word: n for word, n, is_shape in zip(words, state.counts.tolist(), state.is_shape) if not is_shape
    }
    facts = {
        "tokens": counts.n_tokens,
        "sentences": counts.n_sentences,
        "distinct_words": counts.n_words,
        "min_count": min_count,
        "sweeps": sweeps,
        "objective": state.objective,
    }
    return Learned(found[0], found[1], times, facts)


def checked_sizes(classes: Any) -> Any:
    """Return a number of classes, None, "several", or a list of different numbers."""
    if classes == "several":
        return classes
    if not isinstance(classes, Sequence) or isinstance(classes, str):
        return checked("classes", classes, Integer(2, MOST_CLASSES, optional=True))
    sizes = [checked("classes", n, Integer(2, MOST_CLASSES)) for n in classes]
    if not sizes or len(set(sizes)) < len(sizes):
        raise ParameterError(f"classes={classes!r:.60}: expected different numbers of classes")
    return sizes


def default_classes(n_words: int) -> int:
    """Return the default number of classes: three times the square root of the number of words, at most 1,000.

    >>> default_classes(10_000), default_classes(10**6)
    (300, 1000)
    """
    return max(2, min(1000, n_words // 2, round(3 * math.sqrt(n_words))))


def listed_sizes(sizes: Any, n_words: int) -> list[int | None]:
    """Return the numbers of classes to learn, where None means `default_classes`."""
    if sizes == "several":
        return list(several_classes(n_words))
    return sizes if isinstance(sizes, list) else [sizes]


def several_classes(n_words: int) -> list[int]:
    """Return numbers of classes that are good features together, each with at least ten words per class.

    >>> several_classes(5000), several_classes(50)
    ([32, 64, 128, 256], [21])
    """
    return [n for n in SEVERAL if 10 * n <= n_words] or [default_classes(n_words)]


def check(counts: _core.BigramCounts, n_classes: int, min_count: int) -> None:
    """Raise a CorpusError if there is no text, a ParameterError if there are fewer words than classes."""
    if not counts.n_tokens:
        raise CorpusError("the texts have no tokens. Give text to learn word classes from.")
    n = counts.n_frequent(min_count)
    if n < n_classes:
        few = f"the text has {counts.n_tokens:,} tokens and {n:,} words that occur at least {min_count} times"
        if n < 2:
            raise CorpusError(
                f"{few}, which is too little for classes. Give more text, or a smaller min_count."
            )
        raise ParameterError(
            f"classes={n_classes}: {few}, and a class needs one. Use classes={max(2, n // 10)} or so, or more text."
        )
