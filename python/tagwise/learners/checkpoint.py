"""Checkpoints, from which an interrupted training run resumes exactly.

A file holds the state of the loop and of the learner (`Step.state`), and the identity of the run: version, parameters,
digests of the sentences. It is a file of arrays (`tagwise.base.files.arrays`), replaced atomically
(`tagwise.base.writing`).

A checkpoint is untrusted input. Its header is checked first, and the run is compared. Then each learner checks types
and lengths of its state by a domain before any array is copied, and that numbers are finite.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from tagwise.base.domains import Anything, Choice, Domain, DomainError, Integer, Record
from tagwise.base.exceptions import ParameterError, TrainingError, file_error
from tagwise.base.files.arrays import ArrayFile, ArrayInfo, is_array_file, read_header, write_arrays
from tagwise.base.writing import atomic
from tagwise.optimizers.base import State

FORMAT = 2
HEADER = Record(
    {
        "kind": Choice(("checkpoint",)),
        "format": Integer(FORMAT, FORMAT),
        "run": Record(more=Anything()),
        "loop": Record(more=Anything()),
        "learner": Record(more=Anything()),
    }
)
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_REMEDY = "Remove it, or train from the start: leave resume (--resume) out."


@dataclass(frozen=True)
class Checkpoint:
    """File that the state of training is written to, so that an interrupted run can be resumed.

    A resumed run ends with exactly the model of an uninterrupted one.

    Args:
        path: Path of the file.
        every: Interval: a number of iterations (epochs), or a time such as `"30s"`, `"5m"` or `"1h"`. Raise it if
            writing large models takes long.
        resume: Resume from the file if it exists. Set it to True to be able to repeat the same command after a crash.

    >>> import tagwise as tw
    >>> X, y = [["the", "dog", "barks"], ["a", "cat"]], [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]
    >>> tagger = tw.CRF(features="S1", max_iter=6)
    >>> _ = tagger.fit(X, y, checkpoint=tw.Checkpoint("run.checkpoint", every=2))
    >>> again = tw.CRF(features="S1", max_iter=6)
    >>> _ = again.fit(X, y, checkpoint=tw.Checkpoint("run.checkpoint", every=2, resume=True))
    >>> again.objective_ == tagger.objective_
    True
    """

    path: str | os.PathLike[str]
    every: int | str = "5m"
    resume: bool = False

    def _repr_html_(self) -> str:
        from tagwise.base.markup import object_html

        rows = [
            (
                "file",
                f"{os.fspath(self.path)} ({'exists' if os.path.exists(self.path) else 'not yet written'})",
            )
        ]
        return object_html(self, [*rows, ("every", self.every), ("resume", self.resume)])

    def interval(self) -> tuple[int | None, float | None]:
        """Return the interval between two checkpoints.

        Returns:
            A number of iterations and None, or None and a number of seconds.

        Raises:
            ParameterError: If `every` is neither.
        """
        text = str(self.every).strip()
        if re.fullmatch(r"\d+", text) and int(text) > 0:
            return int(text), None
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", text)
        if found is None or float(found[1]) <= 0.0:
            raise ParameterError(
                f"every={self.every!r}: expected a number of iterations, or a time such as 30s, 5m or 1h"
            )
        return None, float(found[1]) * _SECONDS[found[2]]


class Checkpointer:
    """Writer of the checkpoints of one run. It also has the checkpoint to resume from, if there is one (`resumes`)."""

    def __init__(self, checkpoint: Checkpoint, run: Mapping[str, Any]) -> None:
        self.path = os.fspath(checkpoint.path)
        self.every, self.seconds = checkpoint.interval()
        self.run = json.loads(json.dumps(run))
        self._found: StoredCheckpoint | None = None
        if os.path.lexists(self.path):
            if checkpoint.resume:
                self._found = StoredCheckpoint(self.path, self.run)
            else:
                check_replaceable(self.path)
        self._written, self._last = 0, time.monotonic()

    @property
    def resumes(self) -> bool:
        """Whether there is a state to resume from."""
        return self._found is not None

    def loop(self, domain: Domain) -> State | None:
        """Return the state of the loop after checking it, or None at the start of a run."""
        found = None if self._found is None else self._found.state("loop", domain)
        self._written = 0 if found is None else int(found["iteration"])
        return found

    def learner(self, domain: Domain) -> State | None:
        """Return the state of the learner after checking it, or None at the start of a run."""
        return None if self._found is None else self._found.state("learner", domain)

    @contextlib.contextmanager
    def restoring(self) -> Iterator[None]:
        """Report a state that a learner or the core rejects as a damaged checkpoint."""
        try:
            yield
        except (DomainError, ValueError) as error:
            raise _damaged(self.path, error) from error

    def due(self, iteration: int) -> bool:
        """Return whether it is time for the next checkpoint."""
        if self.every is not None:
            return iteration - self._written >= self.every
        assert self.seconds is not None
        return time.monotonic() - self._last >= self.seconds

    def write(self, loop: State, learner: State) -> None:
        """Replace the file."""
        write(self.path, {"run": self.run, "loop": loop, "learner": learner})
        self._written, self._last = int(loop["iteration"]), time.monotonic()


# --- files ------------------------------------------------------------------------------------------------


def write(path: str, content: State) -> None:
    """Write a state. Arrays go into the file as arrays, and the header refers to them by `{"array": name}`."""
    arrays: dict[str, Any] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            name = str(len(arrays))
            arrays[name] = value
            return {"array": name}
        if isinstance(value, Mapping):
            return {key: plain(entry) for key, entry in value.items()}
        return [plain(entry) for entry in value] if isinstance(value, (list, tuple)) else value

    header = {"kind": "checkpoint", "format": FORMAT, **plain(content)}
    with atomic(path) as out:
        write_arrays(out, header, arrays)


class StoredCheckpoint:
    """Existing checkpoint of this run. Its states are read on request.

    Raises:
        TrainingError: If the file cannot be read, is damaged, or belongs to another run.
    """

    def __init__(self, path: str, run: Mapping[str, Any] | None = None) -> None:
        self.path = path
        try:
            self.header = read_header(path, HEADER, TrainingError, _REMEDY)
            if run is not None:
                check_run(path, self.header["run"], run)
            self._file = ArrayFile(path, HEADER, TrainingError, _REMEDY)
        except DomainError as error:
            raise _damaged(path, error) from error
        self._left = dict(self._file.placed)  # arrays that no state has used yet

    def state(self, part: str, domain: Domain) -> State:
        """Return the state of the loop or of the learner. Types and lengths are checked before arrays are copied."""
        try:
            placed = self._placed(self.header[part])
            domain.check(placed, part)
            state: State = self._filled(placed)
            domain.check(state, part)
            return state
        except DomainError as error:
            raise _damaged(self.path, error) from error

    def _placed(self, value: Any) -> Any:
        """Return a value of the header with placeholders for arrays. Each array may be used only once."""
        if isinstance(value, dict):
            if value.keys() == {"array"}:
                found = self._left.pop(value["array"], None) if isinstance(value["array"], str) else None
                if found is None:
                    raise DomainError(f"array {value['array']!a:.60} is missing, or named twice")
                return found
            return {key: self._placed(entry) for key, entry in value.items()}
        return [self._placed(entry) for entry in value] if isinstance(value, list) else value

    def _filled(self, value: Any) -> Any:
        """Return a value with the placeholders replaced by the arrays."""
        if isinstance(value, ArrayInfo):
            return self._file.take(value.name, value.dtype)
        if isinstance(value, dict):
            return {key: self._filled(entry) for key, entry in value.items()}
        return [self._filled(entry) for entry in value] if isinstance(value, list) else value


def _damaged(path: str, reason: object) -> TrainingError:
    return TrainingError(f"{path}: a damaged checkpoint, or not a checkpoint ({reason}). {_REMEDY}")


def check_replaceable(path: str) -> None:
    """Raise a TrainingError if a file that is not a checkpoint would be overwritten."""
    if not is_replaceable(path):
        text = f"{path}: exists and is not a checkpoint. Give another path for the checkpoint, or remove the file."
        raise file_error(TrainingError, text, path, 17)


def is_replaceable(path: str) -> bool:
    """Return whether a path is free, or has a checkpoint (intact or damaged) or an empty file."""
    try:
        return not os.path.lexists(path) or is_array_file(path, TrainingError)
    except OSError:  # also for a folder, a pipe or a broken link
        return False


def remove(path: str) -> None:
    """Remove the checkpoint of a finished run, if there is one. Files of another kind are kept."""
    with contextlib.suppress(OSError):  # the next run replaces it
        if os.path.lexists(path) and is_replaceable(path):
            os.unlink(path)


# --- identity of runs --------------------------------------------------------------------------------------

#: Descriptions of the digests of a run.
_DIGESTED = {
    "data": "the training sentences, their features or labels",
    "dev": "the development sentences",
    "start": "the weights to start from",
    "sample_weight": "the weights of sentences",
}


def check_run(path: str, stored: Mapping[str, Any], current: Mapping[str, Any]) -> None:
    """Raise a TrainingError for a checkpoint of another run that names the first difference."""
    if stored == current:
        return
    difference = "it belongs to another kind of run"
    for name in current:
        if stored.get(name) == current[name]:
            continue
        if name == "params" and isinstance(stored.get(name), dict):
            absent = object()
            param = next(
                key
                for key in {**current[name], **stored[name]}
                if current[name].get(key, absent) != stored[name].get(key, absent)
            )
            difference = f"{param} was {stored[name].get(param)!r} and is {current[name].get(param)!r} now"
        elif name in _DIGESTED:
            difference = f"{_DIGESTED[name]} have changed"
        else:
            difference = f"{name} was {stored.get(name)!r} and is {current[name]!r} now"
        break
    raise TrainingError(
        f"{path}: this checkpoint belongs to another run: {difference}. Resume with the same settings, or start again: "
        "remove the file, or leave resume out"
    )


def digest(*values: Any) -> str:
    """Return a digest of arrays, strings, numbers, and of collections and data classes of these."""
    found = hashlib.blake2b(digest_size=16)

    def take(value: Any) -> None:
        if isinstance(value, np.ndarray):
            found.update(f"{value.dtype}{value.shape}".encode())
            found.update(np.ascontiguousarray(value).data)
        elif is_dataclass(value) and not isinstance(value, type):
            for field in fields(value):
                take(getattr(value, field.name))
        elif isinstance(value, Mapping):
            for key in sorted(value, key=str):
                take([str(key), value[key]])
        elif isinstance(value, (list, tuple)):
            found.update(f"[{len(value)}".encode())
            for entry in value:
                take(entry)
        elif isinstance(value, (str, int, float, bool, type(None))):
            found.update(f"{type(value).__name__}:{value!r};".encode("utf-8", "surrogatepass"))
        else:
            found.update(type(value).__qualname__.encode())

    take(values)
    return found.hexdigest()
