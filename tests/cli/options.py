"""Table of checks, one per option of each command, and the files that the checks run on."""

from __future__ import annotations

import functools
import importlib
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import click
import pytest
from click.testing import CliRunner, Result

import tagwise as tw
from tagwise.cli import cli
from tagwise.estimators.base import Tagger
from tagwise.ray.jobs import Failed

Row = Callable[["Bench"], None]
ROWS: dict[tuple[str, str], Row] = {}


def row(command: str, *spellings: str) -> Callable[[Row], Row]:
    """Register the check of an option under each of its spellings."""

    def enter(check: Row) -> Row:
        for spelling in spellings:
            assert (command, spelling) not in ROWS
            ROWS[command, spelling] = check
        return check

    return enter


def spellings(command: str) -> set[str]:
    """All spellings of a command's options, and the names of its arguments."""
    found: click.Command = cli if command == "" else cli.load(command)
    return {text for param in found.params for text in (*param.opts, *param.secondary_opts)}


def invoke(*args: object, text: str | None = None) -> Result:
    """Run a command in this process. The result holds any exception that it raised."""
    return CliRunner().invoke(cli, [str(a) for a in args], input=text, terminal_width=200)


WORDS = {
    "Rosa": ("N", "B-PER"),
    "Lund": ("N", "B-LOC"),
    "runs": ("V", "O"),
    "to": ("P", "O"),
    "a": ("D", "O"),
}


@functools.cache
def corpus(n: int, seed: int) -> tw.Corpus:
    """Return sentences with three columns. About a fifth of the labels are drawn at random instead of from WORDS."""
    rng = random.Random(seed)
    out = []
    for i in range(n):
        words = [rng.choice(list(WORDS)) for _ in range(rng.randint(2, 5))]
        labels = [WORDS[w][1] if rng.random() < 0.8 else rng.choice(["O", "B-LOC"]) for w in words]
        named = {"word": words, "pos": [WORDS[w][0] for w in words], "label": labels}
        out.append(tw.Sentence(named, "label", doc=f"d{i}" if i % 4 == 0 else None))
    return tw.Corpus(out)


TRAIN, DEV, TEST = corpus(24, 0), corpus(10, 1), corpus(12, 2)
QUICK = ("-q", "-f", "S1", "--set", "max_iter=4")


class Here:
    """Replacement for `tagwise.ray.jobs.Jobs`: runs jobs in this process and records addresses and worker counts."""

    requested: ClassVar[list[object]] = []
    ray = SimpleNamespace(put=lambda value: value)

    def __init__(self, kind: Any, spec: Any, workers: int | None = None, **_: Any) -> None:
        self.worker = kind(spec)
        self.requested.append(workers)

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, jobs: Sequence[tuple[str, tuple[Any, ...]]]) -> Iterator[tuple[int, Any]]:
        """Yield the results in the order of the jobs."""
        for i, (_, given) in enumerate(jobs):
            try:
                yield i, self.worker.work(*given)
            except tw.TagwiseError as error:
                yield i, Failed(error)


