"""Views of the comparison of taggers for pages: tables by corpus, facts of the run, a bar chart of training times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..drawings import BLUE, ORANGE, Sheet
from .corpora import CORPORA

KINDS = ("usual", "same")
#: Corpus and title of the chart.
CHART = "conll2003-en"
TITLE = "CPU seconds of training on conll2003-en, and F1"


def tables(run: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return one table per corpus and kind of features, and one of the runs.

    >>> row = {"name": "ewt-pos: NLTK", "cells": {"features": "usual", "score": "93.10", "run": "1"}}
    >>> machine = {"commit": "0123456789abc", "date": "2026-11-18", "cpu": "A", "cores": 16, "python": "3.12.3"}
    >>> runs = [{"machine": machine | {"versions": {"nltk": "3.10"}}, "notes": []}]
    >>> found = tables({"rows": [row], "runs": runs})
    >>> found["taggers-ewt-pos-usual"]["rows"]
    [['NLTK', '', '93.10', '', '', '', '', '1']]
    >>> found["taggers-run"]["rows"][0][:2]
    ['1', '0123456789ab']
    """
    out: dict[str, dict[str, Any]] = {}
    for corpus in CORPORA:
        head = ["reads", "score", "training CPU s", "tokens/s", "peak MB", "model MB", "run"]
        shown = [name.replace("score", "accuracy" if corpus == "ewt-pos" else "F1") for name in head]
        for kind in KINDS:
            rows = [
                [row["name"].removeprefix(f"{corpus}: "), *(row["cells"].get(name, "") for name in head)]
                for row in run["rows"]
                if row["name"].startswith(f"{corpus}: ") and row["cells"]["features"] == kind
            ]
            out[f"taggers-{corpus}-{kind}"] = {"head": ["tagger", *shown], "rows": rows}
    return out | {
        "taggers-run": {
            "head": ["run", "commit", "date", "processor", "versions", "notes"],
            "rows": [
                about(str(number), one["machine"], one["notes"]) for number, one in enumerate(run["runs"], 1)
            ],
        }
    }


def about(number: str, machine: Mapping[str, Any], notes: list[str]) -> list[str]:
    """Return number, commit, date, processor, versions and notes of a run."""
    versions = {"Python": machine["python"], **machine["versions"]}
    return [
        number,
        machine["commit"][:12],
        machine["date"],
        f"{machine['cpu']}, {machine['cores']} cores",
        ", ".join(f"{k} {v}" for k, v in versions.items() if v != "not installed"),
        " ".join(notes),
    ]


def seconds(text: str) -> float:
    """Return the training time of a cell, also of one that was stopped.

    >>> seconds("432.1 (time limit)")
    432.1
    """
    return float(text.split()[0].replace(",", ""))


def chart(known: Mapping[str, Mapping[str, Any]]) -> str:
    """Draw a bar per tagger with usual features, shortest first."""
    rows = sorted(
        (row for row in known[f"taggers-{CHART}-usual"]["rows"] if row[3]), key=lambda row: seconds(row[3])
    )
    sheet = Sheet(720, 60 + 30 * len(rows), TITLE)
    sheet.text(20, 28, TITLE, size=16, anchor="start")
    longest = max(seconds(row[3]) for row in rows)
    for i, (name, _, score, time, *_) in enumerate(rows):
        y, width = 48 + 30 * i, max(1.5, 300 * seconds(time) / longest)
        sheet.text(250, y + 15, name, anchor="end")
        ours = name.startswith("tagwise")
        sheet.box(258, y, width, 20, fill=ORANGE if ours else BLUE, colour="none")
        sheet.text(266 + width, y + 15, f"{time.split(' (')[0]} s, {score}", anchor="start", size=12)
    return sheet.document()
