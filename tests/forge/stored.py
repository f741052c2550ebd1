"""Forged checkpoints, shard folders and labelling folders. Typical use must work or raise a TagwiseError.

Most faults have valid checksums, so that they reach the schema and the checks after it.
"""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tagwise as tw
from tagwise.apps.annotate.exports import EXPORTS
from tagwise.apps.annotate.folder import ProjectSettings
from tagwise.apps.annotate.project import Work
from tagwise.apps.annotate.session import Session

from .forgery import Forgery, seal
from .mutate import ODD, break_header, mutate

WORDS = [
    ["the", "dog", "runs"],
    ["a", "cat", "sees", "it"],
    ["dogs", "bark"],
    ["Ann", "saw", "Rome"],
    ["it", "sees"],
]
LABELS = [["D", "N", "V"], ["D", "N", "V", "P"], ["N", "V"], ["B-PER", "O", "B-LOC"], ["P", "V"]]
SPANS = [["O"] * len(words) if "Ann" not in words else ["B-PER", "O", "B-LOC"] for words in WORDS]

#: Training runs whose checkpoints are forged.
RUNS: dict[str, Callable[[], tw.Tagger]] = {
    "lbfgs": lambda: tw.CRF(features="S1", optimizer="lbfgs", max_iter=4, tol=0.0, n_jobs=1),
    "owlqn": lambda: tw.CRF(features="S1", l1=0.2, max_iter=4, tol=0.0, n_jobs=1),
    "cg": lambda: tw.CRF(features="S1", optimizer="cg", max_iter=4, tol=0.0, n_jobs=1),
    "sgd": lambda: tw.CRF(features="S1", optimizer="sgd", max_iter=4, tol=0.0, n_jobs=1),
    "dual": lambda: tw.CRF(features="S1", optimizer="dual", l2=3.0, max_iter=4, tol=0.0, n_jobs=1),
    "perceptron": lambda: tw.Perceptron(features="S1", max_iter=4, n_jobs=1),
    "arow": lambda: tw.AROW(features="S1", max_iter=4, n_jobs=1),
    "voters": lambda: tw.Perceptron(features="S1", max_iter=4, voters=6, n_jobs=1),
    "history": lambda: tw.Perceptron(features="S1", max_iter=4, lookback=(1, 2), n_jobs=1),
    "kernel": lambda: tw.Perceptron(features="S1", max_iter=4, kernel="rbf", n_jobs=1),
    "svm": lambda: tw.HMSVM(features="S1", max_iter=4, tol=0.0, n_jobs=1),
    "kernel svm": lambda: tw.HMSVM(features="S1", max_iter=4, tol=0.0, kernel="poly", n_jobs=1),
    "boosting": lambda: tw.Boosting(features="S1", max_iter=8, every=2, features_per_round=2, n_jobs=1),
}


@functools.cache
def _home() -> Path:
    """Return a folder with the originals, which exists as long as the process."""
    import atexit

    home = Path(tempfile.mkdtemp(prefix="tagwise-forge-"))
    atexit.register(shutil.rmtree, home, True)
    return home


def _spoiled(rng: random.Random, path: Path) -> str:
    """Replace a file by damaged bytes with an invalid checksum, by nothing, or by a special file."""
    damage = rng.choice(("flip", "flip", "cut", "empty", "missing", "pipe", "device", "folder", "bomb"))
    data = path.read_bytes()
    if damage == "flip" and data:
        at = rng.randrange(len(data))
        path.write_bytes(data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :])
    elif damage == "cut":
        path.write_bytes(data[: rng.randrange(len(data) + 1)])
    elif damage == "bomb":  # NumPy's format, compressed
        with path.open("wb") as out:
            np.savez_compressed(out, header=np.zeros(1 << 16, np.uint8))
    else:
        path.unlink()
        if damage == "pipe":
            os.mkfifo(path)
        elif damage == "device":
            path.symlink_to("/dev/zero")
        elif damage == "folder":
            path.mkdir()
        elif damage == "empty":
            path.touch()
    return f"{path.name}: {damage}"