class Bench:
    """Corpora, a model and helpers that run commands and require success."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = folder, patch
        patch.setattr(Here, "requested", [])
        self.train, self.dev, self.test = (folder / f"{name}.txt" for name in ("train", "dev", "test"))
        for data, path in ((TRAIN, self.train), (DEV, self.dev), (TEST, self.test)):
            tw.write(data, path, "conll")
        self.model = self.saved(fitted())

    def cluster(self, *where: str) -> list[object]:
        """Replace Ray by this process in modules that import `Jobs`. Return the list of its addresses and workers."""
        for module in ("tagwise.ray.jobs", *where):
            self.patch.setattr(importlib.import_module(module), "Jobs", Here)
        self.patch.setattr("tagwise.ray.pool.connected", lambda address=None: Here.requested.append(address))
        return Here.requested

    def path(self, name: str, text: str | None = None) -> Path:
        """Return a path in the folder. If `text` is given, write it to the file."""
        path = self.folder / name
        if text is not None:
            path.write_text(text, encoding="utf-8")
        return path

    def saved(self, tagger: Tagger, name: str = "m.tagwise", **options: Any) -> Path:
        """Save a tagger and return the path."""
        tagger.save(self.path(name), **options)
        return self.path(name)

    def ok(self, *args: object, text: str | None = None) -> Result:
        """Run a command, require exit code 0 and return the result."""
        result = invoke(*args, text=text)
        assert result.exit_code == 0, (args, result.output, result.exception)
        return result

    def made(self, *args: object, quick: tuple[object, ...] = QUICK) -> bytes:
        """Return the bytes of the model file that ``train`` writes."""
        out = self.path("made.tagwise")
        out.unlink(missing_ok=True)
        self.ok("train", *args, "-o", out, *quick)
        return out.read_bytes()

    def bytes_of(self, tagger: Tagger, **options: Any) -> bytes:
        """Return the bytes of the model file of a tagger fitted through the Python interface."""
        return self.saved(tagger, "expected.tagwise", **options).read_bytes()

    def threads(self) -> list[Any]:
        """Return a list to which every call of ``fit`` and ``predict`` appends its ``n_jobs``."""
        seen: list[Any] = []
        for name in ("fit", "predict"):
            inner = getattr(Tagger, name)

            def noting(tagger: Tagger, *args: Any, inner: Any = inner, **options: Any) -> Any:
                seen.append(tagger.get_params()["n_jobs"])
                return inner(tagger, *args, **options)

            self.patch.setattr(Tagger, name, noting)
        return seen


def crf(**params: Any) -> tw.CRF:
    """Return a CRF with the parameters of QUICK."""
    return tw.CRF(**{"features": "S1", "max_iter": 4, **params})


@functools.cache
def fitted() -> Tagger:
    """Return the model that most checks share."""
    return crf().fit(TRAIN)


def own_features(sentence: Any) -> list[list[str]]:
    """Feature function that models of these tests refer to by import path."""
    return [["w=" + word, "end=" + word[-1]] for word in sentence.fields["word"]]


def functional(bench: Bench) -> tuple[Path, str]:
    """Save a model that refers to a feature function. Return its path and the function's import path."""
    return bench.saved(crf(features=own_features).fit(TRAIN), "f.tagwise"), f"{__name__}:own_features"


def function_rows(command: str, *args: str) -> None:
    """Register --functions and --trust: the function is missing without them and available with either of them."""

    @row(command, "--functions", "--trust")
    def functions(bench: Bench) -> None:
        model, path = functional(bench)
        rest = [bench.test if arg == "TEST" else arg for arg in args]
        none = invoke(command, model, *rest)
        outputs = [
            bench.ok(command, model, *rest, *options).stdout
            for options in (["--functions", path], ["--trust"])
        ]
        again = bench.ok(command, model, *rest, "--functions", "builtins:len", "--functions", path).stdout
        if command == "inspect":
            assert f"{path} (missing)" in " ".join(none.stdout.split())
            assert all(f"{path} (available)" in " ".join(text.split()) for text in [*outputs, again])
        else:
            assert (none.exit_code, none.stdout) == (2, "")
            assert none.stderr.count("\n") == 1
            assert f"'{path}' is missing" in none.stderr
            assert f"--functions {path}" in none.stderr
            assert outputs[0] == outputs[1] == again != ""
        for wrong in ("nothing", "no_such_module:f", "builtins:no_such_name", "builtins:"):
            refused = invoke(command, model, *rest, "--functions", wrong)
            assert (refused.exit_code, refused.stdout) == (2, "")
            assert wrong in refused.stderr


def cases(*commands: str) -> dict[str, Row]:
    """Return the checks of some commands by name. All spellings of an option share one check."""
    named = {check: key for key, check in ROWS.items() if key[0] in commands}
    return {" ".join(key).strip(): check for check, key in named.items()}


def debug(command: str, *args: object) -> None:
    """Check that an error is one line with exit code 2, and that --debug before or after the command raises it."""
    result = invoke(command, *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    for call in ((command, *args, "--debug"), ("--debug", command, *args)):
        raised = invoke(*call).exception
        assert isinstance(raised, (tw.TagwiseError, OSError)), raised
        assert " ".join(str(raised).split())[-30:] in result.stderr or "absent" in result.stderr


def debug_row(command: str, *args: str) -> None:
    """Register the check of --debug with a call that fails."""
    row(command, "--debug")(lambda bench: debug(command, *args))
