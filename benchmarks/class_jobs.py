"""Jobs of the study of word classes. Each runs in a process of its own, with one thread.

A job is a function of the folder for intermediate files, the results of the jobs that it needs, and its arguments. It
returns a result for JSON.
"""

from __future__ import annotations

import base64
import pickle
import random
import time
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tagwise as tw
from tagwise.corpus.schemes import convert
from tagwise.evaluation.metrics import count_by_sentence

from .workloads import data_folder, read_rows

Sentences = list[list[str]]
Results = Mapping[str, Any]
#: Copies of the text that the speed of learning is measured on, and tokens of one copy.
TOKENS = 1_000_000
MARK = "-DOCSTART-"


class CorpusFiles(NamedTuple):
    """A corpus: its folder, the part for scores, other parts whose text is read, and a further corpus to read."""

    folder: str
    test: str
    others: tuple[str, ...] = ()
    more: str | None = None


CORPORA = {
    "conll2003-en": CorpusFiles("conll2003-en", "testb", ("testa",)),
    "conll2002-es": CorpusFiles("conll2002-es", "testb", ("testa",)),
    "wnut17-ner": CorpusFiles("wnut17", "test", ("dev",), more="ewt-pos"),
    "ewt-pos": CorpusFiles("ewt", "test", ("dev",)),
    "ptb-sample": CorpusFiles("ptb-sample", "test"),
}
#: Training sentences of the corpus that has one part.
PTB_TRAIN = 3400


@lru_cache(maxsize=32)
def rows(corpus: str, part: str) -> list[list[list[str]]]:
    """Return the sentences of a part as tokens with columns, with labels in IOB2 if they mark spans."""
    folder = data_folder() / CORPORA[corpus].folder
    if corpus == "ptb-sample":
        found = read_rows(folder / "all.txt.gz")
        return found[:PTB_TRAIN] if part == "train" else found[PTB_TRAIN:]
    found = read_rows(folder / f"{part}.txt.gz")
    if corpus != "conll2003-en":
        return found
    labels = [convert([token[-1] for token in s], "IOB1", "IOB2") for s in found]
    return [[[*token[:-1], y] for token, y in zip(s, ys)] for s, ys in zip(found, labels)]


def words(corpus: str, part: str) -> Sentences:
    """Return the words of a part."""
    return [[token[0] for token in sentence] for sentence in rows(corpus, part)]


def labels(corpus: str, part: str) -> Sentences:
    """Return the labels of a part."""
    return [[token[-1] for token in sentence] for sentence in rows(corpus, part)]


def text(corpus: str, source: str) -> Sentences:
    """Return the sentences that classes are learned from: those of the training part, or of all parts."""
    found = list(words(corpus, "train"))
    if source == "all text":
        of = CORPORA[corpus]
        for part in (*of.others, of.test):
            found += words(corpus, part)
        if of.more is not None:
            found += text(of.more, "all text")
    return found


def packed(counts: Sequence[Sequence[int]]) -> str:
    """Return counts of sentences as text."""
    return base64.b64encode(zlib.compress(np.asarray(counts, dtype=np.uint16).tobytes(), 9)).decode("ascii")


def unpacked(counts: str) -> NDArray[np.int64]:
    """Return the counts of `packed`, [sentences, 5]."""
    return (
        np.frombuffer(zlib.decompress(base64.b64decode(counts)), dtype=np.uint16)
        .reshape(-1, 5)
        .astype(np.int64)
    )


def scored(gold: Sentences, predicted: Sentences) -> dict[str, Any]:
    """Return the score of labels, its name, and the counts of every sentence."""
    found = tw.evaluate(gold, predicted)
    name = "f1" if found.chunked else "accuracy"
    return {"measure": name, "score": found.score, "counts": packed(count_by_sentence(gold, predicted))}


def classes_file(folder: Path, name: str) -> Path:
    """Return the path of learned classes."""
    return folder / f"{name.replace('/', '_').replace(' ', '_')}.pickle"


def loaded(folder: Path, name: str | None, base: Any = "default") -> Any:
    """Return features: the base alone, or with learned classes."""
    if name is None:
        return base
    return base + pickle.loads(classes_file(folder, name).read_bytes())


def learn(
    folder: Path,
    _: Results,
    name: str,
    corpus: str,
    source: str,
    share: float = 1.0,
    sets: Sequence[Mapping[str, Any]] = ({},),
) -> dict[str, Any]:
    """Learn sets of classes by their options from a share of the text of a corpus, and keep them in a file."""
    found = text(corpus, source)
    if share < 1.0:
        chosen = sorted(random.Random(0).sample(range(len(found)), round(share * len(found))))
        found = [found[i] for i in chosen]
    each = [tw.WordClasses.learn(found, n_jobs=1, **{"classes": "several", **options}) for options in sets]
    learned = tw.Features(*each)
    path = classes_file(folder, name)
    path.with_suffix(".part").write_bytes(pickle.dumps(learned))
    path.with_suffix(".part").replace(path)
    return {
        "classes": [len(one) for one in learned.parts],
        "words": learned.parts[0].n_words,
        "tokens": sum(map(len, found)),
    }


