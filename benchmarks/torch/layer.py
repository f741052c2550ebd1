"""The CRF layer and the linear CRF compared with pytorch-crf, in one run.

Every figure is a median, and ratios are of the same run. On the CPU ours and the peer alternate, and the JSON also has
CPU times, since other programs affect them less. On a GPU, CUDA graphs replay the kernels, and a plain step goes
through autograd and is timed on the host. The cost of `(x * 2).sum().backward()` is shown for comparison. Both are also
timed without a separate autograd thread for the device (`one thread`). `log Z` includes other packages if they are
installed (`peers`). The linear CRF needs TAGWISE_DATA with conll2000.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torchcrf import CRF as Peer

import tagwise as tw
import tagwise.torch as tt
from benchmarks.harness import Context, Result
from benchmarks.torch import peers
from tagwise.torch import ops
from tagwise.torch.engines import cuda
from tagwise.torch.protocol import Chain

SIZES = [(64, 128, 9), (256, 128, 9), (64, 512, 23), (256, 128, 50), (1024, 64, 50)]
OPTIMUM = 13139.36  # of CRFsuite on conll2000, l2 = 1
TO_OPTIMUM = "to CRFsuite's optimum, s"
GOAL = 50  # speed-up over pytorch-crf on two cores


def clocked(call: Callable[[], Any], rounds: int, device: str) -> float:
    """Return the median milliseconds of a call on the clock of the host."""
    found = []
    for _ in range(rounds + 1):
        _sync(device)
        begun = time.perf_counter()
        call()
        _sync(device)
        found.append(1e3 * (time.perf_counter() - begun))
    return statistics.median(found[1:])


def in_turns(calls: dict[str, Callable[[], Any]], rounds: int, device: str) -> dict[str, tuple[float, float]]:
    """Return the median wall and CPU milliseconds of each call, alternated.

    A turn takes half a second, so that spinning threads of the previous turn are idle for most of it.
    """
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            end = time.perf_counter() + 0.5
            while True:
                _sync(device)
                begun, worked = time.perf_counter(), time.process_time()
                call()
                _sync(device)
                now = time.perf_counter()
                found[name].append((1e3 * (now - begun), 1e3 * (time.process_time() - worked)))
                if now > end:
                    break
    median = statistics.median
    return {k: (median(x for x, _ in v), median(x for _, x in v)) for k, v in found.items()}


def replayed(call: Callable[[], Any]) -> float:
    """Return the median milliseconds of a CUDA graph of the call."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    found = []
    for _ in range(100):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        graph.replay()
        last.record()
        torch.cuda.synchronize()
        found.append(first.elapsed_time(last))
    return statistics.median(found)


def _sync(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _crfs(labels: int, device: str) -> tuple[Any, Any]:
    ours, peer = tt.CRF(labels, batch_first=True).to(device), Peer(labels, batch_first=True).to(device)
    peer.load_state_dict(ours.state_dict())
    return ours, peer


def _step(model: Any, emissions: Any, tags: Any) -> None:
    for x in (emissions, model.transitions, model.start_transitions, model.end_transitions):
        x.grad = None
    model(emissions, tags).backward()


def on_the_cpu(batch: int, length: int, labels: int) -> dict[str, Any]:
    """Time one size on the CPU: forward and backward, and decoding to lists, alternated with the peer."""
    torch.manual_seed(0)
    emissions = torch.randn(batch, length, labels, requires_grad=True)
    tags = torch.randint(labels, (batch, length))
    row: dict[str, Any] = {"size": f"B{batch} T{length} L{labels}", "device": "cpu"}
    ours, peer = _crfs(labels, "cpu")
    for what, calls in (
        ("", [lambda: _step(ours, emissions, tags), lambda: _step(peer, emissions, tags)]),
        (" decode", [lambda: ours.decode(emissions), lambda: peer.decode(emissions)]),
    ):
        found = in_turns({"ours": calls[0], "theirs": calls[1]}, 5, "cpu")
        (row["eager" if not what else "decode"], mine), (row[f"pytorch-crf{what}"], yours) = found.values()
        row[f"ratio{what}"] = found["theirs"][0] / found["ours"][0]
        row[f"processor ms{what}"], row[f"ratio{what}, processor"] = [mine, yours], yours / mine
    return row


def layer(batch: int, length: int, labels: int, device: str, peer_rounds: int = 3) -> dict[str, Any]:
    """Time one size: forward and backward, and decoding, ours and the peer's."""
    row = (
        on_the_cpu(batch, length, labels)
        if device == "cpu"
        else on_a_gpu(batch, length, labels, device, peer_rounds)
    )
    print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}), flush=True)
    return row


