"""The arithmetic of a study: means, tests and tables of figures that were computed by hand."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import fields, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from tagwise.apps.compare import Comparison, Published, Row, p_value
from tagwise.apps.compare.report.html import page
from tagwise.apps.compare.table import GROUP, MEASURES
from tagwise.decoding.confidence import entropy

BASE = Row("news", "crf", "log", "S1", 1200, 0, 0.5, 0.25, 0.125, 12345, 7, 1.25, precision=0.2, recall=0.4)
BASE = replace(BASE, passes=9, cpu=2.5, memory=3 << 20, threads=2)
MISSING: dict[str, Any] = dict.fromkeys(("f1", "precision", "recall", "cpu", "memory"))
BARE = replace(BASE, learner="hmm", loss="", **MISSING, passes=0, chosen="l2=0.1")

# --- means and deviations -----------------------------------------------------------------------------------


def test_means_and_standard_deviations() -> None:
    """Over three seeds: the mean, and the sample standard deviation with divisor n - 1."""
    values = {
        "accuracy": (0.5, 0.7, 0.9, 0.7, 0.2),
        "f1": (0.1, 0.2, 0.6, 0.3, math.sqrt(0.07)),
        "precision": (0.0, 0.5, 1.0, 0.5, 0.5),
        "recall": (0.3, 0.3, 0.3, 0.3, 0.0),
        "sequence_accuracy": (0.0, 0.0, 0.3, 0.1, math.sqrt(0.03)),
        "dev_accuracy": (0.2, 0.4, 0.6, 0.4, 0.2),
        "dev_f1": (0.0, 0.4, 0.8, 0.4, 0.4),
        "dev_precision": (0.1, 0.3, 0.5, 0.3, 0.2),
        "dev_recall": (0.2, 0.5, 0.8, 0.5, 0.3),
        "nonzero": (10, 20, 30, 20, 10),
        "iterations": (1, 2, 6, 3, math.sqrt(7)),
        "passes": (2, 4, 6, 4, 2),
        "seconds": (1.0, 1.0, 4.0, 2.0, math.sqrt(3)),
        "cpu": (5.0, 7.0, 9.0, 7.0, 2.0),
        "memory": (100, 200, 300, 200, 100),
        "rank": (1.0, 2.0, 6.0, 3.0, math.sqrt(7)),
        "beyond": (0.0, 0.5, 1.0, 0.5, 0.5),
        "margin": (-1.0, 0.0, 1.0, 0.0, 1.0),
    }
    assert values.keys() == set(MEASURES)
    rows = [
        replace(BASE, seed=seed, **{name: column[seed] for name, column in values.items()})
        for seed in range(3)
    ]
    (entry,) = Comparison(rows).summary()
    assert entry["seeds"] == 3
    for name, (*_, mean, deviation) in values.items():
        assert entry[name] == pytest.approx(mean), name
        assert entry[f"{name}_sd"] == pytest.approx(deviation), name
    (single_row,) = Comparison(rows[:1]).summary()
    assert all(single_row[f"{name}_sd"] is None for name in MEASURES)
    assert single_row["accuracy"] == 0.5


def test_missing_values_are_excluded_from_the_mean() -> None:
    """A measure that is missing in a row does not count as zero."""
    rows = [BASE, replace(BASE, seed=1, f1=None, cpu=None), replace(BASE, seed=2, f1=0.75, cpu=None)]
    (entry,) = Comparison(rows).summary()
    assert (entry["f1"], entry["cpu"], entry["cpu_sd"]) == (0.5, 2.5, None)
    assert entry["f1_sd"] == pytest.approx(0.25 * math.sqrt(2))
    (none,) = Comparison([BARE]).summary()
    assert (none["f1"], none["memory"]) == (None, None)


@pytest.mark.parametrize("name", GROUP)
def test_rows_are_grouped_by_everything_except_the_seed(name: str) -> None:
    """Corpus, learner, loss, features and size separate groups. The seed does not."""
    other = replace(BASE, **{name: 7 if name == "sentences" else "other"})
    entries = Comparison([BASE, other, replace(BASE, seed=1)]).summary()
    assert [entry[name] for entry in entries] == [getattr(BASE, name), getattr(other, name)]
    assert [entry["seeds"] for entry in entries] == [2, 1]


def test_chosen_values_are_listed_once() -> None:
    """The choices of all seeds, in order and without repetition."""
    rows = [replace(BASE, seed=i, chosen=c) for i, c in enumerate(("l2=1", "l2=0.1", "l2=1", ""))]
    assert Comparison(rows).summary()[0]["chosen"] == "l2=1; l2=0.1"


# --- significance -------------------------------------------------------------------------------------------


def exact(one: Sequence[Sequence[int]], other: Sequence[Sequence[int]], *, chunks: bool) -> float:
    """Return the share of all swaps of sentences whose difference is at least the observed one."""

    def score(total: list[int]) -> Fraction:
        tokens, right, gold, predicted, correct = total
        whole, part = (gold + predicted, 2 * correct) if chunks else (tokens, right)
        return Fraction(part, whole) if whole else Fraction(0)

    def difference(swap: Sequence[bool]) -> Fraction:
        a = [b if s else a for a, b, s in zip(one, other, swap)]
        b = [a if s else b for a, b, s in zip(one, other, swap)]
        return abs(score([sum(c) for c in zip(*a)]) - score([sum(c) for c in zip(*b)]))

    seen = difference([False] * len(one))
    swaps = list(product((False, True), repeat=len(one)))
    return sum(difference(swap) >= seen for swap in swaps) / len(swaps)


def counts(n: int, seed: int, *, chunks: bool) -> tuple[list[list[int]], list[list[int]]]:
    """Return counts of two learners on the same n sentences. The first one is somewhat better."""
    rng = np.random.default_rng(seed)
    out: tuple[list[list[int]], list[list[int]]] = [], []
    for _ in range(n):
        tokens, gold = int(rng.integers(3, 9)), int(rng.integers(1, 4))
        for place, better in enumerate((1, 0)):
            right = min(tokens, int(rng.integers(0, tokens)) + better)
            predicted = int(rng.integers(1, 4))
            correct = int(rng.integers(0, min(gold, predicted) + 1))
            out[place].append([tokens, right, *((gold, predicted, correct) if chunks else (0, 0, 0))])
    return out


@pytest.mark.parametrize("chunks", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_p_value_estimates_the_exact_permutation_test(chunks: bool, seed: int) -> None:
    """Random swaps estimate the exact share, for F1 if there are chunks and for accuracy otherwise."""
    one, other = counts(9, seed, chunks=chunks)
    expected = exact(one, other, chunks=chunks)
    assert p_value(one, other, trials=20_000) == pytest.approx(expected, abs=0.015)
    assert p_value(other, one, trials=20_000) == pytest.approx(expected, abs=0.015)


def test_p_value_counts_the_observed_sample() -> None:
    """The p-value is (1 + hits) / (1 + trials): never zero, and one if nothing differs."""
    one = [[5, 5, 0, 0, 0]] * 60
    other = [[5, 2, 0, 0, 0]] * 60  # practically never reached by chance
    for trials in (1, 9, 499, 500, 501, 1200):
        assert p_value(one, other, trials=trials) == 1 / (1 + trials)
        assert p_value(one, one, trials=trials) == 1.0
    assert p_value(one, other) == 1 / 10_001
    # No gold chunk and no predicted chunk counts as zero, like a wrong chunk.
    assert p_value([[5, 4, 0, 1, 0]], [[5, 5, 0, 0, 0]], trials=9) == 1.0


def test_p_value_is_reproducible_and_depends_on_the_seed() -> None:
    """Equal seeds swap equal sentences, and another seed swaps other ones."""
    one, other = counts(30, 3, chunks=True)
    found = [p_value(one, other, trials=101, seed=seed) for seed in (0, 0, 1, 2, 3)]
    assert found[0] == found[1] == p_value(one, other, trials=101)
    assert len(set(found)) > 1
    with pytest.raises(ValueError, match="counts of 30 and 29 sentences"):
        p_value(one, other[:-1])


def detail(table: list[list[int]]) -> dict[str, Any]:
    """Return the counts per sentence in the form that a row keeps them."""
    return {"counts": table}


def test_p_value_pools_common_seeds() -> None:
    """Sentences of common seeds are pooled, other seeds do not count, and the baseline has no p-value."""
    (a0, b0), (a1, b1) = counts(5, 1, chunks=False), counts(5, 6, chunks=False)
    wild = [[9, 9, 0, 0, 0]] * 40
    rows, details = [], []
    for learner, tables in (("crf", (a0, a1)), ("hmm", (b0, b1, wild))):
        for seed, table in enumerate(tables):
            rows.append(replace(BASE, learner=learner, seed=seed))
            details.append(detail(table))
    crf, hmm = Comparison(rows, details=details, against="crf").summary()
    assert crf["p"] is None
    assert hmm["p"] == pytest.approx(exact(b0 + b1, a0 + a1, chunks=False), abs=0.02)
    assert [e["p"] for e in Comparison(rows, details=details).summary()] == [None, None]
    assert [e["p"] for e in Comparison(rows, against="crf").summary()] == [None, None]


def test_p_value_compares_equal_corpus_size_and_features() -> None:
    """The baseline has the same corpus and size, and the same features or the only ones it was run with."""
    one, other = counts(8, 2, chunks=False)
    better = [[n, n, 0, 0, 0] for n, *_ in one]
    mine = replace(BASE, learner="crf", features="S2")
    near = exact(one, other, chunks=False)
    far = exact(one, better, chunks=False)
    assert abs(near - far) > 0.1

    def p(*bases: tuple[Row, list[list[int]]]) -> float | None:
        rows = [mine, *(row for row, _ in bases)]
        kept = [detail(one), *(detail(table) for _, table in bases)]
        found = Comparison(rows, details=kept, against="hmm").summary()[0]["p"]
        return None if found is None else float(found)

    def base(table: list[list[int]], **changes: Any) -> tuple[Row, list[list[int]]]:
        return replace(mine, learner="hmm", **changes), table

    assert p(base(other)) == pytest.approx(near, abs=0.02)
    assert p(base(other, features="S1")) == pytest.approx(near, abs=0.02)
    assert p(base(better, features="S1"), base(other)) == pytest.approx(near, abs=0.02)
    assert p(base(better, corpus="web"), base(other)) == pytest.approx(near, abs=0.02)
    assert p(base(better, sentences=3), base(other)) == pytest.approx(near, abs=0.02)
    for nothing in (
        (base(other, features="S1"), base(other, features="S3")),
        (base(other, corpus="web"),),
        (base(other, sentences=3),),
        (base(other, seed=4),),
        (base(other[:-1]),),
    ):
        assert p(*nothing) is None


def test_p_values_are_recomputed_when_rows_are_added() -> None:
    """The p-values of a table that grows are recomputed."""
    (a0, b0), (a1, b1) = counts(6, 1, chunks=False), counts(6, 8, chunks=False)
    table = Comparison(against="crf")
    for seed, (a, b) in enumerate(((a0, b0), (a1, b1))):
        table.add(replace(BASE, seed=seed), detail(a))
        table.add(replace(BASE, learner="hmm", seed=seed), detail(b))
        pooled = (b0 + b1, a0 + a1) if seed else (b0, a0)
        assert table.summary()[1]["p"] == pytest.approx(exact(*pooled, chunks=False), abs=0.02)


# --- what a comparison is made of ---------------------------------------------------------------------------


def test_published_figures_match_measure_learner_and_corpus() -> None:
    """A published figure appears only next to the measure, learner, features and corpus that it belongs to."""
    rows = [
        replace(BASE, learner=learner, features=features, corpus=corpus)
        for learner, features, corpus in product(("crf", "hmm"), ("S1", "S2"), ("news", "web"))
    ]

    def published_cells(figure: Published, head: str) -> list[tuple[str, ...]]:
        names, body = Comparison(rows, published=[figure]).sheet()
        at = names.index(head)
        assert names[at - 1] == head.split(",")[0]
        return [
            (*(c[names.index(n)] for n in ("learner", "features", "corpus")), c[at]) for c in body if c[at]
        ]

    assert published_cells(Published("crf", 61.5), "F1, paper") == [
        ("crf", features, corpus, "61.50") for features, corpus in product(("S1", "S2"), ("news", "web"))
    ]
    assert published_cells(Published("hmm", 9.0, "accuracy", features="S2"), "accuracy, paper") == [
        ("hmm", "S2", corpus, "9.00") for corpus in ("news", "web")
    ]
    assert published_cells(Published("hmm", 9.0, corpus="web", features="S1"), "F1, paper") == [
        ("hmm", "S1", "web", "9.00")
    ]
    head, _ = Comparison(rows, published=[Published("mira", 1.0)]).sheet()
    assert "F1, paper" not in head
    # Hidden is our measure, not one of the paper.
    assert "precision, paper" in Comparison(rows, published=[Published("crf", 1.0, "precision")]).sheet()[0]
    text = page(Comparison(rows, published=[Published("crf", 61.5, source="A paper, Table 9")]))
    assert "A paper, Table 9" in text


# --- formats ------------------------------------------------------------------------------------------------

TABLE = Comparison(
    [
        replace(BARE, chosen="", seed=0, accuracy=0.25),
        replace(BARE, chosen="", seed=1, accuracy=0.75),
        replace(BARE, learner="a_b", chosen="l2=1", features="50%"),
    ],
    title="T",
    caption="C",
    note="N",
)


def test_csv_and_json_contain_every_row() -> None:
    """One record per seed, every field under its name and in full precision. Missing values are empty or null."""
    lines = list(csv.DictReader(io.StringIO(TABLE.to_csv())))
    names = [f.name for f in fields(Row)]
    value = json.loads(TABLE.to_json())
    assert (value["title"], value["caption"], value["note"]) == ("T", "C", "N")
    for row, line, entry in zip(TABLE.rows, lines, value["rows"], strict=True):
        assert list(line) == list(entry) == names
        for name in names:
            field = getattr(row, name)
            assert entry[name] == field
            assert line[name] == ("" if field is None else str(field))
    assert [e["seeds"] for e in value["summary"]] == [2, 1]
    assert value["summary"][0]["accuracy_sd"] == pytest.approx(math.sqrt(0.125))


def test_row_score_is_f1_or_accuracy() -> None:
    """F1 if labels are spans, even if it is zero, and accuracy otherwise."""
    assert (BASE.score, BARE.score, replace(BASE, f1=0.0).score) == (0.25, 0.5, 0.0)
    assert Row.of({**{f.name: getattr(BASE, f.name) for f in fields(Row)}, "unknown": 1}, seed=4) == replace(
        BASE, seed=4
    )


# --- entropy ------------------------------------------------------------------------------------------------


def test_entropy_is_in_nats() -> None:
    """Entropy is - sum p ln p: ln n for n equal shares, and zero if one share is 1."""
    for n in (1, 2, 3, 10):
        assert entropy(np.full((1, n), 1 / n))[0] == pytest.approx(math.log(n), abs=1e-6)
    p = np.array([[0.5, 0.25, 0.25, 0.0], [1.0, 0.0, 0.0, 0.0], [0.9, 0.1, 0.0, 0.0]])
    expected = [1.5 * math.log(2), 0.0, -(0.9 * math.log(0.9) + 0.1 * math.log(0.1))]
    assert entropy(p).tolist() == pytest.approx(expected, abs=1e-6)
