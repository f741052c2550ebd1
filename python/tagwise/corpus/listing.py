"""Lists of named things, such as corpora and pretrained taggers, which notebooks show as a table."""

from __future__ import annotations

from typing import Protocol, TypeVar


class Listed(Protocol):
    """An entry of a listing."""

    def _cells(self) -> dict[str, str]: ...


Item = TypeVar("Item", bound=Listed)


class Listing(list[Item]):
    """List that prints one entry per line. Notebooks show a table."""

    def __str__(self) -> str:
        return "\n".join(map(repr, self))

    def _repr_html_(self) -> str:
        from tagwise.base.markup import table_html

        rows = [item._cells() for item in self]
        return (
            table_html(list(rows[0]), [list(cells.values()) for cells in rows], left=len(rows[0]))
            if rows
            else ""
        )
