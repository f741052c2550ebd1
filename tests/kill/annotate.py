"""Kill a session of labelling at random moments: `python -m tests.kill.annotate --kills 50 --seed 1`.

A child opens the project in a folder and labels by a script: the k-th entry of the journal follows from k and from the
entries before it. After each action it reports to the parent through a pipe. The parent kills it at a random moment,
opens the project, and finds every reported action, at most one more, and nothing else. Then another child continues
in this folder.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import tagwise as tw
from tagwise.apps.annotate.folder import ProjectSettings
from tagwise.apps.annotate.history import ACTIONS, EFFORT, MARKS
from tagwise.apps.annotate.project import Work
from tagwise.apps.annotate.session import Session

SENTENCES = [[f"w{i}", f"x{i % 7}", f"y{i % 3}"] for i in range(40)]


def begun(folder: Path) -> Work:
    """Open the project of a folder. A new one gets all the sentences."""
    work = Work(folder, ProjectSettings(labels=["A", "B"]))
    if not work.sentences:
        work.add(tw.Corpus.from_lists(SENTENCES), "all")
    return work


def journal_entry(k: int, done: int, undone: int) -> dict[str, Any]:
    """Return the k-th entry of the journal, given how many actions can be undone and redone."""
    rng = random.Random(k)
    draw = rng.random()
    if draw < 0.15 and done:
        return {"do": "undo"}
    if draw < 0.25 and undone:
        return {"do": "redo"}
    if draw < 0.35:
        return {"do": rng.choice(["skip", "flag", "reject"]), "id": rng.randrange(40)}
    if draw < 0.4:
        return {"do": "comment", "id": rng.randrange(40), "text": f"comment {k}"}
    labels = [rng.choice(["O", "B-A", "B-B"]) for _ in range(3)]
    return {"do": "accept", "id": rng.randrange(40), "labels": labels}


def expected(n: int) -> tuple[list[dict[str, Any]], dict[int, list[str]], int, int]:
    """Return the first n entries, the resulting labels, and how many actions can be undone and redone, by snapshots."""
    entries: list[dict[str, Any]] = []
    states: list[dict[int, list[str]]] = [{}]
    at = 0
    for k in range(1, n + 1):
        one = journal_entry(k, at, len(states) - 1 - at)
        entries.append({"n": k, **one})
        if one["do"] in ACTIONS:
            more = {one["id"]: one["labels"]} if one["do"] == "accept" else {}
            states = [*states[: at + 1], {**states[at], **more}]
            at += 1
        else:
            at += 1 if one["do"] == "redo" else -1
    return entries, states[at], at, len(states) - 1 - at


def label(folder: Path, descriptor: int, whole: bool) -> None:
    """Label for ever and report each action. `whole` includes learning and ranking, otherwise only the folder."""
    work = begun(folder)
    session = Session(work) if whole else None
    while True:
        k = len(work.journal.entries) + 1
        _, _, done, undone = expected(k - 1)
        one = journal_entry(k, done, undone)
        target: Any = session or work
        if one["do"] == "accept" and session is not None:
            spans = [
                {"begin": t, "end": t + 1, "label": y[2:]} for t, y in enumerate(one["labels"]) if y != "O"
            ]
            session.accept(one["id"], spans)
        elif one["do"] == "accept":
            work.accept(one["id"], one["labels"])
        elif one["do"] == "comment":
            target.comment(one["id"], one["text"])
        elif one["do"] in MARKS:
            target.mark(one["id"], one["do"])
        else:
            getattr(target, one["do"])()
        os.write(descriptor, f"{k}\n".encode())


def killed(folder: Path, seconds: float, whole: bool) -> int:
    """Run a child for `seconds` after its first action, kill it, and return the number of actions it reported."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(reading)
            label(folder, writing, whole)
        finally:
            os._exit(1)
    os.close(writing)
    text = os.read(reading, 1 << 16)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    while piece := os.read(reading, 1 << 16):
        text += piece
    os.close(reading)
    assert os.WIFSIGNALED(status), "the child ended before it was killed"
    return int(text.split()[-1]) if text.split() else 0


def main(kills: int, seed: int) -> dict[str, int]:
    """Kill a child `kills` times in one folder that each child continues. Return counts of what was found."""
    rng = random.Random(seed)
    counts = {"kills": 0, "lost": 0, "actions": 0, "one more than reported": 0, "torn lines": 0}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begun(folder).close()
        for k in range(kills):
            reported = killed(folder, rng.random() * 0.05, whole=k % 5 == 0)
            work = begun(folder)
            found = [
                {name: v for name, v in one.items() if name not in EFFORT} for one in work.journal.entries
            ]
            entries, labels, done, undone = expected(len(found))
            counts["kills"] += 1
            counts["lost"] += max(0, reported - len(found))
            counts["one more than reported"] += len(found) - reported == 1
            counts["torn lines"] += work.journal.cut > 0
            assert reported <= len(found) <= reported + 1, f"reported {reported} actions, found {len(found)}"
            assert found == entries, "actions differ from those performed"
            assert (work.accepted, work.undoable) == (labels, (done > 0, undone > 0)), "another state"
            work.close()
        counts["actions"] = len(found)
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(json.dumps(main(given.kills, given.seed), indent=2))
