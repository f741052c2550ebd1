"""The answer of a report: the best learner, its lead, its significance and its training time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tagwise.apps.compare import Comparison, Row
from tagwise.apps.compare.report.answer import Origin, answer, duration, rivals
from tagwise.apps.compare.report.figures import Entries, Palette, bar_axis, bars
from tagwise.apps.compare.report.html import page
from tagwise.evaluation.significance import intervals

BASE = Row("c", "crf", "", "S1", 100, 0, 0.0, None, 0.0, 10, 5, 2.0)
TOKENS = 10
TIE = "cannot be told apart"


def counts(right: float, n: int = 200, seed: int = 0) -> list[list[int]]:
    """Return counts of sentences of ten tokens, the given share of which is right on average."""
    rng = random.Random(seed)
    return [[TOKENS, sum(rng.random() < right for _ in range(TOKENS)), 0, 0, 0] for _ in range(n)]


def comparison(*runs: tuple[dict[str, Any], Sequence[Sequence[int]]]) -> Comparison:
    """Return a comparison of runs with these fields and counts."""
    rows, details = [], []
    for changes, table in runs:
        share = sum(c[1] for c in table) / sum(c[0] for c in table)
        rows.append(replace(BASE, **{"accuracy": share, **changes}))
        details.append({"counts": table, "history": []})
    return Comparison(rows, details=details)


def answer_text(table: Comparison) -> str:
    """Return the answer for the only corpus."""
    return answer(table, table.summary())


def test_answer_with_a_clear_winner() -> None:
    """The best one with its interval, how far the next is behind, the p-value and the ratio of training times."""
    good, poor = counts(0.9), counts(0.7, seed=1)
    table = comparison(({"seconds": 46.0}, good), ({"learner": "mira", "seconds": 2.0}, poor))
    crf, mira = table.rows
    low, high = intervals([good])["accuracy"]
    assert answer_text(table) == (
        f"crf is best: {100 * crf.accuracy:.2f} % accuracy (95 % interval {100 * low:.1f} to {100 * high:.1f}). "
        f"mira is {100 * (crf.accuracy - mira.accuracy):.1f} points behind (p = 0.0001) and trains 23 times as fast."
    )
    slow = comparison(({}, good), ({"learner": "mira", "seconds": 6.0}, poor))
    assert answer_text(slow).endswith("and takes 3.0 times as long to train.")
    same = comparison(({}, good), ({"learner": "mira", "seconds": 2.2}, poor))
    assert answer_text(same).endswith("and takes about as long to train.")


def test_answer_with_insignificant_difference() -> None:
    """Learners that differ by less than chance are not ranked, and the fastest of them is named."""
    one, other = counts(0.8), counts(0.8, seed=5)
    table = comparison(({"seconds": 20.0}, one), ({"learner": "mira", "seconds": 2.0}, other))
    text = answer_text(table)
    best, second = sorted(table.rows, key=lambda row: -row.accuracy)
    assert text.startswith(
        f"{best.learner} ({100 * best.accuracy:.2f} %) and {second.learner} ({100 * second.accuracy:.2f} %) "
        f"{TIE} by accuracy (p = 0."
    )
    assert "best" not in text
    assert ("mira trains fastest, 10 times as fast as crf" in text) is (best.learner == "crf")
    worse = ({"learner": "hmm"}, counts(0.5, seed=9))
    three = answer_text(comparison(({}, one), ({"learner": "mira"}, other), worse))
    assert TIE in three
    assert "hmm is " in three
    assert three.endswith("(p = 0.0002).")  # corrected: two tests


def test_answer_corrects_for_multiple_tests() -> None:
    """A difference that passes one test does not pass as one of many (Holm)."""
    good = counts(0.80, n=300)
    near = next(
        table
        for seed in range(1, 200)
        for table in [counts(0.77, n=300, seed=seed)]
        for p in [comparison(({}, good), ({"learner": "a"}, table))]
        if 0.02 < (p.p_between(*p.summary()) or 0) < 0.04 and p.rows[1].accuracy < p.rows[0].accuracy
    )
    assert "crf is best" in answer_text(comparison(({}, good), ({"learner": "a"}, near)))
    many = [({"learner": f"a{i}"}, near) for i in range(8)]
    assert TIE in answer_text(comparison(({}, good), *many))


def test_rivals_are_best_entries_of_largest_size() -> None:
    """The largest size counts, with the best features of each learner. One learner is compared with itself."""
    full = {"sentences": 500}
    table = comparison(
        ({}, counts(0.99)),
        ({**full, "features": "S1"}, counts(0.7)),
        ({**full, "features": "S2"}, counts(0.9)),
        ({**full, "learner": "hmm", "features": "S1"}, counts(0.6)),
    )
    assert [(e["learner"], e["features"]) for e in rivals(table.summary())] == [("crf", "S2"), ("hmm", "S1")]
    assert answer_text(table).startswith("crf S2 is best")
    alone = comparison(({}, counts(0.9)), ({"features": "S2"}, counts(0.5)))
    assert answer_text(alone).startswith("crf S1 is best")
    assert answer_text(comparison(({}, counts(0.9)))).startswith("crf scores 89.50 % accuracy (95 % interval")
    losses = comparison(({"loss": "log"}, counts(0.9)), ({"loss": "exp"}, counts(0.5)))
    assert answer_text(losses).startswith("crf, log is best")


def test_answer_without_counts_is_not_tested() -> None:
    """Rows without counts of sentences are not tested, and have no interval."""
    table = Comparison([replace(BASE, accuracy=0.9), replace(BASE, learner="hmm", accuracy=0.8)])
    assert answer_text(table) == (
        "crf scores best: 90.00 % accuracy. hmm is 10.0 points behind (not tested) and takes about as long to train."
    )
    assert answer(table, []) == "There are no scores."


def test_intervals_average_over_seeds() -> None:
    """The interval of a mean over seeds draws the same sentences for all of them."""
    one, other = counts(0.9), counts(0.6, seed=3)
    table = comparison(({}, one), ({"seed": 1}, other))
    (entry,) = table.summary()
    assert table.intervals(entry)["accuracy"] == intervals([one, other])["accuracy"]
    assert set(table.intervals(entry)) == {"accuracy", "sequence_accuracy"}
    part = Comparison(table.rows, details=[table.details[0], None])
    assert part.intervals(entry) == {}


@pytest.mark.parametrize(
    ("lows", "highs", "begin"),
    [([0.0, 1.0], [2.0, 3.0], 0), ([20.0, 60.0], [25.0, 65.0], 0), ([81.0], [86.0], 80), ([95.1], [95.9], 95)],
)  # fmt: skip
def test_bar_axis_begins_at_zero_or_is_cut(lows: list[float], highs: list[float], begin: float) -> None:
    """Bars begin at zero unless that would make them look alike. A cut is at a round number below all intervals."""
    found, end = bar_axis(lows, highs)
    assert (found, end) == (pytest.approx(begin), max(highs))


def test_cut_bars_are_marked() -> None:
    """Cut bars have a mark and a remark with the begin of the axis. Bars from zero have neither."""
    for shares, cut in (((0.9, 0.88), True), ((0.9, 0.2), False)):
        table = comparison(*(({"learner": f"l{i}"}, counts(share)) for i, share in enumerate(shares)))
        summary = table.summary()
        text = bars(Entries(table, "c", summary), Palette(summary))
        assert ('class="track cut"' in text) is cut
        assert ("The bars are cut: they begin at" in text) is cut


def test_origin_is_on_the_page() -> None:
    """Command, date, version and machine are on the page, escaped. Empty fields are left out."""
    origin = Origin("tagwise compare --train '<a>.txt'", "2026-01-02", "tagwise 9", "a machine")
    text = page(comparison(({}, counts(0.9))), origin)
    assert "<dd><code>tagwise compare --train &#x27;&lt;a&gt;.txt&#x27;</code></dd>" in text
    for part in ("<dd>2026-01-02</dd>", "<dd>tagwise 9</dd>", "<dd>a machine</dd>"):
        assert part in text
    assert text.index("crf scores") < text.index("2026-01-02")
    assert "<dt>Command" not in page(comparison(({}, counts(0.9))))
    now = Origin.now("x")
    assert [name for name, _ in now.rows()] == ["Command", "Date", "Version", "Machine"]


@pytest.mark.parametrize("seconds", [0.0, 1e-6, 0.00049, 0.0123, 0.9994, 0.9996, 12.0, 3599.0, 1e6])
def test_durations_are_never_zero_seconds(seconds: float) -> None:
    """A time has a unit in which it is not zero."""
    assert not duration(seconds).startswith(("0.0 s", "0 s", "1000 ms"))
