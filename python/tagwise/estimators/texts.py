"""Tagging of raw text."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, overload

import numpy as np

from tagwise.base.domains import Flag
from tagwise.base.parameters import checked
from tagwise.corpus import schemes
from tagwise.corpus.text.spans import TaggedText, TaggedTexts, text_spans
from tagwise.corpus.text.spans import token_spans as spans_of
from tagwise.corpus.text.tokenizer import Tokenized, Tokenizes, tokenized
from tagwise.decoding.lookback import DocumentState
from tagwise.estimators.predicting import Predicting

#: A span of tokens: label, begin, end, and its probability or None.
TokenSpan = tuple[Any, int, int, "float | None"]


def token_spans(
    tagger: Predicting, X: Any, *, probability: bool = True, document_state: DocumentState | None = None
) -> list[list[TokenSpan]]:
    """Return the spans of each sentence: chunks if the labels follow a scheme (B-, I- ...), else one span per token.

    The probability of a chunk is that of exactly this chunk, the probability of a label its marginal. It is None if the
    scores of the learner are not probabilities, and for chunks of a model that looks further back than one label.
    """
    model = tagger._fitted()
    chunked = schemes.has_chunks(model.labels)
    sure = checked("probability", probability, Flag()) and tagger.probabilistic
    if chunked and model.lookback is not None:
        sure = False
    if not sure:
        paths = tagger.predict(X, document_state=document_state)
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
    """Methods for raw text."""

    @overload
    def tag(
        self: Any, texts: str | Tokenized, *, tokenizer: Tokenizes | None = None, probability: bool = True
    ) -> TaggedText: ...
    @overload
    def tag(
        self: Any,
        texts: Iterable[str | Tokenized],
        *,
        tokenizer: Tokenizes | None = None,
        probability: bool = True,
    ) -> TaggedTexts: ...
    def tag(self: Any, texts: Any, *, tokenizer: Tokenizes | None = None, probability: bool = True) -> Any:
        """Tag raw text and return its spans.

        Labels of a scheme (B-, I- ...) give chunks, other labels one span per token.

        Args:
            texts: One text or several, which are split into sentences and tokens.
            tokenizer: `tagwise.Tokenizer`, or a function of a text that returns its tokens, pairs (begin, end), or a
                list of sentences of these. Use the tokenizer of the training data; None is the default `Tokenizer`.
            probability: Compute the probability of each span. Set it to False for speed. It is None for learners other
                than CRF, HMM and MEMM, and for chunks of models with `order` or `history`.

        Returns:
            A list of `TextSpan` for one text, or a list of such lists for several. Offsets count characters of the
            text. Notebooks show the text with its spans in colour.

        Raises:
            NotFittedError: If `fit` has not been called.

        >>> import tagwise as tw
        >>> tagger = tw.CRF(features="S1").fit([["Ann", "sings", "."]], [["B-PER", "O", "O"]])
        >>> [(span.label, span.text, span.start, span.end) for span in tagger.tag("Ann sings.")]
        [('PER', 'Ann', 0, 3)]
        """
        if isinstance(texts, (str, Tokenized)):
            return self.tag([texts], tokenizer=tokenizer, probability=probability)[0]
        found = tokenized(texts, tokenizer, self._jobs())
        sentences = [sentence for text in found for sentence in text.sentences]
        spans = iter(token_spans(self, sentences, probability=probability) if sentences else [])
        out = TaggedTexts()
        for text in found:
            of_text = TaggedText(text.text)
            for first, _ in pairwise(text.bounds.tolist()):
                of_sentence = next(spans)
                chances = [p for *_, p in of_sentence]
                of_text += text_spans(text, [span[:3] for span in of_sentence], chances, first)
            out.append(of_text)
        return out
