"""Every option of every command matters: with and without it the outcome differs as its help says."""

from __future__ import annotations

import functools
import sys
from typing import Any

import pytest
from rich.console import Console

import tagwise as tw
from tagwise.cli import cli
from tagwise.estimators import LEARNERS
from tagwise.learners.backends import BACKENDS, Backend
from tagwise.learners.sharded.objective import local

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


def test_every_option_has_a_row() -> None:
    """Each spelling of each option and argument of each command has a row, and each row such an option."""
    from . import (
        test_options_annotate,
        test_options_compare,
        test_options_encode,
        test_options_others,
        test_options_pretrained,
        test_options_reading,
        test_options_serve,
        test_options_tag,
    )

    assert test_options_annotate.test_options
    assert test_options_compare.test_options
    assert test_options_encode.test_options
    assert test_options_others.test_options
    assert test_options_pretrained.test_options
    assert test_options_reading.test_options
    assert test_options_serve.test_options
    assert test_options_tag.test_options
    every = {(name, text) for name in ("", *cli.commands) for text in spellings(name)}
    assert ROWS.keys() == every


# --- all of them --------------------------------------------------------------------------------------------


@row("", "--version")
def version(bench: Bench) -> None:
    """The version on stdout; without it the menu."""
    assert bench.ok("--version").stdout == f"tagwise {tw.__version__}\n"
    assert tw.__version__ not in invoke().output


debug_row("train", "absent.txt", "-o", "m.tagwise")
row("", "--debug")(lambda bench: debug("inspect", "absent.tagwise"))


# --- train --------------------------------------------------------------------------------------------------


@row("train", "corpus")
def train_corpus(bench: Bench) -> None:
    """The model is that of the named file, of stdin, of the training part of a known corpus."""
    whole = bench.made(bench.train)
    assert whole == bench.bytes_of(fitted())
    assert bench.made(bench.dev) == bench.bytes_of(crf().fit(DEV)) != whole
    parts = {"wnut17-ner": TEST, "wnut17-ner:train": TEST, "wnut17-ner:dev": DEV}
    bench.patch.setattr("tagwise.cli.files.load_corpus", lambda *_: (TEST, DEV, TRAIN))
    for name, part in parts.items():
        assert bench.made(name) == bench.bytes_of(crf().fit(part))


@row("train", "-o", "--output")
def train_output(bench: Bench) -> None:
    """The model lies where it was asked for, and it is asked for."""
    for spelling in ("-o", "--output"):
        out = bench.path(f"x{spelling}")
        bench.ok("train", bench.train, spelling, out, *QUICK)
        assert out.read_bytes() == bench.bytes_of(fitted())
    assert "-o" in (missing := invoke("train", bench.train)).stderr
    assert missing.exit_code == 2
    folder = invoke("train", bench.train, "-o", bench.folder)
    assert (folder.exit_code, folder.stdout) == (2, "")
    assert "folder" in folder.stderr


@row("train", "--dev")
def train_dev(bench: Bench) -> None:
    """Dev scores while training; the best iterate is kept, and its score is in file and summary."""
    many = ("-f", "S1", "--set", "max_iter=30", "--set", "l2=0.001")
    with_dev = bench.made(bench.train, "--dev", bench.dev, quick=("-q", *many))
    expected = crf(max_iter=30, l2=0.001).fit(TRAIN, dev=DEV)
    assert with_dev == bench.bytes_of(expected) != bench.made(bench.train, quick=("-q", *many))
    assert expected.best_iteration_ < len(expected.history_)
    best = max(step["dev_score"] for step in expected.history_)
    said = bench.ok("train", bench.train, "--dev", bench.dev, *many, "-o", bench.path("x"))
    assert f"; dev {100 * best:.2f};" in said.stderr
    assert "dev " not in bench.ok("train", bench.train, *many, "-o", bench.path("x")).stderr


@row("train", "--learner")
def train_learner(bench: Bench) -> None:
    """The learner of that name, with the parameters that its name settles; a CRF if not given."""
    small = ("-q", "-f", "S1")
    assert bench.made(bench.train) == bench.made(bench.train, "--learner", "crf")
    for name, expected in (
        ("perceptron(epochs=2)", tw.Perceptron(features="S1", epochs=2)),
        ("mira(k=2, epochs=2)", tw.MIRA(features="S1", epochs=2, k=2)),
        ("crf-l1", tw.CRF(features="S1", l1=0.1, l2=0.0)),
    ):
        assert bench.made(bench.train, "--learner", name, quick=small) == bench.bytes_of(expected.fit(TRAIN))


