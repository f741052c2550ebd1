"""The cells of a comparison: all combinations of learners, losses, feature sets, corpora, sizes and seeds."""

from __future__ import annotations

import itertools
import os
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

import tagwise._core as _core
from tagwise.apps.compare.learners import ComparedLearner, estimator, parse
from tagwise.base.domains import Choice
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import meant, parameters_of
from tagwise.corpus.bundled import load_corpus
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.splitting import fold
from tagwise.features.derived_columns import Features, title

CorpusSpec = Union[str, Corpus, "Mapping[str, Any]", "Sequence[str]", "tuple[Corpus, Corpus]"]

#: Every fifth sentence is held out while parameters are chosen.
HELD_OUT = 5


@dataclass(frozen=True)
class Data:
    """The parts of a corpus. With `folds`, both are the whole corpus, and each seed has a fold of cross-validation."""

    train: Corpus
    test: Corpus
    dev: Corpus | None = None
    folds: int = 0

    def part(self, seed: int) -> Data:
        """Return the parts for a seed."""
        return Data(*fold(self.train, self.folds, seed)) if self.folds else self


@dataclass(frozen=True)
class Cell:
    """Everything that identifies one training run of a comparison."""

    corpus: str
    learner: ComparedLearner
    features: Any  # in any form that estimators accept
    size: int | None = None
    seed: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)  # for every learner that has them
    tune: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # chosen on a held-out part of train
    tune_size: int | None = None  # number of sentences that tuning uses
    folds: int = 1  # number of the HELD_OUT parts to hold out in turn, or 0 to score the dev part
    dev: bool = False  # score the dev part as well
    track: bool = False  # score the dev part after every iteration and keep the best one
    risks: int | None = None  # length of the lists in which gold paths are ranked

    def settings(self) -> dict[str, Any]:
        """Return all parameters of the estimator except the tuned ones."""
        common = {"random_state": self.seed, **self.params, **({"patience": 0} if self.track else {})}
        return {**self.learner.accepted(common), **self.learner.params, "features": self.features}

    @property
    def title(self) -> str:
        """Name of the features in the table."""
        return title(self.features)

    def describe(self) -> str:
        """Return a description of the cell in one line."""
        size = "" if self.size is None else f" {self.size} sentences"
        return f"{self.corpus} {self.learner.name} {self.title}{size} seed {self.seed}"


def with_losses(learner: ComparedLearner, losses: Sequence[str]) -> list[ComparedLearner]:
    """Return a copy of the learner for each loss that it supports, or the learner itself if its loss is fixed."""
    declared = parameters_of(estimator(learner.kind))
    if not losses or "loss" not in declared or "loss" in learner.params:
        return [learner]
    domain = declared["loss"].domain
    own = domain.names if isinstance(domain, Choice) else ()
    out = []
    for loss in losses:
        if loss not in own and loss in _core.LOSSES:
            continue  # a loss of another learner
        declared["loss"].check(loss)
        out.append(ComparedLearner(f"{learner.name} {loss}", learner.kind, {**learner.params, "loss": loss}))
    return out or [learner]


