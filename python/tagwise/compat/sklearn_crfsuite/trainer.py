"""Trainer that prints one line per iteration."""

from __future__ import annotations

from typing import Any

from tagwise.compat.pycrfsuite import Trainer


class LinePerIterationTrainer(Trainer):
    """Trainer that prints one line per iteration, and a table of labels at the end if instances were held out."""

    def on_iteration(self, log: str, info: Any) -> None:
        """Print one line of figures."""
        parts = ["Iter {num:<3} ", "time={time:<5.2f} ", "loss={loss:<8.2f} "]
        if "active_features" in info:
            parts.append("active={active_features:<5} ")
        if "avg_precision" in info:
            parts += ["precision={avg_precision:0.3f}  ", "recall={avg_recall:0.3f}  ", "F1={avg_f1:0.3f}  "]
            parts.append("Acc(item/seq)={item_accuracy_float:0.3f} {instance_accuracy_float:0.3f}  ")
        if "feature_norm" in info:
            parts.append("feature_norm={feature_norm:<8.2f}")
        print("".join(parts).format(**info).strip())

    def on_optimization_end(self, log: str) -> None:
        """Print the scores of the labels after the last iteration."""
        last = self.logparser.last_iteration if self.logparser is not None else None
        if last and last.get("scores"):
            table = _table(sorted(last["scores"].items()))
            size = len(table[0])
            print("=" * size)
            print("\n".join(table))
            print("-" * size)
        super().on_optimization_end(log)


def _table(scores: list[tuple[str, Any]]) -> list[str]:
    """Return the lines of a table with left-aligned labels, right-aligned numbers and a rule below the header."""
    heads = ("Label", "Precision", "Recall", "F1", "Support")
    rows = []
    for label, score in scores:
        numbers = (score.precision, score.recall, score.f1 or 0.0)
        rows.append((label, *("" if x is None else f"{x:0.3f}" for x in numbers), str(score.ref)))
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]

    def line(row: tuple[str, ...]) -> str:
        cells = [row[0].ljust(widths[0]), *(x.rjust(w) for x, w in zip(row[1:], widths[1:]))]
        return "  ".join(cells)

    return [line(heads), "  ".join("-" * w for w in widths), *map(line, rows)]