@row("train", "--features", "-f")
def train_features(bench: Bench) -> None:
    """A set, a template, a file with one or a sum; all of a model's features if not given."""
    cities = bench.path("cities.txt", "Lund\nNew Lund\n")
    template = bench.path("template.txt", "word[0]\nword[-1] & pos[0]\n")
    base = ("-q", "--set", "max_iter=4")
    for spelling in ("--features", "-f"):
        for given, features in (
            ("S2", "S2"),
            ("word[0]\npos[1]", "word[0]\npos[1]"),
            (template, template),
            (
                f"S1+gazetteer:{cities}+regex:names=[A-Z]+[a-z]*+function:tests.golden.corpus:shapes",
                tw.Features("S1", tw.Gazetteer(cities), tw.Regex("names", "[A-Z]+[a-z]*"), shapes),
            ),
            (None, "default"),
        ):
            options = () if given is None else (spelling, given)
            assert bench.made(bench.train, *options, quick=base) == bench.bytes_of(
                crf(features=features).fit(TRAIN)
            )


@row("train", "--loss")
def train_loss(bench: Bench) -> None:
    """The loss that is trained; one that nobody has is wrong usage."""
    exp = bench.made(bench.train, "--loss", "exp")
    assert exp == bench.bytes_of(crf(loss="exp").fit(TRAIN)) != bench.made(bench.train)
    wrong = invoke("train", bench.train, "--loss", "hinge-of-doom", "-o", bench.path("x"))
    assert wrong.exit_code == 2
    assert "hinge-of-doom" in wrong.stderr


@row("train", "--set")
def train_set(bench: Bench) -> None:
    """Any parameter, again and again; the last word counts, also over an option of its own."""
    found = bench.made(bench.train, "--set", "l2=0.3", "--set", "start_end=false", "--set", "min_count=2")
    assert found == bench.bytes_of(crf(l2=0.3, start_end=False, min_count=2).fit(TRAIN))
    again = bench.made(bench.train, "--loss", "exp", "--set", "loss=log", "--set", "l2=5", "--set", "l2=0.3")
    assert again == bench.bytes_of(crf(l2=0.3).fit(TRAIN))


@row("train", "--history")
def train_history(bench: Bench) -> None:
    """Cells and features on earlier labels."""
    options = ("--learner", "perceptron")
    quick = ("-q", "-f", "S1", "--set", "epochs=3")
    plain = bench.made(bench.train, *options, quick=quick)
    found = bench.made(bench.train, *options, "--history", "m=1,p=3", quick=quick)
    expected = tw.Perceptron(features="S1", epochs=3, history=(1, 3)).fit(TRAIN)
    assert plain != found == bench.bytes_of(expected)


@row("train", "--document")
def train_document(bench: Bench) -> None:
    """Features on the same word's labels in the document; the file's marks say where one begins."""
    options = ("--learner", "mira")
    quick = ("-q", "-f", "S1", "--set", "epochs=3")
    plain = bench.made(bench.train, *options, quick=quick)
    found = bench.made(bench.train, *options, "--document", quick=quick)
    assert plain == bench.bytes_of(tw.MIRA(features="S1", epochs=3).fit(TRAIN))
    assert plain != found == bench.bytes_of(tw.MIRA(features="S1", epochs=3, document=True).fit(TRAIN))


@row("train", "--path")
def train_path(bench: Bench) -> None:
    """One strength after the other; the best on DEV is kept, or on the last tenth, then trained on all."""
    found = bench.made(bench.train, "--path", "l2=0.01,50,1", "--dev", bench.dev)
    taggers, last = [], None
    for l2 in (50.0, 1.0, 0.01):  # from strong to weak
        last = crf(l2=l2).fit(TRAIN, warm_start=last)
        taggers.append(last)
    best = max(taggers, key=lambda tagger: tagger.evaluate(DEV).score)
    assert found == bench.bytes_of(best)
    alone = bench.made(bench.train, "--path", "l2=0.5")
    held = crf(l2=0.5).fit(TRAIN[:22])
    assert alone == bench.bytes_of(crf(l2=0.5).fit(TRAIN, warm_start=held))
    loud = bench.ok("train", bench.train, "--path", "l2=7,0.5", "-f", "S1", "-o", bench.path("x"))
    assert "regularisation path over l2" in loud.stderr
    assert "wrote" in loud.stderr
    for wrong in ("l2", "l2=", "l2=x", "colour=1,2"):
        result = invoke("train", bench.train, "--path", wrong, "-o", bench.path("y"))
        assert result.exit_code == 2, wrong
        assert wrong.partition("=")[0] in result.stderr
        assert not bench.path("y").exists()


