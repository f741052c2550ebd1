"""Regularisation paths: models for several strengths, each started from the one before.

>>> import tagwise as tw
>>> train, dev, _ = tw.load_corpus("wnut17-ner")
>>> path = regularization_path(tw.CRF(features="S1", max_iter=20), train[:200], dev[:100], strengths=[1.0, 0.1])
>>> [step.strength for step in path], path.best.strength in (1.0, 0.1)
([1.0, 0.1], True)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tagwise.base.exceptions import CorpusError, ParameterError
from tagwise.base.parameters import lookup, parameters_of
from tagwise.base.progress import checked_callbacks
from tagwise.corpus.labels import lists as label_lists
from tagwise.estimators.base import Tagger
from tagwise.evaluation.metrics import Report
from tagwise.evaluation.scoring import METRICS
from tagwise.features.inputs import Inputs
from tagwise.features.types import Labels, Sentences
from tagwise.learners.dual import DualPoint
from tagwise.model.model import Model

if TYPE_CHECKING:
    from rich.table import Table

#: Strengths from strong to weak, three per decade.
STRENGTHS = (10.0, 5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)


@dataclass(frozen=True)
class PathStep:
    """One strength of a path: the tagger trained with it and its scores on the development set.

    Attributes:
        strength: Value of the parameter.
        tagger: Fitted tagger.
        report: Scores on the development set.
        iterations: Number of iterations of training.
        seconds: Seconds of training.
    """

    strength: float
    tagger: Tagger
    report: Report
    iterations: int
    seconds: float

    def __repr__(self) -> str:
        return f"<PathStep: strength {self.strength:g}, dev score {100 * self.score:.2f}, {self.tagger!r}>"

    def _repr_html_(self) -> str:
        return self.tagger._repr_html_() + self.report._repr_html_()

    @property
    def score(self) -> float:
        """Score of the development set by the metric of the tagger."""
        return METRICS[self.tagger.metric_](self.report)


#: Columns of a path, after that of the parameter.
HEAD = ("dev score", "non-zero features", "objective", "iterations", "seconds")


class RegularizationPath(Sequence[PathStep]):
    """Sequence of the steps of a path, strongest regularisation first. It prints as a table.

    Args:
        parameter: Name of the parameter.
        steps: Steps of the path.

    Attributes:
        parameter: Name of the parameter.
        steps: Steps of the path.

    >>> import tagwise as tw
    >>> train, dev, _ = tw.load_corpus("wnut17-ner")
    >>> path = regularization_path(tw.CRF(features="S1"), train[:30], dev[:30], strengths=(1.0, 0.1))
    >>> len(path), path[0].strength, path.best in path
    (2, 1.0, True)
    """

    def __init__(self, parameter: str, steps: list[PathStep]) -> None:
        self.parameter = parameter
        self.steps = steps

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, index: Any) -> Any:
        return self.steps[index]

    def __iter__(self) -> Iterator[PathStep]:
        return iter(self.steps)

    @property
    def best(self) -> PathStep:
        """Step with the highest score on the development set, the stronger one of equals."""
        # `max` returns the first of equals, which is the strongest.
        return max(self.steps, key=lambda step: step.score)

    def __repr__(self) -> str:
        best = f", best {self.best.strength:g} with {100 * self.best.score:.2f}" if self.steps else ""
        return f"<RegularizationPath: {len(self)} values of {self.parameter}{best}>"

    def _rows(self) -> list[tuple[str, ...]]:
        """Return the cells of the table, one row per step."""
        return [
            (
                f"{step.strength:g}",
                f"{100 * step.score:.2f}",
                f"{step.tagger.n_nonzero_:,}",
                f"{step.tagger.objective_:,.2f}",
                str(step.iterations),
                f"{step.seconds:.1f}",
            )
            for step in self.steps
        ]

    def _repr_html_(self) -> str:
        from tagwise.base.markup import line_html, table_html

        return line_html(repr(self)) + table_html((self.parameter, *HEAD), self._rows(), left=0)

    def __rich__(self) -> Table:
        from rich.table import Table

        table = Table(title=f"regularisation path over {self.parameter}")
        for head in (self.parameter, *HEAD):
            table.add_column(head, justify="right")
        for step, cells in zip(self.steps, self._rows()):
            table.add_row(*cells, style="bold" if step is self.best else None)
        return table

    def __str__(self) -> str:
        from tagwise.base.terminal import as_text

        return as_text(self.__rich__())


def hold_out(X: Any, y: Any, share: float) -> tuple[Any, Any, Any, Any]:
    """Split off the last `share` of the sentences, at least one: return X and y without them, then them."""
    n = len(X)
    if n < 2:
        raise CorpusError("a path needs development data. Pass dev, or at least two training sentences")
    if not 0.0 < share < 1.0:
        raise ParameterError(f"holdout={share!r}: expected a share between 0 and 1")
    cut = n - min(n - 1, max(1, round(share * n)))
    if y is None:
        return X[:cut], None, X[cut:], None
    return X[:cut], y[:cut], X[cut:], y[cut:]


def regularization_path(
    tagger: Tagger,
    X: Sentences,
    dev: Sentences | None = None,
    *,
    y: Labels | None = None,
    dev_y: Labels | None = None,
    strengths: Sequence[float] = STRENGTHS,
    parameter: str = "l2",
    holdout: float = 0.1,
    refit: bool = False,
    warm_start: Tagger | Model | str | os.PathLike[str] | None = None,
    forget: bool = False,
    callbacks: Iterable[Callable[[PathStep], Any]] = (),
) -> RegularizationPath:
    """Train with one strength after the other and score each on development data.

    Strong regularisation comes first. Its optimum is near zero and found quickly, and each optimum is a good start for
    the next one. Dual ascent of the CRF continues from the last dual point. Learners without a warm start (HMSVM, HMM)
    train from zero every time. `dev` does not influence training, only the choice of the best step.

    Args:
        tagger: Tagger whose parameters to use. It is not changed.
        X: Training corpus or sentences.
        dev: Development corpus or sentences. None holds out the end of X.
        y: Labels of X, if it is not a corpus.
        dev_y: Labels of `dev`.
        strengths: Values to try. The default covers 10 to 0.01, three per decade. Extend the range if the best value is
            at its end.
        parameter: Name of the parameter: l2, l1, prior or C.
        holdout: Share of X to hold out without `dev`, between 0 and 1. 0.1 to 0.2 is usual.
        refit: After a holdout, train the best strength again on all of X. Set it to True for a final model.
        warm_start: Model whose weights the first step starts from, as in `fit`.
        forget: With `warm_start`, use only the labels and features of X, as in `fit`.
        callbacks: Functions that are called with each `PathStep`.

    Returns:
        A `RegularizationPath` of one `PathStep` per strength. `best.tagger` is the tagger to use.

    Raises:
        ParameterError: If the tagger lacks the parameter, or a strength is outside its domain.
        CorpusError: If there are fewer than two sentences and no `dev`.

    >>> import tagwise as tw
    >>> train, dev, _ = tw.load_corpus("wnut17-ner")
    >>> path = regularization_path(tw.CRF(features="S1"), train[:30], dev[:30], strengths=(1.0, 0.1))
    >>> [step.strength for step in path.steps]
    [1.0, 0.1]
    """
    declared = lookup(parameters_of(type(tagger)), parameter, type(tagger).__name__)
    strengths, functions = list(strengths), checked_callbacks(callbacks)
    X, y = Inputs.of(X).sentences, y if y is None else label_lists(y)
    if not strengths:
        raise ParameterError("strengths: give at least one value")
    values = sorted({float(declared.check(value)) for value in strengths}, reverse=parameter != "C")
    whole = (X, y)
    held = dev is None
    if held:
        X, y, dev, dev_y = hold_out(X, y, holdout)
    dev = Inputs.of(dev)
    gold = dev.gold(dev_y)
    steps: list[PathStep] = []
    last = warm_start
    # A prior is centred on the weights of one model, from which every step then starts.
    anchored = parameter == "prior" or getattr(tagger, "prior", 0.0) > 0.0
    point = DualPoint() if parameter == "l2" else None
    for value in values:
        here = type(tagger)(**{**tagger.get_params(), parameter: value})
        begin = time.perf_counter()
        here._point = point
        here.fit(X, y, warm_start=last, forget=forget and (anchored or not steps))
        here._point = None
        seconds = time.perf_counter() - begin
        steps.append(PathStep(value, here, here.evaluate(dev, gold), len(here.history_), seconds))
        last = warm_start if anchored else here if tagger._starts_warm else None
        for callback in functions:
            callback(steps[-1])
    path = RegularizationPath(parameter, steps)
    if refit and held:
        best = path.best
        again = type(tagger)(**{**tagger.get_params(), parameter: best.strength})
        first = best.tagger if tagger._starts_warm else None
        again.fit(*whole, warm_start=warm_start if anchored else first, forget=forget and anchored)
        steps[steps.index(best)] = PathStep(best.strength, again, best.report, best.iterations, best.seconds)
    return path
