"""Distribution over the label paths of a linear chain, with the interface of `torch.distributions`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints, register_kl

from tagwise.base.exceptions import ParameterError, TensorError
from tagwise.base.parameters import meant
from tagwise.torch import chains as chain_ops
from tagwise.torch import inputs, losses
from tagwise.torch.engines import search
from tagwise.torch.protocol import Chains


class LinearChain(Distribution):  # type: ignore[misc]
    """Distribution over the label paths y of each sentence, p(y) proportional to exp(score(y)).

    Args:
        emissions: Scores (B, T, L), or (T, L) for one sentence. Padded, packed or nested.
        transitions: Shared scores (L, L) [before, label], or scores per token (B, T, L, L), where those of the first
            token are ignored, or a pair of factors (B, T, L, R) of the latter.
        start: Scores of first labels (L,). 0 if None.
        end: Scores of last labels (L,). 0 if None.
        lengths: Number of tokens of each sentence (B,). T if None. Paths are padded with -1.
        validate_args: As in torch.distributions.

    All values except paths are differentiable with respect to the scores. A score of `-inf` forbids a label or pair.

    >>> import torch
    >>> chain = LinearChain(torch.zeros(3, 2), torch.zeros(2, 2))
    >>> round(chain.log_prob(torch.tensor([0, 1, 1])).exp().item(), 4)      # one of eight
    0.125
    """

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012

    def __init__(
        self,
        emissions: Any,
        transitions: Any,
        start: Tensor | None = None,
        end: Tensor | None = None,
        lengths: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._unbatched = isinstance(emissions, Tensor) and emissions.dim() == 2
        pair = isinstance(transitions, tuple | list)
        if self._unbatched:
            emissions = emissions[None]
            lengths = None if lengths is None else torch.as_tensor(lengths).reshape(1)
            if pair:
                transitions = tuple(x[None] for x in transitions)
            elif transitions.dim() == 3:
                transitions = transitions[None]
        labels = (emissions.data if hasattr(emissions, "data") else emissions).shape[-1]
        batch = inputs.read(emissions, None, lengths, labels, True)
        shared = not pair and transitions.dim() == 2
        tensors = [x for x in (start, end, *(transitions if pair else (transitions,))) if x is not None]
        kind = inputs.sum_dtype(batch.emissions, *tensors)
        zero = torch.zeros(labels, dtype=kind, device=batch.emissions.device)
        if shared and transitions.shape != (labels, labels):
            raise TensorError(f"transitions: expected ({labels}, {labels}), got {tuple(transitions.shape)}")
        for name, x in (("start", start), ("end", end)):
            if x is not None and x.shape != (labels,):
                raise TensorError(f"{name}: expected ({labels},), got {tuple(x.shape)}")
        self.chains = Chains(
            inputs.as_operand(batch.emissions, kind),
            transitions.to(kind).contiguous() if shared else zero.new_zeros(labels, labels),
            zero if start is None else start.to(kind).contiguous(),
            zero if end is None else end.to(kind).contiguous(),
            batch.lengths,
            None if shared else inputs.edges(transitions, batch, kind, True),
        )
        self._batch = batch
        shape = batch.emissions.shape
        super().__init__(
            torch.Size(() if self._unbatched else shape[:1]),
            torch.Size(shape[1:2]),
            validate_args=validate_args,
        )

    def __repr__(self) -> str:
        batch, time, labels = self.chains.emissions.shape
        return f"{type(self).__name__}(sentences={batch}, tokens={time}, labels={labels})"

    @property
    def support(self) -> Any:
        """Integers below L, and -1 for padding."""
        return constraints.independent(
            constraints.integer_interval(-1, self.chains.emissions.shape[2] - 1), 1
        )

    def _squeezed(self, values: Tensor, dim: int = 0) -> Tensor:
        return values.squeeze(dim) if self._unbatched else values

    def _no_autocast(self) -> Any:
        return inputs.no_autocast(self.chains.emissions.device)

    # --- values ---------------------------------------------------------------------------------------------

    @property
    def log_partition(self) -> Tensor:
        """Log partition, log Z (B,)."""
        with self._no_autocast():
            return self._squeezed(chain_ops.log_partition(self.chains))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return log p (..., B) of paths (..., B, T)."""
        if self._unbatched:
            value = value.unsqueeze(-2)
        want = self.chains.emissions.shape[:2]
        if value.dim() < 2 or value.shape[-2:] != want:
            raise TensorError(f"value: expected (..., {want[0]}, {want[1]}), got {tuple(value.shape)}")
        path = value.to(torch.int64)
        if self._validate_args and self._batch.readable:
            labels = self.chains.emissions.shape[2]
            wrong = chain_ops.inside(self.chains) & ((path < 0) | (path >= labels))
            if bool(wrong.any()):
                at = tuple(int(i) for i in wrong.nonzero()[0])
                raise TensorError(f"value: {int(path[at])} at {at}; expected a label, 0 to {labels - 1}")
        with self._no_autocast():
            whole = chain_ops.exact(self.chains)
            return self._squeezed(chain_ops.score(whole, path) - chain_ops.log_partition(whole), -1)

    def entropy(self) -> Tensor:
        """Return the entropy -E[log p] (B,) in nats."""
        with self._no_autocast():
            return self._squeezed(chain_ops.entropy(self.chains))

    def marginals(self) -> Tensor:
        """Return the marginals p_t(y) (B, T, L), padded with 0."""
        with self._no_autocast():
            return self._squeezed(chain_ops.marginals(self.chains))

    def loss(self, tags: Any, name: str = "log", cost: Tensor | float | None = None) -> Tensor:
        """Return a loss of `tagwise.torch.LOSSES` for each sentence (B,), given tags or a support."""
        if name not in losses.LOSSES:
            raise ParameterError(
                f"name={name!r}{meant(str(name), losses.LOSSES)}: expected one of {', '.join(losses.LOSSES)}"
            )
        target = inputs.target(tags[None] if self._unbatched else tags, self._batch, True, None)
        with self._no_autocast():
            return self._squeezed(losses.LOSSES[name](self.chains, target, cost))

    # --- paths ----------------------------------------------------------------------------------------------

    def sample(self, sample_shape: Any = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw paths (*sample_shape, B, T)."""
        shape = torch.Size(sample_shape)
        with self._no_autocast():
            drawn = search.sample(self.chains, shape.numel(), generator)
        return self._squeezed(drawn.reshape(*shape, *drawn.shape[1:]), len(shape))

    def argmax(self) -> Tensor:
        """Return the Viterbi path (B, T)."""
        with torch.no_grad(), self._no_autocast():
            return self._squeezed(chain_ops.viterbi(self.chains)[0])

    @property
    def mode(self) -> Tensor:
        """Viterbi path (B, T)."""
        return self.argmax()

    def topk(self, k: int) -> tuple[Tensor, Tensor]:
        """Return the k best paths (B, k, T) and log p of each (B, k), best first.

        Entries beyond the number of existing paths are -1 and -inf.
        """
        if k < 1:
            raise ParameterError(f"k={k}: expected 1 or more")
        with self._no_autocast():
            paths, value = search.kbest(self.chains, k)
            whole = chain_ops.exact(self.chains)
            exists = value > -torch.inf
            ranks = torch.where(exists[:, :, None], paths, 0).transpose(0, 1)
            logs = (chain_ops.score(whole, ranks) - chain_ops.log_partition(whole)).transpose(0, 1)
            logs = torch.where(exists, logs, -torch.inf)
        return self._squeezed(paths), self._squeezed(logs)


@register_kl(LinearChain, LinearChain)  # type: ignore[untyped-decorator]
def _divergence(p: LinearChain, q: LinearChain) -> Tensor:
    """Return E_p[s_p - s_q] - log Z_p + log Z_q, infinite if q forbids a path that p does not."""
    one, other = chain_ops.exact(p.chains), chain_ops.exact(q.chains)
    if one.emissions.shape != other.emissions.shape or not torch.equal(
        chain_ops.count(one), chain_ops.count(other)
    ):
        raise TensorError(
            f"kl_divergence: expected distributions over the same sentences, lengths and labels, got {p} and {q}"
        )
    with p._no_autocast():
        apart = chain_ops.mean(one, chain_ops.finite(one)) - chain_ops.mean(one, chain_ops.finite(other))
        apart = apart - chain_ops.log_partition(one) + chain_ops.log_partition(other)
        parts = (other.emissions, other.transitions, other.start, other.end)
        edges = other.edges if isinstance(other.edges, Tensor) else None
        if any(bool((x == -torch.inf).any()) for x in (*parts, *(() if edges is None else (edges,)))):
            emissions, transitions, start, end = ((x == -torch.inf).to(x.dtype) for x in parts)
            more = None if edges is None else (edges == -torch.inf).to(edges.dtype)
            never = Chains(emissions, transitions, start, end, other.lengths, more)
            with torch.no_grad():
                missed = chain_ops.mean(one, never)
            apart = torch.where(missed > 0, torch.inf, apart)
        return p._squeezed(apart)
