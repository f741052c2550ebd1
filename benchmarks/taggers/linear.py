"""Taggers with linear models: tagwise, CRFsuite, sklearn-crfsuite, CRF++, Wapiti, NLTK.

Packages are imported when a side is used, so that the memory of a process is that of one tagger. Wapiti (Jekub/Wapiti,
not the web scanner of that name) and CRF++ (taku910/crfpp) are programs that read files. They are built from source and
looked up on PATH.

With given attributes, all minimize the sum of log losses + ||w||^2: CRFsuite c2 = 1, tagwise l2 = 1, Wapiti rho2 = 2
(it halves), CRF++ C = 1/2 (it multiplies the loss). CRF++ requires the same number of columns in each row, so that a
missing attribute has a placeholder.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..memory import resident
from .corpora import Part, Token, as_dicts, as_lists

EPOCHS = 5  # of perceptrons on given attributes, the default of NLTK
Labels = list[list[str]]


class Side(Protocol):
    """A tagger in one process. The measured calls are `train` and `tag`."""

    #: Peak memory in bytes and seconds outside of this process, if a program does the work.
    peak: int

    def prepare(self, part: Part, title: str) -> Any:
        """Return the input of the tagger. Its time is not measured."""

    def train(self, train: Any, labels: Labels, model: Path) -> None:
        """Train and write a model to a file or folder."""

    def tagger(self, model: Path) -> Callable[[Any], Labels]:
        """Load a model."""

    def idle(self, model: Path) -> float:
        """Return the CPU seconds of a tagging call that do not depend on the number of tokens."""


class Package:
    """A Python package that gets the output of `prepare` and writes one file."""

    peak = 0

    def prepare(self, part: Part, title: str) -> Any:
        return part.rows

    def idle(self, model: Path) -> float:
        return 0.0


# --- tagwise ------------------------------------------------------------------------------------------------


class Tagwise(Package):
    """An estimator of tagwise on words, on all columns, or on attribute lists."""

    def __init__(self, learner: str, reads: str, **parameters: Any) -> None:
        self.learner, self.reads, self.parameters = learner, reads, parameters

    def prepare(self, part: Part, title: str) -> Any:
        import tagwise as tw

        getattr(tw, self.learner)  # imports its module
        if self.reads == "attributes":
            return as_lists(part.rows)
        if self.reads == "words":
            return part.words
        from tagwise.corpus.sentence import Corpus, Sentence

        columns = ("word", "pos")[: len(part.rows[0][0])]
        sentences = [Sentence(dict(zip(columns, map(list, zip(*rows))))) for rows in part.rows]
        return Corpus(sentences, columns=columns)

    def train(self, train: Any, labels: Labels, model: Path) -> None:
        import tagwise as tw

        tagger = getattr(tw, self.learner)(n_jobs=1, **self.parameters)
        if self.reads == "columns":
            tagger.fit(train.with_labels(labels)).save(model)
        else:
            tagger.fit(train, labels).save(model)

    def tagger(self, model: Path) -> Callable[[Any], Labels]:
        import tagwise as tw

        loaded = tw.load(model).set_params(n_jobs=1)
        return lambda part: [list(y) for y in loaded.predict(part)]


# --- CRFsuite and its Python packages -----------------------------------------------------------------------


class SklearnCrfsuite(Package):
    """The CoNLL-2002 tutorial of sklearn-crfsuite, on that package or on the drop-in of tagwise."""

    def __init__(self, dropin: bool) -> None:
        self.dropin = dropin
        self.crf: Any = None

    def train(self, train: Any, labels: Labels, model: Path) -> None:
        if self.dropin:
            from tagwise.compat import sklearn_crfsuite
        else:
            import sklearn_crfsuite

        self.crf = sklearn_crfsuite.CRF(
            algorithm="lbfgs",
            c1=0.1,
            c2=0.1,
            max_iterations=100,
            all_possible_transitions=True,
            model_filename=str(model),
        )
        self.crf.fit(as_dicts(train), labels)

    def tagger(self, model: Path) -> Callable[[Any], Labels]:
        return lambda rows: [list(y) for y in self.crf.predict(as_dicts(rows))]


class Crfsuite(Package):
    """python-crfsuite with the parameters of its tutorial, or with those of the given attributes."""

    def __init__(self, given: bool, **parameters: Any) -> None:
        self.given, self.parameters = given, parameters

    def prepare(self, part: Part, title: str) -> Any:
        return as_lists(part.rows) if self.given else part.rows

    def extract(self, prepared: Any) -> Any:
        return prepared if self.given else as_dicts(prepared)

    def train(self, train: Any, labels: Labels, model: Path) -> None:
        import pycrfsuite

        trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
        trainer.set_params(self.parameters)
        for x, y in zip(self.extract(train), labels):
            trainer.append(x, y)
        trainer.train(str(model))

    def tagger(self, model: Path) -> Callable[[Any], Labels]:
        import pycrfsuite

        tagger = pycrfsuite.Tagger()
        tagger.open(str(model))
        return lambda part: [tagger.tag(x) for x in self.extract(part)]


# --- NLTK ---------------------------------------------------------------------------------------------------


class Nltk(Package):
    """`PerceptronTagger` on words, with the features and the five epochs that it has."""

    def __init__(self) -> None:
        self.loaded: Any = None

    def prepare(self, part: Part, title: str) -> Any:
        return part.words

    def train(self, train: Any, labels: Labels, model: Path) -> None:
        from nltk.tag.perceptron import PerceptronTagger

        random.seed(1)
        self.loaded = PerceptronTagger(load=False)
        self.loaded.train([list(zip(words, y)) for words, y in zip(train, labels)], nr_iter=EPOCHS)
        parts = [self.loaded.model.weights, self.loaded.tagdict, sorted(self.loaded.classes)]
        model.write_text(json.dumps(parts), "utf-8")

    def tagger(self, model: Path) -> Callable[[Any], Labels]:
        return lambda part: [[label for _, label in self.loaded.tag(words)] for words in part]


class NltkAttributes(Package):
    """The averaged perceptron of NLTK in a greedy loop, with the previous label as an additional attribute."""

    def __init__(self) -> None:
        self.model: Any = None

    def prepare(self, part: Part, title: str) -> Any:
        return as_lists(part.rows)

    @staticmethod
    def features(token: Sequence[str], before: str) -> dict[str, float]:
        return {**dict.fromkeys(token, 1.0), f"before={before}": 1.0}

    def train(self, train: Any, labels: Labels, model: Path) -> None:
        from nltk.tag.perceptron import AveragedPerceptron

        self.model = AveragedPerceptron()
        self.model.classes = {label for y in labels for label in y}
        rng, order = random.Random(1), list(range(len(train)))
        for _ in range(EPOCHS):
            rng.shuffle(order)
            for i in order:
                before = "-START-"
                for token, label in zip(train[i], labels[i]):
                    known = self.features(token, before)
                    guess, _ = self.model.predict(known)
                    self.model.update(label, guess, known)
                    before = guess
        self.model.average_weights()
        model.write_text(json.dumps([self.model.weights, sorted(self.model.classes)]), "utf-8")

    def tagger(self, model: Path) -> Callable[[Any], Labels]:
        def tag(part: Any) -> Labels:
            out = []
            for x in part:
                before, found = "-START-", []
                for token in x:
                    before, _ = self.model.predict(self.features(token, before))
                    found.append(before)
                out.append(found)
            return out

        return tag


# --- programs that read files -------------------------------------------------------------------------------


def cpu_seconds() -> float:
    """Return the CPU time of this process and of the programs that it ran."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + used.ru_utime + used.ru_stime