@row("train", "--memory", "--backend")
def train_shards(bench: Bench) -> None:
    """A folder of shards in the place of a corpus; how it is worked on does not show in the model."""
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
        assert "about shards" in refused.stderr
    assert "--path" in invoke("train", folder, "-o", bench.path("x"), "--path", "l2=1,2").stderr


@row("train", "--parts")
def train_parts(bench: Bench) -> None:
    """So many parts of the shards are trained at the same time."""
    folder = bench.path("enc")
    bench.ok("encode", bench.train, "-o", folder, "-q", "-f", "S1", "--shard-tokens", 20)
    expected = [
        bench.bytes_of(tw.fit_shards(crf(optimizer="dual"), tw.Shards(folder), parts=n)) for n in (1, 2)
    ]
    assert bench.made(folder, "--set", "optimizer=dual", "--parts", 2) == expected[1] != expected[0]
    refused = invoke("train", bench.train, "-o", bench.path("x"), "--parts", 2)
    assert "--parts needs encoded shards" in refused.stderr


@row("train", "--on-error")
def train_on_error(bench: Bench) -> None:
    """A damaged shard stops the run, or is named and left out."""
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
    assert "--on-error is about shards" in refused.stderr


@row("train", "--address", "--workers")
def train_cluster(bench: Bench) -> None:
    """They are about Ray, which is told them."""
    folder = bench.path("enc")
    bench.ok("encode", bench.train, "-o", folder, "-q", "-f", "S1")
    for option in (("--address", "auto"), ("--workers", 2)):
        refused = invoke("train", folder, "-o", bench.path("x"), *option)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert f"{option[0]} is about --backend ray" in refused.stderr
    asked: list[object] = []
    for module in ("backend", "crew"):
        bench.patch.setattr(f"tagwise.ray.{module}.connected", lambda address=None: asked.append(address))
    bench.patch.setattr(
        "tagwise.ray.backend.source", lambda shards, workers: (asked.append(workers), local(shards, None))[1]
    )
    ray = bench.made(folder, "--backend", "ray", "--address", "auto", "--workers", 2)
    assert ray == bench.made(folder)
    assert asked == ["auto", None, 2]


@row("train", "--checkpoint", "--resume")
def train_checkpoint(bench: Bench) -> None:
    """The state lies beside the model while it is trained; --resume goes on from it, and begins where there is none."""
    out, kept = bench.path("c.tagwise"), bench.path("c.tagwise.checkpoint")
    plain = bench.made(bench.train)
    call = ("train", bench.train, "-o", out, *QUICK)
    began = bench.ok(*call, "--resume")
    assert f"there is no {kept} to go on from; training begins anew" in began.stderr
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
    assert "l2 was 1.0 and is 7.0 now" in other.stderr
    assert kept.exists()
    for wrong in ("5m", "every", "every=", "every=never", "each=5m"):
        refused = invoke(*call, "--checkpoint", wrong)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "--checkpoint" in refused.stderr
    both = invoke(*call, "--checkpoint", "every=1", "--path", "l2=1,2")
    assert (both.exit_code, both.stdout) == (2, "")


@row("train", "--warm-start")
def train_warm_start(bench: Bench) -> None:
    """Training begins from a model's weights: alone, and in the first step of a path."""
    first = bench.saved(crf(max_iter=30, l2=0.1).fit(TRAIN), "first.tagwise")
    one = ("-q", "-f", "S1", "--set", "max_iter=1")
    cold = bench.made(bench.train, quick=one)
    warm = bench.made(bench.train, "--warm-start", first, quick=one)
    assert cold != warm == bench.bytes_of(crf(max_iter=1).fit(TRAIN, warm_start=tw.load(first)))
    path = ("--path", "l2=2", "--dev", bench.dev)
    cold = bench.made(bench.train, *path, quick=one)
    warm = bench.made(bench.train, *path, "--warm-start", first, quick=one)
    assert cold == bench.bytes_of(crf(max_iter=1, l2=2.0).fit(TRAIN))
    assert warm == bench.bytes_of(crf(max_iter=1, l2=2.0).fit(TRAIN, warm_start=tw.load(first))) != cold
    second = crf(max_iter=1, l2=2.0).fit(TRAIN, warm_start=tw.load(first))
    last = crf(max_iter=1, l2=1e-6).fit(TRAIN, warm_start=second)
    both = bench.made(bench.train, "--path", "l2=1e-6,2", *path[2:], "--warm-start", first, quick=one)
    best = max((second, last), key=lambda tagger: tagger.evaluate(DEV).score)
    assert both == bench.bytes_of(best)


