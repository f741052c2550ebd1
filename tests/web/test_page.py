"""The curl commands of docs/howto/serve.md work, each sent as a request without a socket."""

from __future__ import annotations

import json
import re
import shlex

from tools.shows import pages

import tagwise as tw
from tests.web.asgi_client import call_app
from tests.web.test_serve import app_of


def test_curl_commands_of_the_page_succeed(tagger: tw.CRF) -> None:
    """Every `curl` command gets status 200 and JSON without an error."""
    app = app_of(tagger)
    lines = [
        row for b in pages.of("docs/howto/serve.md") if b.language == "sh" for row in b.code.splitlines()
    ]
    commands = [row for row in lines if "curl " in row]
    assert len(commands) >= 6
    for row in commands:
        words = shlex.split(row)
        path = next(re.sub(r"^localhost:8000", "", word) for word in words if word.startswith("localhost"))
        headers, body = {}, b""
        if "-d" in words:
            body = words[words.index("-d") + 1].encode()
        elif "--data-binary" in words:  # the output of printf
            body = words[words.index("printf") + 1].replace("\\n", "\n").encode()
            headers = dict([words[words.index("-H") + 1].split(": ")])
        found = call_app(app, "POST" if body else "GET", path, headers, body)
        assert found.status == 200, (row, found)
        for line in found.body.splitlines():
            assert "error" not in json.loads(line), row
