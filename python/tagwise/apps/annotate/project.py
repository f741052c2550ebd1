"""A labelling project: documents, settings and a journal of actions in a folder (see `folder`)."""

from __future__ import annotations

import contextlib
import io
import os
import re
import zlib
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tagwise.apps.annotate import folder as files
from tagwise.apps.annotate.exports import check_export, written, written_notes
from tagwise.apps.annotate.folder import (
    ACTION,
    LONGEST_TEXT,
    MOST_RENAMES,
    MOST_SENTENCES,
    MOST_TOKENS,
    OUTSIDE,
    ProjectSettings,
    check_label,
)
from tagwise.apps.annotate.history import ACTIONS, MARKS, History
from tagwise.apps.annotate.imports import TokenSpan, proposed_spans, read_document, stored_sentence
from tagwise.apps.annotate.journal import Journal, JournalError
from tagwise.apps.annotate.label_types import check_labels, renamed_spans, renaming
from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.base.parameters import meant
from tagwise.base.writing import atomic
from tagwise.corpus import schemes
from tagwise.corpus.formats import UNKNOWN
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.features.resolve import names_files


class Work:
    """An open project. `accepted` maps sentence numbers to accepted labels, `given` has labels from documents.

    Args:
        folder: Folder of the project. It is created if it does not exist.
        settings: Settings of a new project, and features that name files (see `features`).
        read_only: Whether to read the folder as it is now, without changing it. Another process may have it open.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        settings: ProjectSettings | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        self.folder, self._requested = Path(folder), settings
        begun = read_only or files.is_begun(self.folder)
        # The journal is read before the settings, so that these have all labels and documents of its entries.
        self.journal = Journal(self.folder / "journal.jsonl", ACTION, read_only=read_only)
        try:
            self._files: list[dict[str, Any]] = []  # entries of documents in `work.json`
            if begun:
                self.settings, self._files = files.read_settings(self.folder)
            else:
                self.settings = (settings or ProjectSettings()).check()
                self._save(self.settings)
            self.sentences: list[Sentence] = []
            self.documents: list[tuple[str, range]] = []
            self.titles: list[str] = []  # name of the document inside its file, by sentence, or an empty text
            self._by_content: dict[Hashable, list[int]] = {}  # sentences by content
            self.given: dict[int, list[str]] = {}
            self.proposed: dict[int, list[TokenSpan]] = {}  # unconfirmed spans of documents
            self.history = History()
            self._acceptance_order: dict[int, int] = {}  # order of acceptance by sentence
            self._n_acceptances = 0
            self.n_labelled = 0  # number of sentences in `labelled`
            self.n_given = 0  # number of sentences with labels from a document that are not accepted
            for file in self._files:
                self._add(file)
            self._replay_all()
        except BaseException:
            self.journal.close()
            raise

    def _replay_all(self) -> None:
        """Replay the journal, with each renaming of labels at its place."""
        renames = list(self.settings.renames)
        known = {*self.settings.labels, *(one["old"] for one in renames)}
        for entry in self.journal.entries:
            while renames and renames[0]["entries"] < entry["n"]:
                self.history.relabel(renaming(renames.pop(0), self.settings.kind))
            self._replay(entry, known)
        for one in renames:
            self.history.relabel(renaming(one, self.settings.kind))
        for i, labels in self.accepted.items():
            try:
                self.check(i, labels)
            except ParameterError as error:
                raise JournalError(
                    f"{self.journal.path}: {error}. The journal belongs to another project."
                ) from error

    @property
    def accepted(self) -> dict[int, list[str]]:
        """Accepted labels by sentence."""
        return self.history.accepted

    @property
    def skipped(self) -> list[int]:
        """Postponed sentences, in the order of skipping."""
        return self.marked("skip")

    @property
    def identity(self) -> str:
        """Short name of the project, which differs between folders and texts, for drafts in the browser."""
        parts = [str(self.folder.resolve()), *(str(one["crc32"]) for one in self._files[:1])]
        return f"{zlib.crc32(' '.join(parts).encode()):08x}"

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
        if check_label(label, self.settings.kind) not in self.settings.labels:
            self.set(labels=[*self.settings.labels, label])

    def change_label(self, label: str, *, place: int | None = None, **details: Any) -> None:
        """Change colour, key and description of a label type, or move it to another place."""
        labels = list(self.settings.labels)
        self._check_known(label)
        changed = {**self.settings.details[label], **details}
        if key := changed.get("key"):
            for other, one in self.settings.details.items():
                if other != label and one.get("key") == key:
                    raise ParameterError(f"the key {key!r} is that of {other}. Choose another one")
        if place is not None:
            labels.remove(label)
            labels.insert(place, label)
        found = {name: value for name, value in changed.items() if value not in ("", None)}
        self.set(labels=labels, details={**self.settings.details, label: found})

    def _check_known(self, label: str) -> None:
        if label not in self.settings.labels:
            raise ParameterError(
                f"unknown label {label!r}{meant(label, self.settings.labels)}. "
                f"Use one of {' '.join(self.settings.labels)}"
            )

    def rename_label(self, old: str, new: str | None) -> None:
        """Rename a label type in all labelled sentences, merge it with another one, or delete it (None).

        Spans of a deleted type are removed. The documents and the journal do not change: `work.json` records the
        renaming with the entries and documents that it applies to.
        """
        self._check_known(old)
        if new == old:
            return
        settings = self.settings
        if new is not None:
            check_label(new, settings.kind)
        elif settings.kind == "tokens" and any(old in labels for labels in self.labelled.values()):
            raise ParameterError(f"tokens have the label {old}, and every token needs one. Rename it instead")
        labels = [new if y == old else y for y in settings.labels if y != new]
        details = dict(settings.details)
        if new is not None:
            details[new] = details.get(new, details[old])
        one: dict[str, Any] = {
            "entries": len(self.journal.entries),
            "documents": len(self._files),
            "old": old,
        }
        if new is not None:
            one["new"] = new
        if len(settings.renames) >= MOST_RENAMES:
            raise ParameterError(f"labels were renamed {MOST_RENAMES:,} times. Start another folder")
        self.set(
            labels=[y for y in labels if y is not None], details=details, renames=[*settings.renames, one]
        )
        rename = renaming(one, self.settings.kind)
        self.history.relabel(rename)
        self.given = {i: rename(found) for i, found in self.given.items()}
        self.proposed = {i: renamed_spans(found, one) for i, found in self.proposed.items()}

    # --- documents ----------------------------------------------------------------------------------------

    def _add(self, file: Mapping[str, Any]) -> range:
        """Load the sentences of a document listed in `work.json`."""
        first = len(self.sentences)
        others = sum(one["bytes"] for one in self._files if one is not file)
        corpus = files.read_document(self.folder, file, others)
        self._check_size(corpus)
        number = len(self.documents)
        later = [one for one in self.settings.renames if one["documents"] > number]
        renames = [renaming(one, self.settings.kind) for one in later]
        for i, sentence in enumerate(corpus, first):
            labels = sentence.fields.get("label")
            if labels is not None and UNKNOWN not in labels:
                for rename in renames:
                    labels = rename(labels)
                self.given[i] = labels
            elif found := proposed_spans(sentence):
                for one in later:
                    found = renamed_spans(found, one)
                self.proposed[i] = found
            bare = {name: column for name, column in sentence.fields.items() if name != "label"}
            title = sentence.doc if sentence.doc is not None else self.titles[-1] if i > first else ""
            self.titles.append(title)
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

    def add(self, corpus: Corpus, name: str = "", *, fresh: bool = False, review: bool = False) -> range:
        """Add the sentences of a corpus as a document.

        Their labels count as done, become proposals with `review`, and are ignored with `fresh`.
        """
        if not len(corpus):
            raise CorpusError(
                f"{corpus.source or name or 'the corpus'}: no sentences found. Add a file with sentences"
            )
        self._check_size(corpus)
        stored = [stored_sentence(sentence, fresh, review) for sentence in corpus]
        self._learn_labels(y for s in stored for y in s.fields["label"])
        self._add_types(y for s in stored for _, _, y in proposed_spans(s))
        stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", name or os.path.basename(corpus.source or ""))
        used = sum(one["bytes"] for one in self._files)
        file = files.write_document(
            self.folder, len(self._files) + 1, stem.strip("-.")[:60], Corpus(stored), used
        )
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
        self._add_types(found)

    def _add_types(self, found: Iterable[str]) -> None:
        """Add new label types."""
        if fresh := [y for y in dict.fromkeys(found) if y not in self.settings.labels]:
            self.set(labels=[*self.settings.labels, *fresh])

    def read(self, text: bytes, format: str | None = None, name: str = "upload") -> range:
        """Add the content of a file in any format as a document."""
        return self.add(read_document(io.BytesIO(text), format), name)

    # --- actions ------------------------------------------------------------------------------------------

    def _replay(self, entry: dict[str, Any], known: Collection[str]) -> None:
        do, n = entry["do"], entry["n"]
        where, history = f"{self.journal.path}, line {n}", self.history
        if do in ACTIONS:
            try:
                self.check(entry["id"], entry.get("labels"), known)
            except ParameterError as error:
                raise JournalError(
                    f"{where}: {error}. The journal belongs to another project, or is damaged."
                ) from error
            self._apply(entry, n)
        elif (i := history.next_undo if do == "undo" else history.next_redo) is None:
            raise JournalError(
                f"{where}: there is no action to {do}. The journal is damaged. Restore it from a copy."
            )
        else:
            self._walk(do, i, n)

    @contextlib.contextmanager
    def _counted(self, i: int) -> Iterator[None]:
        """Update the counts of labelled sentences for a change of sentence i, and of those with the same content."""
        self.n_labelled -= self._labelled_like(i)
        self.n_given -= self._is_given(i)
        yield
        if i in self.accepted:
            self._n_acceptances += 1
            self._acceptance_order.setdefault(i, self._n_acceptances)
        else:
            self._acceptance_order.pop(i, None)
        self.n_labelled += self._labelled_like(i)
        self.n_given += self._is_given(i)

    def _apply(self, action: Mapping[str, Any], n: int) -> None:
        with self._counted(action["id"]):
            self.history.apply(action, n)

    def _walk(self, do: str, i: int, n: int) -> None:
        with self._counted(i):
            (self.history.undo if do == "undo" else self.history.redo)(n)

    def _labelled_like(self, i: int) -> int:
        """Count the labelled sentences with the same content: all of them, if one is accepted."""
        alike, marks = self.duplicates(i), self.history.marks
        if any(marks.get(j) == "reject" for j in alike):
            return 0
        return len(alike) if any(j in self.accepted for j in alike) else sum(j in self.given for j in alike)

    def _is_given(self, i: int) -> bool:
        """Return whether sentence i has labels from a document that are not accepted."""
        return i in self.given and i not in self.accepted

    def _do(self, action: dict[str, Any]) -> None:
        self._apply(action, self.journal.append(**action)["n"])

    def accept(self, i: int, labels: Sequence[str], **effort: float) -> None:
        """Accept the labels of a sentence. They are on disk when this returns.

        `effort` has the seconds that it took, the number of proposed spans (`offered`) and of those that were `kept`.
        """
        self.check(i, labels)
        self._do({"do": "accept", "id": i, "labels": list(labels), **effort})

    def mark(self, i: int, mark: str) -> None:
        """Postpone (skip), flag or reject a sentence."""
        self.check(i, None)
        if mark not in MARKS:
            raise ParameterError(f"mark={mark!r}: expected one of {', '.join(MARKS)}")
        self._do({"do": mark, "id": i})

    def skip(self, i: int) -> None:
        """Postpone a sentence."""
        self.mark(i, "skip")

    def comment(self, i: int, text: str) -> None:
        """Set the comment of a sentence. An empty text removes it."""
        self.check(i, None)
        if not isinstance(text, str) or len(text) > LONGEST_TEXT:
            raise ParameterError(f"comment: expected a text of at most {LONGEST_TEXT:,} characters")
        self._do({"do": "comment", "id": i, "text": text})

    def undo(self) -> int | None:
        """Undo the last action, and return the number of its sentence, or None if there is no action."""
        return self._back("undo", self.history.next_undo)

    def redo(self) -> int | None:
        """Redo the last undone action, and return the number of its sentence, or None if there is no action."""
        return self._back("redo", self.history.next_redo)

    def _back(self, do: str, i: int | None) -> int | None:
        if i is not None:
            self._walk(do, i, self.journal.append(do=do)["n"])
        return i

    @property
    def undoable(self) -> tuple[bool, bool]:
        """Whether there are actions to undo and to redo."""
        return self.history.next_undo is not None, self.history.next_redo is not None

    def check(self, i: Any, labels: Sequence[str] | None, known: Collection[str] | None = None) -> None:
        """Raise a ParameterError if there is no sentence i, or if it cannot have these labels of `known` types."""
        if not isinstance(i, int) or isinstance(i, bool) or not 0 <= i < len(self.sentences):
            raise ParameterError(f"sentence {i!r}: expected a number from 0 to {len(self.sentences) - 1}")
        if labels is None:
            return
        if len(labels) != len(self.sentences[i]):
            raise ParameterError(
                f"sentence {i}: {len(labels)} labels for {len(self.sentences[i])} tokens. Give one label per token"
            )
        check_labels(labels, self.settings.kind, self.settings.labels if known is None else known)

    # --- content ------------------------------------------------------------------------------------------

    def duplicates(self, i: int) -> list[int]:
        """Return all sentences with the content of sentence i, in order."""
        return self._by_content[_content(self.sentences[i].fields)]

    @property
    def labelled(self) -> dict[int, list[str]]:
        """Return the labels of all labelled sentences. Accepted labels override those of documents.

        A sentence without labels gets those of the first accepted sentence with the same content. Rejected sentences
        are left out.
        """
        found = {**self.given, **self.accepted}
        if len(self._by_content) < len(self.sentences):
            for i in sorted(self.accepted, key=self._acceptance_order.__getitem__):
                for j in self.duplicates(i):
                    found.setdefault(j, self.accepted[i])
        for i in self.marked("reject"):
            for j in self.duplicates(i):
                found.pop(j, None)
        return found

    def marked(self, *marks: str) -> list[int]:
        """Return the sentences with one of these marks, in the order of marking."""
        return [i for i, mark in self.history.marks.items() if mark in marks]

    def version(self, i: int) -> int:
        """Return the number of the last action on sentence i or one with the same content, 0 for none."""
        return max(self.history.changed.get(j, 0) for j in self.duplicates(i))

    def labels_of(self, i: int) -> list[str] | None:
        """Return the entry of `labelled` for one sentence, without computing all others."""
        if any(self.history.marks.get(j) == "reject" for j in self.duplicates(i)):
            return None
        own = self.accepted.get(i, self.given.get(i))
        if own is not None:
            return own
        alike = [j for j in self.duplicates(i) if j in self.accepted]
        return self.accepted[min(alike, key=self._acceptance_order.__getitem__)] if alike else None

    def unlabelled(self) -> Iterator[int]:
        """Yield the sentences without labels and flags, the first of those with the same content."""
        found, closed = self.labelled, set(self.marked("flag", "reject"))
        for places in self._by_content.values():
            if (
                closed.isdisjoint(places)
                and (first := next((i for i in places if i not in found), None)) is not None
            ):
                yield first

    def corpus(self, places: Sequence[int] | None = None) -> Corpus:
        """Return labelled sentences as a corpus, in order."""
        found = self.labelled
        chosen = sorted(found) if places is None else places
        return Corpus([self.sentences[i].with_labels(found[i], "label") for i in chosen])

    def export(self, format: str, name: str | None = None) -> bytes:
        """Return the labelled sentences of all documents or of one in a format."""
        check_export(format, self.settings.kind)
        if format == "notes":
            return written_notes(self.documents, self.sentences, self.history.entries)
        labelled = self.labelled
        places = [i for title, span in self.documents if name in (None, title) for i in span if i in labelled]
        return written(self.corpus(places), format, self.settings.kind)

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
