"""A labelling project: documents, settings and a journal of actions in a folder (see `folder`)."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tagwise.apps.annotate import folder as files
from tagwise.apps.annotate.folder import (
    ACTION,
    MOST_SENTENCES,
    MOST_TOKENS,
    OUTSIDE,
    UNKNOWN,
    ProjectSettings,
    check_label,
)
from tagwise.apps.annotate.journal import Journal, JournalError
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.base.parameters import meant
from tagwise.base.writing import atomic
from tagwise.corpus import schemes
from tagwise.corpus.conllu import write_conllu
from tagwise.corpus.formats import read, write
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.features.resolve import names_files

#: Export formats with their file extensions.
EXPORTS = {"conll": "tsv", "spans": "jsonl", "conllu": "conllu", "jsonl": "jsonl"}


class Work:
    """An open project. `accepted` maps sentence numbers to accepted labels, `given` has labels from documents."""

    def __init__(self, folder: str | os.PathLike[str], settings: ProjectSettings | None = None) -> None:
        self.folder, self._requested = Path(folder), settings
        begun = files.is_begun(self.folder)
        self.journal = Journal(self.folder / "journal.jsonl", ACTION)
        try:
            self._files: list[dict[str, Any]] = []  # entries of documents in `work.json`
            if begun:
                self.settings, self._files = files.read_settings(self.folder)
            else:
                self.settings = (settings or ProjectSettings()).check()
                self._save(self.settings)
            self.sentences: list[Sentence] = []
            self.documents: list[tuple[str, range]] = []
            self._by_content: dict[Hashable, list[int]] = {}  # sentences by content
            self.given: dict[int, list[str]] = {}
            self.accepted: dict[int, list[str]] = {}
            self._acceptance_order: dict[int, int] = {}  # order of acceptance by sentence
            self._n_acceptances = 0
            self.n_labelled = 0  # number of sentences in `labelled`
            self.n_given = 0  # number of sentences with labels from a document that are not accepted
            for file in self._files:
                self._add(file)
            self.skipped: list[int] = []
            self._done: list[dict[str, Any]] = []  # actions to undo, the last one first
            self._undone: list[dict[str, Any]] = []
            for entry in self.journal.entries:
                self._replay(entry)
        except BaseException:
            self.journal.close()
            raise

    # --- settings -----------------------------------------------------------------------------------------

    def _save(self, settings: ProjectSettings) -> None:
        files.write_settings(self.folder, settings, self._files)

    @property
    def features(self) -> str:
        """Features of the learner.

        Raises:
            CorpusError: The features name files, and the caller has not given the same features. A folder from an
                untrusted source could otherwise make tagwise read any file.
        """
        found = self.settings.features
        if names_files(found) and (self._requested is None or self._requested.features != found):
            raise CorpusError(
                f"{self.folder / 'work.json'}: the features {found!r} name files, which are read only if you give "
                f"the same features again: --features {found!r}"
            )
        return found

    def set(self, **changes: Any) -> ProjectSettings:
        """Change settings. They are on disk when this returns."""
        settings = ProjectSettings(**{**asdict(self.settings), **changes}).check()
        self._save(settings)
        self.settings = settings
        return settings

    def add_label(self, label: str) -> None:
        """Add a label type."""
        if check_label(label) not in self.settings.labels:
            self.set(labels=[*self.settings.labels, label])

    # --- documents ----------------------------------------------------------------------------------------

    def _add(self, file: Mapping[str, Any]) -> range:
        """Load the sentences of a document listed in `work.json`."""
        first = len(self.sentences)
        others = sum(one["bytes"] for one in self._files if one is not file)
        corpus = files.read_document(self.folder, file, others)
        self._check_size(corpus)
        for i, sentence in enumerate(corpus, first):
            labels = sentence.fields.get("label")
            if labels is not None and UNKNOWN not in labels:
                self.given[i] = labels
            bare = {name: column for name, column in sentence.fields.items() if name != "label"}
            self.sentences.append(Sentence(bare, doc=sentence.doc, meta=sentence.meta))
            self._by_content.setdefault(_content(bare), []).append(i)
        places = range(first, len(self.sentences))
        self.documents.append((re.sub(r"^\d+-|\.jsonl$", "", file["file"]), places))
        self.n_labelled, self.n_given = len(self.labelled), len(self.given.keys() - self.accepted.keys())
        return places

    def _check_size(self, corpus: Corpus) -> None:
        """Raise a CorpusError if a corpus is too large for the project."""
        if len(self.sentences) + len(corpus) > MOST_SENTENCES:
            raise CorpusError(
                f"a project has at most {MOST_SENTENCES:,} sentences. Start another project in a new folder"
            )
        long = next((i for i, s in enumerate(corpus) if len(s) > MOST_TOKENS), None)
        if long is not None:
            raise CorpusError(
                f"sentence {long + 1} has {len(corpus[long])} tokens, more than the limit of {MOST_TOKENS}. Split it"
            )

    def add(self, corpus: Corpus, name: str = "", *, fresh: bool = False) -> range:
        """Add the sentences of a corpus as a document, without their labels if `fresh`."""
        if not len(corpus):
            raise CorpusError(
                f"{corpus.source or name or 'the corpus'}: no sentences found. Add a file with sentences"
            )
        self._check_size(corpus)
        stored = [_plain(sentence, fresh) for sentence in corpus]
        self._learn_labels(y for s in stored for y in s.fields["label"])
        stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", name or os.path.basename(corpus.source or "")).strip("-.")[
            :60
        ]
        used = sum(one["bytes"] for one in self._files)
        file = files.write_document(self.folder, len(self._files) + 1, stem, Corpus(stored), used)
        self._files.append(file)
        try:
            self._save(self.settings)
            return self._add(file)
        except BaseException:
            self._files.remove(file)
            raise

    def _learn_labels(self, labels: Iterable[str]) -> None:
        """Add new label types, and set the kind of labels if nothing was labelled before."""
        found = dict.fromkeys(y for y in labels if y != UNKNOWN)
        if not found:
            return
        if (
            not self.settings.labels
            and not self.given
            and not schemes.has_chunks(found)
            and set(found) != {OUTSIDE}
        ):
            self.set(kind="tokens")
        if self.settings.kind == "spans":
            if not schemes.has_chunks(found) and set(found) != {OUTSIDE}:
                raise CorpusError(
                    f"the labels ({' '.join(list(found)[:5])} ...) do not mark spans, but those of this project do. "
                    "Start another project for them in a new folder"
                )
            found = dict.fromkeys(kind for y in found if (kind := schemes.split_label(y)[1]))
        fresh = [y for y in found if y not in self.settings.labels]
        if fresh:
            self.set(labels=[*self.settings.labels, *fresh])

    def read(self, text: bytes, format: str | None = None, name: str = "upload") -> range:
        """Add the content of a file in any format as a document."""
        return self.add(read(io.BytesIO(text), format, optional_label=True), name)

    # --- actions ------------------------------------------------------------------------------------------

    def _replay(self, entry: dict[str, Any]) -> None:
        do, where = entry["do"], f"{self.journal.path}, line {entry['n']}"
        if do in ("accept", "skip"):
            try:
                self._check(entry["id"], entry.get("labels"))
            except ParameterError as error:
                raise JournalError(
                    f"{where}: {error}. The journal belongs to another project, or is damaged."
                ) from error
            self._undone.clear()
            self._apply({"do": do, "id": entry["id"], "labels": entry.get("labels", [])})
        elif do == "undo" and self._done:
            self._revert()
        elif do == "redo" and self._undone:
            self._apply(self._undone.pop())
        else:
            raise JournalError(
                f"{where}: there is no action to {do}. The journal is damaged. Restore it from a copy."
            )

    def _apply(self, action: dict[str, Any]) -> None:
        i = action["id"]
        self._done.append({**action, "before": self.accepted.get(i)})
        if action["do"] == "accept":
            self._set_labels(i, list(action["labels"]))
        else:
            self.skipped.append(i)

    def _set_labels(self, i: int, labels: list[str] | None) -> None:
        """Set or remove the accepted labels of a sentence, and update the counts of sentences with the same content."""
        self.n_labelled -= self._labelled_like(i)
        self.n_given -= i in self.given and i not in self.accepted
        if labels is None:
            del self.accepted[i], self._acceptance_order[i]
        else:
            self.accepted[i] = labels
            self._n_acceptances += 1
            self._acceptance_order.setdefault(i, self._n_acceptances)
        self.n_labelled += self._labelled_like(i)
        self.n_given += i in self.given and i not in self.accepted

    def _labelled_like(self, i: int) -> int:
        """Count the labelled sentences with the same content: all of them, if one is accepted."""
        alike = self.duplicates(i)
        return len(alike) if any(j in self.accepted for j in alike) else sum(j in self.given for j in alike)

    def _revert(self) -> dict[str, Any]:
        action = self._done.pop()
        self._undone.append({name: action[name] for name in ("do", "id", "labels")})
        if action["do"] == "skip":
            self.skipped.remove(action["id"])
        else:
            self._set_labels(action["id"], action["before"])
        return action

    def accept(self, i: int, labels: Sequence[str]) -> None:
        """Accept the labels of a sentence. They are on disk when this returns."""
        self._check(i, labels)
        action = {"do": "accept", "id": i, "labels": list(labels)}
        self.journal.append(**action)
        self._undone.clear()
        self._apply(action)

    def skip(self, i: int) -> None:
        """Postpone a sentence."""
        self._check(i, None)
        self.journal.append(do="skip", id=i)
        self._undone.clear()
        self._apply({"do": "skip", "id": i, "labels": []})

    def undo(self) -> int | None:
        """Undo the last action, and return the number of its sentence, or None if there is no action."""
        if not self._done:
            return None
        self.journal.append(do="undo")
        return int(self._revert()["id"])

    def redo(self) -> int | None:
        """Redo the last undone action, and return the number of its sentence, or None if there is no action."""
        if not self._undone:
            return None
        self.journal.append(do="redo")
        action = self._undone.pop()
        self._apply(action)
        return int(action["id"])

    @property
    def undoable(self) -> tuple[bool, bool]:
        """Whether there are actions to undo and to redo."""
        return bool(self._done), bool(self._undone)

    def _check(self, i: Any, labels: Sequence[str] | None) -> None:
        if not isinstance(i, int) or isinstance(i, bool) or not 0 <= i < len(self.sentences):
            raise ParameterError(f"sentence {i!r}: expected a number from 0 to {len(self.sentences) - 1}")
        if labels is None:
            return
        if len(labels) != len(self.sentences[i]):
            raise ParameterError(
                f"sentence {i}: {len(labels)} labels for {len(self.sentences[i])} tokens. Give one label per token"
            )
        known = set(self.settings.labels)
        for t, label in enumerate(labels):
            tag, kind = schemes.split_label(label) if isinstance(label, str) else ("", "")
            valid = label == OUTSIDE or (tag in ("B", "I") and kind in known)
            if not (valid if self.settings.kind == "spans" else label in known):
                raise ParameterError(
                    f"token {t}: this project has no label {label!r}{meant(str(label), known)}, only "
                    f"{' '.join(sorted(known))}. Add it"
                )
            before = labels[t - 1] if t else OUTSIDE
            if self.settings.kind == "spans" and not schemes.valid(before, label, "IOB2"):
                raise ParameterError(f"token {t}: {label} cannot follow {before}. A span begins with B-")

    # --- content ------------------------------------------------------------------------------------------

    def duplicates(self, i: int) -> list[int]:
        """Return all sentences with the content of sentence i, in order."""
        return self._by_content[_content(self.sentences[i].fields)]

    @property
    def labelled(self) -> dict[int, list[str]]:
        """Return the labels of all labelled sentences. Accepted labels override those of documents.

        A sentence without labels gets those of an accepted sentence with the same content.
        """
        found = {**self.given, **self.accepted}
        if len(self._by_content) < len(self.sentences):
            for i, labels in self.accepted.items():
                for j in self.duplicates(i):
                    found.setdefault(j, labels)
        return found

    def labels_of(self, i: int) -> list[str] | None:
        """Return the entry of `labelled` for one sentence, without computing all others."""
        own = self.accepted.get(i, self.given.get(i))
        if own is not None:
            return own
        alike = [j for j in self.duplicates(i) if j in self.accepted]
        return self.accepted[min(alike, key=self._acceptance_order.__getitem__)] if alike else None

    def unlabelled(self) -> Iterator[int]:
        """Yield the sentences without labels, the first of those with the same content."""
        found = self.labelled
        for places in self._by_content.values():
            if (first := next((i for i in places if i not in found), None)) is not None:
                yield first

    def corpus(self, places: Sequence[int] | None = None) -> Corpus:
        """Return labelled sentences as a corpus, in order."""
        found = self.labelled
        chosen = sorted(found) if places is None else places
        return Corpus([self.sentences[i].with_labels(found[i], "label") for i in chosen])

    def export(self, format: str, name: str | None = None) -> bytes:
        """Return the labelled sentences of all documents or of one in a format."""
        if format not in EXPORTS:
            raise ParameterError(
                f"format={format!r}{meant(format, EXPORTS)}: expected one of {', '.join(EXPORTS)}"
            )
        labelled = self.labelled
        places = [i for title, span in self.documents if name in (None, title) for i in span if i in labelled]
        if format == "spans" and self.settings.kind != "spans":
            raise ParameterError(
                "format='spans': the labels of this project do not mark spans. Use conll, conllu or jsonl"
            )
        out = io.BytesIO()
        if format == "conllu":  # spans have no column of their own, so they go to MISC
            write_conllu(
                self.corpus(places), out, label_column="misc" if self.settings.kind == "spans" else "upos"
            )
        else:
            write(self.corpus(places), out, format)
        return out.getvalue()

    def save(self, path: str | os.PathLike[str], format: str) -> None:
        """Export to a file."""
        data = self.export(format)
        with atomic(path) as out:
            out.write(data)

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()


def _content(columns: Mapping[str, Sequence[str]]) -> Hashable:
    """Return the content that identifies a sentence: everything that features can read."""
    return tuple((name, *column) for name, column in sorted(columns.items()))


def _plain(sentence: Sentence, fresh: bool) -> Sentence:
    """Return a sentence in the form of documents: its columns and a label per token, "_" for none."""
    columns = {name: column for name, column in sentence.fields.items() if name != sentence.label}
    columns.pop("label", None)
    labels = [UNKNOWN] * len(sentence)
    if sentence.label is not None and not fresh:
        found = [y or UNKNOWN for y in sentence.labels]
        labels = found if UNKNOWN not in found else labels
        if schemes.has_chunks(found) and UNKNOWN not in found:
            labels = schemes.convert(found, None, "IOB2")
    return Sentence({**columns, "label": labels}, "label", doc=sentence.doc, meta=sentence.meta)
