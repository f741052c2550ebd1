"""Named comparisons that go past the papers' tables, and the table of all of them."""

from __future__ import annotations

import math
from typing import Any

from tagwise.compare.learners import Learner
from tagwise.compare.plan import noisy
from tagwise.compare.presets import BOOSTING, C_GRID, LOSSES, ONLINE_PAPER, PAPERS, Preset
from tagwise.compare.table import Published

#: More sentences than any corpus has: all of them.
ALL = 10**9


def _mira(name: str, **params: Any) -> Learner:
    return Learner(name, "mira", {"k": 4, "all_pairs": True, **params})


SIZES = Preset(
    "sizes",
    "Learning curves: every learner from 300 training sentences to all, three draws.",
    corpora=("conll2002-es", "ewt-pos"),
    learners=(*LOSSES, "perceptron", "mira", "hmsvm", BOOSTING, "memm", "hmm-overlapping"),
    features=("S3",),
    sizes=(300, 1000, 3000, ALL),
    seeds=3,
    params={"max_iter": 200, "epochs": 20, "l2": 0.1},
    note="Seed 0 takes the first sentences, others draw theirs; with all of them only the seed of training differs.",
)

SPARSITY = Preset(
    "svm-sparsity",
    "Sparsity of the Hidden Markov SVM: a slack for each sentence (SVM_1) or for each wrong path (SVM_2).",
    corpora=("conll2002-es", "ptb-sample"),
    learners=(
        Learner("hmsvm SVM_1", "hmsvm", {"slack": "instance"}),
        Learner("hmsvm SVM_2", "hmsvm", {"slack": "sequence"}),
    ),
    features=("S3",),
    sizes=(300,),
    seeds=3,
    tune={"hmsvm": {"C": C_GRID}},
    folds=2,
    held=1000,
    against="hmsvm SVM_1",
)

RISKS = Preset(
    "risks",
    "0-1, Hamming and rank risk of every loss beside perceptron, MIRA and HM-SVM, with margins.",
    corpora=("conll2002-es",),
    learners=(*LOSSES, "perceptron", "mira", "hmsvm", BOOSTING),
    features=("S3",),
    params={"max_iter": 200, "epochs": 20, "l2": 0.1},
    risks=100,
    note="Each loss bounds a risk from above: log and exponential the 0-1 risk, exponential the rank risk, pointwise "
    "the Hamming risk.",
)

_BACK: dict[str, dict[str, Any]] = {
    "m=1 p=1": {},
    "m=1 p=2": {"history": (1, 2)},
    "m=1 p=5": {"history": (1, 5)},
    "m=1 p=inf": {"history": (1, math.inf), "document": True},
    "document": {"document": True},
}

SEEDS = Preset(
    "history-seeds",
    f"Stability of features on labels further back over five orders of the sentences ({ONLINE_PAPER}, section 4.2.3).",
    corpora=("conll2003-en",),
    learners=tuple(
        Learner(f"{kind} {name}", kind, {"all_pairs": True, **({"k": 4} if kind == "mira" else {}), **params})
        for kind in ("mira", "perceptron")
        for name, params in _BACK.items()
    ),
    features=("ner",),
    seeds=5,
    params={"epochs": 20},
    dev=True,
    against="mira m=1 p=1",
)

