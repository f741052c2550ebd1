"""Every option of ``compare`` matters: with and without it the table differs as its help says."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import tagwise as tw
from tagwise.apps.compare import PRESETS
from tagwise.apps.compare.cache import opened, sealed
from tagwise.base.parameters import cores

from .options import DEV, TEST, TRAIN, Bench, cases, corpus, crf, debug_row, invoke, row

SMALL = ("--learner", "hmm", "-f", "S1", "--jobs", 0)

debug_row("compare", "--train", "absent.txt", "--test", "absent.txt")


def shown(bench: Bench, *args: object, base: tuple[object, ...] = SMALL) -> dict[str, Any]:
    """The table of a call on the bench's files, as JSON has it; ``said`` is what stderr says."""
    out = bench.path("table.json")
    result = bench.ok("compare", "--train", bench.train, "--test", bench.test, *base, *args, "-o", out)
    found: dict[str, Any] = {**json.loads(out.read_text()), "said": result.stderr, "text": result.stdout}
    return found


def column(table: dict[str, Any], name: str) -> list[Any]:
    """One measure of all rows."""
    return [entry[name] for entry in table["rows"]]


def cached(said: str) -> tuple[int, int]:
    """How many runs there were and how many of them came from the cache."""
    found = re.search(r"^(\d+) runs in [\d.]+ s, (\d+) of them from the cache$", said, re.MULTILINE)
    assert found, said
    return int(found[1]), int(found[2])


def given(bench: Bench) -> None:
    """Let corpora known by name be small ones."""
    known = {"ewt-pos": (corpus(9, 5), DEV, DEV), "wnut17-ner": (TRAIN, DEV, TEST)}
    bench.patch.setattr(sys.modules["tagwise.apps.compare.plan"], "load_corpus", known.__getitem__)


@row("compare", "--backend", "--address")
def backend(bench: Bench) -> None:
    """The same table by the workers of a cluster, --jobs of them."""
    plain = column(shown(bench), "accuracy")
    assert column(shown(bench, "--backend", "local"), "accuracy") == plain
    asked = bench.cluster("tagwise.apps.compare.cluster")
    by_ray = ("--backend", "ray", "--address", "auto", "--jobs", 1, "--fresh")
    assert column(shown(bench, *by_ray, base=SMALL[:4]), "accuracy") == plain
    assert asked == ["auto", 1]
    refused = invoke("compare", "--train", bench.train, "--test", bench.test, "--address", "auto")
    assert (refused.exit_code, "is about --backend ray" in refused.stderr) == (2, True)


@row("compare", "preset")
def preset(bench: Bench) -> None:
    """Corpora, learners, features and parameters of that name; those of bundled if not given."""
    given(bench)
    for name, learners in (("bundled", ("hmm", "crf")), ("convergence", ("perceptron",))):
        small = replace(
            PRESETS[name],
            corpora=("ewt-pos", "wnut17-ner")[: len(learners)],
            learners=learners,
            features=("S1", "S2"),
            pairs={},
            params={"epochs": 2, "max_iter": 3},
            limits={},
        )
        bench.patch.setitem(PRESETS, name, small)
    tables = {}
    for args in ((), ("bundled",), ("convergence",)):
        out = bench.path("x.json")
        bench.ok("compare", *args, "--jobs", 0, "-o", out)
        tables[args] = json.loads(out.read_text())
    assert tables[()]["title"] == tables["bundled",]["title"] == "tagwise compare bundled"
    assert tables["convergence",]["title"] == "tagwise compare convergence"
    found = [(e["corpus"], e["learner"], e["features"]) for e in tables[()]["rows"]]
    assert found == [
        (name, learner, features)
        for name in ("ewt-pos", "wnut17-ner")
        for learner, features in (("hmm", "S1"), ("crf", "S1"), ("crf", "S2"))
    ]
    assert column(tables["convergence",], "learner") == ["perceptron"] * 2
    wrong = invoke("compare", "nonsense")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "nonsense" in wrong.stderr


