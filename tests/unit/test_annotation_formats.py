"""Files of annotation tools and of Hugging Face: doccano, Label Studio, Prodigy, rows as JSON, Parquet and dicts."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import tagwise as tw
from tagwise.base.exceptions import CorpusError, TagwiseError
from tagwise.cli import cli
from tagwise.corpus import corpus_of
from tagwise.corpus.formats import open_sentences
from tagwise.corpus.json_arrays import array_lines

TEXT = "Anna lives in Oslo."
SPANS = [(0, 4, "PER"), (14, 18, "LOC")]
TOKENS = ["Anna", "lives", "in", "Oslo", "."]
LABELS = ["B-PER", "O", "O", "B-LOC", "O"]


def region(start: int, end: int, label: str, text: str | None = None) -> dict[str, Any]:
    value: dict[str, Any] = {"start": start, "end": end, "labels": [label]}
    return {"type": "labels", "value": value if text is None else {**value, "text": text}}


def task(text: str = TEXT, spans: Any = SPANS) -> dict[str, Any]:
    return {"id": 7, "data": {"text": text}, "annotations": [{"result": [region(*span) for span in spans]}]}


PRODIGY = {
    "text": TEXT,
    "tokens": [
        {"text": t, "start": TEXT.index(t), "end": TEXT.index(t) + len(t), "id": i}
        for i, t in enumerate(TOKENS)
    ],
    "spans": [{"start": s, "end": e, "label": y, "token_start": 0, "token_end": 0} for s, e, y in SPANS],
    "_task_hash": 3,
    "answer": "accept",
}
#: Format, and an object of it with the text and spans above.
OBJECTS: list[tuple[str, dict[str, Any]]] = [
    ("doccano", {"id": 1, "text": TEXT, "label": [list(s) for s in SPANS]}),
    ("doccano", {"id": 1, "text": TEXT, "labels": [list(s) for s in SPANS]}),
    ("doccano", {"id": 1, "data": TEXT, "label": [list(s) for s in SPANS]}),
    ("doccano", {"text": TEXT, "entities": [{"start_offset": s, "end_offset": e, "label": y} for s, e, y in SPANS]}),
    ("label-studio", task()),
    ("label-studio", {"data": {"body": TEXT}, "completions": task()["annotations"]}),
    ("label-studio", {"text": TEXT, "id": 1, "label": [{"start": s, "end": e, "labels": [y]} for s, e, y in SPANS]}),
    ("prodigy", PRODIGY),
    ("prodigy", {"text": TEXT, "spans": PRODIGY["spans"], "answer": "accept"}),
    ("spans", {"text": TEXT, "spans": [{"start": s, "end": e, "label": y} for s, e, y in SPANS]}),
    ("jsonl", {"tokens": TOKENS, "ner_tags": LABELS}),
    ("jsonl", {"tokens": TOKENS, "tags": LABELS}),
]  # fmt: skip


def run(*args: object, text: str | None = None) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in args], input=text)


@pytest.mark.parametrize(("format", "value"), OBJECTS)
@pytest.mark.parametrize("layout", ["lines", "array", "indented array"])
def test_formats_are_detected_and_read(format: str, value: dict[str, Any], layout: str) -> None:
    """As lines and as an array, every format yields the same tokens and labels. The extension does not matter."""
    values = [value, value]
    text = {
        "lines": "".join(json.dumps(v) + "\n" for v in values),
        "array": json.dumps(values),
        "indented array": json.dumps(values, indent=2, ensure_ascii=False) + "\n",
    }[layout]
    kind, sentences = open_sentences(io.StringIO(text))
    found = list(sentences)
    assert kind == format
    assert [(s.tokens, s.labels) for s in found] == [(TOKENS, LABELS)] * 2
    if layout == "lines":
        assert [s.line for s in found] == [1, 2]


WRITTEN = ["doccano", "label-studio", "prodigy", "spans", "csv", "jsonl", "conll"]


@pytest.mark.parametrize("format", WRITTEN)
@pytest.mark.parametrize("labels", [LABELS, ["N", "V", "P", "N", "."], None])
def test_formats_round_trip(format: str, labels: list[str] | None, tmp_path: Path) -> None:
    """Tokens, labels (of spans or of tokens, or none) and the text are restored."""
    fields = {"word": TOKENS} if labels is None else {"word": TOKENS, "label": labels}
    given = tw.Corpus([tw.Sentence(fields, None if labels is None else "label", meta={"text": TEXT})])
    path = tmp_path / "file"
    tw.write(given, path, format)
    back = tw.read(path, format if labels is None else None, label=None if labels is None else "label")
    assert [(s.tokens, s.label and s.labels) for s in back] == [(TOKENS, labels)]
    if format not in ("csv", "conll"):
        assert (back[0].meta or {})["text"] == TEXT
    tw.write(back, tmp_path / "again", format)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("format", ["doccano", "label-studio", "prodigy", "spans", "jsonl"])
@pytest.mark.parametrize(
    "line",
    [
        "{", "[1]", "3", '"a"', "null", '{"text": 3}', '{"data": 3}',
        '{"text": "a b", "label": 3, "spans": 3, "tokens": 3, "annotations": 3}',
        '{"data": {"text": "a b"}, "annotations": [3]}',
        '{"data": {"text": "a b"}, "annotations": [{"result": [3]}]}', '{"data": {}, "annotations": []}',
        '{"text": "\\ud800", "label": []}',
        '{"text": "a", "newdoc": 3, "tokens": [{"start": 0, "end": 1}], "label": [], "spans": []}', "[" * 100_000,
        '{"a":' * 100_000,
    ],
)  # fmt: skip
def test_malformed_objects_are_reported_by_line(format: str, line: str) -> None:
    """Other types than expected raise a CorpusError with the line, never another exception."""
    good = {
        "jsonl": '{"tokens": ["a"], "labels": ["O"]}',
        "label-studio": '{"data": {"text": "a"}, "annotations": [{"result": []}]}',
        "doccano": '{"text": "a", "label": []}',
    }.get(format, '{"text": "a", "spans": []}')
    with pytest.raises(CorpusError, match=r"^<stream>:2\b"):
        tw.read(io.StringIO(f"{good}\n{line}\n"), format)


@pytest.mark.parametrize(
    "span", [[0, 99, "X"], [-1, 2, "X"], [2, 2, "X"], [3, 1, "X"], ["0", 4, "X"], [0, 4, 3], [0, 4]]
)
def test_spans_outside_of_the_text_are_refused(span: list[Any]) -> None:
    """Offsets have to be inside of the text and ordered, and a label is a string."""
    named = dict(zip(("start", "end", "label"), span))
    label = named.get("label")
    files: dict[str, Any] = {
        "doccano": {"text": TEXT, "label": [span]},
        "prodigy": {**PRODIGY, "spans": [named]},
        "label-studio": {
            "data": {"text": TEXT},
            "annotations": [
                {
                    "result": [
                        {"value": {"start": span[0], "end": span[1], "labels": [label]}, "type": "labels"}
                    ]
                }
            ],
        },
    }
    for format, value in files.items():
        with pytest.raises(CorpusError, match=r"^<stream>:1: .*span"):
            tw.read(io.StringIO(json.dumps(value)), format)


@pytest.mark.parametrize("format", ["doccano", "label-studio"])
@pytest.mark.parametrize("second", [(2, 8), (0, 4), (0, 18)])
def test_overlapping_and_misaligned_spans(format: str, second: tuple[int, int]) -> None:
    """They are an error by default, and --misaligned decides otherwise."""
    spans = [(0, 4, "PER"), (*second, "X")]
    value = task(spans=spans) if format == "label-studio" else {"text": TEXT, "label": spans}
    text = json.dumps([value])
    with pytest.raises(CorpusError, match=r"misaligned='expand'"):
        tw.read(io.StringIO(text), format)
    assert tw.read(io.StringIO(text), format, misaligned="drop").labels[0][2:] == ["O", "O", "O"]
    refused = run("convert", "-", "--format", format, text=text)
    assert refused.exit_code == 2
    assert "--misaligned expand" in refused.stderr
    assert run("convert", "-", "--format", format, "--misaligned", "drop", text=text).exit_code == 0


def test_label_studio_counts_utf16() -> None:
    """Offsets of JavaScript count astral characters twice. They are converted in both directions."""
    text = "\U0001f600 Oslo \U0001f600 Bonn"
    given = task(text, [(3, 7, "LOC", "Oslo"), (11, 15, "LOC", "Bonn")])
    corpus = tw.read(io.StringIO(json.dumps([given])))
    assert [t for t, y in zip(corpus[0].tokens, corpus[0].labels) if y != "O"] == ["Oslo", "Bonn"]
    out = io.StringIO()
    tw.write(corpus, out, "label-studio")
    values = [r["value"] for r in json.loads(out.getvalue())[0]["annotations"][0]["result"]]
    assert [(v["start"], v["end"], v["text"]) for v in values] == [(3, 7, "Oslo"), (11, 15, "Bonn")]


def test_cancelled_annotations_and_other_regions_are_ignored() -> None:
    """A cancelled annotation is none, and choices and relations are not spans."""
    value = task()
    value["annotations"] = [
        {"was_cancelled": True, "result": [region(0, 4, "X")]},
        {
            "result": [
                {"type": "choices", "value": {"choices": ["a"]}},
                region(0, 4, "PER"),
                {"type": "relation"},
            ]
        },
    ]
    assert tw.read(io.StringIO(json.dumps([value]))).labels == [["B-PER", "O", "O", "O", "O"]]


def test_texts_with_and_without_annotations_are_not_mixed() -> None:
    """Labels are never dropped in silence because the first text has none."""
    for first, second in (({}, task()), (task(), {})):
        text = json.dumps([{"data": {"text": TEXT}, **first}, {"data": {"text": TEXT}, **second}])
        with pytest.raises(
            CorpusError, match=r"'annotations' is (given|missing), unlike in the lines before"
        ):
            tw.read(io.StringIO(text), "label-studio")


def test_prodigy_answers_and_tokens() -> None:
    """Rejected and ignored texts are skipped, and tokens are those of the file."""
    whole = {
        **PRODIGY,
        "tokens": [{"start": 0, "end": 18}, {"start": 18, "end": 19}],
        "spans": [{"start": 0, "end": 18, "label": "X"}],
    }
    lines = [whole, {**PRODIGY, "answer": "reject"}, {**PRODIGY, "answer": "ignore"}]
    corpus = tw.read(io.StringIO("".join(json.dumps(line) + "\n" for line in lines)))
    assert corpus.tokens == [["Anna lives in Oslo", "."]]
    assert corpus.labels == [["B-X", "O"]]
    for tokens in (
        [{"start": 3, "end": 9}, {"start": 5, "end": 7}],
        [{"start": 0, "end": 4, "text": "Anne"}],
        [3],
    ):
        with pytest.raises(CorpusError, match=r"^<stream>:1: .*token"):
            tw.read(io.StringIO(json.dumps({**PRODIGY, "tokens": tokens})), "prodigy")


# --- rows ---------------------------------------------------------------------------------------------------

NUMBERS = [1, 0, 0, 2, 0]
NAMES = ["O", "B-PER", "B-LOC"]


def test_numbered_labels_need_names() -> None:
    """Integers are replaced by their names, and are an error without names or outside of them."""
    line = json.dumps({"tokens": TOKENS, "ner_tags": NUMBERS})
    assert tw.read(io.StringIO(line), label_names=NAMES).labels == [LABELS]
    with pytest.raises(
        CorpusError, match=r":1: the labels in 'ner_tags' are numbers without names.*label_names"
    ):
        tw.read(io.StringIO(line))
    for numbers in ([3, 0, 0, 0, 0], [-100, 0, 0, 0, 0], [0, True, 0, 0, 0], [0, "O", 0, 0, 0]):
        with pytest.raises(
            CorpusError, match=r"at token \d is not the number of a label|in 'ner_tags' at token"
        ):
            tw.read(
                io.StringIO(json.dumps({"tokens": TOKENS, "ner_tags": numbers})),
                "jsonl",
                label="ner_tags",
                label_names=NAMES,
            )
    with pytest.raises(CorpusError, match="label_names="):
        tw.read(io.StringIO(line), label_names=["O", "O"])


def test_the_label_is_named_if_several_are_possible() -> None:
    """The message lists the candidates, and on the command line it is an option."""
    line = json.dumps({"tokens": TOKENS, "pos_tags": LABELS, "ner_tags": LABELS})
    with pytest.raises(
        CorpusError, match=r"several members may hold the labels: pos_tags, ner_tags.*label='ner_tags'"
    ):
        tw.read(io.StringIO(line))
    assert tw.read(io.StringIO(line), label="ner_tags").columns == ("word", "pos_tags", "ner_tags")
    with pytest.raises(CorpusError, match=r"'ner_tag' is missing \(did you mean 'ner_tags'\?\)"):
        tw.read(io.StringIO(line), label="ner_tag")
    assert "--label ner_tags" in run("train", "-", "-o", "m", text=line).stderr


def test_lists_of_dicts() -> None:
    """`fit` and `corpus_of` accept a list of dicts with tokens and labels."""
    rows = [{"id": "0", "tokens": TOKENS, "ner_tags": LABELS}] * 3
    assert corpus_of(rows).labels == [LABELS] * 3
    assert tw.CRF(features="S1").fit(rows).predict([{"tokens": TOKENS}]) == [LABELS]
    numbered = [{"tokens": TOKENS, "ner_tags": NUMBERS}]
    assert corpus_of(numbered, label_names=NAMES).labels == [LABELS]
    with pytest.raises(CorpusError, match="row 1 is list"):
        corpus_of([rows[0], ["a"]])
    with pytest.raises(CorpusError, match="no column is named 'pos'"):
        corpus_of(rows, columns=("pos",))


def hugging_face(path: Path, with_names: bool = True) -> None:
    """Write a Parquet file as Hugging Face datasets do."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"id": ["0", "1"], "tokens": [TOKENS, ["Hi"]], "ner_tags": [NUMBERS, [0]]})
    features = {"ner_tags": {"feature": {"names": NAMES, "_type": "ClassLabel"}, "_type": "Sequence"}}
    if with_names:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(table, path)


