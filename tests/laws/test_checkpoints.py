"""Tests of checkpoints: a run resumed after any crash gives the model of an uninterrupted run, to the bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.base.domains import Anything
from tagwise.learners import checkpoint as files
from tagwise.learners.checkpoint import Checkpoint, Checkpointer, StoredCheckpoint
from tagwise.optimizers import OPTIMIZERS

from ..cli.options import invoke
from ..forge.forgery import Forgery

TRAIN, DEV, _ = tw.load_corpus("wnut17-ner")
assert DEV is not None
TRAIN, DEV = TRAIN[:230], DEV[:25]
SMALL = TRAIN[:40]
TINY = TRAIN[:12]


def in_documents(sentences: tw.Corpus, n: int) -> tw.Corpus:
    """Return the sentences in documents of n sentences each."""
    begins = (str(i) if i % n == 0 else None for i in range(len(sentences)))
    return tw.Corpus([tw.Sentence(s.fields, s.label, doc=doc) for s, doc in zip(sentences, begins)])


DOCUMENTS = in_documents(TINY, 4)


def s1(kind: type[tw.Tagger], **params: Any) -> Callable[[], tw.Tagger]:
    return lambda: kind(features="S1", **params)


#: Learners and their training data, with enough sentences for stochastic epochs if these come first.
RUNS: dict[str, tuple[Callable[[], tw.Tagger], tw.Corpus]] = {
    "auto": (s1(tw.CRF, l2=0.1, max_iter=14, tol=0.0), TRAIN),
    "dual": (s1(tw.CRF, optimizer="dual", l2=3.0, tol=1e-3), SMALL),
    "dual, then lbfgs": (s1(tw.CRF, optimizer="dual", l2=1e-3, max_iter=12, tol=0.0), SMALL),
    "descent, then lbfgs": (s1(tw.CRF, loss="pointwise_log", max_iter=14, tol=0.0), TRAIN),
    "lbfgs": (s1(tw.CRF, optimizer="lbfgs", l2=0.1, max_iter=14, tol=0.0), SMALL),
    "converges": (s1(tw.CRF, optimizer="lbfgs", l2=3.0, tol=1e-2, window=3), SMALL),
    "owlqn": (s1(tw.CRF, l1=0.2, l2=0.1, max_iter=14, tol=0.0), SMALL),
    "cg": (s1(tw.CRF, optimizer="cg", l2=0.1, max_iter=10, tol=0.0), SMALL),
    "sgd": (s1(tw.CRF, optimizer="sgd", l2=0.1, max_iter=7, tol=0.0), SMALL),
    "exp": (s1(tw.CRF, loss="exp", l2=0.1, max_iter=9, tol=0.0), SMALL),
    "second order": (s1(tw.CRF, order=2, l2=0.1, max_iter=8, tol=0.0), SMALL),
    "memm": (s1(tw.MEMM, l2=0.1, max_iter=9, tol=0.0), SMALL),
    "perceptron": (s1(tw.Perceptron, max_iter=6), SMALL),
    "last weights": (s1(tw.Perceptron, max_iter=6, average=False), SMALL),
    "batch": (s1(tw.Perceptron, max_iter=6, mode="batch"), SMALL),
    "shards": (s1(tw.Perceptron, max_iter=6, parts=3), SMALL),
    "mira": (s1(tw.MIRA, max_iter=6, k=3), SMALL),
    "pa": (s1(tw.PassiveAggressive, max_iter=6), SMALL),
    "arow": (s1(tw.AROW, max_iter=6), SMALL),
    "voters": (s1(tw.Perceptron, max_iter=6, voters=12), SMALL),
    "lookback": (s1(tw.Perceptron, max_iter=6, lookback=(2, 3)), TINY),
    "document": (s1(tw.Perceptron, max_iter=6, lookback=tw.Lookback(document=True)), DOCUMENTS),
    "lookback, last weights": (s1(tw.MIRA, max_iter=6, lookback=(1, 2), average=False), TINY),
    "kernel rows": (s1(tw.Perceptron, max_iter=6, kernel="rbf"), TINY),
    "kernel, written out": (s1(tw.Perceptron, max_iter=6, kernel=tw.Poly(form="expanded"), average=False), TINY),
    "kernel, budget": (s1(tw.Perceptron, max_iter=6, kernel=tw.Poly(form="rows", budget=9)), TINY),
    "svm": (s1(tw.HMSVM, max_iter=6, tol=0.0), SMALL),
    "svm, a slack a path": (s1(tw.HMSVM, max_iter=6, tol=0.0, slack=("sequence", 4)), TINY),
    "svm, converges": (s1(tw.HMSVM, C=0.1, tol=1e-2, rescale="margin"), SMALL),
    "svm, kernel": (s1(tw.HMSVM, max_iter=6, tol=0.0, kernel="rbf"), TINY),
    "svm, kernel written out": (s1(tw.HMSVM, max_iter=6, tol=0.0, kernel=tw.Poly(form="expanded")), TINY),
    "boosting": (s1(tw.Boosting, max_iter=12, every=2, features_per_round=20, random_state=3), SMALL),
    "boosting, one by one": (
        s1(tw.Boosting, max_iter=24, every=4, features_per_round=1, bound="loose", candidates=0.5),
        SMALL,
    ),
    "boosting, apart": (
        s1(tw.Boosting, max_iter=12, every=2, features_per_round=4, overlap=False, step="line_search"),
        SMALL,
    ),
    "boosting, exact": (s1(tw.Boosting, max_iter=6, every=1, features_per_round=2, bound="exact"), TINY[:4]),
    "boosting, pointwise": (
        s1(tw.Boosting, max_iter=12, every=2, features_per_round=9, loss="pointwise_exp", step="bound"),
        SMALL,
    ),
}  # fmt: skip


class Died(Exception):
    """Ends a run in these tests, as abruptly as a callback can."""


def dying(at: int) -> Callable[[Any], None]:
    """Return a callback that raises Died after iteration `at`."""

    def callback(entry: Any) -> None:
        if entry.iteration == at:
            raise Died

    return callback


def saved(tagger: tw.Tagger, path: Path) -> bytes:
    tagger.save(path)
    return path.read_bytes()


def history_without_times(tagger: tw.Tagger) -> list[dict[str, Any]]:
    """Return the history without times."""
    return [{k: v for k, v in entry.items() if k != "seconds"} for entry in tagger.history_]


#: Runs that are also scored on a dev set: one per training loop.
SCORED = ("auto", "dual", "sgd", "perceptron", "voters", "lookback", "kernel rows", "svm", "boosting")


@pytest.mark.parametrize(
    ("name", "dev"),
    [*((name, None) for name in RUNS), *((name, DEV) for name in SCORED)],
    ids=lambda value: value if isinstance(value, str) else "dev" if value else "",
)
def test_resumed_run_equals_an_uninterrupted_run(name: str, dev: tw.Corpus | None, tmp_path: Path) -> None:
    """Runs are killed after several iterations, and again after resuming, with checkpoints every 1 or 3 iterations."""
    make, data = RUNS[name]
    whole = make().fit(data, dev=dev)
    expected, last = saved(whole, tmp_path / "m"), len(whole.history_)
    assert last > 4
    path = tmp_path / "run.checkpoint"
    for every, deaths in ((1, (1, last)), (3, (last - 1,))):
        path.unlink(missing_ok=True)
        for death in deaths:
            with pytest.raises(Died):
                make().fit(
                    data,
                    dev=dev,
                    checkpoint=Checkpoint(path, every=every, resume=True),
                    callbacks=[dying(death)],
                )
        again = make().fit(data, dev=dev, checkpoint=Checkpoint(path, every=every, resume=True))
        assert saved(again, tmp_path / "m") == expected
        assert history_without_times(again) == history_without_times(whole)
        assert (again.stopped_, again.best_iteration_) == (whole.stopped_, whole.best_iteration_)
    finished = make().fit(data, dev=dev, checkpoint=Checkpoint(path, every=3, resume=True))
    assert saved(finished, tmp_path / "m") == expected
    assert finished.stopped_ == whole.stopped_
    assert sorted(os.listdir(tmp_path)) == ["m", "run.checkpoint"]


def test_resume_runs_only_the_remaining_iterations(tmp_path: Path) -> None:
    """With `resume` only the remaining iterations run. Without it all run, and the file is that of the new run."""
    path, seen = tmp_path / "c", []
    tagger = tw.Perceptron(features="S1", max_iter=5)
    with pytest.raises(Died):
        tagger.fit(SMALL, checkpoint=Checkpoint(path, every=1), callbacks=[dying(4)])
    tagger.fit(
        SMALL,
        checkpoint=Checkpoint(path, resume=True),
        callbacks=[lambda entry: seen.append(entry.iteration)],
    )
    assert seen == [4, 5]
    tagger.fit(SMALL, checkpoint=Checkpoint(path), callbacks=[lambda entry: seen.append(entry.iteration)])
    assert seen[2:] == [1, 2, 3, 4, 5]
    other = tw.Perceptron(features="S1", max_iter=7).fit(SMALL, checkpoint=Checkpoint(path, every=1))
    assert StoredCheckpoint(str(path)).header["run"]["params"]["max_iter"] == 7
    assert len(other.history_) == 7


def test_stop_by_callback_leaves_a_checkpoint(tmp_path: Path) -> None:
    """A run stopped by a callback can be resumed, regardless of `every`."""
    path = tmp_path / "c"
    whole = tw.CRF(features="S1", max_iter=9, tol=0.0).fit(SMALL)
    tagger = tw.CRF(features="S1", max_iter=9, tol=0.0)
    tagger.fit(SMALL, checkpoint=Checkpoint(path, every="1h"), callbacks=[lambda entry: entry.iteration == 4])
    assert (tagger.stopped_, len(tagger.history_)) == ("a callback returned True", 4)
    tagger.fit(SMALL, checkpoint=Checkpoint(path, every="1h", resume=True))
    assert saved(tagger, tmp_path / "a") == saved(whole, tmp_path / "b")


def test_checkpoint_intervals_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If `every` is a duration, the clock decides. Each checkpoint starts a new interval."""
    now = [100.0]
    monkeypatch.setattr(files.time, "monotonic", lambda: now[0])
    checkpointer = Checkpointer(Checkpoint(tmp_path / "c", every="2m"), {})
    due = []
    for _ in range(8):
        now[0] += 50.0
        due.append(checkpointer.due(1))
        if due[-1]:
            checkpointer.write({"iteration": 1}, {})
    assert due == [False, False, True, False, False, True, False, False]