def plan(
    learners: Sequence[str | ComparedLearner],
    corpora: Sequence[str],
    features: Sequence[Any],
    sizes: Sequence[int] | None = None,
    seeds: int = 1,
    *,
    losses: Sequence[str] = (),
    params: Mapping[str, Any] | None = None,
    params_of: Mapping[str, Mapping[str, Any]] | None = None,
    tune: Mapping[str, Mapping[str, Sequence[Any]]] | None = None,
    tune_size: int | None = None,
    folds: int = 1,
    dev: bool = False,
    track: bool = False,
    risks: int | None = None,
) -> list[Cell]:
    """Return the cells of a comparison in the order in which they are trained and shown.

    A learner with fixed features, such as a hidden Markov model, occurs once for each corpus and size. `params_of` has
    more parameters by estimator. The keys of `tune` are names of learners or of estimators.
    """
    check_titles(features)
    expanded = [one for spec in learners for one in with_losses(parse(spec), losses)]
    check_values(expanded, params or {}, tune or {})
    cells: dict[tuple[Any, ...], Cell] = {}
    for corpus, size, learner, feature, seed in itertools.product(
        corpora, sizes or (None,), expanded, features, range(seeds)
    ):
        feature_set = learner.params.get("features", feature)
        values = (tune or {}).get(learner.name, (tune or {}).get(learner.kind, {}))
        grid = learner.accepted(values)
        key = (corpus, size, learner.name, title(feature_set), seed)
        cells.setdefault(
            key,
            Cell(
                corpus,
                learner,
                feature_set,
                size,
                seed,
                {**(params or {}), **(params_of or {}).get(learner.kind, {})},
                grid,
                tune_size,
                folds,
                dev,
                track,
                risks,
            ),
        )
    return list(cells.values())


def check_values(
    learners: Sequence[ComparedLearner],
    params: Mapping[str, Any],
    tune: Mapping[str, Mapping[str, Sequence[Any]]],
) -> None:
    """Raise a ParameterError for parameters that no learner has, and for values outside the domain of a learner."""
    from tagwise.estimators import LEARNERS

    known = {name for kind in LEARNERS.values() for name in parameters_of(kind)}
    grids = {f"tune[{key!r}]": grid for key, grid in tune.items()}
    for where, names in {"params": params, **grids}.items():
        for name in names:
            if name not in known:
                raise ParameterError(f"{where}: no learner has a parameter {name!r}{meant(name, known)}")
    for learner in learners:
        declared = parameters_of(estimator(learner.kind))
        for name, value in learner.accepted(params).items():
            declared[name].check(value)
        for name, values in learner.accepted(tune.get(learner.name, tune.get(learner.kind, {}))).items():
            for value in values:
                declared[name].check(value)


def check_titles(features: Sequence[Any]) -> None:
    """Raise a ParameterError for a single feature set instead of a list, and for sets of the same name."""
    if isinstance(features, (str, Features)):
        raise ParameterError(
            f"features={title(features)!r}: expected a list of feature sets: [{title(features)!r}]"
        )
    by_title: dict[str, Any] = {}
    for one in features:
        if by_title.setdefault(title(one), one) != one:
            raise ParameterError(
                f"features: two sets have the name {title(one)!r} in the table. Name their parts differently, as in "
                "Gazetteer(..., name='cities')"
            )


def check_against(against: str, cells: Sequence[Cell]) -> str:
    """Return the name of the learner to test against, or raise a ParameterError if it is not compared."""
    names = list(dict.fromkeys(cell.learner.name for cell in cells))
    if against in names:
        return against
    if (found := parse(against).name) not in names:
        raise ParameterError(
            f"learner {against!r} is not compared{meant(against, names)}. Use one of {', '.join(names)}"
        )
    return found


def draw(train: Corpus, size: int | None, seed: int) -> Corpus:
    """Return the training sentences of a cell: the first `size` for seed 0, a random sample for other seeds."""
    if size is None or size >= len(train):
        return train
    if seed == 0:
        return train[:size]
    chosen = sorted(random.Random(seed).sample(range(len(train)), size))
    return pick(train, chosen)


def pick(corpus: Corpus, chosen: Sequence[int]) -> Corpus:
    """Return the sentences at the given indices."""
    return Corpus(
        (corpus[i] for i in chosen), columns=corpus.columns, label=corpus.label, source=corpus.source
    )


def held_out(train: Corpus, size: int | None, fold: int = 0) -> tuple[Corpus, Corpus]:
    """Split a training set for tuning: every fifth sentence is held out, with a different offset in each fold."""
    part = train if size is None else train[:size]
    first = HELD_OUT - 1 - fold
    training = [i for i in range(len(part)) if i % HELD_OUT != first]
    return pick(part, training), pick(part, list(range(first, len(part), HELD_OUT)))


