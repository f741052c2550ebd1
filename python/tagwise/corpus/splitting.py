"""Random splits of a corpus into parts, and folds for cross-validation. Documents and texts stay whole."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tagwise.base.exceptions import ParameterError
from tagwise.corpus.sentence import Corpus
from tagwise.corpus.text.spans import CONTINUED


def units(corpus: Corpus, least: int) -> list[list[int]]:
    """Return groups of sentence indices that belong together.

    These are documents, or the sentences of one text if the corpus has fewer than `least` documents.

    >>> units(Corpus.from_lists([["a"], ["b"]]), 2)
    [[0], [1]]
    """
    if corpus.has_documents and len(corpus.documents) >= least:
        return [list(document) for document in corpus.documents]
    out: list[list[int]] = []
    continued = False
    for i, sentence in enumerate(corpus):
        if continued:
            out[-1].append(i)
        else:
            out.append([i])
        continued = (sentence.meta or {}).get(CONTINUED) is True
    return out


def drawn(corpus: Corpus, least: int, random_state: int) -> list[list[int]]:
    """Return the groups of `units` in random order."""
    found = units(corpus, least)
    random.Random(random_state).shuffle(found)
    if len(found) < least:
        raise ParameterError(
            f"{len(found)} sentences or documents cannot be split into {least} parts. Use fewer parts"
        )
    return found


def chosen(corpus: Corpus, groups: Sequence[Sequence[int]]) -> Corpus:
    """Return the sentences of some groups, in the order of the corpus."""
    places = sorted(i for group in groups for i in group)
    found = [corpus[i] for i in places]
    return Corpus(found, columns=corpus.columns, label=corpus.label, source=corpus.source)


def split(corpus: Corpus, parts: Sequence[float], random_state: int = 0) -> list[Corpus]:
    """Split a corpus into random parts of given shares.

    Sentences keep their order within a part. Documents stay whole if there are at least as many as parts.

    Args:
        corpus: Corpus. The sentences.
        parts: sequence of float. Share of each part, such as ``(80, 10, 10)``. Shares are relative to their sum.
        random_state: int, default=0. Seed of the random order.

    Returns:
        A `Corpus` per part, none of them empty.

    Raises:
        ParameterError: A share is not positive, or there are fewer sentences or documents than parts.

    >>> [len(part) for part in split(Corpus.from_lists([["a"]] * 10), (80, 10, 10))]
    [8, 1, 1]
    """
    shares = [float(share) for share in parts]
    if len(shares) < 2 or not all(0 < share < float("inf") for share in shares):
        raise ParameterError(
            f"parts={tuple(parts)!r}: expected two or more positive shares, such as (80, 10, 10)"
        )
    groups = drawn(corpus, len(shares), random_state)
    total, done = sum(shares), 0.0
    out: list[Corpus] = []
    begin = taken = 0  # index of the next group, sentences in the groups before it
    for k, share in enumerate(shares):
        done += share
        last = len(groups) - (len(shares) - 1 - k)  # each later part needs a group
        end = begin + 1
        taken += len(groups[begin])
        goal = done / total * len(corpus)
        while end < last and (k == len(shares) - 1 or taken + len(groups[end]) / 2 <= goal):
            taken += len(groups[end])
            end += 1
        out.append(chosen(corpus, groups[begin:end]))
        begin = end
    return out


def fold(corpus: Corpus, folds: int, number: int, random_state: int = 0) -> tuple[Corpus, Corpus]:
    """Return the training and the test part of a fold of cross-validation.

    The test parts of all folds are a partition of the corpus. Documents stay whole if there are at least as many as
    folds.

    >>> train, test = fold(Corpus.from_lists([["a"]] * 10), 5, 0)
    >>> len(train), len(test)
    (8, 2)
    """
    groups = drawn(corpus, folds, random_state)
    test = groups[number::folds]
    rest = [group for i, group in enumerate(groups) if i % folds != number]
    return chosen(corpus, rest), chosen(corpus, test)
