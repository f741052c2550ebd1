"""``tagwise tag`` over many files: into a folder, each whole or not at all, here or by the workers of a Ray cluster."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click

import tagwise._core as _core
from tagwise.base.domains import Anything
from tagwise.base.exceptions import CorpusError, TagwiseError
from tagwise.base.files.regular import make_own_folder, read_regular
from tagwise.base.files.sealed import sealed, unsealed
from tagwise.base.writing import atomic
from tagwise.cli.app import say
from tagwise.cli.files import address_option, backend_option, require, workers_option
from tagwise.dataset.shards.encode import expanded
from tagwise.dataset.shards.files import FORMAT, checksum
from tagwise.dataset.shards.folder import make_folder
from tagwise.dataset.shards.reader import ON_ERROR

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
#: Title of the group of options for many files.
MANY = "Many files"
#: Where the folder of the output keeps what each file was made of.
NOTES = ".tagwise"
#: Maximum size of such a note in bytes.
MOST_NOTE = 1 << 20
#: Rows of a Parquet file that are tagged at once, and columns that may hold the tokens, the first that is there.
ROWS, TOKENS = 4096, ("tokens", "words", "text")


@dataclass(frozen=True)
class Wishes:
    """How an input is read, and what is written."""

    form: str | None = None
    untokenized: bool = False
    output_format: str | None = None
    columns: str | None = None
    replace: bool = False
    marginals: bool = False
    nbest: int = 1
    least: float | None = None


@dataclass(frozen=True)
class FileOptions:
    """Who works on many files, and what becomes of one that cannot be read."""

    backend: str | None
    address: str | None
    workers: int | None
    on_error: str | None

    def refuse(self) -> None:
        """Say that these are about many files, where there is one."""
        require("many files (a pattern and -o FOLDER/)", False, **vars(self))

    def check(self) -> None:
        """Refuse a cluster's options without a cluster."""
        require("--backend ray", self.backend == "ray", address=self.address, workers=self.workers)


def many_options(command: Decorated) -> Decorated:
    """Add the options for many files."""
    for option in (
        click.option(
            "--on-error",
            type=click.Choice(ON_ERROR),
            metavar="ACTION",
            show_default="stop",
            help="What to do with a file that cannot be tagged: stop, or skip it with a message.",
            panel=MANY,
        ),
        workers_option(MANY),
        address_option(MANY),
        backend_option("Tag the files in this process (local) or on a Ray cluster (ray).", MANY),
    ):
        command = option(command)
    return command


def is_many(output: str) -> bool:
    """Whether files go into a folder."""
    return output.endswith(("/", os.sep)) or os.path.isdir(output)


def braced(pattern: str) -> list[str]:
    """A pattern for each way through its braces.

    >>> braced("in/*.{conll,txt}")
    ['in/*.conll', 'in/*.txt']
    """
    found = re.search(r"\{([^{}]*,[^{}]*)\}", pattern)
    if found is None:
        return [pattern]
    before, after = pattern[: found.start()], pattern[found.end() :]
    return list(itertools.chain.from_iterable(braced(before + each + after) for each in found[1].split(",")))


def places(source: str, output: str) -> list[tuple[str, str]]:
    """Each file and where it goes: below the folder as it lies below the one that all files have in common."""
    files: list[str] = []
    for pattern in braced(source):
        try:
            files += [path for path in expanded(pattern) if path not in files]
        except CorpusError:
            continue
    if not files:
        raise CorpusError(f"{source}: there is no such file. Give a path, or a pattern such as 'in/*.conll'.")
    base = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in files])
    out = [(path, os.path.join(output, os.path.relpath(os.path.abspath(path), base))) for path in files]
    for path, place in out:
        if os.path.abspath(path) == os.path.abspath(place):
            raise click.BadParameter(f"{path} would be written over; name another folder", param_hint="-o")
    return out


class Notes:
    """What each file of the output was made of: a run that was stopped leaves out what is done."""

    def __init__(self, output: str, model: str, wishes: Wishes) -> None:
        self.folder = Path(output) / NOTES
        same = checksum(Path(model)) if os.path.isfile(model) else model
        self.how = {
            "format": FORMAT,
            "tagwise": _core.__version__,
            "model": same,
            **dataclasses.asdict(wishes),
        }

    def _path(self, place: str) -> Path:
        return self.folder / f"{os.path.relpath(place, self.folder.parent).replace(os.sep, '%2F')}.json"

    def _note(self, source: str, place: str) -> dict[str, Any]:
        made = {"bytes": os.path.getsize(source), "crc32": checksum(Path(source))}
        return {**self.how, "source": made, "output": checksum(Path(place))}

    def is_done(self, source: str, place: str) -> bool:
        """Whether a file is there, and made of the same in the same way."""
        try:
            data = read_regular(self._path(place), MOST_NOTE, CorpusError, "", follow=False)
            return unsealed(data, Anything()) == self._note(source, place)
        except (OSError, TagwiseError):  # one of the two is not there, or not whole
            return False

    def keep(self, source: str, place: str) -> None:
        """Note that a file is done."""
        make_own_folder(self.folder, CorpusError)
        with atomic(self._path(place), CorpusError) as out:
            out.write(sealed(self._note(source, place)))


