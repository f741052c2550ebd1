"""Iterative parameter mixing over shards: scores by the number of parts and by epochs, compared with one machine.

    TAGWISE_DATA=... python -m benchmarks.mixing --corpus conll2003-en --epochs 8 --picture docs/pictures

The training part of a corpus is encoded in 16 shards. A learner processes them one after the other (1 part), or in
parts whose weights are mixed after each epoch (McDonald, Hall and Mann 2010). `--backend ray` runs on a cluster, with
equal scores to the last digit. Scores are F1 of the averaged weights on the test part, after each epoch.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import tagwise as tw

from . import ours
from .figure import draw

KINDS = {"perceptron": tw.Perceptron, "mira": tw.MIRA, "pa": tw.PassiveAggressive, "arow": tw.AROW}
SHARDS = 16


def curve(kind: str, parts: int, shards: tw.Shards, test: Any, options: argparse.Namespace) -> list[float]:
    """Return F1 after each epoch."""
    tagger: Any = KINDS[kind](max_iter=options.epochs, parts=parts, n_jobs=options.n_jobs)
    backend = {"backend": "ray"} if options.backend == "ray" and parts > 1 else {}
    tw.fit_shards(tagger, shards, dev=test, **backend)
    return [100 * entry["dev_score"] for entry in tagger.history_]


def main() -> None:
    """Train with every number of parts, print a table, and draw a picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default="conll2003-en")
    parser.add_argument("--features", default="S2")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--parts", default="1,2,4,8,16", help="numbers of parts for the perceptron")
    parser.add_argument("--others", default="1,8", help="numbers of parts for the other learners")
    parser.add_argument("--backend", default="local")
    parser.add_argument("--n-jobs", type=int)
    parser.add_argument("--picture", type=Path, help="folder of mixing-CORPUS.svg")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    train, _, test = ours.corpus(options.corpus)
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="tagwise-mixing-") as folder:
        tw.write(train, Path(folder) / "train.conll", "conll")
        tokens = -(-train.n_tokens // SHARDS)
        columns, label = list(train.columns), train.label
        shards = tw.encode(
            Path(folder) / "train.conll",
            Path(folder) / "encoded",
            features=options.features,
            columns=columns,
            label=label,
            shard_tokens=tokens,
        )
        for kind in KINDS:
            for parts in map(int, (options.parts if kind == "perceptron" else options.others).split(",")):
                name = f"{kind}, {parts} part{'s'[: parts != 1]}"
                found[name] = curve(kind, parts, shards, test, options)
                print(f"{name:24}", *(f"{score:6.2f}" for score in found[name]), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    if options.picture is not None:
        shown = {
            name: [(i + 1, score) for i, score in enumerate(scores)]
            for name, scores in found.items()
            if name.startswith("perceptron")
        }
        title = f"perceptron, mixed in parts: F1 on {options.corpus} test"
        draw(options.picture / f"mixing-{options.corpus}.svg", title, "epoch", "F1", shown)


if __name__ == "__main__":
    main()