def on_a_gpu(batch: int, length: int, labels: int, device: str, peer_rounds: int) -> dict[str, Any]:
    """Time one size on a GPU, also as CUDA graphs, with memory and other packages."""
    torch.manual_seed(0)
    emissions = torch.randn(batch, length, labels, device=device, requires_grad=True)
    tags = torch.randint(labels, (batch, length), device=device)
    ours, peer = _crfs(labels, device)
    few = labels <= 64
    row: dict[str, Any] = {"size": f"B{batch} T{length} L{labels}", "device": device}
    row["eager"] = clocked(lambda: _step(ours, emissions, tags), 200 if few else 20, device)
    with torch.autograd.set_multithreading_enabled(False):
        row["eager, one thread"] = clocked(lambda: _step(ours, emissions, tags), 200 if few else 20, device)
    with torch.no_grad():
        chain = ours.transitions, ours.start_transitions, ours.end_transitions, None
        if few:
            given = Chain(emissions, *chain, tags)
            row["graph"] = replayed(lambda: cuda.gradient(given))
            row["decode graph"] = replayed(lambda: ops.viterbi(emissions, *chain))
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            cuda.gradient(given)
            row["memory / emissions"] = (torch.cuda.max_memory_allocated() - before) / (4 * emissions.numel())
        row["decode"] = clocked(lambda: ops.viterbi(emissions, *chain), 20, device)
        if peer_rounds:
            row["pytorch-crf decode"] = clocked(lambda: peer.decode(emissions), 1, device)
    if peer_rounds:
        row["pytorch-crf"] = clocked(lambda: _step(peer, emissions, tags), peer_rounds, device)
        row["ratio"] = row["pytorch-crf"] / row.get("graph", row["eager"])
        row["ratio eager"] = row["pytorch-crf"] / row["eager"]
        row["ratio decode"] = row["pytorch-crf decode"] / row.get("decode graph", row["decode"])
    if few and length <= 512:
        row.update(_log_z(emissions, ours, device))
    return row


def _log_z(emissions: Any, ours: Any, device: str) -> dict[str, Any]:
    """Time log Z alone, eager, for ours and other packages."""
    row: dict[str, Any] = {}
    parts = ours.transitions, ours.start_transitions, ours.end_transitions
    given = (emissions, *(x.detach().clone().requires_grad_() for x in parts))
    ours_sum = peers.step(lambda *x: ops.chain(*x, None, None), given)
    row["log Z"], want = clocked(ours_sum, 20, device), ours_sum()
    for name, total in peers.peers().items():
        run = peers.step(total, given)
        try:
            found = run()  # compiles
            assert abs(found - want) <= 1e-4 * abs(want), (found, want)
            row[f"{name} log Z"] = clocked(run, 3, device)
        except Exception as error:  # a failure of another package is reported and ends nothing
            row[f"{name} log Z"] = f"failed: {error}"[:200]
    return row


def encoder(device: str) -> dict[str, Any]:
    """Measure the share of the CRF in a step of a BiLSTM tagger, ours and the peer's."""
    torch.manual_seed(0)
    batch, length, labels, hidden = 64, 128, 9, 256
    embedded = torch.randn(batch, length, 200, device=device)
    tags = torch.randint(labels, (batch, length), device=device)
    lstm = torch.nn.LSTM(200, hidden, num_layers=2, batch_first=True, bidirectional=True).to(device)
    out = torch.nn.Linear(2 * hidden, labels).to(device)
    crf, peer = _crfs(labels, device)
    parts = [*lstm.parameters(), *out.parameters()]

    def step(crf: Any) -> None:
        scores = out(lstm(embedded)[0])
        loss = scores.sum() if crf is None else -crf(scores, tags)
        torch.autograd.grad(loss, parts)

    calls = {"bare": lambda: step(None), "tagwise": lambda: step(crf)}
    found = {name: wall for name, (wall, _) in in_turns(calls, 5, device).items()}
    found["pytorch-crf"] = clocked(lambda: step(peer), 3, device)
    bare = found.pop("bare")
    row: dict[str, Any] = {"BiLSTM alone, ms": bare}
    row.update({f"{name}, share %": 100 * (whole - bare) / whole for name, whole in found.items()})
    print(json.dumps(row), flush=True)
    return row


def chunks(device: str) -> Any:
    """Return a call that fits a tagger to conll2000."""
    from benchmarks import workloads

    rows = workloads.sentences("chunk")
    X = [workloads.ATTRIBUTES["chunk"](s) for s in rows]
    y = [[r[-1] for r in s] for s in rows]
    return lambda: tw.CRF(features="attributes", start_end=False, device=device).fit(X, y)


