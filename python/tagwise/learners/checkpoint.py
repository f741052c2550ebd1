"""Checkpoints: what a training run needs to go on as if it had never stopped, in one file.

A file holds the state of the loop and that of the learner (`Step.state`), and what run they are of: the code, the
parameters, digests of the sentences. It is written as everything is (`tagwise.writing`): there is the last one or the
one before it, never half of one.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from tagwise.errors import ParameterError, TrainingError, refusal
from tagwise.optimizers.base import State
from tagwise.writing import atomic

FORMAT = 1
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Checkpoint:
    """Where the state of training is kept, how often, and whether to go on from the one that is there.

    Args:
        path: the file.
        every: iterations (epochs) between two, as a number; or time, as "30s", "5m", "1h".
        resume: go on from the file where there is one; the model is to the bit that of a run that was never stopped.

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

    def interval(self) -> tuple[int | None, float | None]:
        """Iterations or seconds between two checkpoints; a ParameterError where `every` is neither."""
        text = str(self.every).strip()
        if re.fullmatch(r"\d+", text) and int(text) > 0:
            return int(text), None
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", text)
        if found is None or float(found[1]) <= 0.0:
            raise ParameterError(
                f"every={self.every!r}: expected a number of iterations, or a time such as 30s, 5m or 1h"
            )
        return None, float(found[1]) * _SECONDS[found[2]]


class Keeper:
    """Writes the states of one run to its file, and has the one to go on from (`loop`, `learner`; None: begin)."""

    def __init__(self, checkpoint: Checkpoint, run: Mapping[str, Any]) -> None:
        self.path = os.fspath(checkpoint.path)
        self.every, self.seconds = checkpoint.interval()
        self.run = json.loads(json.dumps(run))
        self.loop: State | None = None
        self.learner: State | None = None
        if checkpoint.resume and os.path.exists(self.path):
            found = read(self.path)
            check_run(self.path, found["run"], self.run)
            self.loop, self.learner = found["loop"], found["learner"]
        self._written, self._last = 0 if self.loop is None else int(self.loop["iteration"]), time.monotonic()

    def due(self, iteration: int) -> bool:
        """Whether it is time for the next one."""
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
    """A state as a file: a ZIP archive of arrays as NumPy writes them, with `header` as JSON."""
    arrays: dict[str, Any] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            name = str(len(arrays))
            arrays[name] = value
            return {"array": name}
        if isinstance(value, Mapping):
            return {key: plain(entry) for key, entry in value.items()}
        return [plain(entry) for entry in value] if isinstance(value, (list, tuple)) else value

    header = json.dumps({"format": FORMAT, **plain(content)})
    with atomic(path) as out:
        np.savez(out, header=np.frombuffer(header.encode(), dtype=np.uint8), **arrays)


def read(path: str) -> State:
    """The state in a file; a TrainingError says why there is none."""
    try:
        with open(path, "rb") as file:
            data = io.BytesIO(file.read())
        with np.load(data, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
        header = json.loads(arrays.pop("header").tobytes())

        def filled(value: Any) -> Any:
            if isinstance(value, dict):
                if value.keys() == {"array"}:
                    return arrays[value["array"]]
                return {key: filled(entry) for key, entry in value.items()}
            return [filled(entry) for entry in value] if isinstance(value, list) else value

        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise ValueError(f"it is not of format {FORMAT}")
        state: State = filled(header)
        if not {"run", "loop", "learner"} <= state.keys():
            raise ValueError("it holds no state of training")
        return state
    except OSError as error:
        raise refusal(
            TrainingError, f"{path}: cannot be read ({error.strerror})", path, error.errno or 5
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise TrainingError(
            f"{path}: a damaged checkpoint, or none ({error}). Remove it, or begin anew without resume"
        ) from error


# --- which run it is --------------------------------------------------------------------------------------

#: What the digests of a run are of.
_DIGESTED = {
    "data": "the training sentences, their features or labels",
    "dev": "the development sentences",
    "start": "the weights to start from",
    "sample_weight": "the weights of sentences",
}


def check_run(path: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Refuse a checkpoint of another run, by the first thing in which they differ."""
    if theirs == ours:
        return
    what = "it is of another kind of run"
    for name in ours:
        if theirs.get(name) == ours[name]:
            continue
        if name == "params" and isinstance(theirs.get(name), dict):
            (param,) = [
                key for key in {**ours[name], **theirs[name]} if ours[name].get(key) != theirs[name].get(key)
            ][:1]
            what = f"{param} was {theirs[name].get(param)!r} and is {ours[name].get(param)!r} now"
        elif name in _DIGESTED:
            what = f"{_DIGESTED[name]} are others now"
        else:
            what = f"{name} was {theirs.get(name)!r} and is {ours[name]!r} now"
        break
    raise TrainingError(
        f"{path}: this checkpoint is of another run: {what}. Go on with what it was made with, or begin anew: remove "
        "it, or leave resume out"
    )


def digest(*values: Any) -> str:
    """A digest of arrays, texts, numbers, and of collections and data classes of these."""
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


__all__ = ["Checkpoint", "Keeper", "digest"]
