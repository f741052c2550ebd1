"""Models compared sentence by sentence: which of them is right where."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from tagwise.apps.compare.cells import kept_sentences
from tagwise.apps.compare.report.models import Mark, clip, marked, pieces
from tagwise.apps.compare.report.tables import table
from tagwise.base.colours import LabelColours
from tagwise.base.markup import safe
from tagwise.corpus.sentence import Corpus

#: Bounds: models that are compared, sentences on the page, and sentences that all models have wrong.
MOST_COMPARED, MOST_SENTENCES, MOST_LOST = 8, 60, 8

Detail = Mapping[str, Any]


def correct_sentences(detail: Detail, chunked: bool) -> list[bool]:
    """Return for each test sentence whether all of its spans, or all of its labels, are right."""
    return [
        gold == predicted == correct if chunked else right == tokens
        for tokens, right, gold, predicted, correct in detail["counts"]
    ]


def only_right(right: Sequence[Sequence[bool]]) -> list[list[int]]:
    """Return the numbers of sentences that one model (row) has right and another one (column) has wrong.

    >>> only_right([[True, True, False], [False, True, False]])
    [[0, 1], [0, 0]]
    """
    return [[sum(a and not b for a, b in zip(one, other)) for other in right] for one in right]


def chosen_sentences(right: Sequence[Sequence[bool]], kept: Sequence[int]) -> list[int]:
    """Return sentences that show differences: some for every pair of models, and some that all have wrong.

    Sentences that distinguish the most pairs come first. Pairs get equal numbers of sentences if they have enough.
    """
    pairs = list(itertools.permutations(range(len(right)), 2))
    shown: dict[tuple[int, int], int] = dict.fromkeys(pairs, 0)
    number = {i: sum(one[i] for one in right) for i in kept}
    order = sorted(kept, key=lambda i: (-number[i] * (len(right) - number[i]), i))
    splits = {i: [(a, b) for a, b in pairs if right[a][i] and not right[b][i]] for i in order}
    out: dict[int, None] = {}
    for quota in range(1, MOST_SENTENCES + 1):
        for i in order:
            if i in out or len(out) >= MOST_SENTENCES - MOST_LOST:
                continue
            if any(shown[pair] < quota for pair in splits[i]):
                out[i] = None
                for pair in splits[i]:
                    shown[pair] += 1
    lost = [i for i in kept if not number[i]]
    return sorted([*out, *lost[:: max(1, len(lost) // MOST_LOST)][:MOST_LOST]])


def sentence_html(
    test: Corpus,
    i: int,
    predicted: Sequence[Sequence[str] | None],
    right: Sequence[bool],
    names: Sequence[str],
    chunked: bool,
    colours: LabelColours,
) -> str:
    """Return a sentence with its gold labels, and below it each different prediction with the models that made it.

    A prediction of None is right. Labels of tokens that every model has right are left out unless labels mark spans.
    """
    sentence = test[i]
    gold = list(sentence.labels)
    guesses = {tuple(guess) for guess in predicted if guess is not None}
    doubtful = {t for guess in guesses for t, (a, b) in enumerate(zip(gold, guess)) if a != b}

    def line(labels: Sequence[str], wrong: bool) -> str:
        found = pieces(labels, chunked)
        true = set(pieces(gold, chunked))
        marks: list[Mark] = [
            (*piece, "wrong" if wrong and piece not in true else "")
            for piece in found
            if chunked or piece[0] in doubtful
        ]
        return marked(sentence.tokens, 0, len(sentence), marks, colours)

    def who(models: Sequence[int]) -> str:
        return "".join(f'<b data-model="{m}">{safe(names[m])}</b>' for m in models)

    lines = [f'<p class="gold"><span class="who"><em>gold</em></span> {line(gold, False)}</p>']
    winners = [m for m, good in enumerate(right) if good]
    if winners:
        lines.append(f'<p class="good"><span class="who">{who(winners)}</span> as gold</p>')
    by_guess: dict[tuple[str, ...], list[int]] = {}
    for m, guess in enumerate(predicted):
        if not right[m] and guess is not None:
            by_guess.setdefault(tuple(guess), []).append(m)
    for guess, models in by_guess.items():
        lines.append(f'<p class="bad"><span class="who">{who(models)}</span> {line(guess, True)}</p>')
    place = f"<small>line {sentence.line}</small>" if sentence.line else ""
    return f'<div class="sentence" data-right="{" ".join(map(str, winners))}">{"".join(lines)}{place}</div>'


def comparison_html(
    details: Sequence[Detail], names: Sequence[str], chunked: bool, test: Corpus | None, colours: LabelColours
) -> tuple[str, dict[str, Any]]:
    """Return which of several models is right where, and the counts for the script of the page.

    All models are scored on the same test sentences. Empty if there are fewer than two models with counts.
    """
    found = [(d, n) for d, n in zip(details, names) if d.get("counts")][:MOST_COMPARED]
    found = [(d, n) for d, n in found if len(d["counts"]) == len(found[0][0]["counts"])]
    if len(found) < 2:
        return "", {}
    models, names = [d for d, _ in found], [n for _, n in found]
    right = [correct_sentences(d, chunked) for d in models]
    only = only_right(right)
    n = len(right[0])
    lines = [
        f'<tr><th scope="row">{safe(names[a])}</th>'
        + "".join(
            '<td class="none">–</td>' if a == b else f"<td>{only[a][b]:,}</td>" for b in range(len(names))
        )
        + f'<td class="figure">{sum(right[a]):,}</td></tr>'
        for a in range(len(names))
    ]
    heads = "".join(f'<th scope="col"><span>{safe(name)}</span></th>' for name in names)
    head = f'<tr><td></td>{heads}<th scope="col"><span>right</span></th></tr>'
    grid = table(head, lines, "Sentences that one model has right and another wrong", "confusion pairs")
    text = (
        f"<p>Of {n:,} test sentences, the number that the model of the row has right and the model of the column has "
        f"wrong. A sentence is right if all of its {'spans' if chunked else 'labels'} are.</p>{grid}"
    )
    data = {"names": [clip(name) for name in names], "only": only, "right": [sum(r) for r in right], "n": n}
    if test is None or len(test) != n or any("wrong" not in d for d in models):
        return text, data
    labels = [dict(map(tuple, d["wrong"])) for d in models]
    kept = [i for i in kept_sentences(test) if all(r[i] or i in known for r, known in zip(right, labels))]
    cards = []
    for i in chosen_sentences(right, kept):
        guesses = [
            [d["labels"][y] for y in known[i]] if i in known else None for d, known in zip(models, labels)
        ]
        cards.append(sentence_html(test, i, guesses, [r[i] for r in right], names, chunked, colours))
    return f'{text}<div class="sentences">{"".join(cards)}</div>', data
