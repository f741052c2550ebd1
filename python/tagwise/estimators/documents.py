"""Components of spaCy pipelines that run a tagger. spaCy is imported when a component is created."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tagwise.base.exceptions import ParameterError, not_fitted
from tagwise.base.parameters import meant
from tagwise.base.writing import atomic
from tagwise.corpus.interop import sentences_of
from tagwise.corpus.schemes import spans
from tagwise.estimators.base import Tagger

#: Targets of a component: entities, spans under a key, tags of tokens.
TARGETS = ("ents", "spans", "tag")
FACTORY = "tagwise"
#: Number of documents per batch.
BATCH = 64


class Component:
    """Component of a spaCy pipeline that labels tokens and writes the result into the document.

    Args:
        tagger: Fitted tagger that uses only the texts of tokens, or None until `from_disk` is called.
        into: Target: "ents", "spans" (under `key`) or "tag".
        key: Key of the spans in `Doc.spans`.
    """

    def __init__(self, tagger: Tagger | None, into: str = "ents", key: str = "tagwise") -> None:
        if into not in TARGETS:
            raise ParameterError(
                f"into={into!r}: expected one of {', '.join(TARGETS)}{meant(str(into), TARGETS)}"
            )
        self.tagger, self.into, self.key = tagger, into, key

    def __call__(self, document: Any) -> Any:
        return next(self.pipe([document]))

    def pipe(self, stream: Iterable[Any], *, batch_size: int = BATCH, **_: Any) -> Iterator[Any]:
        """Yield the documents of a stream with their labels, in batches."""
        held: list[Any] = []
        for document in stream:
            held.append(document)
            if len(held) >= batch_size:
                yield from self._labelled(held)
                held = []
        yield from self._labelled(held)

    def _labelled(self, documents: list[Any]) -> list[Any]:
        if self.tagger is None:
            raise not_fitted("the component has no model. Pass a tagger, or load one with from_disk")
        parts = [(d, tokens) for d, document in enumerate(documents) for tokens in sentences_of(document)]
        found = self.tagger.predict([[token.text for token in tokens] for _, tokens in parts])
        of: list[list[tuple[Any, list[Any]]]] = [[] for _ in documents]
        for (d, tokens), labels in zip(parts, found):
            of[d].append((tokens, labels))
        for document, pieces in zip(documents, of):
            self._write(document, pieces)
        return documents

    def _write(self, document: Any, pieces: list[tuple[Any, list[Any]]]) -> None:
        if self.into == "tag":
            for tokens, labels in pieces:
                for token, label in zip(tokens, labels):
                    token.tag_ = str(label)
            return
        from spacy.tokens import Span

        made = []
        for tokens, labels in pieces:
            first = tokens[0].i if len(tokens) else 0
            made += [Span(document, first + s.begin, first + s.end, label=s.type) for s in spans(labels)]
        if self.into == "ents":
            document.ents = made
        else:
            document.spans[self.key] = made

    # --- serialisation by spaCy --------------------------------------------------------------------------

    def to_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> None:
        """Write the model into the folder of the component."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        if self.tagger is not None:
            self.tagger.save(folder / "model.tagwise")

    def from_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> Component:
        """Read the model that `to_disk` wrote. Functions that it names stay missing, as in `tagwise.load`."""
        from tagwise.estimators import load

        self.tagger = load(Path(path) / "model.tagwise")
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the model file as bytes."""
        with tempfile.TemporaryDirectory() as folder:
            self.to_disk(folder)
            return (Path(folder) / "model.tagwise").read_bytes()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Component:
        """Read the model from the bytes of `to_bytes`."""
        with tempfile.TemporaryDirectory() as folder:
            with atomic(Path(folder) / "model.tagwise") as file:
                file.write(data)
            return self.from_disk(folder)


def _create(nlp: Any, name: str, into: str, key: str) -> Component:
    """Return a component without a model, as the factory of spaCy."""
    return Component(None, into, key)


def register() -> None:
    """Register the factory `tagwise` with spaCy, for pipelines that are loaded from disk."""
    from spacy.language import Language

    if not Language.has_factory(FACTORY):
        Language.factory(FACTORY, default_config={"into": "ents", "key": "tagwise"})(_create)


def spacy_component(
    nlp: Any, tagger: Tagger, *, into: str = "ents", key: str = "tagwise", name: str = "tagwise", **place: Any
) -> Component:
    """Add a tagger to a spaCy pipeline, which is then saved and loaded together with it.

    A process that loads the pipeline calls `tagwise.estimators.documents.register()` first.

    Args:
        nlp: The pipeline. If an earlier component sets sentence boundaries, each sentence is labelled separately.
        tagger: Fitted tagger that uses only words.
        into: "ents" writes entities, "spans" writes spans under `key`, "tag" writes tags of tokens. Use "spans" if
            spans may overlap existing ones.
        key: Key of the spans in `Doc.spans`. Change it to run several taggers.
        name: Name of the component. Change it to run several taggers.
        place: Position in the pipeline: `before`, `after`, `first` or `last`, as for `nlp.add_pipe`.

    Returns:
        The component.

    Raises:
        NotFittedError: If the tagger is not fitted.
        ParameterError: If `into` is not one of the targets.
    """
    if not hasattr(tagger, "model_"):
        raise not_fitted(f"this {type(tagger).__name__} is not fitted. Call fit first")
    register()
    Component(tagger, into, key)  # raises a ParameterError before spaCy raises its own
    made: Component = nlp.add_pipe(FACTORY, name=name, config={"into": into, "key": key}, **place)
    made.tagger = tagger
    return made
