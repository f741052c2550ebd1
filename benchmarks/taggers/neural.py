"""Neural taggers, trained from scratch on the words alone, on one CPU core: spaCy and a BiLSTM-CRF.

spaCy uses the configuration of `spacy init config --optimize efficiency` with one component: `ner` for spans, `tagger`
for parts of speech. The BiLSTM-CRF is examples/bilstm_crf.py with its default parameters. Both stop
by the dev score, or when the time is up, and keep the best model so far.
"""

from __future__ import annotations

import io
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .corpora import Part, Task
from .linear import Labels, Package


class TimeUp(Exception):
    """Raised in training when the time is up."""


@contextmanager
def time_limit(seconds: float) -> Iterator[list[bool]]:
    """Interrupt the block after some seconds. The list is true after an interruption."""
    stopped = [False]

    def stop(*_: object) -> None:
        raise TimeUp

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield stopped
    except TimeUp:
        stopped[0] = True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Neural(Package):
    """A tagger that also reads the dev part and trains for some seconds at most."""

    def __init__(self, task: Task, folder: Path, seconds: float) -> None:
        self.task, self.folder, self.seconds, self.stopped = task, folder, seconds, False

    def parts(self) -> tuple[Part, Part]:
        """Return train and dev. A dev part that is the end of train is cut off."""
        train, dev = self.task.train, self.task.dev
        if train.rows[-len(dev.rows) :] == dev.rows:
            train = Part(train.rows[: -len(dev.rows)], train.labels[: -len(dev.rows)])
        return train, dev

    def prepare(self, part: Part, title: str) -> Any:
        return part.words


class Spacy(Neural):
    """spaCy."""

    def docs(self, nlp: Any, part: Part) -> Iterator[Any]:
        from spacy.tokens import Doc

        kind = "ents" if self.task.spans else "tags"
        for words, labels in zip(part.words, part.labels):
            yield Doc(nlp.vocab, words=words, **{kind: labels})

    def train(self, train: Any, labels: Labels, model: Path) -> None:
        import spacy
        from spacy.cli.init_config import init_config
        from spacy.tokens import DocBin
        from spacy.training.initialize import init_nlp
        from spacy.training.loop import train as learn

        component = "ner" if self.task.spans else "tagger"
        config = init_config(lang="xx", pipeline=[component], optimize="efficiency", gpu=False)
        for title, part in zip(("train", "dev"), self.parts()):
            path = self.folder / f"{title}.spacy"
            DocBin(docs=list(self.docs(spacy.blank("xx"), part))).to_disk(path)
            config["paths"][title] = str(path)
        model.mkdir()
        with time_limit(self.seconds) as stopped:
            learn(init_nlp(config), model, stdout=io.StringIO(), stderr=io.StringIO())
        self.stopped = stopped[0]

    def tagger(self, model: Path) -> Callable[[Any], Labels]:
        import spacy
        from spacy.tokens import Doc

        nlp = spacy.load(model / "model-best")

        def label(token: Any) -> str:
            if not self.task.spans:
                return str(token.tag_)
            return f"{token.ent_iob_}-{token.ent_type_}" if token.ent_type_ else "O"

        return lambda part: [
            [label(token) for token in doc] for doc in nlp.pipe(Doc(nlp.vocab, words=words) for words in part)
        ]


class Bilstm(Neural):
    """The BiLSTM-CRF of the examples."""

    def train(self, train: Any, labels: Labels, model: Path) -> None:
        import torch
        from rich.console import Console

        from examples import bilstm_crf
        from tagwise.corpus.sentence import Corpus

        torch.set_num_threads(1)
        torch.manual_seed(1)
        learned, dev = (Corpus.from_lists(part.words, part.labels) for part in self.parts())
        args = bilstm_crf.parsed(["--device", "cpu", "--output", str(model)])
        vocabulary = bilstm_crf.Vocabulary.of(learned.tokens, learned.labels)
        network = bilstm_crf.Tagger(vocabulary, args.loss, args.hidden)
        with time_limit(self.seconds) as stopped:
            for _ in bilstm_crf.train(network, learned, dev, args, Console(file=io.StringIO())):
                pass
        self.stopped = stopped[0]

    def tagger(self, model: Path) -> Callable[[Any], Labels]:
        from examples import bilstm_crf

        return bilstm_crf.Tagger.load(model).predict
