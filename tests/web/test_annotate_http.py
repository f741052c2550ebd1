"""`tagwise annotate` over HTTP: the requests of the page, and rejected requests."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw

pytest.importorskip("starlette", reason="tagwise[web] is not installed")

from tagwise.apps.annotate import app as pages
from tagwise.apps.annotate.folder import ProjectSettings
from tagwise.apps.annotate.project import Work
from tagwise.apps.annotate.server import guarded
from tagwise.apps.annotate.session import Session
from tests.web.annotate_session import HOSTILE, TEXT, TOKEN, gold, send, session_of
from tests.web.asgi_client import call_app

READS = [
    "/",
    "/static/main.js",
    "/api/state",
    "/api/why?id=0&token=0",
    "/api/export?format=conll",
    "/api/events",
    "/api/list?tab=all",
    "/api/labels",
    "/api/summary",
    "/api/guidelines",
    "/api/model",
]
WRITES = [
    "accept",
    "skip",
    "flag",
    "reject",
    "comment",
    "undo",
    "redo",
    "label",
    "strategy",
    "mistakes",
    "import",
    "agreement",
    "compare",
]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    session = session_of(tmp_path / "work")
    yield guarded(session, TOKEN), session
    session.close()


def test_label_undo_explain_export_and_train_from_the_export(served: tuple[Any, Any]) -> None:
    app, session = served
    state = json.loads(send(app, "GET", "/api/state").body)
    for _ in range(6):
        one = state["sentence"]
        answer = send(app, "POST", "/api/accept", {"id": one["id"], "spans": gold(one["tokens"])})
        assert answer.status == 200
        state = json.loads(answer.body)
    assert state["counts"]["accepted"] == 6
    assert state["milliseconds"]["learning"] > 0
    events = dict(one.split(";dur=") for one in answer.headers["server-timing"].split(", "))
    assert {name.replace(" ", "-"): f"{took:.1f}" for name, took in state["milliseconds"].items()} == events
    back = json.loads(send(app, "POST", "/api/undo", {}).body)
    assert back["counts"]["accepted"] == 5
    assert json.loads(send(app, "POST", "/api/redo", {}).body)["counts"]["accepted"] == 6
    session.learning.wait()
    why = json.loads(send(app, "GET", "/api/why?id=15&token=0").body)
    assert why["decision"]["label"] == "B-PER"
    assert why["readings"][0]["share"] is None  # the tagger has scores only
    behind = [reading["behind"] for reading in why["readings"]]
    assert behind == sorted(behind)
    file = send(app, "GET", "/api/export?format=conll")
    assert "attachment" in file.headers["content-disposition"]
    corpus = tw.read(io.BytesIO(file.body), "conll")
    assert len(corpus) == 6
    found = tw.MIRA(max_iter=5, n_jobs=1).fit(corpus).predict([["Anna", "went", "to", "Oslo", "."]])
    assert found == [["B-PER", "O", "O", "B-LOC", "O"]]


def test_labels_search_import_mistakes_and_agreement(served: tuple[Any, Any]) -> None:
    app, session = served
    assert (
        json.loads(send(app, "POST", "/api/label", {"name": "ORG"}).body)["settings"]["labels"][-1] == "ORG"
    )
    found = json.loads(send(app, "GET", "/api/list?tab=all&search=oslo").body)
    assert found["total"] == 4
    assert all("Oslo" in row["tokens"] for row in found["rows"])
    lines = "".join(
        "\n".join(f"{w}\t{y}" for w, y in zip(words, tags)) + "\n\n"
        for words, tags in [(words, ["B-PER", "O", "O", "B-LOC", "O"]) for words in TEXT[:8]]
    )
    state = json.loads(
        send(app, "POST", "/api/import?name=../../x.tsv&format=conll", body=lines.encode()).body
    )
    assert state["counts"]["given"] == 8
    assert state["documents"][-1] == {"name": "x.tsv", "sentences": 8}
    assert send(app, "POST", "/api/mistakes", {}).status == 400  # too few sentences
    suspects = json.loads(send(app, "POST", "/api/mistakes", {"most": 3}).body)["suspects"]
    assert len(suspects) <= 3
    assert all({"id", "tokens", "doubt", "spans", "found"} == set(one) for one in suspects)
    other = json.loads(send(app, "POST", "/api/agreement", body=lines.replace("B-PER", "O").encode()).body)
    assert other["sentences"] == 8
    assert other["f1"] == pytest.approx(2 / 3)
    assert len(other["disagreements"]) == 8
    session.learning.wait()


def test_comparison_reports_progress_events(served: tuple[Any, Any]) -> None:
    app, session = served
    events: list[tuple[str, Any]] = []
    from tagwise.apps.annotate.comparing import Comparing

    comparing = Comparing(session, lambda kind, data: events.append((kind, data)))
    with pytest.raises(tw.exceptions.ParameterError, match="needs 10"):
        comparing.begin(["perceptron"])
    for i in range(10):
        session.work.accept(i, ["B-PER", "O", "O", "B-LOC", "O"])
    for wrong in ([], ["nothing"], "crf", [3], ["crf"] * 9):
        with pytest.raises(tw.exceptions.ParameterError):
            comparing.begin(wrong)
    assert comparing.page() is None
    comparing._running = True
    comparing._run(["perceptron(max_iter=2)"], session._corpus(), session._corpus())
    kinds = [data["kind"] for _, data in events]
    assert kinds[0] == "start"
    assert kinds[-1] == "end"
    assert events[-1][1]["rows"][0]["f1"] > 0.5
    assert "<!doctype html>" in (comparing.page() or "").lower()
    assert send(app, "GET", "/api/compare/report").status == 404


# --- access control -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", READS + [f"/api/{name}" for name in WRITES])
def test_requests_without_the_token_get_401(served: tuple[Any, Any], path: str) -> None:
    app, session = served
    method = "POST" if path.rpartition("/")[2] in WRITES else "GET"
    for given in (None, "Bearer wrong", f"Basic {TOKEN}"):
        found = send(app, method, path, {}, headers={"authorization": given})
        assert found.status == 401
        assert TOKEN not in found.body.decode()
    assert not session.work.journal.entries


def test_url_token_is_exchanged_for_a_cookie(served: tuple[Any, Any]) -> None:
    app, _ = served
    found = call_app(app, "GET", "/", {}, query=f"token={TOKEN}")
    assert found.status == 303
    assert found.headers["location"] == "/"
    cookie = found.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert call_app(app, "GET", "/", {"cookie": cookie.partition(";")[0]}).status == 200


@pytest.mark.parametrize("path", ["/", "/api/state"])
def test_unknown_host_headers_are_rejected(served: tuple[Any, Any], path: str) -> None:
    """DNS rebinding: the Host header contains the attacker's domain."""
    app, _ = served
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", None):
        assert send(app, "GET", path, host=host).status in (400, 421)


