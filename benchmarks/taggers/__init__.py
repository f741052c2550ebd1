"""Taggers compared on whole corpora: score, training time, speed, memory and model size, each in its own process.

    python -m benchmarks taggers                                   # everything, one process at a time
    python -m benchmarks.taggers --jobs 8 --only linear            # eight processes, each pinned to one core
    python -m benchmarks.taggers --sentences 300 --only tagwise --corpus ewt-pos
    python -m benchmarks.taggers --store linear.json neural.json   # rows of one or more runs of a commit, for pages

Every tagger is measured twice if it can be: with its usual features ("usual": tokens in, labels out, with the time of
its own feature extraction), and with given attributes ("same": those of the sklearn-crfsuite tutorial, as lists or as
columns of a file, and the objective sum of log losses + ||w||^2 for all that minimize one). All use one thread. The
input is the words, and for conll2000 the words and their POS if the tagger can read more than words.
"""

from __future__ import annotations

from ..harness import Context, Result


def run(context: Context) -> Result:
    """Run all taggers on all corpora, one at a time."""
    from .schedule import run_all  # imports tagwise, which the processes of other taggers must not

    return run_all(context)