@row("compare", "--list")
def listed(bench: Bench) -> None:
    """The presets with their help, one a line, and nothing is trained."""
    lines = bench.ok("compare", "--list", "--learner", "oracle").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(PRESETS)
    for line, entry in zip(lines, PRESETS.values()):
        assert line.endswith(entry.help)


@row("compare", "--learner")
def learner(bench: Bench) -> None:
    """These learners in this order, parameters in brackets."""
    names = ("--learner", "hmm", "--learner", "perceptron(epochs=2)", "--learner", "crf(max_iter=1)")
    table = shown(bench, *names, base=("-f", "S1", "--jobs", 0))
    assert column(table, "learner") == ["hmm", "perceptron(epochs=2)", "crf(max_iter=1)"]
    assert column(table, "iterations")[1:] == [2, 1]
    wrong = invoke("compare", "--learner", "oracle")
    assert wrong.exit_code == 2
    assert "'oracle'" in wrong.stderr


@row("compare", "--loss")
def loss(bench: Bench) -> None:
    """A row for each loss of a learner that has one."""
    base = ("--learner", "crf", "--learner", "hmm", "-f", "S1", "--jobs", 0, "--max-iter", 2)
    assert column(shown(bench, base=base), "loss") == ["log", ""]
    table = shown(bench, "--loss", "exp", "--loss", "log", base=base)
    assert column(table, "loss") == ["exp", "log", ""]
    assert column(table, "learner") == ["crf exp", "crf log", "hmm"]
    for entry, name in zip(table["rows"], ("exp", "log")):
        expected = crf(max_iter=2, l2=0.1, loss=name).fit(TRAIN)
        assert (entry["nonzero"], entry["accuracy"]) == (
            expected.n_nonzero_,
            expected.evaluate(TEST).accuracy,
        )


@row("compare", "--features", "-f")
def features(bench: Bench) -> None:
    """Each of these feature sets in place of the preset's."""
    base = ("--learner", "crf", "--jobs", 0, "--max-iter", 2)
    assert column(shown(bench, base=base), "features") == ["default"]
    table = shown(bench, "-f", "S2", "--features", "word[0]", base=base)
    assert column(table, "features") == ["S2", "word[0]"]
    for entry in table["rows"]:
        tagger = crf(features=entry["features"], max_iter=2, l2=0.1).fit(TRAIN)
        assert entry["nonzero"] == tagger.n_nonzero_


@row("compare", "--corpus")
def corpora(bench: Bench) -> None:
    """These corpora in place of the preset's, whole; together with files of one's own."""
    given(bench)
    out = bench.path("x.json")
    for names, extra, sizes in (
        (["wnut17-ner"], (), [len(TRAIN)]),
        (["wnut17-ner", "ewt-pos"], (), [len(TRAIN), 9]),
        (["ewt-pos"], ("--train", bench.dev, "--test", bench.test), [9, len(DEV)]),
    ):
        bench.ok("compare", *SMALL, *(x for name in names for x in ("--corpus", name)), *extra, "-o", out)
        table = json.loads(out.read_text())
        assert column(table, "corpus") == [*names, *(["dev.txt"] if extra else [])]
        assert column(table, "sentences") == sizes
    wrong = invoke("compare", *SMALL, "--corpus", "absent")
    assert wrong.exit_code != 0


@row("compare", "--train")
def train(bench: Bench) -> None:
    """The file that is trained on; it needs a test file."""
    for path, data in ((bench.train, TRAIN), (bench.dev, DEV)):
        table = shown(bench, "--train", path)
        expected = tw.HMM(features="S1").fit(data)
        assert column(table, "corpus") == [path.name]
        assert column(table, "sentences") == [len(data)]
        assert column(table, "accuracy") == [expected.evaluate(TEST).accuracy]
    assert shown(bench)["title"] == "tagwise compare train.txt"  # not the preset's, which it is no more
    alone = invoke("compare", "--train", bench.train)
    assert (alone.exit_code, alone.stdout) == (2, "")
    assert "--test" in alone.stderr


