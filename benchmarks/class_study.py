"""The study of word classes: scores by labelled sentences, with and without classes, and what they depend on.

    python -m benchmarks.class_study --workers 16              # all jobs, results in benchmarks/out/word-classes.json
    python -m benchmarks.class_study --only active --minutes 8 # one group, at most 8 minutes
    python -m benchmarks.class_study --page                    # figures and tables in docs/study, then:
    python -m benchmarks.study --tables                        # the page

Groups: scores (the table), choice (settings compared on development data), effects (number
of classes, rare words, amount of text, case), active (labelling in the order of `tagwise annotate`), full (all
sentences of conll2003-en), speed. Results are stored after every job, and jobs with a stored result do not run again,
so that an interrupted study of one commit continues. Corpora are read from the folder that TAGWISE_DATA names.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .harness import machine

ROOT = Path(__file__).parents[1]
PRESET = "word-classes"
STORE = Path(__file__).parent / "out" / "word-classes.json"
STUDY = ROOT / "docs" / "study"
SIZES = (100, 300, 1000, 3000, None)
SOURCES = ("training text", "all text")
NAMES = ("conll2003-en", "conll2002-es", "wnut17-ner", "ewt-pos", "ptb-sample")
DRAWS = 5
GROUPS = ("scores", "choice", "effects", "active", "full", "speed")
#: Settings of WordClasses.learn that are compared with the default, on conll2003-en, conll2002-es and ewt-pos.
EFFECTS: dict[str, dict[str, Any]] = {
    **{f"{n} classes": {"sets": [{"classes": n}]} for n in (32, 128, 512, 1000)},
    **{f"min_count={n}": {"sets": [{"min_count": n}]} for n in (1, 3, 5, 10)},
    **{f"{share:.0%} of the text": {"share": share} for share in (0.1, 0.3)},
    **{f"ignore_case={value}": {"sets": [{"ignore_case": value}]} for value in (False, True)},
}
#: Sets of classes to choose from on development data.
CHOICE: dict[str, list[dict[str, Any]]] = {
    "words as they are": [{"ignore_case": False}],
    "lower case": [{"ignore_case": True}],
    "both": [{}],
}
#: Parts and sources of text that they are scored on, and the number of labelled sentences.
CHOSEN_ON = (
    ("conll2003-en", "training text", "testa"),
    ("conll2003-en", "all text", "testa"),
    ("conll2002-es", "all text", "testa"),
    ("wnut17-ner", "all text", "dev"),
    ("ewt-pos", "all text", "dev"),
)
CHOSEN_AT, CHOSEN_DRAWS = 300, 3
#: Epochs and growth per step of simulated labelling.
SIMULATED = {"conll2003-en": (5, 1.15), "wnut17-ner": (8, 1.15)}
SEEDS = 3


@dataclass(frozen=True)
class Job:
    """A call of a function of `class_jobs`. Jobs with a larger cost start earlier."""

    name: str
    group: str
    work: str
    arguments: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    cost: float = 1.0


@dataclass
class Store:
    """Results by job, each with the facts about the machine and the commit that it was measured with, in a file."""

    path: Path
    about: dict[str, Any]  # of the jobs that run now
    results: dict[str, Any] = field(default_factory=dict)

    def read(self) -> None:
        """Add the results of this commit that the file has."""
        stored = json.loads(self.path.read_text("utf-8"))["results"]
        self.results |= {
            name: found for name, found in stored.items() if found["about"]["commit"] == self.about["commit"]
        }

    @property
    def folder(self) -> Path:
        """Folder of learned classes."""
        return self.path.with_suffix(".parts")

    def save(self) -> None:
        """Write the file, complete or not at all."""
        part = self.path.with_suffix(".writing")
        part.write_text(json.dumps({"about": self.about, "results": self.results}), "utf-8")
        part.replace(self.path)


def learning(corpus: str, source: str, setting: str = "", **options: Any) -> Job:
    """Return the job that learns classes."""
    name = f"classes, {corpus}, {source}" + (f", {setting}" if setting else "")
    given = {"name": name, "corpus": corpus, "source": source, **options}
    return Job(name, "classes", "learn", given, cost=500.0)


def training(group: str, corpus: str, n: int | None, draw: int, classes: Job | None, **more: Any) -> Job:
    """Return the job that trains and scores a tagger."""
    given = {"corpus": corpus, "n": n, "draw": draw, "classes": classes.name if classes else None, **more}
    name = f"{group}, {corpus}, {n or 'all'}, draw {draw}, {classes.name if classes else 'default'}"
    return Job(name, group, "train", given, (classes.name,) if classes else (), (n or 12_000) / 100)


def jobs() -> list[Job]:
    """Return all jobs of the study."""
    learned = {(c, s): learning(c, s) for c in NAMES for s in SOURCES}
    out = list(learned.values())
    for corpus in NAMES:
        for n in SIZES:
            for draw in range(1 if n is None else DRAWS):
                sets = [None, *(learned[corpus, source] for source in SOURCES)]
                out += [training("scores", corpus, n, draw, one) for one in sets]
    for corpus in ("conll2003-en", "conll2002-es", "ewt-pos"):
        for setting, options in EFFECTS.items():
            one = learning(corpus, "all text", setting, **options)
            out += [one, *(training("effects", corpus, 300, draw, one) for draw in range(DRAWS))]
    for corpus, source, part in CHOSEN_ON:
        each = {name: learning(corpus, source, name, sets=sets) for name, sets in CHOICE.items()}
        out += each.values()
        for one in each.values():
            out += [
                training("choice", corpus, CHOSEN_AT, draw, one, part=part) for draw in range(CHOSEN_DRAWS)
            ]
    out += simulations(learned) + two_stages(learned["conll2003-en", "all text"])
    out += [
        Job(f"speed, {n} copies", "speed", "speed", {"copies": n, "threads": 2}, cost=900) for n in (1, 10)
    ]
    return out


def simulations(learned: Mapping[tuple[str, str], Job]) -> list[Job]:
    """Return the jobs of simulated labelling. Classes are learned from the pool, which is all text that there is."""
    out = []
    for corpus, (epochs, growth) in SIMULATED.items():
        classes = learned[corpus, "training text"].name
        goal = f"active, {corpus}, full"
        given: dict[str, Any] = {"corpus": corpus, "epochs": epochs}
        out.append(Job(goal, "active", "full", {**given, "classes": None}, cost=1000))
        for order in ("random", "margin"):
            for seed in range(SEEDS):
                for one in (None, classes):
                    name = f"active, {corpus}, {order}, seed {seed}, {'classes' if one else 'default'}"
                    more = {"strategy": order, "seed": seed, "growth": growth, "classes": one, "goal": goal}
                    needs = (goal, one) if one else (goal,)
                    out.append(Job(name, "active", "active", {**given, **more}, needs, cost=800))
    return out


def two_stages(classes: Job) -> list[Job]:
    """Return the jobs on all sentences of conll2003-en: one stage, and a second stage with labels of the first."""
    name, given = classes.name, {"classes": classes.name}
    out = [
        Job(f"full, {learner}", "full", "one_stage", {"learner": learner, **given}, (name,), 700)
        for learner in ("crf", "mira", "mira-documents")
    ]
    out.append(Job("full, crf, default", "full", "one_stage", {"learner": "crf", "classes": None}, cost=600))
    stages = []
    for fold in (0, 1, 2, 3, 4, None):
        stage = f"first stage, {'all' if fold is None else f'fold {fold}'}, {name}"
        stages.append(Job(stage, "full", "first_stage", {"fold": fold, **given}, (name,), 900))
    needs = (name, *(stage.name for stage in stages))
    second = [
        Job(f"full, two stages, {learner}", "full", "second_stage", {"learner": learner, **given}, needs, 950)
        for learner in ("crf", "crf-l2-0.03", "mira", "mira-documents")
    ]
    return [*out, *stages, *second]


def perform(
    work: str, folder: Path, results: Mapping[str, Any], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Run a job in a worker process, and add its CPU seconds to the result."""
    from benchmarks import class_jobs

    begin = time.process_time()
    found: dict[str, Any] = getattr(class_jobs, work)(folder, results, **arguments)
    return {"job_cpu": round(time.process_time() - begin, 2), **found}


