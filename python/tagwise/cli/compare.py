"""``tagwise compare``: many learners, one table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import rich_click as click
from click.exceptions import Exit
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from tagwise.cli.app import EXIT_INTERRUPTED, debug_option, say
from tagwise.cli.files import read_corpus
from tagwise.cli.interrupt import Interrupt
from tagwise.compare import (
    PRESETS,
    Cell,
    Comparison,
    Preset,
    check_learner,
    iter_compare,
    plan,
    resolve_corpora,
)
from tagwise.corpus import Corpus


def list_presets(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print the presets and end."""
    if not wanted:
        return
    for preset in PRESETS.values():
        click.echo(f"{preset.name:<12} {preset.help}")
    context.exit()


class Watch:
    """The table as it grows, with a line about the running cell; on a terminal only."""

    def __init__(self, console: Console, comparison: Comparison, total: int) -> None:
        self.comparison = comparison
        self.total = total
        self.status = ""
        self.live = Live(console=console, get_renderable=self.render, refresh_per_second=4, transient=True)
        self.shown = console.is_terminal

    def render(self) -> Group:
        return Group(self.comparison, Text(self.status))

    def callbacks(self, cell: Cell) -> Sequence[Callable[[Any], Any]]:
        """What tells the status line how far a cell is."""
        head = f"{len(self.comparison) + 1}/{self.total}  {cell.corpus} {cell.learner} {cell.features}"
        self.status = head + ": reading features"

        def show(step: Any) -> None:
            self.status = (
                f"{head}: iteration {step.iteration}/{step.max_iter}, objective {step.objective:,.1f}"
            )

        return [show]


def files_as_corpus(
    train: str | None, test: str | None, columns: str | None
) -> Mapping[str, tuple[Corpus, Corpus]] | None:
    """Training and test file as one corpus named after the first."""
    if train is None and test is None:
        return None
    if train is None or test is None:
        raise click.UsageError(
            "--train and --test go together: the table trains on one and scores on the other"
        )
    data = (
        read_corpus(train, None, columns, None, part="train"),
        read_corpus(test, None, columns, None, part="test"),
    )
    return {Path(train).name: data}


def save(comparison: Comparison, path: str) -> None:
    """Write the table in the format of its name."""
    writers = {".csv": comparison.to_csv, ".json": comparison.to_json, ".md": comparison.to_markdown}
    Path(path).write_text(writers[Path(path).suffix](), encoding="utf-8")
    say(f"wrote {path}")


def check_outputs(
    _context: click.Context, _parameter: click.Parameter, paths: tuple[str, ...]
) -> tuple[str, ...]:
    """Refuse an unknown ending before anything is trained."""
    for path in paths:
        if Path(path).suffix not in (".csv", ".json", ".md"):
            raise click.BadParameter(f"{path}: expected a name that ends in .csv, .json or .md")
    return paths


@click.command()
@click.argument("preset", metavar="[PRESET]", type=click.Choice(list(PRESETS)), default="bundled")
@click.option(
    "--list",
    "listed",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=list_presets,
    help="List the presets and end.",
)
@click.option(
    "--learner", "learners", metavar="NAME", multiple=True, help="Learner to compare; may be repeated."
)
@click.option("--features", "-f", metavar="SET", multiple=True, help="Feature set; may be repeated.")
@click.option(
    "--corpus", "names", metavar="NAME", multiple=True, help="Corpus known by name; may be repeated."
)
@click.option("--train", metavar="FILE", help="Train on a file of your own ...")
@click.option("--test", metavar="FILE", help="... and score on this one.")
@click.option("--columns", metavar="NAMES", help="Names of their columns, by commas.")
@click.option(
    "--size",
    "sizes",
    type=click.IntRange(min=1),
    multiple=True,
    help="Training sentences; repeat for a learning curve.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Runs of each cell; the table shows mean and deviation.",
)
@click.option("--max-iter", type=click.IntRange(min=1), help="Iterations at most.")
@click.option("--n-jobs", type=click.IntRange(min=1), help="Threads; all cores if not given.")
@click.option(
    "-o",
    "--output",
    "outputs",
    metavar="FILE",
    multiple=True,
    callback=check_outputs,
    help="Also write the table: .csv, .json or .md; may be repeated.",
)
@debug_option
def compare(
    preset: str,
    learners: tuple[str, ...],
    features: tuple[str, ...],
    names: tuple[str, ...],
    train: str | None,
    test: str | None,
    columns: str | None,
    sizes: tuple[int, ...],
    seeds: int,
    max_iter: int | None,
    n_jobs: int | None,
    outputs: tuple[str, ...],
) -> None:
    """Train learners with feature sets on corpora and show one table.

    Without an argument: the bundled corpora, in under a minute. Options replace what the preset says.

    \b
    Examples:
      tagwise compare
      tagwise compare --corpus ewt-pos -f S1 -f S3 --size 300 --size 1000
      tagwise compare --train train.txt --test test.txt -f S3 -o table.csv
    """
    chosen: Preset = PRESETS[preset]
    own = files_as_corpus(train, test, columns)
    if names or own:
        chosen = replace(chosen, corpora=names, limits={})
    if sizes:
        chosen = replace(chosen, limits={})
    chosen = replace(chosen, learners=learners or chosen.learners, features=features or chosen.features)
    if max_iter is not None:
        chosen = replace(chosen, params={**chosen.params, "max_iter": max_iter})
    for name in chosen.learners:
        check_learner(name)
    data = {**resolve_corpora(chosen.corpora, chosen.limits), **(own or {})}
    cells = plan(chosen.learners, list(data), chosen.features, sizes or None, seeds)
    params = {**chosen.params, "n_jobs": n_jobs}

    comparison = Comparison(title=f"tagwise compare {preset}", caption=chosen.caption())
    console = Console()
    watch = Watch(console, comparison, len(cells))
    begin = time.perf_counter()
    if watch.shown:
        watch.live.start()
    interrupt = Interrupt()
    try:
        with interrupt.armed():
            for row in iter_compare(cells, data, params, lambda cell: [*watch.callbacks(cell), interrupt]):
                if interrupt.asked:  # this cell was cut short
                    break
                comparison.rows.append(row)
    finally:
        if watch.shown:
            watch.live.stop()
    # Piped tables are as wide as they need to be.
    (console if watch.shown else Console(width=200)).print(comparison)
    for path in outputs:
        save(comparison, path)
    if interrupt.asked:
        say(f"interrupted after {len(comparison)} of {len(cells)} rows")
        raise Exit(EXIT_INTERRUPTED)
    say(f"{len(cells)} runs in {time.perf_counter() - begin:.1f} s")


__all__ = ["compare"]
