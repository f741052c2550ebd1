"""Every kind of model by name: learner, parameters, and the view of the sentences it is trained on."""

from __future__ import annotations

import functools
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import tagwise as tw

from . import corpus

#: Small templates, to keep model files small.
PLAIN = "word[0]\nword[-1]\nword[0].suffix(2)\n"
EDGES = "word[0]\nword[0].suffix(2)\nedge: word[0].suffix(1)\nedge: word[-1].is_title?\n"
COLUMNS = 'word[0]\n"pos tag"[0]\n"pos tag"[-1] & "pos tag"[0]\n'
RARE = "word[0].is_rare(2)? & word[0].suffix(1)\nword[0].is_frequent(3)?\nword[0]\n"
RULES = {
    "forbidden": [("I-LOC", "B-PER"), (None, "I-PER"), ("O", "I-LOC"), ("I-PER", None)],
    "required": {"I-PER": ["O", "B-LOC"], "I-LOC": ["O", None]},
}
#: Every construct of the template language.
EVERY = """
bias
first
last
word[-2..2]
word[-1..1].suffix(1..3)
word[0].prefix(2)
word[0].lower & word[1].lower
word[0].digits
word[0].shape
word[0].short_shape
word[0].length
word[0].initial
word[0].is_capitalized? & word[0].has_dot?
word[0].is_title?
word[0].is_upper?
word[0].is_lower?
word[0].is_digit?
word[0].is_alpha?
word[0].is_alnum?
word[0].is_punct?
word[0].is_number?
word[0].has_upper?
word[0].has_digit?
word[0].has_letter?
word[0].has_hyphen?
word[0].longer_than(4)?
word[0].lower.is_rare(2)?
word[0].is_frequent(2)? & word[-1]
word[0].starts_with("M", "L")?
word[0].ends_with("ed", "s")?
word[0].contains("o")?
word[-1].one_of("Mr", "Dr", "in")?
tail = word[0].lower.suffix(4)
near = word[-1]
near = word[1]
pad: word[-1] & word[0]
edge: word[0].short_shape
edge pad: word[-1].suffix(1)
"""
DERIVED = tw.Gazetteer(["New Oslo", ["Oslo"], "LUND"], name="cities") + tw.Regex(
    "title", "(Dr|Mrs?)[.]?", window=2
)
CLASSES = tw.WordClasses.learn(corpus.TRAIN, classes=4, min_count=1, n_jobs=1)
WAPITI = 'u:1=%x[-1,0]\nu:2=%X[0,0]\nu:3=%m[0,0,"\\u"]\n*:4=%t[0,0,"^[A-Z]"]\nu:5=%x[@1,0]\nb\n'
CRFPP_WORDS = "U00:%x[1,0]\nB01:%x[0,0]\n"
CRFPP = "U00:%x[-1,0]\nU01:%x[0,0]/%x[0,1]\nU02:%x[1,0]\nB01:%x[0,1]\nB\n"
ONCE = {"scheme": "IOB2", "once": ["LOC"]}


@dataclass(frozen=True)
class Kind:
    """A learner with its parameters and data.

    `view` is "corpus", "words", "attributes", "vectors" or "vectors and words". With "odd",
    "int", "float" or "bool" it is words with such labels.
    """

    learner: type[tw.Tagger]
    params: dict[str, Any] = field(default_factory=dict)
    view: str = "words"
    through: str | None = None  # a foreign format that the model is converted to and from before it is kept

    def train(self) -> tuple[Any, list[list[Any]]]:
        """Return X and y."""
        names = {"odd": corpus.ODD, **corpus.TYPED}.get(self.view)
        labels = [[names[y] for y in sentence] for sentence in corpus.LABELS] if names else corpus.LABELS
        return self.seen(corpus.TRAIN), labels

    def test(self) -> Any:
        """Return the test sentences in this view."""
        return self.seen(corpus.TEST)

    def seen(self, sentences: tw.Corpus) -> Any:
        """Return sentences in this view."""
        views: dict[str, Callable[[tw.Corpus], Any]] = {
            "corpus": lambda c: c,
            "attributes": corpus.attributes,
            "vectors": corpus.arrays,
            "vectors and words": lambda c: tw.Vectors.of(corpus.words(c), corpus.arrays(c), scale=0.5),
        }
        return views.get(self.view, corpus.words)(sentences)

    def new(self) -> tw.Tagger:
        """Return the tagger before training."""
        return self.learner(**self.params)


