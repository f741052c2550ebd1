"""Raw text in, spans out."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, overload

import numpy as np

from tagwise.base.domains import Flag
from tagwise.base.parameters import checked
from tagwise.corpus import schemes
from tagwise.corpus.text.spans import TextSpan, text_spans
from tagwise.corpus.text.spans import token_spans as spans_of
from tagwise.corpus.text.tokenizer import Tokenized, Tokenizes, tokenized
from tagwise.decoding.lookback import Memory
from tagwise.estimators.predicting import Predicting

#: A span of tokens: label, begin, end, and its probability where there is one.
TokenSpan = tuple[Any, int, int, "float | None"]


def token_spans(
    tagger: Predicting, X: Any, *, probability: bool = True, memory: Memory | None = None
) -> list[list[TokenSpan]]:
    """The spans of each sentence: chunks where the labels are of a scheme (B-, I- ...), else one a token.

    The probability of a chunk is that exactly this chunk is there, that of a token's label its marginal. It is None for
    learners whose scores are no probabilities, and for chunks of a model that looks further back than one label.
    """
    model = tagger._fitted()
    chunked = schemes.has_chunks(model.labels)
    sure = checked("probability", probability, Flag()) and tagger.probabilistic
    if chunked and model.lookback is not None:
        sure = False
    if not sure:
        paths = tagger.predict(X, memory=memory)
        return [[(*span, None) for span in spans_of(path, chunked)] for path in paths]
    out: list[list[TokenSpan]] = []
    for found in tagger.predict_confidence(X):
        if chunked:
            out.append([(*span, p) for span, p in found.chunks])
        else:
            chances = np.asarray(found.tokens).tolist()
            out.append([(y, t, t + 1, p) for t, (y, p) in enumerate(zip(found.labels, chances))])
    return out


class Texts:
    """What taggers do with raw text."""

    @overload
    def tag(
        self: Any, texts: str | Tokenized, *, tokenizer: Tokenizes | None = None, probability: bool = True
    ) -> list[TextSpan]: ...
    @overload
    def tag(
        self: Any,
        texts: Iterable[str | Tokenized],
        *,
        tokenizer: Tokenizes | None = None,
        probability: bool = True,
    ) -> list[list[TextSpan]]: ...
    def tag(self: Any, texts: Any, *, tokenizer: Tokenizes | None = None, probability: bool = True) -> Any:
        """The spans of a text, or of each of many: label, text, start, end (characters of the text), probability.

        Labels of a scheme (B-, I- ...) give its chunks; any other labels give a span for every token.

        Args:
            texts: a text, or many, which are cut into tokens and sentences.
            tokenizer: that of the library unless given: a `tagwise.Tokenizer`, or a function of a text that returns its
                tokens, pairs (begin, end), or a list of sentences of these. Take the one that the training data was
                made with.
            probability: ask how sure the tagger is of each span. None for learners without probabilities (all but CRF,
                HMM and MEMM), and for chunks of models that look further back than one label (`order`, `history`).
        """
        if isinstance(texts, (str, Tokenized)):
            return self.tag([texts], tokenizer=tokenizer, probability=probability)[0]
        found = tokenized(texts, tokenizer, self._jobs())
        sentences = [sentence for text in found for sentence in text.sentences]
        spans = iter(token_spans(self, sentences, probability=probability) if sentences else [])
        out: list[list[TextSpan]] = []
        for text in found:
            of_text: list[TextSpan] = []
            for first, _ in pairwise(text.bounds.tolist()):
                of_sentence = next(spans)
                chances = [p for *_, p in of_sentence]
                of_text += text_spans(text, [span[:3] for span in of_sentence], chances, first)
            out.append(of_text)
        return out


__all__ = ["Texts", "TokenSpan", "token_spans"]
