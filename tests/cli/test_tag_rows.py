"""``tagwise tag`` reproduces its input byte for byte, except for the label column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tagwise as tw
from tagwise.cli import cli

WORDS = ("Rosa", "Lund", "runs", "ü", "#", "a#b", "New")
TAGGER = tw.CRF(features="word[0]\nword[-1]\npos[0]", max_iter=4).fit(
    tw.Corpus(
        [
            tw.Sentence({"word": w, "pos": p, "label": y}, "label")
            for w, p, y in (
                (["Rosa", "runs"], ["N", "V"], ["B-PER", "O"]),
                (["New", "Lund", "#"], ["N", "N", "P"], ["B-LOC", "I-LOC", "O"]),
            )
        ]
    )
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model of three columns."""
    path = tmp_path_factory.mktemp("rows") / "m.tagwise"
    TAGGER.save(path)
    return path


def tag(model: Path, data: bytes, *args: object) -> bytes:
    """Return the output of ``tag`` for the given bytes."""
    result = CliRunner().invoke(cli, ["tag", str(model), *map(str, args)], input=data)
    assert result.exit_code == 0, (result.stderr, data)
    return result.stdout_bytes


def labels_of(rows: list[tuple[str, str]]) -> list[str]:
    """Return the labels of a sentence, predicted through the Python interface."""
    sentence: Any = {"word": [w for w, _ in rows], "pos": [p for _, p in rows]}
    return list(TAGGER.predict([sentence])[0])


@st.composite
def files(draw: st.DrawFn, tabs: bool) -> list[tuple[str, list[tuple[str, str]] | None]]:
    """Generate pieces of a CoNLL file: lines without tokens, and sentences of (word, pos)."""
    token = st.tuples(st.sampled_from(WORDS), st.sampled_from(("N", "V", "P")))
    marks = ["-DOCSTART- -X-" if not tabs else "-DOCSTART-\t-X-"]
    comments = ["# a comment", "#"] if tabs else []
    out: list[tuple[str, list[tuple[str, str]] | None]] = []
    for _ in range(draw(st.integers(1, 4))):
        for line in draw(st.lists(st.sampled_from([*comments, *marks, "", "", "  "]), max_size=3)):
            out.append((line, None))
        out.append(("", draw(st.lists(token, min_size=1, max_size=4))))
        out += [("", None)] * draw(st.integers(1, 3))
    return out


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tabs=st.booleans(), gold=st.booleans(), data=st.data())
def test_conll_is_reproduced_with_labels_appended(
    model: Path, tabs: bool, gold: bool, data: st.DataObject
) -> None:
    """``tag`` appends a label to each token and document mark and changes nothing else.

    Separators, line ends, byte order mark, trailing spaces, comments, blank lines and an unterminated last line are
    kept.
    """
    pieces = data.draw(files(tabs))
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    bom = data.draw(st.sampled_from(["", "\ufeff"]))
    gap = "\t" if tabs else " "
    given_, wanted, replaced = [], [], []
    for line, rows in pieces:
        if rows is None:
            given_.append(line)
            marked = line.startswith("-DOCSTART-")
            wanted.append(f"{line}{gap}O" if marked else line)
            replaced.append(f"{line}{gap}O" if marked and not gold else line)
            continue
        for (word, pos), label in zip(rows, labels_of(rows)):
            space = data.draw(st.sampled_from(["", "", " ", "  "]))
            sep = gap if tabs else data.draw(st.sampled_from([" ", "   "]))
            row = sep.join([word, pos, *(["GOLD"] if gold else [])])
            given_.append(f"{row}{space}")
            wanted.append(f"{row}{space}{gap}{label}")
            replaced.append(sep.join([word, pos, label]) + space if gold else f"{row}{space}{gap}{label}")
    while data.draw(st.booleans()) and given_ and not given_[-1].strip():  # sometimes drop blank lines at end
        for lines in (given_, wanted, replaced):
            lines.pop()
    last = data.draw(st.sampled_from(["", end]))
    text, expected, other = (bom + end.join(lines) + last for lines in (given_, wanted, replaced))
    args = ("--format", "conll")
    assert tag(model, text.encode(), *args) == expected.encode()
    assert tag(model, text.encode(), *args, "--replace") == other.encode()