def _crf(**params: Any) -> dict[str, Any]:
    return {"features": PLAIN, "l2": 0.05, "max_iter": 12, **params}


def _online(**params: Any) -> dict[str, Any]:
    return {"features": PLAIN, "max_iter": 4, **params}


KINDS: dict[str, Kind] = {
    "crf": Kind(tw.CRF, _crf()),
    "crf-sparse": Kind(tw.CRF, _crf(l1=0.2, l2=0.01, start_end=False)),
    "crf-exp": Kind(tw.CRF, _crf(loss="pointwise_exp", all_pairs=True, features="word[0]\n")),
    "crf-order2": Kind(tw.CRF, _crf(order=2)),
    "crf-order3": Kind(tw.CRF, _crf(order=3, features="word[0]\nword[-1].is_title?\n")),
    "crf-edges": Kind(tw.CRF, _crf(features=EDGES)),
    "crf-rules": Kind(tw.CRF, _crf(constraints=RULES)),
    "crf-once": Kind(tw.CRF, _crf(constraints=ONCE)),
    "crf-auto": Kind(tw.CRF, _crf(constraints="auto", dictionary=tw.Dictionary(2, share=0.2))),
    "crf-dictionary": Kind(tw.CRF, _crf(dictionary=2)),
    "crf-set": Kind(tw.CRF, _crf(features="S2")),
    "crf-columns": Kind(tw.CRF, _crf(features=COLUMNS), "corpus"),
    "crf-rare": Kind(tw.CRF, _crf(features=RARE, min_count=2), "corpus"),
    "crf-templates": Kind(tw.CRF, _crf(features=EVERY, min_count=5, l1=0.1), "corpus"),
    "crf-crfpp": Kind(tw.CRF, _crf(features=CRFPP), "corpus"),
    "crf-function": Kind(tw.CRF, _crf(features=corpus.shapes)),
    "crf-derived-columns": Kind(tw.CRF, _crf(features=RARE + DERIVED), "corpus"),
    "crf-classes": Kind(tw.CRF, _crf(features=PLAIN + CLASSES), "corpus"),
    "crf-sum": Kind(tw.CRF, _crf(features=CRFPP_WORDS + DERIVED + corpus.shapes, min_count=2)),
    "crf-attributes": Kind(tw.CRF, _crf(features="attributes"), "attributes"),
    "crf-odd": Kind(tw.CRF, _crf(), "odd"),
    "perceptron": Kind(tw.Perceptron, _online(features=EDGES, random_state=3)),
    "perceptron-voted": Kind(tw.Perceptron, _online(voters=8, constraints="bio")),
    "perceptron-history": Kind(tw.Perceptron, _online(lookback=(2, 3))),
    "mira-endless": Kind(tw.MIRA, _online(lookback=tw.Lookback(p=float("inf"), pool=8), average=False)),
    "perceptron-document": Kind(
        tw.Perceptron, _online(lookback=tw.Lookback(document=True), constraints="bio"), "corpus"
    ),
    "perceptron-poly": Kind(
        tw.Perceptron,
        _online(kernel=tw.Poly(degree=3, coef=0.5, gamma=0.75), dictionary=2, constraints="bio"),
    ),
    "perceptron-linear": Kind(tw.Perceptron, _online(kernel="linear", features="attributes"), "attributes"),
    "perceptron-own": Kind(tw.Perceptron, _online(kernel=corpus.cosine)),
    "mira": Kind(tw.MIRA, _online(k=2, cost="f1", C=0.5, dictionary=2)),
    "mira-history": Kind(tw.MIRA, _online(lookback=tw.Lookback(3, 2, document=True)), "corpus"),
    "pa": Kind(tw.PassiveAggressive, _online(variant=2, C=0.25)),
    "arow": Kind(tw.AROW, _online(r=0.5, variance=2.0, features=EDGES)),
    "hmsvm": Kind(tw.HMSVM, {"features": "word[0]\n", "C": 0.5, "max_iter": 5}),
    "hmsvm-rbf": Kind(
        tw.HMSVM, {"features": PLAIN, "kernel": tw.RBF(gamma=0.25), "max_iter": 4, "constraints": "bio"}
    ),
    "boosting": Kind(
        tw.Boosting, {"features": PLAIN, "max_iter": 60, "max_step": 2.0, "features_per_round": 1}
    ),
    "hmm": Kind(tw.HMM, {"features": "S1", "smoothing": 0.5}),
    "hmm-overlapping": Kind(tw.HMM, {"features": "word[0]\nword[-1]\n", "overlapping": True}),
    "memm": Kind(tw.MEMM, {"features": PLAIN, "l2": 0.1, "max_iter": 10}),
}