def train(
    folder: Path,
    _: Results,
    corpus: str,
    n: int | None,
    draw: int,
    classes: str | None,
    part: str | None = None,
) -> dict[str, Any]:
    """Train a CRF on random sentences and score it on the test part, or on another one."""
    x, y = words(corpus, "train"), labels(corpus, "train")
    chosen = sorted(random.Random(draw).sample(range(len(x)), n or len(x)))
    tagger = tw.CRF(features=loaded(folder, classes), l2=0.1, n_jobs=1)
    tagger.fit([x[i] for i in chosen], [y[i] for i in chosen])
    part = part or CORPORA[corpus].test
    return scored(labels(corpus, part), tagger.predict(words(corpus, part)))


# --- active learning ----------------------------------------------------------------------------------------


def pool_and_test(corpus: str) -> tuple[tw.Corpus, tw.Corpus]:
    """Return the training and the test part as corpora of words."""

    def part(name: str) -> tw.Corpus:
        found = zip(words(corpus, name), labels(corpus, name))
        return tw.Corpus([tw.Sentence({"word": x, "label": y}, "label") for x, y in found if x[0] != MARK])

    return part("train"), part(CORPORA[corpus].test)


def full(folder: Path, _: Results, corpus: str, epochs: int, classes: str | None) -> dict[str, Any]:
    """Score the learner of `tagwise annotate` after training on the whole pool."""
    from tagwise.apps.annotate.learning import fresh

    pool, test = pool_and_test(corpus)
    tagger = fresh("mira", epochs, features=loaded(folder, classes), n_jobs=1).fit(pool)
    return {"score": tagger.score(test), "pool": len(pool)}


def active(
    folder: Path,
    results: Results,
    corpus: str,
    strategy: str,
    seed: int,
    epochs: int,
    growth: float,
    classes: str | None,
    goal: str,
) -> dict[str, Any]:
    """Simulate labelling until the score is 95 % of that of the job `goal`."""
    from tagwise.apps.annotate.learning import fresh
    from tagwise.apps.annotate.simulate import Curve, run_curve

    pool, test = pool_and_test(corpus)
    features, target = loaded(folder, classes), 0.95 * results[goal]["score"]
    curve = Curve(strategy, seed)

    def make() -> Any:
        return fresh("mira", epochs, features=features, n_jobs=1)

    run_curve(curve, pool, test, make, 20, growth, target)
    reached = curve.reached(target)
    return {
        "reached": None if reached is None else reached[0],
        "sentences": curve.sentences,
        "scores": curve.scores,
    }


# --- two stages on all sentences of conll2003-en --------------------------------------------------------------

ENGLISH = "conll2003-en"
FOLDS = 5


def documents(part: str) -> list[int]:
    """Return the number of the document of each sentence."""
    found, number = [], -1
    for sentence in rows(ENGLISH, part):
        number += sentence[0][0] == MARK
        found.append(number)
    return found


def columns_of(part: str, more: Mapping[str, Sentences] | None = None) -> list[dict[str, list[str]]]:
    """Return the sentences with the columns word, pos, chunk and more."""
    out = []
    for i, sentence in enumerate(rows(ENGLISH, part)):
        fields = {name: [token[k] for token in sentence] for k, name in enumerate(("word", "pos", "chunk"))}
        out.append({**fields, **{name: column[i] for name, column in (more or {}).items()}})
    return out


def corpus_of(part: str, more: Mapping[str, Sentences] | None = None, scheme: str = "IOBES") -> tw.Corpus:
    """Return a part of the English corpus with columns, labels and documents."""
    out, before = [], -1
    for fields, y, document in zip(columns_of(part, more), labels(ENGLISH, part), documents(part)):
        given = {**fields, "label": convert(y, "IOB2", scheme)}
        out.append(tw.Sentence(given, "label", doc=None if document == before else str(document)))
        before = document
    return tw.Corpus(out)


def first_stage(folder: Path, _: Results, fold: int | None, classes: str) -> dict[str, Any]:
    """Label one fold of the training part by a tagger trained on the others, or the other parts by one of all folds."""
    corpus, document = corpus_of("train"), documents("train")
    inside = [i for i, d in enumerate(document) if fold is None or d % FOLDS != fold]
    tagger = tw.CRF(features=loaded(folder, classes), l2=0.1, max_iter=60, n_jobs=1)
    tagger.fit(tw.Corpus([corpus[i] for i in inside]))
    if fold is not None:
        held = [i for i, d in enumerate(document) if d % FOLDS == fold]
        found = tagger.predict(tw.Corpus([corpus[i] for i in held]))
        return {"labels": {str(i): y for i, y in zip(held, found)}}
    return {"labels": {part: tagger.predict(corpus_of(part)) for part in ("testa", "testb")}}