def test_first_column_is_unchanged(model: Path) -> None:
    """``cut -f1`` gives equal results on input and output, for a file with tabs and for a single column."""
    text = b"-DOCSTART-\t-X-\n\n\nRosa\tN\r\nruns \tV\n\n# x\nLund\tN"
    cut = [line.split(b"\t")[0] for line in text.split(b"\n")]
    assert [line.split(b"\t")[0] for line in tag(model, text).split(b"\n")] == cut
    words = tw.CRF(features="word[0]", max_iter=2).fit([["a", "b"]], [["X", "Y"]])
    words.save(model.parent / "words.tagwise")
    found = tag(model.parent / "words.tagwise", b"a\nb \n\n\nb")
    assert found == b"a\tX\nb \tY\n\n\nb\tY"


def test_comments_between_tokens_are_kept(model: Path) -> None:
    """A line that begins with # and contains no tab is a comment, also within a sentence."""
    text = b"# one\nRosa\tN\n# two\n#\tP\n\n# three\n"
    a, b = labels_of([("Rosa", "N"), ("#", "P")])
    expected = f"# one\nRosa\tN\t{a}\n# two\n#\tP\t{b}\n\n# three\n"
    assert tag(model, text).decode() == expected


def test_hash_is_accepted_as_first_token(model: Path) -> None:
    """A # token is recognized even if only a comment precedes it."""
    (label,) = labels_of([("#", "N")])
    for args in ((), ("--format", "conll")):
        assert (
            tag(model, b"# a comment\n#\tN\tGOLD\n", *args).decode() == f"# a comment\n#\tN\tGOLD\t{label}\n"
        )


def test_input_without_sentences_is_reproduced(model: Path) -> None:
    """Input without sentences is returned unchanged."""
    for text in (b"", b"\n\n", b"\n \n"):
        assert tag(model, text) == text


def test_label_cell_in_a_middle_column_is_replaced(model: Path) -> None:
    """--columns gives the position of the label. Spaces around the cell are kept."""
    (label,) = labels_of([("Rosa", "N")])
    found = tag(
        model, b" Rosa\t  old \tN \r\n", "--format", "conll", "--columns", "word,label,pos", "--replace"
    )
    assert found.decode() == f" Rosa\t  {label} \tN \r\n"
    args = ("--format", "conll", "--columns", "word,label,pos", "--replace")
    found = tag(model, "\ufeffRosa  old N\n\n".encode(), *args)
    assert found.decode() == f"\ufeffRosa  {label} N\n\n"


def test_marginals_follow_the_label(model: Path) -> None:
    """Marginals use the separator of the input."""
    text = b"-DOCSTART- -X-\n\nRosa N\n\nLund N"
    plain, more = (tag(model, text, *args) for args in ((), ("--marginals",)))
    assert {len(line.split(b" ")) for line in more.split(b"\n") if line} == {4}
    for a, b in zip(plain.split(b"\n"), more.split(b"\n"), strict=True):
        assert b == a or (b.startswith(a + b" ") and 0.0 <= float(b.split(b" ")[-1]) <= 1.0)


def test_long_files_are_reproduced(model: Path) -> None:
    """Sentences that cross the boundaries of read chunks and batches are complete."""
    rows = [("Rosa", "N"), ("runs", "V")]
    body = "".join(f"{w}\t{p}\n" for w, p in rows) + "\n"
    done = "".join(f"{w}\t{p}\t{y}\n" for (w, p), y in zip(rows, labels_of(rows))) + "\n"
    n = 20_000  # more than one chunk of 256 KiB
    assert tag(model, (body * n).encode()) == (done * n).encode()


# --- CoNLL-U ------------------------------------------------------------------------------------------------

CONLLU = (
    "\ufeff# newdoc id = d\r\n# text = Rosa runs\r\n"
    "1-2\tRosaruns\t_\t_\t_\t_\t_\t_\t_\t_\r\n"
    "1\tRosa\trosa \tX\tNN\tA=b|C=d\t0\troot\t_\tSpaceAfter=No\r\n"
    "1.1\tnode\t_\tX\t_\t_\t_\t_\t_\t_\r\n"
    "2\truns\trun\tX\tVB\t_\t1\tdep\t_\t_ \r\n"
    "\r\n\r\n# sent_id = 2\n1\tLund\t_\t_\t_\t_\t_\t_\t_\t_"
)


