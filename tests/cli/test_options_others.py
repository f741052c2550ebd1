"""Every option of ``eval``, ``inspect``, ``convert`` and ``bench`` changes the outcome as its help says."""

from __future__ import annotations

import importlib
import json
import re
from typing import Any

import pytest

import tagwise as tw
from tagwise.estimators.base import Tagger

from .conftest import columns
from .options import DEV, TEST, TRAIN, Bench, cases, crf, debug, debug_row, fitted, function_rows, invoke, row

COMMANDS = ("eval", "inspect", "convert", "bench")

debug_row("eval", "absent.txt")
debug_row("inspect", "absent.tagwise")
debug_row("convert", "absent.txt")
function_rows("eval", "TEST", "--json")
function_rows("inspect")


# --- eval ---------------------------------------------------------------------------------------------------


def scores(bench: Bench, *args: object, text: str | None = None) -> dict[str, Any]:
    """Return the JSON output of ``eval``."""
    found: dict[str, Any] = json.loads(bench.ok("eval", *args, "--json", text=text).stdout)
    return found


def expected(gold: list[list[str]], predicted: list[list[str]]) -> dict[str, Any]:
    """Return the scores of label sequences after a round trip through JSON."""
    found: dict[str, Any] = json.loads(json.dumps(tw.evaluate(gold, predicted).to_dict()))
    return found


def guess(bench: Bench, *, pos: str | None = None) -> Any:
    """Write TEST's sentences with the labels that the model predicts. `pos` replaces every part-of-speech tag."""
    path = bench.path("guess.txt")
    sentences = []
    for sentence, labels in zip(TEST, fitted().predict(TEST)):
        tags = sentence.fields["pos"] if pos is None else [pos] * len(sentence)
        sentences.append(list(zip(sentence.tokens, tags, labels)))
    path.write_text(columns(sentences))
    return path


@row("eval", "first")
def eval_first(bench: Bench) -> None:
    """The first argument is a gold file or a model. Exchanging gold and predicted exchanges precision and recall."""
    other = guess(bench)
    right = expected(TEST.labels, fitted().predict(TEST))
    assert scores(bench, bench.test, other) == scores(bench, bench.model, bench.test) == right
    turned = scores(bench, other, bench.test)
    assert (turned["precision"], turned["recall"]) == (right["recall"], right["precision"])
    assert right["precision"] != right["recall"]


@row("eval", "second")
def eval_second(bench: Bench) -> None:
    """The second argument is the predicted file or the corpus to tag. Default: the last two columns of the first."""
    assert scores(bench, bench.model, bench.dev) == expected(DEV.labels, fitted().predict(DEV))
    both = columns([list(zip(s.tokens, s.labels, labels)) for s, labels in zip(TEST, fitted().predict(TEST))])
    assert scores(bench, "-", text=both) == expected(TEST.labels, fitted().predict(TEST))
    rejected = invoke("eval", bench.model)
    assert (rejected.exit_code, rejected.stdout) == (2, "")
    assert "eval" in rejected.stderr
    bench.patch.setattr("tagwise.cli.files.load_corpus", lambda *_: (TRAIN, DEV, TEST))
    assert scores(bench, bench.model, "wnut17-ner") == expected(TEST.labels, fitted().predict(TEST))
    assert scores(bench, bench.model, "wnut17-ner:dev") == expected(DEV.labels, fitted().predict(DEV))


@row("eval", "--columns")
def eval_columns(bench: Bench) -> None:
    """--columns names the columns, including the label and the columns that features of a model read."""
    other = guess(bench, pos="V")
    tags = expected(TEST.column("pos"), [["V"] * len(s) for s in TEST])
    assert scores(bench, bench.test, other, "--columns", "word,label,_") == tags
    assert scores(bench, bench.test, other) == expected(TEST.labels, fitted().predict(TEST))
    model = bench.saved(crf(features="pos[0]\nword[0]").fit(TRAIN), "both.tagwise")
    turned = bench.path("turned", columns([list(zip(s.fields["pos"], s.tokens, s.labels)) for s in TEST]))
    right = expected(TEST.labels, tw.load(model).predict(TEST))
    assert scores(bench, model, turned, "--columns", "pos,word,label") == right
    assert scores(bench, model, turned) != right


