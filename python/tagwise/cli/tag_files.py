"""``tagwise tag`` for many files: into a folder, in this process or on a Ray cluster."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rich_click as click

import tagwise._core as _core
from tagwise.base.domains import Anything
from tagwise.base.exceptions import CorpusError, TagwiseError
from tagwise.base.files.regular import make_own_folder, read_regular
from tagwise.base.files.sealed import sealed, unsealed
from tagwise.base.writing import atomic
from tagwise.cli.app import say
from tagwise.cli.cluster import cluster_options, connect
from tagwise.cli.options import option, require, together
from tagwise.corpus.parquet import need_pyarrow, open_parquet
from tagwise.dataset.shards.encode import expanded
from tagwise.dataset.shards.files import FORMAT, checksum
from tagwise.dataset.shards.folder import make_folder
from tagwise.dataset.shards.reader import ON_ERROR

#: Title of the group of options for many files.
MANY = "Many files"
#: Folder inside the output folder that records what each file was made from.
NOTES = ".tagwise"
#: Maximum size of such a record in bytes.
MAX_NOTE = 1 << 20
#: Rows of a Parquet file that are tagged at once, and names of columns with tokens. The first that exists is used.
ROWS, TOKENS = 4096, ("tokens", "words", "text")


@dataclass(frozen=True)
class TagOptions:
    """Options on how an input is read and what is written."""

    form: str | None = None
    untokenized: bool = False
    output_format: str | None = None
    columns: str | None = None
    replace: bool = False
    marginals: bool = False
    nbest: int = 1
    min_probability: float | None = None
    encoding: str | None = None


@dataclass(frozen=True)
class ManyOptions:
    """Options that apply to many files only."""

    backend: str | None
    address: str | None
    workers: int | None
    on_error: str | None

    def reject(self) -> None:
        """Reject these options for a single file."""
        require("many files (a pattern and -o FOLDER/)", False, **vars(self))


#: Options for many files.
many_options = together(
    cluster_options("Tag the files in this process (local) or on a Ray cluster (ray).", MANY),
    option(
        "--on-error ACTION",
        "What to do with a file that cannot be tagged: stop, or skip it with a message.",
        MANY,
        type=click.Choice(ON_ERROR),
        show_default="stop",
    ),
)


def is_many(output: str) -> bool:
    """Return whether the output is a folder."""
    return output.endswith(("/", os.sep)) or os.path.isdir(output)


def braced(pattern: str) -> list[str]:
    """Expand the braces of a pattern.

    >>> braced("in/*.{conll,txt}")
    ['in/*.conll', 'in/*.txt']
    """
    found = re.search(r"\{([^{}]*,[^{}]*)\}", pattern)
    if found is None:
        return [pattern]
    before, after = pattern[: found.start()], pattern[found.end() :]
    return list(itertools.chain.from_iterable(braced(before + each + after) for each in found[1].split(",")))


def places(source: str, output: str) -> list[tuple[str, str]]:
    """Return each file with its output, whose path below `output` is that below the common folder of all files."""
    files: list[str] = []
    for pattern in braced(source):
        try:
            files += [path for path in expanded(pattern) if path not in files]
        except CorpusError:
            continue
    if not files:
        raise CorpusError(f"{source}: no file matches. Give a path, or a pattern such as 'in/*.conll'.")
    base = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in files])
    out = [(path, os.path.join(output, os.path.relpath(os.path.abspath(path), base))) for path in files]
    for path, place in out:
        if os.path.abspath(path) == os.path.abspath(place):
            raise click.BadParameter(f"{path} would be overwritten. Choose another folder", param_hint="-o")
    return out


class Notes:
    """Records of the inputs, model and options of each output file, so that a repeated run skips complete files."""

    def __init__(self, output: str, model: str, options: TagOptions) -> None:
        self.folder = Path(output) / NOTES
        identity = checksum(Path(model)) if os.path.isfile(model) else model
        self.how = {
            "format": FORMAT,
            "tagwise": _core.__version__,
            "model": identity,
            **dataclasses.asdict(options),
        }

    def _path(self, place: str) -> Path:
        return self.folder / f"{os.path.relpath(place, self.folder.parent).replace(os.sep, '%2F')}.json"

    def _note(self, source: str, place: str) -> dict[str, Any]:
        source_entry = {"bytes": os.path.getsize(source), "crc32": checksum(Path(source))}
        return {**self.how, "source": source_entry, "output": checksum(Path(place))}

    def is_done(self, source: str, place: str) -> bool:
        """Return whether an output exists and was made from the same input in the same way."""
        try:
            data = read_regular(self._path(place), MAX_NOTE, CorpusError, "", follow=False)
            return unsealed(data, Anything()) == self._note(source, place)
        except (OSError, TagwiseError):  # a file is missing or damaged
            return False

    def record(self, source: str, place: str) -> None:
        """Record that a file is complete."""
        make_own_folder(self.folder, CorpusError)
        with atomic(self._path(place), CorpusError) as out:
            out.write(sealed(self._note(source, place)))


Tagging = Callable[[Any, str, str, TagOptions], None]


class FileTagger:
    """A Ray actor that loads a model once and tags one file after the other."""

    def __init__(self, setup: tuple[str, TagOptions, dict[str, Any], Tagging]) -> None:
        import tagwise as tw

        model, self.options, loading, self.tag = setup
        self.tagger = tw.load(model, mmap=True, **loading)
        self.tagger.set_params(n_jobs=1)

    def work(self, source: str, place: str) -> int:
        """Tag a file and return the id of the process."""
        self.tag(self.tagger, source, place, self.options)
        return os.getpid()


def tag_files(
    tagger: Any,
    model: str,
    source: str,
    output: str,
    options: TagOptions,
    many: ManyOptions,
    loading: dict[str, Any],
    tag: Tagging,
) -> None:
    """Tag the files that match a pattern into a folder. `tag` does one file."""
    if many.backend == "ray" and not os.path.isfile(model):
        raise click.UsageError(
            f"--backend ray requires a model file that every machine can read, but {model} is not a file. Give a "
            "model file"
        )
    require("--backend ray", many.backend == "ray", address=many.address, workers=many.workers)
    todo = places(source, output)
    make_folder(Path(output))
    notes = Notes(output, model, options)
    missing = [(path, place) for path, place in todo if not notes.is_done(path, place)]
    for _, place in missing:
        os.makedirs(os.path.dirname(place) or ".", exist_ok=True)
    if many.backend == "ray":
        done = _by_ray(model, missing, options, many, loading, tag)
    else:
        done = _locally(tagger, missing, options, tag)
    skipped = 0
    for (path, place), error in done:
        if error is None:
            notes.record(path, place)
        elif many.on_error == "skip" and isinstance(error, (TagwiseError, OSError)):
            skipped += 1
            say(f"skipped {path}: {error}")
        else:
            raise error
    say(
        f"files: {len(missing) - skipped} tagged, {len(todo) - len(missing)} kept from an earlier run, "
        f"{skipped} skipped\nwrote {output}"
    )


Done = Iterator[tuple[tuple[str, str], BaseException | None]]


def _locally(tagger: Any, missing: list[tuple[str, str]], options: TagOptions, tag: Tagging) -> Done:
    """Tag files one after the other in this process."""
    for path, place in missing:
        try:
            tag(tagger, path, place, options)
        except (TagwiseError, OSError) as error:
            yield (path, place), error
        else:
            yield (path, place), None


def _by_ray(
    model: str,
    missing: list[tuple[str, str]],
    options: TagOptions,
    many: ManyOptions,
    loading: dict[str, Any],
    tag: Tagging,
) -> Done:
    """Tag files on a Ray cluster. Each worker has one at a time."""
    from tagwise.ray.jobs import Failed, Jobs

    connect("ray", many.address)
    setup = (os.path.abspath(model), options, loading, tag)
    tasks = [(path, (os.path.abspath(path), os.path.abspath(place))) for path, place in missing]
    with Jobs(FileTagger, setup, many.workers) as jobs:
        for i, found in jobs.run(tasks):
            yield missing[i], found.error if isinstance(found, Failed) else None


def tag_parquet(tagger: Any, source: str, output: str, options: TagOptions) -> None:
    """Copy a Parquet file with an additional column ``predicted``, a list of labels per row."""
    for name in ("output_format", "marginals", "replace", "untokenized", "min_probability"):
        if getattr(options, name):
            raise click.UsageError(
                f"{source}: Parquet files get one column of labels. Omit --"
                f"{'raw' if name == 'untokenized' else name.replace('_', '-')}"
            )
    pa, pq = need_pyarrow(source)
    from tagwise.ray.tagging import Tag

    file = open_parquet(source)
    column = options.columns or next((name for name in TOKENS if name in file.schema_arrow.names), TOKENS[0])
    label = Tag(tagger.model_, column, n_jobs=tagger.get_params()["n_jobs"] or 0)
    schema = file.schema_arrow.append(pa.field(label.output, pa.list_(pa.string())))
    with atomic(output, CorpusError) as raw, pq.ParquetWriter(raw, schema) as out:
        for batch in file.iter_batches(ROWS):
            found = label(
                {column: batch.column(column).to_pylist()} if column in file.schema_arrow.names else {}
            )
            labels = pa.array([list(map(str, each)) for each in found[label.output]], pa.list_(pa.string()))
            out.write_batch(pa.RecordBatch.from_arrays([*batch.columns, labels], schema=schema))