def _rewritten(rng: random.Random, path: Path) -> str:
    """Write faults into a JSON file with a valid checksum, in an object or in one of its lines."""
    lines = [path.read_bytes()] if path.suffix == ".json" else path.read_bytes().splitlines(keepends=True)
    if not lines:
        return f"{path.name}: empty"
    at = rng.randrange(len(lines))
    value = json.loads(lines[at])
    has_seal = value.pop("crc32", None) is not None
    forged = Forgery(value, magic=b"")
    changes = [break_header(rng, forged) for _ in range(rng.choice((1, 1, 2)))]
    text = json.dumps(forged.header).encode()
    if rng.random() < 0.05:
        text = rng.choice(
            (b"[" * 100_000, b"{}", b"null", text[: rng.randrange(len(text))], b"1" * 5000, b"\xff")
        )
    lines[at] = seal(text) if has_seal else text + b"\n"
    if path.suffix == ".jsonl" and rng.random() < 0.1:
        rng.shuffle(lines)
    path.write_bytes(b"".join(lines))
    return f"{path.name}: {'; '.join(changes)}"


def _finite(tagger: tw.Tagger) -> None:
    if not np.isfinite(tagger.model_.scorer.weights).all():
        raise AssertionError("a model with weights that are not finite")


# --- checkpoints ----------------------------------------------------------------------------------------------


@functools.cache
def _checkpoint(name: str) -> bytes:
    path = _home() / f"{name}.checkpoint"
    RUNS[name]().fit(WORDS, LABELS, checkpoint=tw.Checkpoint(path, every=2))
    return path.read_bytes()


def checkpoint(rng: random.Random, folder: Path) -> tuple[str, Callable[[], str]]:
    """Resume training from a forged checkpoint."""
    name, path = rng.choice(list(RUNS)), folder / "run.checkpoint"
    path.write_bytes(_checkpoint(name))
    if rng.random() < 0.12:
        description = _spoiled(rng, path)
    else:
        forged = Forgery.of(path)
        description = "; ".join(mutate(rng, forged))
        forged.write(path)

    def use() -> str:
        tagger = RUNS[name]()
        try:
            tagger.fit(WORDS, LABELS, checkpoint=tw.Checkpoint(path, every=100, resume=True))
            tagger.predict(WORDS)
        except tw.TagwiseError as error:
            return f"refused: {type(error).__name__}"
        _finite(tagger)
        return "went well"

    return f"{name}: {description}", use


# --- shards ---------------------------------------------------------------------------------------------------


@functools.cache
def _shards() -> Path:
    corpus = _home() / "corpus.conll"
    tw.write(tw.Corpus.from_lists(WORDS, LABELS), corpus, "conll")
    tw.encode(corpus, _home() / "encoded", features="default", shard_tokens=5)
    return _home() / "encoded"


def shards(rng: random.Random, folder: Path) -> tuple[str, Callable[[], str]]:
    """Train on a shard folder with one forged file, and repair it."""
    place = folder / "encoded"
    shutil.copytree(_shards(), place)
    path = rng.choice(sorted(place.iterdir()))
    path = place / "manifest.json" if rng.random() < 0.3 else path
    if rng.random() < 0.1:
        description = _spoiled(rng, path)
    elif path.suffix == ".json":
        description = _rewritten(rng, path)
    else:
        forged = Forgery.of(path)
        description = f"{path.name}: {'; '.join(mutate(rng, forged))}"
        forged.write(path)
        if rng.random() < 0.9:
            _name(place, path)

    def use() -> str:
        try:
            found = tw.Shards(place, on_error=rng.choice(("stop", "skip")))
            repr(found), found.digest, found.label_counts, found.vocabulary(), found.vocabulary(2)
            for k in range(len(found)):
                found.dataset(k), found.dataset(k, 2), found.gold(k), found.place(k, 0), found.note(k)
            _finite(tw.fit_shards(tw.CRF(max_iter=1, n_jobs=1), found))
            _finite(tw.fit_shards(tw.Perceptron(max_iter=1, n_jobs=1), found, parts=rng.choice((1, 2))))
        except tw.TagwiseError as error:
            outcome = f"refused: {type(error).__name__}"
        else:
            outcome = "went well"
        if rng.random() < 0.2:
            try:
                tw.encode(_home() / "corpus.conll", place, features="default", shard_tokens=5)
                tw.fit_shards(tw.Perceptron(max_iter=1, n_jobs=1), tw.Shards(place))
            except tw.TagwiseError as error:
                return f"{outcome}, encoding again refused: {type(error).__name__}"
        return outcome

    return description, use


