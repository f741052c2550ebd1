"""Iterative parameter mixing over shards: scores by the number of parts and by epochs, compared with one part.

The training part of conll2003-en is encoded in 16 shards. A learner processes them one after the other (1 part), or in
parts whose weights are mixed after each epoch (McDonald, Hall and Mann 2010). Scores are F1 of the averaged weights on
the test part after each epoch. A cluster gives equal scores to the last digit.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import tagwise as tw

from . import ours
from .harness import Context, Result

CORPUS, FEATURES = "conll2003-en", "S2"
#: Numbers of parts by learner.
PARTS: dict[type[Any], tuple[int, ...]] = {
    tw.Perceptron: (1, 2, 4, 8, 16),
    tw.MIRA: (1, 8),
    tw.PassiveAggressive: (1, 8),
    tw.AROW: (1, 8),
}
SHARDS, EPOCHS, QUICK_EPOCHS = 16, 8, 2
SHOWN = (1, 2, 4, 8)


def encoded(train: tw.Corpus, folder: Path) -> tw.Shards:
    """Return the corpus in shards of equal size."""
    tw.write(train, folder / "train.conll", "conll")
    return tw.encode(
        folder / "train.conll",
        folder / "encoded",
        features=FEATURES,
        columns=list(train.columns),
        label=train.label,
        shard_tokens=-(-train.n_tokens // SHARDS),
    )


def run(context: Context) -> Result:
    """Train with every number of parts."""
    result = Result("mixing", f"F1 on {CORPUS} test after each epoch, by parts whose weights are mixed")
    epochs = QUICK_EPOCHS if context.quick else EPOCHS
    train, _, test = ours.corpus(CORPUS)
    curves: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="tagwise-mixing-") as folder:
        shards = encoded(train, Path(folder))
        for kind, numbers in PARTS.items():
            for parts in numbers:
                tagger: Any = kind(max_iter=epochs, parts=parts)
                tw.fit_shards(tagger, shards, dev=test)
                scores = [100 * entry["dev_score"] for entry in tagger.history_]
                name = f"{kind.name}, {parts} part{'s'[: parts != 1]}"
                result.add(name, {f"epoch {n}": f"{scores[n - 1]:.2f}" for n in SHOWN if n <= len(scores)})
                result.raw[name] = scores
                if kind is tw.Perceptron:
                    curves[name] = list(enumerate(scores, 1))
    title = f"perceptron, mixed in parts: F1 on {CORPUS} test"
    result.draw(f"mixing-{CORPUS}", title, "epoch", "F1", curves)
    return result