@pytest.mark.parametrize(
    ("every", "expected"),
    [(7, (7, None)), ("7", (7, None)), ("30s", (None, 30.0)), ("1.5m", (None, 90.0)), ("2 h", (None, 7200.0))],
)  # fmt: skip
def test_intervals_are_parsed(every: int | str, expected: tuple[int | None, float | None]) -> None:
    assert Checkpoint("c", every=every).interval() == expected


@pytest.mark.parametrize("every", [0, -1, "", "m", "5 days", "0s", 2.5, None])
def test_invalid_intervals_are_rejected(every: Any) -> None:
    with pytest.raises(tw.exceptions.ParameterError, match="expected a number of iterations, or a time"):
        tw.CRF(features="S1").fit(SMALL, checkpoint=Checkpoint("nowhere/c", every=every))


def test_checkpoint_of_another_run_is_rejected(tmp_path: Path) -> None:
    """The error names the difference: a parameter with both values, sentences, dev, weights, learner or version."""
    path = tmp_path / "c"
    tw.CRF(features="S1", max_iter=3).fit(SMALL, dev=DEV, checkpoint=Checkpoint(path, every=1))
    kept = path.read_bytes()
    warm = tw.CRF(features="S1", max_iter=1).fit(SMALL)
    relabelled = tw.Corpus.from_lists(SMALL.tokens, [["O"] * len(s) for s in SMALL[:-1]] + [SMALL[-1].labels])

    def resumed(tagger: tw.Tagger, data: tw.Corpus, **more: Any) -> None:
        tagger.fit(data, **{"dev": DEV, **more, "checkpoint": Checkpoint(path, resume=True)})

    usual = {"features": "S1", "max_iter": 3}
    for tagger, data, more, message in (
        (tw.CRF(**usual, l2=0.5), SMALL, {}, "l2 was 0.1 and is 0.5 now"),
        (tw.CRF(features="S2", max_iter=3), SMALL, {}, "features was 'S1' and is 'S2' now"),
        (tw.CRF(**usual), SMALL[:-1], {}, "the training sentences, their features or labels have changed"),
        (tw.CRF(**usual), relabelled, {}, "the training sentences, their features or labels have changed"),
        (tw.CRF(**usual), SMALL, {"dev": DEV[:-1]}, "the development sentences have changed"),
        (tw.CRF(**usual), SMALL, {"dev": None}, "the development sentences have changed"),
        (
            tw.CRF(**usual),
            SMALL,
            {"sample_weight": [2.0] * len(SMALL)},
            "the weights of sentences have changed",
        ),
        (tw.CRF(**usual), SMALL, {"warm_start": warm}, "the weights to start from have changed"),
        (tw.MEMM(**usual), SMALL, {}, "learner was 'crf' and is 'memm' now"),
    ):
        with pytest.raises(tw.exceptions.TrainingError, match="belongs to another run") as refused:
            resumed(tagger, data, **more)
        assert message in str(refused.value)
        assert str(path) in str(refused.value)
        assert path.read_bytes() == kept
    for n_jobs, verbose in ((1, 0), (2, 1)):  # n_jobs and verbose may differ
        resumed(tw.CRF(**usual, n_jobs=n_jobs, verbose=verbose), SMALL)
    found = StoredCheckpoint(str(path))
    run = {**found.header["run"], "tagwise": "0.0.1"}
    files.write(
        str(path), {"run": run, **{name: found.state(name, Anything()) for name in ("loop", "learner")}}
    )
    with pytest.raises(tw.exceptions.TrainingError, match=r"tagwise was '0.0.1' and is"):
        resumed(tw.CRF(**usual), SMALL)


