"""Rows for options: what each spelling of each parameter of each command does, and files to try it on."""

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
    """Enter a row: what the option of these spellings does."""

    def enter(check: Row) -> Row:
        for spelling in spellings:
            assert (command, spelling) not in ROWS
            ROWS[command, spelling] = check
        return check

    return enter


def spellings(command: str) -> set[str]:
    """All spellings of a command's options, and the names of its arguments."""
    found: click.Command = cli if command == "" else cli.commands[command]
    return {text for param in found.params for text in (*param.opts, *param.secondary_opts)}


def invoke(*args: object, text: str | None = None) -> Result:
    """Run a command in this process; whatever it raises is in the result."""
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
    """Sentences of three columns whose labels are not quite what their words say."""
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
    """Stands for `tagwise.ray.jobs.Jobs`: the workers' jobs, done in this process. `asked`: addresses, workers."""

    asked: ClassVar[list[object]] = []
    ray = SimpleNamespace(put=lambda value: value)

    def __init__(self, kind: Any, told: Any, workers: int | None = None, **_: Any) -> None:
        self.worker = kind(told)
        self.asked.append(workers)

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, jobs: Sequence[tuple[str, tuple[Any, ...]]]) -> Iterator[tuple[int, Any]]:
        """Answers in their order."""
        for i, (_, given) in enumerate(jobs):
            try:
                yield i, self.worker.work(*given)
            except tw.TagwiseError as error:
                yield i, Failed(error)


class Bench:
    """Files to work on, and commands that must go well."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = folder, patch
        patch.setattr(Here, "asked", [])
        self.train, self.dev, self.test = (folder / f"{name}.txt" for name in ("train", "dev", "test"))
        for data, path in ((TRAIN, self.train), (DEV, self.dev), (TEST, self.test)):
            tw.write_conll(data, path)
        self.model = self.saved(fitted())

    def cluster(self, *where: str) -> list[object]:
        """Let Ray be this process for the modules that know `Jobs`; the list of what it will be told."""
        for module in ("tagwise.ray.jobs", *where):
            self.patch.setattr(importlib.import_module(module), "Jobs", Here)
        self.patch.setattr("tagwise.ray.pool.connected", lambda address=None: Here.asked.append(address))
        return Here.asked

    def path(self, name: str, text: str | None = None) -> Path:
        """A place for a file, or a file."""
        path = self.folder / name
        if text is not None:
            path.write_text(text, encoding="utf-8")
        return path

    def saved(self, tagger: Tagger, name: str = "m.tagwise", **options: Any) -> Path:
        """A tagger's file."""
        tagger.save(self.path(name), **options)
        return self.path(name)

    def ok(self, *args: object, text: str | None = None) -> Result:
        """The result of a command that must end with 0."""
        result = invoke(*args, text=text)
        assert result.exit_code == 0, (args, result.output, result.exception)
        return result

    def made(self, *args: object, quick: tuple[object, ...] = QUICK) -> bytes:
        """The model file that ``train`` writes."""
        out = self.path("made.tagwise")
        out.unlink(missing_ok=True)
        self.ok("train", *args, "-o", out, *quick)
        return out.read_bytes()

    def bytes_of(self, tagger: Tagger, **options: Any) -> bytes:
        """The model file of a tagger fitted without any command."""
        return self.saved(tagger, "expected.tagwise", **options).read_bytes()

    def threads(self) -> list[Any]:
        """A list that grows by the threads of every call of ``fit`` and ``predict``."""
        seen: list[Any] = []
        for name in ("fit", "predict"):
            inner = getattr(Tagger, name)

            def noting(tagger: Tagger, *args: Any, inner: Any = inner, **options: Any) -> Any:
                seen.append(tagger.get_params()["n_jobs"])
                return inner(tagger, *args, **options)

            self.patch.setattr(Tagger, name, noting)
        return seen


def crf(**params: Any) -> tw.CRF:
    """The CRF of QUICK's options."""
    return tw.CRF(**{"features": "S1", "max_iter": 4, **params})


@functools.cache
def fitted() -> Tagger:
    """The model that most rows share."""
    return crf().fit(TRAIN)


def own_features(sentence: Any) -> list[list[str]]:
    """A feature function that models of these tests name."""
    return [["w=" + word, "end=" + word[-1]] for word in sentence.fields["word"]]


def functional(bench: Bench) -> tuple[Path, str]:
    """A model that names a feature function, and the function's import path."""
    return bench.saved(crf(features=own_features).fit(TRAIN), "f.tagwise"), f"{__name__}:own_features"


def function_rows(command: str, *args: str) -> None:
    """Rows of --functions and --trust: without either the function is missing, with either it is there."""

    @row(command, "--functions", "--trust")
    def functions(bench: Bench) -> None:
        model, path = functional(bench)
        rest = [bench.test if arg == "TEST" else arg for arg in args]
        none = invoke(command, model, *rest)
        ways = [bench.ok(command, model, *rest, *way).stdout for way in (["--functions", path], ["--trust"])]
        again = bench.ok(command, model, *rest, "--functions", "builtins:len", "--functions", path).stdout
        if command == "inspect":
            assert f"{path} (missing)" in " ".join(none.stdout.split())
            assert all(f"{path} (available)" in " ".join(text.split()) for text in [*ways, again])
        else:
            assert (none.exit_code, none.stdout) == (2, "")
            assert none.stderr.count("\n") == 1
            assert f"'{path}' is missing" in none.stderr
            assert f"--functions {path}" in none.stderr
            assert ways[0] == ways[1] == again != ""
        for wrong in ("nothing", "no_such_module:f", "builtins:no_such_name", "builtins:"):
            refused = invoke(command, model, *rest, "--functions", wrong)
            assert (refused.exit_code, refused.stdout) == (2, "")
            assert wrong in refused.stderr


def cases(*commands: str) -> dict[str, Row]:
    """The rows of some commands by their names; spellings of one option are one row."""
    named = {check: key for key, check in ROWS.items() if key[0] in commands}
    return {" ".join(key).strip(): check for check, key in named.items()}


def debug(command: str, *args: object) -> None:
    """An error is one line and code 2; with --debug before or behind the command it is itself."""
    result = invoke(command, *args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    for call in ((command, *args, "--debug"), ("--debug", command, *args)):
        raised = invoke(*call).exception
        assert isinstance(raised, (tw.TagwiseError, OSError)), raised
        assert " ".join(str(raised).split())[-30:] in result.stderr or "absent" in result.stderr


def debug_row(command: str, *args: str) -> None:
    """A row of --debug: a call that fails."""
    row(command, "--debug")(lambda bench: debug(command, *args))
