"""Every option of ``classes``, and those of ``train`` and ``inspect`` for word classes, has its documented effect."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import pytest

import tagwise as tw

from .options import DEV, TRAIN, Bench, cases, crf, debug_row, invoke, row

debug_row("classes", "absent.txt", "-o", "x.classes")

SENTENCES = [list(sentence.tokens) for sentence in TRAIN]


def learned(bench: Bench, *args: object) -> tw.WordClasses:
    """Return the classes that a command writes."""
    bench.ok("classes", *(args or (bench.train,)), "-o", bench.path("w.classes"), "-q")
    return tw.WordClasses.load(bench.path("w.classes"))


@row("classes", "files")
def files(bench: Bench) -> None:
    """Files, patterns, stdin and bundled corpora are read, with or without labels. At least one is required."""
    assert learned(bench) == tw.WordClasses.learn(SENTENCES)
    both = [*SENTENCES, *(list(sentence.tokens) for sentence in DEV)]
    assert learned(bench, bench.train, bench.dev) == tw.WordClasses.learn(both)
    assert learned(bench, bench.folder / "tr*.txt") == tw.WordClasses.learn(SENTENCES)
    lines = "".join(" ".join(sentence) + "\n" for sentence in SENTENCES)
    bench.ok("classes", "-", "-o", bench.path("w.classes"), "-q", text=lines)
    assert tw.WordClasses.load(bench.path("w.classes")) == tw.WordClasses.learn(SENTENCES)
    part = learned(bench, "wnut17-ner:dev", "--max-iter", 0)
    assert part.facts["sentences"] == len(tw.load_corpus("wnut17-ner")[1] or ())
    assert invoke("classes", "-o", bench.path("w.classes")).exit_code == 2
    assert "no file matches" in invoke("classes", "no*such", "-o", bench.path("x")).stderr


@row("classes", "-o", "--output")
def output(bench: Bench) -> None:
    """-o is required. A path that cannot be written is rejected before the text is read."""
    for spelling in ("-o", "--output"):
        bench.ok("classes", bench.train, spelling, bench.path(f"x{spelling}"))
        assert tw.WordClasses.load(bench.path(f"x{spelling}")) == tw.WordClasses.learn(SENTENCES)
    assert "-o" in invoke("classes", bench.train).stderr
    assert "--output" in invoke("classes", "absent.txt", "-o", bench.path("no/such")).stderr


@row("classes", "--classes", "--min-count", "--max-iter", "--ignore-case")
def numbers(bench: Bench) -> None:
    """Options are those of `WordClasses.learn`."""
    text = bench.path("raw.txt", "".join(" ".join(s) + "\nRosa goes lund\n" for s in SENTENCES))
    for option, value in (("classes", 3), ("min_count", 18), ("max_iter", 0), ("ignore_case", True)):
        flag = f"--{option.replace('_', '-')}"
        given = (flag,) if value is True else (flag, value)
        found = learned(bench, text, *given)
        assert found == tw.WordClasses.learn(text, **{option: value})
        assert found.facts == tw.WordClasses.learn(text, **{option: value}).facts


def test_several_sets_are_written_to_one_file_and_inspected(bench: Bench) -> None:
    path = bench.path("w.classes")
    bench.ok("classes", bench.train, "--classes", "2,3", "-o", path, "-q")
    assert tw.WordClasses.load_sets(path) == tw.WordClasses.learn(SENTENCES, classes=[2, 3])
    found = json.loads(bench.ok("inspect", path, "--word", "Lund", "--json").stdout)
    assert [one["meta"]["classes"] for one in found["sets"]] == [2, 3]
    bench.ok("classes", bench.train, "--classes", "several", "-o", path, "-q")
    assert tw.WordClasses.load_sets(path) == tw.WordClasses.learn(SENTENCES, classes="several")
    for wrong in ("x", "1", "2,", "0"):
        assert invoke("classes", bench.train, "--classes", wrong, "-o", bench.path("no")).exit_code == 2
    assert not bench.path("no").exists()


@row("classes", "--format")
def form(bench: Bench) -> None:
    """--format overrides the detection of the format."""
    text = bench.path("two.txt", "a\tb\na\tb\nc\tb\nc\tb\n\n")
    assert sorted(learned(bench, text).members()) == ["a", "c"]
    assert sorted(learned(bench, text, "--format", "text").members()) == ["a", "b", "c"]


@row("classes", "--encoding")
def encoding(bench: Bench) -> None:
    """--encoding decodes the files."""
    text = bench.path("latin.txt")
    text.write_bytes("Málaga gana\nBurgos gana\n".encode("latin-1") * 2)
    assert "UTF-8" in invoke("classes", text, "-o", bench.path("x.classes")).stderr
    assert "Málaga" in learned(bench, text, "--classes", 2, "--encoding", "latin-1").members()


@row("classes", "--n-jobs")
def n_jobs(bench: Bench) -> None:
    """--n-jobs is passed on, and the result is the same."""
    seen: list[Any] = []
    inner = tw.WordClasses.learn

    def noting(*args: Any, **options: Any) -> Any:
        seen.append(options["n_jobs"])
        return inner(*args, **options)

    bench.patch.setattr(tw.WordClasses, "learn", staticmethod(noting))
    assert learned(bench, bench.train, "--n-jobs", 1) == learned(bench)
    assert seen == [1, None]


@row("classes", "-q", "--quiet")
def quiet(bench: Bench) -> None:
    for spelling in ("-q", "--quiet"):
        assert bench.ok("classes", bench.train, "-o", bench.path("w"), spelling).stderr == ""
    assert "classes of 5 words" in bench.ok("classes", bench.train, "-o", bench.path("w")).stderr


@row("inspect", "--word")
def inspect_word(bench: Bench) -> None:
    """--word shows the class of a word with its members and neighbours. Without it, the tree is shown."""
    classes = learned(bench)
    path = bench.path("w.classes")
    found = json.loads(bench.ok("inspect", path, "--word", "Lund", "--json").stdout)
    assert found["words"]["Lund"]["path"] == classes["Lund"]
    assert found["words"]["Lund"]["depths"][classes["Lund"]] == classes.members(classes["Lund"])
    assert list(found["words"]["Lund"]["nearest"]) == classes.nearest("Lund")
    shown = bench.ok("inspect", path, "--word", "Lund", "--word", "=").stdout
    assert "Lund" in shown
    assert "unknown" in shown
    assert found["words"]["Lund"]["known"]
    assert "unknown" not in bench.ok("inspect", path, "--word", "Lund").stdout
    bench.ok(
        "classes",
        bench.path("rare.txt", "Rosa goes\nRosa goes\nIda goes\nOtto goes there\n"),
        "--classes",
        2,
        "-o",
        path,
    )
    shown = bench.ok("inspect", path, "--word", "Zoe").stdout
    assert "it has the class of its shape" in shown
    assert f"{classes['Lund']}: " in bench.ok("inspect", path).stdout
    assert "requires a file of word classes" in invoke("inspect", bench.model, "--word", "Lund").stderr
    assert "requires a model" in invoke("inspect", path, "--label", "O").stderr


@row("train", "--raw")
def train_raw(bench: Bench) -> None:
    """--raw learns classes from its text and the training sentences, and adds them to the features."""
    raw = bench.path(
        "raw.txt", "Rosa runs to Lund\nKira runs\nKira runs to a Lund\nRosa to Oslo\nOslo runs to a Kira\n"
    )
    more = [line.split() for line in raw.read_text().splitlines()]
    classes = tw.WordClasses.learn(chain(SENTENCES, more), classes="several")
    assert bench.made(bench.train, "--raw", raw) == bench.bytes_of(crf(features="S1" + classes).fit(TRAIN))
    twice = tw.WordClasses.learn(chain(SENTENCES, more, more), classes="several")
    assert bench.made(bench.train, "--raw", raw, "--raw", raw) == bench.bytes_of(
        crf(features="S1" + twice).fit(TRAIN)
    )
    bench.ok("encode", bench.train, "-o", bench.path("enc"), "-q")
    refused = invoke("train", bench.path("enc"), "--raw", raw, "-o", bench.path("x"))
    assert (refused.exit_code, "features of shards are fixed" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no tokens"),
        (b"one\n", "too little for classes"),
        (bytes(range(256)), "binary"),
        (b"\xff\xfea\0", "too little for classes"),  # UTF-16
        (b"\x7fELF\0\0\x01" * 99, "binary"),
    ],
)
def test_unusable_text_is_one_line_and_nothing_is_written(bench: Bench, content: bytes, message: str) -> None:
    bench.path("raw.txt").write_bytes(content)
    before = sorted(bench.folder.rglob("*"))
    refused = invoke("classes", bench.path("raw.txt"), "-o", bench.path("w.classes"), "-q")
    assert refused.exit_code == 2
    assert message in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert sorted(bench.folder.rglob("*")) == before


CASES = {**cases("classes"), "inspect --word": inspect_word, "train --raw": train_raw}


@pytest.mark.parametrize("case", CASES)
def test_options(bench: Bench, case: str) -> None:
    """Run the check of one option."""
    CASES[case](bench)