@row("train", "--forget")
def train_forget(bench: Bench) -> None:
    """Labels and features are those of the file alone, also in a path; without a model it means nothing."""
    old = crf(max_iter=5).fit([["Nils", "sings"]], [["NEW", "X"]])
    first, one = bench.saved(old, "old.tagwise"), ("-q", "-f", "S1", "--set", "max_iter=1")
    grown = bench.made(bench.train, "--warm-start", first, quick=one)
    assert grown == bench.bytes_of(crf(max_iter=1).fit(TRAIN, warm_start=old))
    alone = bench.made(bench.train, "--warm-start", first, "--forget", quick=one)
    kept = crf(max_iter=1).fit(TRAIN, warm_start=old, forget=True)
    assert alone == bench.bytes_of(kept) != grown
    assert "NEW" not in kept.classes_
    path = ("--path", "l2=1", "--dev", bench.dev, "--warm-start", first, "--forget")
    assert bench.made(bench.train, *path, quick=one) == alone
    result = invoke("train", bench.train, "--forget", "-o", bench.path("x"))
    assert (result.exit_code, bench.path("x").exists()) == (2, False)
    assert "--warm-start" in result.stderr


@row("train", "--n-jobs")
def train_n_jobs(bench: Bench) -> None:
    """The threads that train; the model is the same."""
    threads = bench.threads()
    plain = bench.made(bench.train)
    assert bench.made(bench.train, "--n-jobs", 3) == plain
    assert threads == [None, 3]
    assert invoke("train", bench.train, "--n-jobs", 0, "-o", bench.path("x")).exit_code == 2


@row("train", "--device")
def train_device(bench: Bench) -> None:
    """The engine of that name trains; one that is not there, or a learner without any, is refused at once."""
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
        raise tw.ParameterError("device='cuda': PyTorch sees no GPU here; use device='cpu'")

    bench.patch.setitem(BACKENDS, "cuda", Backend("cuda", made, cpu.scorer, check=missing))
    refused = invoke("train", "no-such-file", "--device", "cuda", "-o", bench.path("x"))
    assert refused.exit_code == 2
    assert "PyTorch sees no GPU here; use --device cpu" in " ".join(refused.output.split())
    refused = invoke("train", bench.train, "--learner", "mira", "--device", "cpu", "-o", bench.path("x"))
    assert refused.exit_code == 2
    assert "has no parameter 'device'" in refused.output
    assert not bench.path("x").exists()


@row("train", "--seed")
def train_seed(bench: Bench) -> None:
    """The seed of whatever is random; 0 if not given."""
    options, quick = ("--learner", "perceptron"), ("-q", "-f", "S2", "--set", "epochs=2")
    models = {None: bench.made(bench.train, *options, quick=quick)}
    for seed in (0, 5):
        models[seed] = bench.made(bench.train, *options, "--seed", seed, quick=quick)
        expected = tw.Perceptron(features="S2", epochs=2, seed=seed).fit(TRAIN)
        assert models[seed] == bench.bytes_of(expected)
    assert tw.load(bench.saved(fitted())).get_params()["seed"] == 0
    assert models[None] == models[0] != models[5]


@row("train", "--columns")
def train_columns(bench: Bench) -> None:
    """Names of the columns: those that features look at, and the label's, the last unless one is called so."""
    quick = ("-q", "-f", "kind[0]", "--set", "max_iter=4")
    found = bench.made(bench.train, "--columns", "word,kind,label", quick=quick)
    renamed = [{"word": s.tokens, "kind": s.fields["pos"], "label": s.labels} for s in TRAIN]
    data = tw.Corpus([tw.Sentence(fields, "label") for fields in renamed])
    assert found == bench.bytes_of(crf(features="kind[0]").fit(data))
    bench.made(bench.train, "--columns", "form label _", quick=("-q", "-f", "form[0]"))
    assert set(tw.load(bench.path("made.tagwise")).classes_) == {"N", "V", "P", "D"}
    wrong = invoke("train", bench.train, "-f", "kind[0]", "-o", bench.path("x"))
    assert wrong.exit_code == 2
    assert "kind" in wrong.stderr


