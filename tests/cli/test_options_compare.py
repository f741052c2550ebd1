"""Every option of ``compare`` changes the plan, the table or its output as the help says.

`tests/unit/test_compare_fields.py` tests the effects of the plan, so an option only has to reach its field here.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import tagwise as tw
from tagwise.apps.compare import PRESETS
from tagwise.apps.compare.cache import opened, sealed
from tagwise.base.exceptions import TrainingError

from .options import DEV, TEST, TRAIN, Bench, cases, corpus, debug_row, invoke, row

HMM = ("--learner", "hmm", "-f", "S1", "--workers", 0)
CRF = ("--learner", "crf", "-f", "S1")

debug_row("compare", "--train", "absent.txt", "--test", "absent.txt")


def planned(bench: Bench, *args: object) -> SimpleNamespace:
    """Return the cells, data and limits that a command would train with. Capitals such as ``TRAIN`` are files."""
    found: list[SimpleNamespace] = []

    def run(cells: Any, data: Any, **options: Any) -> Any:
        found.append(SimpleNamespace(cells=cells, data=data, **options))
        raise TrainingError("enough")

    known = {"ewt-pos": (corpus(9, 5), DEV, DEV), "wnut17-ner": (TRAIN, DEV, TEST)}
    bench.patch.setattr(
        sys.modules["tagwise.apps.compare.plan"],
        "load_corpus",
        lambda name: known.get(name, known["wnut17-ner"]),
    )
    bench.patch.setattr(importlib.import_module("tagwise.cli.compare"), "run", run)
    bench.patch.setattr(importlib.import_module("tagwise.cli.compare"), "cores", lambda: 3)
    files = {"TRAIN": bench.train, "DEV": bench.dev, "TEST": bench.test}
    result = invoke("compare", *(files.get(str(arg), arg) for arg in args))
    assert "enough" in result.stderr, result.output
    return found[0]


def of_cells(read: Callable[[Any], Any]) -> Callable[[SimpleNamespace], Any]:
    """Return a reader of one property of each cell."""
    return lambda plan: [read(cell) for cell in plan.cells]


def setting(*names: str) -> Callable[[SimpleNamespace], Any]:
    """Return a reader of estimator parameters of each cell."""
    return of_cells(lambda cell: tuple(cell.settings().get(name) for name in names))


def sentences(part: str) -> Callable[[SimpleNamespace], Any]:
    """Return a reader of the labels in one part of each corpus."""
    return lambda plan: {
        name: found.labels for name, data in plan.data.items() if (found := getattr(data, part))
    }


FILES = ("--train", "TRAIN", "--test", "TEST")
MANY = (*FILES, *CRF, "--seeds", 9)
#: Spellings, the call without the option, the option, a reader of the plan, the expected value.
PLANS: list[tuple[tuple[str, ...], tuple[object, ...], tuple[object, ...], Any, Any]] = [
    (
        ("preset",), (), ("spanish-ner",),
        lambda plan: (list(plan.data), list(dict.fromkeys(cell.learner.name for cell in plan.cells))),
        (list(PRESETS["spanish-ner"].corpora), [getattr(x, "name", x) for x in PRESETS["spanish-ner"].chosen()]),
    ),
    (
        ("--learner",), FILES,
        ("--learner", "hmm", "--learner", "crf(max_iter=1)", "-f", "S1"),
        of_cells(lambda cell: (cell.learner.name, cell.settings().get("max_iter"))),
        [("hmm", None), ("crf(max_iter=1)", 1)],
    ),
    (("--loss",), (*FILES, *CRF), ("--loss", "exp", "--loss", "log"), setting("loss"), [("exp",), ("log",)]),
    (
        ("--features", "-f"), (*FILES, "--learner", "crf"), ("-f", "S2", "--features", "word[0]"),
        of_cells(lambda cell: cell.title),
        ["S2", "word[0]"],
    ),
    (
        ("--corpus",), (*FILES, *CRF), ("--corpus", "ewt-pos"), sentences("train"),
        {"ewt-pos": corpus(9, 5).labels, "train.txt": TRAIN.labels},
    ),
    (("--train",), (*FILES, *CRF), ("--train", "DEV"), sentences("train"), {"dev.txt": DEV.labels}),
    (("--test",), (*FILES, *CRF), ("--test", "DEV"), sentences("test"), {"train.txt": DEV.labels}),
    (
        ("--dev",), (*FILES, *CRF), ("--dev", "DEV"),
        lambda plan: (sentences("dev")(plan), [(cell.dev, cell.track) for cell in plan.cells]),
        ({"train.txt": DEV.labels}, [(True, True)]),
    ),
    (
        ("--columns",), (*FILES, *CRF), ("--columns", "word,label,_"), sentences("test"),
        {"train.txt": TEST.column("pos")},
    ),
    (("--size",), (*FILES, *CRF), ("--size", 5, "--size", 9), of_cells(lambda cell: cell.size), [5, 9]),
    (("--seeds",), (*FILES, *CRF), ("--seeds", 3), of_cells(lambda cell: cell.seed), [0, 1, 2]),
    (
        ("--set",), (*FILES, *CRF),
        ("--set", "max_iter=2", "--set", "l2=4.5", "--set", "all_pairs=true"),
        setting("max_iter", "l2", "all_pairs"),
        [(2, 4.5, True)],
    ),
    (
        ("--tune",), (*FILES, *CRF, "--learner", "hmm"),
        ("--tune", "l2=30,0.01", "--tune", "min_count=1,4"),
        of_cells(lambda cell: (dict(cell.tune), cell.folds)),
        [({"l2": [30, 0.01], "min_count": [1, 4]}, 5), ({}, 5)],
    ),
    (
        ("--folds",),
        (*FILES, *CRF, "--dev", "DEV", "--tune", "l2=1,2"),
        ("--folds", 2),
        of_cells(lambda cell: cell.folds),
        [2],
    ),
    (("--max-iter",), (*FILES, *CRF, "--set", "max_iter=5"), ("--max-iter", 3), setting("max_iter"), [(3,)]),
    (("--risks",), (*FILES, *CRF), ("--risks", 7), of_cells(lambda cell: cell.risks), [7]),
    (("--workers",), MANY, ("--workers", 2), lambda plan: (plan.workers, plan.n_jobs), (2, 1)),
    (("--n-jobs",), MANY, ("--n-jobs", 5), lambda plan: (plan.workers, plan.n_jobs), (3, 5)),
    (("--memory",), MANY, ("--memory", "1.5k"), lambda plan: plan.memory, 1536),
]  # fmt: skip


def plan_row(plan: Any) -> None:
    """Register an option that changes the plan."""
    spellings, base, option, read, expected = plan

    @row("compare", *spellings)
    def check(bench: Bench) -> None:
        assert read(planned(bench, *base, *option)) == expected != read(planned(bench, *base))


for _plan in PLANS:
    plan_row(_plan)


def test_threads_and_processes_are_bounded(bench: Bench) -> None:
    """A single process uses all threads. Processes never outnumber cells. --memory accepts units."""
    for more, found in (((), (3, 1)), (("--workers", 0), (0, None)), (("--workers", 1), (1, None))):
        plan = planned(bench, *MANY, *more)
        assert (plan.workers, plan.n_jobs) == found
    assert planned(bench, *FILES, *CRF, "--workers", 8).workers == 1
    for text, size in (("8G", 8 << 30), ("2 MiB", 2 << 20), ("1T", 1 << 40)):
        assert planned(bench, *MANY, "--memory", text).memory == size
    folds = [cell.folds for cell in planned(bench, *FILES, *CRF, "--dev", "DEV", "--tune", "l2=1,2").cells]
    assert folds == [0]  # tuned on the dev part


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nonsense",), "nonsense"), (("--learner", "oracle"), "'oracle'"), (("--train", "TRAIN"), "--test"),
        (("--test", "TEST"), "--train"), (("--dev", "DEV"), "--train"),
        ((*FILES, "--learner", "crf", "-f", "kind[0]", "--workers", 0), "kind"),
        (("--size", 0), "--size"), ((*CRF, "--set", "wheels=4"), "'wheels'"),
        ((*CRF, "--set", "wheels"), "name=value"), ((*CRF, "--tune", "l2"), "name=value,value"),
        ((*CRF, "--tune", "l2="), "name=value,value"), ((*CRF, "--tune", "wheels=1"), "'wheels'"),
        ((*FILES, *CRF, "--tune", "l2=-1,1"), "l2=-1"), (("--folds", 2, "--learner", "crf"), "--tune"),
        (("--folds", 6, "--tune", "l2=1"), "--folds"), (("--risks", 1), "--risks"), (("--memory", "8"), "'8'"),
        (("--memory", "8X"), "'8X'"),
        ((*FILES, "--address", "auto"), "requires --backend ray"),
        (("-o", "t.pdf"), "t.pdf"), (("-o", "absent/t.csv"), "absent"), (("--report", "absent/x.html"), "absent"),
    ],
)  # fmt: skip
def test_wrong_usage_exits_with_2_and_names_the_option(
    bench: Bench, args: tuple[object, ...], message: str
) -> None:
    """Wrong usage exits with code 2, prints nothing to stdout and names the option or the value."""
    files = {"TRAIN": bench.train, "DEV": bench.dev, "TEST": bench.test}
    found = invoke("compare", *(files.get(str(arg), arg) for arg in args))
    assert (found.exit_code, found.stdout) == (2, "")
    assert message in found.stderr


# --- what is done with the table ----------------------------------------------------------------------------


def shown(bench: Bench, *args: object, base: tuple[object, ...] = HMM) -> dict[str, Any]:
    """Return the table of a call on the bench's files as JSON, with stderr as ``said`` and stdout as ``text``."""
    out = bench.path("table.json")
    result = bench.ok("compare", "--train", bench.train, "--test", bench.test, *base, *args, "-o", out)
    return {**json.loads(out.read_text()), "message": result.stderr, "text": result.stdout}


