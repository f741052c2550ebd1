"""Every field of a comparison matters: keywords of ``compare`` and ``run``, fields of cells, presets and rows."""

from __future__ import annotations

import importlib
import inspect
import random
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tagwise.apps.compare import (
    Cache,
    Cell,
    ComparedLearner,
    Comparison,
    Data,
    Event,
    collect,
    draw,
    parse,
    plan,
    run,
)
from tagwise.apps.compare.cache import Names
from tagwise.apps.compare.cells import measure
from tagwise.apps.compare.plan import held_out
from tagwise.base.exceptions import TrainingError
from tagwise.base.parameters import cores
from tests.cli.options import DEV, TEST, TRAIN

DATA = Data(TRAIN, TEST, DEV)
PAIR = (TRAIN, TEST)
QUICK = {"max_iter": 2}

Check = Callable[[pytest.MonkeyPatch, Path], None]
ROWS: dict[str, dict[str, Check]] = {}


def row(owner: str, *names: str) -> Callable[[Check], Check]:
    """Register the check of a field."""

    def enter(check: Check) -> Check:
        for name in names:
            assert name not in ROWS.setdefault(owner, {}), (owner, name)
            ROWS[owner][name] = check
        return check

    return enter


def accuracy(tagger: Any, train: tw.Corpus = TRAIN, **options: Any) -> float:
    """Return the test accuracy of a tagger trained without a comparison."""
    return float(tagger.fit(train, **options).evaluate(TEST).accuracy)


def simple(**changes: Any) -> Comparison:
    """Return a comparison of one HMM with changed options."""
    return tw.compare(**{"learners": ["hmm"], "corpus": PAIR, **changes})


# --- tw.compare ---------------------------------------------------------------------------------------------