@row("train", "--label")
def train_label(bench: Bench) -> None:
    """The column that is learnt; the last one if not given. A name that none of them has is not taken for the last."""
    named = ("--columns", "word,pos,entity")
    for options, column in (
        ((), "label"),
        (("--label", "pos"), "pos"),
        (named, "label"),
        ((*named, "--label", "pos"), "pos"),
    ):
        bench.made(bench.train, *options)
        tagger = tw.load(bench.path("made.tagwise"))
        assert set(tagger.classes_) == {value for s in TRAIN for value in s.fields[column]}, options
    conllu = bench.path("a.conllu", "1\ta\t_\tX\tY\t_\t0\troot\t_\t_\n2\tb\t_\tX\tZ\t_\t1\tx\t_\t_\n\n")
    for options, labels in (((), {"X"}), (("--label", "xpos"), {"Y", "Z"})):
        bench.made(conllu, *options)
        assert set(tw.load(bench.path("made.tagwise")).classes_) == labels
    for options in (named, ()):
        wrong = invoke("train", bench.train, *options, "--label", "colour", "-o", bench.path("x"))
        assert (wrong.exit_code, bench.path("x").exists()) == (2, False)
        assert "colour" in wrong.stderr
    assert "--columns" in wrong.stderr


@row("train", "--format")
def train_format(bench: Bench) -> None:
    """The format of the files, whatever their names say; training and dev part alike."""
    liar = bench.path("train.jsonl", bench.train.read_text())
    dev = bench.path("dev.jsonl", bench.dev.read_text())
    refused = invoke("train", liar, "-o", bench.path("x"), *QUICK)
    assert refused.exit_code == 2
    assert "JSON" in refused.stderr
    assert bench.made(liar, "--format", "conll") == bench.bytes_of(fitted())
    found = bench.made(liar, "--dev", dev, "--format", "conll")
    assert found == bench.bytes_of(crf().fit(TRAIN, dev=DEV))


@row("train", "-q", "--quiet")
def train_quiet(bench: Bench) -> None:
    """No summary, no table; without it one line of what was trained and one of what was written."""
    base = ("train", bench.train, "-o", bench.path("x"), "-f", "S1", "--set", "max_iter=4")
    for more in ((), ("--path", "l2=1,2")):
        for spelling in ("-q", "--quiet"):
            quiet = bench.ok(*base, *more, spelling)
            assert (quiet.stdout, quiet.stderr) == ("", "")
    with pytest.MonkeyPatch.context() as terminal:
        shown = functools.partial(Console, force_terminal=True, width=200)
        terminal.setattr(sys.modules["tagwise.cli.train"], "Console", shown)
        assert "4/4" in bench.ok(*base).stderr
        assert bench.ok(*base, "-q").stderr == ""
    loud = bench.ok(*base)
    tagger = fitted()
    assert loud.stdout == ""
    first, second = loud.stderr.splitlines()
    assert first.startswith(
        f"24 sentences, {TRAIN.n_tokens} tokens, {len(tagger.classes_)} labels; "
        f"{tagger.n_features_:,} features, {tagger.n_nonzero_:,} not zero; "
        f"4 iterations, objective {tagger.objective_:,.2f}; "
    )
    assert "certified" not in first
    assert second.startswith(f"wrote {bench.path('x')} (")


@row("train", "--params")
def train_params(bench: Bench) -> None:
    """A table of every learner's parameters, on stdout; nothing is trained or asked for."""
    listed = bench.ok("train", "--params").stdout
    for name, kind in LEARNERS.items():
        (begin,) = [i for i, line in enumerate(listed.splitlines()) if line.strip() == name]
        table = listed.splitlines()[begin + 1 :]
        rows = [line.split()[0] for line in table if line.split()]
        for param in kind.PARAMS:
            assert param.name in rows, (name, param.name)
    assert invoke("train").exit_code == 2


@row("train", "--prune")
def train_prune(bench: Bench) -> None:
    """Features of weight zero are not in the file, and its labels are the same; also at the end of a path."""
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
    """The row of an option holds."""
    cases("", "train")[case](bench)