def column(table: dict[str, Any], name: str) -> list[Any]:
    """Return one measure of all rows."""
    return [entry[name] for entry in table["rows"]]


@row("compare", "--backend", "--address")
def backend(bench: Bench) -> None:
    """--backend ray uses --workers workers of a cluster and gives an identical table."""
    plain = column(shown(bench), "accuracy")
    assert plain == [tw.HMM(features="S1").fit(TRAIN).evaluate(TEST).accuracy]
    requested = bench.cluster("tagwise.apps.compare.cluster")
    by_ray = ("--backend", "ray", "--address", "auto", "--workers", 1, "--fresh")
    assert column(shown(bench, *by_ray, base=HMM[:4]), "accuracy") == plain
    assert requested == ["auto", 1]


@row("compare", "--list")
def listed(bench: Bench) -> None:
    """--list prints the presets with their help, wrapped to the width of the terminal, and trains nothing."""
    bench.patch.setenv("COLUMNS", "80")
    printed = bench.ok("compare", "--list", "--learner", "oracle").stdout
    assert printed.split() == [word for name in PRESETS for word in (name, *PRESETS[name].help.split())]
    assert max(map(len, printed.splitlines())) <= 80


@row("compare", "--against")
def against(bench: Bench) -> None:
    """--against names the learner that others are tested against. Default: the preset's, if it is compared."""
    base = ("--learner", "hmm", "--learner", "perceptron", "-f", "S1", "--workers", 0, "--set", "max_iter=2")
    for more, without in (
        ((), [True, True]),
        (("--against", "hmm"), [True, False]),
        (("--against", "perceptron"), [False, True]),
        (("--learner", "crf", "--max-iter", 2), [False, False, True]),
    ):
        assert [entry["p"] is None for entry in shown(bench, *more, base=base)["summary"]] == without