def majority_columns(
    sentences: Sequence[Sequence[str]], y: Sentences, document: Sequence[int]
) -> dict[str, Sentences]:
    """Return columns with the label of the first stage and the most frequent ones of the same word elsewhere.

    `near` is the most frequent type of the other occurrences of the word in its document, `far` that in the whole part,
    and `span` the most frequent type of the spans in the document that contain the word (Krishnan and Manning 2006).
    """
    kinds = [[label.partition("-")[2] or "O" for label in labels] for labels in y]
    near: dict[tuple[int, str], Counter[str]] = {}
    far: dict[str, Counter[str]] = {}
    inside: dict[tuple[int, str], Counter[str]] = {}
    for tokens, types, d in zip(sentences, kinds, document):
        for word, kind in zip(tokens, types):
            near.setdefault((d, word), Counter())[kind] += 1
            far.setdefault(word, Counter())[kind] += 1
            if kind != "O":
                inside.setdefault((d, word.lower()), Counter())[kind] += 1
    columns: dict[str, Sentences] = {
        "first": [list(labels) for labels in y],
        "near": [],
        "far": [],
        "span": [],
    }
    for tokens, types, d in zip(sentences, kinds, document):
        proper = [word[:1].isupper() for word in tokens]
        columns["near"].append(
            [_most(near[d, w], kind) if p else "" for w, kind, p in zip(tokens, types, proper)]
        )
        columns["far"].append([_most(far[w], kind) if p else "" for w, kind, p in zip(tokens, types, proper)])
        columns["span"].append(
            [
                _most(inside.get((d, w.lower()), Counter()), kind) if p else ""
                for w, kind, p in zip(tokens, types, proper)
            ]
        )
    return columns


def _most(counts: Counter[str], own: str) -> str:
    """Return the most frequent label of other occurrences and whether it is unanimous, or an empty string."""
    rest = counts.copy()
    rest[own] -= 1
    rest += Counter()  # drops counts of 0 and below
    if not rest:
        return ""
    best = min(rest, key=lambda label: (-rest[label], label))
    return f"{best}{'!' if rest[best] == rest.total() else '?'}"


STAGE_LINES = """\
first[-1..1]
near[-1..1]
far[-1..1]
span[-1..1]
near[0] & far[0]
near[0] & first[0]
span[0] & first[0]
near[0] & word[0].lower
near[0] & pos[0]
near[-1] & near[0]
near[0] & near[1]
"""


def second_stage(folder: Path, results: Results, learner: str, classes: str) -> dict[str, Any]:
    """Train with the columns of the first stage and score both other parts."""
    from tagwise.features.sets import template_text

    held: dict[str, Any] = {}
    for fold in range(FOLDS):
        held |= results[f"first stage, fold {fold}, {classes}"]["labels"]
    other = results[f"first stage, all, {classes}"]["labels"]
    own = {"train": [held[str(i)] for i in range(len(held))], **other}
    parts = {
        part: corpus_of(part, majority_columns(words(ENGLISH, part), y, documents(part)))
        for part, y in own.items()
    }
    base = template_text("default", ["word", "pos", "chunk"])
    features = loaded(folder, classes, base + STAGE_LINES)
    documents_back = tw.Lookback(document=True)
    taggers = {
        "crf": lambda: tw.CRF(features=features, l2=0.1, n_jobs=1),
        "crf-l2-0.03": lambda: tw.CRF(features=features, l2=0.03, n_jobs=1),
        "mira": lambda: tw.MIRA(features=features, max_iter=15, n_jobs=1),
        "mira-documents": lambda: tw.MIRA(features=features, lookback=documents_back, max_iter=15, n_jobs=1),
    }
    return _both(taggers[learner]().fit(parts["train"]), parts)


def one_stage(
    folder: Path, _: Results, learner: str, classes: str | None, plain: bool = False
) -> dict[str, Any]:
    """Train on all sentences with the columns pos and chunk, and score both other parts."""
    scheme = "IOB2" if plain else "IOBES"
    parts = {part: corpus_of(part, scheme=scheme) for part in ("train", "testa", "testb")}
    features = loaded(folder, classes)
    taggers = {
        "crf": lambda: tw.CRF(features=features, l2=0.1, n_jobs=1),
        "mira": lambda: tw.MIRA(features=features, max_iter=15, n_jobs=1),
        "mira-documents": lambda: tw.MIRA(
            features=features, lookback=tw.Lookback(document=True), max_iter=15, n_jobs=1
        ),
    }
    return _both(taggers[learner]().fit(parts["train"]), parts)


def _both(tagger: Any, parts: Mapping[str, tw.Corpus]) -> dict[str, Any]:
    return {part: tagger.evaluate(parts[part]).f1 for part in ("testa", "testb")}


# --- speed ----------------------------------------------------------------------------------------------------


def speed(_: Path, __: Results, copies: int, threads: int) -> dict[str, Any]:
    """Measure learning of 1,000 classes on a million tokens of all corpora, repeated."""
    found: Sentences = []
    n = 0
    for corpus in CORPORA:
        for sentence in text(corpus, "all text") if corpus != "wnut17-ner" else words(corpus, "train"):
            if n < TOKENS:
                found.append(sentence)
                n += len(sentence)
    wall, cpu = time.perf_counter(), time.process_time()
    tw.WordClasses.learn((s for _ in range(copies) for s in found), classes=1000, n_jobs=threads)
    return {
        "tokens": copies * n,
        "seconds": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
    }
