"""Jobs that write files, the states they may leave when killed, and the correct result after a repetition."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tagwise.apps.compare.cache import opened

#: Sentences that every job reads. They are few, so that writing is a large part of the work.
CORPUS = "".join(
    f"{word}{i % 7} {tag}\n" + ("\n" if i % 5 == 4 else "")
    for i, (word, tag) in enumerate(
        [("the", "DT"), ("dog", "NN"), ("runs", "VB"), ("home", "NN"), (".", "SY")] * 60
    )
)


@dataclass(frozen=True)
class Job:
    """`prepare` the folder, run `work` (which is killed), and `check` the files afterwards."""

    name: str
    prepare: Callable[[Path], None]
    work: Callable[[Path], None]
    check: Callable[[Path], None]


def command(*arguments: object) -> None:
    """Run a tagwise command in this process and raise any error."""
    from tagwise.cli import cli

    cli.main(["--debug", *map(str, arguments)], standalone_mode=False)


def _corpus(folder: Path) -> None:
    (folder / "corpus.txt").write_text(CORPUS)


# --- saving ---------------------------------------------------------------------------------------------------


def prepare_save(folder: Path) -> None:
    """Write two models of different sizes, one of them to the path that the job writes."""
    import tagwise as tw

    (folder / "models").mkdir()
    for name, n in (("small", 1), ("large", 300)):
        X, Y = [["a", "b"] + [f"w{i}" for i in range(n)]], [["X", "Y"] + ["X"] * n]
        tw.HMM().fit(X, Y).save(folder / "models" / name)
    (folder / "out.tagwise").write_bytes((folder / "models" / "small").read_bytes())


def save(folder: Path) -> None:
    """Save both models in turn to one path."""
    import tagwise as tw

    both = [tw.load(folder / "models" / name) for name in ("large", "small")]
    for turn in range(10):
        both[turn % 2].save(folder / "out.tagwise")


def check_save(folder: Path) -> None:
    """Check that the file is one of the two, byte for byte."""
    found = (folder / "out.tagwise").read_bytes()
    assert found in [(folder / "models" / name).read_bytes() for name in ("small", "large")]


# --- training -------------------------------------------------------------------------------------------------


def prepare_train(folder: Path) -> None:
    """Write a corpus, and an older model to the path of the new one."""
    _corpus(folder)
    prepare_save(folder)


def train(folder: Path) -> None:
    """Run `tagwise train`."""
    command("train", folder / "corpus.txt", "-o", folder / "out.tagwise", "--learner", "perceptron",
            "--set", "max_iter=3", "--n-jobs", 1, "-q")  # fmt: skip


def check_train(folder: Path) -> None:
    """Check that the older or the new model loads and predicts."""
    import tagwise as tw

    tagger = tw.load(folder / "out.tagwise")
    labels = {label for sentence in tagger.predict([["the0", "dog1", "runs2"]]) for label in sentence}
    assert labels <= set(tagger.classes_)


def _train_long(out: Path, *more: object) -> None:
    """Run `tagwise train` with many epochs."""
    command("train", out.with_name("corpus.txt"), "-o", out, "--learner", "perceptron",
            "--set", "max_iter=30", "--n-jobs", 1, "-q", *more)  # fmt: skip


def prepare_checkpoint(folder: Path) -> None:
    """Write a corpus, an older model, and the model of an uninterrupted run."""
    prepare_train(folder)
    _train_long(folder / "whole.tagwise")


def checkpoint(folder: Path) -> None:
    """Run `tagwise train` with a checkpoint after every epoch, resuming after a kill."""
    _train_long(folder / "out.tagwise", "--checkpoint", "every=1", "--resume")


def check_checkpoint(folder: Path) -> None:
    """Check for the older model or that of the uninterrupted run, byte for byte. A checkpoint must be readable."""
    from tagwise.learners.checkpoint import StoredCheckpoint

    older, whole = (folder / "models" / "small").read_bytes(), (folder / "whole.tagwise").read_bytes()
    assert (folder / "out.tagwise").read_bytes() in (older, whole)
    kept = folder / "out.tagwise.checkpoint"
    assert not kept.exists() or StoredCheckpoint(str(kept)).header["loop"]["iteration"] >= 1


# --- comparing ------------------------------------------------------------------------------------------------


def compare(folder: Path) -> None:
    """Run `tagwise compare` with a cache, tables and a report."""
    command("compare", "--train", folder / "corpus.txt", "--test", folder / "corpus.txt", "--learner", "hmm",
            "--learner", "perceptron", "-f", "S1", "--set", "max_iter=2", "--workers", 0, "--n-jobs", 1,
            "--cache", folder / "cache", "-o", folder / "t.csv", "-o", folder / "t.md", "-o", folder / "t.json",
            "--report", folder / "r.html")  # fmt: skip


def check_compare(folder: Path) -> None:
    """Check that every existing file is complete: cache entries, tables, the page."""
    for entry in folder.glob("cache/*/*.json"):
        opened(entry.read_bytes(), entry.stem)
    if (folder / "t.csv").exists():
        assert len(list(csv.DictReader(io.StringIO((folder / "t.csv").read_text())))) == 2
    if (folder / "t.md").exists():
        assert len([line for line in (folder / "t.md").read_text().splitlines() if line.startswith("|")]) == 4
    if (folder / "t.json").exists():
        assert len(json.loads((folder / "t.json").read_text())["rows"]) == 2
    if (folder / "r.html").exists():
        assert (folder / "r.html").read_text().endswith("</html>\n")


# --- converting -----------------------------------------------------------------------------------------------


def prepare_convert(folder: Path) -> None:
    """Write a corpus, and an older file to the path of the new one."""
    _corpus(folder)
    (folder / "out.jsonl.gz").write_bytes(b"")


def convert(folder: Path) -> None:
    """Run `tagwise convert` to a compressed file."""
    command("convert", folder / "corpus.txt", folder / "out.jsonl.gz", "--columns", "word,label")


def check_convert(folder: Path) -> None:
    """Check for the older file or all sentences."""
    import tagwise as tw

    if (folder / "out.jsonl.gz").stat().st_size:
        assert len(tw.read(folder / "out.jsonl.gz")) == CORPUS.count("\n\n")


# --- encoding -------------------------------------------------------------------------------------------------


def _encode(folder: Path, features: str, tokens: int) -> None:
    command("encode", folder / "corpus.txt", "-o", folder / "encoded", "-f", features, "--shard-tokens", tokens,
            "--columns", "word,label", "-q")  # fmt: skip


def prepare_encode(folder: Path) -> None:
    """Write a corpus, and a larger number of shards with other features to the output folder."""
    _corpus(folder)
    _encode(folder, "S2", 30)
    (folder / "encoded" / "notes.txt").write_text("theirs")


def encode(folder: Path) -> None:
    """Run `tagwise encode` over older shards."""
    _encode(folder, "S1", 50)


def check_encode(folder: Path) -> None:
    """Check for the older shards, the new ones, or a folder reported as incomplete. Other files stay."""
    import tagwise as tw

    assert (folder / "encoded" / "notes.txt").read_text() == "theirs"
    try:
        shards = tw.Shards(folder / "encoded")
    except tw.exceptions.CorpusError as error:
        if "interrupted" not in str(error):
            raise
        return
    assert (shards.recipe.name, len(shards)) in (("S2", 10), ("S1", 6))
    assert sum(len(shards.dataset(k)) for k in range(len(shards))) == shards.n_sentences == 60
    assert len(list((folder / "encoded").glob("shard-*"))) == 2 * len(shards)


JOBS = (
    Job("save", prepare_save, save, check_save),
    Job("train", prepare_train, train, check_train),
    Job("checkpoint", prepare_checkpoint, checkpoint, check_checkpoint),
    Job("compare", _corpus, compare, check_compare),
    Job("convert", prepare_convert, convert, check_convert),
    Job("encode", prepare_encode, encode, check_encode),
)


def left_behind(folder: Path) -> list[str]:
    """Return the temporary files below a folder."""
    return [
        os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if name.endswith(".tmp")
    ]
