"""Losses of a batch of chains: differentiable functions of the scores and the tags, with one value per sentence.

s is the score of a path, y the gold path, p the distribution, and c the cost of a path, a sum over its tokens:

    log               log Z - s(y)                         sequential, log
    exp               Z / exp(s(y)) - 1                    sequential, exp
    pointwise_log     -sum_t log p_t(y_t)                  pointwise, log
    pointwise_exp     sum_t 1 / p_t(y_t)                   pointwise, exp
    hinge             max_z [s(z) + c(z)] - s(y)
    perceptron        max_z s(z) - s(y)
    softmax_margin    log sum_z exp(s(z) + c(z)) - s(y)
    risk              E_p[c]

If tags are partly known, a support replaces them: s(y) becomes the log-sum-exp over its paths (log, exp,
softmax_margin) or their maximum (hinge, perceptron), and p_t(y_t) the probability of the labels allowed at t.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tagwise.base.exceptions import ParameterError, TensorError
from tagwise.torch import chains as chain_ops
from tagwise.torch.formulas import FORMULAS, Pointwise, Sequential
from tagwise.torch.inputs import Target
from tagwise.torch.protocol import Chains

Loss = Callable[[Chains, Target, "Tensor | float | None"], Tensor]
REDUCTIONS = ("none", "sum", "mean", "token_mean")


def costs(chains: Chains, target: Target, cost: Tensor | float | None) -> Tensor:
    """Return c_t(z) (B, T, L) from a number per wrong label (None means 1) or a matrix [gold, label].

    A tensor of this shape is returned unchanged.
    """
    labels, kind = chains.emissions.shape[2], chains.start.dtype
    cost_tensor = torch.as_tensor(1.0 if cost is None else cost, dtype=kind, device=chains.emissions.device)
    if cost_tensor.shape == chains.emissions.shape:
        return cost_tensor
    if cost_tensor.shape not in ((), (labels, labels)):
        raise TensorError(
            f"cost: expected a number, a matrix ({labels}, {labels}) of gold and predicted labels, or one entry per "
            f"token and label {tuple(chains.emissions.shape)}, got shape {tuple(cost_tensor.shape)}"
        )
    if target.tags is not None:
        y = torch.where(chain_ops.inside(chains), target.tags, 0)
        if cost_tensor.dim() == 2:
            return cost_tensor[y]
        return cost_tensor * (1.0 - torch.nn.functional.one_hot(y, labels).to(kind))
    assert target.support is not None
    if cost_tensor.dim() == 2:  # the lowest cost over the possible gold labels
        every = torch.where(target.support[:, :, :, None], cost_tensor, torch.inf).amin(2)
        return torch.where(every < torch.inf, every, 0.0)
    return cost_tensor * (~target.support).to(kind)


# --- sequential ---------------------------------------------------------------------------------------------


def log_likelihood(chains: Chains, target: Target) -> Tensor:
    """Return log p(y), or the log-probability of a support, -inf if no path is allowed."""
    if target.tags is not None:
        return chain_ops.log_likelihood(chains, target.tags)
    assert target.support is not None
    whole = chain_ops.log_partition(chains)
    part = chain_ops.log_partition(chain_ops.restricted(chains, target.support))
    return torch.where(part > -torch.inf, part - whole, part)


# --- pointwise ----------------------------------------------------------------------------------------------


def gold_marginals(chains: Chains, target: Target) -> Tensor:
    """Return p_t(y_t) (B, T), padded with 1. It is clamped to the smallest normal number, where its gradient is 0."""
    p = chain_ops.marginals(chains)
    if target.tags is not None:
        y = torch.where(chain_ops.inside(chains), target.tags, 0)
        gold = p.gather(2, y[:, :, None]).squeeze(2)
    else:
        gold = (p * target.support).sum(2)
    return torch.where(chain_ops.inside(chains), gold.clamp_min(torch.finfo(p.dtype).tiny), 1.0)


def of_tokens(formula: Pointwise, chains: Chains, target: Target) -> tuple[Tensor, Tensor]:
    """Return the loss of each token (B, T), padded with 0, and log p_t(y_t)."""
    log_p = gold_marginals(chains, target).log()
    values = formula.value(formula.log_omega(torch.zeros_like(log_p), log_p), log_p)
    return torch.where(chain_ops.inside(chains), values, 0.0), log_p


def of_formula(formula: Sequential | Pointwise) -> Loss:
    """Return a loss of the core as a function of chains and target. It has no cost."""

    def loss(chains: Chains, target: Target, cost: Tensor | float | None = None) -> Tensor:
        if isinstance(formula, Sequential):
            return formula.value(-log_likelihood(chains, target))
        return of_tokens(formula, chains, target)[0].sum(1)

    return loss


# --- margins and costs --------------------------------------------------------------------------------------


def _max_score(chains: Chains) -> Tensor:
    """Return max_z s(z), differentiable if the best path is unique."""
    path, _ = chain_ops.viterbi(Chains(*(_detached(x) for x in chains)))
    return chain_ops.score(chains, path)


def _detached(x: Tensor | tuple[Tensor, ...] | None) -> Tensor | tuple[Tensor, ...] | None:
    if isinstance(x, tuple):
        return tuple(y.detach() for y in x)
    return None if x is None else x.detach()


def _augmented(chains: Chains, cost: Tensor) -> Chains:
    """Add a cost to the emissions."""
    whole = chain_ops.exact(chains)
    return whole._replace(emissions=whole.emissions + cost)


def _gold_score(chains: Chains, target: Target) -> Tensor:
    if target.tags is not None:
        return chain_ops.score(chains, target.tags)
    assert target.support is not None
    return _max_score(chain_ops.restricted(chains, target.support))


def hinge(chains: Chains, target: Target, cost: Tensor | float | None = None) -> Tensor:
    return _max_score(_augmented(chains, costs(chains, target, cost))) - _gold_score(
        chain_ops.exact(chains), target
    )


def perceptron(chains: Chains, target: Target, cost: Tensor | float | None = None) -> Tensor:
    whole = chain_ops.exact(chains)
    return _max_score(whole) - _gold_score(whole, target)


def softmax_margin(chains: Chains, target: Target, cost: Tensor | float | None = None) -> Tensor:
    total = chain_ops.log_partition(_augmented(chains, costs(chains, target, cost)))
    if target.tags is not None:
        return total - chain_ops.score(chain_ops.exact(chains), target.tags)
    assert target.support is not None
    return total - chain_ops.log_partition(chain_ops.restricted(chain_ops.exact(chains), target.support))


def risk(chains: Chains, target: Target, cost: Tensor | float | None = None) -> Tensor:
    return (chain_ops.marginals(chains) * costs(chains, target, cost)).sum((1, 2))


#: Losses by name: those of the core, and others.
LOSSES: dict[str, Loss] = {
    **{name: of_formula(formula) for name, formula in FORMULAS.items()},
    "hinge": hinge,
    "perceptron": perceptron,
    "softmax_margin": softmax_margin,
    "risk": risk,
}


# --- reductions ---------------------------------------------------------------------------------------------


def reduced(values: Tensor, chains: Chains, reduction: str) -> Tensor:
    """Return the values of sentences (B,) unchanged, their sum, or their mean over sentences or tokens."""
    return values if reduction == "none" else averaged(values.sum(), chains, reduction)


def averaged(total: Tensor, chains: Chains, reduction: str) -> Tensor:
    """Return a sum over sentences unchanged, or divided by the number of sentences or tokens."""
    if reduction == "sum":
        return total
    batch, time, _ = chains.emissions.shape
    if reduction == "mean":
        return total / batch if batch else total * torch.nan
    return total / (batch * time if chains.lengths is None else chains.lengths.sum())


def log_of_sum(name: str, chains: Chains, target: Target) -> Tensor:
    """Return the log of the sum of an exponential loss over the batch, which stays finite if the loss overflows.

    For `exp` the sum includes 1 per sentence, that is, it is the sum of Z / exp(s(y)).
    """
    if name == "exp":
        return torch.logsumexp(-log_likelihood(chains, target), 0)
    if name != "pointwise_exp":
        raise ParameterError(
            f"reduction='log_sum' needs the loss exp or pointwise_exp, not {name}. Use reduction='sum'."
        )
    each = torch.where(chain_ops.inside(chains), -gold_marginals(chains, target).log(), -torch.inf)
    return torch.logsumexp(each.flatten(), 0)