def test_damaged_checkpoint_is_rejected(tmp_path: Path) -> None:
    """The error names the file and the remedy. Nothing in the file is used or unpickled."""
    path = tmp_path / "c"
    tagger = tw.Perceptron(features="S1", max_iter=2)
    tagger.fit(SMALL, checkpoint=Checkpoint(path, every=1))
    whole = path.read_bytes()
    middle = len(whole) // 2
    np.save(tmp_path / "pickled", np.array([{}], dtype=object), allow_pickle=True)
    for text in (
        b"",
        b"junk",
        whole[:middle],
        whole[: middle - 8] + b"\xff" * 16 + whole[middle + 8 :],
        (tmp_path / "pickled.npy").read_bytes(),
    ):
        path.write_bytes(text)
        with pytest.raises(
            tw.exceptions.TrainingError, match="a damaged checkpoint, or not a checkpoint"
        ) as refused:
            tagger.fit(SMALL, checkpoint=Checkpoint(path, resume=True))
        assert str(path) in str(refused.value)
        assert path.read_bytes() == text
    path.unlink()
    path.mkdir()
    with pytest.raises(tw.exceptions.TrainingError, match="cannot be read"):
        tagger.fit(SMALL, checkpoint=Checkpoint(path, resume=True))


def test_checkpoint_arrays_are_bounded_by_the_file_size(tmp_path: Path) -> None:
    """Arrays are neither compressed nor shared, and arrays of another run are never read."""
    path = tmp_path / "c"
    tagger = tw.Perceptron(features="S1", max_iter=2)
    tagger.fit(SMALL, checkpoint=Checkpoint(path, every=1))
    forged = Forgery.of(path)
    forged.header["learner"]["plain"] = forged.header["loop"]["best"] = {"array": "0"}
    forged.write(path)
    with pytest.raises(tw.exceptions.TrainingError, match=r"named twice|expected a list"):
        tagger.fit(SMALL, checkpoint=Checkpoint(path, resume=True))
    with path.open("r+b") as file:  # the run is compared first, so a file of a terabyte is rejected at once
        file.truncate(1 << 40)
    with pytest.raises(tw.exceptions.TrainingError, match="another run: max_iter was 2 and is 3 now"):
        tw.Perceptron(features="S1", max_iter=3).fit(SMALL, checkpoint=Checkpoint(path, resume=True))


