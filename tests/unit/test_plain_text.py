"""Plain text goes through the tokenizer unless it is tokenized already, in Python and on the command line."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tagwise as tw
from tagwise.cli import cli
from tagwise.corpus.formats import format_of_text, open_sentences

RAW = "I live in Paris.\nTom works at IBM, in Oslo.\n"
TOKENIZED = "I live in Paris .\nTom works at IBM , in Oslo .\n"
TOKENS = [["I", "live", "in", "Paris", "."], ["Tom", "works", "at", "IBM", ",", "in", "Oslo", "."]]
CITIES = {"Paris", "Oslo"}


def run(*args: object, text: str | None = None) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in args], input=text)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that labels cities."""
    path = tmp_path_factory.mktemp("model") / "m.tagwise"
    y = [["B-LOC" if word in CITIES else "O" for word in sentence] for sentence in TOKENS]
    tw.CRF(features="S1", l2=0.01).fit(TOKENS * 3, y * 3).save(path)
    return path


@pytest.mark.parametrize("text", [RAW, TOKENIZED])
def test_punctuation_is_a_token_of_its_own(text: str) -> None:
    """Text as people write it and tokenized text have the same tokens."""
    assert tw.read(io.StringIO(text)).tokens == TOKENS


@pytest.mark.parametrize(
    ("text", "format"),
    [
        (RAW, "raw"),
        (TOKENIZED, "text"),
        ("the cat sat\nthe dog\n", "raw"),
        ("He said so .\nDr. Smith of the U.S. left , Mr. Jones did not .\n", "text"),
        ("Où est-il ? Je ne sais pas, dit-elle.\nIl part demain, non ?\n", "raw"),
        ("Ceci est bon !\nVraiment ? Oui : bien sûr.\n« Bonjour », dit-il.\n", "raw"),
        ("我住在北京。\n他在上海工作,很开心!\n", "raw"),
        ("First line\twith a tab.\nSecond line without one.\n", "raw"),
        ("Anna sleeps.\nTom works.\nBob runs.\n", "raw"),  # lines of equal width are not columns
        ("Anna sleeps.\n\nTom works.\n\nBob runs.\n", "raw"),
        ("Paris.\n", "raw"),
        ("a NN\nb VB\nc NN\n", "conll"),
    ],
)
def test_format_of_plain_text(text: str, format: str) -> None:
    """Standing punctuation shows tokenized text, and attached punctuation raw text."""
    assert open_sentences(io.StringIO(text))[0] == format_of_text(text) == format


@pytest.mark.parametrize("part", range(3))
def test_sentences_of_a_treebank_are_detected_as_tokenized(part: int) -> None:
    """Joined by spaces, treebank sentences are tokenized text. Their own texts are raw."""
    corpus = tw.load_corpus("ewt-pos")[2]
    assert corpus is not None
    for begin in range(part * 300, part * 300 + 300, 20):
        chosen = corpus[begin : begin + 20]
        assert format_of_text("".join(" ".join(s.tokens) + "\n" for s in chosen)) == "text"


def test_prose_of_mostly_equal_width_is_no_error() -> None:
    """Four of five lines with as many words are not a damaged table."""
    text = "I live in Paris.\nHe was in Rome.\nWe go to Bonn.\nYou came to Ulm.\nShe stays.\n"
    assert [t[-1] for t in tw.read(io.StringIO(text)).tokens] == ["."] * 5


def test_tag_keeps_text_and_offsets(model: Path, tmp_path: Path) -> None:
    """`tag` writes the original text, and spans that are pieces of it."""
    path = tmp_path / "t.txt"
    path.write_text(RAW)
    result = run("tag", model, path)
    assert result.exit_code == 0
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["text"] for line in lines] == RAW.splitlines()
    found = [[line["text"][s["start"] : s["end"]] for s in line["spans"]] for line in lines]
    assert found == [["Paris"], ["Oslo"]]
    assert run("tag", model, text=RAW).stdout == result.stdout


def test_tag_writes_tokenized_text_as_tokens(model: Path) -> None:
    """Tokenized text is detected, and its tokens are kept."""
    result = run("tag", model, text=TOKENIZED)
    assert result.stdout.splitlines()[0] == "I/O live/O in/O Paris/B-LOC ./O"


def test_raw_and_pretokenized_decide(model: Path) -> None:
    """--raw and --pretokenized override the detection, and contradict each other."""
    assert run("tag", model, "--pretokenized", text=RAW).stdout.startswith("I/O live/O in/O Paris./")
    first = json.loads(run("tag", model, "--raw", text=TOKENIZED).stdout.splitlines()[0])
    assert first["text"] == TOKENIZED.splitlines()[0]
    assert [s["text"] for s in first["spans"]] == ["Paris"]
    both = run("tag", model, "--raw", "--pretokenized", text=RAW)
    assert both.exit_code == 2
    assert "contradict" in both.stderr
    other = run("tag", model, "--pretokenized", "--format", "conll", text=RAW)
    assert other.exit_code == 2
    assert "--format is conll" in other.stderr


def test_python_tags_the_same_tokens(model: Path) -> None:
    """`Tagger.tag` and a file read by `tw.read` yield the same labels."""
    tagger = tw.load(model)
    of_file = tagger.predict(tw.read(io.StringIO(RAW)))
    spans = [[(s.start, s.end) for s in tagger.tag(line) if s.label != "O"] for line in RAW.splitlines()]
    assert [[y for y in labels if y != "O"] for labels in of_file] == [["B-LOC"] * len(s) for s in spans]


@pytest.mark.parametrize(
    ("options", "word"), [((), "Harvard"), (("--raw",), "Harvard"), (("--pretokenized",), "Harvard.")]
)
def test_annotate_reads_words_without_punctuation(
    options: tuple[str, ...], word: str, tmp_path: Path
) -> None:
    """The project has a token for a name at the end of a sentence, unless the text is said to be tokenized."""
    pytest.importorskip("starlette")
    path, work = tmp_path / "posts.txt", tmp_path / "work"
    path.write_text("She studied at Harvard.\nHe paid ten dollars.\n")
    out = tmp_path / "out.jsonl"
    result = run(
        "annotate", path, "--work", work, "--labels", "ORG", *options, "--export", "jsonl", "-o", out
    )
    assert result.exit_code == 0, result.stderr
    document = next((work / "documents").iterdir())
    assert word in json.loads(document.read_text().splitlines()[0])["tokens"]
