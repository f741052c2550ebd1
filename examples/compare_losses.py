"""Training of the example network with each loss of `tagwise.torch`, from the same start: a table and a picture.

    python examples/compare_losses.py --epochs 10 --seeds 1 2 --results losses.jsonl
    python examples/compare_losses.py --results losses.jsonl --draw losses.svg      # draw stored results

Every run is a line of the results file, with the dev score of each epoch. Runs in the file are not repeated.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bilstm_crf
import torch
from bilstm_crf import Tagger, Vocabulary, train
from rich.console import Console

import tagwise as tw
import tagwise.torch as tt
from tagwise.apps.compare.report.svg import Chart

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#e377c2", "#17becf")


def run(loss: str, seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """Train once and return the dev scores and the test score of the best epoch."""
    options = [
        "--loss",
        loss,
        "--epochs",
        str(args.epochs),
        "--patience",
        str(args.epochs),
        "--seed",
        str(seed),
    ]
    given = bilstm_crf.parsed([*options, "--batch", str(args.batch), "--output", str(args.results) + ".pt"])
    torch.manual_seed(seed)
    learn, dev, test = tw.load_corpus(args.corpus)
    learn = learn[: args.sentences]
    tagger = Tagger(Vocabulary.of(learn.tokens, learn.labels), loss).to(given.device)
    begin = time.perf_counter()
    epochs = list(train(tagger, learn, dev, given, Console(stderr=True)))
    best = Tagger.load(given.output).to(given.device)
    report = tw.evaluate(test, best.predict(test.tokens))
    given.output.unlink()
    return {
        "loss": loss,
        "seed": seed,
        "dev": [epoch.score for epoch in epochs],
        "test": report.score,
        "precision": report.precision,
        "recall": report.recall,
        "seconds": time.perf_counter() - begin,
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table with a row per loss, means over seeds."""
    by: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by[row["loss"]].append(row)
    spans = any(row["precision"] or row["recall"] for row in rows)  # token labels have neither
    more = ("test", "precision", "recall") if spans else ("test",)
    lines = [f"| loss | best dev | best epoch | {' | '.join(more)} |", "|---" * (3 + len(more)) + "|"]
    for loss in tt.LOSSES:
        mine = by.get(loss)
        if not mine:
            continue
        dev = statistics.mean(max(row["dev"]) for row in mine)
        epoch = statistics.mean(row["dev"].index(max(row["dev"])) + 1 for row in mine)
        rest = [statistics.mean(row[key] for row in mine) for key in more]
        figures = " | ".join(f"{100 * value:.1f}" for value in rest)
        lines.append(f"| `{loss}` | {100 * dev:.1f} | {epoch:.1f} | {figures} |")
    return "\n".join(lines)


def picture(rows: Sequence[dict[str, Any]], score: str = "dev score, %") -> str:
    """Return dev scores by epoch as a standalone SVG, with a curve per loss (the mean over seeds)."""
    chart = Chart("Dev score by epoch and loss", "epoch", score, width=640)
    for loss, colour in zip(tt.LOSSES, COLOURS):
        runs = [row["dev"] for row in rows if row["loss"] == loss]
        if runs:
            curve = [(k, 100 * statistics.mean(at)) for k, at in enumerate(zip(*runs), 1)]
            chart.curve(curve, loss, colour, f"{loss}: {curve[-1][1]:.1f}")
    return chart.document()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", default="wnut17-ner")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--sentences", type=int)
    parser.add_argument("--seeds", type=int, nargs="*", default=[])
    parser.add_argument("--losses", nargs="*", default=list(tt.LOSSES))
    parser.add_argument("--results", type=Path, default=Path("losses.jsonl"))
    parser.add_argument("--draw", type=Path)
    args = parser.parse_args()
    rows = (
        [json.loads(line) for line in args.results.read_text().splitlines()] if args.results.exists() else []
    )
    for seed in args.seeds:
        for loss in args.losses:
            if not any((row["loss"], row["seed"]) == (loss, seed) for row in rows):
                rows.append(run(loss, seed, args))
                with args.results.open("a") as out:
                    out.write(json.dumps(rows[-1]) + "\n")
    print(table(rows))
    if args.draw:
        args.draw.write_text(picture(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
