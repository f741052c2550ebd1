"""One cell in a process of its own: ``python -m tagwise.compare.worker``, started by `run`.

A task comes in on stdin as a pickle; lines of JSON go out on stdout. When stdin closes, whoever started it is gone, and
the worker ends at once, so that nothing is trained that nobody waits for.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import threading
import traceback
from typing import IO, Any


def leave_with(stream: IO[bytes]) -> None:
    """End the process when the stream ends."""
    stream.read()
    os._exit(3)


def main() -> None:
    """Read the task, measure it, put the result into the cache, hand it over."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is for the one who started it: half a training is no result
    source = sys.stdin.buffer
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what anyone prints goes to stderr
    task: dict[str, Any] = pickle.loads(source.read(int.from_bytes(source.read(8), "little")))
    threading.Thread(target=leave_with, args=(source,), daemon=True).start()

    def say(**message: Any) -> None:
        out.write(json.dumps(message) + "\n")

    try:
        from tagwise.compare.cache import Cache, Names
        from tagwise.compare.cells import measure

        with open(task["data"], "rb") as file:
            data = pickle.load(file)
        cell, cache = task["cell"], Cache(task["cache"], warn=lambda text: say(warning=text))
        names = Names({cell.corpus: data})
        found = measure(
            cell,
            data,
            cache=cache,
            names=names,
            n_jobs=task["n_jobs"],
            progress=lambda text: say(progress=text),
            own_process=True,
        )
        say(done=cache.put(task["key"], found))  # by the pipe too: the cache may be full
    except BaseException as error:
        detail = "" if isinstance(error, ValueError) else traceback.format_exc()
        say(error=f"{type(error).__name__}: {error}", trace=detail)
    out.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