@row("compare", "--test")
def scored(bench: Bench) -> None:
    """The file that is scored; it needs a training file."""
    expected = tw.HMM(features="S1").fit(TRAIN)
    for path, data in ((bench.test, TEST), (bench.dev, DEV)):
        report = expected.evaluate(data)
        (entry,) = shown(bench, "--test", path)["rows"]
        assert (entry["accuracy"], entry["f1"]) == (report.accuracy, report.f1)
    assert expected.evaluate(TEST).accuracy != expected.evaluate(DEV).accuracy
    for alone in (("--test", bench.test), ("--dev", bench.dev)):
        assert invoke("compare", *alone).exit_code == 2


@row("compare", "--dev")
def dev(bench: Bench) -> None:
    """It is scored after every iteration and the best iterate is kept, whatever the preset says of such parts."""
    base = ("--learner", "perceptron", "-f", "S1", "--jobs", 0, "--set", "epochs=6")
    (without,) = shown(bench, base=base)["rows"]
    assert (without["dev_accuracy"], without["dev_f1"]) == (None, None)
    (scored,) = shown(bench, "--dev", bench.dev, base=base)["rows"]
    kept = tw.Perceptron(features="S1", epochs=6).fit(TRAIN, dev=DEV)
    assert (scored["dev_accuracy"], scored["dev_f1"]) == (kept.evaluate(DEV).accuracy, kept.evaluate(DEV).f1)
    assert scored["accuracy"] == kept.evaluate(TEST).accuracy
    call = ("--learner", "perceptron", "-f", "S1", "--jobs", 0, "--set", "epochs=6")
    (plain,) = shown(bench, base=("convergence", *call))["rows"]
    assert (plain["dev_accuracy"], plain["dev_f1"]) == (None, None)
    (entry,) = shown(bench, "--dev", bench.dev, base=("convergence", *call))["rows"]
    tagger = tw.Perceptron(features="S1", epochs=6, patience=0).fit(TRAIN, dev=DEV)
    report = tagger.evaluate(DEV)
    assert (entry["dev_accuracy"], entry["dev_f1"]) == (report.accuracy, report.f1)
    assert entry["accuracy"] == tagger.evaluate(TEST).accuracy


@row("compare", "--columns")
def named_columns(bench: Bench) -> None:
    """Names of the files' columns: which one is the label, and what features look at."""
    (entry,) = shown(bench)["rows"]
    assert entry["f1"] is not None
    (entry,) = shown(bench, "--columns", "word,label,_")["rows"]
    assert (entry["f1"], entry["accuracy"]) == (None, 1.0)  # tags, which the word tells
    base = ("--learner", "crf", "-f", "kind[0]", "--jobs", 0)
    assert invoke("compare", "--train", bench.train, "--test", bench.test, *base).exit_code == 2
    assert len(shown(bench, "--columns", "word,kind,label", base=base)["rows"]) == 1


@row("compare", "--size")
def size(bench: Bench) -> None:
    """So many training sentences, each as a row; all if not given."""
    assert column(shown(bench), "sentences") == [24]
    table = shown(bench, "--size", 5, "--size", 9)
    assert column(table, "sentences") == [5, 9]
    expected = [tw.HMM(features="S1").fit(TRAIN[:n]).evaluate(TEST).accuracy for n in (5, 9)]
    assert column(table, "accuracy") == expected
    assert invoke("compare", "--size", 0).exit_code == 2


