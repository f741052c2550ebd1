"""Formats: errors for malformed input, values that only look dangerous, corpora by name from a folder."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tagwise.base.exceptions import CorpusError
from tagwise.cli.spans import TEXTS
from tagwise.cli.tag import WRITERS
from tagwise.corpus import bundled, formats
from tagwise.corpus.conll import format_conll
from tagwise.corpus.conllu import CONLLU_COLUMNS, format_conllu
from tagwise.corpus.formats import format_of_name, format_of_text, open_sentences, read, write
from tagwise.corpus.jsonl import format_jsonl
from tagwise.corpus.pretokenized import format_text
from tagwise.corpus.row_blocks import _SHARED_STRINGS, StringCache, doc_of
from tagwise.corpus.sentence import Corpus, Sentence


def stream(text: str) -> io.StringIO:
    """Return a text as a file object."""
    return io.StringIO(text)


def refused(message: str, call: Callable[[], Any]) -> None:
    """Check that the call raises a CorpusError whose message contains `said`."""
    with pytest.raises(CorpusError, match=message):
        call()


# -- CoNLL columns --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", ["", ",", "\t\t", "  "])
def test_conll_separators(separator: str) -> None:
    """Tabs and spaces are accepted when reading and when writing."""
    message = r"is neither a tab nor a space\. Pass '\\t'"
    refused(message, lambda: tw.iter_sentences(stream("a b\n"), "conll", separator=separator))
    refused(message, lambda: tw.write([], stream(""), "conll", separator=separator))


@pytest.mark.parametrize(
    ("columns", "label", "message"),
    [
        ((), "label", r"columns=\(\) are not column names\. Give one distinct name per column"),
        (("_", "_"), None, "are not column names"),
        (("a", "a"), None, "are not column names"),
        (("a", ""), None, "are not column names"),
        (("a", "b"), "c", r"label='c' is not one of the columns a, b\. Name one of them"),
        (("a", "_"), "_", r"label='_' is not one of the columns a\."),
    ],
)
def test_conll_names(columns: tuple[str, ...], label: str | None, message: str) -> None:
    """Column names must be distinct and include the label."""
    refused(message, lambda: tw.read(stream("x y\n"), "conll", columns=columns, label=label))
    refused(message, lambda: tw.read(stream("[]\n"), "jsonl", columns=columns, label=label))


def test_conll_names_as_one_string() -> None:
    """Names are separated by commas or spaces. Columns can be skipped. The default label column may be missing."""
    for columns in ("word,_,label", "word _ label", ["word", "_", "label"]):
        found = tw.read(stream("a N X\nb V Y\n"), "conll", columns=columns)
        assert found.columns == ("word", "label")
        assert found.labels == [["X", "Y"]]
    assert tw.read(stream("a N\n"), "conll", columns="word pos").label is None


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6])
def test_conll_names_by_default(count: int) -> None:
    """Default names are word, pos, chunk, col4, ...

    The last column is the label unless it is the only one or a label is named.
    """
    row = " ".join("abcdef"[:count])
    names = ["word", "pos", "chunk", "col4", "col5", "col6"][:count]
    assert tw.read(stream(f"{row}\n"), "conll", label=None).columns == tuple(names)
    if count > 1:
        names[-1] = "label"
    assert tw.read(stream(f"{row}\n"), "conll").columns == tuple(names)
    assert tw.read(stream("a b\n"), "conll", label="ner").columns == ("word", "ner")


def test_a_row_without_the_named_columns_is_refused() -> None:
    """The error gives line number and both column counts, and suggests the comment option if a comment is the cause."""
    refused(
        r"<stream>:1: 2 columns.*expected 3 \(word, pos, label\)",
        lambda: tw.read(stream("a b\n"), "conll", columns=("word", "pos", "label")),
    )
    refused("comments=True", lambda: tw.read(stream("a b\n# c\n\n# x y z\n"), "conll"))


@pytest.mark.parametrize("value", ["x-DOCSTART-", "-DOCSTART-x", "a b", "#", "-X-", "\u00a0", "\u3000"])
def test_values_that_fit_between_tabs_round_trip(value: str) -> None:
    """Values that fit between tabs survive a round trip."""
    c = Corpus.from_lists([["a", value], [value]], [["X", "Y"], [value]])
    out = io.StringIO()
    tw.write(c, out, "conll")
    assert tw.read(stream(out.getvalue()), "conll", comments=False, separator="\t") == c
    pos = Corpus(
        [Sentence({"word": ["a"], "label": ["-DOCSTART-"]}, "label")]
    )  # document marks count in the first column only
    out = io.StringIO()
    tw.write(pos, out, "conll")
    assert tw.read(stream(out.getvalue()), "conll") == pos


@pytest.mark.parametrize(
    ("value", "separator"),
    [
        *((v, s) for v in ("", "a\tb", "a\nb", "a\rb", "a\0b", " a", "a ", "-DOCSTART-") for s in "\t "),
        ("a b", " "),
    ],
)
def test_values_that_conll_cannot_represent(value: str, separator: str) -> None:
    """The error gives the token, line, column and value. JSONL can store any value."""
    s = Sentence({"word": ["ok", value], "label": ["X", "Y"]}, "label", line=7)
    by = "tabs" if separator == "\t" else "spaces"
    refused(
        rf"token 1 of the sentence at line 7: word is .* a CoNLL file with {by} between columns cannot contain.*JSONL",
        lambda: format_conll(s, separator=separator),
    )
    bare = Sentence({"word": [value]})
    refused("^token 0: word is", lambda: format_conll(bare, separator=separator))
    assert tw.read(stream(format_jsonl(s)), "jsonl")[0].tokens == ["ok", value] if value else True


def test_conll_columns_are_selected_for_writing() -> None:
    """Columns can be selected and reordered. Unknown or empty selections fail. Document marks get the same width."""
    s = Sentence({"word": ["a"], "pos": ["N"], "label": ["X"]}, "label", doc="d", comments=("# c",))
    assert format_conll(s) == "-DOCSTART-\t-X-\tO\n\na\tN\tX\n\n"
    assert format_conll(s, columns=["label", "word"]) == "-DOCSTART-\t-X-\n\nX\ta\n\n"
    assert format_conll(s, columns=["label"]) == "-DOCSTART-\n\nX\n\n"
    assert format_conll(s, columns=["word", "pos"], separator=" ") == "-DOCSTART- -X-\n\na N\n\n"
    assert format_conll(s, documents=False) == "a\tN\tX\n\n"
    refused(
        r"no column is named 'ner'\. The columns are word, pos, label",
        lambda: format_conll(s, columns=["ner", "x"]),
    )
    refused(r"no columns to write\. The columns are", lambda: format_conll(s, columns=[]))
    refused(
        "a CoNLL file cannot contain a sentence without tokens", lambda: format_conll(Sentence({"word": []}))
    )
    for comments, head in ((True, "# c\n"), (False, "")):
        out = io.StringIO()
        tw.write([s], out, "conll", comments=comments, documents=False, columns=["word"])
        assert out.getvalue() == f"{head}a\n\n"


def test_documents_between_rows() -> None:
    """A mark inside a block ends the sentence. A comment names the document. A mark alone is not a sentence."""
    mark = "-DOCSTART-\tO\n"
    text = f"# c\na\tX\n{mark}b\tY\n\n# newdoc id = two\n{mark}\n# newdocument\nc\tZ\n\n{mark}"
    found = list(tw.iter_sentences(stream(text), "conll"))
    assert [(s.tokens, s.doc, s.comments, s.line) for s in found] == [
        (["a"], None, ("# c",), 2),
        (["b"], "", (), 4),
        (["c"], "two", ("# newdoc id = two", "# newdocument"), 10),
    ]
    assert [doc_of(c, "old") for c in ("# newdoc", "#newdoc id=x ", "# text", "# newdocument")] == [
        "", "x", "old", "old",
    ]  # fmt: skip


def test_shared_strings_are_bounded() -> None:
    """Equal strings share one object, and an endless stream of distinct strings does not fill memory."""
    shared = StringCache()
    first, second = shared.column(["".join("ab"), "x"]), shared.column(["".join(["a", "b"])])
    assert first[0] is second[0]
    shared.column([str(i) for i in range(_SHARED_STRINGS + 1)])
    assert len(shared) > _SHARED_STRINGS
    assert shared.column(["ab"]) == ["ab"]
    assert len(shared) == 1


# -- CoNLL-U --------------------------------------------------------------------------------------------------

ROW = "1\tHi\thi\tINTJ\tUH\t_\t0\troot\t_\t_\n"


def test_conllu_names() -> None:
    """Columns can be selected, each at most once, and must include the label."""
    for columns, label, message in (
        ((), None, r"columns=\(\) are not column names"),
        (("word", "word"), None, r"columns=\('word', 'word'\) are not column names"),
        (("word", "x"), None, r"CoNLL-U has no column 'x'\. Its columns are word, lemma, upos"),
        (("word",), "upos", r"label='upos' is not one of the columns word"),
    ):
        refused(
            message,
            lambda columns=columns, label=label: tw.iter_sentences(
                stream(ROW), "conllu", columns=columns, label=label
            ),
        )
    found = tw.read(stream(ROW), "conllu", columns=("xpos", "word"), label="xpos")
    assert found.columns == ("xpos", "word")
    assert found.labels == [["UH"]]
    assert tw.read(stream(""), "conllu").columns == CONLLU_COLUMNS
    assert tw.read(stream(""), "conllu", columns=("word",), label=None).columns == ("word",)
    refused(
        r"CoNLL-U has no column 'x'\. Its columns are",
        lambda: open_sentences(stream(ROW), "conllu", columns=["word", "x", "y"], label="y"),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ROW + "# late\n" + ROW.replace("1", "2", 1), "<stream>:2: a comment inside a sentence: '# late'"),
        ("1\tHi\n", r"<stream>:1: 2 columns in '1\\tHi', expected the 10 of CoNLL-U"),
        ("Hi\n", r"<stream>:1: 1 column in 'Hi', expected the 10"),
        (ROW.replace("\thi\t", "\t\t"), "<stream>:1: an empty value in column lemma of"),
        (ROW.replace("1", "2", 1), r"<stream>:1: id '2' after token 0\. Number the tokens of each sentence 1, 2"),
        (
            ROW + ROW,
            r"<stream>:2: id '1' after token 1\. .*\(here 2\)\. A multiword token is 2-3, an empty node 1\.1",
        ),
        ("0.1" + ROW[1:], "<stream>:1: a sentence without tokens"),
        ("1-3" + ROW[1:] + ROW, "<stream>:1: a multiword token up to 3 in a sentence of 1 tokens"),
        ("0.2" + ROW[1:] + "0.1" + ROW[1:] + ROW, r"<stream>:2: id '0\.1' after token 0"),
        (("0.1" + ROW[1:]) * 2 + ROW, r"<stream>:2: id '0\.1' after token 0"),
        ("".join(number + ROW[1:] for number in ("1-2", "1", "2-3", "2", "3")), "<stream>:3: id '2-3' after token 1"),
    ],
)  # fmt: skip
def test_malformed_conllu_rows_are_reported_by_line(text: str, message: str) -> None:
    """The error gives the number of each faulty line."""
    refused(message, lambda: tw.read(stream(text), "conllu"))


def test_conllu_comments_alone_are_kept_for_the_next_sentence() -> None:
    """A block of comments is not a sentence."""
    (s,) = tw.read(stream(f"# newdoc id = d\n# a\n\n# b\n{ROW}"), "conllu")
    assert (s.comments, s.doc, s.line) == (("# newdoc id = d", "# a", "# b"), "d", 5)


def test_conllu_writing() -> None:
    """Labels under another name, documents without a comment, and values that cannot be written."""
    s = Sentence({"form": ["a", "b"], "ner": ["X", "Y"]}, "ner", doc="d")
    assert (
        format_conllu(s) == "# newdoc id = d\n1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n2\tb\t_\tY\t_\t_\t_\t_\t_\t_\n\n"
    )
    out = io.StringIO()
    tw.write([s, Sentence({"word": ["c"]}, doc="")], out, "conllu", label_column="misc")
    assert out.getvalue().splitlines()[1] == "1\ta\t_\t_\t_\t_\t_\t_\t_\tX"
    assert out.getvalue().splitlines()[4] == "# newdoc"
    refused(
        r"label_column='ner' is not a column of CoNLL-U\. Use one of word, lemma",
        lambda: format_conllu(s, label_column="ner"),
    )
    refused(
        "a CoNLL-U file cannot contain a sentence without tokens",
        lambda: format_conllu(Sentence({"word": []})),
    )
    for value in ("", " a", "a ", "a\tb", "a\nb", "a\rb", "a\0b"):
        bad = Sentence({"word": ["ok", value]})
        refused(
            r"token 1: word is .*a CoNLL-U file cannot contain\. Replace", lambda bad=bad: format_conllu(bad)
        )


# -- JSONL and text -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"<stream>:2: not valid JSON \("),
        ("[" * 100_000, r"<stream>:2: not valid JSON \("),
        ("3", "<stream>:2: '3' is not an object"),
        ("{}", "<stream>:2: 'tokens' is missing"),
        ('{"words": 3}', "<stream>:2: 'words' is '3', not an array"),
        ('{"tokens": ["a"], "tags": ["X", "Y"]}', "<stream>:2: 2 values of 'tags' for 1 tokens"),
        ('{"tokens": ["a"], "labels": [""]}', "<stream>:2: an empty label at token 0"),
        ('{"tokens": ["a", ""], "labels": ["X", "Y"]}', "<stream>:2: '\"\"' in 'tokens' at token 1"),
        ('{"tokens": ["a", 3], "labels": ["X", "Y"]}', "<stream>:2: '3' in 'tokens' at token 1"),
        ('{"tokens": ["\\ud800"], "labels": ["X"]}', "<stream>:2: a lone surrogate"),
        (
            '{"tokens": ["a"], "labels": ["X"], "comments": "c"}',
            "<stream>:2: 'comments' is not an array of lines",
        ),
        ('{"tokens": ["a"], "labels": ["X"], "comments": ["c\\nd"]}', "'comments' is not an array of lines"),
        ('{"tokens": ["a"], "labels": ["X"], "newdoc": 3}', "<stream>:2: 'newdoc' is not a name"),
        ('{"tokens": ["a"], "labels": ["X"], "newdoc": "a\\nb"}', "<stream>:2: 'newdoc' is not a name"),
    ],
    ids=lambda v: v[:40],
)
def test_malformed_jsonl_lines_are_reported(line: str, message: str) -> None:
    """The error gives line number and key of each fault."""
    first = '{"tokens": ["a"], "labels": ["X"]}\n'
    refused(message, lambda: tw.read(stream(first + line + "\n"), "jsonl"))


@pytest.mark.parametrize(
    ("given", "doc"), [("true", ""), ("false", None), ("null", None), ('"d"', "d"), ('""', "")]
)
def test_jsonl_documents(given: str, doc: str | None) -> None:
    """`true` begins a document without a name."""
    (s,) = tw.read(stream(f'{{"tokens": ["a"], "newdoc": {given}, "id": 7}}\n'), "jsonl")
    assert s.doc == doc
    assert s.meta == {"id": 7}
    back = json.loads(format_jsonl(s))
    assert back == {"tokens": ["a"], "id": 7} | ({} if doc is None else {"newdoc": doc})


def test_jsonl_lists_become_columns() -> None:
    """Lists of texts become columns, everything else is kept in `meta`, and the label is chosen by name."""
    line = '{"words": ["a", "b"], "pos": ["N", "V"], "n": [1, 2], "short": ["x"], "tags": ["X", "Y"]}\n'
    found = tw.read(stream(line), "jsonl")
    assert found.columns == ("word", "pos", "label")
    assert found[0].meta == {"n": [1, 2], "short": ["x"]}
    some = tw.read(stream(line), "jsonl", columns="word,_,label")
    assert some.columns == ("word", "label")
    assert some[0].meta == {"pos": ["N", "V"], "n": [1, 2], "short": ["x"]}
    assert tw.read(stream(line), "jsonl", columns=["word", "pos"], label="pos").labels == [["N", "V"]]
    assert tw.read(stream(line), "jsonl", label=None).label is None


@pytest.mark.parametrize("tokens", [[], [""], ["a b"], ["a\tb"], ["a\nb"], ["a", "\r"], ["\0"]])
def test_tokens_with_spaces_cannot_be_written_as_text(tokens: list[str]) -> None:
    """A token that contains a space would be read back as two."""
    refused("cannot be written as text", lambda: format_text(Sentence({"word": tokens})))


def test_lines_of_tokens() -> None:
    """Any number of spaces and tabs separates tokens, and the label separator can be chosen."""
    found = tw.read(io.StringIO("\ufeff a \t b \r\n\n\tc\n", newline=""), "text")
    assert (found.tokens, [s.line for s in found]) == ([["a", "b"], ["c"]], [1, 3])
    assert tw.read(stream(""), "text").columns == ("word",)
    out = io.StringIO()
    tw.write([Sentence({"word": ["a", "b"], "label": ["X", "Y"]}, "label")], out, "text", join="/")
    assert out.getvalue() == "a/X b/Y\n"


# -- by name and by contents ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.conllu", "conllu"), ("A.CONLLU", "conllu"), ("a.jsonl.gz", "jsonl"), ("a.ndjson.xz", "jsonl"),
        ("a.tsv", "conll"), ("a.conll.bz2", "conll"), ("a.txt", None), ("a.gz", None), ("-", None), ("conllu", None),
    ],
)  # fmt: skip
def test_formats_by_suffix(name: str, format: str | None) -> None:
    """The format follows the suffix before that of a compression."""
    assert format_of_name(name) == format


def test_formats_are_chosen_by_suffix_or_name(tmp_path: Path) -> None:
    """The suffix decides for reading and writing, a named format takes precedence, an unknown one is refused."""
    c = Corpus([Sentence({"word": ["a", "b"], "upos": ["X", "Y"]}, "upos")])
    for name in ("a.conllu", "a.jsonl", "a.tsv.gz"):
        write(c, tmp_path / name)
        columns = None if name == "a.conllu" else ["word", "upos"]
        assert read(tmp_path / name, columns=columns, label="upos").labels == c.labels
    assert json.loads((tmp_path / "a.jsonl").read_text()) == {"tokens": ["a", "b"], "upos": ["X", "Y"]}
    write(c, tmp_path / "b.jsonl", "text")
    assert (tmp_path / "b.jsonl").read_text() == "a b\n"
    write(c, tmp_path / "c.txt")
    assert (tmp_path / "c.txt").read_text() == "a\tX\nb\tY\n\n"
    for call in (lambda: read(stream(""), "xml"), lambda: write(c, stream(""), "xml")):
        refused(r"format='xml' is unknown\. Use one of conll, conllu, csv, label-studio, jsonl", call)


def test_comments_with_tabs_do_not_hide_the_format() -> None:
    """The first token decides: comments of CoNLL-U may contain tabs."""
    assert format_of_text(f"# text = a\tb\n{ROW}\n") == "conllu"
    assert format_of_text("# a comment\n#\tN\tGOLD\n") == "conll"


def test_detection_reads_a_bounded_prefix() -> None:
    """Detection reads at most a few thousand characters of a pipe that never ends its line."""
    format, sentences = open_sentences(stream("word " * 1500 + "\n" + "x\n\n"))
    assert format == "raw"
    assert [len(s) for s in sentences] == [1500, 1]


@pytest.mark.parametrize("format", ["conll", "jsonl", None])
def test_empty_files_have_the_requested_columns(format: str | None) -> None:
    """An empty file has the selected columns, including the label, or none if none were named."""
    found = read(stream(""), format, columns="word,_,label")
    assert (len(found), found.columns, found.label) == (0, ("word", "label"), "label")
    assert read(stream(""), format, columns="word,pos").label is None
    assert read(stream(""), format).columns == ()
    assert tw.read(stream(""), "conll", columns="word,_,label").columns == ("word", "label")
    assert tw.read(stream(""), "jsonl", columns="word,_,label").label == "label"


# -- sentences and corpora ------------------------------------------------------------------------------------


def test_sentences_and_corpora_only_equal_their_own_type() -> None:
    """Objects of another type are never equal and cannot be added."""
    c = Corpus.from_lists([["a"]], [["X"]])
    assert c != [["a"]]
    assert c[0] != ["a"]
    assert (c == c[:]) is True
    with pytest.raises(TypeError, match="unsupported operand"):
        c + ["a"]  # type: ignore[operator]  # noqa: RUF005
    for changed in (
        Sentence({"word": ["a"], "label": ["Y"]}, "label"),
        Sentence({"word": ["a"], "label": ["X"]}),
        Sentence({"label": ["X"], "word": ["a"]}, "label"),
        Sentence({"word": ["a"], "label": ["X"]}, "label", comments=("# c",)),
        Sentence({"word": ["a"], "label": ["X"]}, "label", doc=""),
        Sentence({"word": ["a"], "label": ["X"]}, "label", rows=((0, "0.1"),)),
        Sentence({"word": ["a"], "label": ["X"]}, "label", meta={"id": 1}),
    ):
        assert changed != c[0]
    assert Sentence({"word": ["a"], "label": ["X"]}, "label", line=9, meta={}) == c[0]
    assert Corpus([], columns=("a",)) != Corpus([], columns=("b",))
    assert Corpus([], columns=("a",), label="a") != Corpus([], columns=("a",))


def test_an_empty_corpus_has_no_labels() -> None:
    """An empty corpus has no label column. Joined with another corpus, it takes that corpus's columns."""
    empty = Corpus([])
    assert empty.labels == []
    assert empty.label_set == []
    c = Corpus.from_lists([["a"]], [["X"]])
    assert (empty + c).columns == c.columns
    assert (c + empty).label == "label"
    assert (Corpus([], source="f") + Corpus([], source="f")).source == "f"
    assert (Corpus([], source="f") + Corpus([], source="g")).source is None
    refused(
        r"this corpus has no label column\. Its columns are word", lambda: Corpus.from_lists([["a"]]).labels
    )
    refused("f has no column 'x'", lambda: Corpus([c[0]], source="f").column("x"))


