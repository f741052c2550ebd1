"""The study: run its comparisons, store their figures as JSON, and write the tables of its pages from them.

    python -m benchmarks.study                     # every preset, then the tables
    python -m benchmarks.study --only small-300    # some of them
    python -m benchmarks.study --tables            # write the pages from the stored runs, without training
    python -m benchmarks.study --check             # check that the pages match the JSON

`docs/study/runs/PRESET.json` has the results of a comparison. Published tables and the scorecard are made from it by
`benchmarks.scorecard`. `docs/study/TABLE.json` has another table of a page: its head, its rows, the build that measured
its figures, and, in `from`, the source of each cell. A cell of `from` is text with references in braces: {corpus,
learner, features, measure} or, with several sizes, {corpus, learner, features, sentences, measure}, separated by
semicolons. Shares are in percent with two digits, counts are integers, seconds have one digit, and `measure ±` adds the
deviation over seeds. A row with a missing figure is left unchanged. `picture` has a title, the names of the axes, the
points of each line, whose y is a number or a reference, and `log_x`. It is drawn to `docs/study/TABLE.svg`.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tagwise.apps.compare import (
    PRESETS,
    Cache,
    Comparison,
    Event,
    collect,
    default_folder,
    resolve_corpora,
)
from tagwise.apps.compare import run as train
from tagwise.apps.compare.cache import code_version
from tagwise.apps.compare.plan import load_parts
from tagwise.apps.compare.published import PAPERS
from tagwise.apps.compare.report.figures import Palette
from tagwise.apps.compare.report.svg import Chart, Line, PlotPoint
from tagwise.apps.compare.table import SHARES
from tagwise.base.exceptions import CorpusError
from tagwise.base.parameters import cores
from tagwise.decoding.ranks import BEYOND

from . import class_study, scorecard
from .figure import svg
from .harness import commit, machine

ROOT = Path(__file__).parents[1]
PAGE, FOLDER = ROOT / "docs" / "study.md", ROOT / "docs" / "study"
BLOCK = re.compile(r"<!-- (?P<kind>table|made) (?P<name>[^>]*?) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL)
#: Build of a table without any row filled by a run.
NOT_RUN = "not run yet"
#: Weight of a token in the weighted rank risk: a sentence of T tokens counts PI^T.
PI = 0.9
#: Run of `benchmarks.class_study`, which is not a preset of `tagwise compare`.
WORD_CLASSES = class_study.PRESET
REFERENCE = re.compile(r"\{([^{}]*)\}")


def markdown(table: Mapping[str, Any], name: str = "") -> str:
    """Format head and rows as a table of a page, followed by its picture.

    >>> print(markdown({"head": ["k", "F1"], "rows": [["1", "88.99"]]}), end="")
    | k | F1 |
    |---|---|
    | 1 | 88.99 |
    """
    if table.get("build") == NOT_RUN:
        return f'Not run yet: `make study ARGS="--only {table["preset"]}"`.\n'
    lines = [table["head"], None, *table["rows"]]
    text = "".join(
        "|" + "---|" * len(table["head"]) + "\n" if cells is None else f"| {' | '.join(cells)} |\n"
        for cells in lines
    )
    return text + (f"\n![{table['picture']['title']}]({name}.svg)\n" if "picture" in table else "")


def tables(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Return the tables by name."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}


def runs(folder: Path = FOLDER / "runs") -> dict[str, dict[str, Any]]:
    """Return the stored runs by preset."""
    return tables(folder)


def pages() -> list[Path]:
    """Return the pages of the study."""
    return [PAGE, *sorted(FOLDER.glob("*.md"))]


def block(kind: str, name: str, known: Mapping[str, Mapping[str, Any]], found: scorecard.Runs) -> str:
    """Return the body of a block of a page."""
    if kind == "table":
        if name not in known:
            raise CorpusError(f"a page has a table {name!r} without a file docs/study/{name}.json")
        return markdown(known[name], name)
    if name == "scorecard":
        return markdown(scorecard.scorecard(found))
    if name == "runs":
        return markdown(scorecard.provenance(found))
    paper, table, *part = (text.strip() for text in name.split(";"))
    published = scorecard.published(paper, table)
    at = int(part[0]) if part else 0
    text = markdown(scorecard.layout(published, found, at))
    return text + ("\n" + scorecard.summary(published, found, at) if published.scored else "")


def written(page: str, known: Mapping[str, Mapping[str, Any]], found: scorecard.Runs) -> str:
    """Return a page with its blocks from the JSON."""

    def body(match: re.Match[str]) -> str:
        kind, name = match["kind"], match["name"]
        return f"<!-- {kind} {name} -->\n{block(kind, name, known, found)}<!-- end -->"

    return BLOCK.sub(body, page)


def files() -> dict[Path, str]:
    """Return the contents of all pages and drawings of published figures by path."""
    known, found = tables(), runs()
    out = {path: written(path.read_text("utf-8"), known, found) for path in pages()}
    drawings = {f"plot-{paper}": scorecard.plot(paper, found) for paper in PAPERS}
    drawings |= {"plot": scorecard.plot(None, found), "losses": scorecard.loss_figure()}
    drawings |= scorecard.curves(found)
    for corpus, spec in found[WORD_CLASSES]["curves"].items() if WORD_CLASSES in found else ():
        drawings[f"labelling-{corpus}"] = svg(spec["title"], spec["x"], spec["y"], spec["curves"])
    return out | {FOLDER / f"{name}.svg": text for name, text in drawings.items()}


def differences() -> list[str]:
    """Return the differences between pages, drawings and JSON, one per line."""
    blocks = [match["name"] for path in pages() for match in BLOCK.finditer(path.read_text("utf-8"))]
    out = [f"docs/study/{name}.json: on no page of the study" for name in tables() if name not in blocks]
    for path, text in files().items():
        stored = path.read_text("utf-8").splitlines() if path.exists() else []
        lines = [(a, b) for a, b in zip(stored, text.splitlines()) if a != b]
        if lines or len(stored) != len(text.splitlines()):
            where = f": {lines[0][0][:80]!r}, expected {lines[0][1][:80]!r}" if lines else ""
            out.append(f"{path.relative_to(ROOT)} differs from the runs{where}")
    return sorted(out)


# --- figures ------------------------------------------------------------------------------------------------


def figure(entry: Mapping[str, Any], measure: str) -> str | None:
    """Format a measure of a cell, or return None if the cell does not have it."""
    name = measure.removesuffix("±").strip()
    value = entry.get(name)
    if value is None:
        return None
    if name in SHARES or name == "beyond":
        spread = entry.get(f"{name}_sd") if measure.endswith("±") else None
        return f"{100 * value:.2f}" + ("" if spread is None else f" ±{100 * spread:.2f}")
    return (
        f"{value:,.0f}"
        if name in ("nonzero", "passes", "iterations")
        else f"{value:.1f}"
        if name != "p"
        else f"{value:.4f}"
    )


def looked_up(reference: str, summary: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the figure of a reference, or None."""
    corpus, learner, features, *size, measure = (part.strip() for part in reference.split(";"))
    for entry in summary:
        if (entry["corpus"], entry["learner"], entry["features"]) == (corpus, learner, features) and (
            not size or str(entry["sentences"]) == size[0]
        ):
            return figure(entry, measure)
    return None


