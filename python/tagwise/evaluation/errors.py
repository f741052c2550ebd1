"""Error analysis: errors grouped by gold and predicted label, each with its context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tagwise.corpus.schemes import spans
from tagwise.corpus.sentence import Corpus
from tagwise.evaluation.metrics import Report, compared

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

AROUND = 6  # tokens of context on either side
SHOWN = 20  # errors of a group in a notebook


@dataclass(frozen=True)
class Error:
    """An error in a sentence.

    Attributes:
        sentence: Index of the sentence, from 0.
        line: Line of the sentence in its file, or None.
        begin: Index of the first wrong token.
        end: Index after the last wrong token.
        tokens: Tokens of the whole sentence.
        gold: Gold labels of the tokens from begin to end.
        predicted: Predicted labels of the tokens from begin to end.
    """

    sentence: int
    line: int | None
    begin: int
    end: int
    tokens: Sequence[str]
    gold: Sequence[str]
    predicted: Sequence[str]

    def __repr__(self) -> str:
        from tagwise.base.terminal import brief

        text = brief(" ".join(self.tokens[self.begin : self.end]), 40)
        gold, predicted = (brief(" ".join(labels), 40) for labels in (self.gold, self.predicted))
        return f"<Error: sentence {self.sentence}, {text!r}, gold {gold}, predicted {predicted}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the error as plain values for JSON."""
        return {
            "sentence": self.sentence,
            "line": self.line,
            "begin": self.begin,
            "end": self.end,
            "text": " ".join(self.tokens[self.begin : self.end]),
            "tokens": list(self.tokens),
            "gold": list(self.gold),
            "predicted": list(self.predicted),
        }


@dataclass
class Group:
    """Errors of one kind.

    Attributes:
        kind: "label" for tokens. "missed", "spurious", "type", "borders" or "type and borders" for spans.
        gold: Gold label or span type. None for a spurious span.
        predicted: Predicted label or span type. None for a missed span.
        errors: The errors.
    """

    kind: str
    gold: str | None
    predicted: str | None
    errors: list[Error] = field(default_factory=list)

    def __repr__(self) -> str:
        from tagwise.base.terminal import brief

        return f"<Group: {brief(self.title)}, {len(self.errors)} errors>"

    def _repr_html_(self) -> str:
        from tagwise.base.markup import line_html

        return line_html(repr(self)) + errors_html(self.errors[:SHOWN])

    @property
    def title(self) -> str:
        """Description of the kind of error."""
        if self.gold is None:
            return f"spurious {self.predicted}"
        if self.predicted is None:
            return f"{self.gold} missed"
        if self.kind == "borders":
            return f"{self.gold} with other borders"
        more = " with other borders" if self.kind == "type and borders" else ""
        return f"{self.gold} taken for {self.predicted}{more}"


