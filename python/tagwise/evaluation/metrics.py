"""Scores of predicted labels: conlleval's precision, recall and F1, accuracies, confusion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tagwise.base.exceptions import CorpusError
from tagwise.corpus.labels import check_type, lists, single, type_name
from tagwise.corpus.schemes import has_chunks
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.evaluation.conlleval import count_chunks

if TYPE_CHECKING:
    from rich.console import Group


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


@dataclass(frozen=True)
class Score:
    """Counts of one type, label or all chunks, and the scores derived from them.

    Attributes:
        gold: Number in the gold labels.
        predicted: Number in the predicted labels.
        correct: Number in both.
        precision: correct / predicted.
        recall: correct / gold.
        f1: Harmonic mean of precision and recall.

    >>> Score(gold=4, predicted=2, correct=1).precision
    0.5
    """

    gold: int
    predicted: int
    correct: int

    def _repr_html_(self) -> str:
        from tagwise.base.markup import object_html

        return object_html(
            self, [(k, f"{v:.4f}" if isinstance(v, float) else v) for k, v in self.to_dict().items()]
        )

    @property
    def precision(self) -> float:
        """Fraction of the predicted items that are correct, or 0 if nothing was predicted."""
        return _ratio(self.correct, self.predicted)

    @property
    def recall(self) -> float:
        """Fraction of the gold items that were found, or 0 if there are none."""
        return _ratio(self.correct, self.gold)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, or 0 if both are 0."""
        return _ratio(2 * self.correct, self.gold + self.predicted)

    def to_dict(self) -> dict[str, float]:
        """Return counts and scores by name."""
        return {
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "gold": self.gold,
            "predicted": self.predicted,
            "correct": self.correct,
        }


@dataclass(frozen=True)
class Average:
    """Average scores of the types of a report, or of its labels if they do not mark chunks.

    Attributes:
        precision: Average precision.
        recall: Average recall.
        f1: Average F1. For macro and weighted averages this is not the harmonic mean of the other two.
    """

    precision: float
    recall: float
    f1: float

    def _repr_html_(self) -> str:
        from tagwise.base.markup import object_html

        return object_html(self, [(name, f"{value:.4f}") for name, value in vars(self).items()])

    @staticmethod
    def of(scores: Sequence[Score], weights: Sequence[int]) -> Average:
        """Return the weighted means, or zeros if all weights are 0."""
        total = sum(weights) or 1
        columns = zip(*((s.precision, s.recall, s.f1) for s in scores))
        means = [sum(w * x for w, x in zip(weights, column)) / total for column in columns]
        return Average(*means or (0.0, 0.0, 0.0))


