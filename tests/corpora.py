"""Corpora that several test modules read."""

from __future__ import annotations

from typing import Any

import numpy as np

import tagwise as tw
from tagwise.estimators import LEARNERS

CONLLU = """\
# newdoc id = d1
# sent_id = 1
# text = don't stop
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVBP\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
2.1\tever\tever\tADV\tRB\t_\t_\t_\t_\t_
3\tstop\tstop\tVERB\tVB\tMood=Imp\t0\troot\t_\tSpaceAfter=No

# sent_id = 2
1\tNew York\tNew York\tPROPN\tNNP\t_\t0\troot\t_\t_

# newdoc
# sent_id = 3
0.1\tx\tx\tX\tX\t_\t_\t_\t_\t_
1\tyes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_

"""


CONLL = "-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\n\nGood UH O\n\n-DOCSTART- -X- O\n\nHi UH O\n\n"


CONLL_TEXT = "\n".join(line.replace(" ", "\t") for line in CONLL.split("\n"))


JSONL = """\
{"tokens": ["a", "b c"], "pos": ["X", "Y"], "labels": ["O", "B-Q"], "newdoc": "d", "id": 7}
{"tokens": ["ü"], "pos": ["X"], "labels": ["O"], "note": {"k": [1, null]}, "comments": ["# hi"]}
"""


X = [["the", "dog", "barks"], ["a", "cat"], ["the", "cat", "sleeps"], ["dogs", "bark"]] * 5


Y = [["DET", "NOUN", "VERB"], ["DET", "NOUN"], ["DET", "NOUN", "VERB"], ["NOUN", "VERB"]] * 5


QUICK: dict[str, dict[str, Any]] = {
    "crf": {"max_iter": 5},
    "memm": {"max_iter": 5},
    "hmsvm": {"max_iter": 2},
    "boosting": {"max_iter": 20},
    "hmm": {},
}


def quick(learner: str, **more: Any) -> tw.Tagger:
    """Return a learner that trains briefly."""
    return LEARNERS[learner](features="S1", **QUICK.get(learner, {"max_iter": 2}), **more)


NAMES = ["Rosa", "Ines", "Lund", "Oslo"]


def documents(n: int = 40, seed: int = 0) -> tw.Corpus:
    """Return documents that name someone once with a title. Later mentions have no such context.

    Whether a name is a person or a place is drawn independently for each document.
    """
    rng = np.random.default_rng(seed)
    sentences = []
    for d in range(n):
        kinds = {name: rng.choice(["PER", "LOC"]) for name in NAMES}
        for i, name in enumerate(rng.permutation(NAMES)):
            cue = "Dr" if kinds[name] == "PER" else "in"
            fields = {"word": [cue, name], "label": ["O", kinds[name]]}
            sentences.append(tw.Sentence(fields, "label", doc=str(d) if i == 0 else None))
        for name in rng.permutation(NAMES):
            sentences.append(tw.Sentence({"word": [name], "label": [kinds[name]]}, "label"))
    return tw.Corpus(sentences)


#: Texts with spans, of one sentence and of two.
SPANS = (
    '{"text": "Rosa lives in Lund. She\u2019s 40.", "spans": [{"start": 0, "end": 4, "label": "PER"}, '
    '{"start": 14, "end": 18, "label": "LOC"}], "id": 7}\n'
    '{"text": "Oslo \U0001f44d\U0001f3fd", "spans": [{"start": 0, "end": 4, "label": "LOC"}]}\n'
)