def _name(place: Path, path: Path) -> None:
    """Write the checksum of a forged file into the manifest."""
    manifest = json.loads((place / "manifest.json").read_bytes())
    manifest.pop("crc32")
    crc = int.from_bytes(path.read_bytes()[12:16], "little")
    if path.name.startswith("vocabulary"):
        manifest["vocabulary"] = crc
    else:
        manifest["shards"][int(path.name[6:11])]["map" if ".map." in path.name else "crc32"] = crc
    (place / "manifest.json").write_bytes(seal(json.dumps(manifest).encode()))


# --- labelling folders ----------------------------------------------------------------------------------------


@functools.cache
def _work() -> Path:
    work = Work(_home() / "work", ProjectSettings(labels=["PER", "LOC"], features="S1"))
    work.add(tw.Corpus.from_lists(WORDS, SPANS), "first.txt", fresh=True)
    work.add(tw.Corpus.from_lists(WORDS[:2], SPANS[:2]), "second.txt")
    work.accept(3, SPANS[3])
    work.skip(1)
    work.accept(0, SPANS[0])
    work.undo()
    work.redo()
    work.close()
    (work.folder / "curve.jsonl").write_text('{"sentences": 3, "score": 0.5}\n')
    return work.folder


#: Features that a folder may name, and files they would read.
FEATURES = (
    "default+gazetteer:/dev/zero", "gazetteer:/etc/passwd", "/etc/passwd", "template:/dev/stdin",
    "function:os:getcwd", "S2", "nonsense", "word[", "regex:x=((((",
)  # fmt: skip


def labelling(rng: random.Random, folder: Path) -> tuple[str, Callable[[], str]]:
    """Open a labelling folder with one forged file, export it, and continue labelling."""
    place = folder / "work"
    shutil.copytree(_work(), place)
    files = sorted(path for path in place.rglob("*") if path.is_file())
    path = rng.choice([*files, place / "work.json", place / "journal.jsonl"])
    if rng.random() < 0.15:
        description = _spoiled(rng, path)
    elif path.name == "work.json" and rng.random() < 0.2:
        value = json.loads(path.read_bytes())
        value.pop("crc32")
        value["features"] = rng.choice(FEATURES)
        path.write_bytes(seal(json.dumps(value).encode()))
        description = f"features := {value['features']}"
    else:
        description = _rewritten(rng, path)
        if path.parent.name == "documents" and rng.random() < 0.9:
            value = json.loads((place / "work.json").read_bytes())
            value.pop("crc32")
            for file in value["documents"]:
                if file["file"] == path.name:
                    file["bytes"], file["crc32"] = path.stat().st_size, zlib.crc32(path.read_bytes())
            (place / "work.json").write_bytes(seal(json.dumps(value).encode()))

    def use() -> str:
        work = None
        try:
            work = Work(place, ProjectSettings())
            for form in EXPORTS:
                if form != "spans" or work.settings.kind == "spans":
                    work.export(form)
            list(work.unlabelled()), work.labelled, work.undoable
            work.undo(), work.redo()
            if rng.random() < 0.25:
                session = Session(work)
                json.dumps(session.state(), ensure_ascii=False).encode()
                session.listed("all", rng.choice([x for x in ODD if isinstance(x, str) and x.isprintable()]))
                session.close()
        except tw.TagwiseError as error:
            return f"refused: {type(error).__name__}"
        finally:
            if work is not None:
                work.close()
        return "went well"

    return description, use


#: Kinds of forgeries by name. A draw returns a description of the change and the call to make.
STORED = {"checkpoint": checkpoint, "shards": shards, "labelling": labelling}


def generator(what: str, seed: int, index: int) -> random.Random:
    """Return the generator of a case."""
    return random.Random(f"{seed}:{what}:{index}")


def trial(what: str, seed: int, index: int, folder: Path) -> tuple[str, str]:
    """Forge and use one folder. Return the changes and the outcome, which begins with "FOUND" if it is not allowed."""
    place = Path(tempfile.mkdtemp(dir=folder))
    description = ""
    try:
        description, use = STORED[what](generator(what, seed, index), place)
        return description, use()
    except Exception as error:
        return description, f"FOUND {type(error).__name__}: {str(error)[:200]!a}"
    finally:
        shutil.rmtree(place, True)