@pytest.mark.parametrize("column", ["upos", "xpos"])
def test_conllu_is_reproduced_except_for_the_label(tmp_path: Path, column: str) -> None:
    """Only the label column changes. Comments, ranges, empty nodes, spaces and line ends are kept."""
    train = tw.Corpus([tw.Sentence({"word": ["Rosa", "runs"], column: ["N", "V"]}, column)])
    tagger = tw.CRF(features="word[0]", max_iter=3).fit(train)
    tagger.save(tmp_path / "m")
    labels = [y for words in (["Rosa", "runs"], ["Lund"]) for y in tagger.predict([words])[0]]
    at = {"upos": 3, "xpos": 4}[column]
    expected, more = [], []
    left = iter(labels)
    for line in CONLLU.split("\n"):
        cells = line.split("\t")
        if cells[0] in ("1", "2"):
            cells[at] = next(left)
        expected.append("\t".join(cells))
        more.append(cells)
    found = tag(tmp_path / "m", CONLLU.encode(), "--format", "conllu").decode()
    assert found == "\n".join(expected)
    assert tag(tmp_path / "m", CONLLU.encode(), "--format", "conllu", "--replace").decode() == found
    marked = tag(tmp_path / "m", CONLLU.encode(), "--format", "conllu", "--marginals").decode().split("\n")
    for line, cells in zip(marked, more, strict=True):
        assert line.split("\t")[:9] == cells[:9]
        assert ("Probability=" in line) is (cells[0] in ("1", "2"))
    assert "SpaceAfter=No|Probability=" in marked[3]


# --- JSONL --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_jsonl_members_are_reproduced(tmp_path: Path, end: str) -> None:
    """Order, spelling and spaces of members are kept, and ``predicted`` is appended."""
    tagger = tw.CRF(features="word[0]", max_iter=3).fit([["Rosa", "runs"]], [["N", "V"]])
    tagger.save(tmp_path / "m")
    lines = [
        '\ufeff{"id":1.50,  "tokens" : ["Rosa","r\\u0075ns"], "x":{"b":1,"a":[ ]} } ',
        "",
        '["Rosa"]',
        '{"labels": ["?"], "tokens": ["runs"], "comments": ["c"], "newdoc": true}',
        '{"predicted": ["old"], "tokens": ["Rosa"], "n": 1}',
    ]
    expected = [
        '\ufeff{"id":1.50,  "tokens" : ["Rosa","r\\u0075ns"], "x":{"b":1,"a":[ ]}, "predicted": ["N", "V"]} ',
        "",
        '{"tokens": ["Rosa"], "predicted": ["N"]}',
        '{"labels": ["?"], "tokens": ["runs"], "comments": ["c"], "newdoc": true, "predicted": ["V"]}',
        '{"predicted": ["N"], "tokens": ["Rosa"], "n": 1}',
    ]
    found = tag(tmp_path / "m", end.join(lines).encode(), "--format", "jsonl").decode()
    assert found == end.join(expected)
    replaced = tag(tmp_path / "m", end.join(lines).encode(), "--format", "jsonl", "--replace").decode()
    values = [json.loads(line.strip("\ufeff\r ")) for line in replaced.split("\n") if line.strip()]
    assert [list(v) for v in values] == [
        ["id", "tokens", "x", "labels"],
        ["tokens", "labels"],
        ["labels", "tokens", "comments", "newdoc"],
        ["predicted", "tokens", "n", "labels"],
    ]
    assert [v["labels"] for v in values] == [["N", "V"], ["N"], ["V"], ["N"]]


def test_other_output_formats_convert_only_sentences(model: Path) -> None:
    """Only sentences are converted to another format. Blank lines are not reproduced."""
    found = tag(model, b"Rosa\tN\n\n\n\nLund\tN\n", "--output-format", "jsonl")
    assert [json.loads(line)["tokens"] for line in found.splitlines()] == [["Rosa"], ["Lund"]]


@pytest.mark.parametrize(
    "args",
    [("--nbest", "2"), ("--output-format", "jsonl"), ("--format", "text"), ("--columns", "word,pos,other")],
)
def test_replace_rejects_incompatible_options(model: Path, args: tuple[str, ...]) -> None:
    """--replace with an incompatible option is one error line, exit code 2, and no output."""
    result = CliRunner().invoke(cli, ["tag", str(model), "--replace", *args], input=b"Rosa\tN\tO\n")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--replace" in result.stderr
