"""The answer of a comparison: a sentence per corpus, and the origin of its figures."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tagwise._core as _core
from tagwise.base.parameters import cores
from tagwise.evaluation.significance import adjusted

if TYPE_CHECKING:
    from tagwise.apps.compare.table import Comparison

#: Differences with a larger p-value do not count as differences.
LEVEL = 0.05
#: Ratio of training times that is worth mentioning, and the number of names in a sentence.
RATIO, MOST_NAMES = 1.5, 4

Entry = Mapping[str, Any]


def score_name(entries: Sequence[Entry]) -> tuple[str, str]:
    """Return the main measure of a corpus and its name: F1 if labels mark spans, else accuracy."""
    return ("f1", "F1") if any(entry["f1"] is not None for entry in entries) else ("accuracy", "accuracy")


def duration(seconds: float) -> str:
    """Format a time with a unit that suits it.

    >>> duration(0.00042), duration(0.034), duration(2.34), duration(200), duration(9000)
    ('0.42 ms', '34 ms', '2.3 s', '3 min 20 s', '2 h 30 min')
    """
    if seconds < 0.9995:
        return f"{1000 * seconds:.2g} ms" if seconds < 0.01 else f"{1000 * seconds:.0f} ms"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def p_text(p: float) -> str:
    """Format a p-value.

    >>> p_text(0.31), p_text(0.00009999)
    ('0.31', '0.0001')
    """
    return f"{p:.2f}" if p >= 0.01 else f"{p:.4f}"


def points(difference: float) -> str:
    """Format a difference of fractions in percentage points.

    >>> points(0.012), points(0.0004), points(0.01)
    ('1.2 points', '0.04 points', '1.0 point')
    """
    value = f"{100 * difference:.1f}" if difference >= 0.00095 else f"{100 * difference:.2f}"
    return f"{value} point{'' if value == '1.0' else 's'}"


def times(ratio: float) -> str:
    """Format a ratio of times.

    >>> times(23.4), times(1.52)
    ('23', '1.5')
    """
    return f"{ratio:,.0f}" if ratio >= 9.95 else f"{ratio:.1f}"


def listing(names: Sequence[str]) -> str:
    """Join names with commas and "and". Long lists end with a number.

    >>> listing(["a", "b", "c"]), listing(list("abcdefg"))
    ('a, b and c', 'a, b, c, d and 3 others')
    """
    rest = len(names) - MOST_NAMES
    shown = [*names[:MOST_NAMES], f"{rest} others"] if rest > 1 else list(names)
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def namer(entries: Sequence[Entry]) -> Callable[[Entry], str]:
    """Return a function that names an entry by the fields in which these entries differ.

    >>> one = {"learner": "crf", "features": "S1", "sentences": 1000, "loss": "log"}
    >>> namer([one])(one), namer([one, {**one, "features": "S2"}])(one)
    ('crf', 'crf S1')
    """
    fields = [name for name in ("features", "sentences") if len({entry[name] for entry in entries}) > 1]
    if len({tuple(entry[name] for name in ("learner", *fields)) for entry in entries}) < len(entries):
        fields.append("loss")

    def name_of(entry: Entry) -> str:
        name = f"{entry['learner']} {entry['features']}" if "features" in fields else str(entry["learner"])
        size = f"{entry['sentences']:,} sentences" if "sentences" in fields else ""
        return ", ".join(text for text in (name, size, entry["loss"] if "loss" in fields else "") if text)

    return name_of


def rivals(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries that the answer is about, best first.

    They are those with the most training sentences, and the best one of each learner if there are several learners.
    """
    key, _ = score_name(entries)
    most = max((entry["sentences"] for entry in entries), default=0)
    full = [e for e in entries if e["sentences"] == most and e[key] is not None]
    full.sort(key=lambda entry: -entry[key])
    if len({entry["learner"] for entry in full}) < 2:
        return full
    best: dict[str, Entry] = {}
    for entry in full:
        best.setdefault(entry["learner"], entry)
    return list(best.values())