Tagging = Callable[[Any, str, str, Wishes], None]


class FileTagger:
    """Tags one file after the other, with a model that is loaded once: what an actor is."""

    def __init__(self, config: tuple[str, Wishes, dict[str, Any], Tagging]) -> None:
        import tagwise as tw

        model, self.wishes, loading, self.tag = config
        self.tagger = tw.load(model, mmap=True, **loading)
        self.tagger.set_params(n_jobs=1)

    def work(self, source: str, place: str) -> int:
        """Tag a file; the process that did it."""
        self.tag(self.tagger, source, place, self.wishes)
        return os.getpid()


def tag_files(
    tagger: Any,
    model: str,
    source: str,
    output: str,
    wishes: Wishes,
    options: FileOptions,
    loading: dict[str, Any],
    tag: Tagging,
) -> None:
    """Tag what a pattern names, into a folder. `tag` does one file."""
    options.check()
    todo = places(source, output)
    make_folder(Path(output))
    notes = Notes(output, model, wishes)
    missing = [(path, place) for path, place in todo if not notes.is_done(path, place)]
    for _, place in missing:
        os.makedirs(os.path.dirname(place) or ".", exist_ok=True)
    if options.backend == "ray":
        done = _by_ray(tagger, model, missing, wishes, options, loading, tag)
    else:
        done = _here(tagger, missing, wishes, tag)
    skipped = 0
    for (path, place), error in done:
        if error is None:
            notes.keep(path, place)
        elif options.on_error == "skip" and isinstance(error, (TagwiseError, OSError)):
            skipped += 1
            say(f"skipped {path}: {error}")
        else:
            raise error
    note = f", {skipped} skipped" if skipped else ""
    say(
        f"{len(missing) - skipped} files tagged, {len(todo) - len(missing)} as they were{note}; wrote {output}"
    )


Done = Iterator[tuple[tuple[str, str], BaseException | None]]


def _here(tagger: Any, missing: list[tuple[str, str]], wishes: Wishes, tag: Tagging) -> Done:
    """Files one after the other in this process."""
    for path, place in missing:
        try:
            tag(tagger, path, place, wishes)
        except (TagwiseError, OSError) as error:
            yield (path, place), error
        else:
            yield (path, place), None


def _by_ray(
    tagger: Any,
    model: str,
    missing: list[tuple[str, str]],
    wishes: Wishes,
    options: FileOptions,
    loading: dict[str, Any],
    tag: Tagging,
) -> Done:
    """Files by workers, each of which has one at a time."""
    from tagwise.ray.crew import connected
    from tagwise.ray.jobs import Failed, Jobs

    if not os.path.isfile(model):
        raise click.UsageError(f"--backend ray needs a model file that every machine sees; {model} is none")
    connected(options.address)
    config = (os.path.abspath(model), wishes, loading, tag)
    asked = [(path, (os.path.abspath(path), os.path.abspath(place))) for path, place in missing]
    with Jobs(FileTagger, config, options.workers) as jobs:
        for i, found in jobs.run(asked):
            yield missing[i], found.error if isinstance(found, Failed) else None


def tag_parquet(tagger: Any, source: str, output: str, wishes: Wishes) -> None:
    """Label the rows of a Parquet file: its columns, and `predicted`, a list of labels, beside them."""
    for name in ("output_format", "marginals", "replace", "untokenized", "least"):
        if getattr(wishes, name):
            raise click.UsageError(
                f"{source}: Parquet files get one column of labels; leave other wishes out"
            )
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        raise TagwiseError(
            f"{source}: Parquet files need the package pyarrow, which is not installed: pip install pyarrow, or "
            "'tagwise[ray]'"
        ) from error
    from tagwise.ray.tagging import Tag

    try:
        file = pq.ParquetFile(source)
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(f"{source}: cannot be read as Parquet ({error}). Write it anew.") from error
    column = wishes.columns or next((name for name in TOKENS if name in file.schema_arrow.names), TOKENS[0])
    label = Tag(tagger.model_, column, n_jobs=tagger.get_params()["n_jobs"] or 0)
    schema = file.schema_arrow.append(pa.field(label.output, pa.list_(pa.string())))
    with atomic(output, CorpusError) as raw, pq.ParquetWriter(raw, schema) as out:
        for batch in file.iter_batches(ROWS):
            found = label(
                {column: batch.column(column).to_pylist()} if column in file.schema_arrow.names else {}
            )
            labels = pa.array([list(map(str, each)) for each in found[label.output]], pa.list_(pa.string()))
            out.write_batch(pa.RecordBatch.from_arrays([*batch.columns, labels], schema=schema))