# F1 of a corpus is 2 TP / (G + T). At its best value F the same guesses minimise (2 - F) FN + F FP (Dinkelbach 1967), a
# sum over sentences: precision_recall(F / 2), twice.
F1_COSTS = Preset(
    "f1-costs",
    f"F1 as MIRA's cost: the cap where a sentence has none right, and corpus-level F1 ({ONLINE_PAPER}, Table 6).",
    corpora=("conll2003-en",),
    learners=(
        _mira("mira"),
        *(_mira(f"mira F1 cost, cap {cap}", cost=f"f1({cap})") for cap in (2, 3, 4, 5, 6, 7, 8, 10, 15, 20)),
        *(_mira(f"mira corpus F1 {f}", cost=f"precision_recall({f / 2:g})") for f in (0.85, 0.89, 0.93)),
    ),
    features=("ner",),
    params={"epochs": 40},
    dev=True,
    hidden=(),
    against="mira",
    published=tuple(
        Published("mira F1 cost, cap 6", value, measure, source=f"{ONLINE_PAPER}, Table 6")
        for measure, value in {"dev_f1": 87.86, "precision": 82.17, "recall": 79.90, "f1": 81.02}.items()
    ),
    note="The paper does not say what a sentence without a right entity costs: take the cap that is best on the dev "
    "part. Corpus-level F1 is linearised at a value it may reach.",
)

#: Percent of the training labels that are wrong.
NOISE = (0, 5, 10, 20, 30)

NOISES = Preset(
    "noise",
    "Which loss degrades how: wrong training labels x four losses, perceptron, HM-SVM, boosting x training sizes.",
    corpora=tuple(noisy(corpus, percent) for corpus in ("ewt-pos", "wnut17-ner") for percent in NOISE),
    learners=(*LOSSES, "perceptron", "hmsvm", "boosting"),
    features=("S2",),
    sizes=(300, 1000, 3000),
    params={"max_iter": 100, "epochs": 10, "l2": 0.3},
    note="Each training label is, by the chance that the corpus's name says, one of the others, all as probable; the "
    "test part is as it was.",
)

KERNELS = Preset(
    "kernels",
    "Four losses with and without a kernel of degree 2 on 300 sentences, beside kernels of perceptron and HM-SVM.",
    corpora=("ewt-pos", "wnut17-ner"),
    learners=(
        *LOSSES,
        "perceptron",
        Learner("perceptron poly", "perceptron", {"kernel": "poly", "degree": 2, "features": "S2"}),
        Learner("perceptron rbf", "perceptron", {"kernel": "rbf", "features": "S2"}),
        "hmsvm",
        Learner("hmsvm poly", "hmsvm", {"kernel": "poly", "degree": 2, "tol": 0.03, "features": "S2"}),
        Learner("hmsvm rbf", "hmsvm", {"kernel": "rbf", "tol": 0.03, "features": "S2"}),
    ),
    features=("S2", "S2pairs"),
    sizes=(300,),
    seeds=5,
    params={"max_iter": 100, "epochs": 10},
    tune={"crf": {"l2": (0.01, 0.1, 1.0)}, "hmsvm": {"C": (0.1, 1.0, 10.0)}},
    folds=2,
    note="A loss has its kernel written out: S2pairs has S2's attributes and every two of them together, so that two "
    "tokens which share n have n (n + 1) / 2 in common. Perceptron and HM-SVM compute theirs: (1 + n)^2, or rbf.",
)

BOOSTED = Preset(
    "boosting-losses",
    "Boosting of the sequential and of the pointwise exponential loss, beside the CRF with the same losses.",
    corpora=("ewt-pos", "wnut17-ner"),
    learners=(
        "crf-exp",
        "crf-pointwise-exp",
        Learner("boosting exp", "boosting", {"loss": "exp"}),
        Learner("boosting pointwise-exp", "boosting", {"loss": "pointwise_exp"}),
        Learner("boosting pointwise-exp, whole", "boosting", {"loss": "pointwise_exp", "max_length": None}),
    ),
    features=("S2",),
    sizes=(100, 300),
    params={"max_iter": 100, "l2": 0.3},
    against="boosting exp",
    note="Boosting as it comes: six rounds of up to 4,096 features on pieces of at most five tokens; `whole` on "
    "whole sentences, which the pointwise loss does not let outweigh the others.",
)

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (*PAPERS, SIZES, SPARSITY, RISKS, SEEDS, F1_COSTS, NOISES, KERNELS, BOOSTED)
}

__all__ = ["PRESETS"]
