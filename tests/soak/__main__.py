"""make soak MINUTES=30: repeat fit, predict, load, save, fork and threads in one process.

Memory, descriptors and threads are recorded after each round. The last fifth may exceed the second fifth by at most the
tolerance. The exit code is 1 if it exceeds it or if anything fails.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

import tagwise as tw

#: Tolerated growth of the resident memory from the second fifth of the rounds to the last.
TOLERANCE = 0.03


def learners() -> list[tw.Tagger]:
    """Return one small learner of each kind."""
    return [
        tw.CRF(features="S2", max_iter=5),
        tw.CRF(features="S1", max_iter=3, loss="pointwise_exp"),
        tw.Perceptron(features="S2", max_iter=2),
        tw.MIRA(features="S2", max_iter=2, k=3),
        tw.HMSVM(features="S1", max_iter=2),
        tw.Boosting(features="S1", max_iter=20),
        tw.HMM(features="S1"),
        tw.MEMM(features="S1", max_iter=5),
    ]


def resources_used() -> tuple[float, int, int]:
    """Return resident memory in MiB, descriptors and threads."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    memory = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return memory, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def in_a_child(tagger: tw.Tagger, sentences: list[list[str]], want: list[list[str]]) -> None:
    """Check that a forked process predicts equal labels."""
    child = os.fork()
    if child == 0:
        os._exit(0 if tagger.predict(sentences) == want else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"a forked child ended with {status}"


def in_threads(tagger: tw.Tagger, sentences: list[list[str]], want: list[list[str]]) -> None:
    """Check that concurrent threads predict equal labels."""
    wrong: list[object] = []

    def work() -> None:
        for _ in range(3):
            if tagger.predict(sentences) != want:
                wrong.append(tagger)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong


def turn(folder: Path, train: tw.Corpus, test: tw.Corpus) -> None:
    """Run every learner once through all operations."""
    tokens = test.tokens
    for number, tagger in enumerate(learners()):
        tagger.fit(train)
        want = tagger.predict(tokens)
        path = folder / f"{number}.tagwise"
        tagger.save(path)
        loaded = tw.load(path, mmap=number % 2 == 1)
        assert loaded.predict(tokens) == want
        in_threads(loaded, tokens[:50], want[:50])
        in_a_child(loaded, tokens[:50], want[:50])
        tagger.predict_kbest(tokens[:20], 3)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    given = parser.parse_args()
    train, _, test = tw.load_corpus("ewt-pos")
    train, test = train[:200], test[:200]
    end, notes = time.monotonic() + 60 * given.minutes, []
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end or len(notes) < 5:
            turn(Path(folder), train, test)
            gc.collect()
            notes.append(resources_used())
            if len(notes) % 10 == 1:
                memory, files, threads = notes[-1]
                print(
                    f"round {len(notes)}: {memory:.0f} MiB, {files} descriptors, {threads} threads",
                    flush=True,
                )
    fifth = max(len(notes) // 5, 1)
    early, late = notes[fifth : 2 * fifth], notes[-fifth:]
    grown = median(n[0] for n in late) / median(n[0] for n in early) - 1.0
    files, threads = (max(n[i] for n in late) - max(n[i] for n in early) for i in (1, 2))
    print(f"{len(notes)} rounds of {len(learners())} learners:", end=" ")
    print(f"memory {100 * grown:+.1f} %, descriptors {files:+d}, threads {threads:+d}")
    return int(grown > TOLERANCE or files > 0 or threads > 0)


if __name__ == "__main__":
    sys.exit(main())
