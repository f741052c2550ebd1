"""The layer under torch.compile, torch.export, autocast, CUDA graphs and DistributedDataParallel."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import tagwise.torch as tt  # noqa: E402
from tests.torch.common import DEVICES, GPU, case, close  # noqa: E402

quiet = pytest.mark.filterwarnings("ignore")  # the compiler warns about its own internals


# --- one graph ----------------------------------------------------------------------------------------------


@quiet
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("name", "by"),
    [("log", "lengths"), ("log", "mask"), ("pointwise_log", "lengths"), ("hinge", "lengths")],
)
def test_compiled_training_step(device: str, name: str, by: str) -> None:
    """Loss and gradients are equal, and the graph has no breaks."""
    it = case(device=device, dtype=torch.float32, loss=name, constraints="BIO", labels=["O", "B-X", "I-X"])
    it.tags = torch.zeros_like(it.tags)
    how = {"lengths": it.lengths} if by == "lengths" else {"mask": it.mask}
    torch.compiler.reset()
    compiled = torch.compile(it.layer, backend="aot_eager", fullgraph=True)
    slopes = []
    for layer in (it.layer, compiled):
        leaf = it.emissions.clone().requires_grad_()
        it.layer.zero_grad()
        value = layer(leaf, it.tags, **how)
        value.backward()
        slopes.append([value, leaf.grad, it.layer.transitions.grad.clone()])
    for one, other in zip(*slopes):
        close(one, other.detach().cpu(), 1e-5)


@quiet
@pytest.mark.parametrize("call", ["decode", "marginals", "entropy", "log_partition"])
def test_compiled_queries(call: str) -> None:
    it = case(dtype=torch.float32)
    torch.compiler.reset()
    keywords: dict[str, Any] = {"lengths": it.lengths, **({"as_tensor": True} if call == "decode" else {})}

    def query(emissions: Any) -> Any:
        return getattr(it.layer, call)(emissions, **keywords)

    close(
        torch.compile(query, backend="aot_eager", fullgraph=True)(it.emissions),
        query(it.emissions).detach(),
        1e-5,
    )


@quiet
def test_exported_decoding() -> None:
    """One exported program handles any number of sentences, also after saving and loading."""

    class Tagger(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.score = torch.nn.Linear(5, 3)
            self.crf = tt.CRF(3, batch_first=True)

        def forward(self, x: Any, lengths: Any) -> Any:
            return self.crf.decode(self.score(x), lengths=lengths, as_tensor=True)

    torch.manual_seed(0)
    tagger = Tagger()
    x, lengths = torch.randn(4, 6, 5), torch.tensor([6, 1, 2, 3])
    sentences = torch.export.Dim("sentences", min=2, max=64)
    program = torch.export.export(tagger, (x, lengths), dynamic_shapes=({0: sentences}, {0: sentences}))
    more, many = torch.randn(7, 6, 5), torch.randint(1, 7, (7,))
    assert torch.equal(program.module()(more, many), tagger(more, many))
    assert "tagwise.viterbi" in program.graph_module.print_readable(print_output=False)
    kept = io.BytesIO()
    torch.export.save(program, kept)
    kept.seek(0)
    assert torch.equal(torch.export.load(kept).module()(more, many), tagger(more, many))


# --- precision ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_autocast_rounds_only_the_scores(device: str, dtype: str) -> None:
    """Sums equal those of the rounded scores in float32, and gradients reach the network."""
    it = case((7, 5), 6, device=device, dtype=torch.float32)
    network = torch.nn.Linear(6, 6).to(device)
    edges = torch.randn(2, 7, 6, 6, device=device)
    with torch.autocast(device, dtype=getattr(torch, dtype)):
        scores = network(it.emissions)
        assert scores.dtype == getattr(torch, dtype)
        value = it.layer(scores, it.tags, it.mask)
        more = it.layer.entropy(scores, it.mask), it.layer.log_partition(scores, it.mask, edges=edges)
        p = it.layer.marginals(scores, it.mask)
    value.backward()
    exact = scores.detach().float()
    close(value, it.layer(exact, it.tags, it.mask).item(), 1e-6)
    close(more[0], it.layer.entropy(exact, it.mask).detach().cpu(), 1e-5)
    close(more[1], it.layer.log_partition(exact, it.mask, edges=edges).detach().cpu(), 1e-6)
    close(p, it.layer.marginals(exact, it.mask).detach().cpu(), 1e-5)
    assert torch.isfinite(network.weight.grad).all()
    assert network.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("device", DEVICES)
def test_results_are_deterministic(device: str) -> None:
    it = case((60, 31, 7, 60), 9, device=device, dtype=torch.float32)
    seen = []
    for _ in range(3):
        leaf = it.emissions.clone().requires_grad_()
        it.layer.zero_grad()
        it.layer(leaf, it.tags, it.mask).backward()
        seen.append((leaf.grad, it.layer.transitions.grad.clone()))
    for other in seen[1:]:
        assert all(torch.equal(a, b) for a, b in zip(seen[0], other))


# --- GPU ----------------------------------------------------------------------------------------------------


@pytest.mark.cuda
@pytest.mark.skipif(not GPU, reason="no GPU here")
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_no_synchronisation_with_lengths() -> None:
    it = case((9, 5, 2), 5, device="cuda", dtype=torch.float32)
    lengths = it.lengths.to(torch.int32)
    it.layer(it.emissions, it.tags, lengths=lengths)  # compiles the kernels
    it.layer.decode(it.emissions, lengths=lengths, as_tensor=True)
    try:
        torch.cuda.set_sync_debug_mode("error")
        leaf = it.emissions.clone().requires_grad_()
        it.layer(leaf, it.tags, lengths=lengths).backward()
        it.layer(leaf, it.tags).backward()
        it.layer.decode(it.emissions, lengths=lengths, as_tensor=True)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.cuda
@pytest.mark.skipif(not GPU, reason="no GPU here")
def test_cuda_graph_capture() -> None:
    it = case((9, 5, 2), 5, device="cuda", dtype=torch.float32)
    leaf = it.emissions.clone().requires_grad_()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            it.layer(leaf, it.tags, it.mask).backward()
            leaf.grad = it.layer.transitions.grad = None
            it.layer.start_transitions.grad = it.layer.end_transitions.grad = None
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = it.layer(leaf, it.tags, it.mask)
        value.backward()
    graph.replay()
    torch.cuda.synchronize()
    close(value, it.layer(it.emissions, it.tags, it.mask).item(), 1e-5)


# --- several processes --------------------------------------------------------------------------------------


@quiet
def test_distributed_data_parallel(tmp_path: Path) -> None:
    """DistributedDataParallel works in a group of one process."""
    dist = torch.distributed
    if not dist.is_available():
        pytest.skip("torch was built without torch.distributed")
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    try:
        it = case(dtype=torch.float32)
        shared = torch.nn.parallel.DistributedDataParallel(it.layer)
        shared(it.emissions, it.tags, it.mask).backward()
        got = it.layer.transitions.grad.clone()
        it.layer.zero_grad()
        it.layer(it.emissions, it.tags, it.mask).backward()
        close(got, it.layer.transitions.grad, 1e-6)
    finally:
        dist.destroy_process_group()