@row("compare", "--seeds")
def seeds(bench: Bench) -> None:
    """So many runs of each cell, and their mean and deviation in the table; one if not given."""
    assert column(shown(bench), "seed") == [0]
    table = shown(bench, "--seeds", 3, "--size", 6)
    assert column(table, "seed") == [0, 1, 2]
    (entry,) = table["summary"]
    values = column(table, "accuracy")
    assert len(set(values)) > 1
    assert entry["seeds"] == 3
    mean = sum(values) / 3
    assert entry["accuracy"] == pytest.approx(mean)
    assert entry["accuracy_sd"] == pytest.approx((sum((v - mean) ** 2 for v in values) / 2) ** 0.5)
    assert f"{100 * mean:.2f} ±{100 * entry['accuracy_sd']:.2f}" in table["text"]


@row("compare", "--set")
def settings(bench: Bench) -> None:
    """A parameter of every learner that has it, over the preset's; one that none has is wrong usage."""
    base = ("--learner", "crf", "--learner", "perceptron", "-f", "S1", "--jobs", 0)
    wanted = ("max_iter=2", "epochs=3", "l2=4", "all_pairs=true")
    table = shown(bench, *(x for pair in wanted for x in ("--set", pair)), base=base)
    assert column(table, "iterations") == [2, 3]
    assert "max_iter = 2" in table["caption"]
    online = tw.Perceptron(features="S1", epochs=3, all_pairs=True).fit(TRAIN)
    chain = crf(max_iter=2, l2=4.0, all_pairs=True).fit(TRAIN)
    assert column(table, "nonzero") == [chain.n_nonzero_, online.n_nonzero_]
    assert column(table, "accuracy") == [t.evaluate(TEST).accuracy for t in (chain, online)]
    for text, said in (("wheels=4", "'wheels'"), ("wheels", "name=value")):
        wrong = invoke("compare", *base, "--set", text)
        assert (wrong.exit_code, wrong.stdout) == (2, "")
        assert said in wrong.stderr


@row("compare", "--tune")
def tune(bench: Bench) -> None:
    """Every combination is tried on dev, the best is trained and named; learners without the parameter have none."""
    base = ("--learner", "crf", "--learner", "crf(l2=9)", "--learner", "hmm", "-f", "S1", "--jobs", 0)
    base = (*base, "--max-iter", 4)
    with_dev = ("--dev", bench.dev)
    tries = {
        (l2, n): crf(l2=l2, min_count=n, patience=0).fit(TRAIN, dev=DEV).score(DEV)
        for l2 in (30.0, 0.01)
        for n in (1, 4)
    }
    l2, n = max(tries, key=lambda pair: tries[pair])  # of equals the first
    table = shown(bench, *with_dev, "--tune", "l2=30,0.01", "--tune", "min_count=1,4", base=base)
    assert column(table, "chosen")[0] == f"l2={l2:g}, min_count={n}"
    assert column(table, "chosen")[1].startswith("min_count=")  # its name settles l2
    assert column(table, "chosen")[2] == ""
    best = crf(l2=l2, min_count=n, patience=0).fit(TRAIN, dev=DEV)
    assert column(table, "accuracy")[0] == best.evaluate(TEST).accuracy
    assert "l2 from 30, 0.01" in table["caption"]
    assert "on the dev part" in table["caption"]
    assert column(table, "chosen")[0] in table["text"]
    assert column(shown(bench, *with_dev, base=base), "chosen") == ["", "", ""]
    page = bench.path("page.html")
    shown(bench, *with_dev, "--tune", "l2=30,0.01", "--report", page, base=base)
    assert f"l2={l2:g}" in page.read_text()
    for text, said in (("l2", "name=value,value"), ("l2=", "name=value,value"), ("wheels=1", "'wheels'")):
        wrong = invoke("compare", *base, "--tune", text)
        assert (wrong.exit_code, wrong.stdout) == (2, "")
        assert said in wrong.stderr
    outside = invoke("compare", "--train", bench.train, "--test", bench.test, *base, "--tune", "l2=-1,1")
    assert (outside.exit_code, outside.stdout) == (2, "")
    assert "l2=-1" in outside.stderr


