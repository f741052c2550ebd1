"""Every option of every command has a check. Those of ``train`` and of ``tagwise`` itself are in this file."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import tagwise as tw
from tagwise.base.parameters import parameters_of
from tagwise.cli import cli
from tagwise.estimators import LEARNERS
from tagwise.learners.backends import BACKENDS, Backend
from tagwise.learners.sharded.config import LocalParts, ShardConfig

from ..golden.corpus import shapes
from .options import (
    DEV,
    QUICK,
    ROWS,
    TEST,
    TRAIN,
    Bench,
    cases,
    crf,
    debug,
    debug_row,
    fitted,
    invoke,
    row,
    spellings,
)


def test_every_option_has_a_check() -> None:
    """Each spelling of each option and argument of each command has a check, and each check belongs to one."""
    for path in Path(__file__).parent.glob("test_options_*.py"):
        assert importlib.import_module(f".{path.stem}", __package__).test_options
    every = {(name, text) for name in ("", *cli.commands) for text in spellings(name)}
    assert ROWS.keys() == every


# --- all of them --------------------------------------------------------------------------------------------


@row("", "--version")
def version(bench: Bench) -> None:
    """--version prints the version to stdout. Without it, the menu is shown."""
    assert bench.ok("--version").stdout == f"tagwise {tw.__version__}\n"
    assert tw.__version__ not in invoke().output


debug_row("train", "absent.txt", "-o", "m.tagwise")
row("", "--debug")(lambda bench: debug("inspect", "absent.tagwise"))


# --- train --------------------------------------------------------------------------------------------------


Case = tuple[tuple[object, ...], Callable[[Bench], tw.Tagger]]


def old(bench: Bench) -> tw.Tagger:
    """Save a model of other words and labels as ``old.tagwise`` and return it."""
    tagger = crf(max_iter=5).fit([["Nils", "sings"]], [["NEW", "X"]])
    bench.saved(tagger, "old.tagwise")
    return tagger


def best_of_path(bench: Bench) -> tw.Tagger:
    """Fit the strengths in order from strong to weak, each from the last, and return the best on DEV."""
    taggers, last = [], None
    for l2 in (50.0, 1.0, 0.01):
        last = crf(l2=l2).fit(TRAIN, warm_start=last)
        taggers.append(last)
    return max(taggers, key=lambda tagger: tagger.evaluate(DEV).score)


#: Calls and the model that each must write. Words in capitals are files of the bench.
MODELS: dict[tuple[str, ...], list[Case]] = {
    ("corpus",): [
        (("DEV",), lambda _: crf().fit(DEV)), (("wnut17-ner",), lambda _: crf().fit(TEST)),
        (("wnut17-ner:train",), lambda _: crf().fit(TEST)),
        (("wnut17-ner:dev",), lambda _: crf().fit(DEV)),
    ],
    ("--dev",): [
        (
            ("TRAIN", "--dev", "DEV", "--set", "max_iter=30", "--set", "l2=0.001"),
            lambda _: crf(max_iter=30, l2=0.001).fit(TRAIN, dev=DEV),
        ),
    ],
    ("--learner",): [
        (("TRAIN", "--learner", "crf-l1"), lambda _: tw.CRF(features="S1", l1=0.1, l2=0.0).fit(TRAIN)),
        (
            ("TRAIN", "--learner", "mira(k=2)", "--set", "max_iter=2"),
            lambda _: tw.MIRA(features="S1", max_iter=2, k=2).fit(TRAIN),
        ),
    ],
    ("--features", "-f"): [
        (("TRAIN", "-f", "S2"), lambda _: crf(features="S2").fit(TRAIN)),
        (("TRAIN", "--features", "word[0]\npos[1]"), lambda _: crf(features="word[0]\npos[1]").fit(TRAIN)),
        (("TRAIN", "-f", "TEMPLATE"), lambda bench: crf(features=bench.path("TEMPLATE")).fit(TRAIN)),
        (
            ("TRAIN", "-f", "S1+gazetteer:CITIES+regex:names=[A-Z]+[a-z]*+function:tests.golden.corpus:shapes"),
            lambda bench: crf(
                features=tw.Features(
                    "S1", tw.Gazetteer(bench.path("CITIES")), tw.Regex("names", "[A-Z]+[a-z]*"), shapes
                )
            ).fit(TRAIN),
        ),
    ],
    ("--loss",): [(("TRAIN", "--loss", "exp"), lambda _: crf(loss="exp").fit(TRAIN))],
    ("--set",): [
        (
            ("TRAIN", "--set", "l2=5", "--set", "l2=0.3", "--set", "start_end=false", "--set", "min_count=2"),
            lambda _: crf(l2=0.3, start_end=False, min_count=2).fit(TRAIN),
        ),
        (("TRAIN", "--loss", "exp", "--set", "loss=log", "--set", "l2=3"), lambda _: crf(l2=3.0).fit(TRAIN)),
    ],
    ("--lookback",): [
        (
            ("TRAIN", "--learner", "perceptron(max_iter=3)", "--lookback", "1,3"),
            lambda _: tw.Perceptron(features="S1", max_iter=3, lookback=(1, 3)).fit(TRAIN),
        ),
        (
            ("TRAIN", "--learner", "mira(max_iter=3)", "--lookback", "1,1:document=true"),
            lambda _: tw.MIRA(features="S1", max_iter=3, lookback=tw.Lookback(document=True)).fit(TRAIN),
        ),
    ],
    ("--max-iter",): [
        (("TRAIN", "--max-iter", "2"), lambda _: crf(max_iter=2).fit(TRAIN)),
        (("TRAIN", "--learner", "mira", "--max-iter", "2"), lambda _: tw.MIRA(features="S1", max_iter=2).fit(TRAIN)),
    ],
    ("--kernel",): [
        (
            ("TRAIN", "--learner", "perceptron(max_iter=2)", "--kernel", "poly:degree=3,coef=0.5"),
            lambda _: tw.Perceptron(features="S1", max_iter=2, kernel=tw.Poly(3, 0.5)).fit(TRAIN),
        ),
    ],
    ("--dictionary",): [
        (("TRAIN", "--dictionary", "2"), lambda _: crf(dictionary=2).fit(TRAIN)),
        (("TRAIN", "--dictionary", "2:share=0.6"), lambda _: crf(dictionary=tw.Dictionary(2, share=0.6)).fit(TRAIN)),
    ],
    ("--partial",): [(("TRAIN", "--partial"), lambda _: crf(partial=True).fit(TRAIN))],
    ("--seed",): [
        (
            ("TRAIN", "--learner", "perceptron(max_iter=2)", "--seed", "5"),
            lambda _: tw.Perceptron(features="S1", max_iter=2, random_state=5).fit(TRAIN),
        ),
    ],
    ("--path",): [
        (("TRAIN", "--path", "l2=0.01,50,1", "--dev", "DEV"), best_of_path),
        (("TRAIN", "--path", "l2=0.5"), lambda _: crf(l2=0.5).fit(TRAIN, warm_start=crf(l2=0.5).fit(TRAIN[:22]))),
    ],
    ("--warm-start",): [
        (("TRAIN", "--warm-start", "old.tagwise"), lambda bench: crf().fit(TRAIN, warm_start=old(bench))),
        (
            ("TRAIN", "--warm-start", "old.tagwise", "--path", "l2=2", "--dev", "DEV"),
            lambda bench: crf(l2=2.0).fit(TRAIN, warm_start=old(bench)),
        ),
    ],
    ("--forget",): [
        (
            ("TRAIN", "--warm-start", "old.tagwise", "--forget"),
            lambda bench: crf().fit(TRAIN, warm_start=old(bench), forget=True),
        ),
        (
            ("TRAIN", "--warm-start", "old.tagwise", "--forget", "--path", "l2=2", "--dev", "DEV"),
            lambda bench: crf(l2=2.0).fit(TRAIN, warm_start=old(bench), forget=True),
        ),
    ],
    ("--columns",): [
        (
            ("TRAIN", "-f", "kind[0]", "--columns", "word,kind,label"),
            lambda _: crf(features="kind[0]").fit(
                tw.Corpus(
                    tw.Sentence({"word": s.tokens, "kind": s.fields["pos"], "label": s.labels}, "label")
                    for s in TRAIN
                )
            ),
        ),
    ],
    ("--format",): [
        (("train.jsonl", "--dev", "dev.jsonl", "--format", "conll"), lambda _: crf().fit(TRAIN, dev=DEV)),
    ],
}  # fmt: skip


def model_row(spellings: tuple[str, ...], calls: list[Case]) -> None:
    """Register an option by the models that it writes. Each differs from the model without the option."""

    @row("train", *spellings)
    def check(bench: Bench) -> None:
        bench.patch.setattr("tagwise.cli.files.load_corpus", lambda *_: (TEST, DEV, TRAIN))
        files = {"TRAIN": bench.train, "DEV": bench.dev, "old.tagwise": bench.path("old.tagwise")}
        files["TEMPLATE"] = bench.path("TEMPLATE", "word[0]\nword[-1] & pos[0]\n")
        for name, source in (("train.jsonl", bench.train), ("dev.jsonl", bench.dev)):
            files[name] = bench.path(name, source.read_text())
        cities = bench.path("CITIES", "Lund\nNew Lund\n")
        for words, make in calls:
            expected = bench.bytes_of(make(bench))
            args = [files.get(str(word), str(word).replace("CITIES", str(cities))) for word in words]
            few = () if {"--learner", "--max-iter", "max_iter=30"} & set(words) else ("--set", "max_iter=4")
            features = () if {"-f", "--features"} & set(words) else ("-f", "S1")
            assert bench.made(*args, quick=("-q", *features, *few)) == expected, words
            if spellings not in [("--format",), ("--forget",)]:
                assert expected != bench.bytes_of(fitted())


for _spellings, _calls in MODELS.items():
    model_row(_spellings, _calls)


def test_default_options(bench: Bench) -> None:
    """The default is a CRF with the default features and seed 0."""
    assert bench.made(bench.train, quick=("-q", "--set", "max_iter=4")) == bench.bytes_of(
        crf(features="default").fit(TRAIN)
    )
    assert bench.made(bench.train, "--seed", 0, "--learner", "crf") == bench.bytes_of(fitted())


@row("train", "--label")
def train_label(bench: Bench) -> None:
    """--label chooses the column to learn. Default: the last one."""
    named = ("--columns", "word,pos,entity")
    for options, column in (
        ((), "label"),
        (("--label", "pos"), "pos"),
        (named, "label"),
        ((*named, "--label", "pos"), "pos"),
    ):
        bench.made(bench.train, *options)
        classes = set(tw.load(bench.path("made.tagwise")).classes_)
        assert classes == {value for s in TRAIN for value in s.fields[column]}, options
    conllu = bench.path("a.conllu", "1\ta\t_\tX\tY\t_\t0\troot\t_\t_\n2\tb\t_\tX\tZ\t_\t1\tx\t_\t_\n\n")
    for options, labels in (((), {"X"}), (("--label", "xpos"), {"Y", "Z"})):
        bench.made(conllu, *options)
        assert set(tw.load(bench.path("made.tagwise")).classes_) == labels


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("TRAIN", "--loss", "hinge-of-doom"), "hinge-of-doom"),
        *((("TRAIN", "--path", wrong), wrong[:2]) for wrong in ("l2", "l2=", "l2=x", "colour=1,2")),
        (("TRAIN", "--forget"), "--warm-start"),
        (("TRAIN", "-f", "kind[0]"), "kind"),
        (("TRAIN", "--label", "colour"), "--columns"),
        (("TRAIN", "--columns", "word,pos,entity", "--label", "colour"), "colour"),
        (("train.jsonl",), "JSON"),
    ],
)
def test_wrong_usage_exits_with_2_and_writes_no_file(
    bench: Bench, args: tuple[str, ...], message: str
) -> None:
    """Wrong usage exits with code 2 and a reason, and writes no file."""
    files = {"TRAIN": bench.train, "train.jsonl": bench.path("train.jsonl", bench.train.read_text())}
    result = invoke("train", *(files.get(word, word) for word in args), "-o", bench.path("x"))
    assert (result.exit_code, result.stdout, bench.path("x").exists()) == (2, "", False)
    assert message in result.stderr


@row("train", "-q", "--quiet")
def train_quiet(bench: Bench) -> None:
    """No summary and no progress. Without it, lines on the training set, the iteration that was kept, and the file."""
    base = ("train", bench.train, "-o", bench.path("x"), "-f", "S1", "--set", "max_iter=4")
    for more in (("-q",), ("--quiet",), ("--path", "l2=1,2", "-q")):
        quiet = bench.ok(*base, *more)
        assert (quiet.stdout, quiet.stderr) == ("", "")
    loud = bench.ok(*base, "--dev", bench.dev)
    trained, kept, wrote = loud.stderr.splitlines()
    assert trained.startswith("trained crf on 24 sentences, ")
    assert re.fullmatch(
        r"kept iteration \d of 4 \(best dev F1 [\d.]+, objective [\d.]+\)\. Training ended by max_iter=4 reached",
        kept,
    )
    assert wrote.startswith(f"wrote {bench.path('x')} (")
    shown = functools.partial(Console, force_terminal=True, width=200)
    bench.patch.setattr(importlib.import_module("tagwise.cli.train"), "Console", shown)
    assert "4/4" in bench.ok(*base).stderr
    assert bench.ok(*base, "-q").stderr == ""


@row("train", "-o", "--output")
def train_output(bench: Bench) -> None:
    """-o is required and gives the path of the model."""
    for spelling in ("-o", "--output"):
        out = bench.path(f"x{spelling}")
        bench.ok("train", bench.train, spelling, out, *QUICK)
        assert out.read_bytes() == bench.bytes_of(fitted())
    assert "-o" in (missing := invoke("train", bench.train)).stderr
    assert missing.exit_code == 2
    folder = invoke("train", bench.train, "-o", bench.folder)
    assert (folder.exit_code, folder.stdout) == (2, "")
    assert "folder" in folder.stderr


@row("train", "--memory", "--backend")
def train_shards(bench: Bench) -> None:
    """A folder of shards replaces the corpus. --memory and --backend do not change the model."""
    folder = bench.path("enc")
    bench.ok("encode", bench.train, "-o", folder, "-q", "-f", "S1", "--shard-tokens", 20)
    plain = bench.made(folder)
    assert plain == bench.bytes_of(tw.fit_shards(crf(), tw.Shards(folder)))
    assert plain == bench.made(folder, "--memory", "1K") == bench.made(folder, "--backend", "local")
    scored = bench.made(folder, "--dev", bench.dev)
    assert scored == bench.bytes_of(tw.fit_shards(crf(), tw.Shards(folder), dev=DEV))
    assert "--memory" in invoke("train", folder, "-o", bench.path("x"), "--memory", "much").stderr
    for option in (("--memory", "1G"), ("--backend", "local")):
        refused = invoke("train", bench.train, "-o", bench.path("x"), *option)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "requires a folder of shards" in refused.stderr
    assert "--path" in invoke("train", folder, "-o", bench.path("x"), "--path", "l2=1,2").stderr


@row("train", "--parts")
def train_parts(bench: Bench) -> None:
    """--parts N trains N parts of the shards at the same time."""
    folder = bench.path("enc")
    bench.ok("encode", bench.train, "-o", folder, "-q", "-f", "S1", "--shard-tokens", 20)
    expected = [
        bench.bytes_of(tw.fit_shards(crf(optimizer="dual"), tw.Shards(folder), parts=n)) for n in (1, 2)
    ]
    assert bench.made(folder, "--set", "optimizer=dual", "--parts", 2) == expected[1] != expected[0]
    refused = invoke("train", bench.train, "-o", bench.path("x"), "--parts", 2)
    assert "--parts requires a folder of shards" in refused.stderr


@row("train", "--on-error")
def train_on_error(bench: Bench) -> None:
    """A damaged shard stops the run, or with ``skip`` is reported and left out."""
    folder = bench.path("enc")
    bench.ok("encode", bench.train, "-o", folder, "-q", "-f", "S1", "--shard-tokens", 20)
    expected = bench.bytes_of(tw.fit_shards(crf(), tw.Shards(folder, skipped=[1])))
    (folder / "shard-00001.arrays").write_bytes(b"")
    for option in ((), ("--on-error", "stop")):
        stopped = invoke("train", folder, "-o", bench.path("x"), *option)
        assert stopped.exit_code != 0
        assert "shard-00001.arrays" in stopped.stderr
    assert bench.made(folder, "--on-error", "skip") == expected
    refused = invoke("train", bench.train, "-o", bench.path("x"), "--on-error", "skip")
    assert "--on-error requires a folder of shards" in refused.stderr


@row("train", "--address", "--workers")
def train_cluster(bench: Bench) -> None:
    """--address and --workers require --backend ray and are passed to Ray."""
    folder = bench.path("enc")
    bench.ok("encode", bench.train, "-o", folder, "-q", "-f", "S1")
    for option in (("--address", "auto"), ("--workers", 2)):
        refused = invoke("train", folder, "-o", bench.path("x"), *option)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert f"{option[0]} requires --backend ray" in refused.stderr
    requested: list[object] = []
    for module in ("backend", "pool"):
        bench.patch.setattr(f"tagwise.ray.{module}.connected", lambda address=None: requested.append(address))

    def workers(shards: tw.Shards, config: ShardConfig, n: int) -> LocalParts:
        requested.append(n)
        return LocalParts(shards, config)

    bench.patch.setattr("tagwise.ray.backend.RayParts", workers)
    ray = bench.made(folder, "--backend", "ray", "--address", "auto", "--workers", 2)
    assert ray == bench.made(folder)
    assert requested == ["auto", None, 2]


@row("train", "--checkpoint", "--resume")
def train_checkpoint(bench: Bench) -> None:
    """The checkpoint is next to the model during training. --resume continues from it, or starts over without one."""
    out, kept = bench.path("c.tagwise"), bench.path("c.tagwise.checkpoint")
    plain = bench.made(bench.train)
    call = ("train", bench.train, "-o", out, *QUICK)
    began = bench.ok(*call, "--resume")
    assert f"{kept} does not exist. Training starts from the beginning" in began.stderr
    assert (out.read_bytes(), kept.exists()) == (plain, False)
    crf().fit(TRAIN, checkpoint=tw.Checkpoint(kept, every=2), callbacks=[lambda e: e.iteration == 2])
    entries: list[int] = []
    inner = tw.CRF.fit

    def noting(tagger: tw.CRF, *args: object, **options: object) -> object:
        options["callbacks"] = [lambda entry: entries.append(entry.iteration)]
        return inner(tagger, *args, **options)  # type: ignore[arg-type]

    bench.patch.setattr(tw.CRF, "fit", noting)
    assert bench.ok(*call, "--resume").stderr == ""
    assert (entries, out.read_bytes(), kept.exists()) == ([3, 4], plain, False)
    bench.ok(*call, "--checkpoint", "every=1")
    assert (entries, kept.exists()) == ([3, 4, 1, 2, 3, 4], False)
    crf().fit(TRAIN, checkpoint=tw.Checkpoint(kept, every=2))
    other = invoke(*call, "--resume", "--set", "l2=7")
    assert (other.exit_code, other.stderr.count("\n")) == (2, 1)
    assert "l2 was 0.1 and is 7.0 now" in other.stderr
    assert kept.exists()
    for wrong in ("5m", "every", "every=", "every=never", "each=5m"):
        refused = invoke(*call, "--checkpoint", wrong)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "--checkpoint" in refused.stderr
    both = invoke(*call, "--checkpoint", "every=1", "--path", "l2=1,2")
    assert (both.exit_code, both.stdout) == (2, "")


@row("train", "--n-jobs")
def train_n_jobs(bench: Bench) -> None:
    """--n-jobs sets the number of training threads and does not change the model."""
    threads = bench.threads()
    plain = bench.made(bench.train)
    assert bench.made(bench.train, "--n-jobs", 3) == plain
    assert threads == [None, 3]
    assert invoke("train", bench.train, "--n-jobs", 0, "-o", bench.path("x")).exit_code == 2


@row("train", "--device")
def train_device(bench: Bench) -> None:
    """The chosen backend trains. An unavailable backend and a learner without a device parameter are rejected."""
    used: list[str] = []
    cpu = BACKENDS["cpu"]

    def made(problem: Any) -> Any:
        used.append("objective")
        return cpu.objective(problem)

    plain = bench.made(bench.train, "--device", "cpu", "--set", "optimizer=lbfgs")
    bench.patch.setitem(BACKENDS, "cuda", Backend("cuda", made, cpu.scorer))
    there = bench.made(bench.train, "--device", "cuda", "--set", "optimizer=lbfgs")
    assert used == ["objective"]
    assert tw.load(bench.path("made.tagwise")).device == "cuda"
    assert len(there) > 0
    assert len(plain) > 0

    def missing() -> None:
        raise tw.exceptions.ParameterError("device='cuda': PyTorch finds no GPU. Use device='cpu'")

    bench.patch.setitem(BACKENDS, "cuda", Backend("cuda", made, cpu.scorer, check=missing))
    refused = invoke("train", "no-such-file", "--device", "cuda", "-o", bench.path("x"))
    assert refused.exit_code == 2
    assert "PyTorch finds no GPU. Use --device cpu" in " ".join(refused.output.split())
    refused = invoke("train", bench.train, "--learner", "mira", "--device", "cpu", "-o", bench.path("x"))
    assert refused.exit_code == 2
    assert "has no parameter 'device'" in refused.output
    assert not bench.path("x").exists()


@row("train", "--params")
def train_params(bench: Bench) -> None:
    """--params prints every learner's parameters to stdout. It needs no other argument and trains nothing."""
    listed = bench.ok("train", "--params").stdout
    for name, kind in LEARNERS.items():
        (begin,) = [i for i, line in enumerate(listed.splitlines()) if line.strip() == name]
        table = listed.splitlines()[begin + 1 :]
        rows = [line.split()[0] for line in table if line.split()]
        for param in parameters_of(kind):
            assert param in rows, (name, param)
    assert invoke("train").exit_code == 2


@row("train", "--prune")
def train_prune(bench: Bench) -> None:
    """--prune leaves features of weight zero out of the file, also after --path. Predictions stay equal."""
    sparse = ("--set", "l1=0.7", "--set", "l2=0", "--set", "max_iter=30")
    for more in ((), ("--path", "l1=0.7", "--dev", bench.dev)):
        whole = bench.made(bench.train, *sparse, *more)
        tagger = tw.load(bench.path("made.tagwise"))
        pruned = bench.made(bench.train, *sparse, *more, "--prune")
        small = tw.load(bench.path("made.tagwise"))
        assert 0 < small.n_features_ == small.n_nonzero_ == tagger.n_nonzero_ < tagger.n_features_
        assert len(pruned) < len(whole)
        assert small.predict(TEST) == tagger.predict(TEST)


@pytest.mark.parametrize("case", cases("", "train"))
def test_options(bench: Bench, case: str) -> None:
    """Run the check of one option."""
    cases("", "train")[case](bench)