@row("eval", "--label")
def eval_label(bench: Bench) -> None:
    """--label chooses the scored column, both for two files and for a model with a corpus."""
    other = guess(bench, pos="N")
    tags = expected(TEST.column("pos"), [["N"] * len(s) for s in TEST])
    named = ("--columns", "word,pos,entity")
    assert scores(bench, bench.test, other, "--label", "pos") == tags
    assert scores(bench, bench.test, other, *named, "--label", "pos") == tags
    chunks = expected(TEST.labels, fitted().predict(TEST))
    assert scores(bench, bench.test, other, *named, "--label", "entity") == chunks != tags
    sentences = [tw.Sentence(s.fields, "pos") for s in TRAIN]
    tagger = crf().fit(tw.Corpus(sentences))
    model = bench.saved(tagger, "tags.tagwise")
    right = expected(TEST.column("pos"), tagger.predict(TEST))
    assert scores(bench, model, bench.test) == scores(bench, model, bench.test, "--label", "pos") == right
    chunks = scores(bench, model, bench.test, "--label", "label")  # scored by the metric of the model
    assert chunks["score_name"] == tagger.metric_ == "accuracy"
    assert chunks["accuracy"] == expected(TEST.labels, tagger.predict(TEST))["accuracy"]


@row("eval", "--format")
def eval_format(bench: Bench) -> None:
    """--format overrides the format that a file name implies."""
    liar = bench.path("test.jsonl", bench.test.read_text())
    assert invoke("eval", bench.model, liar).exit_code == 2
    right = scores(bench, bench.model, bench.test)
    assert scores(bench, bench.model, liar, "--format", "conll") == right
    other = bench.path("guess.conllu", guess(bench).read_text())
    assert scores(bench, liar, other, "--format", "conll") == right
    both = columns([list(zip(s.tokens, s.labels, s.labels)) for s in TEST])
    assert scores(bench, bench.path("a.conllu", both), "--format", "conll")["accuracy"] == 1.0


@row("eval", "--confusion")
def eval_confusion(bench: Bench) -> None:
    """--confusion N prints the N most frequent confusions below the scores. Default: none."""
    gold = columns([[("a", "A", p)] for p in "AAABBBBCC"] + [[("a", "B", "C")]] * 3)
    wrong = [["A", "B", "4"], ["B", "C", "3"], ["A", "C", "2"]]
    for n in (0, 1, 2, 9):
        text = bench.ok("eval", "-", "--confusion", n, text=gold).stdout
        lines = [line.split() for line in text.splitlines()]
        assert [line for line in lines if line in wrong] == wrong[:n]
        assert (["gold", "predicted", "tokens"] in lines) == (n > 0)
    assert (
        bench.ok("eval", "-", text=gold).stdout == bench.ok("eval", "-", "--confusion", 0, text=gold).stdout
    )


