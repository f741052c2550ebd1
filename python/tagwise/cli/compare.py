"""``tagwise compare``: train several learners and compare them in one table."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from click.exceptions import Exit
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from tagwise.apps.compare import (
    PRESETS,
    Cache,
    Comparison,
    Event,
    Preset,
    collect,
    default_folder,
    loss_curves,
    parse,
    resolve_corpora,
    run,
)
from tagwise.apps.compare.blocks import comparison_blocks
from tagwise.apps.compare.plan import HELD_OUT, Cell, Data, check_against
from tagwise.base.exceptions import ParameterError, TrainingError
from tagwise.base.parameters import cores, meant
from tagwise.base.terminal import as_text, pair_table, plain, table
from tagwise.base.writing import write_text
from tagwise.cli.app import EXIT_INTERRUPTED, debug_option, say
from tagwise.cli.cluster import cluster_options, connect
from tagwise.cli.encode import parse_memory
from tagwise.cli.files import (
    check_output,
    encoding_option,
    label_options,
    read_corpus,
)
from tagwise.cli.help import DATA, HELP, MACHINE, OUTPUT, RESUMING, Command, command_line, in_options
from tagwise.cli.options import COUNT, option
from tagwise.cli.settings import check_grid, check_settings, tuned, unknown_parameter
from tagwise.corpus.sentence import Corpus
from tagwise.features.derived_columns import parse_features

LEARNERS = "Learners"  # group of options
WIDE = 10_000  # columns of text, wider than any table
WRITERS = (".csv", ".json", ".md", ".tex")


def list_presets(context: click.Context, _: click.Parameter, requested: bool) -> None:
    """Print the presets and exit."""
    if not requested:
        return
    Console().print(pair_table([(preset.name, preset.help) for preset in PRESETS.values()]))
    context.exit()


class Watch:
    """A live view of the growing table with a line per running cell, shown on a terminal only."""

    def __init__(self, console: Console, comparison: Comparison, total: int) -> None:
        self.comparison = comparison
        self.total = total
        self.done = self.cached = 0
        self.running: dict[int, str] = {}
        self.begin = time.monotonic()
        self.live = Live(console=console, get_renderable=self.render, refresh_per_second=4, transient=True)
        self.shown = console.is_terminal

    def render(self) -> Group:
        """Return the table followed by the running cells."""
        head = f"{self.done}/{self.total} cells, {self.cached} from the cache, {time.monotonic() - self.begin:.0f} s"
        return Group(
            self.comparison, Text(head, style="bold"), *(plain(line) for line in self.running.values())
        )

    def __call__(self, event: Event) -> None:
        """Update the view with an event."""
        if event.kind in ("done", "failed"):
            self.running.pop(event.index, None)
        if event.kind in ("start", "progress"):
            self.running[event.index] = f"  {event.cell.describe()}: {event.text or 'starting'}"
        if event.kind == "done":
            self.done += 1
            self.cached += event.cached
        if event.kind == "failed":
            say(in_options(f"{event.cell.describe()}: {event.text}", compare))


def files_as_corpus(
    train: str | None, test: str | None, dev: str | None, columns: str | None
) -> Mapping[str, tuple[Corpus, ...]]:
    """Return the given files as one corpus, named after the training file."""
    if train is None and test is None and dev is None:
        return {}
    if train is None or test is None:
        raise click.UsageError("--train and --test go together. Give both, or --corpus for a bundled corpus")
    parts = (("train", train), ("dev", dev), ("test", test))
    data = tuple(
        read_corpus(path, None, columns, None, part=part) for part, path in parts if path is not None
    )
    return {Path(train).name: data}


def crossed(path: str, others: Sequence[object], columns: str | None, folds: int | None) -> dict[str, Data]:
    """Return a file as a corpus for cross-validation."""
    if any(others):
        raise click.UsageError(
            f"{path} is cross-validated, so it cannot be combined with --corpus, --train, --test, --dev or --seeds. "
            "Omit them"
        )
    corpus = read_corpus(path, None, columns, None, part="train")
    return resolve_corpora({Path(path).name: corpus}, folds=HELD_OUT if folds is None else folds)


def against_of(name: str | None, chosen: Preset, cells: Sequence[Cell]) -> str | None:
    """Return the learner to test the others against: `name`, or that of the preset if it is part of the table."""
    if name is None:
        return chosen.against if chosen.against in {cell.learner.name for cell in cells} else None
    try:
        return check_against(name, cells)
    except ParameterError as error:
        raise click.BadParameter(str(error), param_hint="--against") from error


def show(comparison: Comparison, console: Console, wide: bool) -> None:
    """Print the table, at the width of the terminal (of a pipe: COLUMNS or 80) unless `wide`."""
    note = Text(comparison.note, style="dim") if comparison.note else None
    if console.is_terminal and not wide:
        console.print(comparison)
    elif wide:
        click.echo(
            as_text(
                comparison_blocks(*comparison.sheet(), title=comparison.title, caption=comparison.caption),
                WIDE,
            )
        )
    else:
        click.echo(as_text(comparison, console.width))
    if note is not None:
        console.print(note)


def save(comparison: Comparison, path: str) -> None:
    """Write the table in the format given by the file name."""
    writers = {
        ".csv": comparison.to_csv,
        ".json": comparison.to_json,
        ".md": comparison.to_markdown,
        ".tex": comparison.to_latex,
    }
    write_text(path, writers[Path(path).suffix]())
    say(f"wrote {path}")


def check_outputs(
    _context: click.Context, _parameter: click.Parameter, paths: tuple[str, ...]
) -> tuple[str, ...]:
    """Reject an unknown file extension before anything is trained."""
    for path in paths:
        if Path(path).suffix not in WRITERS:
            raise click.BadParameter(f"{path}: expected a file name that ends in {', '.join(WRITERS)}")
    return paths


def show_losses(outputs: tuple[str, ...], report: str | None) -> None:
    """Print and write the preset ``losses``, which tabulates losses by margin without training."""
    curves = loss_curves()
    head = ["margin", "0-1", "exp", "log"]
    body = [[f"{c['margin']:+.2f}", *(f"{c[k]:.4f}" for k in ("zero_one", "exp", "log"))] for c in curves]
    Console().print(table(head, body, title="tagwise compare losses", caption=PRESETS["losses"].note, left=0))
    for path in outputs:
        lines = {
            ".csv": [",".join(row) for row in ([*head], *body)],
            ".md": ["| " + " | ".join(row) + " |" for row in (head, ["---"] * 4, *body)],
            ".tex": [" & ".join(row) + r" \\" for row in (head, *body)],
        }.get(Path(path).suffix)
        import json

        text = "\n".join(lines) + "\n" if lines else json.dumps(curves, indent=2)
        write_text(path, text)
        say(f"wrote {path}")
    if report:
        from tagwise.apps.compare.report.html import write

        write(Comparison(title="tagwise compare losses", note=PRESETS["losses"].note), report, command_line())
        say(f"wrote {report}")


if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # not generic before click 8.2


class PresetOrFile(_Choice):
    """Name of a preset, or of a file to cross-validate on. The error for another name suggests the closest preset."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, or fail."""
        if value not in self.choices and not os.path.isfile(value):
            hint = meant(value, self.choices)
            self.fail(f"no preset or file is named {value!r}{hint}. See --list.", param, ctx)
        return str(value)


