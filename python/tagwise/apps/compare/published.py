"""Published tables of papers, read from `published.toml`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from tagwise.apps.compare.table import Published

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EMPTY = "-"  # cell without a figure
KEY = ("learner", "features", "measure", "corpus")


@dataclass(frozen=True)
class Paper:
    """A paper with published tables."""

    authors: str
    title: str
    venue: str


@dataclass(frozen=True)
class PublishedCell:
    """A figure of a published table and the key of the trained row that it is compared with."""

    row: str
    column: str
    figure: float  # as printed
    learner: str
    measure: str
    features: str | None = None
    corpus: str | None = None


@dataclass(frozen=True)
class PublishedTable:
    """A published table in the layout of the paper. Fields are explained in `published.toml`."""

    paper: str
    table: str
    where: str
    shows: str
    preset: str
    data: str
    parts: tuple[Mapping[str, str], ...]
    columns: tuple[Mapping[str, str], ...]
    rows: tuple[Mapping[str, Any], ...]
    shared: Mapping[str, str]  # keys of all figures
    also: tuple[str, ...] = ()  # other presets that train some of the rows
    cause: str = ""
    errors: bool = False
    scored: bool = True

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> PublishedTable:
        """Return a table from its entry in the file."""
        shared = {name: fields[name] for name in KEY if name in fields}
        others: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in fields.items()
            if name not in KEY
        }
        return cls(shared=shared, **others)

    @property
    def source(self) -> str:
        """Citation of the table."""
        return f"{PAPERS[self.paper].authors}, {self.table}"

    def cells(self, part: int = 0) -> list[PublishedCell]:
        """Return the figures with their keys on one of the parts, in the order of the table."""
        chosen, out = self.parts[part], []
        for row in self.rows:
            learners = row.get("learners", [None] * len(self.columns))
            for column, learner, figure in zip(self.columns, learners, row["figures"], strict=True):
                if figure == EMPTY:
                    continue
                key = {**self.shared, **column, **row, **chosen}
                key = {name: key[name] for name in KEY if name in key}
                if learner is not None:
                    key["learner"] = learner
                key["learner"] += chosen.get("suffix", "")
                out.append(PublishedCell(row["head"], column["head"], figure, **key))
        return out

    def value(self, figure: float) -> float:
        """Convert a figure as printed to the measure it is compared with: errors to accuracy, minutes to seconds."""
        if self.errors:
            return round(100 - figure, 2)
        return 60 * figure if self.measures == {"seconds"} else figure

    @property
    def measures(self) -> set[str]:
        """Measures of the figures."""
        return {cell.measure for cell in self.cells()}


def read_published(text: str) -> tuple[dict[str, Paper], tuple[PublishedTable, ...]]:
    """Read papers and tables from the text of a TOML file."""
    content = tomllib.loads(text)
    papers = {name: Paper(**fields) for name, fields in content["papers"].items()}
    return papers, tuple(map(PublishedTable.read, content["tables"]))


PAPERS, TABLES = read_published(files("tagwise.apps.compare").joinpath("published.toml").read_text("utf-8"))


def published_figures(preset: str, learners: set[str]) -> tuple[Published, ...]:
    """Return the published figures of a preset for the learners that it trains. The first of several counts."""
    out: dict[tuple[Any, ...], Published] = {}
    for table in TABLES:
        if preset not in (table.preset, *table.also):
            continue
        for part in range(len(table.parts)):
            for cell in table.cells(part):
                key = (cell.learner, cell.measure, cell.features, cell.corpus)
                if cell.learner in learners:
                    value = table.value(cell.figure)
                    out.setdefault(
                        key,
                        Published(
                            cell.learner, value, cell.measure, cell.features, cell.corpus, table.source
                        ),
                    )
    return tuple(out.values())