@pytest.mark.parametrize(
    "name", ["lbfgs", "owlqn", "cg", "sgd", "dual", "perceptron", "svm", "boosting", "voters"]
)
def test_non_finite_weights_are_rejected(name: str, tmp_path: Path) -> None:
    make, data = RUNS[name]
    path = tmp_path / "c"
    make().fit(data, checkpoint=Checkpoint(path, every=2))
    whole, tried = Forgery.of(path), 0
    for array in [array.name for array in whole.arrays if array.data.dtype.kind == "f" and len(array.data)]:
        forged = whole.copy()
        forged.change(array, 0, np.inf if array.endswith("0") else np.nan)
        forged.write(path)
        try:
            found = make().fit(data, checkpoint=Checkpoint(path, resume=True))
        except tw.exceptions.TrainingError:
            tried += 1
        else:  # curvature of L-BFGS may overflow and is then dropped
            assert np.isfinite(found.model_.scorer.weights).all()
    assert tried


def test_other_files_are_not_replaced_by_checkpoints(tmp_path: Path) -> None:
    """An existing file that is not a checkpoint is rejected before training, on the command line too."""
    path, source = tmp_path / "m.checkpoint", tmp_path / "train.txt"
    path.write_text("precious")
    tw.write(TINY, source, "conll")
    for resume in (False, True):
        with pytest.raises(tw.exceptions.TrainingError, match=r"m\.checkpoint.*not a checkpoint"):
            tw.Perceptron(features="S1", max_iter=2).fit(SMALL, checkpoint=Checkpoint(path, resume=resume))
    for learner in ("perceptron", "hmm"):
        options = ("-q", "-f", "S1", "--learner", learner, "-o", tmp_path / "m", "--checkpoint", "every=5m")
        done = invoke("train", source, *options)
        assert (done.exit_code == 0) == (learner == "hmm"), done.stderr
        assert path.read_text() == "precious"


