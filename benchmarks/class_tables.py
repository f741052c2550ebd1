"""Tables of the study of word classes, in the form of `docs/study/TABLE.json`, from the figures of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SIZES = (100, 300, 1000, 3000, "all")
LABELS = {"default": "without", "training text": "training text", "all text": "all text"}
TRAIN_SENTENCES = 14_987  # conll2003-en


def _measure(run: Mapping[str, Any], corpus: str) -> str:
    found: str = next(entry["measure"] for entry in run["summary"] if entry["corpus"] == corpus)
    return found


def _reference(corpus: str, features: str, size: object, measure: str) -> str:
    return f"{{{corpus}; crf; {features}; {size}; {measure}}}"


def _with_rows(run: Mapping[str, Any], head: Sequence[str], sources: list[list[str]]) -> dict[str, Any]:
    """Return a table whose cells refer to the summary of the run."""
    empty = [[""] * len(head) for _ in sources]
    return {
        "preset": run["preset"],
        "build": run["build"],
        "head": list(head),
        "rows": empty,
        "from": sources,
    }


def scores(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of scores by labelled sentences, with its picture."""
    sources = []
    for corpus in dict.fromkeys(entry["corpus"] for entry in run["summary"] if entry["group"] == "scores"):
        measure = _measure(run, corpus)
        for features, label in LABELS.items():
            cells = [_reference(corpus, features, n, f"{measure} ±") for n in SIZES]
            sources.append([corpus, label, *cells])
            if features != "default":
                sources.append(
                    [corpus, f"{label}, p", *(_reference(corpus, features, n, "p") for n in SIZES)]
                )
    head = ["corpus", "classes from", "100", "300", "1,000", "3,000", "all"]
    lines = {
        label: [
            [TRAIN_SENTENCES if n == "all" else n, _reference("conll2003-en", features, n, "f1")]
            for n in SIZES
        ]
        for features, label in LABELS.items()
    }
    title = "conll2003-en: F1 by labelled sentences, with and without word classes"
    picture = {"title": title, "x": "labelled sentences", "y": "F1", "log_x": True, "lines": lines}
    return {**_with_rows(run, head, sources), "picture": picture}


def effects(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of settings at 300 sentences."""
    entries = [entry for entry in run["summary"] if entry["group"] == "effects"]
    corpora = list(dict.fromkeys(entry["corpus"] for entry in entries))
    rows = []
    for features in ("all text", *dict.fromkeys(entry["features"] for entry in entries)):
        name = features.removeprefix("all text, ") if features != "all text" else "the default"
        cells = [_reference(c, features, 300, f"{_measure(run, c)} ±") for c in corpora]
        rows.append([name, *cells])
    return _with_rows(run, ["setting", *corpora], rows)


def _given(run: Mapping[str, Any], head: Sequence[str], rows: list[list[str]]) -> dict[str, Any]:
    return {"preset": run["preset"], "build": run["build"], "head": list(head), "rows": rows}


def active(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of simulated labelling."""
    rows = [
        [one["corpus"], one["order"], one["features"], f"{one['needed']:,.0f}", f"{100 * one['share']:.1f} %"]
        for one in run["active"]
    ]
    return _given(run, ["corpus", "order", "features", "sentences", "of random order without classes"], rows)


def full(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of all configurations on all sentences of conll2003-en."""
    found = {name: one for name, one in run["others"].items() if name.startswith("full, ")}
    rows = [
        [name.removeprefix("full, "), f"{100 * one['testa']:.2f}", f"{100 * one['testb']:.2f}"]
        for name, one in sorted(found.items(), key=lambda item: -item[1]["testa"])
    ]
    return _given(run, ["configuration", "dev F1", "test F1"], rows)


def _settings(run: Mapping[str, Any], group: str) -> dict[tuple[str, str], dict[tuple[str, Any], str]]:
    """Return the scores of a group: by corpus and source of the text, then by setting and size."""
    found: dict[tuple[str, str], dict[tuple[str, Any], str]] = {}
    for one in run["summary"]:
        if one["group"] == group:
            source, _, setting = one["features"].partition(", ")
            score, deviation = one[one["measure"]], one[f"{one['measure']}_sd"]
            shown = f"{100 * score:.2f} ±{100 * deviation:.2f}"
            found.setdefault((one["corpus"], source), {})[setting, one["sentences"]] = shown
    return found


def choice(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of settings on development data."""
    found = _settings(run, "choice")
    head = list(dict.fromkeys(setting for scores in found.values() for setting, _ in scores))
    rows = [
        [corpus, source, *(scores.get((setting, 300), "-") for setting in head)]
        for (corpus, source), scores in found.items()
    ]
    return _given(run, ["corpus", "classes from", *head], rows)


def tables(run: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return all tables of a run by name."""
    return {
        "word-classes": scores(run),
        "word-classes-choice": choice(run),
        "word-classes-effects": effects(run),
        "word-classes-active": active(run),
        "word-classes-full": full(run),
    }