@row("compare", "--folds")
def folds(bench: Bench) -> None:
    """So many folds of the training sentences, the same for all; all five where there is no dev part."""
    base = ("--learner", "crf", "-f", "S1", "--jobs", 0, "--max-iter", 4, "--tune", "l2=30,1,0.01")
    for more, count in (((), 5), (("--folds", 2), 2), (("--dev", bench.dev, "--folds", 1), 1)):
        means = []
        for value in (30.0, 1.0, 0.01):
            scores = []
            for fold in range(count):
                fitted = tw.Corpus([s for i, s in enumerate(TRAIN) if i % 5 != 4 - fold])
                scores.append(crf(l2=value).fit(fitted).score(TRAIN[4 - fold :: 5]))
            means.append(sum(scores) / count)
        table = shown(bench, *more, base=base)
        assert column(table, "chosen") == [f"l2={(30, 1, 0.01)[means.index(max(means))]:g}"]
        said = {5: "by cross-validation in 5 folds", 1: "on every fifth training sentence"}
        assert said.get(count, "2 times with others") in table["caption"]
    assert "on the dev part" in shown(bench, "--dev", bench.dev, base=base)["caption"]
    alone = invoke("compare", "--folds", 2, "--learner", "crf")
    assert (alone.exit_code, alone.stdout) == (2, "")
    assert "--tune" in alone.stderr
    assert invoke("compare", "--folds", 6, "--tune", "l2=1").exit_code == 2


@row("compare", "--max-iter")
def max_iter(bench: Bench) -> None:
    """Iterations at most, over --set and the preset's fifty."""
    base = ("--learner", "crf(tol=0)", "-f", "S1", "--jobs", 0, "--set", "l2=1e-9")
    usual = shown(bench, base=base)
    assert "max_iter = 50" in usual["caption"]
    assert 5 < column(usual, "iterations")[0] <= 50
    assert column(shown(bench, "--max-iter", 3, base=base), "iterations") == [3]
    assert column(shown(bench, "--max-iter", 3, "--set", "max_iter=5", base=base), "iterations") == [3]
    assert column(shown(bench, "--set", "max_iter=5", base=base), "iterations") == [5]


@row("compare", "--against")
def against(bench: Bench) -> None:
    """The learner that others are tested against: a column p; the preset's if not given, where it is among them."""
    base = ("--learner", "hmm", "--learner", "perceptron", "-f", "S1", "--jobs", 0, "--set", "epochs=2")
    plain = shown(bench, base=base)
    assert [entry["p"] for entry in plain["summary"]] == [None, None]
    assert "p, against" not in plain["text"]
    for name, place in (("hmm", 0), ("perceptron", 1)):
        table = shown(bench, "--against", name, base=base)
        found = [entry["p"] for entry in table["summary"]]
        assert found[place] is None
        assert 0.0 < found[1 - place] <= 1.0
        assert f"p, against {name}" in table["text"]
        assert f"{found[1 - place]:.4f}" in table["text"]
    usual = shown(bench, "--learner", "crf", "--max-iter", 2, base=base)
    assert "p, against crf" in usual["text"]
    assert [entry["p"] is None for entry in usual["summary"]] == [False, False, True]


@row("compare", "--wide")
def wide(bench: Bench) -> None:
    """Every column; without it those that the width holds, and a word about the others."""
    for columns, more, seen in (("50", (), False), ("50", ("--wide",), True), ("200", (), True)):
        bench.patch.setenv("COLUMNS", columns)
        text = shown(bench, *more)["text"]
        assert ("passes" in text.split("left out")[0]) is seen
        assert ("left out at this width" in text) is not seen
        assert seen or max(map(len, text.splitlines())) <= 50


