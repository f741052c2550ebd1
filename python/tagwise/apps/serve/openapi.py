"""Description of the server as OpenAPI 3.1 and as an HTML page without scripts."""

from __future__ import annotations

import html
import json
from typing import Any, NamedTuple

from tagwise._core import __version__
from tagwise.apps.serve.schemas import EXPLAIN, RESPONSES, TAG


class Operation(NamedTuple):
    """An operation of the server: method, summary, schema of the body, type of the response."""

    method: str
    summary: str
    schema: dict[str, Any] | None = None
    kind: str = "application/json"


#: By path.
OPERATIONS = {
    "/tag": Operation(
        "post",
        "Label texts or sentences. With Content-Type application/x-ndjson each line is such a request, and is "
        "answered by a line, in order.",
        TAG,
    ),
    "/explain": Operation("post", "Features that decide each label against the second best.", EXPLAIN),
    "/models": Operation("get", "The models that are served."),
    "/health": Operation("get", "Whether the process responds."),
    "/ready": Operation("get", "Whether the server accepts requests: 200, or 503 while it starts and stops."),
    "/metrics": Operation("get", "Counters in the text format of Prometheus.", kind="text/plain"),
    "/openapi.json": Operation("get", "This description as OpenAPI."),
    "/": Operation("get", "This description as a page.", kind="text/html"),
    "/docs": Operation("get", "The same page.", kind="text/html"),
    "/style.css": Operation("get", "Style sheet of that page.", kind="text/css"),
}
#: Error statuses and their causes.
ERRORS = {
    400: "the request is not JSON in UTF-8, or not as expected. The message names the place",
    401: "the token is missing, if the server has one",
    403: "the request comes from a page of another site",
    404: "there is no such path, or no such model",
    405: "the path takes another method",
    408: "the body arrived too slowly",
    413: "the body is too long, or has too many tokens",
    415: "the body is neither JSON nor newline-delimited JSON",
    421: "the server does not accept this Host",
    503: "too many requests are waiting, or the response took too long. Retry after the seconds in Retry-After",
}
EXAMPLE = {"text": "Peter flew to London."}


def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    error = {
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {
                    "type": {"type": "string"},
                    "message": {"type": "string"},
                    "status": {"type": "integer"},
                },
            }
        },
    }
    paths: dict[str, Any] = {}
    for path, (method, summary, schema, kind) in OPERATIONS.items():
        entry: dict[str, Any] = {
            "summary": summary,
            "operationId": path.strip("/").replace(".", "_") or "page",
            "responses": {"200": {"description": "the response", "content": {kind: {}}}},
        }
        if path in RESPONSES:
            entry["responses"]["200"]["content"][kind]["schema"] = RESPONSES[path]
        if schema is not None:
            kinds = ["application/json"] + (["application/x-ndjson"] if path == "/tag" else [])
            entry["requestBody"] = {
                "required": True,
                "content": {each: {"schema": schema, "example": EXAMPLE} for each in kinds},
            }
            for status, text in ERRORS.items():
                content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
                entry["responses"][str(status)] = {"description": text, "content": content}
        paths[path] = {method: entry}
    return {
        "openapi": "3.1.0",
        "info": {"title": "tagwise serve", "version": __version__},
        "paths": paths,
        "components": {"schemas": {"Error": error}},
    }


STYLE = """:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .75rem; border: 1px solid; border-radius: .3rem; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #8886; }
"""


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(choice) for choice in schema["anyOf"])
    if schema["type"] == "array":
        return f"list of {_type(schema['items'])}"
    if schema["type"] == "object":
        return "object of columns"
    return str(schema["type"])


def page(models: list[str], host: str) -> str:
    """Return the HTML page, with an example for the host and port of the request."""
    safe = html.escape
    parts = []
    for path, (method, summary, schema, _) in OPERATIONS.items():
        parts.append(f"<h2><code>{method.upper()} {safe(path)}</code></h2><p>{safe(summary)}</p>")
        if schema is None:
            continue
        one = ", ".join(option["required"][0] for option in schema["oneOf"])
        rows = "".join(
            f"<tr><td><code>{safe(name)}</code></td><td>{safe(_type(field))}</td>"
            f"<td>{safe(field.get('description', ''))}"
            + (f" (default {safe(json.dumps(field['default']))})" if "default" in field else "")
            + "</td></tr>"
            for name, field in schema["properties"].items()
        )
        parts.append(f"<p>A JSON object with one of {safe(one)}:</p><table>{rows}</table>")
    errors = "".join(f"<tr><td>{status}</td><td>{safe(text)}</td></tr>" for status, text in ERRORS.items())
    served = ", ".join(f"<code>{safe(name)}</code>" for name in models)
    command = f"curl -s {host}/tag -H 'Content-Type: application/json' -d '{json.dumps(EXAMPLE)}'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>tagwise serve</title>'
        '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/style.css"></head><body>'
        f"<h1>tagwise serve</h1><p>Models: {served}.</p><pre>{safe(command)}</pre>{''.join(parts)}"
        f"<h2>Errors</h2><p><code>{{&quot;error&quot;: {{&quot;type&quot;, &quot;message&quot;, "
        f"&quot;status&quot;}}}}</code></p><table>{errors}</table></body></html>\n"
    )
