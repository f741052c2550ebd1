"""A BiLSTM-CRF with a character CNN, trained from scratch on a bundled corpus.

    python examples/bilstm_crf.py                              # wnut17-ner: named entities of tweets and the like
    python examples/bilstm_crf.py --corpus ewt-pos --loss pointwise_log --epochs 10
    python examples/bilstm_crf.py --load bilstm_crf.pt "Peter flew to London"

Words are represented by an embedding and by a convolution over their characters (Ma and Hovy 2016). A bidirectional
LSTM scores the labels, and `tagwise.torch.CRF` does the rest. If labels are spans, the layer is constrained to their
scheme, so that decoded labels are well formed and ill-formed ones have no probability. Training ends when the dev score
has not improved for some epochs. The best epoch is stored in one file of tensors and plain lists.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import tagwise as tw
import tagwise.torch as tt
from tagwise.corpus.schemes import detect, has_chunks

PAD, UNKNOWN = 0, 1
Sentence = Sequence[str]


# --- words as numbers ---------------------------------------------------------------------------------------


@dataclass
class Vocabulary:
    """Words, characters and labels of a model. 0 is padding, 1 is unknown."""

    words: list[str]
    characters: list[str]
    labels: list[str]
    scheme: str | None

    @staticmethod
    def of(sentences: Sequence[Sentence], labels: Sequence[Sentence], least: int = 2) -> Vocabulary:
        words = Counter(word.lower() for sentence in sentences for word in sentence)
        characters = sorted({c for sentence in sentences for word in sentence for c in word})
        names = sorted({label for sentence in labels for label in sentence})
        kept = sorted(word for word, times in words.items() if times >= least)
        return Vocabulary(kept, characters, names, detect(labels) if has_chunks(names) else None)

    def __post_init__(self) -> None:
        self._word = {word: i for i, word in enumerate(self.words, 2)}
        self._character = {c: i for i, c in enumerate(self.characters, 2)}
        self._label = {label: i for i, label in enumerate(self.labels)}

    def read(self, sentences: Sequence[Sentence], device: str) -> tuple[Tensor, Tensor, Tensor]:
        """Return words (B, T), characters (B, T, C) and lengths (B,)."""
        lengths = [len(sentence) for sentence in sentences]
        longest = max(len(word) for sentence in sentences for word in sentence)
        words = torch.full((len(sentences), max(lengths)), PAD)
        characters = torch.full((*words.shape, max(longest, 3)), PAD)
        for b, sentence in enumerate(sentences):
            words[b, : len(sentence)] = torch.tensor(
                [self._word.get(word.lower(), UNKNOWN) for word in sentence]
            )
            for t, word in enumerate(sentence):
                known = [self._character.get(c, UNKNOWN) for c in word]
                characters[b, t, : len(word)] = torch.tensor(known)
        return words.to(device), characters.to(device), torch.tensor(lengths)

    def gold(self, labels: Sequence[Sentence], device: str) -> Tensor:
        """Return labels (B, T), with -100 for padding and for labels that training did not have."""
        out = torch.full((len(labels), max(map(len, labels))), -100)
        for b, names in enumerate(labels):
            out[b, : len(names)] = torch.tensor([self._label.get(name, -100) for name in names])
        return out.to(device)


# --- the network --------------------------------------------------------------------------------------------


class Tagger(nn.Module):
    """Embeddings and a character CNN, a bidirectional LSTM, and a CRF."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        loss: str = "log",
        hidden: int = 100,
        size: int = 100,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.options = {"loss": loss, "hidden": hidden, "size": size, "dropout": dropout}
        self.words = nn.Embedding(len(vocabulary.words) + 2, size, padding_idx=PAD)
        self.characters = nn.Embedding(len(vocabulary.characters) + 2, 25, padding_idx=PAD)
        self.convolution = nn.Conv1d(25, 30, 3, padding=1)
        self.lstm = nn.LSTM(size + 30, hidden, batch_first=True, bidirectional=True)
        self.score = nn.Linear(2 * hidden, len(vocabulary.labels))
        self.dropout = nn.Dropout(dropout)
        rules = None if vocabulary.scheme is None else {"scheme": vocabulary.scheme}
        self.crf = tt.CRF(
            len(vocabulary.labels), batch_first=True, loss=loss, constraints=rules, labels=vocabulary.labels
        )

    def emissions(self, words: Tensor, characters: Tensor, lengths: Tensor) -> Tensor:
        """Return the scores of the labels (B, T, L)."""
        batch, time, letters = characters.shape
        spelled = self.dropout(self.characters(characters)).view(batch * time, letters, -1).transpose(1, 2)
        shape = self.convolution(spelled).amax(2).view(batch, time, -1)
        inputs = self.dropout(torch.cat([self.words(words), shape], 2))
        packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.score(self.dropout(states))

    def loss(self, sentences: Sequence[Sentence], labels: Sequence[Sentence]) -> Tensor:
        """Return the objective of a step: the log of the sum for exponential losses, the mean for others."""
        device = str(self.score.weight.device)
        words, characters, lengths = self.vocabulary.read(sentences, device)
        how = "log_sum" if self.crf.loss_name.endswith("exp") else "mean"
        scores = self.emissions(words, characters, lengths)
        return self.crf.loss(scores, self.vocabulary.gold(labels, device), lengths=lengths, reduction=how)

    @torch.no_grad()
    def predict(self, sentences: Sequence[Sentence], batch: int = 64) -> list[list[str]]:
        """Return the labels of sentences."""
        self.eval()
        out: list[list[str]] = []
        for i in range(0, len(sentences), batch):
            words, characters, lengths = self.vocabulary.read(
                sentences[i : i + batch], str(self.score.weight.device)
            )
            paths = self.crf.decode(self.emissions(words, characters, lengths), lengths=lengths)
            out += [[self.vocabulary.labels[y] for y in path] for path in paths]
        return out

    def save(self, path: Path) -> None:
        """Write one file of tensors and lists atomically."""
        part = path.with_suffix(".part")
        torch.save(
            {"options": self.options, "vocabulary": asdict(self.vocabulary), "state": self.state_dict()}, part
        )
        part.replace(path)

    @staticmethod
    def load(path: Path) -> Tagger:
        kept = torch.load(path, weights_only=True)
        tagger = Tagger(Vocabulary(**kept["vocabulary"]), **kept["options"])
        tagger.load_state_dict(kept["state"])
        return tagger


