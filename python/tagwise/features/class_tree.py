"""Display of the tree of word classes, as text and as HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence


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
        from tagwise.corpus.markup import safe

        def item(prefix: str) -> str:
            place, words = map(safe, self._line(prefix))
            below = "".join(map(item, self._children(prefix)))
            head = f"<code>{place}</code> {words}"
            if not below:
                return f"<li>{head}</li>"
            return f"<li><details open><summary>{head}</summary><ul>{below}</ul></details></li>"

        return f"<ul>{item('')}</ul>"
