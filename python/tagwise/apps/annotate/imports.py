"""Documents of a project: corpora in any format, and exports of other annotation tools.

Labels that a person confirmed count as done. Unconfirmed spans (predictions of Label Studio, spans of Prodigy
without an answer) are proposals.
"""

from __future__ import annotations

import io
import re
import sys
from typing import Any

from tagwise.apps.annotate.folder import OUTSIDE
from tagwise.corpus import schemes
from tagwise.corpus.formats import UNKNOWN, open_sentences, read
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.streams import File
from tagwise.corpus.text import doccano, label_studio, prodigy, span_jsonl
from tagwise.corpus.text.spans import PROPOSED

#: A span of tokens: begin, end and label type.
TokenSpan = tuple[int, int, str]
_SPANS = (doccano.NAME, label_studio.NAME, prodigy.NAME, span_jsonl.NAME)


def read_document(file: File, format: str | None = None, **options: Any) -> Corpus:
    """Read a corpus with or without labels. Spans of characters are extended to whole tokens.

    `options` are those of `tagwise.read`.
    """
    if file == "-":
        file = io.BytesIO(sys.stdin.buffer.read())
    found, _ = open_sentences(file, format, **options, optional_label=True)
    if isinstance(file, io.BytesIO):
        file.seek(0)
    more = {"misaligned": "expand"} if found in _SPANS else {}
    return read(file, found, **options, **more, optional_label=True)


def proposed_spans(sentence: Sentence) -> list[TokenSpan]:
    """Return the unconfirmed spans of a sentence. Other members of that name are ignored."""
    found = (sentence.meta or {}).get(PROPOSED)
    out: list[TokenSpan] = []
    for one in found if isinstance(found, list) else ():
        if not (isinstance(one, list) and len(one) == 3 and isinstance(one[2], str)):
            return []
        begin, end, label = one
        if not (
            type(begin) is type(end) is int and (out[-1][1] if out else 0) <= begin < end <= len(sentence)
        ):
            return []
        out.append((begin, end, label))
    return out


def stored_sentence(sentence: Sentence, fresh: bool = False, review: bool = False) -> Sentence:
    """Return a sentence in the form of documents: its columns, a label per token ("_" for none), and proposed spans.

    Spaces in labels become underscores.
    """
    columns = {name: column for name, column in sentence.fields.items() if name != sentence.label}
    columns.pop("label", None)
    labels, meta = [UNKNOWN] * len(sentence), dict(sentence.meta or {})
    proposed = [(begin, end, _name(label)) for begin, end, label in proposed_spans(sentence)]
    found = [] if sentence.label is None else [_name(y or UNKNOWN) for y in sentence.labels]
    if found and UNKNOWN not in found:
        labels = schemes.convert(found, None, "IOB2") if schemes.has_chunks(found) else found
        if review and schemes.has_chunks(found):
            proposed = [(one.begin, one.end, one.type) for one in schemes.spans(labels)]
        elif review:
            proposed = [(t, t + 1, y) for t, y in enumerate(labels) if y != OUTSIDE]
    if fresh or review:
        labels = [UNKNOWN] * len(sentence)
    if proposed and not fresh:
        meta[PROPOSED] = [list(one) for one in proposed]
    elif proposed:
        del meta[PROPOSED]
    return Sentence({**columns, "label": labels}, "label", doc=sentence.doc, meta=meta or None)


def _name(label: str) -> str:
    return re.sub(r"\s+", "_", label)
