"""CRF layer with the calls and parameters of pytorch-crf, plus constraints, other losses and more queries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

import tagwise._core as _core
from tagwise.base.exceptions import ParameterError, TensorError
from tagwise.base.parameters import meant
from tagwise.scores.constraints import Constraints, Rules
from tagwise.torch import chains as chain_ops
from tagwise.torch import inputs, losses, ops
from tagwise.torch.engines import cuda, native, search
from tagwise.torch.inputs import Batch
from tagwise.torch.protocol import Chains


class CRF(nn.Module):  # type: ignore[misc]
    """Conditional random field over the label scores that a network computes for each token.

    Args:
        num_tags: Number of labels L.
        batch_first: If true, emissions are (B, T, L), and tags and masks (B, T). Otherwise (T, B, L) and (T, B).
        constraints: Restriction of label paths, as for `tw.CRF`: the name of a scheme ("BIO", "IOBES", ...), a mapping
            or a `Constraints` object. Forbidden starts, pairs and ends score -inf everywhere. Parameters and
            state_dict do not change.
        labels: Names of the labels. Required for constraints that refer to names.
        loss: Loss whose negative `forward` returns. "log" makes it the log-likelihood. Other names are in
            `tagwise.torch.LOSSES`.
        cost: Cost for the losses that use one: a number per wrong label (1 if None), or a matrix (L, L) [gold, label].

    Emissions can also be a PackedSequence or a jagged nested tensor. Sentence lengths come from a mask or from
    `lengths`. `lengths` on a GPU are not validated, so that the call does not synchronise with the device.

    >>> import torch
    >>> crf = CRF(2, batch_first=True)
    >>> _ = torch.nn.init.zeros_(crf.transitions)
    >>> emissions = torch.tensor([[[9.0, 0.0], [0.0, 9.0], [0.0, 9.0]]])
    >>> crf.decode(emissions), crf(emissions, torch.tensor([[0, 1, 1]])) < 0
    ([[0, 1, 1]], tensor(True))
    """

    #: Traits of the last call whose tensors needed no conversion. A call with equal traits skips validation.
    _validated: tuple[Any, ...] = ()

    def __init__(
        self,
        num_tags: int,
        batch_first: bool = False,
        *,
        constraints: Any = None,
        labels: Sequence[str] | None = None,
        loss: str = "log",
        cost: Tensor | float | None = None,
    ) -> None:
        if num_tags <= 0:
            raise ParameterError(f"num_tags={num_tags}: expected 1 or more")
        if loss not in losses.LOSSES:
            raise ParameterError(
                f"loss={loss!r}{meant(str(loss), losses.LOSSES)}: expected one of {', '.join(losses.LOSSES)}"
            )
        super().__init__()
        self.num_tags = num_tags
        self.batch_first = batch_first
        self.loss_name = loss
        self.constraints = constraints
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        rules = None if constraints is None else _rules(constraints, labels, num_tags)
        for name in ("start", "end", "pairs"):
            mask = None if rules is None else torch.from_numpy(~getattr(rules, name))
            self.register_buffer(f"_no_{name}", mask, persistent=False)
        held = torch.as_tensor(cost, dtype=torch.get_default_dtype()) if cost is not None else None
        self.register_buffer("_cost", held, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the parameters uniformly between -0.1 and 0.1."""
        for parameter in (self.start_transitions, self.end_transitions, self.transitions):
            nn.init.uniform_(parameter, -0.1, 0.1)

    def __repr__(self) -> str:
        more = f", constraints={self.constraints!r}" if self.constraints is not None else ""
        more += f", loss={self.loss_name!r}" if self.loss_name != "log" else ""
        return f"{type(self).__name__}(num_tags={self.num_tags}{more})"

    # --- training -------------------------------------------------------------------------------------------

    def forward(
        self,
        emissions: Any,
        tags: Any,
        mask: Tensor | None = None,
        reduction: str = "sum",
        *,
        lengths: Any = None,
        edges: Any = None,
        partial: bool | None = None,
        cost: Tensor | float | None = None,
    ) -> Tensor:
        """Return the log-likelihood of tags, or the negative of the layer's loss.

        tags: int (B, T), with -100 for unknown tags, or bool (B, T, L), the set of possible labels.
        reduction: "sum", "mean" (over sentences), "token_mean", or "none" (one value per sentence). The exponential
            losses also accept "log_sum".
        edges: Scores of neighbouring labels per token, added to `transitions`: (B, T, L, L) [.., before, label], or a
            pair of factors (B, T, L, R) whose product they are. Entries of the first token are ignored.
        partial: Whether some tags are -100. None checks the tags if that does not synchronise with a device, see
            `docs/howto/torch.md`.
        cost: Replaces the cost of the layer. It can also have one entry per token and label (B, T, L).
        """
        simple = mask is None and lengths is None and edges is None and partial is None and reduction == "sum"
        if simple and not torch.compiler.is_compiling() and self._validated:
            held = self._parameters
            if self._validated == _traits(emissions, tags, held):
                order = held["transitions"], held["start_transitions"], held["end_transitions"]
                value = ops.chain(emissions, *order, None, tags, True)
                if emissions.device.type != "cpu" or not math.isnan(value.item()):
                    return value  # NaN on the CPU: perhaps an invalid or unknown tag, detected below
        with inputs.no_autocast(self.transitions.device):
            chains, target = self._chains_and_target(
                emissions, tags, mask, lengths, edges, partial, reduction
            )
            if self.loss_name == "log" and reduction != "log_sum":
                if reduction != "none" and target.tags is not None:  # the common case: one node of the graph
                    if simple and self._unchanged(chains, target, emissions, tags):
                        self._validated = _traits(emissions, tags, self._parameters)
                    return losses.averaged(
                        chain_ops.log_likelihood(chains, target.tags, True), chains, reduction
                    )
                return losses.reduced(losses.log_likelihood(chains, target), chains, reduction)
            return -self._loss(chains, target, cost, reduction)

    def _unchanged(self, chains: Chains, target: inputs.Target, emissions: Any, tags: Any) -> bool:
        """Return whether the operator gets the layer's inputs unchanged, so that their values need no check."""
        if torch.compiler.is_compiling() or ops.engine(chains.emissions) not in (cuda, native):
            return False
        held = self._parameters
        pairs = (
            *(
                (chains.emissions, emissions),
                (target.tags, tags),
                (chains.transitions, held.get("transitions")),
            ),
            *((chains.start, held.get("start_transitions")), (chains.end, held.get("end_transitions"))),
        )
        return all(ours is theirs for ours, theirs in pairs)

    def loss(
        self,
        emissions: Any,
        tags: Any,
        mask: Tensor | None = None,
        reduction: str = "sum",
        **more: Any,
    ) -> Tensor:
        """Return the value to minimise, the negative of `forward`."""
        return -self(emissions, tags, mask, reduction, **more)

    def _chains_and_target(
        self,
        emissions: Any,
        tags: Any,
        mask: Any,
        lengths: Any,
        edges: Any,
        partial: bool | None,
        reduction: str,
    ) -> tuple[Chains, inputs.Target]:
        batch = self._read(emissions, mask, lengths)
        target = inputs.target(tags, batch, self.batch_first, partial)
        if reduction not in (*losses.REDUCTIONS, "log_sum"):
            raise ParameterError(
                f"reduction={reduction!r}{meant(str(reduction), losses.REDUCTIONS)}: expected one of "
                f"{', '.join(losses.REDUCTIONS)}"
            )
        return self._scored(batch, edges), target

    def _loss(self, chains: Chains, target: inputs.Target, cost: Any, reduction: str) -> Tensor:
        if reduction == "log_sum":
            return losses.log_of_sum(self.loss_name, chains, target)
        if isinstance(cost, Tensor) and cost.dim() == 3 and not self.batch_first:
            cost = cost.transpose(0, 1)
        values = losses.LOSSES[self.loss_name](chains, target, self._cost if cost is None else cost)
        return losses.reduced(values, chains, reduction)

    # --- reading --------------------------------------------------------------------------------------------

    def _read(self, emissions: Any, mask: Any, lengths: Any) -> Batch:
        batch = inputs.read(emissions, mask, lengths, self.num_tags, self.batch_first)
        if batch.emissions.device != self.transitions.device:
            raise TensorError(
                f"emissions are on {batch.emissions.device}, but the layer is on {self.transitions.device}. "
                "Move one of them with .to(device)."
            )
        return batch

    def _scored(self, batch: Batch, edges: Any = None, allowed: Any = None) -> Chains:
        """Return the batch with the layer's parameters, in the dtype of the sums."""
        parameters = (self.transitions, self.start_transitions, self.end_transitions)
        kind = inputs.sum_dtype(batch.emissions, *parameters)
        transitions, start, end = (
            x if x.dtype == kind and x.is_contiguous() else x.to(kind).contiguous() for x in parameters
        )
        if self._no_pairs is not None:
            transitions = transitions.masked_fill(self._no_pairs, -torch.inf)
            start = start.masked_fill(self._no_start, -torch.inf)
            end = end.masked_fill(self._no_end, -torch.inf)
        more = inputs.edges(edges, batch, kind, self.batch_first)
        scores = inputs.as_operand(batch.emissions, kind)
        chains = Chains(scores, transitions, start, end, batch.lengths, more)
        if allowed is None:
            return chains
        return chain_ops.restricted(chains, inputs.support(allowed, batch, "allowed", self.batch_first))

    def _in_layout(self, values: Tensor) -> Tensor:
        """Return values (B, T, ...) in the dimension order of the emissions."""
        return values if self.batch_first else values.transpose(0, 1)

    # --- queries --------------------------------------------------------------------------------------------

    def decode(
        self,
        emissions: Any,
        mask: Tensor | None = None,
        *,
        lengths: Any = None,
        edges: Any = None,
        allowed: Tensor | None = None,
        return_scores: bool = False,
        as_tensor: bool = False,
    ) -> Any:
        """Return the Viterbi path of each sentence as a list. The lower label wins ties.

        as_tensor: Return one tensor in the layout of tags, padded with -1, instead of lists. It stays on its device.
            Without a mask, the call does not synchronise with the device.
        return_scores: Return (paths, scores (B,)).
        allowed: bool (B, T, L), the labels that paths may use.
        """
        batch = self._read(emissions, mask, lengths)
        with torch.no_grad(), inputs.no_autocast(self.transitions.device):
            path, score = chain_ops.viterbi(self._scored(batch, edges, allowed))
        paths: Any = self._in_layout(path) if as_tensor else _lists(path, batch.lengths)
        return (paths, score) if return_scores else paths

    def kbest(
        self,
        emissions: Any,
        k: int,
        mask: Tensor | None = None,
        *,
        lengths: Any = None,
        edges: Any = None,
        allowed: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the k best paths (B, k, T), padded with -1, and their scores (B, k), best first.

        If a sentence has fewer than k paths, the remaining entries have score -inf and labels -1.
        """
        if k < 1:
            raise ParameterError(f"k={k}: expected 1 or more")
        batch = self._read(emissions, mask, lengths)
        with inputs.no_autocast(self.transitions.device):
            return search.kbest(self._scored(batch, edges, allowed), k)  # type: ignore[no-any-return]

    def sample(
        self,
        emissions: Any,
        n: int = 1,
        mask: Tensor | None = None,
        *,
        lengths: Any = None,
        edges: Any = None,
        allowed: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Draw n paths per sentence (n, B, T) from the distribution, padded with -1."""
        batch = self._read(emissions, mask, lengths)
        with inputs.no_autocast(self.transitions.device):
            return search.sample(self._scored(batch, edges, allowed), n, generator)

    def marginals(
        self,
        emissions: Any,
        mask: Tensor | None = None,
        *,
        lengths: Any = None,
        edges: Any = None,
        allowed: Tensor | None = None,
    ) -> Tensor:
        """Return the probability of each label at each token, in the layout of the emissions, padded with 0.

        The result is differentiable.
        """
        batch = self._read(emissions, mask, lengths)
        with inputs.no_autocast(self.transitions.device):
            return self._in_layout(chain_ops.marginals(self._scored(batch, edges, allowed)))

    def log_partition(
        self,
        emissions: Any,
        mask: Tensor | None = None,
        *,
        lengths: Any = None,
        edges: Any = None,
        allowed: Tensor | None = None,
    ) -> Tensor:
        """Return log Z (B,), the log of the sum of exp(score) over all paths, or over those of `allowed`.

        The result is twice differentiable.
        """
        batch = self._read(emissions, mask, lengths)
        with inputs.no_autocast(self.transitions.device):
            return chain_ops.log_partition(self._scored(batch, edges, allowed))

    def entropy(
        self,
        emissions: Any,
        mask: Tensor | None = None,
        *,
        lengths: Any = None,
        edges: Any = None,
        allowed: Tensor | None = None,
    ) -> Tensor:
        """Return the entropy of the distribution over paths (B,) in nats. It is differentiable."""
        batch = self._read(emissions, mask, lengths)
        with inputs.no_autocast(self.transitions.device):
            return chain_ops.entropy(self._scored(batch, edges, allowed))


def _traits(emissions: Any, tags: Any, parameters: Any) -> tuple[Any, ...]:
    """Return shapes, dtypes and devices of a call's tensors: everything validation checks except the values."""
    if type(emissions) is not Tensor or type(tags) is not Tensor:
        return ()
    pairs = parameters.get("transitions")
    if pairs is None:
        return ()
    return (
        *(emissions.shape, emissions.dtype, emissions.device, tags.shape, tags.dtype, tags.device),
        *(pairs.dtype, pairs.device),
    )


def _lists(path: Tensor, lengths: Tensor | None) -> list[list[int]]:
    return _core.row_lists(path.cpu().numpy(), None if lengths is None else lengths.cpu().numpy())


def _rules(constraints: Any, labels: Sequence[str] | None, num_tags: int) -> Rules:
    """Return which labels may begin a path, follow one another, and end it."""
    if isinstance(constraints, Rules):
        rules = constraints
    else:
        if labels is None:
            raise ParameterError(
                "constraints refer to labels by name. Pass the names, labels=['O', 'B-PER', ...]."
            )
        parsed = Constraints.parse(constraints)
        if parsed.scheme == "auto":
            raise ParameterError(
                "constraints='auto' detects the scheme in training data, which a layer does not have. Name the scheme, "
                "for example constraints='BIO'."
            )
        rules = parsed.rules([str(label) for label in labels])
    if len(rules.start) != num_tags:
        raise ParameterError(
            f"constraints cover {len(rules.start)} labels, but num_tags={num_tags}. Pass one name per label."
        )
    if rules.once is not None:
        raise ParameterError(
            "constraints: `once` cannot be expressed as transitions between neighbouring labels, so this layer does "
            "not support it. Remove it."
        )
    return rules