def picture(content: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """Return the chart of a table's `picture` as SVG. Points with a missing figure are left out."""
    spec = content["picture"]
    chart = Chart(spec["title"], spec["x"], spec["y"], log_x=spec.get("log_x", False), height=420)
    palette = Palette([{"learner": name, "features": ""} for name in spec["lines"]])
    for name, places in spec["lines"].items():
        found = [(x, looked_up(y[1:-1], run["summary"]) if isinstance(y, str) else str(y)) for x, y in places]
        points = [(float(x), float(y.split()[0].replace(",", ""))) for x, y in found if y is not None]
        if not points:
            continue
        colour = palette.colour(name)
        chart.lines.append(Line(points, name, colour, name))
        chart.points += [
            PlotPoint(
                *point, name, colour, f"{name}: {point[1]:.2f}", label=name if point == points[-1] else ""
            )
            for point in points
        ]
    return chart.document()


def filled(table: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with the figures of a run. Rows with a missing figure are unchanged and listed."""
    rows, kept = [], []
    for row, sources in zip(table["rows"], table.get("from", [])):
        cells = []
        for source in sources:
            found = {text: looked_up(text, run["summary"]) for text in REFERENCE.findall(source)}
            if None in found.values():
                cells = list(row)
                kept.append(row[0])
                break
            cells.append(REFERENCE.sub(lambda match, found=found: str(found[match[1]]), source))  # type: ignore[misc]
        rows.append(cells)
    if not rows:
        return dict(table)
    if len(kept) == len(rows):
        return dict(table)
    out = {**table, "rows": rows, "build": run["build"]}
    return {**out, "older rows": kept} if kept else {k: v for k, v in out.items() if k != "older rows"}


def missing(name: str) -> list[str]:
    """Return a message for each corpus of a preset that cannot be read."""
    out = []
    for corpus in PRESETS[name].corpora:
        try:
            load_parts(corpus)
        except (CorpusError, OSError) as error:
            out.append(f"{name}: skipped, corpus {corpus} is missing ({error})")
    return out


def run(name: str, workers: int) -> dict[str, Any]:
    """Train the cells of a preset, store its results in docs/study/runs, and return them."""
    preset, built, begin = PRESETS[name], commit(), time.perf_counter()
    data = resolve_corpora(preset.corpora, preset.limits, preset.held)
    cells = preset.cells()
    table = Comparison(against=preset.against, published=preset.published)
    done: list[int] = []

    def watch(event: Event) -> None:
        if event.kind in ("done", "failed"):
            done.append(event.index)
            print(f"{name} {len(done)}/{len(cells)}: {event.cell.describe()}", file=sys.stderr, flush=True)

    cache = Cache(default_folder())
    collect(table, train(cells, data, cache=cache, workers=workers, n_jobs=1), cells, watch)
    summary = table.summary()
    for entry, indices in zip(summary, table.groups().values()):
        details = [detail for i in indices if (detail := table.details[i]) is not None]
        if preset.track:
            entry["curve"] = mean_curve([detail["history"] for detail in details])
        if preset.risks:
            lengths = [len(sentence) for sentence in data[entry["corpus"]].test]
            weighted = [weighted_rank(detail["ranks"], lengths, detail["k"]) for detail in details]
            entry["weighted_rank"] = statistics.fmean(weighted)
    about = machine()
    kept = {
        "preset": name,
        "build": code_version(),
        "commit": built,
        "machine": {part: about[part] for part in ("date", "cpu", "cores", "python", "system", "versions")},
        "workers": workers,
        "minutes": round((time.perf_counter() - begin) / 60, 2),
        "caption": preset.caption(),
        "summary": summary,
    }
    path = FOLDER / "runs" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return kept


def mean_curve(histories: Sequence[Sequence[Mapping[str, Any]]]) -> list[float]:
    """Return the dev score after each iteration as a mean over seeds.

    >>> mean_curve([[{"dev_score": 0.5}, {"dev_score": 1.0}], [{"dev_score": 0.25}, {"dev_score": 0.5}]])
    [0.375, 0.75]
    """
    scores = [[entry["dev_score"] for entry in history] for history in histories]
    return [round(statistics.fmean(values), 6) for values in zip(*scores)]


def weighted_rank(ranks: Sequence[int], lengths: Sequence[int], k: int, pi: float = PI) -> float:
    """Return the mean rank of gold paths with weights pi^T for sentences of T tokens, ranks beyond the list as k.

    Equation 6 of Altun and Hofmann (2003), divided by the sum of the weights.

    >>> weighted_rank([0, BEYOND], [1, 2], 100, pi=0.5)
    33.33...
    """
    weights = [pi**length for length in lengths]
    return sum(w * (k if r == BEYOND else r) for w, r in zip(weights, ranks, strict=True)) / sum(weights)


def fill() -> None:
    """Fill the tables with the results in `docs/study/runs` and draw their pictures."""
    for name, table in tables().items():
        path = FOLDER / "runs" / f"{table['preset']}.json"
        if not path.exists():
            continue
        found = json.loads(path.read_text("utf-8"))
        content = filled(table, found)
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (FOLDER / f"{name}.json").write_text(text + "\n", "utf-8")
        if "picture" in content and content["build"] != NOT_RUN:
            (FOLDER / f"{name}.svg").write_text(picture(content, found), "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, fill, write or check."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.study", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="PRESET",
        choices=sorted((*PRESETS, WORD_CLASSES)),
        help="preset to run, may be repeated",
    )
    parser.add_argument(
        "--tables", action="store_true", help="write the pages from the stored runs, without training"
    )
    parser.add_argument(
        "--check", action="store_true", help="check that the pages match the JSON, write nothing"
    )
    parser.add_argument(
        "--workers", type=int, default=cores(), metavar="N", help="cells to train at the same time"
    )
    given = parser.parse_args(arguments)
    if given.check:
        return report(differences())
    skipped: list[str] = []
    if not given.tables:
        for name in given.only or [*(name for name in PRESETS if PRESETS[name].corpora), WORD_CLASSES]:
            if name == WORD_CLASSES:
                class_study.main(["--workers", str(given.workers)])
                class_study.main(["--page"])
                continue
            lacking = missing(name)
            skipped += lacking
            if lacking:
                report(lacking)
                continue
            run(name, given.workers)
    fill()
    for path, text in files().items():
        path.write_text(text, "utf-8")
    return 0


def report(lines: Iterable[str]) -> int:
    """Print lines to standard error and return 1 if there are any."""
    lines = list(lines)
    for line in lines:
        print(line, file=sys.stderr)
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