@pytest.mark.parametrize("name", WRITES)
def test_cross_site_posts_are_rejected(served: tuple[Any, Any], name: str) -> None:
    app, session = served
    for headers in ({"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        assert send(app, "POST", f"/api/{name}", {}, headers=headers).status == 403
    assert not session.work.journal.entries


@pytest.mark.parametrize(
    "name", ["accept", "skip", "flag", "reject", "comment", "label", "strategy", "compare"]
)
def test_form_content_types_are_rejected(served: tuple[Any, Any], name: str) -> None:
    """Forms of other pages cannot send the content type application/json."""
    app, _ = served
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None):
        assert send(app, "POST", f"/api/{name}", {}, headers={"content-type": kind}).status == 415


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/api/state"])
def test_security_headers_allow_only_own_resources(served: tuple[Any, Any], path: str) -> None:
    app, _ = served
    found = send(app, "GET", path)
    policy = dict(part.strip().split(" ", 1) for part in found.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["style-src"] == "'self'"
    assert "unsafe" not in found.headers["content-security-policy"]
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["x-frame-options"] == "DENY"


def test_page_has_no_inline_code_and_no_external_urls() -> None:
    """The page has no inline script, style or handler, and no URL of another host. It never parses text as markup."""
    page = pages.asset("index.html").decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert "<style" not in page
    assert not re.search(r"\s(on\w+|style)=", page)
    for name in ["index.html", *pages.FILES]:
        text = pages.asset(name).decode()
        hosts = set(re.findall(r"https?://([\w.-]+)", text))
        assert hosts <= {"www.w3.org"}, name  # the namespace of SVG, which is never requested
        for construct in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "srcdoc",
        ):
            assert construct not in text, f"{name}: {construct}"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/../work.json",
        "/static/",
        "/api/nothing",
        "/static/main.js/..",
        "/static/\\..\\app.py",
        "/static/main.js\0",
    ],
)
def test_path_traversal_gets_404(served: tuple[Any, Any], path: str) -> None:
    app, _ = served
    found = send(app, "GET", path)
    assert found.status == 404
    assert json.loads(found.body)["error"]["status"] == 404