# --- training -----------------------------------------------------------------------------------------------


def batches(lengths: Sequence[int], size: int, rng: random.Random) -> list[list[int]]:
    """Return batches of sentences of similar length, in random order."""
    order = sorted(range(len(lengths)), key=lambda i: (lengths[i], rng.random()))
    out = [order[i : i + size] for i in range(0, len(order), size)]
    rng.shuffle(out)
    return out


@dataclass
class Epoch:
    """Results of an epoch."""

    number: int
    loss: float
    score: float


def train(
    tagger: Tagger, train: Any, dev: Any, args: argparse.Namespace, console: Console
) -> Iterator[Epoch]:
    """Train with Adam and yield the epochs. The file has the model with the best dev score so far."""
    rng = random.Random(args.seed)
    optimizer = torch.optim.Adam(tagger.parameters(), lr=args.rate)
    x, y = train.tokens, train.labels
    best, waited = -1.0, 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    for number in range(1, args.epochs + 1):
        tagger.train()
        total, steps = 0.0, batches([len(s) for s in x], args.batch, rng)
        with Progress(*columns, console=console, transient=True) as progress:
            for rows in progress.track(steps, description=f"epoch {number}"):
                loss = tagger.loss([x[i] for i in rows], [y[i] for i in rows])
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(tagger.parameters(), 5.0)
                optimizer.step()
                total += loss.item()
        report = tw.evaluate(dev, tagger.predict(dev.tokens))
        waited = 0 if report.score > best else waited + 1
        if not waited:
            best = report.score
            tagger.save(args.output)
        yield Epoch(number, total / len(steps), report.score)
        if waited >= args.patience:
            return


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("text", nargs="*", help="with --load: sentences to tag, words separated by blanks")
    parser.add_argument("--load", type=Path, help="trained model to tag with")
    parser.add_argument("--corpus", default="wnut17-ner", help="wnut17-ner or ewt-pos (default: %(default)s)")
    parser.add_argument("--loss", default="log", choices=list(tt.LOSSES), help="default: %(default)s")
    parser.add_argument(
        "--epochs", type=int, default=30, help="maximum number of epochs (default: %(default)s)"
    )
    parser.add_argument(
        "--patience",
        type=int,
        default=5,
        help="epochs without a better dev score before stopping (default: %(default)s)",
    )
    parser.add_argument("--batch", type=int, default=32, help="sentences per step (default: %(default)s)")
    parser.add_argument(
        "--hidden", type=int, default=100, help="size of the LSTM state per direction (default: %(default)s)"
    )
    parser.add_argument(
        "--rate", type=float, default=3e-3, help="learning rate of Adam (default: %(default)s)"
    )
    parser.add_argument("--sentences", type=int, help="number of training sentences (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--output", type=Path, default=Path("bilstm_crf.pt"), help="default: %(default)s")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> float:
    """Train and print the score on the test part of the corpus, or tag."""
    args, console = parsed(arguments), Console(stderr=True)
    if args.load:
        tagger = Tagger.load(args.load).to(args.device)
        for sentence in args.text or sys.stdin:
            words = sentence.split()
            if words:
                print(" ".join(f"{w}/{y}" for w, y in zip(words, tagger.predict([words])[0])))
        return 0.0
    torch.manual_seed(args.seed)
    learn, dev, test = tw.load_corpus(args.corpus)
    learn = learn[: args.sentences]
    tagger = Tagger(Vocabulary.of(learn.tokens, learn.labels), args.loss, args.hidden).to(args.device)
    parameters = sum(p.numel() for p in tagger.parameters())
    console.print(
        f"{args.corpus}: {len(learn):,} sentences, {parameters:,} parameters, {tagger.crf}", highlight=False
    )
    for epoch in train(tagger, learn, dev, args, console):
        console.print(f"epoch {epoch.number:>3}  loss {epoch.loss:9.4f}  dev {100 * epoch.score:6.2f}")
    report = tw.evaluate(test, Tagger.load(args.output).to(args.device).predict(test.tokens))
    console.print(f"test: {report.score_name} {100 * report.score:.2f}, model saved to {args.output}")
    return report.score


if __name__ == "__main__":
    main()