@row("compare", "--wide")
def wide(bench: Bench) -> None:
    """--wide shows every column. Without it, only columns that fit are shown and the others are listed."""
    bench.patch.setenv("COLUMNS", "50")
    narrow, whole = shown(bench)["text"], shown(bench, "--wide")["text"]
    assert "omitted at this width" in narrow
    assert max(map(len, narrow.splitlines())) <= 50
    assert "left out" not in whole


@row("compare", "--cache", "--fresh")
def cache(bench: Bench) -> None:
    """--cache replaces the default folder of cached results. --fresh neither reads nor writes any results."""
    usual, own = bench.path("usual"), bench.path("own")

    def entries() -> tuple[int, int]:
        return len(list(usual.rglob("*.json"))), len(list(own.rglob("*.json")))

    for more, reused, kept in (
        ((), 0, (1, 0)),
        (("--cache", own), 0, (1, 1)),
        (("--cache", own), 1, (1, 1)),
        (("--fresh",), 0, (1, 1)),
        (("--fresh", "--cache", own, "--size", 3), 0, (1, 1)),
    ):
        assert f"{reused} of them from the cache" in shown(bench, *more)["message"]
        assert entries() == kept
    (path,) = usual.rglob("*.json")
    path.write_text(sealed(path.stem, {**opened(path.read_bytes(), path.stem), "mine": 1}))
    before = path.read_bytes()
    shown(bench, "--fresh")
    assert path.read_bytes() == before


