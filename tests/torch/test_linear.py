"""The linear CRF of the cuda backend has the values, gradients, optima, labels and marginals of the core."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import tagwise as tw  # noqa: E402
import tagwise.torch as tt  # noqa: E402
from tagwise import _core  # noqa: E402
from tagwise.learners.backends import BACKENDS, Backend, using  # noqa: E402
from tagwise.optimizers.base import HostVectors  # noqa: E402
from tagwise.torch.engines import cuda, launching  # noqa: E402
from tagwise.torch.formulas import FORMULAS, formula_of  # noqa: E402
from tagwise.torch.linear import backend, objective, ragged, vectors  # noqa: E402
from tagwise.torch.linear.scorer import DeviceScorer  # noqa: E402
from tests.torch.common import GPU  # noqa: E402
from tests.torch.emulated import kernels, needs_compiler  # noqa: E402, F401

WORDS = ["Rosa", "Lund", "runs", "to", "a", "Malmo", "reads", "slowly"]
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "O", "B-LOC", "O", "O"]


def sentences(many: int, seed: int) -> tuple[list[Any], list[list[str]]]:
    """Return attributes with and without values, and labels that depend on the words with some noise."""
    draw = random.Random(seed)
    X, y = [], []
    for _ in range(many):
        words = [draw.randrange(len(WORDS)) for _ in range(draw.randint(1, 9))]
        X.append(
            [
                {
                    "bias": 1.0,
                    f"w={WORDS[w]}": 1.0,
                    "size": len(WORDS[w]) / 4,
                    f"before={t and words[t - 1]}": 0.5,
                }
                for t, w in enumerate(words)
            ]
        )
        y.append([LABELS[w] if draw.random() < 0.8 else draw.choice(LABELS[:4]) for w in words])
    return X, y


TRAIN, TEST = sentences(40, 0), sentences(15, 1)


def words(X: list[Any]) -> list[list[str]]:
    """Return the words of the attributes."""
    return [
        [next(name[2:] for name in token if name.startswith("w=")) for token in sentence] for sentence in X
    ]


def partly(labels: list[list[str]]) -> list[list[Any]]:
    """Make every third label unknown, and every seventh one of two."""
    return [[None if k % 3 == 1 else y if k % 7 else {y, "O"} for k, y in enumerate(path)] for path in labels]


class Both:
    """Objective of the cuda backend that is compared with the core's at each evaluated point."""

    def __init__(self, problem: Any, on: Any) -> None:
        self.ours = backend.objective(problem, on)
        self.core = BACKENDS["cpu"].objective(problem)
        self.points = 0

    def _same(self, name: str, w: Any, gradient: Any) -> tuple[float, float]:
        there = w.cpu().numpy() if isinstance(w, torch.Tensor) else w
        other = np.empty(len(there))
        want = getattr(self.core, name)(there, other)
        got = getattr(self.ours, name)(w, gradient)
        here = gradient.cpu().numpy() if isinstance(gradient, torch.Tensor) else gradient
        assert got == pytest.approx(want, rel=2e-6, abs=2e-6)
        np.testing.assert_allclose(here, other, rtol=1e-4, atol=2e-5 * max(1.0, np.abs(other).max()))
        self.points += 1
        return got

    def value(self, w: Any, gradient: Any, n_jobs: int = 0, /) -> tuple[float, float]:
        return self._same("value", w, gradient)

    def log_value(self, w: Any, gradient: Any, n_jobs: int = 0, /) -> tuple[float, float]:
        return self._same("log_value", w, gradient)


@contextmanager
def checked_backend(device: str, patch: pytest.MonkeyPatch) -> Iterator[list[Both]]:
    """Register a backend that checks itself, and yield the list of its objectives."""
    made: list[Both] = []
    on = torch.device(device)

    def both(problem: Any) -> Both:
        made.append(Both(problem, on))
        return made[-1]

    def scorer(*given: Any) -> Any:
        return DeviceScorer(*given, on=on)

    other = Backend("other", both, scorer, vectors=lambda n_jobs: backend.DeviceVectors(on))
    patch.setitem(BACKENDS, "other", other)
    with using("other"):
        yield made


