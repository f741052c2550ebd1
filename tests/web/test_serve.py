"""The service without a socket: responses, rejections, batches, reloads. The tagger gives the expected labels."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tagwise as tw
from tagwise import _core
from tagwise.apps.serve import openapi, schemas, tagging
from tagwise.apps.serve.models import Loaded, ModelRegistry, ServedModel, named
from tagwise.apps.serve.service import Service, ServiceSettings, application, windows
from tagwise.apps.web.limits import RequestLimits
from tagwise.model.model import Model
from tests.web.asgi_client import AppResponse, call_app, call_app_async

TEXT = "Rosa Berg runs to Lund. Lund runs."
SENTENCE = ["Rosa", "Berg", "runs", "to", "Lund", "."]


def app_of(tagger: Any, **settings: Any) -> Any:
    """Return the application for one tagger, with guards and limits."""
    return application(
        Service(
            ModelRegistry([ServedModel("names", None, Loaded.of(tagger, "names"))]),
            ServiceSettings(**settings),
        )
    )


def post(app: Any, request: Any, path: str = "/tag", **more: Any) -> AppResponse:
    """Send one request as JSON."""
    return call_app(app, "POST", path, body=json.dumps(request).encode(), **more)


def results(app: Any, request: Any) -> Any:
    """Send a request that has to succeed and return its results."""
    found = post(app, request)
    assert found.status == 200, found.body
    return json.loads(found.body)["results"]


def error(found: AppResponse) -> tuple[int, str, str]:
    """Return the status, type and message of a rejection."""
    details = json.loads(found.body)["error"]
    assert details["status"] == found.status
    return found.status, details["type"], details["message"]


# --- responses ----------------------------------------------------------------------------------------------


def test_labels_and_spans_equal_those_of_the_tagger(tagger: tw.CRF) -> None:
    """Labels are those of `predict`. Spans and their character offsets are those of `tag`."""
    app = app_of(tagger)
    (one,) = results(app, {"text": TEXT})
    cut = tw.Tokenizer()(TEXT)
    assert one["tokens"] == cut.tokens
    assert [TEXT[b:e] for b, e in one["offsets"]] == cut.tokens
    assert one["labels"] == [y for labels in tagger.predict(cut.sentences) for y in labels]
    spans = [(s["label"], s["text"], s["start"], s["end"]) for s in one["spans"]]
    assert spans == [span[:4] for span in tagger.tag(TEXT)]
    assert all(" ".join(one["tokens"][slice(*s["tokens"])]) == s["text"] for s in one["spans"])
    assert one["sentences"] == cut.bounds.tolist()
    (two,) = results(app, {"tokens": SENTENCE})
    assert two["labels"] == tagger.predict([SENTENCE])[0]
    many = results(app, {"sentences": [SENTENCE, [], {"word": SENTENCE[:2]}]})
    assert many[0] == two
    assert many[1] == {"labels": [], "spans": []}
    assert many[2]["labels"] == tagger.predict([SENTENCE[:2]])[0]
    assert results(app, {"texts": [TEXT, "", " "]})[0] == one
    assert results(app, {"sentences": []}) == []


def test_probabilities_and_kbest_equal_those_of_the_tagger(tagger: tw.CRF, perceptron: tw.Perceptron) -> None:
    """Values equal `predict_confidence` and `predict_kbest`. Learners without probabilities reject `probabilities`."""
    app = app_of(tagger)
    (one,) = results(app, {"tokens": SENTENCE, "probabilities": True, "kbest": 3})
    (sure,) = tagger.predict_confidence([SENTENCE])
    assert np.allclose(one["probabilities"], sure.tokens, atol=1e-6)
    assert np.allclose(one["sentence_probabilities"], [sure.probability], atol=1e-6)
    assert [s["probability"] for s in one["spans"]] == [pytest.approx(p, abs=1e-6) for _, p in sure.chunks]
    (paths,) = one["kbest"]
    wanted = tagger.predict_kbest([SENTENCE], 3)[0]
    assert [(p["labels"], p["score"]) for p in paths] == [(y, pytest.approx(s, abs=1e-5)) for y, s in wanted]
    assert paths[0]["labels"] == one["labels"]
    assert 0 < paths[0]["probability"] <= 1
    other = app_of(perceptron)
    assert error(post(other, {"tokens": SENTENCE, "probabilities": True}))[:2] == (400, "ParameterError")
    assert "probability" not in results(other, {"tokens": SENTENCE, "kbest": 2})[0]["kbest"][0][0]


def test_explanations_equal_explain(tagger: tw.CRF) -> None:
    """Votes are the first `top` of `explain`. Invalid requests get 400."""
    app = app_of(tagger)
    request = {"tokens": SENTENCE, "token": 4, "against": "O", "top": 2}
    found = json.loads(post(app, request, "/explain").body)
    (decision,) = found["decisions"]
    (wanted,) = tagger.explain(SENTENCE, token=4, against="O").to_dict()["decisions"]
    assert decision["difference"] == pytest.approx(wanted["difference"])
    assert [v["feature"] for v in decision["votes"]] == [v["feature"] for v in wanted["votes"][:2]]
    assert len(json.loads(post(app, {"text": TEXT}, "/explain").body)["decisions"]) == len(
        tw.Tokenizer()(TEXT)
    )
    for wrong in (
        {"tokens": []},
        {**request, "token": 99},
        {**request, "against": "X"},
        {"text": "a", "against": "O"},
    ):
        assert error(post(app, wrong, "/explain"))[:2] == (400, "ParameterError")


def test_models_health_metrics_and_ready(tagger: tw.CRF) -> None:
    """/models, /health, /metrics, and /ready, which is 503 unless the service runs."""
    app = app_of(tagger)
    (described,) = json.loads(call_app(app, path="/models").body)["models"]
    assert (described["name"], described["version"], described["error"]) == ("names", 1, None)
    assert described["labels"] == list(tagger.classes_)
    assert call_app(app, path="/health").status == 200
    assert error(call_app(app, path="/ready"))[:2] == (503, "ReadyError")
    post(app, {"tokens": SENTENCE})
    text = call_app(app, path="/metrics").body.decode()
    assert 'tagwise_requests_total{worker="0",path="/tag",status="200"} 1' in text
    assert re.search(r'tagwise_batches_total\{worker="0",model="names"\} 1\.0', text)
    sample = re.compile(r'[a-z_]+(\{([a-z]+="[^"\n]*",?)+\})? [0-9.e+-]+')
    assert all(line.startswith("# ") or sample.fullmatch(line) for line in text.splitlines())


# --- rejections ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        (b"", "JSONError", "line 1 column 1"),
        (b"{", "JSONError", "line 1 column 2"),
        (b'{"text": "\xff"}', "JSONError", "byte 10"),
        ('{"text": "a"}'.encode("utf-16"), "JSONError", "UTF-8"),
        (rb'{"text": "\ud800"}', "JSONError", "surrogate"),
        (rb'{"texts": ["\uD83D"]}', "JSONError", "surrogate"),
        (b"[" * 200_000, "JSONError", "deep"),
        (b'{"kbest": ' + b"9" * 5000 + b"}", "JSONError", "digits"),
        (b"[]", "RequestError", "the request: expected object, found []"),
        (b"{}", "RequestError", "expected exactly one of text, texts, tokens, sentences, found none"),
        (b'{"text": "a", "tokens": ["a"]}', "RequestError", "text and tokens"),
        (b'{"text": null}', "RequestError", "the request.text: expected text, found None"),
        (b'{"tokens": ["a", 1]}', "RequestError", "the request.tokens[1]: expected text, found 1"),
        (b'{"tokens": "a"}', "RequestError", "the request.tokens: expected list or object, found 'a'"),
        (
            b'{"sentences": [["a"], [["b"]]]}',
            "RequestError",
            "the request.sentences[1][0]: expected text, found ['b']",
        ),
        (
            b'{"text": "a", "kbest": 0}',
            "RequestError",
            "the request.kbest: expected integer >= 1 and <= 100, found 0",
        ),
        (b'{"text": "a", "kbest": true}', "RequestError", "the request.kbest: expected integer"),
        (b'{"text": "a", "kbest": 2.0}', "RequestError", "the request.kbest: expected integer"),
        (
            b'{"text": "a", "probs": true}',
            "RequestError",
            "the request: unknown member 'probs', expected model, text",
        ),
        (b'{"tokens": {"word": ["a"], "pos": []}}', "CorpusError", "different lengths"),
        (b'{"tokens": {"pos": ["a"]}}', None, "word"),
    ],
)
def test_invalid_requests_get_400_with_type_and_position(
    tagger: tw.CRF, body: bytes, kind: str | None, says: str
) -> None:
    """The status is 400, with the type of the error and a message that gives the position."""
    status, found, message = error(call_app(app_of(tagger), "POST", "/tag", body=body))
    assert status == 400
    assert kind in (None, found)
    assert says in message


def test_status_codes_of_unknown_paths_methods_models_and_types(tagger: tw.CRF) -> None:
    """Unknown paths and models get 404, wrong methods 405 with Allow, and wrong content types 415."""
    app = app_of(tagger)
    assert error(call_app(app, path="/nowhere"))[:2] == (404, "PathError")
    found = call_app(app, path="/tag")
    assert (error(found)[0], found.headers["allow"]) == (405, "POST")
    assert error(post(app, {"text": "a", "model": "x"})) == (
        404,
        "ModelError",
        "there is no model 'x'. Use one of names",
    )
    assert error(post(app, {"text": "a"}, headers={"content-type": "text/xml"}))[0] == 415
    assert post(app, {"text": "a"}, headers={"content-type": "application/json; charset=utf-8"}).status == 200


def test_number_of_tokens_is_limited(tagger: tw.CRF) -> None:
    """The limit applies to given sentences, tokenized texts, paths times tokens, and explanations."""
    app = app_of(tagger, limits=RequestLimits(tokens=10))
    assert len(results(app, {"sentences": [["a"] * 5] * 2})) == 2
    for request in (
        {"tokens": ["a"] * 11},
        {"text": "a " * 11},
        {"texts": ["a b c"] * 4},
        {"sentences": [[]] * 11},
        {"sentences": [["a"] * 2] * 2, "kbest": 3},
        {"text": "a b c d", "kbest": 3},
    ):
        assert error(post(app, request))[:2] == (413, "LimitError")
    assert len(results(app, {"tokens": ["a"] * 5, "kbest": 2})) == 1
    assert error(post(app, {"tokens": ["a"] * 11}, "/explain"))[0] == 413
    assert error(post(app_of(tagger, limits=RequestLimits(body=100)), {"text": "a" * 100}))[0] == 413


def test_number_of_explained_tokens_is_limited(tagger: tw.CRF) -> None:
    """The limit applies to given tokens and to tokenized texts. /tag accepts more."""
    app = app_of(tagger, limits=RequestLimits(explained=5))
    assert len(json.loads(post(app, {"tokens": ["a"] * 5}, "/explain").body)["decisions"]) == 5
    for request in ({"tokens": ["a"] * 6}, {"tokens": {"word": ["a"] * 6}}, {"text": "a " * 6}):
        status, kind, message = error(post(app, {**request, "token": 0}, "/explain"))
        assert (status, kind) == (413, "LimitError")
        assert "at most 5 tokens" in message
        assert "--max-explained" in message
        assert post(app, request).status == 200


def test_token_length_is_limited(tagger: tw.CRF) -> None:
    """The limit applies to words, columns, tokenized texts, explanations and streams. The message names the token."""
    app = app_of(tagger, limits=RequestLimits(characters=20))
    long, fits = "x" * 21, "x" * 20
    for request in (
        {"tokens": ["a", long]},
        {"sentences": [["a"] * 30, ["b", long]]},
        {"tokens": {"word": ["a", long]}},
        {"tokens": ["a", long], "kbest": 2},
        {"text": f"a {long}"},
    ):
        status, kind, message = error(post(app, request))
        assert (status, kind) == (413, "LimitError")
        assert message.startswith("token 1 of a sentence has 21 characters, more than 20")
        assert "--max-token-length" in message
    for request in ({"tokens": ["a", long]}, {"text": f"a {long}"}):
        assert error(post(app, request, "/explain"))[0] == 413
    assert json.loads(stream(app, body_of({"tokens": [long]})).body)["error"]["status"] == 413
    assert results(app, {"tokens": [fits] * 9})[0]["labels"] == tagger.predict([[fits] * 9])[0]


# --- batches ------------------------------------------------------------------------------------------------


def counted(patch: pytest.MonkeyPatch) -> list[int]:
    """Patch the model and return a list that gets the number of sentences of each call."""
    calls: list[int] = []
    inner = Model.predict_numbers

    def predict(self: Any, X: Any, *query: Any) -> Any:
        calls.append(len(X))
        return inner(self, X, *query)

    patch.setattr(Model, "predict_numbers", predict)
    return calls


def body_of(request: Any) -> bytes:
    return json.dumps(request).encode()


def test_queued_requests_are_batched_into_one_call(tagger: tw.CRF, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen requests become one call. An invalid request among them gets its own error and the others succeed."""
    calls = counted(monkeypatch)
    service = Service(ModelRegistry([ServedModel("names", None, Loaded.of(tagger, "names"))]))
    app = application(service)

    async def main() -> list[AppResponse]:
        service.batchers["names"].pace = 1e-9  # seconds per token, so small that one batch takes all requests
        requests: list[Any] = [{"tokens": SENTENCE[: 1 + i % 6]} for i in range(16)]
        good = await asyncio.gather(*(call_app_async(app, "POST", "/tag", body=body_of(r)) for r in requests))
        assert calls == [16]
        requests[3] = {"tokens": {"other": ["a"]}}
        service.batchers["names"].pace = 1e-9
        mixed = await asyncio.gather(
            *(call_app_async(app, "POST", "/tag", body=body_of(r)) for r in requests)
        )
        assert [a.body for i, a in enumerate(mixed) if i != 3] == [
            a.body for i, a in enumerate(good) if i != 3
        ]
        assert mixed[3].status == 400
        return good

    for i, found in enumerate(asyncio.run(main())):
        sentence = SENTENCE[: 1 + i % 6]
        assert json.loads(found.body)["results"][0]["labels"] == tagger.predict([sentence])[0]


