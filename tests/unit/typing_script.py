"""A user's script with every learner and every form of X and y. `mypy --strict` checks it, and it runs."""

from __future__ import annotations

import tagwise as tw
from tagwise.evaluation.metrics import Report
from tagwise.features.types import Labels, SentenceLike, Sentences

TOKENS = [["the", "dog", "barks"], ["a", "cat"]]
LABELS = [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]
CORPUS = tw.Corpus.from_lists(TOKENS, LABELS)
ATTRIBUTES = [[["w=the"], ["w=dog", "s=og"], ["w=barks"]], [["w=a"], ["w=cat"]]]
DICTS: list[list[dict[str, object]]] = [
    [{"w": "the"}, {"w": "dog", "length": 3}, {"w": "barks"}],
    [{"w": "a"}, {"w": "cat", "bias": 1.0}],
]
COLUMNS = [{"word": ["the", "dog", "barks"]}, {"word": ["a", "cat"]}]


def learners() -> list[tw.Tagger]:
    """Train every learner. `fit` returns the type of the learner."""
    crf: tw.CRF = tw.CRF(features="S1").fit(CORPUS).to("cpu")
    hmm: tw.HMM = tw.HMM(features="S1").fit(CORPUS)
    memm: tw.MEMM = tw.MEMM(features="S1").fit(CORPUS)
    hmsvm: tw.HMSVM = tw.HMSVM(features="S1").fit(CORPUS)
    boosting: tw.Boosting = tw.Boosting(features="S1").fit(CORPUS)
    perceptron: tw.Perceptron = tw.Perceptron(features="S1").fit(CORPUS).partial_fit(CORPUS)
    passive: tw.PassiveAggressive = tw.PassiveAggressive(features="S1").fit(CORPUS).partial_fit(CORPUS)
    mira: tw.MIRA = tw.MIRA(features="S1").fit(CORPUS).partial_fit(CORPUS).set_params(C=0.5)
    arow: tw.AROW = tw.AROW(features="S1").fit(CORPUS).partial_fit(CORPUS)
    return [crf, hmm, memm, hmsvm, boosting, perceptron, passive, mira, arow]


def parameters() -> list[tw.Tagger]:
    """Set grouped parameters in all their forms."""
    return [
        tw.CRF(
            features=tw.Features("S1", tw.Regex("year", "[0-9]{4}")), class_weight={"DET": 2}, dictionary=3
        ),
        tw.CRF(
            features=tw.Regex("year", "[0-9]{4}"),
            class_weight="balanced",
            dictionary=tw.Dictionary(3, share=0.1),
        ),
        tw.CRF(class_weight=2, constraints={"forbidden": [("DET", "DET")]}, partial=tw.Partial(unknown="?")),
        tw.Perceptron(features=lambda sentence, t: [sentence[t]], kernel="poly", constraints="auto"),
        tw.Perceptron(kernel=lambda a, b: a @ b.T, lookback=None),
        tw.HMSVM(kernel=tw.Poly(2), slack=("sequence", 9)),
        tw.MIRA(lookback=(1, float("inf")), cost="precision_recall(0.25)"),
        tw.MIRA(lookback=tw.Lookback(1, 2, document=True), cost=lambda gold, guess: float(gold != guess)),
    ]


def forms() -> tw.CRF:
    """Train on every form of X and y."""
    tagger = tw.CRF(features="S1")
    tagger.fit(TOKENS, LABELS, dev=TOKENS, dev_y=LABELS, sample_weight=[1.0, 2.0])
    tagger.fit(CORPUS, dev=CORPUS)
    tagger.fit(list(CORPUS))
    tagger.fit(COLUMNS, LABELS)
    tagger.fit(TOKENS, [[1, 2, 3], [1, 2]])
    tw.CRF(features="attributes").fit(ATTRIBUTES, LABELS).predict(ATTRIBUTES)
    tw.CRF(features="attributes").fit(DICTS, LABELS).predict(DICTS)
    return tagger.fit(tuple(map(tuple, TOKENS)), iter(LABELS))


def train(X: Sentences, y: Labels, example: SentenceLike) -> Report:
    """Pass X and y on with their public types."""
    tagger = tw.MIRA(features="S1").fit(X, y).partial_fit(X, y)
    tagger.predict([example])
    return tagger.evaluate(X, y)


def wrong(tagger: tw.CRF) -> None:
    """Calls that a type checker rejects: an unused `type: ignore` is an error of `mypy --strict`."""
    tagger.fit(3, LABELS)  # type: ignore[arg-type]
    tagger.fit([1, 2], LABELS)  # type: ignore[arg-type]
    tagger.fit(TOKENS, 5)  # type: ignore[arg-type]
    tagger.predict(None)  # type: ignore[arg-type]
    tw.HMM().partial_fit(CORPUS)  # type: ignore[attr-defined]
    tw.CRF(features=3)  # type: ignore[arg-type]
    tw.CRF(class_weight="rare")  # type: ignore[arg-type]
    tw.CRF(constraints=3)  # type: ignore[arg-type]
    tw.CRF(partial="yes")  # type: ignore[arg-type]
    tw.Perceptron(kernel=3)  # type: ignore[arg-type]
    tw.MIRA(cost=3)  # type: ignore[arg-type]
    tw.MIRA(lookback=2)  # type: ignore[arg-type]
    tw.HMSVM(slack="many")  # type: ignore[arg-type]
    tagger.predict(TOKENS, constraints=True)  # type: ignore[arg-type]


def main() -> None:
    """Use what the learners return."""
    for tagger in learners():
        found: list[list[str]] = tagger.predict(TOKENS)
        tw.evaluate(LABELS, found)
        tagger.evaluate(CORPUS)
        score: float = tagger.score(TOKENS, LABELS)
        if not 0.0 <= score <= 1.0:
            raise SystemExit(f"{tagger}: score {score}")
        spans: list[tw.spans.TextSpan] = tagger.tag("the dog barks")
        if len(spans) != 3:
            raise SystemExit(f"{tagger}: {spans}")
    if len(parameters()) != 8:
        raise SystemExit("parameters")
    tagger = forms()
    if train(TOKENS, LABELS, TOKENS[0]).accuracy != 1.0:
        raise SystemExit("MIRA does not learn two sentences")
    for marginals in tagger.predict_marginals(TOKENS):
        if marginals.shape[1] != len(tagger.classes_):
            raise SystemExit(f"{marginals.shape}")


if __name__ == "__main__":
    main()
