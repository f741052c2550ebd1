"""What a request may say: JSON schemas, which requests are checked against and which `openapi` publishes."""

from __future__ import annotations

import json
from typing import Any

from tagwise.apps.web.problems import Problem

Schema = dict[str, Any]

_WORDS: Schema = {"type": "array", "items": {"type": "string"}}
#: The tokens of a sentence, or its columns by name where features look at more than the word.
SENTENCE: Schema = {"anyOf": [_WORDS, {"type": "object", "additionalProperties": _WORDS}]}
_MODEL: Schema = {"type": "string", "description": "name of a model; the first one if not given"}
#: Members of which a request of /tag has exactly one.
SOURCES = ("text", "texts", "tokens", "sentences")

TAG: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "model": _MODEL,
        "text": {"type": "string", "description": "one text, which is cut into tokens and sentences"},
        "texts": {"type": "array", "items": {"type": "string"}, "description": "many texts"},
        "tokens": {**SENTENCE, "description": "the tokens of one sentence, or its columns by name"},
        "sentences": {"type": "array", "items": SENTENCE, "description": "many sentences"},
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
            "description": "the k best labellings of each sentence, with scores",
        },
    },
    "oneOf": [{"required": [name]} for name in SOURCES],
}
EXPLAIN: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "model": _MODEL,
        "text": {"type": "string", "description": "one sentence, which is cut into tokens"},
        "tokens": {**SENTENCE, "description": "the tokens of one sentence, or its columns by name"},
        "token": {"type": "integer", "minimum": 0, "description": "explain this token alone, counted from 0"},
        "against": {"type": "string", "description": "hold it against this label; needs token"},
        "top": {"type": "integer", "minimum": 1, "default": 10, "description": "votes of each decision"},
    },
    "oneOf": [{"required": ["text"]}, {"required": ["tokens"]}],
}

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "array": (list,),
    "object": (dict,),
}
_DECODE = json.JSONDecoder().raw_decode
_ONLY_STRINGS = frozenset({str})
_NAMES = {str: "a string", bool: "true or false", list: "a list", dict: "an object", type(None): "null"}


def fault(value: Any, schema: Schema, place: str) -> str | None:
    """What is wrong with a value, by the words of JSON schema that are used above; None where it is right."""
    if "anyOf" in schema:
        return _any_fault(value, schema["anyOf"], place)
    wanted = _TYPES[schema["type"]]
    if type(value) not in wanted:
        return f"{place} is {_NAMES.get(type(value), 'a number')}; expected {_shown(schema)}"
    if schema["type"] == "integer" and not (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
    ):
        return f"{place} is {value}; expected {_shown(schema)}"
    if schema["type"] == "array":
        items = schema["items"]
        if items.get("type") == "string":  # what nearly all of a request is
            if set(map(type, value)) <= _ONLY_STRINGS:
                return None
            wrong = next(i for i, x in enumerate(value) if type(x) is not str)
            return fault(value[wrong], items, f"{place}[{wrong}]")
        return next((f for i, x in enumerate(value) if (f := fault(x, items, f"{place}[{i}]"))), None)
    if schema["type"] == "object":
        return _object_fault(value, schema, place)
    return None


def _any_fault(value: Any, choices: list[Schema], place: str) -> str | None:
    for choice in choices:  # no two are of one type
        if type(value) in _TYPES[choice["type"]]:
            return fault(value, choice, place)
    wanted = " or ".join(_shown(choice) for choice in choices)
    return f"{place} is {_NAMES.get(type(value), 'a number')}; expected {wanted}"


def _object_fault(value: dict[str, Any], schema: Schema, place: str) -> str | None:
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name, inner in value.items():
        if name not in known and others is False:
            return f"{place} has no member {name[:100]!r}; it has: {', '.join(known)}"
        where = name if place == "the request" else f"{place}.{name[:100]}"
        if (found := fault(inner, known.get(name, others), where)) is not None:
            return found
    ways = [way["required"][0] for way in schema.get("oneOf", ())]
    given = [name for name in ways if name in value]
    if ways and len(given) != 1:
        return f"{place} has {' and '.join(given) or 'nothing to work on'}; expected one of {', '.join(ways)}"
    return None


def _shown(schema: Schema) -> str:
    if schema["type"] == "integer":
        most = f" to {schema['maximum']}" if "maximum" in schema else " or more"
        return f"a whole number, {schema.get('minimum', 0)}{most}"
    if schema["type"] == "array":
        return "a list of strings" if schema["items"].get("type") == "string" else "a list of sentences"
    if schema["type"] == "object" and schema.get("additionalProperties"):
        return "an object of columns"
    return {"string": "a string", "boolean": "true or false", "object": "an object"}[schema["type"]]


def words_of(body: bytes | bytearray) -> list[list[str]] | None:
    """The sentences of a request that has words of one or of many, and nothing else: what `parsed` finds, in one step.

    None of any other request, and of whatever is wrong: `parsed` tells of it.
    """
    try:
        text = body.decode()
        found, end = _DECODE(text)
    except (ValueError, RecursionError):
        return None
    if end != len(text) or type(found) is not dict or len(found) != 1:
        return None
    given = found.get("sentences")
    if given is None:
        given = [found.get("tokens")]
    if type(given) is not list or (b"\\" in body and "\\ud" in text.lower()):  # halves of a pair, perhaps
        return None
    for sentence in given:
        if type(sentence) is not list or not _ONLY_STRINGS.issuperset(map(type, sentence)):
            return None
    return given


def parsed(body: bytes | bytearray, schema: Schema) -> dict[str, Any]:
    """The request of a body, or a Problem that says where it is wrong."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise Problem(
            400, "EncodingError", f"byte {error.start} of the body is not UTF-8; send JSON as UTF-8"
        ) from None
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        message = f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise Problem(400, "JsonError", message) from None
    except (RecursionError, ValueError):
        raise Problem(400, "JsonError", "the body is nested too deep, or has a number too long") from None
    if (wrong := fault(found, schema, "the request")) is not None:
        raise Problem(400, "RequestError", wrong)
    if "\\u" in text and "\\ud" in text.lower():  # half a pair of UTF-16 is no character
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            message = "a text has half of a surrogate pair (\\ud800 to \\udfff); send whole characters"
            raise Problem(400, "EncodingError", message) from None
    request: dict[str, Any] = found
    return request


__all__ = ["EXPLAIN", "SENTENCE", "SOURCES", "TAG", "fault", "parsed", "words_of"]