def problem_of(fit: Callable[[], Any]) -> tuple[Any, Any]:
    """Return the problem that a fit minimizes, and the fitted tagger."""
    from tagwise.learners import gradient

    kept: dict[str, Any] = {}
    train = gradient.train

    def recording(problem: Any, *given: Any, **named: Any) -> Any:
        kept["problem"] = problem
        return train(problem, *given, **named)

    gradient.train = recording  # type: ignore[assignment]
    try:
        tagger = fit()
    finally:
        gradient.train = train
    return kept["problem"], tagger


def linear() -> dict[str, Any]:
    """Time conll2000 on the GPU: an evaluation, L-BFGS to the optimum of CRFsuite, a whole fit."""
    from tagwise.learners import backends, gradient
    from tagwise.optimizers import lbfgs

    fit, fits = chunks("cuda"), []
    for _ in range(3):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        problem, tagger = problem_of(fit)
        fits.append(time.perf_counter() - begun)
    backend = backends.find("cuda")
    objective, host = problem.objective(backend), problem.objective(backends.find("cpu"))
    n = len(problem.layout)
    w = np.random.default_rng(0).normal(size=n) * 0.1
    one, two = np.empty(n), np.empty(n)
    value, other = objective.value(w, one)[0], host.value(w, two)[0]
    graph = objective._graphs[False]
    found = []
    for _ in range(50):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        graph.replay()
        last.record()
        torch.cuda.synchronize()
        found.append(first.elapsed_time(last))
    evaluate = gradient.Evaluation(objective, 1.0, 0, None, backend.vectors(0))
    times = []
    for _ in range(3):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for step in lbfgs(evaluate, np.zeros(n), vectors=evaluate.vectors):
            if step.value <= OPTIMUM * (1 + 1e-5):
                break
        times.append(time.perf_counter() - begun)
    row = {
        "evaluation, ms": statistics.median(found),
        "value, relative difference from the CPU": abs(value - other) / abs(other),
        "gradient, relative difference": float(np.linalg.norm(one - two) / np.linalg.norm(two)),
        TO_OPTIMUM: statistics.median(times),
        "objective there": step.value,
        "evaluations": step.evaluations,
        "fit from attribute lists, s (first, median)": [fits[0], statistics.median(fits)],
        "objective of fit": tagger.history_[-1]["objective"],
    }
    print(json.dumps(row), flush=True)
    return row


def figures_of(row: dict[str, Any]) -> dict[str, str]:
    """Return the cells of a size: milliseconds of both sides, and ratios."""
    graph, peer = row.get("graph"), row.get("pytorch-crf")
    decode = row.get("decode graph", row["decode"])
    return {
        "a step, ms": f"{row['eager']:.2f}",
        "as a CUDA graph, ms": f"{graph:.3f}" if graph else "",
        "pytorch-crf, ms": f"{peer:,.0f}" if peer else "",
        "ratio": f"{row['ratio eager' if graph else 'ratio']:,.0f}x" if peer else "",
        "ratio of the graph": f"{row['ratio']:,.0f}x" if peer and graph else "",
        "decode, ms": f"{decode:.2f}",
        "decode: pytorch-crf, ms": f"{row['pytorch-crf decode']:,.0f}" if peer else "",
        "decode: ratio": f"{row['ratio decode']:,.0f}x" if peer else "",
    }


def run(context: Context) -> Result:
    """Time all sizes on the GPU, or on the CPU if there is none."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    result = Result("torch", f"CRF layer on {name}, compared with pytorch-crf")
    x = torch.randn(64, 128, 9, device=device, requires_grad=True)
    result.raw["(x * 2).sum().backward(), ms"] = clocked(lambda: (x * 2).sum().backward(), 50, device)
    sizes = [(*size, 3) for size in (SIZES[:1] if context.quick else SIZES)]
    if device == "cuda" and not context.quick:
        sizes += [(8, 100_000, 9, 0), (16, 512, 1000, 1)]
    for batch, length, labels, peer_rounds in sizes:
        row = layer(batch, length, labels, device, peer_rounds)
        result.raw[row["size"]] = row
        goal = f">= {GOAL}x" if device == "cpu" else ""
        result.add(
            f"{batch} sentences, {length:,} tokens, {labels} labels",
            figures_of(row),
            goal,
            row["ratio"] >= GOAL if goal else None,
        )
    result.raw["BiLSTM-CRF"] = encoder(device)
    if device == "cuda" and not context.quick:
        found = result.raw["linear CRF, conll2000"] = linear()
        result.notes.append(
            f"`tw.CRF(device='cuda')` on conll2000: {found['evaluation, ms']:.2f} ms per evaluation, "
            f"{found[TO_OPTIMUM]:.2f} s to CRFsuite's optimum."
        )
    result.notes.append(
        f"{name}. A step is forward and backward. "
        f"(x * 2).sum().backward() takes {result.raw['(x * 2).sum().backward(), ms']:.2f} ms."
    )
    return result
