"""Corpora of the comparison, and the attributes of the sklearn-crfsuite tutorial."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

CORPORA = ("conll2000", "conll2002-es", "conll2003-en", "ewt-pos")
PARTS = ("train", "dev", "test")
#: Columns of tokens that taggers may read, without the label.
COLUMNS = {"conll2000": ("word", "pos")}

Token = Sequence[str]
Attributes = dict[str, str | float | bool]


class Part(NamedTuple):
    """Sentences as tokens of one or more columns, and their labels."""

    rows: list[list[list[str]]]
    labels: list[list[str]]

    @property
    def words(self) -> list[list[str]]:
        """Return the first column."""
        return [[token[0] for token in sentence] for sentence in self.rows]

    @property
    def n_tokens(self) -> int:
        return sum(map(len, self.rows))


class Task(NamedTuple):
    """Parts of a corpus. Labels that mark spans are in IOB2."""

    train: Part
    dev: Part
    test: Part

    @property
    def spans(self) -> bool:
        """Return whether labels mark spans."""
        return any(label[:2] == "B-" for labels in self.train.labels for label in labels)


def write_task(name: str, folder: Path, sentences: int | None) -> None:
    """Write the parts of a corpus as JSON for the processes of the taggers, so that those need not import tagwise.

    conll2000 has no dev part. The last tenth of its training part is used as such by taggers that stop by a dev score,
    which are trained on the rest.
    """
    import tagwise as tw
    from tagwise.corpus.schemes import convert

    train, dev, test = tw.load_corpus(name)
    if sentences is not None:
        train, test = train[:sentences], test[:sentences]
        dev = dev and dev[:sentences]
    columns = COLUMNS.get(name, ("word",))
    for title, corpus in (("train", train), ("dev", dev or train[len(train) * 9 // 10 :]), ("test", test)):
        labels = [list(y) for y in corpus.labels]
        if name != "ewt-pos":
            labels = [convert(y, None, "IOB2") for y in labels]
        rows = [list(zip(*cells)) for cells in zip(*(corpus.column(c) for c in columns))]
        (folder / f"{title}.json").write_text(json.dumps([rows, labels]), "utf-8")


def read_task(folder: Path) -> Task:
    """Read what `write_task` wrote."""
    return Task(*(Part(*json.loads((folder / f"{part}.json").read_text("utf-8"))) for part in PARTS))


def tutorial(sentence: Sequence[Token], i: int) -> Attributes:
    """Return the attributes of the sklearn-crfsuite tutorial. Those of the POS need a second column.

    >>> tutorial([["London"], ["1"]], 1)["-1:word.lower()"]
    'london'
    """
    word, *pos = sentence[i]
    found: Attributes = {
        "bias": 1.0,
        "word.lower()": word.lower(),
        "word[-3:]": word[-3:],
        "word[-2:]": word[-2:],
        "word.isupper()": word.isupper(),
        "word.istitle()": word.istitle(),
        "word.isdigit()": word.isdigit(),
    }
    if pos:
        found["postag"], found["postag[:2]"] = pos[0], pos[0][:2]
    for at, edge in ((i - 1, "BOS"), (i + 1, "EOS")):
        if not 0 <= at < len(sentence):
            found[edge] = True
            continue
        word, *pos = sentence[at]
        name = "-1:" if at < i else "+1:"
        found[name + "word.lower()"] = word.lower()
        found[name + "word.istitle()"] = word.istitle()
        found[name + "word.isupper()"] = word.isupper()
        if pos:
            found[name + "postag"], found[name + "postag[:2]"] = pos[0], pos[0][:2]
    return found


def as_dicts(rows: Sequence[Sequence[Token]]) -> list[list[Attributes]]:
    """Return the attributes of the tutorial for all tokens."""
    return [[tutorial(sentence, i) for i in range(len(sentence))] for sentence in rows]


def as_lists(rows: Sequence[Sequence[Token]]) -> list[list[list[str]]]:
    """Return the attributes of the tutorial as text, for programs that know only present attributes.

    >>> as_lists([[["London"]]])[0][0][3:]
    ['word[-2:]=on', 'word.istitle()', 'BOS', 'EOS']
    """

    def text(found: Attributes) -> list[str]:
        return [
            name if value is True or name == "bias" else f"{name}={value}"
            for name, value in found.items()
            if value is not False
        ]

    return [[text(token) for token in sentence] for sentence in as_dicts(rows)]
