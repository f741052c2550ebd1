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
