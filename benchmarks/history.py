"""Decoding beyond first order: the paper's table of (m, p), documents, time for p, constraints, tag dictionaries."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

import tagwise as tw
from tagwise.corpus import schemes
from tagwise.decoding import paths
from tagwise.decoding.plan import Query, plan_of
from tagwise.features.inputs import Inputs

from . import ours
from .harness import Context, Result, Times, alternate, seconds
from .workloads import NoData

EPOCHS, QUICK_EPOCHS = 40, 5
INF = math.inf

# history, document, then the paper's dev F1 of MIRA and perceptron (Gimpel & Cohen, table 7), and test F1 (table 6)
TABLE: tuple[tuple[tuple[int, float], bool, float, float, float | None], ...] = (
    ((1, 1), False, 88.86, 88.98, 82.27),
    ((1, 2), False, 88.44, 88.74, None),
    ((1, 3), False, 88.61, 88.33, None),
    ((1, 4), False, 88.64, 88.26, None),
    ((1, 5), False, 88.71, 88.44, None),
    ((1, INF), True, 89.50, 88.07, None),
    ((1, 1), True, 89.92, 88.46, 83.61),
    ((2, 2), False, 88.79, 88.98, None),
)


def table(context: Context, result: Result) -> None:
    """Add conll2003-en with the `ner` set: MIRA with k=4 and the averaged perceptron."""
    train, dev, test = ours.corpus("conll2003-en")
    epochs = QUICK_EPOCHS if context.quick else EPOCHS
    found: dict[str, dict[str, float]] = {}
    for history, document, mira_dev, perceptron_dev, mira_test in TABLE:
        name = f"m={history[0]}, p={history[1]:g}" + (", document" if document else "")
        cells = {}
        for learner, make, paper in (
            ("MIRA", tw.MIRA(features="ner", k=4), mira_dev),
            ("perceptron", tw.Perceptron(features="ner"), perceptron_dev),
        ):
            tagger = make.set_params(
                max_iter=epochs, lookback=tw.Lookback(*history, document=document), n_jobs=1
            )
            took = trained(tagger, train)
            scores = {"dev": 100 * tagger.score(dev), "test": 100 * tagger.score(test), "seconds": took}
            found[f"{learner} {name}"] = scores
            published = f" ({paper:.2f})" + (
                f" / ({mira_test:.2f})" if learner == "MIRA" and mira_test else ""
            )
            cells[f"{learner} dev / test (paper)"] = f"{scores['dev']:.2f} / {scores['test']:.2f}{published}"
            cells[f"{learner} s"] = f"{took:.1f}"
        result.add(name, cells)
    result.raw["table"] = found
    base, document_only = found["MIRA m=1, p=1"]["test"], found["MIRA m=1, p=1, document"]["test"]
    gain = document_only - base
    result.add("document features, test F1", {"gain": f"{gain:+.2f} (paper +1.34)"}, ">= +0.8", gain >= 0.8)
    top = max((scores["test"], name) for name, scores in found.items())
    result.add("best test F1", {"gain": f"{top[0]:.2f}, {top[1]}"}, ">= 83.6", top[0] >= 83.6)
    result.notes.append(
        f"{epochs} epochs, seed 0, one thread. The 40 iterations of the paper took 227 minutes."
    )


def ratio(times: dict[str, Times], slow: str, fast: str) -> float:
    """Return the median over the rounds of the ratio of CPU times. Everything runs in one thread."""
    return statistics.median(a / b for a, b in zip(times[slow].cpu, times[fast].cpu))


def decoded(model: Any, X: Any) -> Callable[[], object]:
    """Return a call that decodes sentences that are already encoded."""
    data, query = model.encode(X, 1), Query(n_jobs=1)
    return lambda: paths.best(plan_of(model.scoring, Inputs.of(X), data, query))


def trained(tagger: Any, X: Any) -> float:
    """Return the seconds of training."""
    return seconds(lambda: tagger.fit(X))


def time_of_p(context: Context, result: Result) -> None:
    """Add the time to decode the encoded dev part, for each p, relative to p = 1."""
    train, dev, _ = ours.corpus("conll2003-en")
    mean = dev.n_tokens / len(dev)
    sides: dict[str, Callable[[], object]] = {}
    for p in (1, 2, 5, INF):
        tagger: Any = tw.MIRA(features="ner", k=4, max_iter=2, lookback=(1, p), n_jobs=1).fit(train)
        sides[f"{p:g}"] = decoded(tagger.model_, dev)
    tagger = tw.MIRA(features="ner", k=4, max_iter=2, lookback=tw.Lookback(document=True), n_jobs=1).fit(
        train
    )
    sides["document"] = decoded(tagger.model_, dev)
    times = alternate(sides, 3 * context.rounds)
    result.raw["time"] = {name: t.cpu for name, t in times.items()}
    for name in sides:
        bound = {"1": 1.0, "2": 2.0, "5": 5.0}.get(name, mean)
        found = ratio(times, name, "1")
        cells = {"ms": f"{1e3 * statistics.median(times[name].cpu):.1f}", "time / p=1": f"{found:.2f}"}
        title = f"decoding dev, m=1, {'p=' if name != 'document' else ''}{name}"
        result.add(title, cells, f"<= {bound:.3g}", name == "1" or found <= bound)


def ill_formed(predicted: list[list[str]], scheme: str) -> int:
    """Return the number of sentences that violate the scheme."""
    return sum(
        not all(schemes.valid(a, b, scheme) for a, b in zip([None, *y], [*y, None])) for y in predicted
    )


def constrained(context: Context, result: Result) -> None:
    """Add ill-formed output, F1 and decoding time with and without constraints."""
    for name, scheme, features in (("conll2002-es", "IOB2", "S3"), ("conll2003-en", "IOB1", "ner")):
        train, _, test = ours.corpus(name)
        for label, make in (
            ("MIRA", tw.MIRA(features=features, max_iter=10, n_jobs=1)),
            ("CRF", tw.CRF(features=features, l2=0.1, max_iter=20 if context.quick else 100, n_jobs=1)),
        ):
            plain = make.fit(train).model_
            bound = make.set_params(constraints="auto").fit(train).model_
            sides = {"plain": decoded(plain, test), "bound": decoded(bound, test)}
            times = alternate(sides, 3 * context.rounds)
            # The same weights decoded under constraints, and weights learned under them.
            held = plain.predict(test, constraints="auto", n_jobs=1)
            found = [plain.predict(test, n_jobs=1), held, bound.predict(test, n_jobs=1)]
            f1 = [100 * tw.evaluate(test, y).f1 for y in found]
            ill = [ill_formed(y, scheme) for y in found]
            cost = ratio(times, "bound", "plain")
            cells = {
                "ill-formed": f"{ill[0]} -> {ill[1]} -> {ill[2]}",
                "F1": f"{f1[0]:.2f} -> {f1[1]:.2f} -> {f1[2]:.2f}",
                "time": f"{cost:.2f}x",
            }
            holds = max(ill[1:]) == 0 and cost <= 1.3 and min(f1[1:]) >= f1[0] - 0.1
            result.add(f"constraints, {name}, {label}", cells, "0, F1 kept, <= 1.3x", holds)
            result.raw[f"constraints {name} {label}"] = {"ill": ill, "f1": f1, "time": cost}
    result.notes.append("constraints: none -> decoding only -> training and decoding.")


def dictionary(context: Context, result: Result) -> None:
    """Add a perceptron of three epochs with and without a tag dictionary, for first order and m = p = 2."""
    for name in ("ewt-pos", "ptb-sample"):
        train, _, test = ours.corpus(name)
        for history in (None, (2, 2)):
            scores, models, took = {}, {}, {}
            for count in (None, 3):
                tagger: Any = tw.Perceptron(
                    features="default", max_iter=3, dictionary=count, lookback=history, n_jobs=1
                )
                took[count] = trained(tagger, train)
                scores[count] = 100 * tagger.evaluate(test).accuracy
                models[count] = tagger.model_
            sides = {str(count): decoded(model, test) for count, model in models.items()}
            times = alternate(sides, context.rounds)
            cells = {
                "accuracy": f"{scores[None]:.2f} -> {scores[3]:.2f}",
                "training": f"{took[None]:.1f} -> {took[3]:.1f} s",
                "time": f"{ratio(times, '3', 'None'):.2f}x",
            }
            order = "first order" if history is None else "m=p=2"
            result.add(f"tag dictionary (n=3), {name}, {order}", cells)
            result.raw[f"dictionary {name} {order}"] = {"accuracy": list(scores.values()), **cells}


def run(context: Context) -> Result:
    """Run all four parts. Parts whose data are missing are skipped with a note."""
    result = Result("history", "Decoding beyond first order")
    for part in (table, time_of_p, constrained, dictionary):
        try:
            part(context, result)
        except NoData as missing:
            result.notes.append(f"{part.__name__} skipped: {missing}")
    return result