class Finished(NamedTuple):
    """CPU seconds and peak memory in bytes of a program."""

    seconds: float
    peak: int


@contextmanager
def watched(process: subprocess.Popen[bytes], peak: list[int]) -> Iterator[None]:
    """Sample the peak memory of a process until it ends."""
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(0.02):
            try:
                peak[0] = max(peak[0], resident("VmHWM", process.pid))
            except (OSError, RuntimeError):  # it has ended
                return

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def program(command: Sequence[str], into: Path | None = None) -> Finished:
    """Run a program."""
    peak, begin = [0], cpu_seconds()
    with open(into or "/dev/null", "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        with watched(process, peak):
            if process.wait():
                raise RuntimeError(f"{' '.join(command)}: exit status {process.returncode}")
        return Finished(cpu_seconds() - begin, peak[0])


def plain(attribute: str) -> str:
    """Escape an attribute as a field of a file with blanks as separators."""
    return attribute.replace("_", "__").replace(" ", "_s").replace("\t", "_t") or "_e"


def write(
    rows: Sequence[Sequence[Any]], labels: Labels, path: Path, row: Callable[[Any], str], gold: bool
) -> Path:
    """Write one token per line, with its label if it is to be learned."""
    with path.open("w", encoding="utf-8") as out:
        for x, y in zip(rows, labels):
            out.writelines(row(token) + (f" {label}\n" if gold else "\n") for token, label in zip(x, y))
            out.write("\n")
    return path


def last_column(path: Path) -> Labels:
    """Return the labels that a program wrote after its input."""
    blocks = path.read_text("utf-8").split("\n\n")
    return [
        [line.split()[-1] for line in block.split("\n") if line.strip()] for block in blocks if block.strip()
    ]


def columns_of(token: Token) -> str:
    """Return the columns of a token as a row."""
    return " ".join(map(plain, token))


class Program:
    """A program with one command to train and one to tag. Subclasses say how they are called."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.peak = folder, 0
        self.empty = folder / "empty"

    def tag_file(self, model: Path, path: Path) -> float:
        """Tag a file into the file `out` of the folder and return the CPU seconds."""
        raise NotImplementedError

    def tagger(self, model: Path) -> Callable[[Any], Labels]:
        def tag(path: Path) -> Labels:
            self.tag_file(model, path)
            return last_column(self.folder / "out")

        return tag

    def idle(self, model: Path) -> float:
        """Return the CPU seconds to load the model: those of a file with one short sentence."""
        return min(self.tag_file(model, self.empty) for _ in range(2))


class Wapiti(Program):
    """Wapiti with its chunking pattern and default parameters, or with given attributes and the common objective."""

    def __init__(self, folder: Path, given: bool) -> None:
        super().__init__(folder)
        self.given = given

    def prepare(self, part: Part, title: str) -> Any:
        rows: Sequence[Sequence[Any]] = as_lists(part.rows) if self.given else part.rows

        def row(token: Any) -> str:
            return " ".join(["b", *(f"u{plain(a)}" for a in token)]) if self.given else columns_of(token)

        if title == "train":
            width = len(part.rows[0][0])
            lines = [line for line in WAPITI.splitlines() if width > 1 or ",1]" not in line]
            (self.folder / "pattern").write_text("\n".join(lines) + "\n", "utf-8")
            write(rows[:1], part.labels[:1], self.empty, row, False)
        return write(rows, part.labels, self.folder / title, row, title == "train")

    def train(self, train: Any, labels: Labels, model: Path) -> None:
        how = ["-a", "l-bfgs", "-1", "0", "-2", "2"] if self.given else ["-p", str(self.folder / "pattern")]
        # -w 0: its window on the error rate stops after five iterations if most labels are O, before any span is found.
        self.peak = program(["wapiti", "train", *how, "-w", "0", "-t", "1", str(train), str(model)]).peak

    def tag_file(self, model: Path, path: Path) -> float:
        command = ["wapiti", "label", "-m", str(model), str(path), str(self.folder / "out")]
        return program(command).seconds


class Crfpp(Program):
    """CRF++ with its chunking template and default parameters, or one column per name of a given attribute."""

    def __init__(self, folder: Path, given: bool) -> None:
        super().__init__(folder)
        self.given = given
        self.names: list[str] = []

    def prepare(self, part: Part, title: str) -> Any:
        rows: Sequence[Sequence[Any]] = as_lists(part.rows) if self.given else part.rows
        if title == "train":
            if self.given:
                self.names = sorted({name_of(a) for x in rows for token in x for a in token})
                lines = [f"U{i:02}:%x[0,{i}]" for i in range(len(self.names))] + ["B"]
            else:
                width = len(part.rows[0][0])
                lines = [line for line in CRFPP.splitlines() if width > 1 or ",1]" not in line]
            (self.folder / "template").write_text("\n".join(lines) + "\n", "utf-8")
            write(rows[:1], part.labels[:1], self.empty, self.row, True)
        return write(
            rows, part.labels, self.folder / title, self.row, True
        )  # it reads a label when it tags too

    def row(self, token: Any) -> str:
        if not self.given:
            return columns_of(token)
        found = {name_of(a): plain(a) for a in token}
        return " ".join(found.get(name, "_") for name in self.names)

    def train(self, train: Any, labels: Labels, model: Path) -> None:
        how = ["-a", "CRF-L2", "-c", "0.5"] if self.given else []
        files = [str(self.folder / "template"), str(train), str(model)]
        self.peak = program(["crf_learn", *how, "-p", "1", *files]).peak

    def tag_file(self, model: Path, path: Path) -> float:
        return program(["crf_test", "-m", str(model), str(path)], self.folder / "out").seconds


def name_of(attribute: str) -> str:
    """Return the name of an attribute: `w[-1]` for `w[-1]=the`."""
    return attribute.split("=", 1)[0]


#: The template of CRF++'s example `chunking`.
CRFPP = """\
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]
U10:%x[-2,1]
U11:%x[-1,1]
U12:%x[0,1]
U13:%x[1,1]
U14:%x[2,1]
U15:%x[-2,1]/%x[-1,1]
U16:%x[-1,1]/%x[0,1]
U17:%x[0,1]/%x[1,1]
U18:%x[1,1]/%x[2,1]
U20:%x[-2,1]/%x[-1,1]/%x[0,1]
U21:%x[-1,1]/%x[0,1]/%x[1,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]
B"""
#: The pattern of Wapiti's example `chpattern.txt`.
WAPITI = """\
*
U:Wrd-1 X=%x[ 0,0]
U:wrd-1LL=%X[-2,0]
U:wrd-1 L=%X[-1,0]
U:wrd-1 X=%X[ 0,0]
U:wrd-1 R=%X[ 1,0]
U:wrd-1RR=%X[ 2,0]
U:wrd-2 L=%X[-1,0]/%X[ 0,0]
U:wrd-2 R=%X[ 0,0]/%X[ 1,0]
*:Pos-1LL=%x[-2,1]
*:Pos-1 L=%x[-1,1]
*:Pos-1 X=%x[ 0,1]
*:Pos-1 R=%x[ 1,1]
*:Pos-1RR=%x[ 2,1]
U:Pos-2 L=%X[-1,1]/%X[ 0,1]
U:Pos-2 R=%X[ 0,1]/%X[ 1,1]
*:Pre-1 X=%m[ 0,0,"^.?"]
*:Pre-2 X=%m[ 0,0,"^.?.?"]
*:Pre-3 X=%m[ 0,0,"^.?.?.?"]
*:Pre-4 X=%m[ 0,0,"^.?.?.?.?"]
*:Suf-1 X=%m[ 0,0,".?$"]
*:Suf-2 X=%m[ 0,0,".?.?$"]
*:Suf-3 X=%m[ 0,0,".?.?.?$"]
*:Suf-4 X=%m[ 0,0,".?.?.?.?$"]
*:Caps? L=%t[-1,0,"\\u"]
*:Caps? X=%t[ 0,0,"\\u"]
*:Caps? R=%t[ 1,0,"\\u"]
*:AllC? X=%t[ 0,0,"^\\u*$"]
*:BegC? X=%t[ 0,0,"^\\u"]
*:Punc? L=%t[-1,0,"\\p"]
*:Punc? X=%t[ 0,0,"\\p"]
*:Punc? R=%t[ 1,0,"\\p"]
*:AllP? X=%t[ 0,0,"^\\p*$"]
*:InsP? X=%t[ 0,0,".\\p."]
*:Numb? L=%t[-1,0,"\\d"]
*:Numb? X=%t[ 0,0,"\\d"]
*:Numb? R=%t[ 1,0,"\\d"]
*:AllN? X=%t[ 0,0,"^\\d*$"]"""
