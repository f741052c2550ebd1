"""Continued training on other sentences: scores on old and new data, with and without a prior, and after retraining.

There are two cases from the bundled corpora. ewt-pos: 1,500 sentences from its start, then 200 from its end, which are
of another kind, with accuracy on the first and the last 600 test sentences. wnut17-ner: the sentences without
locations, then the others, with F1 of the other types and of locations, on dev and test together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import tagwise as tw

from .harness import Context, Result

STRENGTHS = (0.1, 1.0, 10.0, 100.0)
TYPE = "location"


@dataclass(frozen=True)
class Case:
    """Old and new sentences, and two scores: on the old data and on the new."""

    name: str
    features: str
    old: tw.Corpus
    new: tw.Corpus
    known: Callable[[tw.Tagger], float]
    fresh: Callable[[tw.Tagger], float]


def domain(context: Context) -> Case:
    """Return the case of sentences of another kind."""
    train, _, test = tw.load_corpus("ewt-pos")
    assert test is not None
    first, last = test[:600], test[-600:]
    return Case(
        "ewt-pos", "S2", train[:1500], train[-200:], lambda t: t.score(first), lambda t: t.score(last)
    )


def label(context: Context) -> Case:
    """Return the case of a new label: the old sentences lack it, and the new ones have few others."""
    train, dev, test = tw.load_corpus("wnut17-ner")
    assert dev is not None
    assert test is not None
    held = dev + test

    def has(sentence: tw.Sentence) -> bool:
        return any(y.endswith(f"-{TYPE}") for y in sentence.labels)

    def f1(tagger: tw.Tagger, new: bool) -> float:
        types = tagger.evaluate(held).per_type
        counts = [c for name, c in types.items() if (name == TYPE) == new]
        right, found, gold = (sum(getattr(c, n) for c in counts) for n in ("correct", "predicted", "gold"))
        return 2.0 * right / (found + gold) if found + gold else 0.0

    old = tw.Corpus([s for s in train if not has(s)])
    new = tw.Corpus([s for s in train if has(s)])
    return Case("wnut17-ner", "default", old, new, lambda t: f1(t, False), lambda t: f1(t, True))


def run(context: Context) -> Iterator[Result]:
    """Yield a table for each case, with a row per way of training."""
    for make in (domain, label):
        case = make(context)
        result = Result(f"incremental-{case.name}", f"Continued training on other sentences, {case.name}")
        params: dict[str, Any] = {"features": case.features, "l2": 0.2}
        before = tw.CRF(**params).fit(case.old)
        methods: dict[str, Callable[[], tw.Tagger]] = {
            "old sentences": lambda: tw.CRF(**params).fit(case.old),  # noqa: B023
            "old and new": lambda: tw.CRF(**params).fit(case.old + case.new),  # noqa: B023
            "new, no prior": lambda: tw.CRF(**params).fit(case.new, warm_start=before),  # noqa: B023
            **{
                f"new, prior={p:g}": lambda p=p: tw.CRF(**params, prior=p).fit(case.new, warm_start=before)  # type: ignore[misc] # noqa: B023
                for p in STRENGTHS
            },
        }
        for method, train in methods.items():
            begin = time.perf_counter()
            tagger = train()
            spent = time.perf_counter() - begin
            scores = 100 * case.known(tagger), 100 * case.fresh(tagger)
            cells = {"known": f"{scores[0]:.2f}", "new": f"{scores[1]:.2f}", "seconds": f"{spent:.1f}"}
            result.add(method, cells)
            result.raw[method] = {"known": scores[0], "new": scores[1], "seconds": spent}
        yield result