def pending(chosen: Sequence[Job], store: Store) -> list[Job]:
    """Return the jobs that must run: those without a result, and the classes that they need and that have no file."""
    from benchmarks.class_jobs import classes_file

    known = {job.name: job for job in jobs()}
    out: dict[str, Job] = {}

    def require(job: Job) -> None:
        missing = job.work == "learn" and not classes_file(store.folder, job.name).is_file()
        if job.name in out or (job.name in store.results and not missing):
            return
        out[job.name] = job
        for name in job.needs:
            require(known[name])

    for job in chosen:
        require(job)
    return list(out.values())


def run(
    chosen: Sequence[Job], store: Store, workers: int, minutes: float, say: Callable[[str], object]
) -> None:
    """Run jobs in processes until all are done or the time is over."""
    end, waiting = time.monotonic() + 60 * minutes, sorted(pending(chosen, store), key=lambda job: -job.cost)
    todo = {job.name for job in waiting}
    running: dict[Future[dict[str, Any]], Job] = {}
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    total, done = len(waiting), 0
    try:
        while waiting or running:
            for job in [job for job in waiting if not todo.intersection(job.needs)][: workers - len(running)]:
                given = {name: store.results[name] for name in job.needs if name in store.results}
                running[pool.submit(perform, job.work, store.folder, given, job.arguments)] = job
                waiting.remove(job)
            if not running:
                break  # the rest needs a job that failed
            finished, _ = wait(running, timeout=max(0.0, end - time.monotonic()), return_when=FIRST_COMPLETED)
            if not finished:
                say(f"time is over: {done} of {total} jobs done")
                break
            for future in finished:
                job = running.pop(future)
                done += 1
                if error := future.exception():
                    say(f"{job.name}: {type(error).__name__}: {error}")
                    continue
                todo.discard(job.name)
                store.results[job.name] = {"about": store.about, **future.result()}
                shown = {k: v for k, v in future.result().items() if isinstance(v, (int, float))}
                say(f"{done}/{total} {job.name}: {shown}")
            store.save()
    finally:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)