@row("compare", "--jobs")
def jobs(bench: Bench) -> None:
    """Processes of their own, whose memory is measured; with 0 this one, where it is not."""
    base = ("--learner", "hmm", "-f", "S1", "--fresh")
    here = shown(bench, "--jobs", 0, base=base)
    there = shown(bench, "--jobs", 1, base=base)
    assert column(here, "memory") == [None]
    assert all(memory > 1 << 20 for memory in column(there, "memory"))
    assert column(here, "accuracy") == column(there, "accuracy")
    asked: list[Any] = []

    def noting(*args: Any, **options: Any) -> Any:
        asked.append((options["jobs"], options["n_jobs"]))
        raise tw.TrainingError("enough")

    bench.patch.setattr(sys.modules["tagwise.cli.compare"], "run", noting)
    bench.patch.setattr(sys.modules["tagwise.cli.compare"], "cores", lambda: 3)
    files = ("compare", "--train", bench.train, "--test", bench.test, "--learner", "hmm", "-f", "S1")
    many = ("--seeds", 9)
    for more in ((), ("--jobs", 2), ("--jobs", 0), ("--jobs", 1), ("--jobs", 2, "--n-jobs", 5)):
        assert "enough" in invoke(*files, *many, *more).stderr
    assert asked == [(3, 1), (2, 1), (0, None), (1, None), (2, 5)]
    asked.clear()
    invoke(*files, "--jobs", 8)
    assert asked == [(1, 1)]  # never more than there are cells


@row("compare", "--risks")
def risks(bench: Bench) -> None:
    """Gold paths are ranked in lists of so many."""
    base = ("--learner", "crf", "-f", "S1", "--jobs", 0, "--max-iter", 2)
    assert column(shown(bench, base=base), "rank") == [None]
    (short,) = column(shown(bench, "--risks", 2, base=base), "rank")
    (long,) = column(shown(bench, "--risks", 20, base=base), "rank")
    assert 0 <= short <= min(long, 2)
    assert invoke("compare", "--risks", 1).exit_code == 2


@row("compare", "--n-jobs")
def n_jobs(bench: Bench) -> None:
    """Threads of each; all cores where one process works alone."""
    threads = bench.threads()
    table = shown(bench, "--n-jobs", 3, "--learner", "crf", "--fresh", "--max-iter", 1)
    assert set(threads) == {3}
    assert column(table, "threads") == [3, 3]
    assert column(shown(bench, "--fresh"), "threads") == [cores()]


@row("compare", "--memory")
def memory(bench: Bench) -> None:
    """Bytes that all processes may hold together, with a unit."""
    files = ("compare", "--train", bench.train, "--test", bench.test, "--learner", "hmm", "-f", "S1")
    asked: list[int | None] = []

    def noting(*args: Any, **options: Any) -> Any:
        asked.append(options["memory"])
        raise tw.TrainingError("enough")

    bench.patch.setattr(sys.modules["tagwise.cli.compare"], "run", noting)
    for text in ("8G", "1.5k", "2 MiB", "1T"):
        invoke(*files, "--memory", text)
    invoke(*files)
    assert asked == [8 << 30, 1536, 2 << 20, 1 << 40, None]
    for wrong in ("8", "G", "much", "8X"):
        result = invoke(*files, "--memory", wrong)
        assert (result.exit_code, result.stdout) == (2, "")
        assert repr(wrong) in result.stderr


def entries(folder: Path) -> int:
    """How many results a folder holds."""
    return len(list(folder.rglob("*.json")))


@row("compare", "--cache")
def cache(bench: Bench) -> None:
    """Results lie in that folder, in the usual one if not given, and are not trained again."""
    usual, own = bench.path("usual"), bench.path("own")
    assert cached(shown(bench)["said"]) == (1, 0)
    assert (entries(usual), entries(own)) == (1, 0)
    assert cached(shown(bench, "--cache", own)["said"]) == (1, 0)
    assert (entries(usual), entries(own)) == (1, 1)
    first = shown(bench, "--cache", own)
    assert cached(first["said"]) == (1, 1)
    assert cached(shown(bench, "--cache", own, "--seeds", 2, "--size", 3)["said"]) == (2, 0)
    assert shown(bench, "--cache", own)["rows"] == first["rows"]


