"""Data of other libraries, in and out: frames, data sets, documents, tagged sentences, CoNLL-U lists.

Every test runs with fakes, and with the library itself if it is installed.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tagwise.corpus import corpus_of, to_series
from tagwise.corpus.interop import kind_of
from tagwise.estimators.documents import spacy_component
from tagwise.features.inputs import Inputs

from ..foreign import makers
from ..golden import corpus

KINDS = pytest.mark.parametrize("kind", ["fake", "real"])
X, Y = corpus.words(corpus.TRAIN), corpus.LABELS
#: Sentence, word and label of every token.
ROWS = [(s, w, y) for s, (words, labels) in enumerate(zip(X, Y)) for w, y in zip(words, labels)]
IDS, WORDS, LABELS = (list(column) for column in zip(*ROWS))


def crf() -> tw.CRF:
    return tw.CRF(features="S2", max_iter=10, l2=0.1)


@pytest.fixture(scope="module")
def plain() -> tw.Tagger:
    """Return a tagger trained on lists."""
    return crf().fit(X, Y)


def same(a: tw.Tagger, b: tw.Tagger) -> bool:
    return bool((a.model_.scorer.weights == b.model_.scorer.weights).all())


# --- pandas -------------------------------------------------------------------------------------------------


@KINDS
def test_data_frames_train_like_lists(kind: str, plain: tw.Tagger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training is bit-identical, and predictions become a column of the frame with its index."""
    index = [f"r{i}" for i in range(len(ROWS))]
    frame = makers.frame(kind, {"sentence": IDS, "word": WORDS, "label": LABELS}, index)
    tagger = crf().fit(frame)
    assert same(tagger, plain)
    found = tagger.predict(frame)
    assert found == plain.predict(X)
    makers.with_pandas(kind, monkeypatch)
    series = to_series(frame, found)
    assert series.tolist() == [y for labels in found for y in labels]
    assert list(series.index.tolist()) == index
    assert series.name == "predicted"
    assert tagger.score(frame) == plain.score(X, Y)


