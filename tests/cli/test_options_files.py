"""Options on how files are read, of every command that has them, and every option of ``split``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tagwise as tw
from tagwise.corpus.splitting import split

from .options import QUICK, TRAIN, Bench, cases, debug_row, invoke, row

#: Arguments of each command for a labelled file in place of FILE.
CALLS: dict[str, tuple[str, ...]] = {
    "train": ("FILE", "-o", "OUT", *QUICK),
    "eval": ("MODEL", "FILE"),
    "errors": ("MODEL", "FILE"),
    "convert": ("FILE",),
    "split": ("FILE", "--parts", "1,1", "-o", "OUT"),
    "compare": ("FILE", "--folds", "2", "--learner", "hmm", "--workers", "0", "--fresh"),
    "encode": ("FILE", "-o", "OUT", "-q"),
    "annotate": ("FILE", "--work", "OUT", "--export", "jsonl", "-o", "EXPORT"),
    "tag": ("MODEL", "FILE"),
}
debug_row("split", "absent.txt")


def called(bench: Bench, command: str, file: Path, *options: str) -> tuple[int, str]:
    """Run a command on a file. Return its exit code and messages."""
    names = {
        "FILE": file,
        "MODEL": bench.model,
        "OUT": bench.folder / f"out {len(list(bench.folder.iterdir()))}",
        "EXPORT": bench.folder / "export.jsonl",
    }
    result = invoke(command, *(names.get(arg, arg) for arg in CALLS[command]), *options)
    return result.exit_code, result.stderr


def refused_without(command: str, name: str, content: bytes, message: str, *options: str) -> None:
    """Register the check of an option without which a file is refused."""

    @row(command, options[0])
    def check(bench: Bench) -> None:
        if command == "annotate":
            pytest.importorskip("starlette")
        file = bench.folder / name
        file.write_bytes(content)
        code, error = called(bench, command, file)
        assert code == 2, error
        assert message in error
        code, error = called(bench, command, file, *options)
        assert code == 0, error


ROWS = "Rosa\tN\tB-PER\nruns\tV\tO\nété\tN\tO\n\nLund\tN\tB-LOC\n\nLund\tN\tB-LOC\n"
NUMBERED = "".join(
    json.dumps(
        {
            "tokens": s.tokens,
            "pos": s.fields["pos"],
            "label": [["O", "B-PER", "B-LOC"].index(y) for y in s.labels],
        }
    )
    + "\n"
    for s in TRAIN[:8]
)
OBJECT = {"text": "Rosa runs to Lund", "label": [[0, 2, "PER"], [13, 17, "LOC"]]}
for _command in CALLS:
    refused_without(
        _command, "latin.tsv", ROWS.encode("latin-1"), "--encoding cp1252", "--encoding", "latin-1"
    )
for _command in ("train", "eval", "errors", "convert", "split", "compare"):
    refused_without(
        _command, "n.jsonl", NUMBERED.encode(), "--label-names O", "--label-names", "O,B-PER,B-LOC"
    )


@row("train", "--misaligned")
@row("eval", "--misaligned")
@row("errors", "--misaligned")
@row("convert", "--misaligned")
@row("split", "--misaligned")
@row("compare", "--misaligned")
def misaligned(bench: Bench) -> None:
    """A span that is not made of tokens is refused, or treated as the option says."""
    file = bench.path("d.jsonl", (json.dumps(OBJECT) + "\n") * 4)
    words = bench.saved(tw.HMM().fit(TRAIN.tokens, TRAIN.labels), "words.tagwise")
    for command in ("train", "convert", "split", "compare"):
        code, error = called(bench, command, file)
        assert code == 2
        assert "--misaligned expand" in error
        assert called(bench, command, file, "--misaligned", "expand")[0] == 0
    for command in ("eval", "errors"):
        assert invoke(command, words, file).exit_code == 2
        assert invoke(command, words, file, "--misaligned", "drop").exit_code == 0
    expanded, dropped = (
        bench.ok("convert", file, "--misaligned", policy).stdout.split("\n")[0]
        for policy in ("expand", "drop")
    )
    assert (expanded, dropped) == ("Rosa\tB-PER", "Rosa\tO")


@row("train", "--map-labels")
@row("eval", "--map-labels")
@row("errors", "--map-labels")
@row("convert", "--map-labels")
@row("split", "--map-labels")
@row("compare", "--map-labels")
def map_labels(bench: Bench) -> None:
    """Labels get new names, and a name that does not occur is refused."""
    for command in ("train", "eval", "errors", "convert", "split", "compare"):
        code, error = called(bench, command, bench.train, "--map-labels", "PRE=X")
        assert code == 2
        assert "no label is named 'PRE' (did you mean 'PER'?)" in error
        code, error = called(bench, command, bench.train, "--map-labels", "PER=LOC")
        assert code == 0, error
    assert "B-PER" not in bench.ok("convert", bench.train, "--map-labels", "PER=LOC").stdout
    assert "B-PER" in bench.ok("convert", bench.train).stdout


# --- plain text ---------------------------------------------------------------------------------------------


@row("tag", "--pretokenized")
def pretokenized(bench: Bench) -> None:
    """--pretokenized splits text at spaces only."""
    model = bench.saved(tw.HMM().fit(TRAIN.tokens, TRAIN.labels), "words.tagwise")
    found = bench.ok("tag", model, "--pretokenized", text="Rosa runs to Lund.\n").stdout
    assert [token.split("/")[0] for token in found.split()] == ["Rosa", "runs", "to", "Lund."]
    assert bench.ok("tag", model, text="Rosa runs to Lund.\n").stdout.startswith(
        '{"text": "Rosa runs to Lund."'
    )


@row("annotate", "--raw")
@row("annotate", "--pretokenized")
def plain_text(bench: Bench) -> None:
    """The options decide how plain text is split into tokens."""
    pytest.importorskip("starlette")
    found = {}
    for name, text in (("raw.txt", "She left Lund.\n"), ("tokens.txt", "She left Lund .\n")):
        for options in ((), ("--raw",), ("--pretokenized",)):
            work = bench.folder / f"{name} {options}"
            file = bench.path(name, text)
            bench.ok(
                "annotate", file, "--work", work, *options, "--export", "jsonl", "-o", bench.path("x.jsonl")
            )
            document = next((work / "documents").iterdir())
            found[(name, *options)] = json.loads(document.read_text())["tokens"]
    tokens = ["She", "left", "Lund", "."]
    assert found.pop(("raw.txt", "--pretokenized")) == ["She", "left", "Lund."]
    assert all(value == tokens for value in found.values())
    both = invoke("annotate", bench.path("raw.txt"), "--work", bench.path("w"), "--raw", "--pretokenized")
    assert both.exit_code == 2


# --- split --------------------------------------------------------------------------------------------------


def parts(
    bench: Bench, *options: object, source: object = None, names: tuple[str, ...] = ("train", "dev", "test")
) -> list[tw.Corpus]:
    """Run ``split`` and return the parts that it wrote."""
    out = bench.folder / f"parts {len(list(bench.folder.iterdir()))}"
    bench.ok("split", source or bench.train, "-o", out, *options)
    files = sorted(out.iterdir(), key=lambda path: [*names].index(path.name.split(".")[-2]))
    return [tw.read(path) for path in files]


@row("split", "source")
def split_source(bench: Bench) -> None:
    """The parts have the sentences of the given file or bundled corpus."""
    for path in (bench.train, bench.dev):
        found = parts(bench, source=path)
        assert sum(map(len, found)) == len(tw.read(path))
    assert sum(map(len, parts(bench, source="wnut17-ner:dev"))) == 1009


@row("split", "--parts")
def split_parts(bench: Bench) -> None:
    """--parts gives the number of parts and their shares."""
    assert [len(p) for p in parts(bench, "--parts", "50,50", names=("train", "test"))] == [12, 12]
    numbered = tuple(f"part{i}" for i in range(1, 5))
    assert len(parts(bench, "--parts", "1,1,1,1", names=numbered)) == 4
    for wrong in ("80", "80,0", "80,x", ""):
        assert invoke("split", bench.train, "--parts", wrong).exit_code == 2


@row("split", "--seed")
def split_seed(bench: Bench) -> None:
    """--seed changes the parts. Default: 0."""
    whole = tw.read(bench.train)
    assert parts(bench) == parts(bench, "--seed", 0) == split(whole, (80, 10, 10), 0)
    assert parts(bench, "--seed", 5) == split(whole, (80, 10, 10), 5) != parts(bench)


@row("split", "-o", "--output")
def split_output(bench: Bench) -> None:
    """-o names the folder. Default: the current one."""
    bench.patch.chdir(bench.folder)
    bench.ok("split", bench.train)
    for spelling in ("-o", "--output"):
        bench.ok("split", bench.train, spelling, bench.folder / "new" / spelling)
        for part in ("train", "dev", "test"):
            name = f"train.{part}.txt"
            assert (bench.folder / "new" / spelling / name).read_text() == (bench.folder / name).read_text()


@row("split", "--to")
def split_to(bench: Bench) -> None:
    """--to sets the format of the parts. Default: that of the input."""
    out = bench.folder / "out"
    bench.ok("split", bench.train, "--to", "csv", "-o", out)
    assert sorted(path.name for path in out.iterdir()) == [
        "train.dev.csv",
        "train.test.csv",
        "train.train.csv",
    ]
    assert (out / "train.dev.csv").read_text().startswith("sentence_id,word,pos,label\n")


@row("split", "--format")
def split_format(bench: Bench) -> None:
    """--format sets the format of the input."""
    file = bench.path("t.data", "a b .\nc d .\ne f g .\n")
    assert sum(map(len, parts(bench, "--format", "text", source=file))) == 3
    assert invoke("split", file, "--format", "jsonl").exit_code == 2


@row("split", "--columns")
def split_columns(bench: Bench) -> None:
    """--columns names the columns of the input."""
    assert parts(bench, "--columns", "word,_,label", "--to", "jsonl")[0].columns == ("word", "label")


@row("split", "--label")
def split_label(bench: Bench) -> None:
    """--label chooses the column of the labels, which a table has last."""
    found = parts(
        bench, "--columns", "word,pos,label", "--label", "pos", "--map-labels", "N=X", "--to", "jsonl"
    )
    assert "N" not in {y for part in found for s in part for y in s.fields["pos"]}


CHECKS = {
    name: check
    for name, check in cases(*CALLS).items()
    if check.__module__ == __name__ or name == "split --debug"
}


@pytest.mark.parametrize("name", CHECKS)
def test_options(name: str, bench: Bench) -> None:
    """Each option of a command changes the outcome as its help says."""
    CHECKS[name](bench)