#: Kinds that only have a file. Tests of `vectors`, label types and so on cover their parts.
KEPT: dict[str, Kind] = {
    "crf-log-pointwise": Kind(tw.CRF, _crf(loss="pointwise_log", optimizer="cg")),
    "crf-weighted": Kind(tw.CRF, _crf(class_weight={"B-PER": math.exp(2.0), "O": 0.5}, optimizer="lbfgs")),
    "crf-vectors": Kind(tw.CRF, _crf(features="attributes"), "vectors"),
    "crf-vectors-words": Kind(tw.CRF, _crf(features=DERIVED + "word[0]\n"), "vectors and words"),
    "crf-wapiti": Kind(tw.CRF, _crf(features=WAPITI)),
    "crf-through-wapiti": Kind(tw.CRF, _crf(features=WAPITI, start_end=False), through="wapiti"),
    "crf-through-crfpp": Kind(tw.CRF, _crf(features=CRFPP_WORDS, start_end=False), through="crfpp"),
    "crf-through-crfsuite": Kind(
        tw.CRF, _crf(features="attributes", start_end=False), "attributes", through="crfsuite"
    ),
    "crf-int": Kind(tw.CRF, _crf(features="word[0]\n"), "int"),
    "perceptron-float": Kind(tw.Perceptron, _online(features="word[0]\n"), "float"),
    "hmm-bool": Kind(tw.HMM, {"features": "S1", "unknown_words": "shape"}, "bool"),
    "mira-cost": Kind(tw.MIRA, _online(cost=corpus.misses, k=1)),
    "mira-far": Kind(tw.MIRA, _online(lookback=tw.Lookback(1, float("inf"), pool=4))),
    "mira-vectors": Kind(tw.MIRA, _online(features="word[0]\n"), "vectors and words"),
    "memm-sparse": Kind(tw.MEMM, {"features": PLAIN, "l1": 0.05, "l2": 1.0, "max_iter": 10}),
    "hmsvm-sequence": Kind(
        tw.HMSVM, {"features": PLAIN, "slack": "sequence", "max_iter": 4, "dictionary": 2}
    ),
    "boosting-joint": Kind(tw.Boosting, {"features": PLAIN, "max_iter": 2, "features_per_round": 64}),
    "perceptron-budget": Kind(tw.Perceptron, _online(kernel=tw.RBF(gamma=0.5, budget=12))),
}


@functools.cache
def fitted(name: str) -> tw.Tagger:
    """Return the trained tagger of a kind. It is shared and must not be modified."""
    kind = (KINDS | KEPT)[name]
    X, y = kind.train()
    tagger = kind.new().fit(X, y)
    if kind.through is None:
        return tagger
    with tempfile.TemporaryDirectory() as folder:
        tagger.save(f"{folder}/m", format=kind.through)
        return tw.load(f"{folder}/m")