def test_external_corpora_are_read_from_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Corpora come from a given folder or the one in the environment. Files name the parts, and dev is optional."""
    monkeypatch.delenv(bundled.DATA_VARIABLE, raising=False)

    def put(folder: str, part: str, sentences: int, columns: int) -> None:
        (tmp_path / folder).mkdir(exist_ok=True)
        row = "\t".join(f"{part}{i}" for i in range(columns))
        (tmp_path / folder / f"{part}.txt.gz").write_bytes(gzip.compress(f"{row}\n\n".encode() * sentences))

    for part, n in (("train", 3), ("test", 2)):
        put("conll2000", part, n, 3)
    for part, n in (("train", 3), ("testa", 2), ("testb", 1)):
        put("conll2003-en", part, n, 4)
    for part, n in (("train", 1), ("testa", 2), ("testb", 3)):
        put("conll2002-es", part, n, 3)
    put("ptb-sample", "all", 3402, 2)

    refused(
        r"corpus conll2000 .*does not come with tagwise\. Set .*TAGWISE_DATA",
        lambda: tw.load_corpus("conll2000"),
    )
    train, dev, test = tw.load_corpus("conll2000", root=tmp_path)
    assert (len(train), dev, len(test)) == (3, None, 2)
    assert train.columns == ("word", "pos", "label")
    assert train[0].labels == ["train2"]
    monkeypatch.setenv(bundled.DATA_VARIABLE, str(tmp_path))
    train, dev, test = tw.load_corpus("conll2003-en")
    assert dev is not None
    assert [p[0].tokens for p in (train, dev, test)] == [["train0"], ["testa0"], ["testb0"]]
    assert train.columns == ("word", "pos", "chunk", "label")
    train, dev, test = tw.load_corpus("ptb-sample", label="label")
    assert (len(train), dev, len(test)) == (3400, None, 2)
    refused("no corpus is named 'x'", lambda: tw.load_corpus("x"))
    refused(
        r"label='chunk': the corpus ptb-sample has no such label column\. Use pos",
        lambda: tw.load_corpus("ptb-sample", "chunk"),
    )
    train, dev, test = tw.load_corpus("conll2002-es")
    assert dev is not None
    assert [len(p) for p in (train, dev, test)] == [1, 2, 3]
    assert (train.columns, train[0].labels) == (("word", "pos", "label"), ["train2"])
    refused(
        r"label='pos': the corpus conll2002-es has no such label column",
        lambda: tw.load_corpus("conll2002-es", "pos"),
    )
    refused("is not a folder", lambda: tw.load_corpus("conll2000", root=tmp_path / "none"))
    assert [c.name for c in bundled.list_corpora() if c.bundled] == ["ewt-pos", "wnut17-ner"]


def test_every_format_has_a_writer_and_a_detection_rank() -> None:
    """Each format has a writer of labelled sentences or of texts, and its own position in detection."""
    table = formats.TABLE.values()
    assert WRITERS.keys() | TEXTS.keys() == formats.TABLE.keys() == set(formats.FORMATS)
    assert not WRITERS.keys() & TEXTS.keys()
    assert len({found.priority for found in table}) == len(table)


@pytest.mark.parametrize(
    ("line", "format"), [('{"tokens": ["a", "b"]}', "jsonl"), ('{"text": "a b"}', "spans")]
)
def test_formats_with_equal_suffixes_are_detected_by_content(line: str, format: str, tmp_path: Path) -> None:
    """The first line decides, even if the suffix is not informative."""
    for name in ("x.jsonl", "x.ndjson", "x"):
        (tmp_path / name).write_text(f"\n{line}\n")
        found, sentences = open_sentences(tmp_path / name)
        assert found == format
        assert [s.tokens for s in sentences] == [["a", "b"]]


# -- options of the formats -----------------------------------------------------------------------------------

TWO = '{"text": "A Londoner left.", "spans": [{"start": 2, "end": 8, "label": "LOC"}]}\n'


@pytest.mark.parametrize(
    "read_all", [tw.read, lambda *args, **options: list(tw.iter_sentences(*args, **options))]
)
def test_options_reach_the_reader(read_all: Callable[..., Any]) -> None:
    """Options change the sentences, for a named and for a detected format."""
    (found,) = read_all(stream("a b c\n"), "raw", tokenizer=lambda text: [text])
    assert found.tokens == ["a b c"]
    assert [s.tokens for s in read_all(stream("a\tb\n"), "conll", separator=" ")] == [["a"]]
    assert [s.comments for s in read_all(stream("# x\na\tb\n"), comments=True)] == [("# x",)]
    refused("inside the token 'Londoner'", lambda: read_all(stream(TWO)))
    (found,) = read_all(stream(TWO), misaligned="expand", scheme="IOBES")
    assert found.labels == ["O", "S-LOC", "O", "O"]


def test_options_reach_the_writer() -> None:
    corpus = Corpus.from_lists([["a", "dog"]], [["DT", "NN"]])
    for format, options, wanted in (
        ("conll", {"columns": ["label"], "separator": " "}, "DT\nNN\n\n"),
        ("text", {"join": "/"}, "a/DT dog/NN\n"),
    ):
        tw.write(corpus, out := io.StringIO(), format, **options)
        assert out.getvalue() == wanted
    tw.write(corpus, out := io.StringIO(), "conllu", label_column="xpos")
    assert tw.read(stream(out.getvalue()), "conllu", label="xpos").labels == corpus.labels


def test_options_that_a_format_lacks_are_rejected() -> None:
    """The error names the options of the format, the closest one, and the formats that have it."""
    text = "a b\nc d e f\n"
    refused(
        r"format='text' has no option 'tokenizer'\. It has no options of its own\. "
        r"Pass format='label-studio' or format='spans' or format='doccano' or format='prodigy' or format='raw'\.",
        lambda: tw.read(stream(text), "text", tokenizer=str.split),
    )
    refused(
        r"format='conll' has no option 'seperator' \(did you mean 'separator'\?\)\. "
        r"Its options are separator, comments\. Drop it\.",
        lambda: tw.iter_sentences(stream(text), "conll", seperator=" "),
    )
    refused(
        r"format='jsonl' has no option 'join'\. .* Pass format='text'\.",
        lambda: tw.write([], stream(""), "jsonl", join="/"),
    )
