"""The result of a comparison: rows, means over seeds, significance and output formats."""

from __future__ import annotations

import csv
import importlib
import io
import json
import os
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from tagwise.apps.compare.cells import Row
from tagwise.corpus.sentence import Corpus
from tagwise.evaluation.significance import intervals, p_value

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

#: Fields that identify a row apart from its seed, and measures that are averaged over seeds.
GROUP = ("corpus", "learner", "loss", "features", "sentences")
MEASURES = (
    "accuracy",
    "f1",
    "precision",
    "recall",
    "sequence_accuracy",
    "dev_accuracy",
    "dev_f1",
    "dev_precision",
    "dev_recall",
    "nonzero",
    "iterations",
    "passes",
    "seconds",
    "cpu",
    "memory",
    "rank",
    "beyond",
    "margin",
)
#: Measures that are fractions, with the heads of their columns.
SHARES = {
    "accuracy": "accuracy",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "sequence_accuracy": "sequences",
    "dev_accuracy": "dev accuracy",
    "dev_f1": "dev F1",
    "dev_precision": "dev precision",
    "dev_recall": "dev recall",
}
#: Measures that tables omit by default.
HIDDEN = ("precision", "recall", "dev_precision", "dev_recall")


@dataclass(frozen=True)
class Published:
    """A published figure, in percent (seconds unscaled), and the measure that it corresponds to."""

    learner: str
    value: float
    measure: str = "f1"
    features: str | None = None  # None for all feature sets
    corpus: str | None = None
    source: str = ""

    def fits(self, entry: Mapping[str, Any]) -> bool:
        """Return whether the figure belongs to a row."""
        return (
            entry["learner"] == self.learner
            and self.features in (None, entry["features"])
            and self.corpus in (None, entry["corpus"])
        )


def percent(value: float | None, deviation: float | None = None) -> str:
    """Format a fraction as a percentage with two digits and its deviation, or return an empty text for None."""
    if value is None:
        return ""
    return f"{100 * value:.2f}" + (f" ±{100 * deviation:.2f}" if deviation is not None else "")


def rank_text(rank: float | None, beyond: float | None) -> str:
    """Format a mean rank, as a lower bound if some gold paths are in no list.

    >>> rank_text(2.5, 0.0), rank_text(7.25, 0.1), rank_text(None, None)
    ('2.50', '>= 7.25', '')
    """
    return "" if rank is None else f"{'>= ' if beyond else ''}{rank:.2f}"


