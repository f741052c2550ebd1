"""Programs compared on the same attributes and the same data: time to train, time to tag, and test score.

All that minimize an objective use the sum of log losses + ||w||^2: CRFsuite c2 = 1, tagwise l2 = 1, Wapiti rho2 = 2 (it
halves), CRF++ C = 1/2 (it multiplies the loss). Each runs with one thread, and CPU time is measured. Programs that are
not installed are skipped with a note: `wapiti` (Jekub/Wapiti, not the Debian package of that name), `crf_learn` and
`crf_test` (taku910/crfpp) on PATH, each built from source, and `nltk`.

Wapiti and CRF++ read files and run as processes, so that their time includes reading and writing. The Python packages
get lists. CRF++ requires the same number of columns in each row, so that a missing attribute has a placeholder.
"""

from __future__ import annotations

import random
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tagwise as tw

from .harness import Context, Result, duration
from .workloads import Attributes, NoData, pos, workload

#: Number of training sentences, so that the slowest program ends within minutes. None: all of them.
MOST, QUICK_MOST = 1000, 200
EPOCHS = 5


class Part(NamedTuple):
    """Attributes and labels."""

    X: list[Attributes]
    y: list[list[str]]


class Times(NamedTuple):
    """CPU seconds to train and to tag, and the predicted labels."""

    train: float
    tag: float
    labels: list[list[str]]


def bundled() -> tuple[Part, Part]:
    """Return ewt-pos with the attributes of the workload `pos`: words, affixes, shapes."""
    train, _, test = tw.load_corpus("ewt-pos")
    parts = []
    for corpus in (train, test):
        rows = [[[w] for w in sentence.tokens] for sentence in corpus]
        parts.append(Part([pos(one) for one in rows], [list(sentence.labels) for sentence in corpus]))
    return parts[0], parts[1]


def corpora(most: int | None) -> Iterator[tuple[str, Part, Part]]:
    """Yield name, train and test."""
    train, test = bundled()
    yield "ewt-pos", Part(train.X[:most], train.y[:most]), test
    try:
        X, y = workload("chunk")
        yield "conll2000", Part(X[:most], y[:most]), Part(*workload("chunk", "test"))
    except NoData:
        return


# --- sides --------------------------------------------------------------------------------------------------