class Held:
    """Patch that holds batches. `begun` is set when a batch starts, and it continues when `go` is set."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        inner = tagging.run

        def run(*args: Any) -> Any:
            self.begun.set()
            assert self.go.wait(30)
            return inner(*args)

        patch.setattr("tagwise.apps.serve.batching.run", run)


def test_requests_beyond_the_queue_get_503(tagger: tw.CRF, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request beyond the queue gets 503 with Retry-After. Queued requests are answered."""
    held = Held(monkeypatch)
    app = app_of(tagger, waiting=2)

    async def main() -> None:
        first = asyncio.create_task(call_app_async(app, "POST", "/tag", body=body_of({"tokens": SENTENCE})))
        await asyncio.to_thread(held.begun.wait)
        waiting = [
            asyncio.create_task(call_app_async(app, "POST", "/tag", body=body_of({"tokens": SENTENCE})))
            for _ in range(2)
        ]
        await asyncio.sleep(0)
        refused = await call_app_async(app, "POST", "/tag", body=body_of({"tokens": SENTENCE}))
        assert (error(refused)[:2], refused.headers["retry-after"]) == ((503, "BusyError"), "1")
        assert (await call_app_async(app, path="/health")).status == 200
        held.go.set()
        assert {(await task).status for task in (first, *waiting)} == {200}

    asyncio.run(main())


