"""JSON schemas of requests, which `openapi` publishes, and the domains that check them."""

from __future__ import annotations

import math
from typing import Any

from tagwise.base.domains import AnyOf, Domain, Flag, Integer, ListOf, Record, Text

Schema = dict[str, Any]

_WORDS: Schema = {"type": "array", "items": {"type": "string"}}
#: The tokens of a sentence, or its columns by name if features read more than the word.
SENTENCE: Schema = {"anyOf": [_WORDS, {"type": "object", "additionalProperties": _WORDS}]}
_MODEL: Schema = {"type": "string", "description": "name of a model. Default: the first one"}
#: Members of which a request of /tag has exactly one.
SOURCES = ("text", "texts", "tokens", "sentences")

TAG: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "model": _MODEL,
        "text": {"type": "string", "description": "one text, which is split into sentences and tokens"},
        "texts": {"type": "array", "items": {"type": "string"}, "description": "several texts"},
        "tokens": {**SENTENCE, "description": "the tokens of one sentence, or its columns by name"},
        "sentences": {"type": "array", "items": SENTENCE, "description": "several sentences"},
        "probabilities": {
            "type": "boolean",
            "default": False,
            "description": "of each label, each span and the whole sentence",
        },
        "kbest": {
            "type": "integer",
            "minimum": 1,
            "maximum": 100,
            "default": 1,
            "description": "number of label sequences per sentence, with scores",
        },
    },
    "oneOf": [{"required": [name]} for name in SOURCES],
}
EXPLAIN: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "model": _MODEL,
        "text": {"type": "string", "description": "one sentence, which is split into tokens"},
        "tokens": {**SENTENCE, "description": "the tokens of one sentence, or its columns by name"},
        "token": {
            "type": "integer",
            "minimum": 0,
            "description": "index of the only token to explain, counted from 0",
        },
        "against": {"type": "string", "description": "label to compare with. Requires token"},
        "top": {
            "type": "integer",
            "minimum": 1,
            "default": 10,
            "description": "number of features per decision",
        },
    },
    "oneOf": [{"required": ["text"]}, {"required": ["tokens"]}],
}


_LABEL: Schema = {"type": ["string", "integer", "number", "boolean"]}
_RANGE: Schema = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
_CHANCE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_SPAN: Schema = {
    "type": "object",
    "required": ["label", "tokens"],
    "properties": {
        "label": {"type": "string"},
        "tokens": {**_RANGE, "description": "first token, and the token after the last one"},
        "start": {"type": "integer", "description": "first character, for texts"},
        "end": {"type": "integer", "description": "character after the last one, for texts"},
        "text": {"type": "string"},
        "probability": _CHANCE,
    },
}
_PATH: Schema = {
    "type": "object",
    "required": ["labels", "score"],
    "properties": {
        "labels": {"type": "array", "items": _LABEL},
        "score": {"type": "number"},
        "probability": _CHANCE,
    },
}
_RESULT: Schema = {
    "type": "object",
    "required": ["labels"],
    "properties": {
        "tokens": {**_WORDS, "description": "for texts"},
        "offsets": {"type": "array", "items": _RANGE, "description": "characters of each token, for texts"},
        "sentences": {
            "type": "array",
            "items": {"type": "integer"},
            "description": "bounds in tokens, for texts",
        },
        "labels": {"type": "array", "items": _LABEL},
        "spans": {"type": "array", "items": _SPAN, "description": "if labels mark spans"},
        "probabilities": {"type": "array", "items": _CHANCE},
        "sentence_probabilities": {"type": "array", "items": _CHANCE},
        "kbest": {"type": "array", "items": {"type": "array", "items": _PATH}},
    },
}
_ANSWER: Schema = {"model": {"type": "string"}, "version": {"type": "integer"}}
#: Responses by path.
RESPONSES: dict[str, Schema] = {
    "/tag": {
        "type": "object",
        "required": ["model", "version", "results"],
        "properties": {**_ANSWER, "results": {"type": "array", "items": _RESULT}},
    },
    "/explain": {
        "type": "object",
        "required": ["model", "version", "decisions"],
        "properties": {**_ANSWER, "decisions": {"type": "array", "items": {"type": "object"}}},
    },
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