@dataclass(frozen=True)
class Errors:
    """Errors of predictions in groups, largest first. The string form is a report.

    Attributes:
        report: Scores of the predictions.
        groups: Errors by kind.
        top: Number of groups in the report. None means all.
        examples: Number of errors per group in the report.

    >>> from tagwise.corpus.sentence import Corpus
    >>> gold = Corpus.from_lists([["Rosa", "sings"]], [["B-PER", "O"]])
    >>> [(g.title, len(g.errors)) for g in find_errors(gold, [["O", "O"]]).groups]
    [('PER missed', 1)]
    """

    report: Report
    groups: list[Group]
    top: int | None = None
    examples: int = 3

    def to_dict(self) -> dict[str, Any]:
        """Return scores and all errors as plain values for JSON."""
        return {
            "scores": self.report.to_dict(),
            "groups": [
                {
                    "kind": g.kind,
                    "gold": g.gold,
                    "predicted": g.predicted,
                    "count": len(g.errors),
                    "errors": [e.to_dict() for e in g.errors],
                }
                for g in self.groups
            ],
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from rich.text import Text

        from tagwise.base.terminal import visible

        n = sum(len(g.errors) for g in self.groups)
        yield Text(self._summary())
        shown = self.groups[: self.top]
        for group in shown:
            share = f"{len(group.errors):,} ({100 * len(group.errors) / n:.0f} %)"
            yield Text.assemble("\n", (visible(group.title), "bold"), f"  {share}")
            for error in group.errors[: self.examples]:
                yield in_context(error, group.kind in ("borders", "type and borders"))
        rest = len(self.groups) - len(shown)
        if rest:
            few = sum(len(g.errors) for g in self.groups[len(shown) :])
            yield Text(f"\n{rest:,} more kinds with {few:,} errors (--top shows them)", style="dim")

    def __str__(self) -> str:
        from tagwise.base.terminal import as_text

        return as_text(self)

    def __repr__(self) -> str:
        return f"<Errors: {self._summary()}, {len(self.groups)} kinds>"

    def _repr_html_(self) -> str:
        """Return the errors by kind for notebooks. All kinds but the most frequent one are folded."""
        from tagwise.base.markup import safe

        n = sum(len(g.errors) for g in self.groups)
        parts: list[str] = []
        shown = self.groups[: self.top]
        for group in shown:
            parts.append(
                f"<details{'' if parts else ' open'}><summary>{safe(group.title)}: {len(group.errors):,} "
                f"({100 * len(group.errors) / n:.0f} %)</summary>"
                f"{errors_html(group.errors[: self.examples])}</details>"
            )
        rest = self.groups[len(shown) :]
        more = (
            f"<p>{len(rest):,} more kinds with {sum(len(g.errors) for g in rest):,} errors</p>"
            if rest
            else ""
        )
        return f"<p>{safe(self._summary())}</p>{''.join(parts)}{more}"

    def _summary(self) -> str:
        """Return the number of errors and the score in one line."""
        report, n = self.report, sum(len(g.errors) for g in self.groups)
        what = "spans" if report.chunked else "tokens"
        score = f"F1 {100 * report.f1:.2f}" if report.chunked else f"accuracy {100 * report.accuracy:.2f}"
        wrong = report.n_sequences - report.correct_sequences
        return f"{n:,} wrong {what} in {wrong:,} of {report.n_sequences:,} sentences; {score}"


def errors_html(errors: Sequence[Error]) -> str:
    """Return a table of errors with their context and labels."""
    from tagwise.base.markup import table_html
    from tagwise.corpus.label_markup import labels_html

    rows = [
        (
            error.line or f"sentence {error.sentence}",
            error_html(error),
            labels_html(error.gold),
            labels_html(error.predicted),
        )
        for error in errors
    ]
    return table_html(("line", "context", "gold", "predicted"), rows, left=4)


def error_html(error: Error) -> Any:
    """Return the wrong tokens in bold with their context, as a cell of a table."""
    from tagwise.base.markup import Markup, safe

    left, right = max(error.begin - AROUND, 0), error.end + AROUND
    before = ("... " if left else "") + " ".join(error.tokens[left : error.begin])
    after = " ".join(error.tokens[error.end : right]) + (" ..." if right < len(error.tokens) else "")
    wrong = safe(" ".join(error.tokens[error.begin : error.end]))
    return Markup(f"{safe(before)} <b>{wrong}</b> {safe(after)}")


def in_context(error: Error, labels: bool) -> Any:
    """Render the wrong tokens in brackets with their context. `labels` adds gold and predicted labels."""
    from rich.padding import Padding
    from rich.text import Text

    from tagwise.base.terminal import visible

    left, right = max(error.begin - AROUND, 0), error.end + AROUND
    tokens = [visible(token) for token in error.tokens]
    before = (["..."] if left else []) + list(tokens[left : error.begin])
    after = list(tokens[error.end : right]) + (["..."] if right < len(tokens) else [])
    place = f"line {error.line}: " if error.line else f"sentence {error.sentence}: "
    out = Text.assemble((place, "dim"), " ".join([*before, ""]))
    out.append("[" + " ".join(tokens[error.begin : error.end]) + "]", "bold")
    out.append(" ".join(["", *after]))
    if labels:
        out.append(f"  gold {visible(' '.join(error.gold))}", "green")
        out.append(f"  predicted {visible(' '.join(error.predicted))}", "red")
    return Padding(out, (0, 0, 0, 2))


def find_errors(corpus: Corpus, predicted: Sequence[Sequence[str]], *, chunked: bool | None = None) -> Errors:
    """Find the errors of predicted labels.

    If labels mark spans, each gold span without an exact match is one error. It is paired with the predicted span that
    shares the most tokens with it, if any. Predicted spans without a partner are spurious. For other labels, each token
    with a wrong label is an error.

    Args:
        corpus: Corpus with gold labels.
        predicted: Predicted labels of each sentence.
        chunked: Whether labels mark spans. None decides by the labels.

    Returns:
        The errors in groups.

    Raises:
        CorpusError: The numbers of gold and predicted labels differ.

    >>> import tagwise as tw
    >>> corpus = tw.spans.span_corpus(["Anna met Ben in Oslo"], [[(0, 4, "PER"), (9, 12, "PER"), (16, 20, "LOC")]])
    >>> found = find_errors(corpus, [["O", "O", "B-LOC", "O", "B-LOC"]])
    >>> [group.title for group in found.groups]
    ['PER missed', 'PER taken for LOC']
    """
    report = compared(corpus.labels, predicted, chunked)
    found: dict[tuple[str, str | None, str | None], Group] = {}
    for index, (sentence, guess) in enumerate(zip(corpus, predicted)):
        gold = sentence.labels
        if list(gold) == list(guess):
            continue
        wrong = _spans(gold, guess) if report.chunked else _tokens(gold, guess)
        for kind, a, b, begin, end in wrong:
            group = found.setdefault((kind, a, b), Group(kind, a, b))
            parts = (gold[begin:end], guess[begin:end])
            group.errors.append(Error(index, sentence.line, begin, end, sentence.tokens, *parts))
    groups = sorted(found.values(), key=lambda g: (-len(g.errors), g.kind, str(g.gold), str(g.predicted)))
    return Errors(report, groups)


Wrong = tuple[str, "str | None", "str | None", int, int]


def _tokens(gold: Sequence[str], guess: Sequence[str]) -> Iterator[Wrong]:
    """Yield the tokens with a wrong label."""
    for t, (a, b) in enumerate(zip(gold, guess)):
        if a != b:
            yield "label", a, b, t, t + 1


def _spans(gold: Sequence[str], guess: Sequence[str]) -> Iterator[Wrong]:
    """Yield the spans without an exact match, gold spans with the predicted span that shares the most tokens."""
    right, predicted = spans(gold), spans(guess)
    both = set(right) & set(predicted)
    missed = [s for s in right if s not in both]
    free = [s for s in predicted if s not in both]
    shared = {
        (i, j): min(a.end, b.end) - max(a.begin, b.begin)
        for i, a in enumerate(missed)
        for j, b in enumerate(free)
    }
    partner: dict[int, int] = {}
    for i, j in sorted(shared, key=lambda ij: (-shared[ij], missed[ij[0]].type != free[ij[1]].type, ij)):
        if shared[i, j] > 0 and i not in partner and j not in partner.values():
            partner[i] = j
    for i, a in enumerate(missed):
        if i not in partner:
            yield "missed", a[0], None, a[1], a[2]
            continue
        b = free[partner[i]]
        kind = "type" if a[1:] == b[1:] else "borders" if a[0] == b[0] else "type and borders"
        yield kind, a[0], b[0], min(a[1], b[1]), max(a[2], b[2])
    for j, b in enumerate(free):
        if j not in partner.values():
            yield "spurious", None, b[0], b[1], b[2]