@pytest.mark.parametrize("query", ["format=../../x", "format=", "format=conll%00", "format=raw"])
def test_invalid_export_formats_get_400(served: tuple[Any, Any], query: str) -> None:
    app, _ = served
    assert send(app, "GET", f"/api/export?{query}").status == 400


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("accept", {}),
        ("accept", {"id": -1, "spans": []}),
        ("accept", {"id": 1e9, "spans": []}),
        ("accept", {"id": 0, "spans": [{"begin": 0, "end": 99, "label": "PER"}]}),
        ("skip", {"id": "0"}),
        ("label", {"name": "a b"}),
        ("label", {"name": "x" * 100}),
        ("label", {}),
        ("strategy", {"strategy": "x"}),
        ("comment", {"id": 0, "text": "x" * 2001}),
        ("comment", {"id": 0, "text": "\ud800"}),
        ("comment", {"id": 0, "text": ["x"]}),
        ("flag", {"id": 99}),
        ("reject", {"id": -1}),
        ("label", {"name": "B-PER"}),
        ("label", {"name": "PER"}),
        ("label/change", {"label": "ORG", "name": "X"}),
        ("label/change", {"label": "PER", "name": "I-PER"}),
        ("label/change", {"label": "PER", "colour": 24}),
        ("label/delete", {"label": "ORG"}),
        ("accept", {"id": 0, "spans": [], "version": -1}),
        ("mistakes", {"most": 0}),
        ("strategy", {"strategy": []}),
        ("strategy", {"strategy": {}}),
        ("strategy", {"strategy": None}),
        ("strategy", {"nothing": 1}),
        ("undo", {"id": 1}),
        ("label", {"name": "\udfff"}),
        ("accept", {"id": True, "spans": []}),
        ("accept", {"id": 0, "spans": {}}),
        ("accept", {"id": 0, "spans": [{"begin": "0", "end": 1, "label": "PER"}]}),
        ("compare", {"learners": [["crf"]]}),
        ("compare", {"learners": "crf"}),
        ("accept", [1]),
        ("accept", 3),
    ],
)
def test_invalid_requests_get_400_with_a_message(served: tuple[Any, Any], name: str, value: Any) -> None:
    app, session = served
    found = send(app, "POST", f"/api/{name}", value)
    assert found.status == 400
    assert json.loads(found.body)["error"]["message"]
    assert not session.work.journal.entries