@row("compare", "-o", "--output", "--report")
def output(bench: Bench) -> None:
    """-o writes the table in the format of the file extension, --report an HTML page. Default: no files."""
    paths = [bench.path(f"t{suffix}") for suffix in (".csv", ".md", ".tex", ".html")]
    shown(bench)
    assert not any(path.exists() for path in paths)
    options = zip(("-o", "--output", "-o", "--report"), paths)
    table = shown(bench, *(word for pair in options for word in pair))
    (accuracy,) = column(table, "accuracy")
    figures = [str(accuracy), *(mark.format(f"{100 * accuracy:.2f}") for mark in ("| {} |", "& {} &", "{}"))]
    for path, figure in zip(paths, figures):
        assert f"wrote {path}" in table["message"]
        assert figure in path.read_text()
    (command,) = re.findall(r"<dt>Command</dt><dd><code>(.*?)</code>", paths[-1].read_text())
    assert re.match(r"\w+ compare ", command)
    assert f" --report {paths[-1]}" in command


def test_loss_table_is_equal_in_every_format(bench: Bench) -> None:
    """The preset that trains nothing writes the same figures in every format, and a page on request."""
    paths = [bench.path(f"l{suffix}") for suffix in (".csv", ".json", ".md", ".tex")]
    page = bench.path("l.html")
    result = bench.ok("compare", "losses", *(x for p in paths for x in ("-o", p)), "--report", page)
    # At margin 1: no error, exp(-1), log(1 + exp(-1)).
    cells = ["+1.00", "0.0000", "0.3679", "0.3133"]
    assert cells in [line.split() for line in result.stdout.splitlines()]
    for path, mark in ((paths[0], ","), (paths[2], " | "), (paths[3], " & ")):
        assert mark.join(cells) in path.read_text()
    (entry,) = [e for e in json.loads(paths[1].read_text()) if e["margin"] == 1.0]
    assert (entry["zero_one"], round(entry["exp"], 4), round(entry["log"], 4)) == (0.0, 0.3679, 0.3133)
    assert "Losses of one decision" in page.read_text()
    assert f"--report {page}</code>" in page.read_text()


@pytest.mark.parametrize("case", cases("compare"))
def test_options(bench: Bench, case: str) -> None:
    """Run the check of one option."""
    cases("compare")[case](bench)
