"""Incremental parser of the training log."""

from __future__ import annotations

import fractions
import re
from collections import namedtuple
from typing import Any

LabelScore = namedtuple("LabelScore", "match model ref precision recall f1")

_HEAD = re.compile(r"\*{5} (?:Iteration|Epoch) #(\d+) \*{5}\n")
_NUMBER = r"(-?\d+\.\d+|-?inf|-?nan)"
_SECONDS = re.compile(rf"Seconds required: {_NUMBER}")
_VALUES: tuple[tuple[str, re.Pattern[str], type], ...] = (
    ("loss", re.compile(rf"Loss: {_NUMBER}"), float),
    ("feature_norm", re.compile(rf"Feature norm: {_NUMBER}"), float),
    ("error_norm", re.compile(rf"Error norm: {_NUMBER}"), float),
    ("active_features", re.compile(r"Active features: (\d+)"), int),
    ("linesearch_trials", re.compile(r"Line search trials: (\d+)"), int),
    ("linesearch_step", re.compile(rf"Line search step: {_NUMBER}"), float),
    ("time", re.compile(rf"Seconds required for this iteration: {_NUMBER}"), float),
)
_MACRO = re.compile(rf"Macro-average precision, recall, F1: \({_NUMBER}, {_NUMBER}, {_NUMBER}\)")
_ACCURACY = re.compile(r"(Item|Instance) accuracy: (\d+) / (\d+)")
_SCORES = re.compile(
    r"\s{4}(.*): \((\d+), (\d+), (\d+)\) \((?:(\d\.\d+), (\d\.\d+), (\d\.\d+)|\*{6}, \*{6}, \*{6})\)",
    re.DOTALL,
)


class TrainLogParser:
    """Parser of the pieces of a training log. `feed` returns the event that a piece completes, or None."""

    def __init__(self) -> None:
        self.state: str | None = None
        self.featgen_percent = -2
        self.featgen_num_features: int | None = None
        self.featgen_seconds: float | None = None
        self.training_seconds: float | None = None
        self.storing_seconds: float | None = None
        self.iterations: list[dict[str, Any]] = []
        self.last_iteration: dict[str, Any] | None = None
        self.log: list[str] = []
        self.events: list[tuple[str, int, int]] = []

    def feed(self, line: str) -> str | None:
        """Return the event that this piece of the log completes, or None."""
        self.log.append(line)
        if self.state is None:
            self.state = "STARTING"
            self.handle_STARTING(line)
            self.events.append(("start", 0, 1))
            return "start"
        event: str | None = getattr(self, f"handle_{self.state}")(line)
        if event is not None:
            end = len(self.log) - (event in ("prepared", "optimization_end"))
            self.events.append((event, self.events[-1][2], end))
        return event

    @property
    def last_log(self) -> str:
        """Text of the last event."""
        _, start, end = self.events[-1]
        return "".join(self.log[start:end])

    def handle_STARTING(self, line: str) -> str | None:
        """Parse a piece before feature generation."""
        if line.startswith("Feature generation"):
            self.state = "FEATGEN"
        return None

    def handle_FEATGEN(self, line: str) -> str | None:
        """Parse a piece during feature generation."""
        if line in "0123456789.10":
            self.featgen_percent += 2
            return "featgen_progress"
        found = re.match(r"Number of features: (\d+)", line)
        if found:
            self.featgen_num_features = int(found[1])
        seconds = self._seconds(line)
        if seconds is None:
            return None
        self.featgen_seconds = seconds
        self.state = "AFTER_FEATGEN"
        return "featgen_end"

    def handle_AFTER_FEATGEN(self, line: str) -> str | None:
        """Parse a piece between feature generation and the first iteration."""
        if self._iteration_head(line) is not None:
            self.state = "ITERATION"
            self.handle_ITERATION(line)
            return "prepared"
        if "terminated with error" in line:
            self.state = "AFTER_ITERATION"
            return "prepare_error"
        if line.startswith("Storing the model"):
            self.state = "STORING"
            return "optimization_end"
        return None

    def handle_ITERATION(self, line: str) -> str | None:
        """Parse a piece of an iteration, which ends with an empty line."""
        number = self._iteration_head(line)
        if number is not None:
            self.last_iteration = {"num": number, "scores": {}}
            self.iterations.append(self.last_iteration)
            return None
        if line == "\n":
            self.state = "AFTER_ITERATION"
            return "iteration"
        into = self.last_iteration
        if into is None:
            return None
        for key, pattern, kind in _VALUES:
            if found := pattern.match(line):
                into[key] = kind(found[1])
        if found := _MACRO.match(line):
            for i, key in enumerate(("avg_precision", "avg_recall", "avg_f1"), 1):
                into[key] = float(found[i])
        if found := _ACCURACY.match(line):
            right, of = int(found[2]), int(found[3])
            share = fractions.Fraction(right, of) if of else fractions.Fraction(0)
            into[f"{found[1].lower()}_accuracy"] = share
            into[f"{found[1].lower()}_accuracy_float"] = float(share)
        if found := _SCORES.match(line):
            counts = [int(x) for x in found.group(2, 3, 4)]
            rates = [None if x is None else float(x) for x in found.group(5, 6, 7)]
            into["scores"][found[1]] = LabelScore(*counts, *rates)
        return None

    def handle_AFTER_ITERATION(self, line: str) -> str | None:
        """Parse a piece between iterations or after the last."""
        if self._iteration_head(line) is not None:
            self.state = "ITERATION"
            return self.handle_ITERATION(line)
        found = re.match(rf"Total seconds required for training: {_NUMBER}", line)
        if found:
            self.training_seconds = float(found[1])
        if line.startswith("Storing the model"):
            self.state = "STORING"
            return "optimization_end"
        return None

    def handle_STORING(self, line: str) -> str | None:
        """Parse a piece while the model is written."""
        if line == "\n":
            return "end"
        seconds = self._seconds(line)
        if seconds is not None:
            self.storing_seconds = seconds
        return None

    def _iteration_head(self, line: str) -> int | None:
        found = _HEAD.match(line)
        return int(found[1]) if found else None

    def _seconds(self, line: str) -> float | None:
        found = _SECONDS.match(line)
        return float(found[1]) if found else None
