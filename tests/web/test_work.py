"""The fast path for usual requests and the general path give identical bytes. Invalid requests are rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tagwise as tw
from tagwise.apps.serve import schemas, tagging
from tagwise.apps.serve.models import Loaded
from tagwise.apps.web.limits import RequestLimits
from tagwise.apps.web.problems import parsed_body
from tests.web.conftest import corpus

WORDS = [["Rosa", "Berg", "runs", "to", "Lund", "."], ["runs"], [], ["Lund", "Rosa", '"<é>"', "."]]
REQUESTS: list[dict[str, Any]] = [
    {"sentences": WORDS},
    {"tokens": WORDS[0]},
    {"sentences": []},
    {"sentences": [[]]},
    {"sentences": WORDS[2:]},
    {"tokens": WORDS[1]},
]


def parts_of_speech() -> tw.Perceptron:
    """Return a tagger with labels that do not mark spans and that JSON has to escape."""
    sentences = [tw.Sentence({"word": ["a", "b"], "label": ['"quoted"', "é\\n"]}, "label")] * 3
    return tw.Perceptron(features="S1", max_iter=2).fit(tw.Corpus(sentences))


@pytest.mark.parametrize("kind", ["spans", "parts", "numbers"])
def test_fast_and_general_paths_give_identical_responses(tagger: tw.CRF, kind: str) -> None:
    if kind == "numbers":
        sentences = corpus()
        numbers = [[len(word) for word in s.tokens] for s in sentences]
        made: Any = tw.Perceptron(features="S1", max_iter=2).fit([s.tokens for s in sentences], numbers)
    else:
        made = tagger if kind == "spans" else parts_of_speech()
    loaded = Loaded.of(made, "a model")
    assert loaded.chunked == (kind == "spans")
    jobs = [tagging.job_of(request, RequestLimits(tokens=1000)) for request in REQUESTS]
    assert all(job.plain for job in jobs)
    slow = tagging._label(loaded, loaded.single_threaded, tagging.LABELS, jobs)
    assert tagging._label_plain(loaded, loaded.single_threaded, jobs) == slow
    assert tagging._label_plain(loaded, loaded.single_threaded, jobs[2:3]) == [""]
    for request, text in zip(REQUESTS, slow):
        given = request.get("sentences", [request.get("tokens")])
        paths = made.predict(given) if given else []
        assert [one["labels"] for one in json.loads(f"[{text}]")] == paths
    if kind == "spans":
        assert '"spans":[{' in slow[0]
        assert '"spans":[]' in slow[5]


@pytest.mark.parametrize(
    "request_",
    [
        {"text": "Rosa runs"},
        {"tokens": {"word": ["Rosa"]}},
        {"tokens": ["Rosa"], "kbest": 2},
        {"sentences": [["Rosa"]], "probabilities": True},
    ],
)
def test_requests_with_options_take_the_general_path(request_: dict[str, Any]) -> None:
    assert not tagging.job_of(request_, RequestLimits(tokens=1000)).plain


WRONG = [
    b'{"tokens": ["a"], "tokens": ["b"]}', b"", b"{", b"[]", b"{}", b"3", b"null", b"\xff", b"\xef\xbb\xbf{}",
    b"[" * 100_000, b'{"tokens": "ab"}', b'{"tokens": null}', b'{"tokens": [1]}', b'{"tokens": ["a", null]}',
    b'{"sentences": null}', b'{"sentences": "ab"}', b'{"sentences": [["a"], "ab"]}',
    b'{"sentences": {"word": ["a"]}}', b'{"sentences": [["a", ["b"]]]}', b'{"words": ["a"]}', b'{"tokens": ["a"]} x',
    b'{"tokens": ["\\ud83d"]}', b'{"tokens": ["a"]',
]  # fmt: skip


@pytest.mark.parametrize("body", WRONG, ids=range(len(WRONG)))
def test_malformed_requests_are_rejected(body: bytes) -> None:
    with pytest.raises(tw.TagwiseError):
        tagging.job_of(parsed_body(body, schemas.TAG_DOMAIN), RequestLimits(tokens=1000))


def test_token_limit_is_equal_on_the_fast_and_general_paths() -> None:
    for words in ([["a"] * 6], [["a"] * 3] * 2, [[]] * 6):
        with pytest.raises(tw.TagwiseError, match="more than 5 tokens"):
            tagging.job_of_tokens(words, RequestLimits(tokens=5))
        with pytest.raises(tw.TagwiseError, match="more than 5 tokens"):
            tagging.job_of({"sentences": words}, RequestLimits(tokens=5))
    assert tagging.job_of_tokens([["a"] * 5], RequestLimits(tokens=5)).cost == 6


def test_job_cost_grows_with_characters_and_paths() -> None:
    """Long tokens and many paths count as expensive work."""
    limits = RequestLimits()

    def cost(request: dict[str, Any]) -> int:
        return tagging.job_of(request, limits).cost

    assert cost({"tokens": ["word"] * 9}) == cost({"tokens": {"word": ["word"] * 9}}) == 10
    for long in ({"tokens": ["x" * 8000]}, {"tokens": {"word": ["x" * 8000]}}, {"text": "x" * 8000}):
        assert cost(long) >= 8000 // tagging.LONG
    assert cost({"tokens": ["word"] * 9, "kbest": 50}) == 500
    assert cost({"tokens": ["word"] * 9, "probabilities": True}) == 20
    _, explained = tagging.explained(None, "", {"tokens": ["x" * 8000]}, limits)  # type: ignore[arg-type]
    assert explained >= 8000 // tagging.LONG
