"""Random splits and folds of a corpus: partitions, whole documents, order, and the seed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import tagwise as tw
from tagwise.base.exceptions import ParameterError
from tagwise.cli import cli
from tagwise.corpus.splitting import fold, split


def corpus(n: int, document: int = 0) -> tw.Corpus:
    """Return n different sentences, with a document for every `document` of them."""
    return tw.Corpus(
        tw.Sentence(
            {"word": [f"w{i}", "x"], "label": ["A", "B"]},
            "label",
            doc="" if document and i % document == 0 else None,
        )
        for i in range(n)
    )


def words(part: tw.Corpus) -> list[str]:
    return [s.tokens[0] for s in part]


@given(
    st.integers(5, 60),
    st.integers(0, 4),
    st.lists(st.floats(0.01, 100), min_size=2, max_size=5),
    st.integers(0, 9),
)
def test_parts_are_a_partition_in_order(n: int, document: int, shares: list[float], seed: int) -> None:
    """Every sentence is in one part, parts are not empty, and sentences keep their order."""
    given_corpus = corpus(n, document)
    parts = split(given_corpus, shares, seed)
    assert len(parts) == len(shares)
    assert all(len(part) for part in parts)
    assert sorted(w for part in parts for w in words(part)) == sorted(words(given_corpus))
    for part in parts:
        assert [int(w[1:]) for w in words(part)] == sorted(int(w[1:]) for w in words(part))


@given(st.integers(4, 50), st.integers(2, 4), st.integers(0, 3))
def test_folds_are_a_partition(n: int, folds: int, document: int) -> None:
    """The test parts of all folds are the corpus, and each training part is the rest."""
    whole = corpus(n, document)
    tested: list[str] = []
    for number in range(folds):
        train, test = fold(whole, folds, number)
        assert sorted(words(train) + words(test)) == sorted(words(whole))
        tested += words(test)
    assert sorted(tested) == sorted(words(whole))


def test_shares_seed_and_documents() -> None:
    """Sizes follow the shares, the seed changes the parts, and documents stay whole."""
    whole = corpus(1000)
    assert [len(p) for p in split(whole, (80, 10, 10), 1)] == [800, 100, 100]
    assert words(split(whole, (1, 1), 1)[0]) == words(split(whole, (1, 1), 1)[0])
    assert words(split(whole, (1, 1), 1)[0]) != words(split(whole, (1, 1), 2)[0])
    for part in split(corpus(1000, 10), (80, 10, 10)):
        numbers = [int(w[1:]) for w in words(part)]
        assert all(
            numbers[i : i + 10] == list(range(numbers[i], numbers[i] + 10))
            for i in range(0, len(numbers), 10)
        )


def test_sentences_of_one_text_stay_together() -> None:
    """A text of several sentences is in one part."""
    whole = tw.spans.span_corpus([f"One{i}. Two{i}. Three{i}." for i in range(30)], [[]] * 30)
    for part in split(whole, (1, 1)):
        assert len(part) % 3 == 0


@pytest.mark.parametrize("shares", [(), (1,), (1, 0), (1, -1), (1, float("inf")), (1, float("nan"))])
def test_invalid_shares_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(ParameterError, match="two or more positive shares"):
        split(corpus(5), shares)
    with pytest.raises(ParameterError, match="cannot be split into 3 parts"):
        split(corpus(2), (1, 1, 1))


# --- command line -------------------------------------------------------------------------------------------


def run(*args: object) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in args])


@pytest.mark.parametrize("name", ["data.csv", "data.tsv", "data.jsonl", "data.conll.gz"])
def test_split_writes_parts_of_the_same_format(name: str, tmp_path: Path) -> None:
    """Three files named after the parts have all sentences, the same for the same seed."""
    tw.write(corpus(50), tmp_path / name)
    for _ in range(2):
        result = run("split", tmp_path / name, "--parts", "80,10,10", "--seed", 1, "-o", tmp_path / "out")
        assert result.exit_code == 0, result.stderr
    stem, ending = name.split(".", 1)
    parts = [tw.read(tmp_path / "out" / f"{stem}.{part}.{ending}") for part in ("train", "dev", "test")]
    assert [len(part) for part in parts] == [40, 5, 5]
    assert parts == split(tw.read(tmp_path / name), (80, 10, 10), 1)


def test_compare_cross_validates_a_file(tmp_path: Path) -> None:
    """Each fold is a run, whose mean is the row of the table."""
    path, out = tmp_path / "data.csv", tmp_path / "table.json"
    whole = tw.Corpus.from_lists(
        [["a", "b"], ["b", "a"], ["a"], ["b"]] * 5, [["X", "Y"], ["Y", "X"], ["X"], ["Y"]] * 5
    )
    tw.write(whole, path)
    args = ("--learner", "hmm", "--workers", "0", "--fresh", "-o", out)
    result = run("compare", path, "--folds", 4, *args)
    assert result.exit_code == 0, result.stderr
    rows = json.loads(out.read_text())["rows"]
    assert [(row["seed"], row["sentences"]) for row in rows] == [(k, 15) for k in range(4)]
    table = tw.compare(["hmm"], corpus=whole, folds=4)
    assert [row.accuracy for row in table.rows] == [row["accuracy"] for row in rows]
    assert [row.accuracy for row in table.rows] == [
        tw.HMM().fit(train).evaluate(test).accuracy for train, test in (fold(whole, 4, k) for k in range(4))
    ]
    with pytest.raises(ParameterError, match="needs at least 2 folds"):
        tw.compare(["hmm"], corpus=whole)
    for more in (("--train", path, "--test", path), ("--corpus", "ewt-pos"), ("--seeds", "2")):
        refused = run("compare", path, *more, *args)
        assert refused.exit_code == 2
        assert "is cross-validated" in refused.stderr
    assert run("compare", "no-such-file.csv").exit_code == 2


def test_labels_are_mapped() -> None:
    """Whole labels and types of chunks get new names, and O removes them. A name that does not occur is an error."""
    given_corpus = tw.Corpus.from_lists(
        [["a", "b", "c", "d"]], [["B-person", "I-person", "NN", "B-creative-work"]]
    )
    mapped = given_corpus.map_labels({"person": "PER", "NN": "N", "creative-work": "O"})
    assert mapped.labels == [["B-PER", "I-PER", "N", "O"]]
    with pytest.raises(tw.TagwiseError, match="no label is named 'persn'"):
        given_corpus.map_labels({"persn": "PER"})


def test_map_labels_on_the_command_line(tmp_path: Path) -> None:
    """The new names are those of the model and of the output. Unknown names are refused with a suggestion."""
    path = tmp_path / "d.tsv"
    path.write_text("Rosa\tB-person\nruns\tO\n\nLund\tB-location\n")
    found = run("convert", path, "-", "--map-labels", "person=PER,location=O")
    assert found.stdout == "Rosa\tB-PER\nruns\tO\n\nLund\tO\n\n"
    refused = run("convert", path, "-", "--map-labels", "persn=PER")
    assert refused.exit_code == 2
    assert "no label is named 'persn' (did you mean 'person'?)" in refused.stderr
    for wrong in ("person", "person=", "=PER", "a=b,a=c"):
        assert run("convert", path, "-", "--map-labels", wrong).exit_code == 2
    model = tmp_path / "m.tagwise"
    assert (
        run("train", path, "-o", model, "-f", "S1", "--map-labels", "person=PER", "--dev", path).exit_code
        == 0
    )
    assert set(tw.load(model).classes_) == {"B-PER", "O", "B-location"}