def tuning_parts(cell: Cell, train: Corpus, dev: Corpus | None) -> list[tuple[Corpus, Corpus]]:
    """Return pairs of a training and a scoring part to tune a cell on: folds, or all sentences and the dev part."""
    if not 0 <= cell.folds <= HELD_OUT:
        raise ParameterError(f"folds={cell.folds}: expected 1 to {HELD_OUT}, or 0 for the dev part")
    if cell.folds:
        return [held_out(train, cell.tune_size, fold) for fold in range(cell.folds)]
    if dev is None:
        raise ParameterError(
            f"{cell.corpus} has no dev part to choose parameters on. Use cross-validation: folds={HELD_OUT}"
        )
    return [(train if cell.tune_size is None else train[: cell.tune_size], dev)]


def load_parts(name: str) -> tuple[Corpus, Corpus | None, Corpus]:
    """Return the parts of a bundled corpus. That of a name with "+N% noise" has wrong labels in the training part."""
    match = re.fullmatch(r"(.+) \+(\d+)% noise", name)
    if match is None:
        return load_corpus(name)
    if int(match[2]) > 100:
        raise ParameterError(f"{name}: expected at most 100 % noise")
    train, dev, test = load_corpus(match[1])
    return with_noise(train, int(match[2]) / 100), dev, test


def with_noise(corpus: Corpus, share: float, seed: int = 0) -> Corpus:
    """Replace the label of each token, with probability `share`, by one of the others drawn uniformly.

    Draws do not depend on `share`, so the wrong labels of less noise are a subset of those of more noise.
    """
    labels = sorted({label for sentence in corpus for label in sentence.labels})
    rng, out = random.Random(seed), []
    for sentence in corpus:
        wrong = []
        for label in sentence.labels:
            chance, place = rng.random(), rng.randrange(max(1, len(labels) - 1))
            other = labels[place + (labels[place] >= label)] if len(labels) > 1 else label
            wrong.append(other if chance < share else label)
        fields = {**sentence.fields, str(sentence.label): wrong}
        out.append(Sentence(fields, sentence.label, doc=sentence.doc, line=sentence.line))
    return Corpus(out, columns=corpus.columns, label=corpus.label, source=corpus.source)


def resolve_corpora(
    spec: Any, limits: Mapping[str, int] | None = None, held: int | None = None, folds: int = 0
) -> dict[str, Data]:
    """Return the parts of corpora by name.

    Args:
        spec: Name or names of bundled corpora, a Corpus, a tuple (train, test) or (train, dev, test), or a mapping of
            names to either.
        limits: Number of training sentences to use, by corpus.
        held: Number of sentences at the end of the training part that replace the test part.
        folds: Number of folds for the cross-validation of a single Corpus.
    """
    if isinstance(spec, str):
        spec = {spec: spec}
    elif isinstance(spec, Corpus):
        spec = {os.path.basename(spec.source or "corpus"): spec}
    elif isinstance(spec, tuple) and len(spec) in (2, 3) and isinstance(spec[0], Corpus):
        spec = {os.path.basename(spec[0].source or "corpus"): spec}
    elif not isinstance(spec, Mapping):
        spec = {name: name for name in spec}
    out = {}
    for name, data in spec.items():
        if isinstance(data, Corpus):
            if folds < 2:
                raise ParameterError(
                    f"folds={folds}: cross-validation of {name} needs at least 2 folds. Use folds=5, or give a tuple "
                    "of a training and a test part"
                )
            out[name] = Data(data, data, folds=folds)
            continue
        parts = load_parts(data) if isinstance(data, str) else data
        train, test = (parts[0], parts[-1]) if held is None else (parts[0][:-held], parts[0][-held:])
        train = draw(train, (limits or {}).get(name), 0)
        out[name] = Data(train, test, parts[1] if len(parts) == 3 else None)
    return out
