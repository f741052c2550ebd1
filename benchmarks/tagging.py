"""Tagging from attribute lists and from tokens, with a tag dictionary, of long sentences, and marginals as arrays."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict

import numpy as np

from . import ours, peer
from .harness import Context, Ratio, Result, alternate
from .workloads import NoData, sentences, workload

ITERATIONS = 20  # enough for realistic paths, since speed does not depend on the weights


def rate(tokens: int, times: list[float]) -> str:
    """Format the median tokens per second."""
    return f"{tokens / statistics.median(times) / 1e3:,.0f} k tokens/s"


def against(
    result: Result, name: str, tokens: int, sides: dict[str, Callable[[], object]], rounds: int, demand: float
) -> None:
    """Alternate two sides, theirs first, and add a row with their ratio."""
    theirs, mine = alternate(sides, rounds).values()
    ratio = Ratio.of(theirs.wall, mine.wall)
    cells = {
        "theirs": rate(tokens, theirs.wall),
        "ours": rate(tokens, mine.wall),
        "ours by CPU time": rate(tokens, mine.cpu),
        "ratio": str(ratio),
        "by CPU time": str(Ratio.of(theirs.cpu, mine.cpu)),
    }
    result.add(name, cells, f">= {demand:g}x", ratio.median >= demand)
    result.raw[name] = {"tokens": tokens, "theirs": asdict(theirs), "ours": asdict(mine)}


def from_attributes(context: Context, result: Result) -> None:
    """Compare predict(X) with Tagger.tag over the same lists, with one thread."""
    for name in context.workloads:
        X, _ = workload(name, "test")
        theirs = peer.tagger(peer.model(name, ITERATIONS))
        tagger = ours.trained(name, ITERATIONS, n_jobs=1)
        sides = {
            "crfsuite": lambda X=X, theirs=theirs: [theirs.tag(s) for s in X],
            "ours": lambda X=X, tagger=tagger: tagger.predict(X),
        }
        against(result, f"attribute lists, {name}, 1 thread", sum(map(len, X)), sides, context.rounds, 5)


def marginals(context: Context, result: Result) -> None:
    """Compare predict_marginals(X) as arrays with sklearn-crfsuite, which has one thread, ours with one and two."""
    for name in context.workloads:
        X, _ = workload(name, "test")
        X = X[:200] if context.quick else X
        theirs = peer.sklearn_model(peer.model(name, ITERATIONS))
        for n_jobs in (1, 2):
            tagger = ours.trained(name, ITERATIONS, n_jobs=n_jobs)
            sides = {
                "sklearn-crfsuite": lambda X=X, theirs=theirs: theirs.predict_marginals(X),
                "ours": lambda X=X, tagger=tagger: tagger.predict_marginals(X),
            }
            row = f"marginals, {name}, {n_jobs} thread{'s'[: n_jobs - 1]}"
            against(result, row, sum(map(len, X)), sides, context.rounds, 20)


def from_tokens(context: Context, result: Result) -> None:
    """Time token strings to labels with named sets on one core: ewt-pos, and conll2002-es if it is available."""
    for corpus in ("ewt-pos", "conll2002-es"):
        try:
            X, y, tokens = ours.token_corpus(corpus)
        except NoData as missing:
            result.notes.append(f"{corpus} skipped: {missing}")
            continue
        n = sum(map(len, tokens))
        for features in ("S1", "S2", "S3", "default"):
            tagger = ours.named(features, n_jobs=1, max_iter=5).fit(X, y)
            tagger.predict(tokens[:100])  # first touch of memory
            times = alternate({"ours": lambda t=tagger, X=tokens: t.predict(X)}, context.rounds)["ours"]
            cells = {"ours": rate(n, times.wall), "ours by CPU time": rate(n, times.cpu)}
            fast = n / statistics.median(times.wall) >= 1e6
            name = f"tokens, {corpus}, {features}, 1 core"
            result.add(name, cells, ">= 1,000 k (goal 2,000 k)", fast)
            result.raw[name] = {"tokens": n, "ours": asdict(times)}


def with_dictionary(context: Context, result: Result) -> None:
    """Compare a perceptron with and without a tag dictionary."""
    for corpus in ("ewt-pos", "ptb-sample"):
        try:
            X, y, tokens = ours.token_corpus(corpus)
        except NoData as missing:
            result.notes.append(f"tag dictionary, {corpus} skipped: {missing}")
            continue
        n = sum(map(len, tokens))
        for features in ("pos", "S2", "default"):
            sides: dict[str, Callable[[], object]] = {}
            for count in (None, 3):
                tagger = ours.perceptron(features, max_iter=3, dictionary=count).fit(X, y)
                sides[str(count)] = lambda t=tagger, X=tokens: t.predict(X)
            times = alternate(sides, context.rounds)
            share = Ratio.of(times["3"].cpu, times["None"].cpu)
            cells = {"ours by CPU time": rate(n, times["3"].cpu), "by CPU time": str(share)}
            name = f"tag dictionary (n=3) vs. none, {corpus}, {features}, 1 core"
            result.add(name, cells, "<= 1.2x", share.median <= 1.2)
            result.raw[name] = {"tokens": n, "with": asdict(times["3"]), "without": asdict(times["None"])}


def long_sentences(context: Context, result: Result) -> None:
    """Compare one sentence of 10,000 tokens with 32, time per token, one thread, on a synthetic model of 45 labels."""
    length = 1_000 if context.quick else 10_000
    draw = np.random.default_rng(0)
    X = [[f"w{i}" for i in draw.integers(0, 3_000, length)] for _ in range(32)]
    y = [[f"L{int(word[1:]) % 45}" for word in x] for x in X]
    tagger = ours.perceptron("S1", max_iter=1).fit([x[:400] for x in X], [labels[:400] for labels in y])
    crf = ours.named("S1", max_iter=3).fit([x[:400] for x in X], [labels[:400] for labels in y])
    for method, call in {"predict": tagger.predict, "predict_marginals": crf.predict_marginals}.items():
        sides = {"one": lambda call=call: [call([x]) for x in X[:8]], "all": lambda call=call: call(X)}
        times = alternate(sides, context.rounds)
        share = Ratio.of([4.0 * t for t in times["one"].cpu], times["all"].cpu)
        each = {name: 1e6 * statistics.median(t.cpu) / length for name, t in times.items()}
        cells = {"one": f"{each['one'] / 8:.2f} us", "32": f"{each['all'] / 32:.2f} us", "ratio": str(share)}
        result.add(
            f"{method}, one sentence of {length:,} tokens, 45 labels", cells, "<= 2x", share.median <= 2.0
        )
        result.raw[method] = {name: asdict(t) for name, t in times.items()}


def run(context: Context) -> Result:
    """Run the five parts. Parts whose data are missing are skipped with a note."""
    result = Result("tagging", "Tagging")
    from_tokens(context, result)
    with_dictionary(context, result)
    long_sentences(context, result)
    try:
        for name in context.workloads:
            sentences(name, "test")
    except NoData as missing:
        result.notes.append(f"attribute lists and marginals skipped: {missing}")
        return result
    from_attributes(context, result)
    marginals(context, result)
    return result
