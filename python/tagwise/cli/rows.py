"""Insertion of labels into input lines. Everything except the label column is copied byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from tagwise.cli.labelling import Labelling
from tagwise.corpus.conll import DOCSTART, is_comment
from tagwise.corpus.conllu import CONLLU_COLUMNS
from tagwise.corpus.sentence import Sentence
from tagwise.corpus.source_lines import Raw

BOM = "\ufeff"
_CELL = re.compile(r"[^ \t]+")


def stem_and_end(line: str) -> tuple[str, str]:
    """Split a line from its trailing carriage returns."""
    stem = line.rstrip("\r")
    return stem, line[len(stem) :]


class Rows:
    """Inserts the labels of one sentence after the other into the lines of `raw`."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self.marginals = False  # whether a probability follows each label

    def text(self, lines: list[str]) -> str:
        """Join the lines that were taken last, with their line ending."""
        return "\n".join(lines) + self.raw.ending if lines else ""

    def __call__(self, sentence: Sentence, labelling: Labelling) -> str:
        """Return all lines up to the end of a sentence, those of its tokens with labels."""
        before = self.text(self.passed(self.raw.lines_before(sentence.line or 1)))
        return before + self.text(self.labelled(sentence, labelling))

    def pause(self) -> str:
        """Return the blank lines after a sentence, so that readers of a stream see its end at once."""
        return self.text(self.raw.blank())

    def rest(self) -> str:
        """Return the lines after the last sentence."""
        return self.text(self.passed(self.raw.rest()))

    def passed(self, lines: list[str]) -> list[str]:
        """Return the output for lines without tokens."""
        return lines

    def labelled(self, sentence: Sentence, labelling: Labelling) -> list[str]:
        """Take the lines of a sentence and return them with labels."""
        raise NotImplementedError


class ConllRows(Rows):
    """CoNLL columns: the label and its probability are appended to a row or replace one of its cells.

    The separator is that of the file, or a tab if it has a single column. Document marks get the label ``O``, because
    conlleval requires the same number of columns everywhere. `names` are the columns of a file that has labels, and
    `label` is the one to replace. It is appended if a file lacks it.
    """

    def __init__(self, raw: Raw, names: Sequence[str] = (), label: str | None = None) -> None:
        super().__init__(raw)
        self.names, self.label = tuple(names), label

    @property
    def place(self) -> int | None:
        """Index of the column to replace, or None to append one."""
        known = self.label in self.names and self.raw.columns == len(self.names)
        return self.names.index(self.label) if known and self.label is not None else None

    @property
    def separator(self) -> str:
        return "\t" if self.raw.columns == 1 else self.raw.separator

    def passed(self, lines: list[str]) -> list[str]:
        if not any(DOCSTART in line for line in lines) or self.place is not None:
            return lines
        cell = f"O{self.separator}1.0000" if self.marginals else "O"
        out = []
        for line in lines:
            stem, end = stem_and_end(line)
            is_document_mark = stem.lstrip(f"{BOM} \t").startswith(DOCSTART)
            out.append(f"{stem}{self.separator}{cell}{end}" if is_document_mark else line)
        return out

    def labelled(self, sentence: Sentence, labelling: Labelling) -> list[str]:
        cells: Sequence[str] = labelling.labels
        sep = self.separator
        if labelling.probabilities is not None:
            cells = [f"{y}{sep}{p:.4f}" for y, p in zip(cells, labelling.probabilities)]
        if sentence.comments:
            return self.between_comments(cells, sep)
        lines = self.raw.take(len(cells))
        if self.place is not None or any(line[-1] == "\r" for line in lines):
            return [self.with_label(line, cell, sep) for line, cell in zip(lines, cells)]
        return [f"{line}{sep}{cell}" for line, cell in zip(lines, cells)]

    def between_comments(self, cells: Sequence[str], sep: str) -> list[str]:
        """Label the tokens of a sentence with comments in between: lines that begin with # and have no tab."""
        out: list[str] = []
        left = list(reversed(cells))
        while left:
            (line,) = self.raw.take(1)
            row = line.strip(" \t\r")
            out.append(line if is_comment(row) else self.with_label(line, left.pop(), sep))
        return out

    def with_label(self, line: str, cell: str, sep: str) -> str:
        """Return a row with its label."""
        stem, end = stem_and_end(line)
        place = self.place
        if place is None:
            return f"{stem}{sep}{cell}{end}"
        if self.raw.separator == "\t":
            begin = 0
            for _ in range(place):
                begin = stem.index("\t", begin) + 1
            stop = stem.find("\t", begin)
            stop = len(stem) if stop < 0 else stop
            old = stem[begin:stop]
            begin += len(old) - len(old.lstrip(" "))
            stop -= len(old) - len(old.rstrip(" "))
        else:
            begin, stop = [found.span() for found in _CELL.finditer(stem.removeprefix(BOM))][place]
            shift = len(BOM) if stem.startswith(BOM) else 0
            begin, stop = begin + shift, stop + shift
        return f"{stem[:begin]}{cell}{stem[stop:]}{end}"