@row("compare", "learners")
def learners(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Learners keep their order. The default is a CRF."""
    given = ["hmm", ComparedLearner("mine", "perceptron", {"max_iter": 3}), "crf(max_iter=1)"]
    table = simple(learners=given, features=["S1"])
    assert [r.learner for r in table] == ["hmm", "mine", "crf(max_iter=1)"]
    assert [r.iterations for r in table][1:] == [3, 1]
    expected = [
        tw.HMM(features="S1"),
        tw.Perceptron(features="S1", max_iter=3),
        tw.CRF(features="S1", max_iter=1),
    ]
    assert [r.accuracy for r in table] == [accuracy(tagger) for tagger in expected]
    assert [r.learner for r in tw.compare(corpus=PAIR, features=["S1"], params=QUICK)] == ["crf"]


@row("compare", "corpus")
def corpora(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """A corpus is a name, names, parts or a mapping: trained on the first part, tested on the last."""
    known = {"a": (TRAIN, DEV, TEST), "b": (DEV, None, TRAIN), "ewt-pos": (TEST, DEV, TRAIN)}
    patch.setattr(sys.modules["tagwise.apps.compare.plan"], "load_corpus", known.__getitem__)
    for spec, names, parts in (
        ("a", ["a"], [(TRAIN, TEST)]),
        (["b", "a"], ["b", "a"], [(DEV, TRAIN), (TRAIN, TEST)]),
        (PAIR, ["corpus"], [(TRAIN, TEST)]),
        ((TRAIN, DEV, TEST), ["corpus"], [(TRAIN, TEST)]),
        ({"x": (DEV, TEST), "y": "b"}, ["x", "y"], [(DEV, TEST), (DEV, TRAIN)]),
    ):
        table = simple(corpus=spec)
        assert [r.corpus for r in table] == names
        expected = [tw.HMM(features="S1").fit(a).evaluate(b).accuracy for a, b in parts]
        assert [r.accuracy for r in table] == expected
        assert [r.sentences for r in table] == [len(a) for a, _ in parts]
    assert [r.corpus for r in tw.compare(["hmm"])] == ["ewt-pos"]
    named = tw.Corpus(list(TRAIN), source="/somewhere/news.txt")
    assert [r.corpus for r in simple(corpus=(named, TEST))] == ["news.txt"]


@row("compare", "features")
def feature_sets(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Each feature set is run. The default is S1, S2 and S3."""
    table = simple(learners=["crf"], features=["S2", "word[0]"], params=QUICK)
    assert [r.features for r in table] == ["S2", "word[0]"]
    expected = [tw.CRF(features=f, max_iter=2).fit(TRAIN).n_nonzero_ for f in ("S2", "word[0]")]
    assert [r.nonzero for r in table] == expected
    assert [r.features for r in simple(learners=["crf"], params=QUICK)] == ["S1", "S2", "S3"]


@row("compare", "losses")
def losses(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Each loss is run for the learners that have one."""
    table = simple(learners=["crf", "hmm"], features=["S1"], losses=["exp", "log"], params=QUICK)
    assert [(r.learner, r.loss) for r in table] == [("crf exp", "exp"), ("crf log", "log"), ("hmm", "")]
    expected = [accuracy(tw.CRF(features="S1", max_iter=2, loss=loss)) for loss in ("exp", "log")]
    assert [r.accuracy for r in table][:2] == expected


@row("compare", "sizes")
def sizes(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """A size is a number of leading sentences. The default is all of them."""
    table = simple(sizes=[3, 8, 99])
    assert [r.sentences for r in table] == [3, 8, 24]
    assert [r.accuracy for r in table] == [accuracy(tw.HMM(features="S1"), TRAIN[:n]) for n in (3, 8, 24)]
    assert [r.sentences for r in simple()] == [24]


@row("compare", "seeds")
def seeds(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Number of runs per cell, default 1. Each has its own learner seed and, if a size is given, its own draw."""
    table = simple(learners=["perceptron"], features=["S1"], seeds=3, params=QUICK)
    assert [(r.seed, r.sentences) for r in table] == [(0, 24), (1, 24), (2, 24)]
    expected = [tw.Perceptron(features="S1", max_iter=2, random_state=s).fit(TRAIN) for s in range(3)]
    assert [(r.accuracy, r.nonzero) for r in table] == [
        (t.evaluate(TEST).accuracy, t.n_nonzero_) for t in expected
    ]
    assert len({(r.accuracy, r.nonzero) for r in table}) > 1
    assert [r.seed for r in simple()] == [0]
    drawn = simple(seeds=4, sizes=[5])
    assert [r.sentences for r in drawn] == [5] * 4
    assert len({r.accuracy for r in drawn}) > 1


@row("compare", "params")
def params(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Applied to every learner that has them unless its name sets them."""
    given = {"max_iter": 3, "l2": 0.5}
    table = simple(learners=["crf", "crf(l2=9)", "perceptron"], features=["S1"], params=given)
    assert [r.iterations for r in table] == [3, 3, 3]
    assert [r.accuracy for r in table][:2] == [
        accuracy(tw.CRF(features="S1", max_iter=3, l2=l2)) for l2 in (0.5, 9.0)
    ]
    with pytest.raises(tw.exceptions.ParameterError, match="n_jobs is an argument of compare itself"):
        simple(params={"n_jobs": 2})


@row("compare", "n_jobs")
def n_jobs(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """The threads of each learner. The default is all cores."""
    assert [r.threads for r in simple(learners=["crf", "perceptron"], features=["S1"], n_jobs=97)] == [97, 97]
    assert [r.threads for r in simple()] == [cores()]


@row("compare", "tune")
def tune(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """The value with the best score on every fifth sentence. The learner's name takes precedence over its kind."""
    values = [50.0, 1e-3]
    fitted = tw.Corpus([s for i, s in enumerate(TRAIN) if i % 5 != 4])
    scores = [tw.CRF(features="S1", max_iter=9, l2=v).fit(fitted).score(TRAIN[4::5]) for v in values]
    best = values[scores.index(max(scores))]
    given = {"crf": {"l2": values}, "crf(random_state=3)": {"l2": [7.0]}, "hmm": {"l2": [1.0]}}
    table = simple(
        learners=["crf", "crf(random_state=3)", "hmm"], features=["S1"], tune=given, params={"max_iter": 9}
    )
    assert [r.chosen for r in table] == [f"l2={best:g}", "l2=7", ""]
    assert table[0].accuracy == accuracy(tw.CRF(features="S1", max_iter=9, l2=best))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"params": {"max_itre": 3}},
            r"params: no learner has a parameter 'max_itre' \(did you mean 'max_iter'\?\)",
        ),
        ({"params": {"l2": -1.0}}, "l2=-1.0: expected number >= 0"),
        ({"tune": {"crf": {"wheels": [1]}}}, r"tune\['crf'\]: no learner has a parameter 'wheels'"),
        ({"tune": {"crf": {"l2": [0.1, "x"]}}}, "l2='x'"),
        ({"workers": -1}, "workers=-1: expected integer >= 0"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"memory": "8 apples"}, "memory='8 apples': expected an amount such as 500M"),
        ({"verbose": -1}, "verbose=-1"),
    ],
)
def test_wrong_arguments_are_reported_before_training(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr(tw.CRF, "fit", None)
    with pytest.raises(tw.exceptions.ParameterError, match=message):
        simple(learners=["crf"], features=["S1"], **given)


@row("compare", "folds")
def folds(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Every fifth sentence, several folds in turn, or the dev part. Too many folds or a missing dev part fail."""
    values = [50.0, 1.0, 1e-3]
    parts = [
        (tw.Corpus([s for i, s in enumerate(TRAIN) if i % 5 != 4 - fold]), TRAIN[4 - fold :: 5])
        for fold in range(5)
    ]
    for count, chosen_on in ((1, parts[:1]), (5, parts), (0, [(TRAIN, DEV)])):
        means = [
            sum(tw.CRF(features="S1", max_iter=9, l2=v).fit(a).score(b) for a, b in chosen_on)
            / len(chosen_on)
            for v in values
        ]
        best = values[means.index(max(means))]
        data = {"a": (TRAIN, DEV, TEST)}
        given = {"tune": {"crf": {"l2": values}}, "params": {"max_iter": 9}, "folds": count}
        (found,) = simple(learners=["crf"], features=["S1"], corpus=data, **given)
        assert found.chosen == f"l2={best:g}"
        assert found.accuracy == accuracy(tw.CRF(features="S1", max_iter=9, l2=best))
    for count, message in (
        (6, "expected 1 to 5, or 0"),
        (-1, "expected 1 to 5, or 0"),
        (0, "has no dev part"),
    ):
        with pytest.raises(tw.exceptions.ParameterError, match=message):
            simple(learners=["crf"], features=["S1"], tune={"crf": {"l2": values}}, folds=count)


@row("compare", "against")
def against(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """The baseline of the significance tests. The default is none."""
    call = {"learners": ["hmm", "crf"], "features": ["S1"], "params": QUICK}
    for name, place in (("hmm", 0), ("crf", 1)):
        entries = simple(**call, against=name).summary()
        assert entries[place]["p"] is None
        assert 0 < entries[1 - place]["p"] <= 1
    assert [entry["p"] for entry in simple(**call).summary()] == [None, None]
    with pytest.raises(tw.exceptions.ParameterError, match="'oracle'"):
        simple(**call, against="oracle")


@row("compare", "cache")
def cache(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """A folder, the default folder, or none. Cached results are read instead of trained."""
    patch.setenv("TAGWISE_CACHE", str(folder / "usual"))

    def entries(name: str) -> int:
        return len(list((folder / name).rglob("*.json")))

    first = simple()
    assert (entries("usual"), entries("own")) == (0, 0)
    own = simple(cache=folder / "own")
    assert (entries("usual"), entries("own")) == (0, 1)
    simple(cache=True)
    assert (entries("usual"), entries("own")) == (1, 1)
    patch.setattr(sys.modules["tagwise.apps.compare.run"], "measure", None)
    for place in (folder / "own", str(folder / "own")):
        assert simple(cache=place).rows == own.rows
    assert simple(cache=True)[0].accuracy == first[0].accuracy
    with pytest.raises(TypeError):
        simple(cache=False)


@row("compare", "workers", "memory")
def workers(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Worker processes, limited by memory (tests/unit/test_pool.py). The default is this process."""
    assert simple()[0].memory is None
    (found,) = simple(workers=1)
    assert found.memory is not None
    assert found.memory > 1 << 20
    options_seen: list[Any] = []

    def noting(cells: Any, data: Any, **options: Any) -> Any:
        options_seen.append({name: options[name] for name in ("workers", "memory", "n_jobs")})
        return iter(())

    patch.setattr(sys.modules["tagwise.apps.compare"], "run", noting)
    for call in ({}, {"workers": 1}, {"workers": 2, "memory": "1K"}, {"workers": 3, "n_jobs": 4}):
        simple(**call)
    assert options_seen == [
        {"workers": 0, "memory": None, "n_jobs": None},
        {"workers": 1, "memory": None, "n_jobs": None},
        {"workers": 2, "memory": 1024, "n_jobs": 1},
        {"workers": 3, "memory": None, "n_jobs": 4},
    ]


@row("compare", "verbose")
def verbose(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """1 logs each finished cell, 0 logs nothing."""
    logged: list[tuple[int, int]] = []
    log = sys.modules["tagwise.apps.compare"].logger
    patch.setattr(log, "info", lambda _text, done, total, _cell: logged.append((done, total)))
    simple()
    assert logged == []
    simple(verbose=1, seeds=2)
    assert logged == [(1, 2), (2, 2)]


@row("compare", "risks")
def compare_risks(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Length of the k-best lists in every cell. tests/laws/test_ranks.py checks the figures."""
    found = tw.compare(["hmm"], corpus={"x": (TRAIN, TEST)}, features=["S1"], risks=3)
    assert found.details[0] is not None
    assert found.details[0]["k"] == 3
    assert tw.compare(["hmm"], corpus={"x": (TRAIN, TEST)}, features=["S1"]).rows[0].rank is None


@row("compare", "backend")
def compare_backend(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Where training runs: this machine by default. Unknown names are refused (tests/ray covers Ray)."""
    given: list[str] = []
    inner = sys.modules["tagwise.apps.compare"].run

    def watched(*args: Any, **keywords: Any) -> Any:
        given.append(keywords["backend"])
        return inner(*args, **{**keywords, "backend": "local"})

    patch.setattr(sys.modules["tagwise.apps.compare"], "run", watched)
    simple()
    simple(backend="ray")
    assert given == ["local", "ray"]
    with pytest.raises(tw.exceptions.ParameterError, match="backend='nobody'"):
        simple(backend="nobody")


@row("compare", "title", "caption")
def words(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Text above and below the table."""
    lines = str(simple(title="Above", caption="Below")).splitlines()
    assert (lines[0].strip(), lines[-1].strip()) == ("Above", "Below")
    plain = simple()
    assert (plain.title, plain.caption) == ("", "")


# --- run ----------------------------------------------------------------------------------------------------


@row("run", "backend")
def run_backend(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """A cluster receives the bounds and the cells that are not cached. tests/ray checks its training."""
    cells, made = plan(["hmm"], ["a"], ["S1"]), []
    patch.setattr(
        importlib.import_module("tagwise.apps.compare.cluster"),
        "Cluster",
        lambda *given: made.append(given[2:]),
    )
    patch.setattr(
        sys.modules["tagwise.apps.compare.run"],
        "for_all_cells",
        lambda cluster, missing, *_: iter([f"{len(missing)} missing"]),
    )
    cache = Cache(folder)
    assert list(run(cells, {"a": DATA}, cache=cache, workers=3, memory=7, n_jobs=2, backend="ray")) == [
        "1 missing"
    ]
    assert made == [(cache, 3, 7, 2)]


@row("run", "cells", "data", "cache", "workers", "memory", "n_jobs", "callbacks")
def runs(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Cells use their own data, callbacks and threads reach the training, and a folder keeps the results."""
    data = {"a": DATA, "b": Data(DEV, TEST)}
    cells = plan(["crf", "hmm"], ["b", "a"], ["S1"], params=QUICK)
    seen: list[tuple[str, int]] = []

    def callbacks(cell: Cell) -> list[Callable[[Any], Any]]:
        return [lambda step: seen.append((cell.describe(), step.iteration))]

    events = list(run(cells, data, n_jobs=97, callbacks=callbacks, cache=Cache(folder)))
    assert [e.kind for e in events] == ["start", "done"] * 4
    done = [e for e in events if e.kind == "done" and e.result is not None]
    assert [e.result["row"]["threads"] for e in done if e.result] == [97] * 4
    assert [e.result["row"]["sentences"] for e in done if e.result] == [10, 10, 24, 24]
    crf = [cell.describe() for cell in cells if cell.learner.name == "crf"]
    assert [entry for entry in seen if entry[0] in crf] == [(name, i) for name in crf for i in (1, 2)]
    again = list(run(cells[::-1], data, cache=Cache(folder)))
    assert [(e.kind, e.cached, e.index) for e in again] == [("done", True, i) for i in range(4)]
    assert not any(e.cached for e in events)


def test_worker_processes_report_the_same_events() -> None:
    """A worker process reports trials, features, iterations and scoring exactly as this process does."""
    cell = replace(BASE, tune={"l2": [0.5, 3.0]})
    here: list[str] = []
    measure(cell, DATA, progress=here.append)
    assert here[:3] == ["held out: l2=0.5", "held out: l2=3.0", "reading features"]
    assert [text.split(",")[0] for text in here[3:]] == ["iteration 1/2", "iteration 2/2", "scoring"]
    events = list(run([cell, replace(cell, corpus="b")], {"a": DATA, "b": DATA}, workers=1, n_jobs=1))
    assert [e.text for e in events if e.kind == "progress"] == here
    assert [(e.kind, e.index, e.cached) for e in events if e.kind != "progress"] == [
        ("start", 0, False),
        ("done", 0, False),
        ("done", 1, False),  # waits for the same result
    ]
    done = [e.result for e in events if e.result is not None]
    assert done[0]["row"]["threads"] == 1
    assert done[0]["row"]["accuracy"] == measured(cell)["accuracy"]


def test_rows_come_in_the_order_of_the_cells() -> None:
    """Events may arrive in any order. Callbacks receive every event, and failures are raised together at the end."""
    cells = plan(["hmm", "crf", "perceptron"], ["a"], ["S1"], params=QUICK)
    done = [e for e in run(cells, {"a": DATA}) if e.kind == "done"]
    seen: list[Event] = []
    late = [done[2], Event("start", 0, cells[0]), done[0], done[1]]
    table = collect(Comparison(), late, cells, seen.append)
    assert [r.learner for r in table] == ["hmm", "crf", "perceptron"]
    assert table.details == [e.result and e.result["detail"] for e in done]
    assert seen == late
    partly = Comparison()
    bad = [Event("failed", 0, cells[0], "no wheels"), done[2], Event("failed", 1, cells[1], "no doors")]
    with pytest.raises(TrainingError) as error:
        collect(partly, bad, cells)
    assert str(error.value) == "a hmm S1 seed 0: no wheels\na crf S1 seed 0: no doors"
    assert [r.learner for r in partly] == ["perceptron"]


# --- cells --------------------------------------------------------------------------------------------------

BASE = Cell("a", parse("crf"), "S1", params=QUICK)


def measured(cell: Cell, data: Data = DATA, **options: Any) -> dict[str, Any]:
    """Return the row of one cell."""
    found: dict[str, Any] = measure(cell, data, **options)["row"]
    return found


def crf(**changes: Any) -> tw.CRF:
    """Return the CRF of BASE."""
    return tw.CRF(**{"features": "S1", "max_iter": 2, **changes})


@row("Cell", "corpus", "learner", "features", "params")
def cell_names(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """The learner that is trained and the names under which it is shown."""
    for changes, expected in (
        ({}, crf()),
        ({"corpus": "z"}, crf()),
        ({"features": "S2"}, crf(features="S2")),
        ({"params": {"max_iter": 4, "l2": 0.2}}, crf(max_iter=4, l2=0.2)),
        ({"learner": ComparedLearner("mine", "crf", {"l2": 7.0})}, crf(l2=7.0)),
        ({"learner": parse("crf(max_iter=5)")}, crf(max_iter=5)),
    ):
        cell = replace(BASE, **changes)
        found = measured(cell)
        assert found["accuracy"] == accuracy(expected)
        assert found["nonzero"] == expected.n_nonzero_
        assert found["iterations"] == len(expected.history_)
        names = (cell.corpus, cell.learner.name, cell.features)
        assert (found["corpus"], found["learner"], found["features"]) == names


@row("Cell", "size", "seed")
def cell_draw(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """The first sentences or, for another seed, an ordered sample of all. The learner uses that seed too."""
    for size, seed in ((None, 0), (None, 2), (7, 0), (7, 1), (7, 2)):
        chosen = list(range(24 if size is None else size))
        if size is not None and seed:
            chosen = sorted(random.Random(seed).sample(range(24), size))
        expected = tw.Perceptron(features="S1", max_iter=2, random_state=seed).fit(
            tw.Corpus([TRAIN[i] for i in chosen])
        )
        cell = Cell("a", parse("perceptron"), "S1", size, seed, QUICK)
        found = measured(cell)
        assert (found["sentences"], found["seed"]) == (len(chosen), seed)
        assert (found["accuracy"], found["nonzero"]) == (
            expected.evaluate(TEST).accuracy,
            expected.n_nonzero_,
        )


@row("Cell", "tune", "tune_size", "folds")
def cell_choice(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """A value's score is its mean over the held-out parts. The best value wins, the first one in a tie."""
    values = [30.0, 1.0, 0.01]
    for tune_size, folds in ((None, 1), (None, 2), (None, 5), (12, 1), (13, 3)):
        cell = replace(BASE, tune={"l2": values}, tune_size=tune_size, folds=folds, params={"max_iter": 6})
        store, names = Cache(None), Names({"a": DATA})
        found = measured(cell, cache=store, names=names)
        part = list(TRAIN)[:tune_size]
        expected = []
        for value in values:
            scores = []
            for fold in range(folds):
                scored = part[4 - fold :: 5]
                fitted = [s for i, s in enumerate(part) if i % 5 != 4 - fold]
                tagger = crf(l2=value, max_iter=6).fit(tw.Corpus(fitted))
                scores.append(tagger.score(tw.Corpus(scored)))
            expected.append(sum(scores) / folds)
            kept = store.get(names.key(cell, trial={"l2": value}))
            assert kept is not None
            assert kept["score"] == pytest.approx(expected[-1], abs=1e-12)
        best = values[expected.index(max(expected))]
        assert found["chosen"] == f"l2={best:g}"
        assert found["accuracy"] == accuracy(crf(l2=best, max_iter=6))
    for equals in ((1e-3, 1e-2), (1e-2, 1e-3)):  # neither matters within two iterations
        tied = replace(BASE, tune={"tol": equals})
        assert measured(tied)["chosen"] == f"tol={equals[0]:g}"
    two = {"l2": [5.0], "min_count": [2]}
    for tuned in (two, dict(reversed(two.items()))):
        found = measured(replace(BASE, tune=tuned))
        assert found["chosen"] == "l2=5, min_count=2"
        assert found["accuracy"] == accuracy(crf(l2=5.0, min_count=2))
    assert measured(BASE)["chosen"] == ""


@row("Cell", "dev")
def cell_dev(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """The dev part is scored too and does not influence any choice."""
    report = crf().fit(TRAIN).evaluate(DEV)
    found = measured(replace(BASE, dev=True))
    assert (found["dev_accuracy"], found["dev_f1"]) == (report.accuracy, report.f1)
    assert found["accuracy"] == accuracy(crf())
    plain = measured(BASE)
    assert (plain["dev_accuracy"], plain["dev_f1"]) == (None, None)
    assert measured(replace(BASE, dev=True), Data(TRAIN, TEST))["dev_accuracy"] is None


@row("Cell", "track")
def cell_track(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """The dev part is scored after every iteration, and the best iterate is kept."""
    given = {"max_iter": 40, "average": False}
    cell = replace(BASE, learner=parse("perceptron"), params=given, track=True)
    result = measure(cell, DATA)
    expected = tw.Perceptron(features="S1", **given, patience=0).fit(TRAIN, dev=DEV)
    scores = [entry["dev_score"] for entry in result["detail"]["history"]]
    assert scores == [entry["dev_score"] for entry in expected.history_]
    assert (len(scores), None in scores) == (40, False)
    assert result["detail"]["strongest"] == expected.inspect(12).labels
    plain = measure(replace(cell, track=False), DATA)
    assert {entry["dev_score"] for entry in plain["detail"]["history"]} == {None}
    last = tw.Perceptron(features="S1", **given).fit(TRAIN)
    assert plain["detail"]["strongest"] == last.inspect(12).labels != result["detail"]["strongest"]
    assert replace(BASE, track=True).settings()["patience"] == 0
    assert "patience" not in BASE.settings()


@row("Cell", "risks")
def cell_risks(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Ranks and margins of gold paths in k-best lists, or none if the search has no exact lists."""
    result = measure(replace(BASE, risks=6), DATA)
    found = crf().fit(TRAIN).model_.ranks(TEST, k=6)
    assert result["detail"]["ranks"] == found.rank.tolist()
    assert result["detail"]["k"] == 6
    assert result["row"]["rank"] == found.risk
    assert "ranks" not in measure(BASE, DATA)["detail"]
    history = replace(
        BASE, learner=ComparedLearner("perceptron", "perceptron", {"lookback": (1, 2)}), risks=6
    )
    assert measure(history, DATA)["row"]["rank"] is None


def test_documents_reach_the_cells() -> None:
    """Document boundaries determine document features, on the whole corpus and on a sample."""
    learner = parse("mira(lookback=(1,1:document=true), max_iter=4)")
    one = tw.Corpus(
        [tw.Sentence(s.fields, s.label, doc="x" if i == 0 else None) for i, s in enumerate(TRAIN)]
    )
    cell = replace(BASE, learner=learner)
    found = [measure(cell, Data(train, TEST))["detail"]["strongest"] for train in (TRAIN, one)]
    made = [
        tw.MIRA(features="S1", lookback=tw.Lookback(document=True), max_iter=4).fit(train)
        for train in (TRAIN, one)
    ]
    assert found == [tagger.inspect(12).labels for tagger in made]
    assert found[0] != found[1]
    assert [s.doc for s in draw(TRAIN, 20, 3)] == [
        TRAIN[i].doc for i in sorted(random.Random(3).sample(range(24), 20))
    ]


@pytest.mark.parametrize(("n", "size"), [(24, None), (23, None), (24, 12), (24, 11), (6, None)])
def test_folds_partition_the_sentences(n: int, size: int | None) -> None:
    """Every sentence is scored in exactly one of five folds and trained on in the other four."""
    data = tw.Corpus([tw.Sentence({"word": [str(i)], "label": ["A"]}, "label") for i in range(n)])
    part = [str(i) for i in range(n)][:size]
    scored: list[str] = []
    for fold in range(5):
        fitted, held = ([s.tokens[0] for s in half] for half in held_out(data, size, fold))
        assert held == part[4 - fold :: 5]
        assert fitted == [word for word in part if word not in held]
        scored += held
    assert sorted(scored, key=int) == part
    assert held_out(data, size)[1] == held_out(data, size, 0)[1]


def test_samples_can_contain_every_sentence_in_order() -> None:
    """A sample keeps the order, has no duplicates and can contain any sentence. Seed 0 takes the first ones."""
    data = tw.Corpus([tw.Sentence({"word": [str(i)], "label": ["A"]}, "label") for i in range(20)])
    seen: set[int] = set()
    for seed in range(1, 30):
        chosen = [int(s.tokens[0]) for s in draw(data, 6, seed)]
        assert chosen == sorted(set(chosen))
        assert len(chosen) == 6
        seen.update(chosen)
    assert seen == set(range(20))
    assert draw(data, 6, 0) == data[:6]
    assert draw(data, 20, 3) is draw(data, 99, 3) is draw(data, None, 3) is data


# --- the laws -----------------------------------------------------------------------------------------------


def test_every_field_has_a_row() -> None:
    """Every keyword and every field has a row."""
    assert ROWS["compare"].keys() == set(inspect.signature(tw.compare).parameters)
    assert ROWS["run"].keys() == set(inspect.signature(run).parameters)
    assert ROWS["Cell"].keys() == {f.name for f in fields(Cell)}


CASES = {f"{owner} {name}": check for owner, checks in ROWS.items() for name, check in checks.items()}
ONCE = {check: name for name, check in CASES.items()}


@pytest.mark.parametrize("case", ONCE.values())
def test_field_changes_the_result(case: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The check of a field passes."""
    CASES[case](monkeypatch, tmp_path)