def test_timed_out_requests_get_503(tagger: tw.CRF, monkeypatch: pytest.MonkeyPatch) -> None:
    """A late response is 503 with Retry-After. The batch of the timed-out request does not break later requests."""
    held = Held(monkeypatch)
    app = app_of(tagger, limits=RequestLimits(seconds=0.05))

    async def main() -> None:
        late = await call_app_async(app, "POST", "/tag", body=body_of({"tokens": SENTENCE}))
        assert (error(late)[:2], late.headers["retry-after"]) == ((503, "TimeError"), "1")
        held.go.set()
        while (await call_app_async(app, "POST", "/tag", body=body_of({"tokens": SENTENCE}))).status != 200:
            pass

    asyncio.run(main())


class Endless:
    """Patch that runs until stopped for sentences whose first token is `token`. `ended` counts stopped runs."""

    def __init__(self, patch: pytest.MonkeyPatch, token: str) -> None:
        self.begun, self.ended = threading.Event(), 0

        def work() -> None:
            self.begun.set()
            try:
                while True:
                    _core.Stop.check()
            finally:
                self.ended += 1

        predict, explain = Model.predict_numbers, Model.explain

        def predicted(model: Any, X: Any, *query: Any) -> Any:
            return work() if any(x[:1] == [token] for x in X) else predict(model, X, *query)

        def decided(model: Any, sentence: Any, **more: Any) -> Any:
            return work() if sentence[0] == token else explain(model, sentence, **more)

        patch.setattr(Model, "predict_numbers", predicted)
        patch.setattr(Model, "explain", decided)