class Comparison(Sequence[Row]):
    """Rows of a comparison, which print as a table.

    Attributes:
        rows: A `Row` per trained cell.
        details: Details of each row for reports, or None if they were not kept.
        tests: Test part of each corpus by name, which reports show sentences of. May be empty.
        title: Text above the table.
        caption: Text below the table.
        against: Learner that the others are tested against, or None.
        published: Published figures, shown in their own columns.
        note: Remark on the preset, printed after the table.
        hidden: Measures that the table omits.
    """

    def __init__(
        self,
        rows: Sequence[Row] = (),
        *,
        title: str = "",
        caption: str = "",
        details: Sequence[Mapping[str, Any] | None] | None = None,
        tests: Mapping[str, Corpus] | None = None,
        against: str | None = None,
        published: Sequence[Published] = (),
        note: str = "",
        hidden: Sequence[str] = HIDDEN,
    ) -> None:
        self.rows = list(rows)
        self.details: list[Mapping[str, Any] | None] = (
            [None] * len(self.rows) if details is None else list(details)
        )
        self.tests = dict(tests or {})
        self.title, self.caption, self.note = title, caption, note
        self.against = against
        self.published = tuple(published)
        self.hidden = tuple(hidden)
        self._p_values: dict[tuple[tuple[int, ...], tuple[int, ...]], float | None] = {}
        self._intervals: dict[tuple[int, ...], dict[str, tuple[float, float]]] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from tagwise.apps.compare.blocks import comparison_blocks

        yield comparison_blocks(*self.sheet(), options.max_width, self.title, self.caption)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: a table per corpus, without empty columns."""
        from tagwise.base.markup import safe, table_html

        head, body = self.sheet()
        parts = [f"<h4>{safe(self.title)}</h4>"] if self.title else []
        for corpus in dict.fromkeys(row[0] for row in body):
            rows = [row[1:] for row in body if row[0] == corpus]
            kept = [i for i in range(len(head) - 1) if any(row[i] for row in rows)]
            left = sum(head[i + 1] in ("learner", "loss", "features") for i in kept)
            table = table_html(
                [head[i + 1] for i in kept], [[row[i] for i in kept] for row in rows], left=left
            )
            parts.append(f"<p><b>{safe(corpus)}</b></p>{table}")
        parts += [f"<p>{safe(text)}</p>" for text in (self.caption, self.note) if text]
        return "".join(parts)

    def __str__(self) -> str:
        from tagwise.base.terminal import as_text

        return as_text(self)

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.rows)} rows>"

    def add(self, row: Row, detail: Mapping[str, Any] | None = None) -> None:
        """Add a row."""
        self.rows.append(row)
        self.details.append(detail)

    # --- means and tests --------------------------------------------------------------------------------

    def groups(self) -> dict[tuple[Any, ...], list[int]]:
        """Group the indices of rows that differ only in the seed, in order."""
        out: dict[tuple[Any, ...], list[int]] = {}
        for index, row in enumerate(self.rows):
            out.setdefault(tuple(getattr(row, name) for name in GROUP), []).append(index)
        return out

    def summary(self) -> list[dict[str, Any]]:
        """Return the means over seeds, one entry per group of rows that differ only in the seed.

        The sample standard deviation (divisor n - 1) of a measure has the key ``name_sd``, a published figure the key
        ``name_published``. ``p`` is the significance of the difference from `against` on the same corpus, features and
        size.
        """
        groups = self.groups()
        out = []
        for key, indices in groups.items():
            rows = [self.rows[i] for i in indices]
            entry: dict[str, Any] = dict(zip(GROUP, key))
            entry["seeds"] = len(rows)
            entry["chosen"] = "; ".join(dict.fromkeys(row.chosen for row in rows if row.chosen))
            for name in MEASURES:
                values = [value for row in rows if (value := getattr(row, name)) is not None]
                entry[name] = statistics.fmean(values) if values else None
                entry[f"{name}_sd"] = statistics.stdev(values) if len(values) > 1 else None
            for figure in self.published:
                if figure.fits(entry):
                    entry[f"{figure.measure}_published"] = figure.value
            entry["p"] = self._p(entry, groups)
            out.append(entry)
        return out

    def _p(self, entry: Mapping[str, Any], groups: Mapping[tuple[Any, ...], list[int]]) -> float | None:
        """Return the significance of the difference from `against`, over the sentences of all common seeds."""
        if self.against is None or entry["learner"] == self.against:
            return None
        return self._tested(groups[_group(entry)], self._base(entry, groups))

    def p_between(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> float | None:
        """Return the p-value of the difference between two entries of `summary` on the same corpus.

        None if counts of their sentences were not kept.
        """
        groups = self.groups()
        return self._tested(groups[_group(one)], groups[_group(other)])

    def _tested(self, mine: Sequence[int], base: Sequence[int]) -> float | None:
        """Return the p-value of the difference between two groups of rows, over the sentences of all common seeds."""
        key = (tuple(id(self.rows[i]) for i in mine), tuple(id(self.rows[i]) for i in base))
        if key not in self._p_values:
            one, other = self._counts(mine), self._counts(base)
            seeds = sorted(one.keys() & other.keys())
            pooled = [[c for s in seeds for c in of[s]] for of in (one, other)]
            same = bool(seeds) and len(pooled[0]) == len(pooled[1])
            self._p_values[key] = p_value(*pooled) if same else None
        return self._p_values[key]

    def intervals(self, entry: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
        """Return 95 % bootstrap intervals of the scores of an entry of `summary`, by measure.

        Test sentences are drawn with replacement, with a fixed seed. Empty if counts of sentences were not kept.
        """
        mine = self.groups()[_group(entry)]
        key = tuple(id(self.rows[i]) for i in mine)
        if key not in self._intervals:
            counts = list(self._counts(mine).values())
            found = intervals(counts) if len(counts) == len(mine) else {}
            self._intervals[key] = {name: ends for name, ends in found.items() if entry[name] is not None}
        return self._intervals[key]

    def _base(self, entry: Mapping[str, Any], groups: Mapping[tuple[Any, ...], list[int]]) -> list[int]:
        """Return the rows of `against` on the same corpus and size, with the same features or its only ones."""
        same = [
            (dict(zip(GROUP, key)), indices)
            for key, indices in groups.items()
            if dict(zip(GROUP, key))["learner"] == self.against
            and all(dict(zip(GROUP, key))[name] == entry[name] for name in ("corpus", "sentences"))
        ]
        exact = [indices for key, indices in same if key["features"] == entry["features"]]
        if exact:
            return exact[0]
        return same[0][1] if len(same) == 1 else []

    def _counts(self, indices: Sequence[int]) -> dict[int, Sequence[Sequence[int]]]:
        """Return the counts by sentence for each seed."""
        kept = ((self.rows[i].seed, self.details[i]) for i in indices)
        return {seed: detail["counts"] for seed, detail in kept if detail is not None and "counts" in detail}

    # --- as text ----------------------------------------------------------------------------------------

    def sheet(self) -> tuple[list[str], list[list[str]]]:
        """Return head and body of the table as text, without empty columns."""
        rows = self.summary()
        columns: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
            ("corpus", lambda r: r["corpus"]),
            ("learner", lambda r: r["learner"]),
            ("loss", lambda r: r["loss"]),
            ("features", lambda r: r["features"]),
            ("sentences", lambda r: f"{r['sentences']:,}"),
        ]
        for name, head in SHARES.items():
            figure = f"{name}_published"
            if name not in self.hidden:
                columns.append((head, lambda r, n=name: percent(r[n], r[f"{n}_sd"])))  # type: ignore[misc]
            if any(figure in row for row in rows):
                columns.append((f"{head}, paper", lambda r, f=figure: f"{r[f]:.2f}" if f in r else ""))  # type: ignore[misc]
        columns += [
            ("rank risk", lambda r: rank_text(r["rank"], r["beyond"])),
            ("gold beyond the list", lambda r: percent(r["beyond"])),
            ("median margin", lambda r: "" if r["margin"] is None else f"{r['margin']:.3f}"),
            (f"p, against {self.against}", lambda r: "" if r["p"] is None else f"{r['p']:.4f}"),
            ("non-zero features", lambda r: f"{r['nonzero']:,.0f}"),
            ("passes", lambda r: f"{r['passes']:.0f}"),
            ("seconds", lambda r: f"{r['seconds']:.1f}"),
            (
                "seconds, paper",
                lambda r: f"{r['seconds_published']:,.0f}" if "seconds_published" in r else "",
            ),
            ("CPU s", lambda r: "" if r["cpu"] is None else f"{r['cpu']:.1f}"),
            ("peak MiB", lambda r: "" if r["memory"] is None else f"{r['memory'] / 2**20:,.0f}"),
            ("chosen", lambda r: r["chosen"]),
        ]
        body = [[cell(row) for _, cell in columns] for row in rows]
        kept = [i for i in range(len(columns)) if not body or any(cells[i] for cells in body)]
        return [columns[i][0] for i in kept], [[cells[i] for i in kept] for cells in body]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return every row as a dictionary, without averaging over seeds."""
        return [asdict(row) for row in self.rows]

    def to_json(self) -> str:
        """Return title, caption, rows and their means as JSON."""
        content = {"title": self.title, "caption": self.caption, "note": self.note}
        return json.dumps({**content, "rows": self.to_dicts(), "summary": self.summary()}, indent=2)

    def to_csv(self) -> str:
        """Return every row as CSV with a header. Missing measures are empty."""
        text = io.StringIO()
        writer = csv.DictWriter(text, [f.name for f in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {name: escape_formula(value) for name, value in row.items()} for row in self.to_dicts()
        )
        return text.getvalue()

    def to_markdown(self) -> str:
        """Return the printed table as Markdown."""
        head, body = self.sheet()
        rows = [[markdown(cell) for cell in cells] for cells in (head, *body)]
        rows.insert(1, ["---"] * len(head))
        lines = ["| " + " | ".join(cells) + " |" for cells in rows]
        lines += [line for text in (self.caption, self.note) if text for line in ("", text)]
        return "\n".join(lines) + "\n"

    def to_latex(self) -> str:
        """Return the printed table as a LaTeX tabular."""
        head, body = self.sheet()
        words = sum(name in ("corpus", "learner", "loss", "features") for name in head)
        lines = [r"\begin{tabular}{" + "l" * words + "r" * (len(head) - words) + "}", r"\hline"]
        lines += [" & ".join(map(latex, head)) + r" \\", r"\hline"]
        lines += [" & ".join(map(latex, cells)) + r" \\" for cells in body]
        return "\n".join([*lines, r"\hline", r"\end{tabular}"]) + "\n"

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained HTML page with tables, curves, confusions, features and errors.

        Args:
            path: File to write.
        """
        module, _, name = PAGES["html"].partition(":")
        getattr(importlib.import_module(module), name)(self, path)


def _group(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the key of an entry of the summary in `Comparison.groups`."""
    return tuple(entry[name] for name in GROUP)


#: Import paths of functions that write a comparison as a page. Reports are in a higher layer, hence the lazy import.
PAGES = {"html": "tagwise.apps.compare.report:write"}


_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
_LATEX = {c: "\\" + c for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
}


def latex(text: str) -> str:
    """Escape the special characters of LaTeX.

    >>> latex("a_b 50%")
    'a\\\\_b 50\\\\%'
    """
    from tagwise.base.terminal import visible

    return "".join(_LATEX.get(c, c) for c in visible(text))


def markdown(text: str) -> str:
    """Escape a text for a cell of a Markdown table.

    >>> print(markdown("a|b`c`"))
    a\\|b\\`c\\`
    """
    from tagwise.base.terminal import visible

    return re.sub(r"([\\|`<])", r"\\\1", visible(" ".join(text.splitlines())))


def escape_formula(value: Any) -> Any:
    """Prefix a text that a spreadsheet would read as a formula with an apostrophe.

    The characters are those that OWASP lists for CSV injection: =, +, -, @ and their full-width forms. Tabs and line
    ends are made visible.

    >>> escape_formula("=1+1"), escape_formula("S1"), escape_formula(-0.5)
    ("'=1+1", 'S1', -0.5)
    """
    from tagwise.base.terminal import visible

    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