@row("eval", "--min-probability")
def eval_min_probability(bench: Bench) -> None:
    """--min-probability drops less probable spans before scoring. It requires a model with span probabilities."""
    sure = sorted(p for one in fitted().predict_confidence(TEST) for _, p in one.chunks)
    least = sure[len(sure) // 2]
    found = scores(bench, bench.model, bench.test, "--min-probability", repr(least))
    assert found == expected(TEST.labels, fitted().predict(TEST, min_probability=least))
    assert found != scores(bench, bench.model, bench.test)
    online = bench.saved(tw.Perceptron(features="S1", max_iter=1).fit(TRAIN), "p.tagwise")
    for call, message in (
        ((bench.model, bench.test, "--min-probability", 2), "0.0<=x<=1.0"),
        ((bench.model, bench.test, "--min-probability", 0.5, "--threshold", "beta=1"), "cannot be combined"),
        ((bench.test, bench.test, "--min-probability", 0.5), "Give a model: "),
        ((online, bench.test, "--min-probability", 0.5), "the scores of perceptron are not probabilities"),
    ):
        refused = invoke("eval", *call)
        assert (refused.exit_code, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
        assert message in refused.stderr


@row("eval", "--threshold")
def eval_threshold(bench: Bench) -> None:
    """--threshold reports the result of `choose_threshold`, its scores, and the equivalent --min-probability."""
    for goal, options in (("precision=0.6", {"precision": 0.6}), ("beta=0.5", {"beta": 0.5}), ("beta=1", {})):
        chosen = fitted().choose_threshold(DEV, **options)  # type: ignore[arg-type]
        found = scores(bench, bench.model, bench.dev, "--threshold", goal)
        assert found.pop("min_probability") == chosen.min_probability
        assert (found["precision"], found["recall"]) == (chosen.precision, chosen.recall)
        *_, option, value = bench.ok("eval", bench.model, bench.dev, "--threshold", goal).stdout.split()
        assert option == "--min-probability"
        assert found == scores(bench, bench.model, bench.dev, option, value)
    bench.patch.setattr("tagwise.cli.files.load_corpus", lambda *_: (TRAIN, DEV, TEST))
    assert scores(bench, bench.model, "wnut17-ner", "--threshold", "beta=1") == {
        **found,
        "min_probability": float(value),
    }
    for goal in ("precision", "precision=", "precision=2", "recall=0.5", "beta=0", "beta=nan", "0.5"):
        refused = invoke("eval", bench.model, bench.dev, "--threshold", goal)
        assert (refused.exit_code, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
        assert "--threshold" in refused.stderr


@row("eval", "--json")
def eval_json(bench: Bench) -> None:
    """--json prints the scores as JSON. Without it, a table shows the same figures in percent."""
    found = scores(bench, bench.model, bench.test)
    text = bench.ok("eval", bench.model, bench.test).stdout
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(text)
    for name in ("precision", "recall", "f1", "accuracy"):
        assert f"{100 * found[name]:.2f}" in text


# --- inspect ------------------------------------------------------------------------------------------------


def seen(bench: Bench, *args: object) -> dict[str, Any]:
    """Return the JSON output of ``inspect``."""
    found: dict[str, Any] = json.loads(bench.ok("inspect", *args, "--json").stdout)
    return found


@row("inspect", "model")
def inspect_model(bench: Bench) -> None:
    """The output describes the given model: learner, features, labels, number of weights."""
    assert seen(bench, bench.model)["meta"]["learner"] == "crf"
    other = bench.saved(tw.Perceptron(features="S2", max_iter=1).fit(TRAIN), "other.tagwise")
    assert seen(bench, other)["meta"]["learner"] == "perceptron"
    lines = [line.split() for line in bench.ok("inspect", other).stdout.splitlines()]
    tagger = tw.load(other)
    assert ["learner", "perceptron"] in lines
    assert ["features", "S2"] in lines
    n, left = f"{tagger.n_features_:,},", f"{tagger.n_nonzero_:,}"
    assert ["weights", n, left, "of", "them", "nonzero"] in lines
    assert ["labels", f"{len(tagger.classes_)}:", *tagger.classes_] in lines
    assert ["max_iter", "1"] in lines


@row("inspect", "--top")
def inspect_top(bench: Bench) -> None:
    """--top N shows the N strongest features of each label in descending order. Default: 10."""
    model = bench.saved(crf(features="S3", all_pairs=True).fit(TRAIN), "many.tagwise")
    whole = tw.load(model).inspect(top=1000).labels
    assert min(map(len, whole.values())) > 12
    assert seen(bench, model)["labels"] == seen(bench, model, "--top", 10)["labels"]
    for top in (1, 3, 10, 12):
        found = seen(bench, model, "--top", top)["labels"]
        for label, shown in found.items():
            weights = [abs(weight) for _, weight in shown]
            assert len(shown) == top
            assert weights == sorted((abs(w) for _, w in whole[label]), reverse=True)[:top]
        table = bench.ok("inspect", model, "--top", top).stdout.split("strongest transitions")[0]
        weights_shown = re.findall(r"[+-]\d+\.\d{4}", table.split("strongest features")[1])
        assert len(weights_shown) == top * len(found)


@row("inspect", "--label")
def inspect_label(bench: Bench) -> None:
    """--label restricts the output to the given labels, in the given order. Default: all. Unknown labels are errors."""
    every = seen(bench, bench.model)["labels"]
    assert set(every) == set(fitted().classes_)
    assert list(seen(bench, bench.model, "--label", "O", "--label", "B-LOC")["labels"]) == ["O", "B-LOC"]
    assert seen(bench, bench.model, "--label", "O")["labels"] == {"O": every["O"]}
    table = bench.ok("inspect", bench.model, "--label", "O").stdout.split("strongest features")[1]
    assert "B-PER" not in table.split("strongest transitions")[0]
    wrong = invoke("inspect", bench.model, "--label", "NOPE")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "'NOPE'" in wrong.stderr


@row("inspect", "--json")
def inspect_json(bench: Bench) -> None:
    """--json prints the metadata of training, the features and the transitions."""
    found = seen(bench, bench.model)
    tagger = tw.load(bench.model)
    assert found["meta"]["params"]["max_iter"] == 4
    assert found["meta"]["metrics"]["objective"] == fitted().objective_
    explained = tagger.inspect(top=10)
    assert found["labels"] == {k: [list(pair) for pair in v] for k, v in explained.labels.items()}
    assert found["transitions"] == [list(entry) for entry in explained.transitions]
    text = bench.ok("inspect", bench.model).stdout
    assert text.index("parameters") < text.index("training") < text.index("strongest features")


@row("inspect", "--plot")
def inspect_plot(bench: Bench) -> None:
    """--plot writes the curves of a boosted model's rounds to a file. Other models are rejected."""
    tagger = tw.Boosting(features="S1", max_iter=4).fit(TRAIN)
    boosted = bench.saved(tagger, "boosted.tagwise")
    assert [entry["step"] for entry in seen(bench, boosted)["rounds"]] == [r.step for r in tagger.rounds_]
    svg = bench.path("rounds.svg")
    plain = bench.ok("inspect", boosted).stdout
    assert not svg.exists()
    bench.ok("inspect", boosted, "--plot", svg)
    assert svg.read_text().startswith("<svg")
    assert "chosen features" in plain
    wrong = invoke("inspect", bench.model, "--plot", bench.path("no.svg"))
    assert wrong.exit_code == 2
    assert "no rounds" in wrong.stderr
    assert not bench.path("no.svg").exists()


# --- convert ------------------------------------------------------------------------------------------------

CHUNKS = "a\tB-X\nb\tI-X\nc\tB-X\nd\tO\n\n"


@row("convert", "source")
def convert_source(bench: Bench) -> None:
    """The source is a file or a part of a bundled corpus. A bare corpus name means its training part."""
    assert bench.ok("convert", bench.test).stdout == bench.test.read_text()
    assert bench.ok("convert", bench.dev).stdout == bench.dev.read_text()
    bench.patch.setattr("tagwise.cli.files.load_corpus", lambda *_: (TRAIN, DEV, TEST))
    for name, path in (
        ("", bench.train),
        (":train", bench.train),
        (":dev", bench.dev),
        (":test", bench.test),
    ):
        assert bench.ok("convert", f"wnut17-ner{name}").stdout == path.read_text()


@row("convert", "target")
def convert_target(bench: Bench) -> None:
    """The target is a file whose name implies the format. Default: CoNLL on stdout."""
    assert bench.ok("convert", "-", text=CHUNKS).stdout == CHUNKS
    assert bench.ok("convert", "-", "-", text=CHUNKS).stdout == CHUNKS
    out = bench.path("x.jsonl")
    assert bench.ok("convert", "-", out, text=CHUNKS).stdout == ""
    assert json.loads(out.read_text()) == {"tokens": list("abcd"), "labels": ["B-X", "I-X", "B-X", "O"]}


@row("convert", "--columns")
def convert_columns(bench: Bench) -> None:
    """--columns names the columns. JSONL keeps the names, and a column called _ is dropped."""
    text = bench.ok("convert", "-", "--to", "jsonl", "--columns", "word,_,kind", text="a\tx\tK\n\n").stdout
    assert json.loads(text) == {"tokens": ["a"], "kind": ["K"]}
    text = bench.ok("convert", "-", "--to", "jsonl", text="a\tx\tK\n\n").stdout
    assert json.loads(text) == {"tokens": ["a"], "pos": ["x"], "labels": ["K"]}


@row("convert", "--label")
def convert_label(bench: Bench) -> None:
    """--label chooses the column whose scheme is converted. Default: the last one."""
    given = "a\tI-X\tI-Y\nb\tO\tO\n\n"
    named = ("--columns", "word,one,two", "--scheme", "IOBES")
    assert bench.ok("convert", "-", *named, text=given).stdout == "a\tI-X\tS-Y\nb\tO\tO\n\n"
    assert bench.ok("convert", "-", *named, "--label", "one", text=given).stdout == "a\tS-X\tI-Y\nb\tO\tO\n\n"
    wanted: list[Any] = []
    bench.patch.setattr(
        "tagwise.cli.files.load_corpus", lambda *args: wanted.append(args) or (TRAIN, DEV, TEST)
    )
    bench.ok("convert", "ewt-pos", "--label", "upos")
    bench.ok("convert", "ewt-pos")
    assert wanted == [("ewt-pos", "upos"), ("ewt-pos", None)]


@row("convert", "--format")
def convert_format(bench: Bench) -> None:
    """--format sets the input format. Default: detected automatically."""
    two = "a b\nc d\n\ne f\n"
    as_columns = bench.ok("convert", "-", "--to", "jsonl", text=two).stdout.splitlines()
    assert json.loads(as_columns[0]) == {"tokens": ["a", "c"], "labels": ["b", "d"]}
    as_text = bench.ok("convert", "-", "--format", "text", "--to", "jsonl", text=two).stdout.splitlines()
    assert [json.loads(line)["tokens"] for line in as_text] == [["a", "b"], ["c", "d"], ["e", "f"]]


@row("convert", "--to")
def convert_to(bench: Bench) -> None:
    """--to overrides the output format that the file name implies."""
    out = bench.path("x.jsonl")
    bench.ok("convert", "-", out, "--to", "conll", text=CHUNKS)
    assert out.read_text() == CHUNKS
    assert bench.ok("convert", "-", "--to", "text", text=CHUNKS).stdout == "a b c d\n"
    conllu = bench.ok("convert", "-", "--to", "conllu", "--columns", "form,upos", text="a\tN\n\n").stdout
    assert [line.split("\t")[:4] for line in conllu.splitlines() if line] == [["1", "a", "_", "N"]]


@row("convert", "--scheme")
def convert_scheme(bench: Bench) -> None:
    """--scheme converts labels to that scheme. Default: unchanged."""
    assert bench.ok("convert", "-", text=CHUNKS).stdout == CHUNKS
    for scheme, labels in (
        ("IOB1", "I-X I-X B-X O"),
        ("IOE1", "I-X E-X I-X O"),
        ("IOE2", "I-X E-X E-X O"),
        ("IOBES", "B-X E-X S-X O"),
        ("BILOU", "B-X L-X U-X O"),
    ):
        found = bench.ok("convert", "-", "--scheme", scheme, text=CHUNKS).stdout
        assert [line.split("\t")[1] for line in found.splitlines() if line] == labels.split()
    wrong = invoke("convert", "-", "--scheme", "XYZ", text=CHUNKS)
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "XYZ" in wrong.stderr


@row("convert", "--from-scheme")
def convert_from_scheme(bench: Bench) -> None:
    """--from-scheme requires labels of that scheme. Default: any labels, read by conlleval's rules."""
    given = "a\tI-X\nb\tE-X\nc\tI-X\n\n"
    for scheme in ((), ("--from-scheme", "IOE1"), ("--from-scheme", "IOE2")):
        found = bench.ok("convert", "-", "--scheme", "IOB2", *scheme, text=given).stdout
        assert found == "a\tB-X\nb\tI-X\nc\tB-X\n\n"
    for scheme in ("IOB1", "IOB2"):
        wrong = invoke("convert", "-", "--scheme", "IOB2", "--from-scheme", scheme, text=given)
        assert wrong.exit_code == 2
        assert "'E-X'" in wrong.stderr
        assert scheme in wrong.stderr
    rejected = invoke("convert", "-", "--from-scheme", "IOE1", text=given)
    assert (rejected.exit_code, rejected.stdout) == (2, "")
    assert "--scheme" in rejected.stderr


# --- bench --------------------------------------------------------------------------------------------------


def measured(bench: Bench, *args: object, **corpora: int) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return the lines of ``bench`` on a small corpus, and the parameters of the taggers that it trained."""
    trained: list[dict[str, Any]] = []
    inner = Tagger.fit

    def noting(tagger: Tagger, *given: Any, **options: Any) -> Any:
        trained.append(tagger.get_params())
        tagger.set_params(max_iter=min(tagger.get_params()["max_iter"], 2))
        return inner(tagger, *given, **options)

    many = tw.Corpus([*TRAIN] * 126)  # more sentences than bench uses
    with bench.patch.context() as patch:
        patch.setattr(tw, "load_corpus", lambda name: (many, DEV, TEST) if name == "ewt-pos" else None)
        patch.setattr(Tagger, "fit", noting)
        text = bench.ok("bench", *args).stdout
    return {line[: line.index("  ")]: line[line.index("  ") :].strip() for line in text.splitlines()}, trained


@row("bench", "--debug")
def bench_debug(bench: Bench) -> None:
    """--debug works as in every other command."""
    bench.patch.setattr(tw, "load_corpus", lambda _: (TRAIN, DEV, TEST))
    debug("bench", "--features", "absent")


@row("bench", "--features", "-f")
def bench_features(bench: Bench) -> None:
    """--features sets the features of the model. Default: S3."""
    for args, features in (((), "S3"), (("--features", "S1"), "S1"), (("-f", "S2"), "S2")):
        lines, (params,) = measured(bench, *args, "--sentences", 20)
        assert params["features"] == features
        assert lines["model"].startswith(f"{features}, ")


@row("bench", "--sentences")
def bench_sentences(bench: Bench) -> None:
    """--sentences sets the number of training sentences. Default: 3,000."""
    for args, n in (((), 3000), (("--sentences", 7), 7)):
        lines, _ = measured(bench, *args, "-f", "S1")
        assert lines["corpus"].startswith(f"ewt-pos, {n:,} sentences, ")


@row("bench", "--max-iter")
def bench_max_iter(bench: Bench) -> None:
    """--max-iter sets the number of iterations. Default: 20. A single iteration has no time per iteration."""
    for args, n in (((), 20), (("--max-iter", 7), 7), (("--max-iter", 1), 1)):
        lines, (params,) = measured(bench, *args, "-f", "S1", "--sentences", 20)
        assert params["max_iter"] == n
        assert f"for {min(n, 2)} iterations" in lines["training"]
        assert ("one iteration" in lines) == (n > 1)


@row("bench", "--n-jobs")
def bench_n_jobs(bench: Bench) -> None:
    """--n-jobs sets the number of threads. Default: all cores."""
    bench.patch.setattr(importlib.import_module("tagwise.cli.bench"), "cores", lambda: 77)
    for args, threads, n_jobs in (((), "77", None), (("--n-jobs", 2), "2", 2)):
        lines, (params,) = measured(bench, *args, "-f", "S1", "--sentences", 20)
        assert (lines["threads"], params["n_jobs"]) == (threads, n_jobs)


@pytest.mark.parametrize("case", cases(*COMMANDS))
def test_options(bench: Bench, case: str) -> None:
    """Run the check of one option."""
    cases(*COMMANDS)[case](bench)
