"""Breakdown of the time on a GPU: an eager step of the layer, an evaluation of the linear CRF.

    python -m benchmarks.torch.parts

Median milliseconds. `wall` waits for the device after each call, and `host` is the time until a call returns. `one
thread` is `wall` with autograd on the calling thread (`torch.autograd.set_multithreading_enabled(False)`). Needs
TAGWISE_DATA with conll2000.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import tagwise.torch as tt
from benchmarks.torch.layer import chunks, clocked, problem_of, replayed
from tagwise.learners.backends import find
from tagwise.torch import ops
from tagwise.torch.engines import cuda
from tagwise.torch.linear import ragged
from tagwise.torch.protocol import Chain


def _host(call: Callable[[], Any], rounds: int = 200) -> float:
    found = []
    for _ in range(rounds + 20):
        begun = time.perf_counter()
        call()
        found.append(1e3 * (time.perf_counter() - begun))
    torch.cuda.synchronize()
    return statistics.median(found[20:])


class Bare(torch.autograd.Function):
    """Operator with four gradients that computes nothing: the overhead of PyTorch for an operator like ours."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        ctx.save_for_backward(*inputs)
        return inputs[0].new_empty(())

    @staticmethod
    def backward(ctx: Any, slope: Any) -> Any:
        return *(torch.empty_like(x) for x in ctx.saved_tensors[:4]), None, None


def eager(batch: int = 64, length: int = 128, labels: int = 9) -> dict[str, Any]:
    """Time a step through the layer, through its operator, its kernels alone, and an empty operator."""
    e = torch.randn(batch, length, labels, device="cuda", requires_grad=True)
    y = torch.randint(labels, (batch, length), device="cuda")
    crf = tt.CRF(labels, batch_first=True).cuda()
    parameters = crf.transitions, crf.start_transitions, crf.end_transitions
    still = [x.detach() for x in (e, *parameters)]
    one = torch.ones((), device="cuda")

    def stepped(value: Callable[[], Any]) -> Callable[[], None]:
        def step() -> None:
            e.grad = None
            for parameter in parameters:
                parameter.grad = None
            value().backward()

        return step

    def kernels() -> None:
        chain = Chain(*still, None, y)
        cuda.expectations(chain, cuda.forward_backward(chain).rows, one)

    calls: dict[str, Callable[[], Any]] = {
        "layer": stepped(lambda: crf(e, y)),
        "operator": stepped(lambda: ops.chain(e, *parameters, None, y, True)),
        "kernels": kernels,
        "kernels at once": lambda: cuda.gradient(Chain(*still, None, y)),
        "an operator of nothing": stepped(lambda: Bare.apply(e, *parameters, None, y)),
        "(x * 2).sum()": stepped(lambda: (e * 2).sum()),
        "layer, forward": lambda: crf(e, y),
        "layer, no gradient": torch.no_grad()(lambda: crf(e, y)),
    }
    row: dict[str, Any] = {}
    for name, call in calls.items():
        row[name] = {"wall": clocked(call, 200, "cuda"), "host": _host(call)}
        with torch.autograd.set_multithreading_enabled(False):
            row[name]["one thread"] = clocked(call, 200, "cuda")
    return {"size": f"B{batch} T{length} L{labels}", **row, "as a graph": replayed(kernels)}


def evaluation() -> dict[str, Any]:
    """Time each part of an evaluation on conll2000 as a separate graph."""
    problem, _ = problem_of(chunks("cuda"))
    objective: Any = problem.objective(find("cuda"))
    n = len(problem.layout)
    w = np.random.default_rng(0).normal(size=n) * 0.1
    objective.value(w, np.empty(n))
    chain, back = objective.sentences.chain()._replace(tags=objective.tags), objective.back
    found = ragged.forward_backward(chain)
    parts: dict[str, Callable[[], Any]] = {
        "spread": lambda: objective.rows.spread(objective.w),
        "scores": objective.sentences.chain,
        "sums": lambda: ragged.forward_backward(chain),
        "expect": lambda: ragged.expectations(chain, found.rows, objective.negative_weight, back.into),
        "back": lambda: back.gradient(objective.out),
        "whole": lambda: objective._evaluate(False),
    }
    return {name: replayed(call) for name, call in parts.items()}


def main() -> None:
    """Run and print both parts."""
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    for part in (eager, evaluation):
        print(part.__name__, json.dumps(part(), indent=1), flush=True)


if __name__ == "__main__":
    main()
