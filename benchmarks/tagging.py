"""Tagging from attribute lists, from tokens with native feature sets; marginals as arrays."""

from __future__ import annotations

import statistics

from . import ours, peer
from .harness import Context, Ratio, Result, alternate, seconds
from .workloads import NoData, sentences, workload

ITERATIONS = 20  # enough for sensible paths; speed does not depend on the weights


def rate(tokens: int, times: list[float]) -> str:
    """Median tokens a second."""
    return f"{tokens / statistics.median(times) / 1e3:,.0f} k tokens/s"


def from_attributes(context: Context, result: Result) -> None:
    """predict(X) against Tagger.tag over the same lists, one thread."""
    for name in context.workloads:
        X, _ = workload(name, "test")
        tokens = sum(map(len, X))
        theirs = peer.tagger(peer.model(name, ITERATIONS))
        tagger = ours.trained(name, ITERATIONS, n_jobs=1)
        sides = {
            "crfsuite": lambda X=X, theirs=theirs: [theirs.tag(s) for s in X],
            "ours": lambda X=X, tagger=tagger: tagger.predict(X),
        }
        times = alternate(sides, context.rounds)
        ratio = Ratio.of(times["crfsuite"], times["ours"])
        cells = {
            "theirs": rate(tokens, times["crfsuite"]),
            "ours": rate(tokens, times["ours"]),
            "ratio": str(ratio),
        }
        result.add(f"attribute lists, {name}, 1 thread", cells, ">= 5x", ratio.median >= 5)
        result.raw[f"attributes-{name}"] = times


def marginals(context: Context, result: Result) -> None:
    """predict_marginals(X) as arrays against sklearn-crfsuite's, one thread."""
    for name in context.workloads:
        X, _ = workload(name, "test")
        X = X[:200] if context.quick else X
        tokens = sum(map(len, X))
        theirs = peer.sklearn_model(peer.model(name, ITERATIONS))
        tagger = ours.trained(name, ITERATIONS, n_jobs=1)
        sides = {
            "sklearn-crfsuite": lambda X=X, theirs=theirs: theirs.predict_marginals(X),
            "ours": lambda X=X, tagger=tagger: tagger.predict_marginals(X),
        }
        times = alternate(sides, context.rounds)
        ratio = Ratio.of(times["sklearn-crfsuite"], times["ours"])
        cells = {
            "theirs": rate(tokens, times["sklearn-crfsuite"]),
            "ours": rate(tokens, times["ours"]),
            "ratio": str(ratio),
        }
        result.add(f"marginals, {name}, 1 thread", cells, ">= 20x", ratio.median >= 20)
        result.raw[f"marginals-{name}"] = times


def from_tokens(context: Context, result: Result) -> None:
    """Token strings to labels with named sets, one core: ewt-pos, and conll2002-es if it is there."""
    for corpus in ("ewt-pos", "conll2002-es"):
        try:
            train, tokens = ours.token_corpus(corpus)
        except NoData as missing:
            result.notes.append(f"{corpus} left out: {missing}")
            continue
        n = sum(map(len, tokens))
        for features in ("S1", "S2", "S3", "default"):
            tagger = ours.named(features, n_jobs=1, max_iter=5)
            tagger.fit(train)
            times = [seconds(lambda t=tagger, X=tokens: t.predict(X)) for _ in range(context.rounds + 1)][1:]
            speed = n / statistics.median(times)
            demand = ">= 1,000 k (goal 2,000 k)" if features in ("S3", "S2") else ""
            holds = speed >= 1e6 if demand else None
            result.add(f"tokens, {corpus}, {features}, 1 core", {"ours": rate(n, times)}, demand, holds)
            result.raw[f"tokens-{corpus}-{features}"] = {"tokens": n, "seconds": times}


def run(context: Context) -> Result:
    """The three parts; what needs missing data is left out with a word."""
    result = Result("tagging", "Tagging")
    from_tokens(context, result)
    try:
        for name in context.workloads:
            sentences(name, "test")
    except NoData as missing:
        result.notes.append(f"attribute lists and marginals left out: {missing}")
        return result
    from_attributes(context, result)
    marginals(context, result)
    return result