# --- summary --------------------------------------------------------------------------------------------------


def summary(store: Store) -> list[dict[str, Any]]:
    """Return one entry per corpus, number of sentences and source of classes whose draws are complete."""
    import numpy as np

    from benchmarks.class_jobs import unpacked
    from tagwise.evaluation.significance import p_value

    groups: dict[tuple[str, str, str, int | None], list[Any]] = {}
    for job in jobs():
        if job.work == "train" and job.name in store.results:
            given = job.arguments
            parts = (given["classes"] or "default").split(", ", 2)
            features = "default" if given["classes"] is None else parts[2]
            key = (job.group, given["corpus"], features, given["n"])
            groups.setdefault(key, []).append(store.results[job.name])
    out = []
    for (group, corpus, features, n), found in groups.items():
        if len(found) < (1 if n is None else CHOSEN_DRAWS if group == "choice" else DRAWS):
            continue
        scores = [one["score"] for one in found]
        base = [] if group == "choice" else groups.get(("scores", corpus, "default", n), [])
        p = None
        if features != "default" and len(base) == len(found):
            own, other = (sum(unpacked(one["counts"]) for one in each) for each in (found, base))
            p = p_value(np.asarray(own), np.asarray(other))
        out.append(
            {
                "corpus": corpus,
                "learner": "crf",
                "features": features,
                "group": group,
                "sentences": "all" if n is None else n,
                "seeds": len(scores),
                "cpu": statistics.mean(one["job_cpu"] for one in found),
                "measure": found[0]["measure"],
                found[0]["measure"]: statistics.mean(scores),
                f"{found[0]['measure']}_sd": statistics.stdev(scores) if len(scores) > 1 else None,
                "p": p,
            }
        )
    return out