ON = [
    "cpu",
    pytest.param("emulated", marks=needs_compiler),
    pytest.param("cuda", marks=[pytest.mark.cuda, pytest.mark.skipif(not GPU, reason="no GPU here")]),
]
EDGES = "U00:%x[0,0]\nU01:%x[-1,0]\nB01:%x[0,0]\nB"
SETTINGS: dict[str, dict[str, Any]] = {
    "log": {"l2": 1.0},
    **{loss: {"loss": loss, "l2": 0.3} for loss in _core.LOSSES if loss != "log"},
    "owlqn": {"l1": 0.5, "l2": 0.0},
    "constraints": {"constraints": "BIO"},
    "cost": {"class_weight": {"O": 4.5, "B-PER": 13.0, "I-PER": 4.5, "B-LOC": 9.0}},
    "dictionary": {"features": "S1", "dictionary": 1},
    "pieces": {"max_length": 3},
    "edge attributes": {"features": EDGES},
    **{
        f"edge attributes, {loss}": {"features": EDGES, "loss": loss, "l2": 0.3, "max_length": 4}
        for loss in _core.LOSSES
        if loss != "log"
    },
}


def test_every_loss_has_a_formula() -> None:
    """A loss without a formula raises an error."""
    assert set(FORMULAS) == set(_core.LOSSES) <= set(tt.LOSSES)
    with pytest.raises(tw.exceptions.ParameterError, match="device='cuda' does not support loss='other'"):
        formula_of("other")


def well_formed(labels: list[list[str]]) -> list[list[str]]:
    """Replace an I that does not continue a span of its type by B."""
    out = []
    for path in labels:
        path = list(path)
        for t, y in enumerate(path):
            if y == "I-PER" and (t == 0 or path[t - 1] not in ("B-PER", "I-PER")):
                path[t] = "B-PER"
        out.append(path)
    return out


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("setting", SETTINGS)
def test_training_matches_the_core(
    on: str, setting: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Values and gradients match at every point of training, and the labels and marginals of the trained weights."""
    if on == "emulated":
        if setting not in ("log", "pointwise_exp"):
            pytest.skip("kernels do not know what the scores are made of")
        request.getfixturevalue("kernels")
        monkeypatch.setattr(ragged, "_on_gpu", lambda chain: True)
        monkeypatch.setattr(objective, "_on_gpu", lambda on: True)
    few = 8 if on == "emulated" else 40
    X, y, test = TRAIN[0][:few], well_formed(TRAIN[1][:few]), TEST[0]
    weight = [1.0 + (k % 3) for k in range(few)]
    options = {"features": "attributes", "max_iter": 3 if on == "emulated" else 25, **SETTINGS[setting]}
    if options["features"] != "attributes":
        X, test = words(X), words(test)
    with checked_backend("cuda" if on == "cuda" else "cpu", monkeypatch) as made:
        tagger = tw.CRF(**options).fit(X, y, sample_weight=weight)
        labels, marginals = tagger.predict(test), tagger.predict_marginals(test)
    assert made[0].points > 2
    assert isinstance(tagger.model_.scorer, DeviceScorer)
    core = tagger.model_.native
    monkeypatch.setattr(tagger, "model_", _with(tagger.model_, core))
    assert tagger.predict(test) == labels
    for ours, theirs in zip(marginals, tagger.predict_marginals(test)):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


@pytest.mark.parametrize("on", ["cpu", ON[2]])
@pytest.mark.parametrize("setting", ["log", "exp", "pointwise_log", "partial"])
def test_many_labels(on: str, setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, gradients and paths match when sentences are padded in groups, here of two or three."""
    monkeypatch.setattr(cuda, "MOST_LABELS", 3)
    monkeypatch.setattr(ragged, "_PAIRS", 40)
    monkeypatch.setattr(ragged, "_on_gpu", lambda chain: True)
    partial = setting == "partial"
    options = {
        "features": "attributes",
        "max_iter": 15,
        **({"partial": True} if partial else SETTINGS[setting]),
    }
    X, y = TRAIN[0][:20], TRAIN[1][:20]
    with checked_backend(on, monkeypatch) as made:
        tagger = tw.CRF(**options, optimizer="lbfgs").fit(X, partly(y) if partial else y)
        labels, marginals = tagger.predict(TEST[0]), tagger.predict_marginals(TEST[0])
    assert made[0].points > 2
    assert len(made[0].ours.sentences.places.groups) > 3
    monkeypatch.setattr(tagger, "model_", _with(tagger.model_, tagger.model_.native))
    assert tagger.predict(TEST[0]) == labels
    for ours, theirs in zip(marginals, tagger.predict_marginals(TEST[0])):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


def _with(model: Any, scorer: Any) -> Any:
    from dataclasses import replace

    return replace(model, scorer=scorer)


@pytest.mark.parametrize("on", [ON[0], ON[2]])
def test_partial_labels(on: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Training on partly known labels has the core's objective and labels."""
    options: dict[str, Any] = {"features": "attributes", "partial": True, "l2": 0.5, "max_iter": 20}
    with checked_backend(on, monkeypatch) as made:
        there = tw.CRF(**options, optimizer="lbfgs").fit(TRAIN[0], partly(TRAIN[1]))
    here = tw.CRF(**options, optimizer="lbfgs").fit(TRAIN[0], partly(TRAIN[1]))
    assert made[0].points > 2
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-5)
    assert there.predict(TEST[0]) == here.predict(TEST[0])


@pytest.mark.cuda
@pytest.mark.skipif(not GPU, reason="no GPU here")
@pytest.mark.parametrize("setting", ["log", "owlqn", "exp"])
def test_optimum_matches_the_cpu(setting: str) -> None:
    """`device="cuda"` reaches the CPU's objective to 1e-6, and its labels."""
    options = {"features": "attributes", "tol": 1e-9, "max_iter": 2000, **SETTINGS[setting]}
    there, here = (tw.CRF(**options, device=device).fit(*TRAIN) for device in ("cuda", "cpu"))
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-6)
    assert there.predict(TEST[0]) == here.predict(TEST[0])


