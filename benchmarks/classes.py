"""Word classes: scores with and without them by the number of labelled sentences, cost of learning, speed of tagging.

Several sets of classes are learned from the text of all parts of a corpus, without labels, or from its training part
alone. Taggers are `CRF(l2=0.1)` with the features default on words alone, trained on random sentences, one draw per
round. Learning is measured on the first million tokens of all corpora together, and on the same text repeated to ten
million.
"""

from __future__ import annotations

import pickle
import random
import statistics
from typing import Any, NamedTuple

import tagwise as tw

from .harness import Context, Result, alternate, stopwatch
from .workloads import data_folder, read_rows

Sentences = list[list[str]]


class Study(NamedTuple):
    """A corpus: its folder, the part for scores, the column of labels, and goals by labelled sentences."""

    folder: str
    test: str
    column: int
    goals: dict[int, float]
    train_only: dict[int, float] | None = None
    more: str | None = None  # folder of another corpus whose text is read too


STUDIES = {
    "conll2003-en": Study(
        "conll2003-en",
        "testb",
        -1,
        {100: 65.0, 300: 71.5, 1000: 79.5},
        {100: 61.5, 300: 69.0, 1000: 77.0},
    ),
    "conll2002-es": Study("conll2002-es", "testb", -1, {300: 69.0, 1000: 75.0}),
    "ewt-pos": Study("ewt", "test", -1, {300: 87.8, 1000: 90.8}),
    "wnut17-ner": Study("wnut17", "test", -1, {1000: 15.0}, more="ewt"),
}
PARTS = ("train", "testa", "testb", "dev", "test")
#: Tokens of the text that learning is measured on, and copies of it for the second measurement.
TOKENS, COPIES = 1_000_000, 10


def part(folder: str, name: str, column: int) -> tuple[Sentences, Sentences]:
    """Return the words and labels of the sentences of a file."""
    rows = read_rows(data_folder() / folder / f"{name}.txt.gz")
    return [[token[0] for token in s] for s in rows], [[token[column] for token in s] for s in rows]


def texts(folder: str) -> Sentences:
    """Return the words of all sentences of a corpus."""
    files = [name for name in (*PARTS, "all") if (data_folder() / folder / f"{name}.txt.gz").is_file()]
    return [words for name in files for words in part(folder, name, 0)[0]]


def score(gold: Sentences, predicted: Sentences) -> float:
    """Return F1 of chunks, or accuracy if labels are not chunks, in percent."""
    return 100 * tw.evaluate(gold, predicted).score


def drawn(study: Study, n: int, draw: int, features: Any) -> float:
    """Return the score of a tagger trained on `n` random sentences."""
    words, labels = part(study.folder, "train", study.column)
    chosen = sorted(random.Random(draw).sample(range(len(words)), n))
    tagger = tw.CRF(features=features, l2=0.1)
    tagger.fit([words[i] for i in chosen], [labels[i] for i in chosen])
    test_words, gold = part(study.folder, study.test, study.column)
    return score(gold, tagger.predict(test_words))


def add_scores(result: Result, name: str, study: Study, draws: int) -> None:
    """Add a row for each number of labelled sentences and each source of text."""
    sources = {"all text": (texts(study.folder) + (texts(study.more) if study.more else []), study.goals)}
    if study.train_only:
        sources["training text"] = (part(study.folder, "train", study.column)[0], study.train_only)
    for source, (sentences, goals) in sources.items():
        classes = tw.WordClasses.learn(sentences, classes="several")
        for n, goal in goals.items():
            without = [drawn(study, n, draw, "default") for draw in range(draws)]
            found = [drawn(study, n, draw, "default" + classes) for draw in range(draws)]
            mean = statistics.mean(found)
            result.add(
                f"{name}, {n} sentences, {source}",
                {
                    "default": f"{statistics.mean(without):.1f}",
                    "with classes": f"{mean:.1f}",
                    "deviation": f"{statistics.pstdev(found):.1f}",
                },
                f">= {goal}",
                mean >= goal,
            )
            result.raw[f"{name} {n} {source}"] = {"default": without, "classes": found}


def million() -> Sentences:
    """Return the sentences of all corpora, up to a million tokens."""
    out, n = [], 0
    for folder in ("conll2003-en", "conll2002-es", "ewt", "conll2000", "wnut17", "ptb-sample"):
        for words in texts(folder):
            if n >= TOKENS:
                return out
            out.append(words)
            n += len(words)
    return out


def add_speed(result: Result, context: Context) -> None:
    """Add the times of learning and of tagging."""
    sentences = million()
    tokens = sum(map(len, sentences))
    made: list[tw.WordClasses] = []
    wall, cpu = stopwatch(lambda: made.append(tw.WordClasses.learn(sentences, classes=1000)))
    result.add(
        f"learning 1,000 classes, {tokens:,} tokens",
        {"seconds": f"{wall:.1f}", "CPU seconds": f"{cpu:.1f}"},
        "<= 20 s",
        wall <= 20,
    )
    if not context.quick:
        again, cpu_again = stopwatch(
            lambda: tw.WordClasses.learn((s for _ in range(COPIES) for s in sentences), classes=1000)
        )
        result.add(
            f"the same text {COPIES} times",
            {"seconds": f"{again:.1f}", "CPU seconds": f"{cpu_again:.1f}"},
            "cost per token not above that of one copy",
            cpu_again <= COPIES * cpu,
        )
    classes = tw.WordClasses.learn(texts("conll2003-en"), classes="several")
    words, labels = part("conll2003-en", "train", -1)
    test, _ = part("conll2003-en", "testb", -1)
    taggers = {
        name: tw.CRF(features=features, l2=0.1, max_iter=30).fit(words[:2000], labels[:2000])
        for name, features in (("default", "default"), ("classes", "default" + classes))
    }
    sides = {name: (lambda tagger=tagger: tagger.predict(test)) for name, tagger in taggers.items()}
    for side in sides.values():
        side()
    times = alternate(sides, max(5, context.rounds))
    ratios = [a / b for a, b in zip(times["default"].cpu, times["classes"].cpu)]
    result.add(
        "tagging conll2003-en testb",
        {"speed with classes / default": f"{statistics.median(ratios):.2f}"},
        ">= 0.85",
        statistics.median(ratios) >= 0.85,
    )
    result.raw["tagging"] = ratios
    cold: dict[str, list[float]] = {name: [] for name in taggers}
    for _ in range(max(5, context.rounds)):
        for name, tagger in taggers.items():
            fresh = pickle.loads(pickle.dumps(tagger))
            cold[name].append(stopwatch(lambda fresh=fresh: fresh.predict(test))[1])
    result.raw["tagging new words"] = [a / b for a, b in zip(cold["default"], cold["classes"])]
    result.add(
        "the same by a tagger that has met none of the words",
        {"speed with classes / default": f"{statistics.median(result.raw['tagging new words']):.2f}"},
    )


def run(context: Context) -> Result:
    """Compare taggers with and without word classes."""
    result = Result("classes", "Word classes: scores by labelled sentences, learning, tagging")
    add_speed(result, context)
    for name, study in STUDIES.items():
        add_scores(result, name, study, context.rounds)
    result.notes.append(
        "classes from all text: also from the text of development and test data, without labels"
    )
    return result
