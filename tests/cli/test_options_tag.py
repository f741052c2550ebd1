"""Every option of ``tag`` changes the outcome as its help says."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tagwise as tw
from tagwise.estimators.base import Tagger
from tagwise.learners.backends import BACKENDS, Backend

from .conftest import columns
from .options import DEV, TEST, TRAIN, Bench, cases, crf, debug_row, fitted, function_rows, invoke, row

debug_row("tag", "absent.tagwise")
function_rows("tag", "TEST")


# --- tag ----------------------------------------------------------------------------------------------------


def tagged(data: tw.Corpus, tagger: Tagger) -> str:
    """Return the output of ``tag``: all columns and the label."""
    out = ""
    for sentence, labels in zip(data, tagger.predict(data)):
        mark = "" if sentence.doc is None else "-DOCSTART-\t-X-\t-X-\tO\n\n"
        out += mark + columns([list(zip(*sentence.fields.values(), labels))])
    return out


def bodies(text: str) -> list[list[str]]:
    """Return the rows of CoNLL text without document marks."""
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("-DOCSTART-")]


@row("tag", "model")
def tag_model(bench: Bench) -> None:
    """The labels are the predictions of the given model."""
    other = bench.saved(crf(max_iter=1).fit(DEV), "other.tagwise")
    found = [bodies(bench.ok("tag", path, bench.test).stdout) for path in (bench.model, other)]
    for body, path in zip(found, (bench.model, other)):
        assert [r[-1] for r in body] == [y for labels in tw.load(path).predict(TEST) for y in labels]
    assert found[0] != found[1]


@row("tag", "--backend", "--address", "--workers")
def tag_backend(bench: Bench) -> None:
    """The local process and the workers of a cluster write identical files."""
    given = ("tag", bench.model, bench.folder / "{test,dev}.txt", "-o")
    bench.ok(*given, f"{bench.path('a')}/")
    bench.ok(*given, f"{bench.path('b')}/", "--backend", "local")
    requested = bench.cluster()
    bench.ok(*given, f"{bench.path('c')}/", "--backend", "ray", "--address", "auto", "--workers", 2)
    assert requested == ["auto", 2]
    for name in ("test.txt", "dev.txt"):
        alone = bench.ok("tag", bench.model, bench.folder / name).stdout
        assert {(bench.path(folder) / name).read_text("utf-8") for folder in "abc"} == {alone}
    for option in (("--address", "auto"), ("--workers", 2)):
        refused = invoke(*given, f"{bench.path('d')}/", *option)
        assert (refused.exit_code, "requires --backend ray" in refused.stderr) == (2, True)
    assert "many files" in invoke("tag", bench.model, bench.test, "--backend", "ray").stderr


@row("tag", "--on-error")
def tag_on_error(bench: Bench) -> None:
    """An unreadable file among many stops the run, or with ``skip`` is reported and left out."""
    bench.path("bad.jsonl", "{no")
    given = ("tag", bench.model, bench.folder / "{test.txt,bad.jsonl}", "-o", f"{bench.path('out')}/")
    for option in ((), ("--on-error", "stop")):
        assert invoke(*given, *option).exit_code != 0
    message = bench.ok(*given, "--on-error", "skip").stderr
    assert "bad.jsonl" in message
    assert ", 1 skipped\nwrote" in message
    assert [path.name for path in bench.path("out").iterdir() if path.is_file()] == ["test.txt"]


@row("tag", "--device")
def tag_device(bench: Bench) -> None:
    """The chosen backend computes the scores, and the labels are equal. Unsupported models are rejected."""
    used: list[str] = []
    cpu = BACKENDS["cpu"]

    def made(*given: Any) -> Any:
        used.append("scorer")
        return cpu.scorer(*given)

    bench.patch.setitem(BACKENDS, "cuda", Backend("cuda", cpu.objective, made))
    plain = bench.ok("tag", bench.model, bench.test).stdout
    assert bench.ok("tag", bench.model, bench.test, "--device", "cpu").stdout == plain
    assert not used
    assert bench.ok("tag", bench.model, bench.test, "--device", "cuda").stdout == plain
    assert used == ["scorer"]
    other = bench.saved(tw.Perceptron(features="S1", max_iter=1).fit(TRAIN), "p.tagwise")
    assert bench.ok("tag", other, bench.test, "--device", "cpu").exit_code == 0
    far = bench.saved(crf(order=2, max_iter=1).fit(TRAIN), "far.tagwise")
    for path, why in (
        (other, "perceptron runs on the CPU only"),
        (far, "does not support order > 1. Use --device cpu"),
    ):
        refused = invoke("tag", path, bench.test, "--device", "cuda")
        assert refused.exit_code == 2
        assert why in " ".join(refused.output.split())


@row("tag", "source")
def tag_source(bench: Bench) -> None:
    """The source is a file, a bundled corpus, or stdin by default."""
    text = bench.test.read_text()
    found = bench.ok("tag", bench.model, bench.test).stdout
    assert bodies(found) == bodies(tagged(TEST, fitted()))
    assert bench.ok("tag", bench.model, text=text).stdout == found
    assert bench.ok("tag", bench.model, "-", text=text).stdout == found
    assert bodies(bench.ok("tag", bench.model, bench.dev).stdout) == bodies(tagged(DEV, fitted()))
    bench.patch.setattr("tagwise.cli.files.load_corpus", lambda *_: (TRAIN, DEV, TEST))
    for name, part in (("wnut17-ner", TEST), ("wnut17-ner:dev", DEV)):
        labels = [y for path in fitted().predict(part) for y in path]
        assert [row[-1] for row in bodies(bench.ok("tag", bench.model, name).stdout)] == labels
    for option in ("--raw", "--replace"):
        refused = invoke("tag", bench.model, "wnut17-ner", option)
        assert (refused.exit_code, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)


@row("tag", "-o", "--output")
def tag_output(bench: Bench) -> None:
    """-o writes the output to a file instead of stdout."""
    expected = bench.ok("tag", bench.model, bench.test).stdout
    assert bench.ok("tag", bench.model, bench.test, "-o", "-").stdout == expected
    for spelling in ("-o", "--output"):
        out = bench.path(f"out{spelling}")
        assert bench.ok("tag", bench.model, bench.test, spelling, out).stdout == ""
        assert out.read_text() == expected


@row("tag", "--format")
def tag_format(bench: Bench) -> None:
    """--format sets the format of input and output. Default: detected automatically."""
    line = "Rosa runs to Lund\n"
    labels = fitted().predict([{"word": line.split(), "pos": ["N"] * 4}])[0]
    joined = " ".join(f"{w}/{y}" for w, y in zip(line.split(), labels)) + "\n"
    model = bench.saved(crf(features="word[0]").fit(TRAIN.tokens, TRAIN.labels), "words.tagwise")
    one_column = "Rosa\n\nLund\n\n"
    assert bodies(bench.ok("tag", model, text=one_column).stdout)[0][0] == "Rosa"
    assert bench.ok("tag", model, "--format", "text", text=one_column).stdout.startswith("Rosa/")
    assert bench.ok("tag", model, "--format", "text", text=line).stdout == joined


@row("tag", "--raw")
def tag_raw(bench: Bench) -> None:
    """--raw reads untokenized text, as lines or JSON objects, and writes texts with spans or another format."""
    model = bench.saved(crf(features="word[0]").fit(TRAIN.tokens, TRAIN.labels), "words.tagwise")
    tagger = tw.load(model)
    texts = ["Rosa runs to Lund. Rosa's to  Lund!", "#tag Lund"]
    lines = "\n".join(texts) + "\n"
    found = [json.loads(line) for line in bench.ok("tag", model, "--raw", text=lines).stdout.splitlines()]
    assert [row["text"] for row in found] == texts
    expected = [
        [{"start": s.start, "end": s.end, "label": s.label, "text": s.text} for s in spans]
        for spans in tagger.tag(texts)
    ]
    assert [row["spans"] for row in found] == expected
    assert len(expected[0]) == 4
    objects = "".join(json.dumps({"text": text, "id": i, "spans": []}) + "\n" for i, text in enumerate(texts))
    again = [json.loads(line) for line in bench.ok("tag", model, "--raw", text=objects).stdout.splitlines()]
    assert again == [{**row, "id": i} for i, row in enumerate(found)]
    assert bench.ok("tag", model, text=objects).stdout == bench.ok("tag", model, "--raw", text=objects).stdout
    rows = bodies(bench.ok("tag", model, "--raw", "--output-format", "conll", text=lines).stdout)
    assert [r[0] for r in rows] == [t for text in texts for t in tw.Tokenizer()(text).tokens]
    marked = bench.ok("tag", model, "--raw", "--output-format", "raw", text=lines).stdout
    assert marked.startswith("[Rosa PER] runs to [Lund LOC]. [Rosa PER]'s to  [Lund LOC]!\n")
    sure = [
        json.loads(line)
        for line in bench.ok("tag", model, "--raw", "--marginals", text=lines).stdout.splitlines()
    ]
    chances = [s.probability for spans in tagger.tag(texts) for s in spans]
    assert [s["probability"] for row in sure for s in row["spans"]] == pytest.approx(chances, abs=1e-6)
    unsure = bench.saved(tw.Perceptron(features="word[0]").fit(TRAIN.tokens, TRAIN.labels), "unsure.tagwise")
    refused = invoke("tag", unsure, "--raw", "--marginals", text="Rosa\n")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "the scores of perceptron are not probabilities" in refused.stderr
    for more, message in (
        (("--format", "conll"), "--raw reads text without tokens"),
        (("--nbest", 2), "which spans cannot hold. Choose another --output-format"),
    ):
        result = invoke("tag", model, "--raw", *more, text=lines)
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in result.stderr
    tokens = bench.path("tokens.jsonl", '{"tokens": ["a"]}\n')
    assert "is tokenized already" in invoke("tag", model, tokens, "--raw").stderr


@row("tag", "--output-format")
def tag_output_format(bench: Bench) -> None:
    """--output-format sets the output format. Default: the input format."""
    lines = bench.ok("tag", bench.model, bench.test, "--output-format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["predicted"] for line in lines] == fitted().predict(TEST)
    assert [json.loads(line)["pos"] for line in lines] == TEST.column("pos")
    text = bench.ok("tag", bench.model, bench.test, "--output-format", "text").stdout.splitlines()
    assert [[t.rsplit("/", 1)[1] for t in line.split()] for line in text] == fitted().predict(TEST)


@row("tag", "--columns")
def tag_columns(bench: Bench) -> None:
    """--columns names the input columns, in any order and number. Default: the columns of training."""
    model = bench.saved(crf(features="word[0]\npos[0]").fit(TRAIN), "both.tagwise")
    expected = tw.load(model).predict(TEST)
    turned = columns([list(zip(s.fields["pos"], ["?"] * len(s), s.tokens)) for s in TEST])
    found = bodies(bench.ok("tag", model, "--columns", "pos,_,word", text=turned).stdout)
    assert [r[-1] for r in found] == [y for labels in expected for y in labels]
    misread = bodies(bench.ok("tag", model, text=turned).stdout)
    assert [r[-1] for r in misread] != [r[-1] for r in found]
    four = columns([[(w, "x", "y", "z") for w in s.tokens] for s in TEST])
    assert invoke("tag", model, text=four).exit_code == 2


@row("tag", "--replace")
def tag_replace(bench: Bench) -> None:
    """--replace overwrites the label of the input. Without it, the label is appended to the row."""
    plain = bodies(bench.ok("tag", bench.model, bench.test).stdout)
    found = bodies(bench.ok("tag", bench.model, bench.test, "--replace").stdout)
    assert found == [[word, pos, label] for word, pos, _, label in plain]
    assert any(gold != label for _, _, gold, label in plain)


@row("tag", "--marginals")
def tag_marginals(bench: Bench) -> None:
    """--marginals appends a column with the marginal probability of each label."""
    found = bodies(bench.ok("tag", bench.model, bench.test, "--marginals").stdout)
    plain = bodies(bench.ok("tag", bench.model, bench.test).stdout)
    assert [r[:-1] for r in found] == plain
    order = list(fitted().classes_)
    tables = [p for table in fitted().predict_marginals(TEST) for p in table]
    for cells, table in zip(found, tables, strict=True):
        assert float(cells[-1]) == pytest.approx(table[order.index(cells[-2])], abs=1e-4)


@row("tag", "--nbest")
def tag_nbest(bench: Bench) -> None:
    """--nbest N writes the N best labellings of each sentence, best first. Default: 1. It excludes --marginals."""
    plain = bench.ok("tag", bench.model, bench.test).stdout
    assert bench.ok("tag", bench.model, bench.test, "--nbest", 1).stdout == plain
    lines = bench.ok("tag", bench.model, bench.test, "--nbest", 3, "--output-format", "jsonl").stdout
    found = [json.loads(line) for line in lines.splitlines()]
    expected = [labels for paths in fitted().predict_kbest(TEST, 3) for labels, _ in paths]
    assert [value["predicted"] for value in found] == expected
    both = invoke("tag", bench.model, bench.test, "--nbest", 2, "--marginals")
    assert (both.exit_code, both.stdout) == (2, "")
    assert "cannot be combined" in both.stderr


@row("tag", "--min-probability")
def tag_min_probability(bench: Bench) -> None:
    """--min-probability drops less probable spans. It excludes --nbest and requires a model with probabilities."""
    plain = bodies(bench.ok("tag", bench.model, bench.test).stdout)
    sure = sorted(p for one in fitted().predict_confidence(TEST) for _, p in one.chunks)
    least = sure[len(sure) // 2]
    found = bodies(bench.ok("tag", bench.model, bench.test, "--min-probability", repr(least)).stdout)
    assert [r[-1] for r in found] == [
        y for labels in fitted().predict(TEST, min_probability=least) for y in labels
    ]
    assert found != plain == bodies(bench.ok("tag", bench.model, bench.test, "--min-probability", 0).stdout)
    both = invoke("tag", bench.model, bench.test, "--nbest", 2, "--min-probability", 0.5)
    assert (both.exit_code, both.stdout) == (2, "")
    assert "cannot be combined" in both.stderr
    assert invoke("tag", bench.model, bench.test, "--min-probability", 2).exit_code == 2
    online = bench.saved(tw.Perceptron(features="S1", max_iter=1).fit(TRAIN), "p.tagwise")
    refused = invoke("tag", online, bench.test, "--min-probability", 0.5)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--min-probability: the scores of perceptron are not probabilities" in refused.stderr


@row("tag", "--n-jobs")
def tag_n_jobs(bench: Bench) -> None:
    """--n-jobs sets the number of threads and does not change the output."""
    plain = bench.ok("tag", bench.model, bench.test).stdout
    threads = bench.threads()
    assert bench.ok("tag", bench.model, bench.test, "--n-jobs", 2).stdout == plain
    bench.ok("tag", bench.model, bench.test)
    assert threads == [2, None]


@pytest.mark.parametrize("case", cases("tag"))
def test_options(bench: Bench, case: str) -> None:
    """Run the check of one option."""
    cases("tag")[case](bench)