@needs_compiler
def test_sums_of_rows(kernels: None) -> None:  # noqa: F811
    """The kernel sums rows of lists of any length, with and without weights."""
    draw = torch.Generator().manual_seed(0)
    begins = torch.tensor([0, 3, 3, 40, 41], dtype=torch.int32)
    members = torch.randint(7, (41,), generator=draw, dtype=torch.int32)
    for width in (8, 24, 136):
        rows = torch.randn(7, width, generator=draw)
        for values in (None, torch.rand(41, generator=draw)):
            out = torch.zeros(4, width)
            kernel = launching.kernel("linear", 0, (("WIDTH", width),), "linear_sums")
            given = begins.data_ptr(), members.data_ptr(), 0 if values is None else values.data_ptr()
            kernel(
                (-(-4 * objective.lanes(width) // 128), 1, 1), 128, *given, rows.data_ptr(), 4, out.data_ptr()
            )
            each = rows[members.long()] * (1.0 if values is None else values[:, None])
            want = torch.stack([each[a:b].sum(0) for a, b in zip(begins.tolist(), begins.tolist()[1:])])
            torch.testing.assert_close(out, want)


def test_unsupported_options_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unsupported options raise an error that suggests device='cpu'."""
    with (
        checked_backend("cpu", monkeypatch),
        pytest.raises(tw.exceptions.ParameterError, match=r"does not support order > 1\. Use device='cpu'"),
    ):
        tw.CRF(features="attributes", order=2).fit(*TRAIN)
    if GPU:
        with pytest.raises(
            tw.exceptions.ParameterError, match=r"does not support order > 1\. Use device='cpu'"
        ):
            tw.CRF(features="attributes", order=2, device="cuda").fit(*TRAIN)
        return
    with pytest.raises(tw.exceptions.ParameterError, match=r"PyTorch finds no GPU\. Use device='cpu'"):
        tw.CRF(features="attributes", device="cuda").fit(*TRAIN)


@pytest.mark.parametrize("scaled", [False, True])
def test_curvature_pairs_match_the_core(scaled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Directions equal those of the core's two-loop recursion, also after saving and restoring the pairs."""
    draw = np.random.default_rng(0)
    n, memory = 700, 3
    d = draw.uniform(0.5, 1.0, n).astype(np.float32) if scaled else None
    on = backend.DeviceVectors(torch.device("cpu"))
    core, ours = HostVectors(1).pairs(memory, d), on.pairs(memory, d)
    curved = draw.uniform(0.5, 2.0, n)
    w, g = draw.normal(size=n), draw.normal(size=n)
    for k in range(5):
        new = w + draw.normal(size=n)
        change = g + curved * (new - w)
        core.push(w, new, g, change)
        want = np.empty(n)
        slope = core.direction(change, want)
        given = [on.held(x) for x in (w, new, g, change)]
        ours.push(*given)
        found = on.like(given[0])
        same = given[3] if k % 2 else given[3].clone()
        assert ours.direction(same, found) == pytest.approx(slope, rel=1e-5)
        np.testing.assert_allclose(found.numpy(), want, rtol=1e-4, atol=1e-5)
        w, g = new, change
    monkeypatch.setattr(vectors, "device", lambda: on.device)
    again, one, other = on.pairs(memory, d), on.like(on.held(g)), on.like(on.held(g))
    again.restore(ours.state())
    assert len(again) == len(ours)
    slope = ours.direction(on.held(g), one)
    assert again.direction(on.held(g), other) == pytest.approx(slope, rel=1e-9)
    np.testing.assert_allclose(other.numpy(), one.numpy(), rtol=1e-6, atol=1e-9)