@pytest.mark.parametrize("path", ["/tag", "/explain"])
def test_timeout_frees_the_model_thread(tagger: tw.CRF, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """After a timeout, the thread of the model is free for the next request."""
    endless = Endless(monkeypatch, "endless")
    service = Service(
        ModelRegistry([ServedModel("names", None, Loaded.of(tagger, "names"))]),
        ServiceSettings(RequestLimits(seconds=0.5)),
    )
    app = application(service)

    async def main() -> None:
        request = body_of({"tokens": ["endless"]})
        late = await call_app_async(app, "POST", path, body=request)
        assert error(late)[:2] == (503, "TimeError")
        for next_path in ("/tag", "/explain"):
            found = await call_app_async(app, "POST", next_path, body=body_of({"tokens": SENTENCE}))
            assert found.status == 200
        assert endless.ended == 1
        assert service.batchers["names"].queued == 0

    asyncio.run(main())


def test_cancelled_job_does_not_fail_the_rest_of_its_batch(
    tagger: tw.CRF, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one job of a batch is cancelled, the batch is run again without it."""
    endless, held = Endless(monkeypatch, "endless"), Held(monkeypatch)
    batcher = Service(ModelRegistry([ServedModel("names", None, Loaded.of(tagger, "names"))])).batchers[
        "names"
    ]

    def job(*tokens: str) -> tagging.Job:
        return tagging.job_of_tokens([list(tokens)], RequestLimits())

    async def main() -> None:
        first = batcher.submit(job("a"))
        await asyncio.to_thread(held.begun.wait)
        bad, good = batcher.submit(job("endless")), batcher.submit(job(*SENTENCE))
        held.go.set()
        await first
        await asyncio.to_thread(endless.begun.wait)
        bad.cancel()
        (one,) = json.loads(await good)["results"]
        assert one["labels"] == tagger.predict([SENTENCE])[0]
        assert endless.ended == 1
        assert batcher.queued == 0

    asyncio.run(main())


def test_close_stops_a_busy_model_thread(tagger: tw.CRF, monkeypatch: pytest.MonkeyPatch) -> None:
    """`close` stops the thread instead of waiting for it."""
    endless = Endless(monkeypatch, "endless")
    batcher = Service(ModelRegistry([ServedModel("names", None, Loaded.of(tagger, "names"))])).batchers[
        "names"
    ]

    async def main() -> None:
        batcher.submit(tagging.job_of_tokens([["endless"]], RequestLimits()))
        await asyncio.to_thread(endless.begun.wait)
        batcher.close()
        assert endless.ended == 1

    asyncio.run(main())


# --- streams ------------------------------------------------------------------------------------------------


def stream(app: Any, body: bytes | list[Any]) -> AppResponse:
    return call_app(app, "POST", "/tag", headers={"content-type": "application/x-ndjson"}, body=body)


def test_streams_return_one_response_per_line_in_order(tagger: tw.CRF) -> None:
    """Responses are in the order of the lines, for any chunks of the body. An invalid line gets an error on its line.

    The limit on the body applies to each line.
    """
    app = app_of(tagger, limits=RequestLimits(body=200))
    lines = [body_of({"tokens": SENTENCE[: 1 + i % 6]}) for i in range(150)]
    lines[70] = b"{"
    whole = b"\n".join(lines) + b"\n\n"
    found = stream(app, whole)
    assert (found.status, found.headers["content-type"]) == (200, "application/x-ndjson")
    answers = [json.loads(line) for line in found.body.splitlines()]
    assert len(answers) == 150
    assert (answers[70]["line"], answers[70]["error"]["type"]) == (71, "JSONError")
    for i, one in enumerate(answers):
        if i != 70:
            assert len(one["results"][0]["labels"]) == 1 + i % 6
    assert stream(app, [whole[i : i + 37] for i in range(0, len(whole), 37)]).body == found.body
    assert stream(app, lines[0]).body == found.body.splitlines(True)[0]
    assert stream(app, b"").body == b""
    assert error(stream(app, [b"x" * 150, b"y" * 150]))[:2] == (413, "LimitError")


async def windowed(pieces: list[bytes], longest: int = 1 << 30) -> list[bytes]:
    """Return the lines of a body that arrives in these pieces."""

    async def chunks() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return [line for lines in [w async for w in windows(chunks(), longest)] for line in lines]


@given(st.lists(st.sampled_from([b"", b"a", b"\n", b"ab\nc", b"\n\n", b" \n", b"d\n"]), min_size=1))
def test_lines_do_not_depend_on_chunk_boundaries(pieces: list[bytes]) -> None:
    """The lines equal those of the whole body, without blank lines."""
    wanted = [line for line in b"".join(pieces).split(b"\n") if line.strip()]
    assert asyncio.run(windowed(pieces)) == wanted


def test_line_splitting_is_linear_in_the_bytes() -> None:
    """The time is linear in the bytes of the body, for pieces of any size."""
    pieces = [b"x" * (8 << 20), *([b"y"] * 20_000), b"\n"]
    begin = time.process_time()
    (line,) = asyncio.run(windowed(pieces))
    assert len(line) == (8 << 20) + 20_000
    assert time.process_time() - begin < 2.0


# --- models -------------------------------------------------------------------------------------------------


def test_model_reload_drops_no_request(model: Path, perceptron: tw.Perceptron) -> None:
    """Each response comes from one version of the model, old or new. A broken file leaves the loaded version in use."""
    registry = ModelRegistry.read([str(model)])
    app = application(Service(registry))
    new = model.with_name("new")
    request = body_of({"sentences": [SENTENCE] * 20})

    async def versions(end: asyncio.Event) -> list[int]:
        seen = []
        while not end.is_set():
            found = await call_app_async(app, "POST", "/tag", body=request)
            assert found.status == 200
            seen.append(json.loads(found.body)["version"])
            await asyncio.sleep(0)
        return seen

    async def main() -> None:
        end = asyncio.Event()
        traffic = [asyncio.create_task(versions(end)) for _ in range(4)]
        await registry.refresh()
        assert registry.first.loaded.version == 1
        perceptron.save(new)
        os.replace(new, model)
        await registry.refresh()
        assert (registry.first.loaded.version, registry.first.loaded.tagger.name) == (2, perceptron.name)
        for broken in (b"", b"no model", model.read_bytes()[:-20]):
            new.write_bytes(broken)
            os.replace(new, model)
            await registry.refresh()
            (details,) = json.loads((await call_app_async(app, path="/models")).body)["models"]
            assert details["version"] == 2
            assert "Version 2 stays loaded" in details["error"]
        model.unlink()
        await registry.refresh()
        assert registry.first.loaded.version == 2
        perceptron.save(model)
        await registry.refresh()
        assert (registry.first.loaded.version, registry.first.error) == (3, None)
        await call_app_async(app, "POST", "/tag", body=request)
        await asyncio.sleep(0)
        end.set()
        for seen in await asyncio.gather(*traffic):
            assert seen == sorted(seen)

    asyncio.run(main())


def test_models_are_selected_by_name(model: Path, tagger: tw.CRF, perceptron: tw.Perceptron) -> None:
    """Requests without a model name use the first model. Duplicate names are rejected."""
    other = model.with_name("other.tagwise")
    perceptron.save(other)
    app = application(Service(ModelRegistry.read([str(model), f"p={other}"])))
    assert json.loads(post(app, {"text": TEXT}).body)["model"] == "names"
    assert json.loads(post(app, {"text": TEXT, "model": "p"}).body)["model"] == "p"
    assert named("a.b/c.tagwise") == ("c", "a.b/c.tagwise")
    with pytest.raises(tw.exceptions.ParameterError, match="two models have the name 'names'"):
        ModelRegistry.read([str(model), f"names={other}"])
    with pytest.raises(tw.exceptions.ParameterError, match="no model"):
        ModelRegistry([])


def lowered(sentence: Any) -> list[list[str]]:
    """Feature function that a model file refers to by name."""
    return [[word.lower()] for word in sentence]


def test_models_with_code_or_attributes_are_rejected(tmp_path: Path) -> None:
    """Models with feature functions are rejected without an import. Models of attributes are rejected too."""
    words = [["a", "b"]]
    tw.Perceptron(features=lowered, max_iter=1).fit(words, [["x", "y"]]).save(tmp_path / "f.tagwise")
    with pytest.raises(tw.exceptions.MissingFunctionError, match="lowered"):
        ModelRegistry.read([str(tmp_path / "f.tagwise")])
    tw.Perceptron(max_iter=1).fit([[["w=a"], ["w=b"]]], [["x", "y"]]).save(tmp_path / "a.tagwise")
    with pytest.raises(tw.exceptions.ParameterError, match=r"a\.tagwise: .*attributes"):
        ModelRegistry.read([str(tmp_path / "a.tagwise")])


# --- the description ----------------------------------------------------------------------------------------


def test_openapi_description_matches_the_routes(tagger: tw.CRF) -> None:
    """The described paths and methods equal the routes, and every described member of a request is accepted."""
    service = Service(ModelRegistry([ServedModel("names", None, Loaded.of(tagger, "names"))]))
    described = json.loads(call_app(application(service), path="/openapi.json").body)
    assert {p: {m.upper() for m in methods} for p, methods in described["paths"].items()} == {
        route.path: route.methods - {"HEAD"} for route in service.app().routes
    }
    values: dict[str, Any] = {
        "model": "names",
        "text": TEXT,
        "texts": [TEXT],
        "tokens": SENTENCE,
        "sentences": [SENTENCE],
        "probabilities": True,
        "kbest": 2,
        "token": 1,
        "against": "O",
        "top": 1,
    }
    app = application(service)
    for path in ("/tag", "/explain"):
        schema = described["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        ways = {way["required"][0] for way in schema["oneOf"]}
        for member in schema["properties"]:
            request = {member: values[member]}
            if member not in ways:
                request |= {"text": TEXT}
            if member == "against":
                request |= {"token": 0}
            assert post(app, request, path).status == 200, (path, member)
            assert error(post(app, {**request, member: {"a": 1}}, path))[:2] == (400, "RequestError")


def test_responses_match_their_schema(tagger: tw.CRF) -> None:
    """Every member of a response is described, at every level, and required members are there."""
    app = application(Service(ModelRegistry([ServedModel("names", None, Loaded.of(tagger, "names"))])))
    described = json.loads(call_app(app, path="/openapi.json").body)["paths"]

    def check(value: Any, schema: dict[str, Any]) -> None:
        if isinstance(value, dict) and "properties" in schema:
            assert set(schema["required"]) <= set(value) <= set(schema["properties"])
            for name, member in value.items():
                check(member, schema["properties"][name])
        elif isinstance(value, list):
            assert schema["type"] == "array"
            for item in value:
                check(item, schema["items"])

    schema = described["/tag"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    for request in ({"text": TEXT, "probabilities": True, "kbest": 2}, {"sentences": [SENTENCE]}):
        check(json.loads(post(app, request, "/tag").body), schema)
    schema = described["/explain"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    answer = json.loads(post(app, {"text": TEXT}, "/explain").body)
    assert set(schema["required"]) <= set(answer)


def test_docs_show_the_page_with_the_host_of_the_request(tagger: tw.CRF) -> None:
    app = application(Service(ModelRegistry([ServedModel("names", None, Loaded.of(tagger, "names"))])))
    page = call_app(app, path="/docs").body
    assert page == call_app(app).body
    assert b"localhost:8000" not in openapi.page(["names"], "127.0.0.1:8123").encode()
    assert "curl -s 127.0.0.1:8123/tag" in openapi.page(["names"], "127.0.0.1:8123")


def test_page_has_no_inline_code_and_no_external_hosts(tagger: tw.CRF) -> None:
    """The page has no inline code and no external resources. Names of models are escaped."""
    app = application(Service(ModelRegistry([ServedModel("<script>", None, Loaded.of(tagger, "x"))])))
    page = call_app(app).body.decode()
    assert "<script" not in page
    assert not re.search(r"\son\w+=|style=|https?://", page)
    assert set(re.findall(r'(?:href|src)="([^"]*)"', page)) == {"/style.css"}
    assert call_app(app, path="/style.css").headers["content-type"].startswith("text/css")
    assert "url(" not in openapi.STYLE
    assert set(schemas.SOURCES) < set(schemas.TAG["properties"])