@click.command(cls=Command)
@click.argument("preset", metavar="[PRESET|FILE]", type=PresetOrFile(list(PRESETS)), default="bundled")
@option(
    "--corpus NAME", "Bundled corpus to train and score on. Repeatable.", DATA, name="names", multiple=True
)
@option("--train FILE", "Training corpus of your own. Requires --test.", DATA)
@option("--test FILE", "Corpus to score on. Requires --train.", DATA)
@option(
    "--dev FILE",
    "Development corpus. It is scored after every iteration, and the best iteration is kept.",
    DATA,
    name="dev_file",
)
@option("--columns NAMES", "Names of the columns of your files, such as word,pos,label.", DATA)
@encoding_option
@label_options
@option(
    "--size N",
    "Number of training sentences. Repeat for a learning curve.",
    DATA,
    name="sizes",
    type=COUNT,
    multiple=True,
)
@option(
    "--learner NAME",
    "Learner to compare, with parameters in brackets if needed: 'mira(k=10)'. Repeatable.",
    LEARNERS,
    name="learners",
    multiple=True,
)
@option(
    "--loss NAME",
    "Loss function of the learners that have one. Repeatable.",
    LEARNERS,
    name="losses",
    multiple=True,
)
@option(
    "-f --features SET",
    "Feature set, as for tagwise train, or default+classes for word classes of the corpus. Repeatable.",
    LEARNERS,
    multiple=True,
)
@option(
    "--set NAME=VALUE",
    "Parameter for all learners that have it. Repeatable.",
    LEARNERS,
    name="settings",
    multiple=True,
    callback=check_settings,
)
@option(
    "--tune NAME=LIST",
    "Choose the value of a parameter from a list such as l2=0.1,1, for all learners that have it. Repeat for a "
    "grid. Values are scored on the dev parts, or by cross-validation if a corpus has none.",
    LEARNERS,
    name="grid",
    multiple=True,
    callback=check_grid,
)
@option(
    "--folds N",
    f"Number of folds for the cross-validation of FILE. Without FILE and with --tune, score on N of {HELD_OUT} "
    "folds of the training sentences instead of the dev parts.",
    LEARNERS,
    type=COUNT,
)
@option("--max-iter N", "Maximum number of iterations.", LEARNERS, type=COUNT)
@option(
    "--seeds N",
    "Number of runs with different seeds. The table shows mean and standard deviation.",
    LEARNERS,
    type=COUNT,
)
@option("--against NAME", "Test the other learners for differences from this one.", OUTPUT)
@option(
    "--risks K",
    "Rank gold paths among the K best ones, and report rank risk and margins.",
    OUTPUT,
    type=click.IntRange(min=2),
)
@option(
    "-o --output FILE",
    "Also write the table to a file: .csv, .json, .md or .tex. Repeatable.",
    OUTPUT,
    name="outputs",
    multiple=True,
    callback=check_outputs,
)
@option(
    "--report FILE",
    "Also write an HTML page: the answer, tables, curves, errors, and models compared by sentence.",
    OUTPUT,
)
@option("--wide", "Show all columns, even if the terminal is narrower.", OUTPUT)
@option(
    "--cache DIR",
    "Folder that keeps results between runs.",
    RESUMING,
    name="folder",
    show_default="the user's cache",
)
@option("--fresh", "Train everything again, and do not use the cache.", RESUMING)
@option(
    "--workers N",
    "Number of rows to train at the same time, each in its own process. 0 trains in this process.",
    MACHINE,
    type=click.IntRange(min=0),
    show_default="all cores",
)
@option(
    "--n-jobs N",
    "Number of threads per process.",
    MACHINE,
    type=COUNT,
    show_default="1 if --workers is above 1",
)
@option("--memory SIZE", "Memory for all processes together, such as 8G.", MACHINE, callback=parse_memory)
@cluster_options("Train on this machine (local) or on a Ray cluster (ray).", MACHINE, "local", workers=False)
@option(
    "--list",
    "List the presets and exit.",
    HELP,
    name="listed",
    callback=list_presets,
    is_eager=True,
    expose_value=False,
)
@debug_option
def compare(
    preset: str,
    learners: tuple[str, ...],
    losses: tuple[str, ...],
    features: tuple[str, ...],
    names: tuple[str, ...],
    train: str | None,
    test: str | None,
    dev_file: str | None,
    columns: str | None,
    sizes: tuple[int, ...],
    seeds: int | None,
    settings: dict[str, Any],
    grid: dict[str, list[Any]],
    folds: int | None,
    max_iter: int | None,
    risks: int | None,
    against: str | None,
    workers: int | None,
    n_jobs: int | None,
    memory: int | None,
    backend: str,
    address: str | None,
    folder: str | None,
    fresh: bool,
    outputs: tuple[str, ...],
    wide: bool,
    report: str | None,
) -> None:
    """Train several learners on corpora and compare their scores.

    Without arguments, every learner is trained on the bundled corpora, in under two minutes. PRESET names another
    experiment: see --list. FILE is a labelled corpus for cross-validation. Options replace the settings of the preset.
    Results are cached, so an interrupted comparison continues where it stopped.

    \b
    Examples:
      tagwise compare --report table.html
      tagwise compare --corpus ewt-pos -f S1 -f S3 \\
          --size 300 --size 1000
      tagwise compare --train train.txt --test test.txt \\
          -f S3 -o table.csv
      tagwise compare data.csv --folds 5 --learner crf
      tagwise compare --corpus wnut17-ner --learner crf \\
          --learner memm --tune l2=0.01,0.1,1
      tagwise compare spanish-ner --workers 2 --against crf
      tagwise compare spanish-ner --backend ray --address auto
    """
    file = None if preset in PRESETS else preset
    chosen: Preset = PRESETS["bundled" if file is not None else preset]
    for path in outputs:
        check_output(path)
    if report:
        check_output(report, "--report")
    if preset == "losses":
        show_losses(outputs, report)
        return
    own = files_as_corpus(train, test, dev_file, columns) if file is None else {}
    if names or own or file is not None:
        chosen = replace(chosen, corpora=names, limits={}, held=None)
    if dev_file is not None:
        chosen = replace(chosen, dev=True, track=True)
    if sizes:
        chosen = replace(chosen, limits={}, sizes=sizes)
    chosen = replace(chosen, learners=learners or chosen.learners)
    if features:
        chosen = replace(chosen, features=tuple(map(parse_features, features)), pairs={})
    if seeds is not None:
        chosen = replace(chosen, seeds=seeds)
    if risks is not None:
        chosen = replace(chosen, risks=risks)
    if max_iter is not None:
        settings = {**settings, "max_iter": max_iter}
    chosen = chosen.with_params(settings)
    # Before any corpus is read, so that unknown names fail early.
    compared = [parse(name) for name in chosen.chosen()]
    for name in settings:
        if not any(learner.accepted({name: None}) for learner in compared):
            raise click.BadParameter(unknown_parameter(name, compared), param_hint="--set")
    if file is not None:
        data = crossed(file, (names, train, test, dev_file, seeds), columns, folds)
        chosen = replace(chosen, seeds=HELD_OUT if folds is None else folds)
    else:
        data = {**resolve_corpora(chosen.corpora, chosen.limits, chosen.held), **resolve_corpora(own)}
    if grid:
        chosen = tuned(chosen, compared, grid, data)
    if folds is not None and file is None:
        if not chosen.tune:
            raise click.UsageError(
                "--folds requires a FILE to cross-validate, or --tune. Add FILE, or values such as --tune l2=0.1,1"
            )
        if folds > HELD_OUT:
            raise click.BadParameter(
                f"{folds} is more than {HELD_OUT}, the number of folds for --tune", param_hint="--folds"
            )
        chosen = replace(chosen, folds=folds)
    cells = chosen.cells(list(data), losses)
    base = against_of(against, chosen, cells)

    comparison = Comparison(
        title=f"tagwise compare {', '.join(data) if names or own or file else preset}",
        caption=chosen.caption(),
        tests={name: parts.test for name, parts in data.items() if not parts.folds},
        against=base,
        published=chosen.published,
        note=chosen.note,
        hidden=chosen.hidden,
    )
    console = Console()
    watch = Watch(console, comparison, len(cells))
    connect(backend, address)
    processes = cores() if workers is None and backend == "local" else workers or 0
    threads = n_jobs or (1 if processes > 1 else None)
    cache = Cache(None if fresh else folder or default_folder())
    begin = time.perf_counter()
    at_once = min(processes, len(cells))
    events = run(cells, data, cache=cache, memory=memory, backend=backend, workers=at_once, n_jobs=threads)
    if watch.shown:
        watch.live.start()
    interrupted, problem = False, None
    try:
        collect(comparison, events, cells, watch)
    except KeyboardInterrupt:
        interrupted = True
    except TrainingError as error:
        problem = error  # raised after the other results are shown
    finally:
        events.close()
        if watch.shown:
            watch.live.stop()
    show(comparison, console, wide)
    for path in outputs:
        save(comparison, path)
    if report:
        from tagwise.apps.compare.report.html import write

        write(comparison, report, command_line())
        say(f"wrote {report}")
    if interrupted:
        remedy = "No results were cached because of --fresh" if fresh else "To continue, repeat the command"
        say(f"interrupted after {len(comparison)} of {len(cells)} rows. {remedy}")
        raise Exit(EXIT_INTERRUPTED)
    if problem is not None:
        raise problem
    seconds = time.perf_counter() - begin
    say(f"finished {len(cells)} runs in {seconds:.1f} s, {watch.cached} of them from the cache")