@KINDS
def test_rows_of_a_sentence_need_not_be_adjacent(
    kind: str, plain: tw.Tagger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a sentence need not be adjacent. Labels are returned in the order of the rows."""
    order = sorted(range(len(ROWS)), key=lambda i: (i % 3, i))
    order.sort(key=lambda i: ROWS[i][0] % 2)
    data = {"s": [IDS[i] for i in order], "w": [WORDS[i] for i in order]}
    frame = makers.frame(kind, data, order)
    found = corpus_of(frame, sentence="s", token="w")
    assert found.columns == ("w",)
    firsts = list(dict.fromkeys(data["s"]))
    assert found.tokens == [[w for s, w in zip(data["s"], data["w"]) if s == first] for first in firsts]
    makers.with_pandas(kind, monkeypatch)
    labels = [[f"{w}!" for w in words] for words in found.tokens]
    assert to_series(frame, labels, sentence="s").tolist() == [f"{w}!" for w in data["w"]]


@KINDS
def test_empty_sentence_cells_repeat_the_one_above(kind: str) -> None:
    """An empty cell repeats the sentence above. Column names ignore case, and further columns are read on request."""
    named = [s if i == 0 or IDS[i - 1] != s else None for i, s in enumerate(IDS)]
    data = {"Sentence #": named, "Word": WORDS, "POS": ["N"] * len(WORDS), "Tag": LABELS}
    frame = makers.frame(kind, data)
    found = corpus_of(frame)
    assert found.columns == ("Word", "Tag")
    assert found.tokens == X
    assert found.labels == Y
    more = corpus_of(frame, columns=["POS"])
    assert more.columns == ("Word", "POS", "Tag")
    assert Inputs.of(more).columns == ("Word", "POS")


@KINDS
def test_sentences_may_be_a_level_of_the_index(kind: str) -> None:
    index = list(zip(IDS, range(len(IDS))))
    frame = makers.frame(kind, {"token": WORDS, "tag": LABELS}, index, ["sentence", "t"])
    assert corpus_of(frame).tokens == X


@KINDS
def test_labels_of_a_frame_keep_their_type(kind: str) -> None:
    """Numbers stay numbers, and a label column without values is ignored."""
    numbers = [len(y) for y in LABELS]
    frame = makers.frame(kind, {"sentence": IDS, "word": WORDS, "label": numbers})
    tagger = crf().fit(frame)
    assert {type(y) for labels in tagger.predict(frame) for y in labels} == {int}
    empty = makers.frame(kind, {"sentence": IDS, "word": WORDS, "label": [None] * len(IDS)})
    assert corpus_of(empty).label is None
    assert tagger.predict(empty) == tagger.predict(frame)


@KINDS
def test_invalid_data_frames_are_reported(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def frame(**columns: list[Any]) -> Any:
        return makers.frame(kind, columns, [10, 11])

    two = {"sentence": [1, 1], "word": ["a", "b"]}
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (frame(word=["a", "b"]), {}, "the column of the sentence cannot be determined"),
        (
            frame(sentence=[1, 1], x=["a", "b"]),
            {},
            r"the column of the token cannot be determined\. The columns are sentence, x",
        ),
        (frame(**two, form=["a", "b"]), {}, "several columns may contain the token: word, form"),
        (frame(**two), {"label": "tagg"}, r"no column is named 'tagg'\. The columns are sentence, word"),
        (frame(**two), {"label": "word"}, "cannot contain both the tokens and the labels"),
        (frame(**two), {"columns": ["pos"]}, "no column is named 'pos'"),
        (
            frame(sentence=[1, 1], word=["a", None]),
            {},
            r"row 1 \(index 11\): the token in column 'word' is missing",
        ),
        (frame(**two, label=["X", None]), {}, r"row 1 \(index 11\): the label in column 'label' is missing"),
        (frame(sentence=[None, 1], word=["a", "b"]), {}, "the first row does not name a sentence"),
    ]
    for found, keywords, message in cases:
        with pytest.raises(tw.exceptions.CorpusError, match=message):
            corpus_of(found, **keywords)
    makers.with_pandas(kind, monkeypatch)
    with pytest.raises(tw.exceptions.CorpusError, match="2 label sequences for 1 sentences"):
        to_series(frame(**two), [["X"], ["Y"]])
    with pytest.raises(tw.exceptions.CorpusError, match="sentence 0 has 2 rows, but 1 labels"):
        to_series(frame(**two), [["X"]])


# --- datasets -----------------------------------------------------------------------------------------------

NAMES = sorted({y for labels in Y for y in labels})


@KINDS
def test_dataset_label_ids_become_label_names(kind: str, plain: tw.Tagger) -> None:
    numbers = [[NAMES.index(y) for y in labels] for labels in Y]
    data = makers.dataset(kind, {"tokens": X, "ner_tags": numbers}, {"ner_tags": NAMES})
    assert same(crf().fit(data), plain)
    assert corpus_of(data).columns == ("tokens", "ner_tags")
    assert corpus_of(data).labels == Y
    assert plain.predict(corpus_of(data).tokens) == plain.predict(X)


@KINDS
def test_columns_of_a_data_set(kind: str) -> None:
    """A column that is not named is guessed if the guess is unique. Numbers without names stay numbers."""
    numbers = [[NAMES.index(y) for y in labels] for labels in Y]
    data = {"words": X, "ner_tags": numbers, "pos_tags": numbers, "plain": numbers}
    found = makers.dataset(kind, data, {"ner_tags": NAMES, "pos_tags": [f"P{y}" for y in NAMES]})
    with pytest.raises(
        tw.exceptions.CorpusError, match="several columns may contain the label: ner_tags, pos_tags"
    ):
        corpus_of(found)
    named = corpus_of(found, label="ner_tags", columns=["pos_tags"])
    assert named.columns == ("words", "pos_tags", "ner_tags")
    assert named.column("pos_tags") == [[f"P{y}" for y in labels] for labels in Y]
    assert corpus_of(found, label="plain").labels == numbers
    other = makers.dataset(kind, {"words": X, "entities": numbers}, {"entities": NAMES})
    assert corpus_of(other).label == "entities"
    with pytest.raises(tw.exceptions.CorpusError, match=r"has the parts train\. Choose one: X\['train'\]"):
        crf().fit(makers.dataset_dict(kind, other))
    if kind == "fake":  # the real library refuses it itself
        wrong = makers.dataset(kind, {"tokens": [["a"]], "tags": [[-100]]}, {"tags": NAMES})
        with pytest.raises(
            tw.exceptions.CorpusError,
            match=r"sentence 0, token 0, column 'tags': -100 is not the number of a label",
        ):
            corpus_of(wrong)
        text = makers.dataset(kind, {"text": ["a sentence"]}, {})
        with pytest.raises(tw.exceptions.CorpusError, match="column 'text': str, expected a list"):
            corpus_of(text)


# --- spaCy --------------------------------------------------------------------------------------------------


@KINDS
def test_documents_are_read_as_sentences(kind: str, plain: tw.Tagger) -> None:
    """Entities are labels if all documents have them, and tokens are those of the document."""
    words, labels = [w for s in X[:3] for w in s], [y for s in Y[:3] for y in s]
    begins = [t == 0 for s in X[:3] for t in range(len(s))]
    whole = makers.document(kind, words, labels, begins)
    found = corpus_of([whole, makers.document(kind, X[3], Y[3], [True, *[False] * (len(X[3]) - 1)])])
    assert found.tokens == X[:4]
    assert found.labels == Y[:4]
    assert found.documents == [range(3), range(3, 4)]
    assert same(crf().fit([makers.document(kind, w, y) for w, y in zip(X, Y)]), plain)
    bare = makers.document(kind, X[0])
    assert corpus_of(bare).label is None
    assert plain.predict(bare) == plain.predict([X[0]])
    assert corpus_of(bare, label="tag_", columns=["text"]).columns == ("word", "text", "tag")


@KINDS
def test_taggers_are_pipeline_components(
    kind: str, plain: tw.Tagger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes entities, spans or tags per sentence, with equal results one by one and in batches."""
    nlp = makers.language(kind, monkeypatch)
    with pytest.raises(
        tw.exceptions.ParameterError, match="into='entities': expected one of ents, spans, tag"
    ):
        spacy_component(nlp, plain, into="entities")
    with pytest.raises(tw.exceptions.NotFittedError):
        spacy_component(nlp, tw.CRF())
    component = spacy_component(nlp, plain)
    begins = [t == 0 for s in X[:2] for t in range(len(s))]

    def fresh() -> Any:
        return makers.document(kind, [w for s in X[:2] for w in s], None, begins)

    doc = component(fresh())
    offset = len(X[0])
    wanted = [(s.begin, s.end, s.type) for s in tw.spans.spans(plain.predict([X[0]])[0])]
    wanted += [(s.begin + offset, s.end + offset, s.type) for s in tw.spans.spans(plain.predict([X[1]])[0])]
    assert wanted
    assert [(e.start, e.end, e.label_) for e in doc.ents] == wanted
    many = list(component.pipe([fresh() for _ in range(5)], batch_size=2))
    assert [[(e.start, e.end, e.label_) for e in d.ents] for d in many] == [wanted] * 5
    other = spacy_component(nlp, plain, into="spans", key="found", name="second")
    doc = other(fresh())  # keep the document alive, because its spans need it
    assert [(e.start, e.end, e.label_) for e in doc.spans["found"]] == wanted
    tags = spacy_component(nlp, plain, into="tag", name="third")
    flat = [y for labels in plain.predict(X[:2]) for y in labels]
    doc = tags(fresh())
    assert [token.tag_ for token in doc] == flat


@KINDS
def test_components_are_saved_with_their_pipeline(
    kind: str, plain: tw.Tagger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nlp = makers.language(kind, monkeypatch)
    component = spacy_component(nlp, plain)
    again = type(component)(None)
    with pytest.raises(tw.exceptions.NotFittedError):
        again(makers.document(kind, X[0]))
    for copied in (again.from_bytes(component.to_bytes()), None):
        if copied is None:
            component.to_disk(tmp_path / "c")
            copied = again.from_disk(tmp_path / "c")
        found = copied(makers.document(kind, X[0]))
        assert [e.label_ for e in found.ents] == [s.type for s in tw.spans.spans(plain.predict([X[0]])[0])]
    if kind == "real":
        import spacy

        nlp.to_disk(tmp_path / "pipeline")
        loaded = spacy.load(tmp_path / "pipeline")
        text = " ".join(X[0])
        assert [e.label_ for e in loaded(text).ents] == [e.label_ for e in nlp(text).ents]


# --- NLTK and conllu ----------------------------------------------------------------------------------------


@KINDS
def test_tagged_sentences(kind: str, plain: tw.Tagger) -> None:
    """NLTK's own lists are detected. Plain lists of pairs could be attributes and must be declared as tagged."""
    pairs = [list(zip(words, labels)) for words, labels in zip(X, Y)]
    assert same(crf().fit(makers.view(kind, pairs)), plain)
    found = corpus_of(pairs)
    assert found.columns == ("word", "label")
    assert found.tagged() == pairs
    assert same(crf().fit(found), plain)
    with pytest.raises(
        tw.exceptions.ParameterError, match=r"no labels: .*pass tagwise.corpus.corpus_of\(X\)"
    ):
        crf().fit(pairs)
    assert kind_of(pairs) is None
    three = corpus_of([[("a", "N", "X")], []], columns=["tag"], label="y")
    assert three.columns == ("word", "tag", "y")
    assert len(three) == 2
    for wrong, message in (
        ([[("a", "X"), ("b",)]], "sentence 0, token 1"),
        ([[("a", "X"), "b"]], "expected a tuple of 2: word, label"),
    ):
        with pytest.raises(tw.exceptions.CorpusError, match=message):
            corpus_of(wrong)
    with pytest.raises(tw.exceptions.CorpusError, match="so name the 1 between"):
        corpus_of([[("a", "N", "X")]], columns=["p", "q"])


@KINDS
def test_chunked_sentences(kind: str) -> None:
    """Chunks of a tree become spans."""
    inner = makers.tree(kind, "NP", [("New", "A"), ("Oslo", "N")])
    found = corpus_of([makers.tree(kind, "S", [("in", "P"), inner, ("sleeps", "V")])])
    assert found.columns == ("word", "pos", "label")
    assert found.labels == [["O", "B-NP", "I-NP", "O"]]
    assert found.column("pos") == [["P", "A", "N", "V"]]


CONLLU = """# sent_id = 1
# text = Dogs bark
1\tDogs\tdog\tNOUN\tNNS\tNumber=Plur\t2\tnsubj\t_\t_
2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\tSpaceAfter=No

1-2\tim\t_\t_\t_\t_\t_\t_\t_\t_
1\tin\tin\tADP\t_\t_\t2\tcase\t_\t_
2\tdem\tder\tDET\t_\t_\t0\troot\t_\t_

"""


@KINDS
def test_parsed_conllu_lists_equal_the_file(kind: str) -> None:
    lists = makers.conllu(kind, CONLLU)
    file = tw.read(io.StringIO(CONLLU), "conllu", columns=["word", "upos"], label="upos")
    assert corpus_of(lists) == file
    assert corpus_of(lists).tokens == [["Dogs", "bark"], ["in", "dem"]]
    assert corpus_of(lists, label="xpos", columns=["upos"]).columns == ("word", "upos", "xpos")
    tagger = tw.CRF(features="S1", max_iter=3).fit(lists)
    assert tagger.predict(lists) == tagger.predict([["Dogs", "bark"], ["in", "dem"]])


# --- all of them --------------------------------------------------------------------------------------------


def test_unsupported_objects_are_rejected() -> None:
    for wrong in ([["a", "b"]], 3, "text", {"a": 1}, [[["w=a"]]]):
        assert kind_of(wrong) is None
        with pytest.raises(tw.exceptions.CorpusError, match="Pass a pandas DataFrame"):
            corpus_of(wrong)
    with pytest.raises(tw.exceptions.CorpusError, match="sentence='s' names a column of a DataFrame"):
        corpus_of([[("a", "X")]], sentence="s")
    with pytest.raises(tw.exceptions.CorpusError, match="token='w' names a column of a table"):
        corpus_of([[("a", "X")]], token="w")


def test_iterators_are_not_consumed_by_detection() -> None:
    """Detecting the kind of an iterator does not consume it."""
    source = iter([["a"], ["b"]])
    assert kind_of(source) is None
    assert list(source) == [["a"], ["b"]]


def test_other_libraries_are_not_imported() -> None:
    """Neither importing the package nor inspecting an argument imports these libraries."""
    code = (
        "import sys, tagwise as tw; tw.CRF(features='S1', max_iter=1).fit([['a']], [['X']]).predict([['b']]); "
        "print(sorted({'pandas', 'datasets', 'spacy', 'nltk', 'conllu'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- pages --------------------------------------------------------------------------------------------------


def test_html_page_escapes_every_sentence() -> None:
    page = tw.Corpus.from_lists([["<b>x", "&"], ["New", "Oslo"]], [["O", "O"], ["B-<i>", "I-<i>"]]).to_html(
        "a < b"
    )
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;b&gt;x &amp;" in page
    assert "New Oslo" in page
    assert page.count("<title>a &lt; b</title>") == 1
    assert "http" not in page.replace("http-equiv", "")


def test_displacy_spans_equal_scheme_spans() -> None:
    for sentence, labels in zip(X, Y):
        found = tw.Corpus.from_lists([sentence], [labels])[0].displacy()
        wanted = [(s.type, " ".join(sentence[s.begin : s.end])) for s in tw.spans.spans(labels)]
        assert [(e["label"], found["text"][e["start"] : e["end"]]) for e in found["ents"]] == wanted