def answer(comparison: Comparison, entries: Sequence[Entry]) -> str:
    """Return the answer for a corpus: the best learner, its lead, the p-value and the training times.

    Learners whose difference from the best one may be due to chance are reported as equal. The p-values are those of
    paired approximate randomization, corrected for the number of learners (Holm).
    """
    found = rivals(entries)
    if not found:
        return "There are no scores."
    key, measure = score_name(entries)
    name = namer(found)
    best, others = found[0], found[1:]

    def score(entry: Entry) -> str:
        return f"{100 * entry[key]:.2f} %"

    interval = comparison.intervals(best).get(key)
    doubt = f" (95 % interval {100 * interval[0]:.1f} to {100 * interval[1]:.1f})" if interval else ""
    if not others:
        return f"{name(best)} scores {score(best)} {measure}{doubt}."
    tests = [comparison.p_between(best, other) for other in others]
    known = [p for p in tests if p is not None]
    if len(known) < len(tests):
        behind = f"{name(others[0])} is {points(best[key] - others[0][key])} behind (not tested)"
        return f"{name(best)} scores best: {score(best)} {measure}. {behind}{speed(best, others[0])}."
    tested = list(zip(others, adjusted(known)))
    equal = [(entry, p) for entry, p in tested if p >= LEVEL]
    worse = [(entry, p) for entry, p in tested if p < LEVEL]
    if not equal:
        second, p = worse[0]
        return (
            f"{name(best)} is best: {score(best)} {measure}{doubt}. {name(second)} is "
            f"{points(best[key] - second[key])} behind (p = {p_text(p)}){speed(best, second)}."
        )
    names = listing([f"{name(entry)} ({score(entry)})" for entry in (best, *(entry for entry, _ in equal))])
    lowest = f"p = {p_text(min(p for _, p in equal))}{' or more' if len(equal) > 1 else ''}"
    text = f"{names} cannot be told apart by {measure} ({lowest})."
    fastest = min((best, *(entry for entry, _ in equal)), key=lambda entry: entry["seconds"])
    if best["seconds"] >= RATIO * fastest["seconds"]:
        ratio = times(best["seconds"] / fastest["seconds"]) if fastest["seconds"] else "many"
        text += f" Of these, {name(fastest)} trains fastest, {ratio} times as fast as {name(best)}."
    if worse:
        second, p = worse[0]
        text += f" {name(second)} is {points(best[key] - second[key])} behind {name(best)} (p = {p_text(p)})."
    return text


def speed(best: Entry, other: Entry) -> str:
    """Return how the training time of another entry compares with that of the best one, for the end of a sentence."""
    mine, its = best["seconds"], other["seconds"]
    if its and mine >= RATIO * its:
        return f" and trains {times(mine / its)} times as fast"
    if mine and its >= RATIO * mine:
        return f" and takes {times(its / mine)} times as long to train"
    return " and takes about as long to train"


def processor() -> str:
    """Return the model name of the processor, or an empty text if the system does not report it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


@dataclass(frozen=True)
class Origin:
    """Origin of the figures of a page. Empty texts are not shown."""

    command: str = ""
    date: str = ""
    version: str = ""
    machine: str = ""

    @classmethod
    def now(cls, command: str = "") -> Origin:
        """Return the origin of a page that is written now, on this machine."""
        parts = [processor(), f"{cores()} core{'s' if cores() > 1 else ''}"]
        parts.append(f"{platform.system()} {platform.machine()}")
        return cls(
            command,
            datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
            f"tagwise {_core.__version__}, Python {platform.python_version()}",
            ", ".join(part for part in parts if part),
        )

    def rows(self) -> list[tuple[str, str]]:
        """Return the names and values that are not empty."""
        named = {"Command": self.command, "Date": self.date, "Version": self.version, "Machine": self.machine}
        return [(name, value) for name, value in named.items() if value]