@row("compare", "--fresh")
def fresh(bench: Bench) -> None:
    """Everything is trained again, nothing is kept and what lies there stays."""
    shown(bench)
    (path,) = bench.path("usual").rglob("*.json")
    value = opened(path.read_bytes(), path.stem)
    path.write_text(sealed(path.stem, {**value, "mine": 1}))
    changed = path.read_bytes()
    assert cached(shown(bench)["said"]) == (1, 1)
    for more in ((), ("--cache", bench.path("usual"))):
        assert cached(shown(bench, "--fresh", *more)["said"]) == (1, 0)
    assert cached(shown(bench, "--fresh", "--size", 3)["said"]) == (1, 0)
    assert (entries(bench.path("usual")), path.read_bytes()) == (1, changed)


@row("compare", "-o", "--output")
def output(bench: Bench) -> None:
    """The table in each of these files, in the format of its ending; another ending is wrong usage."""
    paths = {suffix: bench.path(f"t{suffix}") for suffix in (".csv", ".json", ".md", ".tex")}
    spelled = [x for i, path in enumerate(paths.values()) for x in (("-o", "--output")[i % 2], path)]
    table = shown(bench, *spelled)
    assert [f"wrote {path}" in table["said"] for path in paths.values()] == [True] * 4
    (line,) = csv.DictReader(io.StringIO(paths[".csv"].read_text()))
    accuracy = column(table, "accuracy")[0]
    assert float(line["accuracy"]) == accuracy
    assert json.loads(paths[".json"].read_text())["rows"] == table["rows"]
    assert f"| {100 * accuracy:.2f} |" in paths[".md"].read_text()
    assert f"& {100 * accuracy:.2f} &" in paths[".tex"].read_text()
    for name in ("t.pdf", "t"):
        wrong = invoke("compare", "-o", bench.path(name))
        assert (wrong.exit_code, wrong.stdout) == (2, "")
        assert name in wrong.stderr
    assert invoke("compare", "-o", bench.path("no") / "t.csv").exit_code == 2


@row("compare", "--report")
def report(bench: Bench) -> None:
    """One HTML page beside the table; none if not given."""
    page = bench.path("page.html")
    shown(bench)
    assert not page.exists()
    table = shown(bench, "--report", page)
    assert f"wrote {page}" in table["said"]
    assert f"{100 * column(table, 'accuracy')[0]:.2f}" in page.read_text()
    assert invoke("compare", "--report", bench.path("no") / "x.html").exit_code == 2


def test_the_losses_in_every_format(bench: Bench) -> None:
    """The preset that trains nothing writes the same figures in every format, and a page if asked for."""
    paths = [bench.path(f"l{suffix}") for suffix in (".csv", ".json", ".md", ".tex")]
    page = bench.path("l.html")
    result: Result = bench.ok("compare", "losses", *(x for p in paths for x in ("-o", p)), "--report", page)
    # At margin 1: no error, exp(-1), log(1 + exp(-1)).
    cells = ["+1.00", "0.0000", "0.3679", "0.3133"]
    assert cells in [line.split() for line in result.stdout.splitlines()]
    assert ",".join(cells) in paths[0].read_text().splitlines()
    (entry,) = [e for e in json.loads(paths[1].read_text()) if e["margin"] == 1.0]
    assert (entry["zero_one"], round(entry["exp"], 4), round(entry["log"], 4)) == (0.0, 0.3679, 0.3133)
    assert "| " + " | ".join(cells) + " |" in paths[2].read_text()
    assert " & ".join(cells) + r" \\" in paths[3].read_text()
    assert "Losses of one decision" in page.read_text()


@pytest.mark.parametrize("case", cases("compare"))
def test_options(bench: Bench, case: str) -> None:
    """The row of an option holds."""
    cases("compare")[case](bench)