@dataclass(frozen=True)
class Report:
    """Result of `evaluate`. The string form is that of conlleval. Notebooks and rich show a table.

    Attributes:
        chunked: Whether the labels mark chunks.
        n_sequences: Number of sequences.
        n_tokens: Number of tokens.
        correct_tokens: Number of tokens with the correct label.
        correct_sequences: Number of sequences without an error.
        chunks: Counts of all chunks, a `Score`.
        per_type: `Score` of each chunk type.
        confusion: Number of tokens for each (gold label, predicted label).

    >>> import tagwise as tw
    >>> report = tw.evaluate([["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]])
    >>> report.f1, round(report.accuracy, 3), report.confusion["I-PER", "O"]
    (0.0, 0.667, 1)
    """

    chunked: bool
    n_sequences: int
    n_tokens: int
    correct_tokens: int
    correct_sequences: int
    chunks: Score
    per_type: dict[str, Score]
    confusion: dict[tuple[str, str], int]

    @property
    def accuracy(self) -> float:
        """Fraction of the tokens with the correct label."""
        return _ratio(self.correct_tokens, self.n_tokens)

    @property
    def sequence_accuracy(self) -> float:
        """Fraction of the sequences without an error."""
        return _ratio(self.correct_sequences, self.n_sequences)

    @property
    def precision(self) -> float:
        """Fraction of the predicted chunks that are correct."""
        return self.chunks.precision

    @property
    def recall(self) -> float:
        """Fraction of the gold chunks that were found."""
        return self.chunks.recall

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall over all chunks."""
        return self.chunks.f1

    @property
    def micro(self) -> Average:
        """Scores of all chunks counted together, or of all tokens, where each equals the accuracy."""
        s = self.chunks if self.chunked else Score(self.n_tokens, self.n_tokens, self.correct_tokens)
        return Average(s.precision, s.recall, s.f1)

    @property
    def macro(self) -> Average:
        """Mean of the scores of all types, or labels. Rare ones count as much as frequent ones."""
        return Average.of(self._scores, [1] * len(self._scores))

    @property
    def weighted(self) -> Average:
        """Mean of the scores of all types, or labels, each weighted by its number in the gold labels."""
        return Average.of(self._scores, [s.gold for s in self._scores])

    @property
    def _scores(self) -> list[Score]:
        """Scores of the types, or of the labels if they do not mark chunks."""
        return list((self.per_type if self.chunked else self.per_label).values())

    @property
    def score(self) -> float:
        """F1 of chunks, or accuracy for other labels."""
        return self.f1 if self.chunked else self.accuracy

    @property
    def score_name(self) -> str:
        """``f1`` or ``accuracy``."""
        return "f1" if self.chunked else "accuracy"

    @property
    def per_label(self) -> dict[str, Score]:
        """`Score` of each label, counted in tokens."""
        gold: Counter[str] = Counter()
        predicted: Counter[str] = Counter()
        for (g, p), n in self.confusion.items():
            gold[g] += n
            predicted[p] += n
        return {
            y: Score(gold[y], predicted[y], self.confusion.get((y, y), 0))
            for y in sorted(gold.keys() | predicted)
        }

    def errors(self, top: int | None = 10) -> list[tuple[str, str, int]]:
        """Return the most frequent confusions of labels.

        Args:
            top: int or None, default=10. Number of confusions. None means all.

        Returns:
            A list of (gold label, predicted label, number of tokens), most frequent first.
        """
        wrong = [(g, p, n) for (g, p), n in self.confusion.items() if g != p]
        return sorted(wrong, key=lambda e: (-e[2], e[0], e[1]))[:top]

    def to_dict(self) -> dict[str, Any]:
        """Return all scores and counts as plain values for JSON.

        Returns:
            A dict. Scores are fractions from 0 to 1.
        """
        confusion: dict[str, dict[str, int]] = {}
        for (g, p), n in sorted(self.confusion.items()):
            confusion.setdefault(g, {})[p] = n
        out: dict[str, Any] = {
            "score": self.score,
            "score_name": self.score_name,
            "accuracy": self.accuracy,
            "sequence_accuracy": self.sequence_accuracy,
            "sequences": self.n_sequences,
            "tokens": self.n_tokens,
        }
        if self.chunked:
            out |= {
                "chunks": self.chunks.to_dict(),
                "per_type": {k: s.to_dict() for k, s in self.per_type.items()},
            }
            out |= {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        out |= {name: asdict(getattr(self, name)) for name in ("micro", "macro", "weighted")}
        out["per_label"] = {k: s.to_dict() for k, s in self.per_label.items()}
        out["confusion"] = confusion
        return out

    def __str__(self) -> str:
        sequences = f"sequences right: {100 * self.sequence_accuracy:6.2f}% of {self.n_sequences}"
        if not self.chunked:
            lines = [f"processed {self.n_tokens} tokens; correct: {self.correct_tokens}."]
            lines.append(f"accuracy: {100 * self.accuracy:6.2f}%; {sequences}")
            lines += [_line(name, s) for name, s in self.per_label.items()]
            return "\n".join(lines)
        c = self.chunks
        lines = [
            f"processed {self.n_tokens} tokens with {c.gold} phrases; "
            f"found: {c.predicted} phrases; correct: {c.correct}.",
            f"accuracy: {100 * self.accuracy:6.2f}%; precision: {100 * c.precision:6.2f}%; "
            f"recall: {100 * c.recall:6.2f}%; FB1: {100 * c.f1:6.2f}",
        ]
        lines += [_line(name, s) for name, s in self.per_type.items()]
        return "\n".join([*lines, sequences])

    def __repr__(self) -> str:
        score = f"F1 {100 * self.f1:.2f}, accuracy" if self.chunked else "accuracy"
        return (
            f"<Report: {score} {100 * self.accuracy:.2f} %, whole sequences {100 * self.sequence_accuracy:.2f} %, "
            f"{self.n_tokens} tokens in {self.n_sequences} sequences>"
        )

    def _repr_html_(self) -> str:
        """Return a table by type or label and the overall scores, for notebooks."""
        from tagwise.base.markup import label_html, table_html

        rows = [
            [label_html(name) if name else "(no type)", *_cells(s)]
            for name, s in (self.per_type if self.chunked else self.per_label).items()
        ]
        if self.chunked:
            rows.append(["all", *_cells(self.chunks)])
        head = (
            "type" if self.chunked else "label",
            "precision",
            "recall",
            "F1",
            "gold",
            "predicted",
            "correct",
        )
        score = f"<b>F1 {100 * self.f1:.2f}</b>, accuracy" if self.chunked else "<b>accuracy</b>"
        return (
            f"{table_html(head, rows)}<p>{score} {100 * self.accuracy:.2f} %, whole sequences "
            f"{100 * self.sequence_accuracy:.2f} %, {self.n_tokens:,} tokens in {self.n_sequences:,} sequences</p>"
        )

    def __rich__(self) -> Group:
        from rich import box
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        from tagwise.base.terminal import plain

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("type" if self.chunked else "label", no_wrap=True)
        for name in ("precision", "recall", "F1", "gold", "predicted", "correct"):
            table.add_column(name, justify="right", no_wrap=True)
        rows = dict(self.per_type if self.chunked else self.per_label)
        for name, s in rows.items():
            table.add_row(plain(name or "(no type)"), *_cells(s))
        if self.chunked:
            table.add_section()
            table.add_row("all", *_cells(self.chunks), style="bold")
        line = Text.assemble(
            (f"accuracy {100 * self.accuracy:.2f}%", "" if self.chunked else "bold"),
            f"   whole sequences {100 * self.sequence_accuracy:.2f}%",
            f"   {self.n_tokens} tokens in {self.n_sequences} sequences",
        )
        if self.chunked:
            line = Text.assemble((f"F1 {100 * self.f1:.2f}   ", "bold"), line)
        return Group(table, line)


def _line(name: str, s: Score) -> str:
    from tagwise.base.terminal import visible

    return (
        f"{visible(name):>17}: precision: {100 * s.precision:6.2f}%; recall: {100 * s.recall:6.2f}%; "
        f"FB1: {100 * s.f1:6.2f}  {s.predicted}"
    )


def _cells(s: Score) -> list[str]:
    ratios = [f"{100 * r:.2f}" for r in (s.precision, s.recall, s.f1)]
    return [*ratios, str(s.gold), str(s.predicted), str(s.correct)]


def _label_lists(labels: Corpus | Sequence[Sequence[str]], name: str) -> Sequence[Sequence[str]]:
    if isinstance(labels, Corpus):
        return labels.labels
    if not isinstance(labels, Iterable):
        raise CorpusError(f"{name}: expected sequences of labels, found {type(labels).__name__}.")
    found: Any = labels if isinstance(labels, (Sequence, str)) else list(labels)
    if len(found) and isinstance(found[0], Sentence):
        found = [sentence.labels for sentence in found]
    if isinstance(found, str) or (len(found) and type_name(type(found[0]))):
        raise CorpusError(
            f"{name} is one sequence of labels, expected a list of sequences. Put it in a list: [{name}]."
        )
    return lists(found, name)


def evaluate(gold: Corpus | Sequence[Sequence[str]], predicted: Corpus | Sequence[Sequence[str]]) -> Report:
    """Compare predicted labels with gold labels.

    Chunks are counted exactly as in conlleval, including ill-formed sequences, with these differences:

    - Adjacent chunks in IOBES are separate (see `tagwise.spans.boundary`).
    - A type named 0 is a type.
    - ``O-`` differs from ``O`` in the accuracy.
    - Labels without chunks (only O, parts of speech) are scored by accuracy. `Report.per_label` corresponds to
      conlleval's option -r.
    - In files, ``-DOCSTART-`` rows are not tokens, and only empty lines end sentences.

    Args:
        gold: Corpus or sequence of label sequences. Gold labels.
        predicted: Corpus or sequence of label sequences. Predicted labels of the same sentences, in the same order.

    Returns:
        A `Report`.

    Raises:
        CorpusError: The numbers of sentences or labels differ, or the labels have different types.

    >>> report = evaluate([["B-PER", "I-PER", "O"]], [["B-PER", "I-PER", "B-LOC"]])
    >>> report.precision, report.recall, round(report.accuracy, 3)
    (0.5, 1.0, 0.667)
    """
    return compared(gold, predicted)


def compared(
    gold: Corpus | Sequence[Sequence[str]],
    predicted: Corpus | Sequence[Sequence[str]],
    chunked: bool | None = None,
) -> Report:
    """Return the report of `evaluate`. `chunked` fixes whether labels mark chunks. None decides by the labels."""
    gold_lists, kind = single(_label_lists(gold, "gold"))
    predicted_lists, other = single(_label_lists(predicted, "predicted"))
    check_type(other, kind, "predicted", "gold")
    if len(gold_lists) != len(predicted_lists):
        raise CorpusError(
            f"{len(gold_lists)} gold sequences but {len(predicted_lists)} predicted ones. "
            "Predict every sequence of the gold corpus, in its order."
        )
    confusion: Counter[tuple[str, str]] = Counter()
    right_sequences = 0
    for i, (g, p) in enumerate(zip(gold_lists, predicted_lists)):
        if len(g) != len(p):
            line = gold[i].line if isinstance(gold, Corpus) else None
            place = f" (line {line} of {gold.source})" if line and isinstance(gold, Corpus) else ""
            raise CorpusError(
                f"sentence {i} (from 0){place}: {len(g)} gold labels but {len(p)} predicted ones. "
                "Give one predicted label per token."
            )
        confusion.update(zip(g, p))
        right_sequences += list(g) == list(p)
    chunked = _mark_chunks(confusion) if chunked is None else chunked
    gold_n, predicted_n, correct_n = count_chunks(gold_lists, predicted_lists) if chunked else ({}, {}, {})
    per_type = {
        k: Score(gold_n.get(k, 0), predicted_n.get(k, 0), correct_n.get(k, 0))
        for k in sorted(gold_n.keys() | predicted_n.keys())
    }
    return Report(
        chunked=chunked,
        n_sequences=len(gold_lists),
        n_tokens=sum(confusion.values()),
        correct_tokens=sum(n for (y, z), n in confusion.items() if y == z),
        correct_sequences=right_sequences,
        chunks=Score(sum(gold_n.values()), sum(predicted_n.values()), sum(correct_n.values())),
        per_type=per_type,
        confusion=dict(confusion),
    )


def _mark_chunks(pairs: Collection[tuple[str, str]]) -> bool:
    """Return whether labels in pairs (gold, predicted) mark chunks. If all gold labels are O, predicted ones decide."""
    return has_chunks({g for g, _ in pairs}) or has_chunks({y for pair in pairs for y in pair})


def count_by_sentence(
    gold: Corpus | Sequence[Sequence[str]], predicted: Corpus | Sequence[Sequence[str]]
) -> list[tuple[int, int, int, int, int]]:
    """Return counts of each sentence: tokens, correct tokens, gold chunks, predicted chunks, correct chunks.

    Their sums equal the counts of `evaluate`. They are the input of a paired significance test.

    >>> count_by_sentence([["B-PER", "I-PER", "O"]], [["B-PER", "I-PER", "B-LOC"]])
    [(3, 2, 1, 2, 1)]
    """
    gold_lists, kind = single(_label_lists(gold, "gold"))
    predicted_lists, other = single(_label_lists(predicted, "predicted"))
    check_type(other, kind, "predicted", "gold")
    chunked = _mark_chunks({pair for g, p in zip(gold_lists, predicted_lists) for pair in zip(g, p)})
    out = []
    for g, p in zip(gold_lists, predicted_lists):
        chunks = count_chunks([g], [p]) if chunked else ({}, {}, {})
        right = sum(a == b for a, b in zip(g, p))
        in_gold, in_predicted, in_both = (sum(c.values()) for c in chunks)
        out.append((len(g), right, in_gold, in_predicted, in_both))
    return out
