"""Actions on the sentences of a project: labels, marks and comments, with undo and redo."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

#: Marks of a sentence: postponed, to be discussed, and excluded from exports and training.
MARKS = ("skip", "flag", "reject")
#: Actions on one sentence.
ACTIONS = ("accept", *MARKS, "comment")
#: Optional members of an `accept`: seconds that it took, number of proposed spans, and how many of them were kept.
EFFORT = ("seconds", "offered", "kept")


class Entry(NamedTuple):
    """State of a sentence. `edits` counts how often accepted labels were replaced by others."""

    labels: list[str] | None = None
    mark: str | None = None
    comment: str = ""
    effort: Mapping[str, float] = {}
    edits: int = 0


class History:
    """State of all sentences after a sequence of actions.

    Attributes:
        entries: State of each sentence with an action.
        accepted: Accepted labels, in the order of the last change.
        marks: Marks, in the order of the last change.
        changed: Number of the last action that changed a sentence.
    """

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.accepted: dict[int, list[str]] = {}
        self.marks: dict[int, str] = {}
        self.changed: dict[int, int] = {}
        self._done: list[tuple[dict[str, Any], Entry]] = []  # actions and the states before them
        self._undone: list[dict[str, Any]] = []

    def entry(self, i: int) -> Entry:
        """Return the state of a sentence."""
        return self.entries.get(i, Entry())

    def _store(self, i: int, entry: Entry, n: int) -> None:
        self.entries[i], self.changed[i] = entry, n
        self.accepted.pop(i, None)
        self.marks.pop(i, None)
        if entry.labels is not None:
            self.accepted[i] = entry.labels
        if entry.mark is not None:
            self.marks[i] = entry.mark

    def apply(self, action: Mapping[str, Any], n: int) -> None:
        """Apply a new action, the n-th of the journal. There is nothing to redo afterwards."""
        self._undone.clear()
        self._apply(dict(action), n)

    def _apply(self, action: dict[str, Any], n: int) -> None:
        i, do = action["id"], action["do"]
        before = after = self.entry(i)
        if do == "accept":
            labels = list(action["labels"])
            replaced = before.labels is not None and before.labels != labels
            effort = {name: action[name] for name in EFFORT if name in action}
            after = before._replace(
                labels=labels, mark=None, effort=effort, edits=before.edits + int(replaced)
            )
        elif do == "comment":
            after = before._replace(comment=action["text"])
        else:
            after = before._replace(mark=do)
        self._done.append((action, before))
        self._store(i, after, n)

    @property
    def next_undo(self) -> int | None:
        """Sentence of the action that `undo` would undo."""
        return self._done[-1][0]["id"] if self._done else None

    @property
    def next_redo(self) -> int | None:
        """Sentence of the action that `redo` would redo."""
        return self._undone[-1]["id"] if self._undone else None

    def undo(self, n: int) -> None:
        """Undo the last action, as the n-th of the journal."""
        action, before = self._done.pop()
        self._undone.append(action)
        self._store(action["id"], before, n)

    def redo(self, n: int) -> None:
        """Redo the last undone action, as the n-th of the journal."""
        self._apply(self._undone.pop(), n)

    def undone_labels(self, i: int) -> list[str] | None:
        """Return the labels of an undone acceptance of a sentence that can still be redone, or None."""
        found = (one["labels"] for one in reversed(self._undone) if (one["do"], one["id"]) == ("accept", i))
        return next(found, None)

    def relabel(self, rename: Callable[[list[str]], list[str]]) -> None:
        """Rename labels in all states and actions."""

        def renamed(entry: Entry) -> Entry:
            return entry if entry.labels is None else entry._replace(labels=rename(entry.labels))

        for i, labels in self.accepted.items():
            self.accepted[i] = rename(labels)
        self.entries = {i: renamed(entry) for i, entry in self.entries.items()}
        self._done = [(_renamed(action, rename), renamed(before)) for action, before in self._done]
        self._undone = [_renamed(action, rename) for action in self._undone]


def _renamed(action: dict[str, Any], rename: Callable[[list[str]], list[str]]) -> dict[str, Any]:
    return {**action, "labels": rename(action["labels"])} if action["do"] == "accept" else action
