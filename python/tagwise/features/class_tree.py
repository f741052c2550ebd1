"""Binary trees of word classes: paths of the leaves, the nearest leaves, display as text and as HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, takewhile

from tagwise.base.domains import is_text
from tagwise.base.exceptions import ParameterError


def checked_paths(
    words: Mapping[str, Sequence[str]], shapes: Mapping[str, Sequence[str]], name: str
) -> tuple[str, ...]:
    """Return the paths in lexicographic order. Raise a ParameterError if they are not the leaves of a binary tree."""
    paths = tuple(sorted(words))
    for path in (*paths, *shapes):
        if not is_text(path) or not re.fullmatch("[01]+", path):
            raise ParameterError(f"WordClasses {name}: {path!r:.80} is not a path. Use strings of 0 and 1.")
    for before, after in pairwise(paths):
        if after.startswith(before):
            raise ParameterError(
                f"WordClasses {name}: the path {before!r} is the beginning of the path {after!r}."
            )
    if len(paths) < 2 or not shapes.keys() <= words.keys():
        raise ParameterError(f"WordClasses {name}: expected at least two classes, and shapes only of these.")
    return paths


def nearest_paths(sizes: Mapping[str, int], own: str) -> list[str]:
    """Return the other paths by falling length of the prefix that they share with a path, then by falling size."""

    def shared(path: str) -> tuple[int, int]:
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(own, path)))
        return -common, -sizes[path]

    return sorted((path for path in sizes if path != own), key=shared)


class ClassTree:
    """Upper part of a tree of word classes. It prints as indented lines.

    Args:
        paths: Paths of all classes.
        members: Function of a prefix and a number that returns the most frequent members.
        depth: Depth of the lowest classes to show.
        most: Number of members to show.
    """

    def __init__(
        self, paths: Sequence[str], members: Callable[[str, int | None], list[str]], depth: int, most: int
    ) -> None:
        self.paths, self.depth, self.most = tuple(paths), depth, most
        self._members = members

    def _children(self, prefix: str) -> list[str]:
        """Return the two prefixes below a prefix, or none below a class and at the lowest depth."""
        if len(prefix) >= self.depth or prefix in self.paths:
            return []
        return [prefix + bit for bit in "01" if any(path.startswith(prefix + bit) for path in self.paths)]

    def _line(self, prefix: str) -> tuple[str, str]:
        """Return the prefix with the number of its classes, and its best-known members."""
        n = sum(path.startswith(prefix) for path in self.paths)
        count = f" ({n:,} classes)" if n > 1 else ""
        return f"{prefix or 'all'}{count}", ", ".join(self._members(prefix, self.most))

    def __str__(self) -> str:
        lines: list[str] = []

        def add(prefix: str) -> None:
            below = self._children(prefix)
            place, words = self._line(prefix)
            lines.append("  " * len(prefix) + (place if below else f"{place}: {words}"))
            for child in below:
                add(child)

        add("")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the representation for notebooks: nested lists that unfold."""
        from tagwise.base.markup import safe

        def item(prefix: str) -> str:
            place, words = map(safe, self._line(prefix))
            below = "".join(map(item, self._children(prefix)))
            head = f"<code>{place}</code> {words}"
            if not below:
                return f"<li>{head}</li>"
            return f"<li><details open><summary>{head}</summary><ul>{below}</ul></details></li>"

        return f"<ul>{item('')}</ul>"
