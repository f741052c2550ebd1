"""Tests of sentence weights in online learners: a weight multiplies a sentence's step, and 0 leaves it out."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
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


# -- left out, given twice --------------------------------------------------------------------------------


@cache
def bag(edges: bool = False) -> Bag:
    return Bag(17, n=len(COUNTS), edge_attributes=edges)


def trained(
    b: Bag,
    which: Iterable[int],
    weight: np.ndarray | None,
    name: str,
    option: str,
    epochs: int = 4,
    **more: Any,
) -> Any:
    """Return a learner of these sentences after some epochs in their order."""
    which = list(which)
    data, common = b.data(which), {"shuffle": False, **b.options(option, which), **more}
    common["sample_weight"] = None if weight is None else weight.astype(np.float32)
    online: Any
    if name == "kernel":
        layout = frame(b.vocabulary, b.data(b.everyone), b.labels)
        online = constructors.kernel_perceptron(data, layout, KernelFunction("poly", 2, 1.0), **common)
    elif name.startswith("history"):
        m, far = (int(x) for x in name[-2:])
        online = constructors.history_online(data, b.layout, _core.LookbackSpec(b.labels, m, far), **common)
    else:
        online = learner(Native(data, b.layout, np.zeros(0)), name, **common)
    for _ in range(epochs):
        online.epoch()
    return online


KEPT = 6  # the later sentences have weight 0, so shards do not change
ROWS: list[tuple[str, str, dict[str, Any]]] = [
    *(("perceptron", option, {}) for option in ("plain", "limits", "once", "edges")),
    *(("perceptron", option, {"batch": True}) for option in ("plain", "limits", "once", "edges")),
    *(("perceptron", option, {"shards": 2}) for option in ("plain", "limits", "once", "edges")),
    *((f"history {m}{p}", option, {"kind": "perceptron"})
      for m, p in ((1, 2), (2, 2), (2, 3)) for option in ("plain", "limits", "once")),
    *(("kernel", option, {"form": form}) for option in ("plain", "limits") for form in ("auto", "rows")),
    ("kernel", "plain", {"budget": 3}),
    *((name, option, {}) for name in KINDS if name != "perceptron"
      for option in ("plain", "limits", "once", "edges")),
    *((f"history {m}{p}", option, {"kind": "mira", "k": k, "limit": 0.1 if k == 4 else None})
      for m, p, k in ((1, 2, 1), (2, 2, 4)) for option in ("plain", "limits", "once")),
    ("mira-5", "plain", {"shards": 2}),
]  # fmt: skip


def labelled(row: tuple[str, str, dict[str, Any]]) -> str:
    return " ".join([row[0], row[1], *(f"{k}={v}" for k, v in row[2].items())])


@pytest.mark.parametrize(("name", "option", "more"), ROWS, ids=map(labelled, ROWS))
def test_zero_weight_sentences_are_ignored(name: str, option: str, more: dict[str, Any]) -> None:
    """The last weights equal those without it, to the bit. A perceptron with weights of 2 has twice the weights."""
    b = bag(option == "edges")
    linear = more.get("kind", name) in ("perceptron", "kernel")
    common = 2.0 if linear else 1.0
    without = trained(b, range(KEPT), None, name, option, **more)
    got = trained(b, b.everyone, np.where(b.everyone < KEPT, common, 0.0), name, option, **more)
    last = without.weights(averaged=False)
    seen = got.weights(averaged=False)
    if name == "kernel":  # tokens only of the sentences left out have betas of 0
        assert not seen[len(last) :].any()
        seen = seen[: len(last)]
    np.testing.assert_array_equal(seen, common * last)
    everybody = trained(b, b.everyone, None, name, option, **more).weights(averaged=False)
    assert not np.array_equal(everybody[: len(last)], last)


@pytest.mark.parametrize("option", ["plain", "limits", "once", "edges"])
def test_batch_treats_integer_weights_as_repetitions(option: str) -> None:
    """The sums are equal, and so are weights and average to the bit."""
    b = bag(option == "edges")
    weighted = trained(b, b.everyone, COUNTS, "perceptron", option, batch=True)
    repeated = trained(b, np.repeat(b.everyone, COUNTS), None, "perceptron", option, batch=True)
    for averaged in (False, True):
        np.testing.assert_array_equal(weighted.weights(averaged), repeated.weights(averaged))
    assert weighted.weights(False).any()


@pytest.mark.parametrize("name", [*KINDS, "batch", "kernel", "history 12"])
def test_epoch_loss_is_weighted(name: str) -> None:
    """From equal weights the loss is each sentence's loss times its weight. Sentences of weight 0 make no update."""
    b = bag()
    more: dict[str, Any] = {"batch": True} if name == "batch" else {}
    more |= {"kind": "perceptron"} if name.startswith("history") else {}
    name = "perceptron" if name == "batch" else name
    for i in range(3):
        tallies = []
        for weight in (1.0, 2.5, 0.0):
            online = trained(b, [i], np.array([weight]), name, "plain", 0, **more)
            if name not in ("kernel", "history 12"):
                online.restore({"weights": b.weights(3)})
            elif name == "history 12":
                online.restore({"weights": np.concatenate([b.weights(3), np.zeros(b.labels**2)])})
            tallies.append(online.epoch())
        one, more_, none = tallies
        assert more_["loss"] == pytest.approx(2.5 * one["loss"], rel=1e-6)
        assert none["loss"] == 0.0
        assert one["updates"] == more_["updates"]
        assert none["updates"] == 0
        assert one["wrong_tokens"] == more_["wrong_tokens"] == none["wrong_tokens"]
