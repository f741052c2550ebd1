"""Mistakes of the first hour: each is one line that states what is wrong, where, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tagwise as tw

from .options import TRAIN, Bench, crf, invoke

#: Contents of the files that the calls name.
FILES: dict[str, str | bytes] = {
    "empty.csv": "",
    "header.csv": "Sentence #,Word,POS,Tag\n",
    "blank.tsv": "Rosa\tB-PER\n\tO\n",
    "unnamed.csv": "first,Rosa,N,B-PER\n,runs,V,O\n,to,P,O\n",
    "rows.csv": 'text,labels\n"Rosa lives in Lund","B-PER O O B-LOC"\n',
    "quote.csv": 'sentence_id,word,label\n1,"Rosa\n1,runs,O\n',
    "latin.csv": "sentence_id,word,label\n1,Renée,B-PER\n".encode("latin-1"),
    "utf16.csv": "sentence_id,word,label\n1,Rosa,B-PER\n".encode("utf-16-le"),
    "ragged.csv": "sentence_id,word,label\n1,Rosa,B-PER\n1,runs\n",
    "unsorted.csv": "sentence_id,word,label\n1,a,O\n2,b,O\n1,c,O\n",
    "tags.csv": "word,pos_tags,ner_tags\nRosa,N,B-PER\n",
    "numbers.jsonl": '{"tokens": ["Rosa", "runs"], "ner_tags": [1, 0]}\n',
    "tags.jsonl": '{"tokens": ["Rosa"], "pos_tags": ["N"], "ner_tags": ["B-PER"]}\n',
    "lengths.jsonl": '{"tokens": ["Rosa", "runs"], "labels": ["O"]}\n',
    "half.jsonl": '{"tokens": ["Rosa"\n',
    "blank.jsonl": '{"tokens": ["Rosa", ""], "labels": ["O", "O"]}\n',
    "inside.jsonl": '{"text": "Rosa runs", "label": [[0, 2, "PER"]]}\n',
    "beyond.jsonl": '{"text": "Rosa", "label": [[0, 9, "PER"]]}\n',
    "spacy.json": '[["Rosa runs", {"entities": [[0, 4, "PER"]]}]]\n',
    "plain.txt": "Rosa lives in Lund.\nShe left.\n",
    "table.docx": b"PK\x03\x04\0\0",
    "bytes.bin": bytes(range(256)),
    "other.tagwise": "hello\n",
}

#: A call and the parts of its message. GOOD is a labelled file and MODEL a model of it that needs only tokens.
CALLS = {
    "train absent.csv": ["absent.csv: cannot be opened", "Give the path of a readable file"],
    "train wnut17-nre": ["no file or bundled corpus is named 'wnut17-nre' (did you mean 'wnut17-ner'?)"],
    "train empty.csv": ["empty.csv: the file has no sentences", "Give a file with labelled sentences"],
    "train header.csv": ["header.csv: the file has no sentences"],
    "train blank.tsv": ["blank.tsv:2: an empty value in column word", "Write a value in every column"],
    "train unnamed.csv": ["unnamed.csv:2: an empty value", "--columns sentence_id,word,pos,label"],
    "train rows.csv": ["rows.csv:2: a row with 4 words and 4 labels", "one row per token"],
    "train quote.csv": ["quote.csv:2: a quote that is not closed", "Close it"],
    "train latin.csv": ["latin.csv:2: not valid UTF-8 (byte 0xe9)", "--encoding cp1252"],
    "train utf16.csv": ["utf16.csv:1: a NUL byte", "--encoding utf-16-le"],
    "train ragged.csv": ["ragged.csv:3: 2 columns separated by ','", "expected 3"],
    "train unsorted.csv": ["unsorted.csv:4: sentence '1' continues after another", "Sort the rows"],
    "train tags.csv": [
        "tags.csv:1: several columns may hold the labels: pos_tags, ner_tags",
        "--label ner_tags",
    ],
    "train numbers.jsonl": ["numbers.jsonl:1: the labels in 'ner_tags' are numbers", "--label-names O,B-PER"],
    "train numbers.jsonl --label-names O": [
        "numbers.jsonl:1: '1' in 'ner_tags' at token 0 is not the number"
    ],
    "train tags.jsonl": ["tags.jsonl:1: several members may hold the labels", "--label ner_tags"],
    "train lengths.jsonl": ["lengths.jsonl:1: 1 values of 'labels' for 2 tokens", "Give one value per token"],
    "train half.jsonl": ["half.jsonl:1: not valid JSON", 'Write {"tokens": ["..."], "labels": ["..."]}'],
    "train blank.jsonl": ["blank.jsonl:1: '\"\"' in 'tokens' at token 1", "Give a non-empty string"],
    "train inside.jsonl": ["inside.jsonl:1: span 0 (0 to 2, PER 'Ro')", "--misaligned expand"],
    "train beyond.jsonl": ["beyond.jsonl:1: span 0: 0 to 9 is not inside the text of 4 characters"],
    "train spacy.json": ["spacy.json:1: pairs of a text and its entities", '"label": [[3, 7, "LOC"]]'],
    "train plain.txt": ["plain.txt: no column is the label", "--format conll or --format csv", "--columns"],
    "train table.docx": [
        "table.docx: a ZIP archive, such as .docx or .xlsx",
        "Save the text or table as .txt",
    ],
    "train bytes.bin": ["bytes.bin:1: a NUL byte", "binary or damaged"],
    "train GOOD --encoding latin1x": ["--encoding latin1x is not a known encoding", "--encoding latin-1"],
    "train GOOD --label lable": ["no column is named 'lable'", "--columns word,pos,lable"],
    "train GOOD --columns word,label": [
        "3 columns separated by a tab",
        "expected 2 (word, label)",
        "--columns",
    ],
    "train GOOD --features defualt": ["no feature set 'defualt' (did you mean 'default'?)"],
    "train GOOD --learner crff": ["unknown learner 'crff' (did you mean 'crf'?)"],
    "train GOOD --set constraints=atuo": ["unknown label scheme 'atuo' (did you mean 'auto'?)"],
    "train GOOD --map-labels PRE=X": ["no label is named 'PRE' (did you mean 'PER'?)"],
    "train GOOD --max-itr 3": ["No such option '--max-itr'", "'--max-iter'"],
    "tain GOOD": ["No such command 'tain'", "'train'"],
    "convert GOOD out.docx": ["out.docx: tagwise does not write .docx files", ".csv"],
    "convert ewtpos:dev": ["no file or bundled corpus is named 'ewtpos:dev' (did you mean 'ewt-pos'?)"],
    "convert ewt-pos:dve": ["unknown part 'dve' (did you mean 'dev'?)"],
    "split GOOD --parts 80": ["expected two or more positive shares, such as 80,10,10"],
    "compare posx": ["no preset or file is named 'posx' (did you mean 'pos'?)"],
    "tag en-poss plain.txt": [
        "no model file or pretrained tagger is named 'en-poss' (did you mean 'en-pos'?)"
    ],
    "tag other.tagwise plain.txt": ["other.tagwise: not a tagwise model file"],
    "tag NEEDS_POS plain.txt": ["no column 'pos', which the features need", "--columns word,label"],
    "inspect MODEL --label B-PRE": ["the model has no label 'B-PRE' (did you mean 'B-PER'?)"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with all files of the calls."""
    out = tmp_path_factory.mktemp("wrong")
    for name, content in FILES.items():
        (out / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    tw.write(TRAIN, out / "GOOD", "conll")
    crf().fit(TRAIN.tokens, TRAIN.labels).save(out / "MODEL")
    crf(features="default").fit(TRAIN).save(out / "NEEDS_POS")
    return out


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Run in the folder, and check that nothing is written to it."""
    before = sorted(folder.iterdir())
    monkeypatch.chdir(folder)
    yield folder
    assert sorted(folder.iterdir()) == before


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("call", CALLS)
def test_wrong_input_is_one_line_with_a_remedy(call: str) -> None:
    """Exit status 2, one line on stderr, no output and no Python arguments in the message."""
    output = ["-o", "model.tagwise"] if call.startswith("train") else []
    result = invoke(*call.split(), *output)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1), result.stderr
    for part in CALLS[call]:
        assert part in result.stderr
    assert not re.search(r"\b(columns|label|label_names|encoding|format|misaligned)=", result.stderr)


def test_files_without_sentences_are_reported(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """An empty file or one with only a header is converted or tagged to an empty file, and reported."""
    for name in ("empty.csv", "header.csv"):
        path = bench.path(name, str(FILES[name]))
        for command in (["convert"], ["tag", bench.model]):
            result = bench.ok(*command, path)
            assert result.stdout == ""
            assert result.stderr == f"{path}: the file has no sentences, so the output has none either\n"
        assert len(tw.read(path)) == 0
        assert f"{path}: the file has no sentences" in caplog.text
    caplog.clear()
    assert bench.ok("convert", bench.train).stderr == ""
    tw.read(bench.train)
    assert caplog.text == ""


def test_a_file_with_one_label_can_be_trained_on(bench: Bench) -> None:
    """The initial weights are optimal, so that there is no iteration to report."""
    path = bench.path("one.tsv", "a\tO\nb\tO\n\nb\tO\n")
    result = bench.ok("train", path, "-o", bench.path("one.tagwise"))
    assert "no iteration was needed" in result.stderr


def test_explain_against_an_unknown_label_suggests_one() -> None:
    tagger = crf().fit(TRAIN)
    with pytest.raises(tw.exceptions.CorpusError, match=r"against='B-LCO' .*\(did you mean 'B-LOC'\?\)"):
        tagger.explain(TRAIN[0], against="B-LCO")
