"""Label Studio JSON: an array of tasks with a text and annotations, as exported in the formats JSON and JSON-MIN."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tagwise.corpus.columns import OpenFile
from tagwise.corpus.sentence import Sentence
from tagwise.corpus.streams import File
from tagwise.corpus.text.span_jsonl import (
    RecordFormat,
    Records,
    SpanFields,
    first_object,
    sentences_of_file,
    write_records,
)
from tagwise.corpus.text.spans import CONTINUED, TEXT, Policy
from tagwise.corpus.text.tokenizer import Tokenizes

NAME = "label-studio"
EXAMPLE = (
    'Write [{"data": {"text": "..."}, "annotations": [{"result": [{"type": "labels", "value": {"start": 0, "end": 5, '
    '"labels": ["PER"]}}]}]}]'
)
#: Members with annotations of people. Version 0 of Label Studio called them completions.
_ANNOTATIONS = ("annotations", "completions")


def detect(head: str, rows: list[str]) -> bool:
    """Return whether the first object of a text is a task with data and annotations, or one of JSON-MIN."""
    value = first_object(rows)
    is_task = isinstance(value.get("data"), dict) and any(
        key in value for key in (*_ANNOTATIONS, "predictions")
    )
    return (
        is_task
        or _minimal_spans(value) is not None
        or (isinstance(value.get(TEXT), str) and _annotated(value))
    )


def _annotated(value: dict[str, Any]) -> bool:
    """Return whether a task of JSON-MIN was annotated. The member with the spans is missing if it has no regions."""
    return len({"annotation_id", "annotator", "lead_time", "created_at"} & value.keys()) > 1


def _minimal_spans(value: dict[str, Any]) -> str | None:
    """Return the member with the spans of a task of JSON-MIN, whose name is that of the labelling control."""
    for key, spans in value.items():
        if isinstance(spans, list) and spans and all(isinstance(v, dict) and "labels" in v for v in spans):
            return key
    return None


def _text(data: dict[str, Any]) -> tuple[str | None, Any]:
    """Return the name and the value of the member with the text: ``text``, or else the only string."""
    if isinstance(data.get(TEXT), str):
        return TEXT, data[TEXT]
    texts = [key for key, v in data.items() if isinstance(v, str) and key not in ("newdoc", "scheme")]
    if len(texts) != 1:
        found = ", ".join(map(repr, data)) or "no members"
        raise ValueError(f"the member with the text is not clear among {found}. Name it 'text'")
    return texts[0], data[texts[0]]


def _utf16(text: str) -> Callable[[Any], Any]:
    """Return a function that converts an offset in UTF-16 code units, as JavaScript counts, to characters."""
    places: dict[int, int] = {}
    at = 0
    for i, c in enumerate(text):
        places[at] = i
        at += 2 if c > "\uffff" else 1
    places[at] = len(text)
    return lambda offset: places.get(offset, offset) if isinstance(offset, int) else offset


def _spans(regions: Any, text: str) -> list[Any]:
    """Return the spans of an annotation. Regions of other kinds, such as choices and relations, are skipped."""
    if not isinstance(regions, list) or not all(isinstance(region, dict) for region in regions):
        raise ValueError("the result of an annotation is not an array of objects")
    convert: Callable[[Any], Any] | None = None
    out = []
    for region in regions:
        value = region.get("value", region)
        if not isinstance(value, dict) or "labels" not in value:
            continue
        labels = value["labels"]
        if not isinstance(labels, list) or len(labels) != 1:
            count = len(labels) if isinstance(labels, list) else "not an array of"
            raise ValueError(f"a span has {count} labels, expected one")
        start, end, own = value.get("start"), value.get("end"), value.get(TEXT)
        if (
            isinstance(start, int)
            and isinstance(end, int)
            and isinstance(own, str)
            and text[start:end] != own
        ):
            convert = convert or _utf16(text)
            start, end = convert(start), convert(end)
        span = {"start": start, "end": end, "label": labels[0]}
        out.append(span if own is None else {**span, TEXT: own})
    return out


def _annotation(value: dict[str, Any]) -> Any:
    """Return the regions of the first annotation that was not cancelled, or None."""
    return _result(value, next((key for key in _ANNOTATIONS if value.get(key)), None))


def _result(value: dict[str, Any], key: str | None) -> Any:
    """Return the result of the first element of a member that was not cancelled, or None."""
    if key is None:
        return None
    found = value[key]
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ValueError(f"{key!r} is not an array of objects")
    return next((one.get("result") for one in found if not one.get("was_cancelled")), None)


def _predicted(value: dict[str, Any], text: str) -> list[Any] | None:
    """Return the spans of the first prediction of a task, or None."""
    found = _result(value, "predictions") if value.get("predictions") else None
    return None if found is None else _spans(found, text)


def fields(value: dict[str, Any]) -> SpanFields:
    """Return the members of a task. Annotations after the first are ignored."""
    if "data" in value or not isinstance(value.get(TEXT), str):
        data = value.get("data")
        if not isinstance(data, dict):
            raise ValueError("'data' is not an object")
        key, text = _text(data)
        regions = _annotation(value)
        spans = None if regions is None else _spans(regions, text)
        rest = {name: v for name, v in value.items() if name in ("id", "meta")}
    else:
        data, key, text = value, TEXT, value[TEXT]
        member = _minimal_spans(value)
        if member is None and "label" in value:
            member = "label"
        spans = _spans(value[member], text) if member is not None else [] if _annotated(value) else None
        rest = {}
        data = {name: v for name, v in data.items() if name != member}
    known = (key, CONTINUED, "newdoc", "scheme")
    meta = {**rest, **{name: v for name, v in data.items() if name not in known}}
    return SpanFields(
        text, spans, meta, data.get("newdoc"), data.get("scheme"), proposed=lambda: _predicted(value, text)
    )


FORMAT = RecordFormat(
    fields,
    "annotations",
    EXAMPLE,
    missing="Export annotated tasks only. An annotation without regions has an empty array of results",
)


def iter_open(
    file: OpenFile, *, tokenizer: Tokenizes | None = None, scheme: str = "IOB2", misaligned: Policy = "error"
) -> Iterator[Sentence]:
    """Return the sentences of an open file. The options are those of `span_jsonl.iter_open`."""
    return sentences_of_file(file, FORMAT, tokenizer, scheme, misaligned)


class Tasks:
    """Renders objects of the format "spans" as elements of an array of tasks. `end` closes the array.

    `member` is "annotations" for labels of people, or "predictions" for those of a model.
    """

    def __init__(self, member: str = "annotations") -> None:
        self.member = member
        self.begun = False

    def __call__(self, value: dict[str, Any]) -> str:
        spans: Sequence[Any] | None = value.pop("spans", None)
        task: dict[str, Any] = {} if "id" not in value else {"id": value.pop("id")}
        task["data"] = value
        if spans is not None:
            task[self.member] = [{"result": [self.region(value[TEXT], span) for span in spans]}]
        head = ",\n" if self.begun else "[\n"
        self.begun = True
        return head + json.dumps(task, ensure_ascii=False)

    def region(self, text: str, span: dict[str, Any]) -> dict[str, Any]:
        """Return a span as a region of Label Studio, with offsets in UTF-16 code units."""
        start, end = (len(text[: span[key]].encode("utf-16-le")) // 2 for key in ("start", "end"))
        own = {"start": start, "end": end, TEXT: text[span["start"] : span["end"]], "labels": [span["label"]]}
        out = {"from_name": "label", "to_name": "text", "type": "labels", "value": own}
        return out if span.get("probability") is None else {**out, "score": span["probability"]}

    def end(self) -> str:
        """Return the end of the array."""
        return "\n]\n" if self.begun else "[]\n"


def write_label_studio(sentences: Iterable[Sentence], file: File) -> None:
    r"""Write sentences as JSON of Label Studio, an array of annotated tasks. Sentences of one text are joined.

    The names of the labelling interface are ``label`` for the control and ``text`` for the object.

    Args:
        sentences: Corpus or iterable of Sentence.
        file: path, '-' or open file, as in `write`.

    Raises:
        CorpusError: Tokens are not pieces of their text, or the file cannot be written.

    >>> import json
    >>> from pathlib import Path
    >>> from tagwise.spans import span_corpus
    >>> write_label_studio(span_corpus(["In Oslo"], [[(3, 7, "LOC")]]), "tasks.json")
    >>> json.loads(Path("tasks.json").read_text())[0]["annotations"][0]["result"][0]["value"]
    {'start': 3, 'end': 7, 'text': 'Oslo', 'labels': ['LOC']}
    """
    tasks = Tasks()
    write_records(sentences, file, lambda chunked: Records(chunked, render=tasks), tasks.end)
