"""The metrics against a plain transcription of conlleval, and against seqeval."""

from __future__ import annotations

import io
import json
import random
import time
import warnings
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwise.errors import CorpusError
from tagwise.metrics import Report, evaluate
from tagwise.schemes import SCHEMES, Span, from_spans, spans
from tagwise.sentence import Corpus

# The oracle: conlleval's rules as they are published.


def ends(last: str, tag: str, last_type: str, type_: str, modern: bool) -> bool:
    end = (last, tag) in {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O"), ("E", "E"), ("E", "I"), ("E", "O")}
    if last not in ("O", ".") and last_type != type_:
        end = True
    if last in ("]", "["):
        end = True
    if modern and (last in ("E", "S") or (last in ("B", "I") and tag == "S")):
        end = True
    return end


def starts(last: str, tag: str, last_type: str, type_: str, modern: bool) -> bool:
    start = (last, tag) in {
        ("B", "B"), ("I", "B"), ("O", "B"), ("O", "I"), ("E", "E"), ("E", "I"), ("O", "E"),
    }  # fmt: skip
    if tag not in ("O", ".") and last_type != type_:
        start = True
    if tag in ("[", "]"):
        start = True
    if modern and (tag in ("B", "S") or (last == "S" and tag in ("E", "I"))):
        start = True
    return start


def conlleval(
    gold: list[list[str]], guess: list[list[str]], modern: bool
) -> tuple[Counter[str], Counter[str], Counter[str], int]:
    """Gold, guessed and correct chunks by type, and correct tags, in conlleval's single loop over lines."""
    found, guessed, correct = Counter[str](), Counter[str](), Counter[str]()
    right_tags = 0
    inside = False
    lc, lct, lg, lgt = "O", "", "O", ""
    lines = [line for g, p in zip(gold, guess) for line in [*zip(g, p), None]]
    for line in lines:
        c_label, g_label = line or ("O", "O")
        c, ct = c_label.split("-", 1) if "-" in c_label else (c_label, "")
        g, gt = g_label.split("-", 1) if "-" in g_label else (g_label, "")
        c_end, g_end = ends(lc, c, lct, ct, modern), ends(lg, g, lgt, gt, modern)
        c_start, g_start = starts(lc, c, lct, ct, modern), starts(lg, g, lgt, gt, modern)
        if inside:
            if c_end and g_end and lgt == lct:
                inside = False
                correct[lct] += 1
            elif c_end != g_end or gt != ct:
                inside = False
        if c_start and g_start and gt == ct:
            inside = True
        if c_start:
            found[ct] += 1
        if g_start:
            guessed[gt] += 1
        if line is not None and c == g and ct == gt:
            right_tags += 1
        lc, lct, lg, lgt = c, ct, g, gt
    if inside:
        correct[lct] += 1
    return found, guessed, correct, right_tags


def corpora(tags: str) -> st.SearchStrategy[list[tuple[list[str], list[str]]]]:
    """Pairs of label sequences of equal lengths, most of them ill-formed and alike enough to share chunks."""
    label = st.one_of(
        st.just("O"), st.builds(lambda t, k: f"{t}-{k}", st.sampled_from(tags), st.sampled_from(["X", "Y-z"]))
    )
    token = st.one_of(label.map(lambda y: (y, y)), st.tuples(label, label))
    return st.lists(
        st.lists(token, max_size=9).map(lambda s: ([g for g, _ in s], [p for _, p in s])), max_size=5
    )


def agree(pairs: list[tuple[list[str], list[str]]], modern: bool) -> None:
    gold, guess = [g for g, _ in pairs], [p for _, p in pairs]
    report = evaluate(gold, guess)
    found, guessed, correct, right = conlleval(gold, guess, modern)
    assert report.correct_tokens == right
    if not report.chunked:
        assert not found
        return
    for kind in found.keys() | guessed.keys():
        s = report.per_type[kind]
        assert (s.gold, s.predicted, s.correct) == (found[kind], guessed[kind], correct[kind])
    assert report.chunks.correct == correct.total()
    assert report.chunks.gold == found.total()
    assert report.chunks.predicted == guessed.total()


@pytest.mark.parametrize("tags", ["BI", "IE", "[]", "[]BI"])
@given(data=st.data())
def test_counts_as_the_original_conlleval(tags: str, data: st.DataObject) -> None:
    agree(data.draw(corpora(tags)), modern=False)


@pytest.mark.parametrize("tags", ["BI", "IE", "BIES"])
@given(data=st.data())
def test_counts_as_conlleval_with_iobes(tags: str, data: st.DataObject) -> None:
    agree(data.draw(corpora(tags)), modern=True)


@given(st.lists(st.sampled_from(["O", "B-X", "I-X", "E-X", "S-X", "L-Y", "U-Y", "I-Y"]), max_size=12))
def test_chunks_of_the_report_are_those_of_spans(labels: list[str]) -> None:
    n = Counter(s.type for s in spans(labels))
    report = evaluate([labels], [labels])
    if report.chunked:
        assert {k: s.correct for k, s in report.per_type.items()} == n
        assert report.f1 == report.accuracy == report.sequence_accuracy == 1.0


def random_chunking(rng: random.Random, length: int) -> list[Span]:
    found, at = [], 0
    while at < length:
        size = rng.randint(1, 3)
        if rng.random() < 0.5 and at + size <= length:
            found.append(Span(rng.choice("XY"), at, at + size))
        at += size
    return found


@pytest.mark.parametrize("scheme", SCHEMES)
def test_well_formed_sequences_score_as_sets_of_spans(scheme: str) -> None:
    rng = random.Random(7)
    gold_chunks = [random_chunking(rng, n) for n in range(1, 40)]
    guess_chunks = [
        c if rng.random() < 0.4 else random_chunking(rng, n) for n, c in enumerate(gold_chunks, 1)
    ]
    gold = [from_spans(c, n, scheme) for n, c in enumerate(gold_chunks, 1)]
    guess = [from_spans(c, n, scheme) for n, c in enumerate(guess_chunks, 1)]
    report = evaluate(gold, guess)
    assert report.chunks.correct == sum(len(set(g) & set(p)) for g, p in zip(gold_chunks, guess_chunks))
    assert report.chunks.gold == sum(map(len, gold_chunks))
    assert report.chunks.predicted == sum(map(len, guess_chunks))


@pytest.mark.parametrize("scheme", ["IOB2", "IOBES"])
def test_agrees_with_seqeval_on_well_formed_sequences(scheme: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seqeval = pytest.importorskip("seqeval.metrics", reason="seqeval is not installed")
    rng = random.Random(3)
    gold = [from_spans(random_chunking(rng, n), n, scheme) for n in range(1, 60)]
    guess = [
        y if rng.random() < 0.5 else from_spans(random_chunking(rng, len(y)), len(y), scheme) for y in gold
    ]
    report = evaluate(gold, guess)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert report.f1 == pytest.approx(seqeval.f1_score(gold, guess))
        assert report.precision == pytest.approx(seqeval.precision_score(gold, guess))
        assert report.recall == pytest.approx(seqeval.recall_score(gold, guess))
        assert report.accuracy == pytest.approx(seqeval.accuracy_score(gold, guess))


def example() -> Report:
    gold = [["B-PER", "I-PER", "O"], ["B-LOC", "O"], ["O"]]
    guess = [["B-PER", "I-PER", "O"], ["B-PER", "O"], ["O"]]
    return evaluate(gold, guess)


def test_report_prints_itself_as_conlleval() -> None:
    text = str(example())
    assert text.splitlines()[0] == "processed 6 tokens with 2 phrases; found: 2 phrases; correct: 1."
    assert text.splitlines()[1] == "accuracy:  83.33%; precision:  50.00%; recall:  50.00%; FB1:  50.00"
    assert "LOC: precision:   0.00%; recall:   0.00%; FB1:   0.00  0" in text
    assert "PER: precision:  50.00%; recall: 100.00%; FB1:  66.67  2" in text


def test_report_in_rich_and_as_a_dict() -> None:
    from rich.console import Console

    report = example()
    out = io.StringIO()
    Console(file=out, width=100).print(report)
    assert "66.67" in out.getvalue()
    assert "PER" in out.getvalue()
    d = json.loads(json.dumps(report.to_dict()))
    assert d["f1"] == d["score"] == report.f1 == 0.5
    assert d["confusion"]["B-LOC"] == {"B-PER": 1}
    assert report.errors() == [("B-LOC", "B-PER", 1)]
    assert report.sequence_accuracy == pytest.approx(2 / 3)


def test_labels_without_chunks_are_scored_by_accuracy() -> None:
    report = evaluate([["NN", "-LRB-"], ["VB"]], [["NN", "NN"], ["VB"]])
    assert not report.chunked
    assert report.score_name == "accuracy"
    assert report.score == pytest.approx(2 / 3)
    assert report.per_label["NN"].precision == 0.5
    assert report.per_type == {}
    assert "NN: precision:  50.00%" in str(report)
    assert "per_type" not in report.to_dict()
    assert "66.67" in _rendered(report)


def _rendered(report: Report) -> str:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=100).print(report)
    return out.getvalue()


def test_nothing_at_all_scores_zero_without_dividing() -> None:
    report = evaluate([], [])
    assert report.accuracy == report.f1 == report.sequence_accuracy == 0.0
    assert str(report)
    assert _rendered(report)


def test_takes_corpora() -> None:
    gold = Corpus.from_lists([["a", "b"]], [["B-X", "O"]])
    assert evaluate(gold, gold).f1 == 1.0
    assert evaluate(gold, [["B-X", "O"]]).f1 == 1.0


def test_lengths_that_differ_name_the_sentence() -> None:
    with pytest.raises(CorpusError, match=r"sentence 1.*2 gold labels but 1 predicted"):
        evaluate([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(CorpusError, match="1 gold sequences but 2"):
        evaluate([["O"]], [["O"], ["O"]])
    with pytest.raises(CorpusError, match="list of sequences"):
        evaluate(["O"], ["O"])  # type: ignore[list-item]


def test_fifty_thousand_tokens_are_quick() -> None:
    rng = random.Random(1)
    gold = [from_spans(random_chunking(rng, 25), 25, "IOB2") for _ in range(2000)]
    guess = [y if rng.random() < 0.7 else from_spans(random_chunking(rng, 25), 25, "IOB2") for y in gold]
    evaluate(gold, guess)
    t = min(_seconds(gold, guess) for _ in range(3))
    assert t < 0.25  # 0.02 s on an idle core; the bound leaves room for a busy one


def _seconds(gold: list[list[str]], guess: list[list[str]]) -> float:
    begin = time.process_time()
    evaluate(gold, guess)
    return time.process_time() - begin