def clocked(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of this process in a call, and its result."""
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def ours(learner: Callable[[], tw.Tagger]) -> Callable[[Part, Part, Path], Times]:
    def side(train: Part, test: Part, folder: Path) -> Times:
        seconds, tagger = clocked(lambda: learner().fit(train.X, train.y))
        tagging, labels = clocked(lambda: tagger.predict(test.X))
        return Times(seconds, tagging, labels)

    return side


def crfsuite(train: Part, test: Part, folder: Path) -> Times:
    import pycrfsuite

    def learn() -> None:
        trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
        trainer.set_params({"c1": 0.0, "c2": 1.0})
        for x, y in zip(train.X, train.y):
            trainer.append(x, y)
        trainer.train(str(folder / "m.crfsuite"))

    seconds, _ = clocked(learn)
    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "m.crfsuite"))
    tagging, labels = clocked(lambda: [tagger.tag(x) for x in test.X])
    return Times(seconds, tagging, labels)


def sklearn_crfsuite(train: Part, test: Part, folder: Path) -> Times:
    from sklearn_crfsuite import CRF

    model = CRF(algorithm="lbfgs", c1=0.0, c2=1.0)
    seconds, _ = clocked(lambda: model.fit(train.X, train.y))
    tagging, labels = clocked(lambda: model.predict(test.X))
    return Times(seconds, tagging, [list(y) for y in labels])


def nltk(train: Part, test: Part, folder: Path) -> Times:
    """Run the averaged perceptron of NLTK in a greedy loop, with the previous label as an additional attribute."""
    from nltk.tag.perceptron import AveragedPerceptron

    model = AveragedPerceptron()

    def features(token: Sequence[str], before: str) -> dict[str, float]:
        return {**dict.fromkeys(token, 1.0), f"before={before}": 1.0}

    def learn() -> None:
        model.classes = {label for y in train.y for label in y}
        rng, order = random.Random(1), list(range(len(train.X)))
        for _ in range(EPOCHS):
            rng.shuffle(order)
            for i in order:
                before = "-START-"
                for token, label in zip(train.X[i], train.y[i]):
                    known = features(token, before)
                    guess, _ = model.predict(known)
                    model.update(label, guess, known)
                    before = guess
        model.average_weights()

    def tagged() -> list[list[str]]:
        out = []
        for x in test.X:
            before, found = "-START-", []
            for token in x:
                before, _ = model.predict(features(token, before))
                found.append(before)
            out.append(found)
        return out

    seconds, _ = clocked(learn)
    tagging, labels = clocked(tagged)
    return Times(seconds, tagging, labels)


def plain(attribute: str) -> str:
    """Escape an attribute as a field of a file with blanks as separators."""
    return attribute.replace("_", "__").replace(" ", "_s").replace("\t", "_t") or "_e"


def program(command: Sequence[str], into: Path | None = None) -> float:
    """Return the CPU seconds of another program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(into or "/dev/null", "wb") as out:
        subprocess.run(command, stdout=out, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def last_column(path: Path) -> list[list[str]]:
    """Return the labels that a program wrote after its input."""
    blocks = path.read_text("utf-8").split("\n\n")
    return [
        [line.split()[-1] for line in block.split("\n") if line.strip()] for block in blocks if block.strip()
    ]


def write(part: Part, path: Path, row: Callable[[Sequence[str]], str], labels: bool = True) -> None:
    with path.open("w", encoding="utf-8") as out:
        for x, y in zip(part.X, part.y):
            out.writelines(row(token) + (f" {label}\n" if labels else "\n") for token, label in zip(x, y))
            out.write("\n")


def wapiti(train: Part, test: Part, folder: Path) -> Times:
    def row(token: Sequence[str]) -> str:
        return " ".join(["b", *(f"u{plain(a)}" for a in token)])

    write(train, folder / "train", row)
    write(test, folder / "test", row, labels=False)
    model = str(folder / "m.wapiti")
    learn = ["wapiti", "train", "-a", "l-bfgs", "-1", "0", "-2", "2", "-t", "1", str(folder / "train"), model]
    seconds = program(learn)
    tagging = program(["wapiti", "label", "-m", model, str(folder / "test"), str(folder / "out")])
    return Times(seconds, tagging, last_column(folder / "out"))


def name_of(attribute: str) -> str:
    """Return the name of an attribute: `w[-1]` for `w[-1]=the`."""
    return attribute.split("=", 1)[0]


def crfpp(train: Part, test: Part, folder: Path) -> Times:
    """Write one column per attribute name, since a template counts columns. A missing attribute is `_`."""
    names = sorted({name_of(a) for x in train.X for token in x for a in token})
    width = len(names)

    def row(token: Sequence[str]) -> str:
        found = {name_of(a): plain(a) for a in token}
        return " ".join(found.get(name, "_") for name in names)

    write(train, folder / "train", row)
    write(test, folder / "test", row)
    lines = [f"U{i:02}:%x[0,{i}]" for i in range(width)]
    (folder / "template").write_text("\n".join([*lines, "B"]) + "\n")
    model = str(folder / "m.crfpp")
    learn = [
        "crf_learn",
        "-a",
        "CRF-L2",
        "-c",
        "0.5",
        "-p",
        "1",
        str(folder / "template"),
        str(folder / "train"),
        model,
    ]
    seconds = program(learn)
    tagging = program(["crf_test", "-m", model, str(folder / "test")], folder / "out")
    return Times(seconds, tagging, last_column(folder / "out"))


SIDES: dict[str, Callable[[Part, Part, Path], Times]] = {
    "tagwise CRF": ours(lambda: tw.CRF(features="attributes", l2=1.0, n_jobs=1)),
    "CRFsuite": crfsuite,
    "sklearn-crfsuite": sklearn_crfsuite,
    "Wapiti": wapiti,
    "CRF++": crfpp,
    "tagwise perceptron": ours(lambda: tw.Perceptron(features="attributes", max_iter=EPOCHS, n_jobs=1)),
    "NLTK perceptron": nltk,
}
NEEDS = {"Wapiti": "wapiti", "CRF++": "crf_learn", "NLTK perceptron": "nltk"}
#: Reference of each program: one that minimizes an objective, or one that is trained sentence by sentence.
REFERENCE = {"NLTK perceptron": "tagwise perceptron"}


def missing(name: str) -> bool:
    """Return whether a program or package is missing."""
    need = NEEDS.get(name)
    if need is None:
        return False
    if need == "nltk":
        try:
            import nltk.tag.perceptron  # noqa: F401
        except ImportError:
            return True
        return False
    path = shutil.which(need)
    if need == "wapiti" and path is not None:  # not the web scanner of that name
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        return "Wapiti v" not in done.stdout + done.stderr
    return path is None


def versions() -> Iterator[str]:
    """Yield the versions of the programs that are not Python packages."""
    for command in ("wapiti", "crf_learn"):
        if shutil.which(command):
            done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
            yield (done.stdout + done.stderr).strip().splitlines()[0]


def run(context: Context) -> Result:
    """Run every program on every corpus, alternated, for several rounds."""
    result = Result("peers", "Programs compared: same attributes, same sentences, one thread, CPU time")
    most = QUICK_MOST if context.quick else MOST
    installed = [name for name in SIDES if not missing(name)]
    for name in SIDES.keys() - set(installed):
        result.notes.append(f"{name} is skipped: {NEEDS[name]} was not found.")
    result.notes += versions()
    for corpus, train, test in corpora(most):
        found: dict[str, list[Times]] = {name: [] for name in installed}
        for r in range(context.rounds):
            for name in installed if r % 2 == 0 else reversed(installed):
                with tempfile.TemporaryDirectory() as folder:
                    found[name].append(SIDES[name](train, test, Path(folder)))
        for name in installed:
            times, ours_ = (
                found[name],
                found[REFERENCE.get(name, "tagwise CRF" if "perceptron" not in name else name)],
            )
            report = tw.evaluate(test.y, times[0].labels)
            mine = [(a.train / b.train, a.tag / b.tag) for a, b in zip(times, ours_)]
            spans = any(label[:2] == "B-" for y in test.y for label in y)
            cells = {
                "training": duration([t.train for t in times]),
                "times ours": spread([m[0] for m in mine]),
                "tagging test": duration([t.tag for t in times]),
                "times ours ": spread([m[1] for m in mine]),
                "accuracy": f"{100 * report.accuracy:.2f}",
                "F1": f"{100 * report.f1:.2f}" if spans else "",
            }
            result.add(f"{corpus}, {len(train.X):,} sentences: {name}", cells)
            result.raw[f"{corpus} {name}"] = {
                "train": [t.train for t in times],
                "tag": [t.tag for t in times],
            }
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    result.notes.append(f"Peak memory of the programs: {peak} MB.")
    return result


def spread(ratios: Sequence[float]) -> str:
    """Format the median and the extremes of the ratios per round."""
    return f"{statistics.median(ratios):.1f}x ({min(ratios):.1f}-{max(ratios):.1f})"
