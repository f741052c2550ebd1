"""The metrics compared with a plain transcription of conlleval and with seqeval."""

from __future__ import annotations

import io
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tagwise as tw
from tagwise.base.exceptions import CorpusError
from tagwise.corpus.schemes import SCHEMES, Span, from_spans, spans
from tagwise.evaluation.calibration_curve import calibration
from tagwise.evaluation.metrics import evaluate

# The oracle: conlleval's rules as published.


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
    """Return gold, guessed and correct chunks by type, and correct tags, in conlleval's single loop over lines."""
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
    """Draw pairs of label sequences of equal lengths, most of them ill-formed and similar enough to share chunks."""
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
def test_counts_equal_conlleval(tags: str, data: st.DataObject) -> None:
    agree(data.draw(corpora(tags)), modern=False)


@pytest.mark.parametrize("tags", ["BI", "IE", "BIES"])
@given(data=st.data())
def test_counts_equal_conlleval_with_iobes(tags: str, data: st.DataObject) -> None:
    agree(data.draw(corpora(tags)), modern=True)


@given(st.lists(st.sampled_from(["O", "B-X", "I-X", "E-X", "S-X", "L-Y", "U-Y", "I-Y"]), max_size=12))
def test_report_chunks_equal_spans(labels: list[str]) -> None:
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


def test_length_mismatch_names_the_sentence() -> None:
    with pytest.raises(CorpusError, match=r"sentence 1.*2 gold labels but 1 predicted"):
        evaluate([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(CorpusError, match="1 gold sequences but 2"):
        evaluate([["O"]], [["O"], ["O"]])
    with pytest.raises(CorpusError, match="list of sequences"):
        evaluate(["O"], ["O"])  # type: ignore[list-item]


# Calibration.


def test_calibration_bins_have_equal_width() -> None:
    """A confidence falls into bin floor(c * bins). Rounding errors below 0 and above 1 are tolerated."""
    confidence = [-1e-7, 0.2499, 0.25, 0.4999, 0.5, 0.7499, 0.75, 1 + 1e-7]
    assert calibration(confidence, [True] * 8, bins=4).count == (2, 2, 2, 2)
    assert calibration(confidence, [True] * 8, bins=1).count == (8,)
    assert calibration(confidence, [True] * 8).count == (1, 2, 1, 1, 2, 1)


def test_invalid_confidences_are_rejected() -> None:
    """Lengths must agree, there must be at least one bin, and confidences are in [0, 1]."""
    with pytest.raises(CorpusError, match=r"2 confidences for 1 answers\. Give one per answer"):
        calibration([0.1, 0.2], [True])
    with pytest.raises(CorpusError, match="bins=0: expected 1 or more"):
        calibration([0.1], [True], bins=0)
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(
            CorpusError, match=rf"a confidence of {bad} is not a probability, expected 0 to 1"
        ):
            calibration([bad], [True])


# Parts of a report that conlleval does not have.


def test_label_counts_confusions_and_errors() -> None:
    """Counts of each label, and confusions sorted by frequency and then by name, up to the given number."""
    gold = [["B-X", "I-X", "O", "O"], ["B-X", "O"], ["B-Y", "O"]]
    guess = [["B-X", "O", "O", "B-Y"], ["O", "B-Y"], ["B-X", "O"]]
    report = evaluate(gold, guess)
    assert {k: (s.gold, s.predicted, s.correct) for k, s in report.per_label.items()} == {
        "B-X": (2, 2, 1), "B-Y": (1, 2, 0), "I-X": (1, 0, 0), "O": (4, 4, 2),
    }  # fmt: skip
    errors = [("O", "B-Y", 2), ("B-X", "O", 1), ("B-Y", "B-X", 1), ("I-X", "O", 1)]
    assert report.errors() == report.errors(None) == report.errors(4) == errors
    assert report.errors(1) == errors[:1]
    assert report.errors(0) == []
    counts = (report.n_sequences, report.correct_sequences, report.n_tokens, report.correct_tokens)
    assert counts == (3, 0, 8, 3)
    d = report.to_dict()
    assert list(d) == [
        "score", "score_name", "accuracy", "sequence_accuracy", "sequences", "tokens", "chunks", "per_type",
        "precision", "recall", "f1", "micro", "macro", "weighted", "per_label", "confusion",
    ]  # fmt: skip
    assert d["macro"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0}
    assert (d["sequences"], d["tokens"], d["accuracy"], d["sequence_accuracy"]) == (3, 8, 3 / 8, 0.0)
    assert d["per_label"]["B-X"] == {
        "precision": 0.5, "recall": 0.5, "f1": 0.5, "gold": 2, "predicted": 2, "correct": 1,
    }  # fmt: skip
    assert d["confusion"]["O"] == {"B-Y": 2, "O": 2}
    assert d["chunks"]["gold"] == report.chunks.gold == 3
    assert set(d["per_type"]) == {"X", "Y"}


def test_length_mismatch_names_file_and_line() -> None:
    """A corpus keeps the file name and the line numbers of its sentences."""
    gold = tw.read(io.StringIO("a X\n\nb Y\nc Z\n"), "conll")
    with pytest.raises(
        CorpusError, match=r"sentence 1 \(from 0\) \(line 3 of <stream>\): 2 gold labels but 1 predicted"
    ):
        evaluate(gold, [["X"], ["Y"]])
    with pytest.raises(CorpusError, match=r"predicted is one sequence of labels.*\[predicted\]"):
        evaluate([["X"]], "X")  # type: ignore[arg-type]
