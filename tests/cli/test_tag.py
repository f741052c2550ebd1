"""``tagwise tag``: formats, streams, pipes."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tagwise as tw
from tagwise.cli.stream import batches

from .conftest import Run, columns, command, environment, shell


def rows(text: str) -> list[list[list[str]]]:
    """Split CoNLL text into sentences of rows."""
    return [[line.split("\t") for line in block.split("\n")] for block in text.strip("\n").split("\n\n")]


def test_gold_column_is_optional(
    run: Run, model: Path, tagger: tw.CRF, small: tuple[tw.Corpus, tw.Corpus]
) -> None:
    text = columns([[[word] for word in words] for words in small[1].tokens])
    result = run("tag", model, text=text)
    assert [[row[-1] for row in s] for s in rows(result.stdout)] == tagger.predict(small[1])
    assert all(len(row) == 2 for s in rows(result.stdout) for row in s)


def test_nbest_prints_score_and_probability_per_path(run: Run, model: Path, tagger: tw.CRF) -> None:
    words = ["I", "love", "London"]
    found = tagger.predict_kbest([words], 3)[0]
    chances = [p for _, p in tagger.predict_kbest([words], 3, probability=True)[0]]
    line = " ".join(words) + "\n"

    text = run("tag", model, "--nbest", "3", "--format", "text", text=line)
    assert text.exit_code == 0
    for row, (labels, score), p in zip(text.stdout.splitlines(), found, chances, strict=True):
        a, b, tagged = row.split("\t")
        assert (float(a), float(b)) == (pytest.approx(score, abs=1e-5), pytest.approx(p, abs=1e-5))
        assert tagged == " ".join(f"{word}/{label}" for word, label in zip(words, labels))

    values = run(
        "tag", model, "--nbest", "3", "--format", "text", "--output-format", "jsonl", text=line
    ).stdout
    for row, (labels, score), p in zip(values.splitlines(), found, chances, strict=True):
        value = json.loads(row)
        assert value["predicted"] == labels
        assert (value["score"], value["probability"]) == (pytest.approx(score), pytest.approx(p))

    blocks = (
        run("tag", model, "--nbest", "3", text="\n".join(words) + "\n\n").stdout.strip("\n").split("\n\n")
    )
    for block, (labels, score), p in zip(blocks, found, chances, strict=True):
        head, chance, *rows_ = block.split("\n")
        assert (head, chance) == (f"# score = {score:.6f}", f"# probability = {p:.6f}")
        assert [row.split("\t") for row in rows_] == [list(pair) for pair in zip(words, labels)]


def test_nbest_of_an_online_model_prints_scores_only(
    run: Run, small: tuple[tw.Corpus, tw.Corpus], tmp_path: Path
) -> None:
    tagger = tw.Perceptron(features="S2", max_iter=3).fit(small[0])
    tagger.save(tmp_path / "m", prune=True)
    found = tagger.predict_kbest([["I", "love"]], 9)[0]
    result = run("tag", tmp_path / "m", "--nbest", "9", "--format", "text", text="I love\n")
    shown = [line.split("\t") for line in result.stdout.splitlines()]
    assert [float(score) for score, _ in shown] == [pytest.approx(score, abs=1e-5) for _, score in found]
    assert [line for _, line in shown] == [f"I/{a} love/{b}" for (a, b), _ in found]


def test_nbest_repeats_a_conllu_sentence_per_labelling(
    run: Run, small: tuple[tw.Corpus, tw.Corpus], tmp_path: Path
) -> None:
    tagger = tw.Perceptron(features="S2", max_iter=3).fit(small[0])
    tagger.save(tmp_path / "m")
    words, places = ["I", "love", "London"], [1, 3, 4]
    rest = ["_"] * 4
    lines = [
        "# sent_id = a",
        "1\tI\tI\tX\tP",
        "2-3\tlovely\t_\t_\t_",
        "2\tlove\tL\tX\tV",
        "3\tLondon\tL\tX\tN",
    ]
    given = [line if line.startswith("#") else "\t".join([line, "_", *rest]) for line in lines]
    result = run("tag", tmp_path / "m", "--nbest", "3", "--format", "conllu", text="\n".join(given) + "\n\n")
    assert result.exit_code == 0, result.stderr
    found = tagger.predict_kbest([words], 3)[0]
    assert len({tuple(labels) for labels, _ in found}) == 3
    for block, (labels, score) in zip(result.stdout.strip("\n").split("\n\n"), found, strict=True):
        comment, shown, *rows = block.split("\n")
        assert (comment, shown) == (given[0], f"# score = {score:.6f}")
        want = [line.split("\t") for line in given]
        for place, label in zip(places, labels):
            want[place][3] = label
        assert [row.split("\t") for row in rows] == want[1:]


def test_gzip_input_and_output(run: Run, model: Path, test_file: Path, tmp_path: Path) -> None:
    packed, out = tmp_path / "in.txt.gz", tmp_path / "out.txt.gz"
    packed.write_bytes(gzip.compress(test_file.read_bytes()))
    assert run("tag", model, packed, "-o", out).exit_code == 0
    assert gzip.decompress(out.read_bytes()).decode() == run("tag", model, test_file).stdout


def test_empty_input_gives_empty_output(run: Run, model: Path) -> None:
    result = run("tag", model, text="")
    assert (result.exit_code, result.stdout) == (0, "")


def test_malformed_row_is_reported_by_line_without_a_traceback(model: Path) -> None:
    result = shell("tag", model, text="good\n\n" * 3 + "a\tb\tc\td\n\n")
    assert result.returncode == 2
    assert "<stdin>:7" in result.stderr
    assert "Traceback" not in result.stderr


def test_sentences_are_tagged_while_input_stays_open(model: Path) -> None:
    process = subprocess.Popen(
        command("tag", model, "--format", "text"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(3):
            process.stdin.write("I love London\n")
            process.stdin.flush()
            assert process.stdout.readline().startswith("I/")
        process.stdin.close()
        assert process.wait(timeout=30) == 0


def test_closed_output_pipe_exits_silently(model: Path, tmp_path: Path) -> None:
    data = tmp_path / "long.txt"
    data.write_text("I love London\n" * 50_000)
    tag = subprocess.Popen(
        command("tag", model, data, "--format", "text"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert tag.stdout is not None
    assert tag.stderr is not None
    assert tag.stdout.readline().startswith(b"I/")
    tag.stdout.close()
    assert tag.stderr.read() == b""
    tag.stderr.close()
    assert tag.wait(timeout=60) == 141


@given(st.lists(st.integers(), max_size=60), st.integers(1, 7))
def test_batches_partition_the_stream(items: list[int], size: int) -> None:
    cut = list(batches(iter(items), size=size, patience=5))
    assert [x for batch in cut for x in batch] == items
    assert all(len(batch) == size for batch in cut[:-1])
    assert all(0 < len(batch) <= size for batch in cut)


def test_batches_yield_items_before_an_error() -> None:
    def broken() -> object:
        yield 1
        raise ValueError("broken")

    seen = []
    with pytest.raises(ValueError, match="broken"):
        seen.extend(batches(broken()))  # type: ignore[arg-type]
    stream = batches(broken())  # type: ignore[arg-type]
    assert next(stream) == [1]