def test_lone_surrogate_in_a_comment_is_rejected(served: tuple[Any, Any]) -> None:
    """Browsers send lone surrogates if an emoji is cut in half. The request is rejected, the comment is unchanged."""
    app, _ = served
    assert send(app, "POST", "/api/comment", {"id": 0, "text": "Rome"}).status == 200
    assert send(app, "POST", "/api/comment", {"id": 0, "text": "\ud83d"}).status == 400
    found = send(app, "GET", "/api/state?focus=0")
    assert json.loads(found.body)["sentence"]["comment"] == "Rome"


def test_outdated_version_is_a_conflict_with_the_present_sentence(served: tuple[Any, Any]) -> None:
    """Accepting twice for the same version is 409. The body has the sentence, and the labels do not change."""
    app, session = served
    mine = {"id": 0, "version": 0, "spans": gold(TEXT[0])}
    assert send(app, "POST", "/api/accept", mine).status == 200
    answer = send(app, "POST", "/api/accept", {**mine, "spans": []})
    assert answer.status == 409
    found = json.loads(answer.body)
    assert found["error"]["type"] == "Conflict"
    assert found["sentence"]["spans"] == [[0, 1, "PER"], [3, 4, "LOC"]]
    assert len(session.work.journal.entries) == 1
    again = {**mine, "spans": [], "version": found["sentence"]["version"]}
    assert send(app, "POST", "/api/accept", again).status == 200
    assert session.work.accepted[0] == ["O"] * 5


def test_shares_of_readings_sum_to_one(tmp_path: Path) -> None:
    """With a CRF, readings have shares of the probability of those returned, and differ in their spans."""
    work = Work(tmp_path / "crf", ProjectSettings(labels=["PER", "LOC"], learner="crf"))
    work.add(tw.Corpus.from_lists(TEXT), "text")
    session = Session(work)
    for i in range(3):
        session.accept(i, gold(TEXT[i]))
    session.learning.wait()
    readings = session.why(9, 0)["readings"]
    assert sum(one["share"] for one in readings) == pytest.approx(1.0)
    assert len({json.dumps(one["spans"]) for one in readings}) == len(readings) == 5
    session.close()


@pytest.mark.parametrize(
    "query", ["tab=nothing", "tab=all&offset=x", "tab=all&search=" + "x" * 201, "tab=all&offset=-1"]
)
def test_lists_reject_unknown_tabs_and_long_searches(served: tuple[Any, Any], query: str) -> None:
    app, _ = served
    assert send(app, "GET", f"/api/list?{query}").status == 400


@pytest.mark.parametrize(
    "body", [b'{"id": 1, "id": 2}', b"{", b"\xff\xfe", b"[" * 100_000, b'{"id": NaN}', b'"x"']
)
def test_malformed_json_bodies_get_400(served: tuple[Any, Any], body: bytes) -> None:
    app, _ = served
    assert send(app, "POST", "/api/accept", body=body).status == 400


def test_request_and_file_sizes_are_limited(served: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    app, _ = served
    assert send(app, "POST", "/api/accept", body=b" " * (pages.MOST_BODY + 1)).status == 413
    monkeypatch.setattr(pages, "MOST_FILE", 10)
    assert send(app, "POST", "/api/import", body=b"word " * 3).status == 413
    long = ("x " * 3000 + "\n").encode()
    monkeypatch.undo()
    assert send(app, "POST", "/api/import?format=text", body=long).status == 400


def test_hostile_text_is_returned_unchanged_as_json(served: tuple[Any, Any]) -> None:
    """Hostile tokens are returned unchanged. Responses and errors have the content type of JSON."""
    app, _ = served
    place = TEXT.index(HOSTILE)
    found = send(app, "GET", f"/api/state?focus={place}")
    assert found.headers["content-type"] == "application/json"
    assert json.loads(found.body)["sentence"]["tokens"] == HOSTILE
    refused = send(app, "POST", "/api/label", {"name": HOSTILE[0] + " x"})
    assert refused.status == 400
    assert refused.headers["content-type"] == "application/json"
