"""Tests of sentence weights in online learners: a weight multiplies a sentence's step and its loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tagwise import _core
from tagwise.scores.kernels import KernelFunction

from . import constructors
from .kernel_learners import TWIN, KernelProblem, frame, random_sparse
from .online import KINDS, Native, corpus, learner, native, orders, run, weights_of
from .reference import history, model, perceptron
from .weighted import COUNTS, Bag

# -- against the reference implementations ----------------------------------------------------------------


@pytest.mark.parametrize("labels", [3, 17])
@pytest.mark.parametrize(("batch", "shards"), [(False, 1), (True, 1), (True, 2)])
def test_perceptron_matches_the_weighted_reference(labels: int, batch: bool, shards: int) -> None:
    """The last weights are equal to the bit. The average counts every step, independent of the sentence's weight."""
    p = corpus(labels, labels, n=20)
    n, weight, order = native(p), weights_of(20), orders(p, 3, labels)
    mask = model.observed(list(zip(p.X, p.y)), p.shape)
    if batch:
        last, mean = perceptron.batch_perceptron(p.X, p.y, p.shape, 3, mask, weight.tolist())
    else:
        last, mean = perceptron.perceptron(p.X, p.y, p.shape, order, mask, weight.tolist())
    online = n.online("perceptron", batch=batch, shards=shards, sample_weight=weight)
    for epoch in order:
        online.epoch(None if batch else np.array(epoch, dtype=np.uint32))
    np.testing.assert_array_equal(online.weights(averaged=False), last[n.at])
    np.testing.assert_allclose(online.weights(), mean[n.at], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("m", "far", "document"), [(1, 1, False), (1, 3, False), (2, 2, False), (1, 2, True), (2, 3, True)]
)
@pytest.mark.parametrize("k", [0, 1, 3])
def test_history_matches_the_weighted_reference(m: int, far: int, document: bool, k: int) -> None:
    """Compare the perceptron (k = 0) for three epochs, and MIRA's first step, since later ones may have ties."""
    for seed in range(3 if k else 1):
        p = corpus(seed + 40, 3, n=1 if k else 12, attributes=6, longest=5)
        n, weight = native(p), weights_of(len(p.X)) if k == 0 else np.array([2.5], dtype=np.float32)
        words = [[str(int(x[t].sum()) % 3) for t in range(len(x))] for x in p.X]
        documents = [list(range(i, min(i + 3, len(p.X)))) for i in range(0, len(p.X), 3)]
        flat = np.array([int(w) for sentence in words for w in sentence], dtype=np.uint32)
        starts = np.array([d[0] for d in documents], dtype=np.uint32)
        learner = constructors.history_online(
            n.data,
            n.layout,
            _core.LookbackSpec(3, m, far, document=document),
            "mira" if k else "perceptron",
            words=(flat, starts) if document else None,
            shuffle=False,
            k=max(k, 1),
            sample_weight=weight,
        )
        epochs = 1 if k else 3
        for _ in range(epochs):
            learner.epoch()
        mask, terms = model.observed(list(zip(p.X, p.y)), p.shape), history.Terms(3, far, document)
        order = documents if document else [[i] for i in range(len(p.X))]
        slow = history.train(p.X, p.y, words, order, p.shape, terms, m, epochs, mask, k, weight.tolist())
        at = np.concatenate([n.at, p.shape.size + np.arange(terms.size)]).astype(int)
        np.testing.assert_allclose(learner.weights(averaged=False), slow[0][at], atol=1e-4 if k else 0)
        np.testing.assert_allclose(learner.weights(), slow[1][at], atol=1e-4 if k else 1e-9)
        assert np.any(slow[0])


@pytest.mark.parametrize("kernel", [KernelFunction("poly", 2, 1.0), KernelFunction("rbf", gamma=0.3)])
@pytest.mark.parametrize("form", ["auto", "rows"])
def test_dual_perceptron_matches_the_weighted_reference(kernel: KernelFunction, form: str) -> None:
    p = random_sparse(8, n=15)
    k, order, weight = KernelProblem(p), orders(p, 3, 2), weights_of(15)
    core = k.perceptron(kernel, form=form, sample_weight=weight)
    run(core, order)  # type: ignore[arg-type]
    twins = perceptron.dual_perceptron(p.X, p.y, 5, order, TWIN[kernel.name], weight.tolist())
    for averaged, twin in zip((False, True), twins):
        beta, move, start, end = k.split(core.weights(averaged))
        np.testing.assert_allclose(beta, k.shared(twin.beta), atol=1e-9)
        for ours, slow in ((move, twin.transition), (start, twin.start), (end, twin.end)):
            np.testing.assert_allclose(ours, slow, atol=1e-9)


# -- losses of an epoch -------------------------------------------------------------------------------------


def weighted(b: Bag, i: int, weight: float, name: str, **more: Any) -> Any:
    """Return a learner of one sentence of this weight."""
    data = b.data([i])
    common = {"shuffle": False, "sample_weight": np.array([weight], dtype=np.float32), **more}
    if name == "kernel":
        layout = frame(b.vocabulary, b.data(b.everyone), b.labels)
        return constructors.kernel_perceptron(data, layout, KernelFunction("poly", 2, 1.0), **common)
    if name == "history":
        return constructors.history_online(data, b.layout, _core.LookbackSpec(b.labels, 1, 2), **common)
    return learner(Native(data, b.layout, np.zeros(0)), name, **common)


@pytest.mark.parametrize("name", [*KINDS, "batch", "kernel", "history"])
def test_epoch_loss_is_weighted(name: str) -> None:
    """From equal weights the loss is each sentence's loss times its weight. Sentences of weight 0 make no update."""
    b = Bag(17, n=len(COUNTS))
    more: dict[str, Any] = {"batch": {"batch": True}, "history": {"kind": "perceptron"}}.get(name, {})
    name = "perceptron" if name == "batch" else name
    far = np.zeros(b.labels**2 if name == "history" else 0)
    for i in range(3):
        tallies = []
        for weight in (1.0, 2.5, 0.0):
            online = weighted(b, i, weight, name, **more)
            if name != "kernel":
                online.restore({"weights": np.concatenate([b.weights(3), far])})
            tallies.append(online.epoch())
        one, more_, none = tallies
        assert more_["loss"] == pytest.approx(2.5 * one["loss"], rel=1e-6)
        assert none["loss"] == 0.0
        assert one["updates"] == more_["updates"]
        assert none["updates"] == 0
        assert one["wrong_tokens"] == more_["wrong_tokens"] == none["wrong_tokens"]