class ConlluRows(Rows):
    """CoNLL-U: the label goes to its column, its probability to the end of MISC."""

    def __init__(self, raw: Raw, column: str = "upos") -> None:
        super().__init__(raw)
        self.at = 1 + CONLLU_COLUMNS.index(column)

    def labelled(self, sentence: Sentence, labelling: Labelling) -> list[str]:
        lines = self.raw.take(len(sentence) + len(sentence.rows))
        others = {index + k for k, (index, _) in enumerate(sentence.rows)}  # multiword tokens, empty nodes
        out, t = [], 0
        for i, line in enumerate(lines):
            if i in others:
                out.append(line)
                continue
            stem, end = stem_and_end(line)
            cells = stem.split("\t")
            cells[self.at] = labelling.labels[t]
            if labelling.probabilities is not None:
                entry = f"Probability={labelling.probabilities[t]:.4f}"
                note = cells[-1].strip(" ")
                cells[-1] = entry if note == "_" else f"{note}|{entry}"
            out.append("\t".join(cells) + end)
            t += 1
        return out


class JsonlRows(Rows):
    """JSONL: new members are appended, and members of the same name are replaced.

    `names` are possible names of the member with the labels to replace. Without names, ``predicted`` is added.
    """

    def __init__(self, raw: Raw, names: Sequence[str] = ()) -> None:
        super().__init__(raw)
        self.names = tuple(names)

    def labelled(self, sentence: Sentence, labelling: Labelling) -> list[str]:
        (line,) = self.raw.take(1)
        known = {*sentence.fields, *(sentence.meta or ())}
        found: dict[str, Any] = {"predicted": list(labelling.labels)}
        if labelling.probabilities is not None:
            found["probability"] = [round(p, 6) for p in labelling.probabilities]
        body = line.strip(f"{BOM} \t\r")
        begin = line.index(body)
        head, tail = line[:begin], line[begin + len(body) :]
        if self.names or not known.isdisjoint(found):
            return [head + self.replaced(body, found) + tail]
        if body[0] == "[":
            body = f'{{"tokens": {body}}}'
        return [f"{head}{body[:-1].rstrip()}, {json.dumps(found, ensure_ascii=False)[1:]}{tail}"]

    def replaced(self, body: str, found: dict[str, Any]) -> str:
        """Return the object with replaced members, in their order."""
        value = json.loads(body)
        value = {"tokens": value} if isinstance(value, list) else value
        name = next((n for n in self.names if n in value), None)
        if self.names:
            found[name or self.names[0]] = found.pop("predicted")
        value.update(found)
        return json.dumps(value, ensure_ascii=False)


#: By format: a function of the raw lines, the columns, the name of the label, and whether existing labels are replaced.
#: Other formats have no rows to insert labels into.
IN_PLACE: dict[str, Callable[[Raw, Sequence[str], str | None, bool], Rows]] = {
    "conll": lambda raw, names, label, replace: ConllRows(raw, names, label if replace else None),
    "conllu": lambda raw, _names, label, _replace: ConlluRows(
        raw, label if label in ("upos", "xpos") else "upos"
    ),
    "jsonl": lambda raw, _names, label, replace: JsonlRows(raw, member_names(label) if replace else ()),
}


def member_names(label: str | None) -> tuple[str, ...]:
    """Return possible names of the member with the labels. The first is that of a new member."""
    return ("labels", "tags", "label") if label in (None, "label") else (label,)
