"""``tagwise annotate --simulate``: how many sentences each strategy needs on a corpus that has labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import rich_click as click

from tagwise.base.writing import write_text
from tagwise.cli.app import say
from tagwise.cli.files import bundled_corpus, read_corpus
from tagwise.corpus import schemes
from tagwise.corpus.sentence import Corpus

#: Strategies that a simulation compares with random order by default.
SIMULATED = ("margin", "span", "committee", "diversity")


class Simulated(NamedTuple):
    """Options of a simulation."""

    strategies: str | None  # names, separated by commas
    seeds: int
    max_iter: int
    growth: float  # of the labelled part per step


def in_iob2(corpus: Corpus) -> Corpus:
    """Return a labelled corpus with spans in IOB2, the scheme of the pages. Labels that mark no spans are kept."""
    if not schemes.has_chunks({y for labels in corpus.labels for y in labels}):
        return corpus
    found = [s.with_labels(schemes.convert(s.labels, None, "IOB2"), corpus.label) for s in corpus]
    return Corpus(found, columns=corpus.columns, label=corpus.label, source=corpus.source)


def run_simulation(
    corpus: str,
    dev: str | None,
    learner: str,
    features: str,
    output: str | None,
    simulation: Simulated,
    reading: tuple[str | None, str | None, str | None],
) -> None:
    """Simulate labelling, print the table and write the chart.

    `reading` has format, columns and label, the options of `corpus_options`. A bundled corpus is scored on its
    test part.
    """
    from tagwise.apps.annotate.learning import fresh, learner_of
    from tagwise.apps.annotate.ranking import strategy_of
    from tagwise.apps.annotate.simulate import Curve, simulate

    form, columns, label = reading
    strategies = [strategy_of(one).name for one in (simulation.strategies or "").replace(",", " ").split()]
    learner_of(learner)
    name = corpus.partition(":")[0]
    train = read_corpus(corpus, form, columns, label, part="train")
    test = (
        bundled_corpus(name, "test", label)
        if dev is None
        else read_corpus(dev, form, columns, label, part="test")
    )
    if test is None:
        raise click.UsageError("--simulate requires a corpus to score on. Add --dev DEV")

    def watch(curve: Curve) -> None:
        say(f"{curve.strategy}: {curve.sentences[-1]} sentences, score {100 * curve.scores[-1]:.1f}")

    def make() -> Any:
        return fresh(learner, simulation.max_iter, features=features)

    found = simulate(
        name,
        in_iob2(train),
        in_iob2(test),
        make,
        strategies=strategies or SIMULATED,
        seeds=simulation.seeds,
        growth=simulation.growth,
        watch=watch,
    )
    click.echo(
        f"{name}: {100 * found.full:.2f} with all {found.pool:,} sentences. Needed to reach {100 * found.target:.2f}"
        f"\n\n{found.markdown()}"
    )
    if output is not None:
        write_text(output, found.chart().document())