def test_parquet_files(tmp_path: Path) -> None:
    """Label names come from the metadata of Hugging Face, or from an option. Corpora round trip."""
    path = tmp_path / "train.parquet"
    hugging_face(path)
    assert tw.read(path).labels == [LABELS, ["O"]]
    hugging_face(path, with_names=False)
    with pytest.raises(CorpusError, match="numbers without names"):
        tw.read(path)
    assert tw.read(path, label_names=NAMES).labels == [LABELS, ["O"]]
    with path.open("rb") as stream:
        assert tw.read(stream, "parquet", label_names=NAMES).labels == [LABELS, ["O"]]
    given = tw.Corpus.from_lists([TOKENS, ["Hi"]], [LABELS, ["O"]])
    tw.write(given, tmp_path / "out.parquet")
    assert tw.read(tmp_path / "out.parquet") == given
    with pytest.raises(CorpusError, match="this is a Parquet file"):
        tw.read(path, "conll")


def test_damaged_parquet_files(tmp_path: Path) -> None:
    """Damage is a CorpusError with the name of the file."""
    path = tmp_path / "x.parquet"
    hugging_face(path)
    data = path.read_bytes()
    for damaged in (b"", b"PAR1", data[: len(data) // 2], data[:-8] + b"\xff" * 8, b"text\n"):
        path.write_bytes(damaged)
        with pytest.raises(CorpusError, match=r"x\.parquet"):
            tw.read(path)
    with pytest.raises(CorpusError, match="cannot be read from a stream"):
        tw.read("-", "parquet")


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the extra to install."""
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(TagwiseError, match=r"tagwise\[parquet\]"):
        tw.read(tmp_path / "x.parquet")


# --- arrays -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_arrays_are_read_as_lines(size: int) -> None:
    """The elements are the same however the text is cut into chunks, and blank lines keep their line numbers."""
    values = [{"a": "x\ty [{,\n"}, {"b": [1, {"c": None}]}, 3, "]"]
    text = json.dumps(values, indent=1) + "\n"
    lines = text.splitlines(keepends=True)
    chunks = ["".join(lines[i : i + size]) for i in range(0, len(lines), size)]
    found = "".join(array_lines("n", iter(chunks))).split("\n")
    assert [json.loads(line) for line in found if line] == values
    assert found[1].startswith("{")
    assert lines[1].strip() == "{"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "n:2: not valid JSON"),
        ('[{"a": 1}', "n:2: the array has no end"),
        ('[{"a": 1},', "n:2: not valid JSON"),
        ('[{"a": 1},]', "n:1: not valid JSON"),
        ('[{"a": 1}\n{"a": 1}]', r"n:2: '\{' after an element"),
        ('[{"a": 1}]\nx', "n:2: 'x' after the end of the array"),
        ('[\n{"a": 1},\n{"a" 1}]', "n:3: not valid JSON"),
    ],
)
def test_malformed_arrays(text: str, message: str) -> None:
    """The error gives the line."""
    with pytest.raises(CorpusError, match=message):
        list(array_lines("n", iter([text + "\n"])))


def test_arrays_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """An element that never ends does not fill the memory. Many small ones do not count together."""
    monkeypatch.setenv("TAGWISE_MAX_SENTENCE", "1000")
    endless = ['[{"a": "b",\n', *['"c": "d",\n'] * 10_000]
    with pytest.raises(CorpusError, match="more than 1,000 bytes"):
        list(array_lines("n", iter(endless)))
    many = ["[\n", *['{"a": "b"},\n'] * 10_000, "{}]\n"]
    assert sum(text.count("}") for text in array_lines("n", iter(many))) == 10_001


# --- command line -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.tagwise"
    tw.CRF(features="S1").fit([TOKENS] * 5, [LABELS] * 5).save(path)
    return path


@pytest.mark.parametrize("format", ["doccano", "label-studio", "prodigy", "csv"])
def test_tag_writes_its_input_format(format: str, model: Path, tmp_path: Path) -> None:
    """The output of `tag` is in the format of the input, with the labels of the model."""
    given, out = tmp_path / "in", tmp_path / "out"
    tw.write(tw.Corpus([tw.Sentence({"word": TOKENS}, meta={"text": TEXT})]), given, format)
    result = run("tag", model, given, "--format", format, "-o", out)
    assert result.exit_code == 0, result.stderr
    if format == "label-studio":
        found = json.loads(out.read_text())[0]["predictions"][0]["result"]
        assert [(r["value"]["text"], r["value"]["labels"]) for r in found] == [
            ("Anna", ["PER"]),
            ("Oslo", ["LOC"]),
        ]
        return
    label = "predicted" if format == "csv" else "label"
    assert tw.read(out, format, label=label).labels == [LABELS]


def test_tag_reads_arrays(model: Path) -> None:
    """An array of sentences is written as lines."""
    result = run("tag", model, text=json.dumps([{"tokens": TOKENS}, {"tokens": ["Anna"]}]))
    assert [json.loads(line)["predicted"] for line in result.stdout.splitlines()] == [LABELS, ["B-PER"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"tokens": ["a"], "upos": ["X"]}', "--label upos"),
        ('{"text": "It is late.", "label": "positive"}', "members label"),
        ("I live in Paris.\n", "Plain text has no labels"),
    ],
)
def test_files_without_labels_are_explained(text: str, message: str) -> None:
    """The message names the columns of the file and the option that helps."""
    result = run("train", "-", "-o", "m.tagwise", text=text)
    assert result.exit_code == 2
    assert "no column is the label" in result.stderr
    assert message in result.stderr


def _read(*objects: Any, array: bool = False) -> tw.Corpus:
    text = json.dumps(list(objects)) if array else "".join(json.dumps(one) + "\n" for one in objects)
    return tw.read(io.StringIO(text))


def test_a_minimal_task_without_regions_is_labelled() -> None:
    """The member with the spans is missing in JSON-MIN if an annotation is empty, also in the first task."""
    empty = {"text": "Nothing here", "id": 1, "annotator": 1, "annotation_id": 1, "lead_time": 3.2}
    spans = [{"start": 0, "end": 4, "text": "Anna", "labels": ["PER"]}]
    for tasks in (
        (empty, {**empty, "text": "Anna left", "label": spans}),
        ({**empty, "text": "Anna left", "label": spans}, empty),
    ):
        found = _read(*tasks, array=True)
        assert sorted(found.labels) == [["B-PER", "O"], ["O", "O"]]


def test_tasks_without_annotations_are_refused_with_a_remedy() -> None:
    done = {"data": {"text": "Anna left"}, "annotations": [{"result": []}]}
    with pytest.raises(CorpusError, match="Export annotated tasks only"):
        _read(done, {"data": {"text": "Eve left"}, "annotations": []}, array=True)


def test_nested_entities_of_doccano() -> None:
    """Entities and relations are in an object of their own, or next to the text."""
    entities = [{"id": 7, "label": "PER", "start_offset": 0, "end_offset": 4}]
    for members in (
        {"label": {"entities": entities, "relations": []}},
        {"entities": entities, "relations": []},
    ):
        assert _read({"id": 1, "text": "Anna left", **members}).labels == [["B-PER", "O"]]


def test_objects_of_other_layouts_are_named() -> None:
    """The columns of a whole data set, and the files of annotation tools for spaCy 2."""
    with pytest.raises(CorpusError, match="Write one object per sentence"):
        _read({"tokens": [["Anna", "left"], ["Eve"]], "ner_tags": [["B-PER", "O"], ["B-PER"]]})
    with pytest.raises(CorpusError, match="pairs of a text and its entities, as spaCy 2 has them"):
        _read({"classes": ["PER"], "annotations": [["Anna left", {"entities": [[0, 4, "PER"]]}]]})


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            '{"id": 1, "text": "great film", "label": ["pos"]}\n',
            "the other members id, label, but no spans with offsets. Write {",
        ),
        ("Anna left.\n", "the other members none, but no spans with offsets"),
    ],
)
def test_fitting_on_texts_without_spans_names_the_layout(lines: str, message: str, tmp_path: Path) -> None:
    """No name of a label column would help."""
    path = tmp_path / "texts.txt"
    path.write_text(lines)
    with pytest.raises(CorpusError) as error:
        tw.CRF().fit(path)
    assert message in str(error.value)
    assert "label=" not in str(error.value)


def test_numbers_in_dicts_name_the_call_that_takes_their_names() -> None:
    """`fit` has no such argument."""
    rows = [{"tokens": ["Anna", "left"], "ner_tags": [1, 0]}]
    with pytest.raises(CorpusError, match=r"Name them with tagwise.corpus.corpus_of\(X, label_names="):
        tw.CRF().fit(rows)
    assert corpus_of(rows, label_names=("O", "B-PER")).labels == [["B-PER", "O"]]


def test_other_things_than_corpora_are_named(tmp_path: Path) -> None:
    """A model file and an address of the network."""
    path = tmp_path / "m.tagwise"
    tw.CRF().fit([["Anna"]], [["PER"]]).save(path)
    with pytest.raises(CorpusError, match="a model file, not a corpus"):
        tw.read(path)
    with pytest.raises(CorpusError, match="addresses are not downloaded"):
        tw.read("https://example.org/train.csv")


def test_a_traceback_suggests_public_names() -> None:
    """Python compares the name with those of the module if the error has both."""
    with pytest.raises(AttributeError) as error:
        tw.load_modle  # noqa: B018
    assert (error.value.name, error.value.obj) == ("load_modle", tw)
