"""Labelling of a batch: one call of the tagger for all requests with the same options, one response each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import tagwise._core as _core
from tagwise.apps.serve.models import Loaded
from tagwise.apps.web.limits import RequestLimits
from tagwise.apps.web.problems import RefusedRequest
from tagwise.base.exceptions import CorpusError, ParameterError, StoppedError
from tagwise.base.parameters import meant
from tagwise.corpus.sentence import Sentence
from tagwise.corpus.text.spans import token_spans
from tagwise.corpus.text.tokenizer import Tokenized, Tokenizer
from tagwise.estimators import Tagger

#: Assumed characters per token of a text that is not tokenized yet. Small, so that costs are not underestimated.
CHARACTERS = 3
#: Characters that cost as much as one token, to account for long tokens.
LONG = 16
_TOKENIZER = Tokenizer()
_JSON = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":")
).encode  # created once, because `dumps` creates one per call
_WHOLE = Tokenizer(sentences=False)


class RequestOptions(NamedTuple):
    """Options of a request. Requests with equal options share a call."""

    probabilities: bool = False
    kbest: int = 1


#: The options of most requests: labels only.
LABELS = RequestOptions()


@dataclass(eq=False)
class Job:
    """The texts or sentences of one request.

    Attributes:
        cost: Expected time, in tokens of average length with one path.
        plain: Whether the request has sentences of words and no options, so that the response has labels only.
    """

    __slots__ = ("cost", "limits", "options", "plain", "sentences", "texts")
    options: RequestOptions
    texts: list[str] | None
    sentences: list[Any]
    cost: int
    limits: RequestLimits
    plain: bool


def sentence_of(sentence: Any) -> Any:
    """Return a sentence in the form that a tagger accepts."""
    if isinstance(sentence, list):
        return sentence
    if len({len(column) for column in sentence.values()}) > 1:
        sizes = ", ".join(f"{name} {len(column)}" for name, column in sentence.items())
        raise CorpusError(
            f"the columns of a sentence have different lengths: {sizes}. Send one value per token in each"
        )
    return Sentence(sentence)


def columns_of(sentence: Any) -> Iterable[list[str]]:
    """Return the columns of a sentence."""
    return [sentence] if isinstance(sentence, list) else sentence.values()


def length_of(sentence: Any) -> int:
    """Return the number of tokens of a sentence."""
    return len(sentence) if isinstance(sentence, list) else len(next(iter(sentence.values()), ()))


def cost_of(columns: Iterable[Sequence[str]], limits: RequestLimits) -> int:
    """Return the cost of a sentence by its tokens and characters, or raise a RefusedRequest for too long a token."""
    cost = 0
    for column in columns:
        characters = sum(map(len, column))
        if characters > limits.characters:
            for t, token in enumerate(column):
                if len(token) > limits.characters:
                    raise too_long(t, len(token), limits)
        cost += max(len(column), characters // LONG)
    return cost


def job_of_tokens(sentences: list[list[str]], limits: RequestLimits) -> Job:
    """Return the job of a request with words only."""
    if len(sentences) > limits.tokens or sum(map(len, sentences)) > limits.tokens:
        raise too_many(limits)
    return Job(LABELS, None, sentences, cost_of(sentences, limits) + len(sentences), limits, True)


def job_of(request: dict[str, Any], limits: RequestLimits) -> Job:
    """Return the job of a request of /tag, or raise a RefusedRequest if it exceeds the limits on tokens."""
    options = RequestOptions(request.get("probabilities", False), request.get("kbest", 1))
    texts = request.get("texts") if "text" not in request else [request["text"]]
    times = options.kbest + options.probabilities
    if texts is not None:
        cost = sum(len(text) // CHARACTERS + 1 for text in texts)
        return Job(options, texts, [], cost * times, limits, False)
    sentences = request["sentences"] if "sentences" in request else [request["tokens"]]
    if options == LABELS and all(type(sentence) is list for sentence in sentences):
        return job_of_tokens(sentences, limits)
    if len(sentences) > limits.tokens or sum(map(length_of, sentences)) * options.kbest > limits.tokens:
        raise too_many(limits)
    cost = sum(cost_of(columns_of(sentence), limits) for sentence in sentences) + len(sentences)
    return Job(options, None, [sentence_of(sentence) for sentence in sentences], cost * times, limits, False)


def too_many(limits: RequestLimits) -> RefusedRequest:
    """Return the error for a request with too many tokens."""
    return RefusedRequest(
        413,
        "LimitError",
        f"the request has more than {limits.tokens:,} tokens or sentences, counted for each of the kbest paths. "
        "Send smaller requests, or start the server with a higher --max-tokens",
    )


def too_long(t: int, length: int, limits: RequestLimits) -> RefusedRequest:
    """Return the error for a token that is too long."""
    return RefusedRequest(
        413,
        "LimitError",
        f"token {t} of a sentence has {length:,} characters, more than {limits.characters:,}. Split it, or start the "
        "server with a higher --max-token-length",
    )


# --- a batch ----------------------------------------------------------------------------------------------------


def run(loaded: Loaded, name: str, jobs: Sequence[Job], single_threaded: bool) -> list[bytes | Exception]:
    """Return the responses of the jobs in order. An error in one job is returned as its response."""
    tagger = loaded.single_threaded if single_threaded else loaded.tagger
    head = f'{{"model":{_JSON(name)},"version":{loaded.version},"results":['
    out: list[bytes | Exception] = [b""] * len(jobs)
    # By None for plain jobs of a model that reads words only.
    groups: dict[RequestOptions | None, list[int]] = {}
    for i, job in enumerate(jobs):
        groups.setdefault(None if job.plain and loaded.words else job.options, []).append(i)
    for options, members in groups.items():
        group = [jobs[i] for i in members]
        try:
            found = (
                _label_plain(loaded, tagger, group)
                if options is None
                else _label(loaded, tagger, options, group)
            )
        except StoppedError:
            raise
        except Exception as error:
            if len(members) == 1:
                out[members[0]] = error
                continue
            for i in members:  # find the job that is wrong
                (out[i],) = run(loaded, name, [jobs[i]], single_threaded)
            continue
        for i, results in zip(members, found):
            out[i] = f"{head}{results}]}}\n".encode()
    return out


def _label_plain(loaded: Loaded, tagger: Tagger, jobs: list[Job]) -> list[str]:
    """Return the results of plain jobs. Faster than `_label`, since the JSON of labels is prepared."""
    sentences = [sentence for job in jobs for sentence in job.sentences]
    if not sentences:
        return [""] * len(jobs)
    path, offsets = tagger.model_.predict_numbers(sentences, tagger._query())
    results = _written(loaded, path.tolist(), offsets.tolist())
    out, at = [], 0
    for job in jobs:
        n = len(job.sentences)
        out.append(results[at] if n == 1 else ",".join(results[at : at + n]))
        at += n
    return out


def _written(loaded: Loaded, path: list[int], bounds: list[int]) -> list[str]:
    """Return the JSON of each sentence with its labels and the spans that they mark."""
    text_of, outside, chunked, spans = loaded.texts.__getitem__, loaded.outside, loaded.chunked, ""
    nothing = '"O",'
    out = []
    for begin, end in pairwise(bounds):
        own, n = path[begin:end], end - begin
        if chunked and own.count(outside) == n:
            out.append(f'{{"labels":[{(nothing * n)[:-1]}],"spans":[]}}')
            continue
        if chunked:
            spans = _spans(loaded, own)
        out.append(f'{{"labels":[{",".join(map(text_of, own))}]{spans}}}')
    return out


def _spans(loaded: Loaded, path: list[int]) -> str:
    """Return the JSON member with the spans of a sentence."""
    found = token_spans([loaded.labels[y] for y in path], True)
    return f',"spans":{_JSON([{"label": y, "tokens": [begin, end]} for y, begin, end in found])}'


def _label(loaded: Loaded, tagger: Tagger, options: RequestOptions, jobs: list[Job]) -> list[str]:
    """Return the results of each job as JSON texts."""
    fresh = [text for job in jobs for text in job.texts or ()]
    cut = iter(_TOKENIZER.many(fresh, tagger.n_jobs) if fresh else ())  # type: ignore[attr-defined]
    units: list[list[Tokenized | list[Any]]] = []
    for job in jobs:
        if job.texts is None:
            units.append([[sentence] for sentence in job.sentences])
            continue
        texts = [next(cut) for _ in job.texts]
        if sum(map(len, texts)) * options.kbest > job.limits.tokens:
            raise too_many(job.limits)
        cost_of((text.tokens for text in texts), job.limits)
        units.append(list(texts))
    sentences: list[Any] = []
    for of_job in units:
        for unit in of_job:
            sentences += unit.sentences if isinstance(unit, Tokenized) else unit
    sentences = _uniform(sentences, list(tagger.model_.recipe.columns))
    labelled = iter(_labelled(loaded, tagger, options, sentences))
    return [_JSON([_result(loaded, options, unit, labelled) for unit in of_job])[1:-1] for of_job in units]


def _uniform(sentences: list[Any], columns: list[str]) -> list[Any]:
    """Convert sentences to one form: lists of words if the features read words only, else columns."""
    if len(columns) < 2 and not any(isinstance(sentence, Sentence) for sentence in sentences):
        return sentences
    needed = ", ".join(columns)
    out: list[Any] = []
    for sentence in sentences:
        if not isinstance(sentence, Sentence):
            if len(columns) > 1 and sentence:
                raise CorpusError(
                    f"the model reads the columns {needed}. Send each sentence as an object with them"
                )
            out.append(sentence if len(columns) < 2 else Sentence({name: [] for name in columns}))
            continue
        if missing := [name for name in columns if name not in sentence.fields]:
            found = ", ".join(sentence.fields)
            raise CorpusError(
                f"a sentence has no column {missing[0]!r}, only {found}. The model reads {needed}. Send all of them"
            )
        out.append(
            sentence if len(columns) > 1 else list(sentence.fields[columns[0]]) if columns else sentence
        )
    return out


class Labelled(NamedTuple):
    """The labels of a sentence, with probabilities and paths on request."""

    labels: Sequence[Any]
    spans: Sequence[tuple[Any, int, int, float | None]] | None = None
    chances: list[float] | None = None
    chance: float | None = None
    kbest: list[dict[str, Any]] | None = None


def _labelled(
    loaded: Loaded, tagger: Tagger, options: RequestOptions, sentences: list[Any]
) -> Iterable[Labelled]:
    if not sentences:
        return []
    if options.probabilities and not loaded.sure:
        raise ParameterError(
            f"the scores of {tagger.name} are not probabilities. Omit probabilities, or serve a CRF"
        )
    best: list[list[dict[str, Any]]] | None = None
    if options.kbest > 1:
        best = _best(loaded, tagger, options.kbest, sentences)
    if options.probabilities:
        out = []
        for i, found in enumerate(tagger.predict_confidence(sentences)):
            _core.Stop.check()
            spans = [(*span, round(float(p), 6)) for span, p in found.chunks] if loaded.chunked else None
            chances = np.round(np.asarray(found.tokens, dtype=float), 6).tolist()
            chance = round(float(found.probability), 6)
            out.append(Labelled(found.labels, spans, chances, chance, None if best is None else best[i]))
        return out
    paths: Iterable[Sequence[Any]] = (
        tagger.predict(sentences)
        if best is None
        else ((found[0]["labels"] if found else []) for found in best)
    )
    chunked = loaded.chunked
    return [
        Labelled(
            path,
            [(*span, None) for span in token_spans(path, True)] if chunked else None,
            kbest=None if best is None else best[i],
        )
        for i, path in enumerate(paths)
    ]


def _best(loaded: Loaded, tagger: Tagger, k: int, sentences: list[Any]) -> list[list[dict[str, Any]]]:
    found = [
        [{"labels": list(labels), "score": round(score, 6)} for labels, score in paths]
        for paths in tagger.predict_kbest(sentences, k)
    ]
    if tagger.probabilistic:
        for paths, chances in zip(found, tagger.predict_kbest(sentences, k, probability=True)):
            for path, (_, p) in zip(paths, chances):
                path["probability"] = round(float(p), 6)
    return found


def _result(
    loaded: Loaded, options: RequestOptions, unit: Tokenized | list[Any], labelled: Any
) -> dict[str, Any]:
    """Return the result of one text or one sentence. A text has its sentences in order."""
    _core.Stop.check()
    text = unit if isinstance(unit, Tokenized) else None
    bounds = [0, 1] if text is None else text.bounds.tolist()
    labels: list[Any] = []
    spans: list[dict[str, Any]] = []
    chances: list[float] = []
    whole: list[float] = []
    best: list[Any] = []
    offsets = [] if text is None else text.offsets.tolist()
    for first, _ in pairwise(bounds):
        found: Labelled = next(labelled)
        labels += found.labels
        for label, begin, end, p in found.spans or ():
            span = {"label": label, "tokens": [first + begin, first + end]}
            if text is not None:
                start, stop = offsets[first + begin][0], offsets[first + end - 1][1]
                span |= {"start": start, "end": stop, "text": text.text[start:stop]}
            if p is not None:
                span["probability"] = p
            spans.append(span)
        chances += found.chances or ()
        if found.chance is not None:
            whole.append(found.chance)
        best.append(found.kbest)
    out: dict[str, Any] = {"labels": labels}
    if text is not None:
        out = {"tokens": text.tokens, "offsets": offsets, "sentences": bounds, **out}
    if loaded.chunked:
        out["spans"] = spans
    if options.probabilities:
        out["probabilities"], out["sentence_probabilities"] = chances, whole
    if options.kbest > 1:
        out["kbest"] = best
    return out


# --- explanations -----------------------------------------------------------------------------------------------


def explained(
    loaded: Loaded, name: str, request: dict[str, Any], limits: RequestLimits
) -> tuple[Callable[[], bytes], int]:
    """Return a function that computes the response to a request of /explain, and its cost."""
    text, tokens = request.get("text"), request.get("tokens", [])
    most = min(limits.explained, limits.tokens)
    if text is None and length_of(tokens) > most:
        raise too_much_explained(most)
    cost = len(text) // CHARACTERS + 1 if text is not None else cost_of(columns_of(tokens), limits)

    def body() -> bytes:
        tagger = loaded.single_threaded
        sentence: Any = sentence_of(tokens) if text is None else _WHOLE(text).tokens
        if len(sentence) > most:
            raise too_much_explained(most)
        if text is not None:
            cost_of([sentence], limits)
        against, token = request.get("against"), request.get("token")
        if against is not None:
            known = {str(label): label for label in tagger.classes_}
            if against not in known:
                raise ParameterError(
                    f"the model has no label {against!r}{meant(against, known)}. It has: {' '.join(known)}"
                )
            if token is None:
                raise ParameterError("against requires token. Add the index of the token, counted from 0")
            against = known[against]
        found = tagger.explain(sentence, token=token, against=against).to_dict()
        for decision in found["decisions"]:
            decision["votes"] = decision["votes"][: request.get("top", 10)]
        return json.dumps({"model": name, "version": loaded.version, **found}).encode() + b"\n"

    return body, cost


def too_much_explained(most: int) -> RefusedRequest:
    """Return the error for a sentence that is too long to explain."""
    return RefusedRequest(
        413,
        "LimitError",
        f"/explain takes a sentence of at most {most:,} tokens. Send a shorter one, or start the server with a higher "
        "--max-explained",
    )
