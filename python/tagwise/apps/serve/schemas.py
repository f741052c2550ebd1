"""JSON schemas of requests, which `openapi` publishes, and the domains that check them."""

from __future__ import annotations

import math
from typing import Any

from tagwise.base.domains import AnyOf, Domain, Flag, Integer, ListOf, Record, Text

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}


def _list(items: Schema, description: str | None = None) -> Schema:
    """Return the schema of an array."""
    return {"type": "array", "items": items} | ({} if description is None else {"description": description})


def _object(required: tuple[str, ...], **properties: Schema) -> Schema:
    """Return the schema of an object of a response."""
    return {"type": "object", "required": list(required), "properties": properties}


def _request(sources: tuple[str, ...], **properties: Schema) -> Schema:
    """Return the schema of a request with exactly one of `sources` among its members."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "oneOf": [{"required": [name]} for name in sources],
    }


def _integer(minimum: int, description: str, **more: int) -> Schema:
    """Return the schema of an integer."""
    return {"type": "integer", "minimum": minimum, **more, "description": description}


_WORDS = _list(_TEXT)
#: The tokens of a sentence, or its columns by name if features read more than the word.
SENTENCE: Schema = {"anyOf": [_WORDS, {"type": "object", "additionalProperties": _WORDS}]}
_TOKENS: Schema = {**SENTENCE, "description": "the tokens of one sentence, or its columns by name"}
_MODEL: Schema = {**_TEXT, "description": "name of a model. Default: the first one"}

#: Members of which a request of /tag has exactly one.
SOURCES = ("text", "texts", "tokens", "sentences")
TAG = _request(
    SOURCES,
    model=_MODEL,
    text={**_TEXT, "description": "one text, which is split into sentences and tokens"},
    texts=_list(_TEXT, "several texts"),
    tokens=_TOKENS,
    sentences=_list(SENTENCE, "several sentences"),
    probabilities={
        "type": "boolean",
        "default": False,
        "description": "of each label, each span and the whole sentence",
    },
    kbest=_integer(1, "number of label sequences per sentence, with scores", maximum=100, default=1),
)
EXPLAIN = _request(
    ("text", "tokens"),
    model=_MODEL,
    text={**_TEXT, "description": "one sentence, which is split into tokens"},
    tokens=_TOKENS,
    token=_integer(0, "index of the only token to explain, counted from 0"),
    against={**_TEXT, "description": "label to compare with. Requires token"},
    top=_integer(1, "number of features per decision", default=10),
)

_LABEL: Schema = {"type": ["string", "integer", "number", "boolean"]}
_RANGE: Schema = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
_CHANCE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_SPAN = _object(
    ("label", "tokens"),
    label=_TEXT,
    tokens={**_RANGE, "description": "first token, and the token after the last one"},
    start={"type": "integer", "description": "first character, for texts"},
    end={"type": "integer", "description": "character after the last one, for texts"},
    text=_TEXT,
    probability=_CHANCE,
)
_PATH = _object(("labels", "score"), labels=_list(_LABEL), score={"type": "number"}, probability=_CHANCE)
_RESULT = _object(
    ("labels",),
    tokens={**_WORDS, "description": "for texts"},
    offsets=_list(_RANGE, "characters of each token, for texts"),
    sentences=_list({"type": "integer"}, "bounds in tokens, for texts"),
    labels=_list(_LABEL),
    spans=_list(_SPAN, "if labels mark spans"),
    probabilities=_list(_CHANCE),
    sentence_probabilities=_list(_CHANCE),
    kbest=_list(_list(_PATH)),
)
_ANSWER: dict[str, Schema] = {"model": _TEXT, "version": {"type": "integer"}}
#: Responses by path.
RESPONSES: dict[str, Schema] = {
    "/tag": _object(("model", "version", "results"), **_ANSWER, results=_list(_RESULT)),
    "/explain": _object(("model", "version", "decisions"), **_ANSWER, decisions=_list({"type": "object"})),
}


def domain_of(schema: Schema) -> Domain:
    """Return the domain of a JSON schema with the keywords used above."""
    match schema:
        case {"anyOf": choices}:
            return AnyOf(tuple(map(domain_of, choices)))
        case {"type": "array", "items": items}:
            return ListOf(domain_of(items))
        case {"type": "integer"}:
            return Integer(schema["minimum"], schema.get("maximum", math.inf))
        case {"type": "object"}:
            return Record(
                may={name: domain_of(member) for name, member in schema.get("properties", {}).items()},
                more=domain_of(others) if (others := schema["additionalProperties"]) else None,
                one=tuple(option["required"][0] for option in schema.get("oneOf", ())),
            )
    return {"string": Text(), "boolean": Flag()}[schema["type"]]


TAG_DOMAIN, EXPLAIN_DOMAIN = domain_of(TAG), domain_of(EXPLAIN)