def needed(store: Store) -> list[dict[str, Any]]:
    """Return the labelled sentences that simulated labelling needs, and their share of random order without classes."""
    out = []
    for corpus in SIMULATED:
        found: dict[tuple[str, str], list[int]] = {}
        for order in ("random", "margin"):
            for kind in ("default", "classes"):
                each = [
                    store.results.get(f"active, {corpus}, {order}, seed {seed}, {kind}", {}).get("reached")
                    for seed in range(SEEDS)
                ]
                if None not in each:
                    found[order, kind] = each
        base = found.get(("random", "default"))
        for (order, kind), each in found.items():
            share = None if base is None else statistics.mean(each) / statistics.mean(base)
            out.append(
                {
                    "corpus": corpus,
                    "order": order,
                    "features": kind,
                    "needed": statistics.mean(each),
                    "share": share,
                }
            )
    return out


def curves(store: Store) -> dict[str, Any]:
    """Return the curves of the first random start of simulated labelling as pictures of `benchmarks.figure`."""
    out = {}
    for corpus in SIMULATED:
        lines = {}
        for kind, features in (("default", ""), ("classes", ", word classes")):
            for order in ("random", "margin"):
                found = store.results.get(f"active, {corpus}, {order}, seed 0, {kind}")
                if found is not None:
                    scores = [round(100 * score, 2) for score in found["scores"]]
                    lines[order + features] = list(zip(found["sentences"], scores))
        if lines:
            title = f"{corpus}: F1 by labelled sentences"
            out[corpus] = {"title": title, "x": "sentences labelled", "y": "F1", "curves": lines}
    return out


def page(store: Store) -> dict[str, Any]:
    """Return the figures of the run without the counts of sentences."""
    results = {job.name: store.results[job.name] for job in jobs() if job.name in store.results}
    if not results:
        raise SystemExit(f"error: {store.path} has no results of commit {store.about['commit']}")
    others = {
        name: {key: value for key, value in found.items() if isinstance(value, (int, float))}
        for name, found in results.items()
        if name.startswith(("full", "speed"))
    }
    return {
        "preset": PRESET,
        "build": store.about["commit"],
        "commit": store.about["commit"],
        "machine": next(iter(results.values()))["about"],
        "caption": "CRF(l2=0.1), features default on words alone, random training sentences",
        "summary": summary(store),
        "active": needed(store),
        "curves": curves(store),
        "others": others,
        "draws": {name: round(one["score"], 6) for name, one in results.items() if "measure" in one},
        "cpu_seconds": round(sum(one["job_cpu"] for one in results.values())),
    }


def facts() -> dict[str, Any]:
    """Return the commit, the date and the machine."""
    about = machine()
    return {part: about[part] for part in ("commit", "date", "cpu", "cores", "python", "versions")}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run jobs, or write the figures of the page."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.class_study", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="number of processes")
    parser.add_argument(
        "--minutes", type=float, default=600.0, help="time after which running jobs are given up"
    )
    parser.add_argument("--only", action="append", choices=GROUPS, help="group of jobs, may be repeated")
    parser.add_argument("--match", default="", help="run only jobs whose name contains this text")
    parser.add_argument("--store", type=Path, default=STORE, help="file of results")
    parser.add_argument(
        "--page", action="store_true", help="write the figures of the page, without running jobs"
    )
    given = parser.parse_args(arguments)
    store = Store(given.store, facts())
    if given.store.is_file():
        store.read()
    if given.page:
        from benchmarks.class_tables import tables

        found = page(store)
        written: dict[Path, Any] = {STUDY / "runs" / f"{PRESET}.json": found}
        written |= {STUDY / f"{name}.json": table for name, table in tables(found).items()}
        for path, content in written.items():
            path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
        return 0
    store.folder.mkdir(parents=True, exist_ok=True)
    chosen = [job for job in jobs() if job.group in (given.only or GROUPS) and given.match in job.name]
    begin = time.monotonic()

    def say(line: str) -> None:
        sys.stderr.write(f"{time.monotonic() - begin:6.0f} s  {line}\n")
        sys.stderr.flush()

    run(chosen, store, given.workers, given.minutes, say)
    return 0


if __name__ == "__main__":
    sys.exit(main())
