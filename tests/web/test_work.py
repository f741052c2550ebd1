"""The shorter way of usual requests gives, byte for byte, what the way of all others gives."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tagwise as tw
from tagwise.serve import shapes, work
from tagwise.serve.shelf import Loaded
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
    """Labels that mark no spans, some of which JSON has to escape."""
    sentences = [tw.Sentence({"word": ["a", "b"], "label": ['"quoted"', "é\\n"]}, "label")] * 3
    return tw.Perceptron(features="S1", epochs=2).fit(tw.Corpus(sentences))


@pytest.mark.parametrize("kind", ["spans", "parts", "numbers"])
def test_usual_requests_are_answered_like_others(tagger: tw.CRF, kind: str) -> None:
    if kind == "numbers":
        sentences = corpus()
        numbers = [[len(word) for word in s.tokens] for s in sentences]
        made: Any = tw.Perceptron(features="S1", epochs=2).fit([s.tokens for s in sentences], numbers)
    else:
        made = tagger if kind == "spans" else parts_of_speech()
    loaded = Loaded.of(made, "a model")
    assert loaded.chunked == (kind == "spans")
    jobs = [work.job_of(request, 1000) for request in REQUESTS]
    assert all(job.usual for job in jobs)
    slow = work._answers(loaded, loaded.alone, work.LABELS, jobs)
    assert work._usual(loaded, loaded.alone, jobs) == slow
    assert work._usual(loaded, loaded.alone, jobs[2:3]) == [""]
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
def test_what_asks_for_more_is_not_usual(request_: dict[str, Any]) -> None:
    assert not work.job_of(request_, 1000).usual


@pytest.mark.parametrize("text", ["[1]", ' {"a": 1}', '{"a": 1}\n', "\t3 ", '"é"'])
def test_white_space_around_a_value_is_none_of_it(text: str) -> None:
    assert shapes._read(text) == json.loads(text)


@pytest.mark.parametrize("text", ["", " ", "{", "[1] 2", "\ufeff{}", "nul", '{"a": 1}}', " [1,]"])
def test_what_is_no_json_is_refused_in_the_same_words(text: str) -> None:
    with pytest.raises(json.JSONDecodeError) as wanted:
        json.loads(text)
    with pytest.raises(json.JSONDecodeError) as found:
        shapes._read(text)
    assert str(found.value) == str(wanted.value)
