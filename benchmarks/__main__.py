"""Run benchmarks, print their tables and write benchmarks/out/*.json: ``python -m benchmarks --help``.

With --limit or --minutes each benchmark runs in its own process, which is killed when its time is up. Its output is in
benchmarks/out/NAME.md: the rows as they were measured, followed by the table.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import time

from rich.console import Console

from .harness import OUT, Context, NoCommit, Result, save, show
from .workloads import PEER, NoData

# packages of the other side: how to install them
PEERS = {
    "pycrfsuite": "pip install '.[bench]'",
    "sklearn_crfsuite": "pip install '.[bench]'",
    "torch": "pip install '.[torch]'",
    "torchcrf": "pip install pytorch-crf",
}
# name: one-line description (one file each), in the order they run
BENCHMARKS = {
    "evaluation": "one evaluation of loss and gradient vs. a CRFsuite iteration, 1 and 2 threads",
    "training": "training to the final objective of CRFsuite, with encoding",
    "taggers": "CRFsuite, CRF++, Wapiti, NLTK, spaCy, a BiLSTM-CRF on whole corpora: score, time, memory, size",
    "encoding": "attribute lists, dicts and tokens to ids: nanoseconds per attribute",
    "tagging": "tagging from attribute lists and from tokens, marginals",
    "optimum": "number of features and final objective vs. CRFsuite",
    "memory": "peak memory of training",
    "loading": "model load time",
    "accuracy": "F1 and accuracy with l2 chosen on dev",
    "agreement": "F1 of the default optimizer vs. L-BFGS at the same l2",
    "losses": "cost of a pass of each loss, optimizers to a gap, accuracy of the four losses",
    "dual": "dual ascent vs. L-BFGS: passes and seconds to a gap, certified or not",
    "labels": "many labels: an iteration and tagging by the number of labels, training with 5,000 labels",
    "dropin": "the drop-in modules vs. python-crfsuite and sklearn-crfsuite, call by call",
    "dense": "vectors: an evaluation with 300 numbers per token vs. its matrix products alone",
    "classes": "word classes from raw text: scores with few labelled sentences, learning, tagging",
    "history": "history (m, p), documents, constraints, tag dictionaries: accuracy and time",
    "svm": "Hidden Markov SVM and kernels: 300 sentences, conll2002-es, a dual perceptron",
    "boosting": "boosting: scores with few features, curves, bounds, cost of a round",
    "incremental": "continued training on other sentences: a prior around the old weights vs. retraining",
    "serve": "/tag over loopback vs. python-crfsuite in a Starlette handler",
    "mixing": "iterative parameter mixing over shards: F1 by parts and epochs",
    "torch": "the CRF layer vs. pytorch-crf, a linear CRF on a GPU",
    "determinism": "model files for 1, 2 and 4 threads",
    "digests": "digests of the model files of every learner, which refactoring must not change",
    "examples": "scores of the example programs and of the most frequent label",
    "online_speed": "epochs of the online learners vs. ap and pa of CRFsuite",
    "online": "the online paper's tables and figures: learners, k, costs, epochs, shards",
}


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    names = "\n".join(f"  {name:12} {text}" for name, text in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Speed and accuracy compared with other taggers, measured alternately in one run.",
        epilog=f"benchmarks:\n{names}\n\nCorpora that may not be bundled are read from TAGWISE_DATA.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="name", help="benchmarks to run (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and less data")
    parser.add_argument(
        "--repeat", type=int, default=5, metavar="N", help="rounds of each measurement (default: 5)"
    )
    parser.add_argument("--limit", type=float, metavar="S", help="time limit of each benchmark in seconds")
    parser.add_argument("--minutes", type=float, metavar="M", help="time limit of all benchmarks in minutes")
    parser.add_argument(
        "--workload",
        action="append",
        choices=list(PEER),
        help="workload to use, may be repeated (default: all)",
    )
    chosen = parser.parse_args(arguments)
    unknown = [n for n in chosen.names if n not in BENCHMARKS]
    if unknown:
        parser.error(f"unknown benchmark {', '.join(unknown)}, choose from {', '.join(BENCHMARKS)}")
    return chosen


def bounded(chosen: argparse.Namespace) -> int:
    """Run each benchmark in its own process with a time limit.

    Return 1 if a goal was missed, 2 if a benchmark failed or was killed.
    """
    OUT.mkdir(parents=True, exist_ok=True)
    more = [f"--repeat={chosen.repeat}", *(["--quick"] if chosen.quick else [])]
    more += [f"--workload={name}" for name in chosen.workload or ()]
    end = time.monotonic() + 60 * chosen.minutes if chosen.minutes else float("inf")
    status = 0
    for name in chosen.names or BENCHMARKS:
        path, begin = OUT / f"{name}.md", time.monotonic()
        seconds = min(chosen.limit or float("inf"), end - begin)
        with path.open("w", encoding="utf-8") as out:
            command = [sys.executable, "-m", "benchmarks", name, *more]
            work = subprocess.Popen(command, stdout=out, stderr=out)
            try:
                found = work.wait(None if seconds == float("inf") else max(seconds, 0.0))
            except subprocess.TimeoutExpired:
                work.kill()
                work.wait()
                found = 2
                out.write(f"\n{name}: killed after {time.monotonic() - begin:.0f} s\n")
            except BaseException:
                work.kill()
                raise
        sys.stdout.write(path.read_text(encoding="utf-8") + f"({name}: {time.monotonic() - begin:.0f} s)\n")
        sys.stdout.flush()
        status = max(status, found)
    return status


def main(arguments: list[str]) -> int:
    """Run the selected benchmarks. Return 1 if a goal was missed, 2 if results could not be stored."""
    chosen = parse(arguments)
    if chosen.limit or chosen.minutes:
        return bounded(chosen)
    context = Context(chosen.quick, chosen.repeat, tuple(chosen.workload or PEER))
    console = Console(stderr=False)
    missed, status = False, 0
    for name in chosen.names or BENCHMARKS:
        try:
            found = importlib.import_module(f".{name}", __package__).run(context)
            for result in (
                [found] if isinstance(found, Result) else found
            ):  # one table, or several that are shown one by one
                show(result, console)
                save(result, context)
                missed |= any(row.holds is False for row in result.rows)
        except NoCommit as reason:
            console.print(f"{name}: not stored: {reason}", style="yellow", markup=False, soft_wrap=True)
            status = 2
        except NoData as missing:
            console.print(f"{name}: skipped: {missing}", style="yellow", markup=False, soft_wrap=True)
            continue
        except ModuleNotFoundError as missing:
            if missing.name not in PEERS:
                raise
            console.print(
                f"{name}: skipped: {missing.name} is not installed, run {PEERS[missing.name]}", markup=False
            )
    return max(status, int(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