@pytest.mark.parametrize("kind", ["fifo", "device", "folder", "link to nothing"])
def test_paths_that_are_not_regular_files_are_rejected(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "c"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "device" else tmp_path / "nowhere")
    for resume in (False, True):
        with pytest.raises(tw.exceptions.TrainingError, match=str(path)):
            tw.Perceptron(features="S1", max_iter=2).fit(TINY, checkpoint=Checkpoint(path, resume=resume))


def test_unwritable_checkpoint_raises(tmp_path: Path) -> None:
    """A checkpoint that was requested and cannot be written raises FileError."""
    with pytest.raises(tw.exceptions.FileError, match="nowhere"):
        tw.Perceptron(features="S1", max_iter=2).fit(
            SMALL, checkpoint=Checkpoint(tmp_path / "nowhere" / "c", every=1)
        )


def test_hmm_writes_no_checkpoint(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A hidden Markov model is trained as usual. No checkpoint is written, and an existing file is ignored."""
    path, plain = tmp_path / "c", tw.HMM(features="S1").fit(SMALL)
    path.write_bytes(b"something else")
    with caplog.at_level("INFO", logger="tagwise"):
        tagger = tw.HMM(features="S1").fit(SMALL, checkpoint=Checkpoint(path, every=1, resume=True))
    assert "hmm trains in one pass" in caplog.text
    assert path.read_bytes() == b"something else"
    assert saved(tagger, tmp_path / "a") == saved(plain, tmp_path / "b")
    with pytest.raises(tw.exceptions.ParameterError, match="expected a number of iterations, or a time"):
        tw.HMM(features="S1").fit(SMALL, checkpoint=Checkpoint(path, every="often"))


@pytest.mark.parametrize(
    ("make", "other", "message"),
    [
        (tw.HMSVM, {"C": 2.0}, "C was 1.0 and is 2.0 now"),
        (tw.Boosting, {"max_step": 2.0}, "max_step was 5.0 and is 2.0 now"),
        (tw.Perceptron, {"lookback": (1, 2)}, "lookback was None and is"),
        (tw.Perceptron, {"kernel": "poly"}, "kernel was None and is .*poly"),
        (tw.Perceptron, {"lookback": tw.Lookback(document=True)}, "lookback was None and is"),
    ],
)
def test_checkpoints_with_other_parameters_are_rejected(
    make: Any, other: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """A checkpoint of other parameters, sentences or documents is rejected, as for a CRF."""
    few = {tw.HMSVM: {"max_iter": 2}, tw.Boosting: {"max_iter": 2, "every": 1}}.get(make, {"max_iter": 2})
    kept = Checkpoint(tmp_path / "c", every=1, resume=True)
    make(features="S1", **few).fit(DOCUMENTS, checkpoint=kept)
    with pytest.raises(tw.exceptions.TrainingError, match=message):
        make(features="S1", **few, **other).fit(DOCUMENTS, checkpoint=kept)
    with pytest.raises(
        tw.exceptions.TrainingError, match="the training sentences, their features or labels have changed"
    ):
        make(features="S1", **few).fit(DOCUMENTS[:-1], checkpoint=kept)
    (tmp_path / "c").unlink()
    if make is tw.Perceptron:
        make(features="S1", **few, **other).fit(DOCUMENTS, checkpoint=kept)
        again = in_documents(TINY, 3)
        if isinstance(other.get("lookback"), tw.Lookback):  # with document features
            with pytest.raises(tw.exceptions.TrainingError, match="the training sentences"):
                make(features="S1", **few, **other).fit(again, checkpoint=kept)
        else:  # learners without document features accept other documents
            make(features="S1", **few, **other).fit(again, checkpoint=kept)


@pytest.mark.parametrize(
    "name", ["perceptron", "lookback", "kernel rows", "kernel, written out", "svm", "svm, kernel", "boosting"]
)
def test_core_rejects_states_of_other_data(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state of other data is rejected: nothing is read out of bounds, and the learner is unchanged."""
    make, data = RUNS[name]
    states: list[Any] = []

    class Noting(Checkpointer):
        def __init__(self, state: Any = None) -> None:
            self.path, self.state = "c", state

        def loop(self, domain: Any) -> Any:
            return None

        def learner(self, domain: Any) -> Any:
            return self.state

        def due(self, iteration: int) -> bool:
            return iteration == 2

        def write(self, loop: Any, learner: Any) -> None:
            states.append(learner)

    def trained(corpus: tw.Corpus, checkpointer: Any) -> tw.Tagger:
        monkeypatch.setattr("tagwise.estimators.base.checkpointer_of", lambda *given: checkpointer)
        return make().fit(corpus, checkpoint=Checkpoint("c"))

    trained(data, Noting())
    (state,) = states
    with pytest.raises(tw.exceptions.TrainingError, match=r"train again|finite numbers|steps"):
        trained(data[:-2], Noting(state))


@pytest.mark.parametrize(
    "name", [name for name, optimizer in OPTIMIZERS.items() if name not in ("sgd", "dual")]
)
def test_optimisers_resume_from_their_state(name: str) -> None:
    """The state after any step, loaded into a new optimiser, gives the same further steps.

    Without `keep` there is none.
    """
    rng = np.random.default_rng(3)
    a = rng.normal(size=(40, 25))

    def objective(w: Any, gradient: Any) -> float:
        r = a @ w - 1.0
        gradient[:] = a.T @ np.tanh(r) + 0.1 * w
        return float(np.logaddexp(r, -r).sum() + 0.05 * w @ w)

    more = {"l1": 0.3} if OPTIMIZERS[name].l1 else {}

    def steps(n: int, **options: Any) -> list[Any]:
        found = []
        for _, step in zip(range(n), OPTIMIZERS[name].run(objective, np.zeros(25), **more, **options)):
            state = (
                None
                if step.state is None
                else {k: np.copy(v) if hasattr(v, "shape") else v for k, v in step.state().items()}
            )
            found.append((step.w.tobytes(), step.value, step.gradient_norm, step.evaluations, state))
        return found

    whole = steps(12, keep=True)
    assert [step[:4] for step in steps(12)] == [step[:4] for step in whole]
    assert all(step[4] is None for step in steps(3))
    for k in (0, 1, 5, 9):
        rest = steps(12 - k, keep=True, resume=whole[k][4])
        assert [step[:4] for step in rest] == [step[:4] for step in whole[k:]]


KILLED = """
import os, signal, sys
from tagwise.cli import cli
from tagwise.learners import checkpoint
inner, left = checkpoint.write, [int(sys.argv[1])]

def write(path, content):
    left[0] -= 1
    if not left[0] and sys.argv[2] == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    inner(path, content)
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)

checkpoint.write = write
cli.main(sys.argv[3:])
"""


def test_kill_and_resume_on_the_command_line(tmp_path: Path) -> None:
    """After SIGKILL before and after a checkpoint, `--resume` writes the file of an uninterrupted run and cleans up."""
    source = tmp_path / "train.txt"
    tw.write(TRAIN, source, "conll")
    options = [str(source), "-q", "-f", "S1", "--set", "max_iter=10", "--set", "tol=0"]

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *args], capture_output=True, text=True, timeout=600)

    plain = tmp_path / "plain.tagwise"
    assert invoke("train", *options, "-o", plain).exit_code == 0
    out = tmp_path / "out.tagwise"
    train = ["train", *options, "-o", str(out), "--checkpoint", "every=2", "--resume"]
    for number, when in (("2", "before"), ("2", "behind")):
        died = run("-c", KILLED, number, when, *train)
        assert died.returncode == -signal.SIGKILL
        assert not out.exists()
        assert (tmp_path / "out.tagwise.checkpoint").exists()
    ended = invoke(*train)
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert out.read_bytes() == plain.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["out.tagwise", "plain.tagwise", "train.txt"]
