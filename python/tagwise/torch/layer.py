"""The CRF layer: calls and parameters of pytorch-crf's, and what it does not have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

import tagwise._core as _core
from tagwise.base.exceptions import ParameterError, TensorError
from tagwise.scores.constraints import Constraints, Rules
from tagwise.torch import chains as of
from tagwise.torch import inputs, losses, ops
from tagwise.torch.engines import cuda, native, search
from tagwise.torch.inputs import Batch
from tagwise.torch.protocol import Chains


class CRF(nn.Module):  # type: ignore[misc]
    """A conditional random field over the scores that a network gives the labels of each token.

    Args:
        num_tags: number of labels L.
        batch_first: emissions are (B, T, L), tags and masks (B, T); else (T, B, L) and (T, B).
        constraints: what paths may be: a scheme's name ("BIO", "IOBES", ...), a mapping or an object as `tw.CRF` takes
            them. What is forbidden scores -inf wherever scores are used; parameters and state_dict are as without.
        labels: the names of the labels, which constraints speak of.
        loss: what `forward` is the negative of: "log", whose negative is the log-likelihood, or another name of
            `tagwise.torch.LOSSES`.
        cost: of the losses that have one: a number for each wrong label (1 if None), or a matrix (L, L) [gold, label].

    In place of a padded tensor, emissions may be a PackedSequence or a jagged nested tensor. Sentences are told by a
    mask, or by `lengths`, which on a GPU are used as they are: nothing waits for the device, nothing there is checked.

    >>> import torch
    >>> crf = CRF(2, batch_first=True)
    >>> _ = torch.nn.init.zeros_(crf.transitions)
    >>> emissions = torch.tensor([[[9.0, 0.0], [0.0, 9.0], [0.0, 9.0]]])
    >>> crf.decode(emissions), crf(emissions, torch.tensor([[0, 1, 1]])) < 0
    ([[0, 1, 1]], tensor(True))
    """

    #: Traits of a call whose tensors are used as they are: those of the next are compared, and not read again.
    _met: tuple[Any, ...] = ()

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
            raise ParameterError(f"loss={loss!r}: expected one of {', '.join(losses.LOSSES)}")
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
        """Parameters uniform between -0.1 and 0.1."""
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
        """The log-likelihood of tags, or minus the loss that the layer was made with.

        tags: int (B, T), -100 where one is not known; or bool (B, T, L), the labels that may be right.
        reduction: "sum", "mean" (over sentences), "token_mean", or "none": a value a sentence. "log_sum" for the
            exponential losses.
        edges: scores of pairs of neighbours for each token, beside `transitions`: (B, T, L, L) [.., before, label], or
            two factors (B, T, L, R), whose product they are. Those of the first token are not used.
        partial: whether some tags are -100; None looks for them, where looking needs no wait: see `docs/torch.md`.
        cost: in place of the layer's, also one for each token and label (B, T, L).
        """
        usual = mask is None and lengths is None and edges is None and partial is None and reduction == "sum"
        if usual and not torch.compiler.is_compiling() and self._met:
            held = self._parameters
            if self._met == _traits(emissions, tags, held):
                order = held["transitions"], held["start_transitions"], held["end_transitions"]
                value = ops.chain(emissions, *order, None, tags, True)
                if emissions.device.type != "cpu" or not math.isnan(value.item()):
                    return value  # else some tags may be none: looked at below
        with inputs.plainly(self.transitions.device):
            chains, target = self._against(emissions, tags, mask, lengths, edges, partial, reduction)
            if self.loss_name == "log" and reduction != "log_sum":
                if reduction != "none" and target.tags is not None:  # the usual case: one node of the graph
                    if usual and self._as_given(chains, target, emissions, tags):
                        self._met = _traits(emissions, tags, self._parameters)
                    return losses.averaged(of.log_likelihood(chains, target.tags, True), chains, reduction)
                return losses.reduced(losses.log_likelihood(chains, target), chains, reduction)
            return -self._loss(chains, target, cost, reduction)

    def _as_given(self, chains: Chains, target: inputs.Target, emissions: Any, tags: Any) -> bool:
        """Whether the operator gets the very tensors that the layer got, and no look at what is in them is needed."""
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
        """What is to be made small: minus `forward`."""
        return -self(emissions, tags, mask, reduction, **more)

    def _against(
        self, emissions: Any, tags: Any, mask: Any, lengths: Any, edges: Any, partial: bool | None, how: str
    ) -> tuple[Chains, inputs.Target]:
        batch = self._read(emissions, mask, lengths)
        target = inputs.target(tags, batch, self.batch_first, partial)
        if how not in (*losses.REDUCTIONS, "log_sum"):
            raise ParameterError(f"reduction={how!r}: expected one of {', '.join(losses.REDUCTIONS)}")
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
                f"emissions are on {batch.emissions.device}, the layer is on {self.transitions.device}: "
                "move one with .to(device)"
            )
        return batch

    def _scored(self, batch: Batch, edges: Any = None, allowed: Any = None) -> Chains:
        """The batch with the layer's parameters, in the type that sums are taken in."""
        given = (self.transitions, self.start_transitions, self.end_transitions)
        kind = inputs.wide(batch.emissions, *given)
        transitions, start, end = (
            x if x.dtype == kind and x.is_contiguous() else x.to(kind).contiguous() for x in given
        )
        if self._no_pairs is not None:
            transitions = transitions.masked_fill(self._no_pairs, -torch.inf)
            start = start.masked_fill(self._no_start, -torch.inf)
            end = end.masked_fill(self._no_end, -torch.inf)
        more = inputs.edges(edges, batch, kind, self.batch_first)
        scores = inputs.typed(batch.emissions, kind)
        chains = Chains(scores, transitions, start, end, batch.lengths, more)
        if allowed is None:
            return chains
        return of.restricted(chains, inputs.support(allowed, batch, "allowed", self.batch_first))

    def _laid(self, values: Tensor) -> Tensor:
        """(B, T, ...) as the emissions lie."""
        return values if self.batch_first else values.transpose(0, 1)

    # --- what the model says --------------------------------------------------------------------------------

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
        """The best path of each sentence, as lists; of equals the lower label.

        as_tensor: one tensor in place of the lists, laid as tags are, -1 beyond an end; it stays on its device, and
            where no mask is given nothing waits for it.
        return_scores: (paths, scores (B,)).
        allowed: bool (B, T, L): the labels that paths are made of.
        """
        batch = self._read(emissions, mask, lengths)
        with torch.no_grad(), inputs.plainly(self.transitions.device):
            path, score = of.best(self._scored(batch, edges, allowed))
        paths: Any = self._laid(path) if as_tensor else _lists(path, batch.lengths)
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
        """The k best paths (B, k, T), -1 beyond an end, and their scores (B, k), best first.

        A sentence with fewer paths than k has the score -inf and labels of -1 for the rest.
        """
        if k < 1:
            raise ParameterError(f"k={k}: expected 1 or more")
        batch = self._read(emissions, mask, lengths)
        with inputs.plainly(self.transitions.device):
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
        """n paths of each sentence (n, B, T), drawn by their probability; -1 beyond an end."""
        batch = self._read(emissions, mask, lengths)
        with inputs.plainly(self.transitions.device):
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
        """The probability of each label at each token, laid as the emissions; 0 beyond an end; differentiable."""
        batch = self._read(emissions, mask, lengths)
        with inputs.plainly(self.transitions.device):
            return self._laid(of.marginals(self._scored(batch, edges, allowed)))

    def log_partition(
        self,
        emissions: Any,
        mask: Tensor | None = None,
        *,
        lengths: Any = None,
        edges: Any = None,
        allowed: Tensor | None = None,
    ) -> Tensor:
        """log of the sum of exp(score) over all paths (B,), or those of `allowed`; differentiable twice."""
        batch = self._read(emissions, mask, lengths)
        with inputs.plainly(self.transitions.device):
            return of.log_partition(self._scored(batch, edges, allowed))

    def entropy(
        self,
        emissions: Any,
        mask: Tensor | None = None,
        *,
        lengths: Any = None,
        edges: Any = None,
        allowed: Tensor | None = None,
    ) -> Tensor:
        """The entropy of the distribution over paths (B,), in nats; differentiable."""
        batch = self._read(emissions, mask, lengths)
        with inputs.plainly(self.transitions.device):
            return of.entropy(self._scored(batch, edges, allowed))


def _traits(emissions: Any, tags: Any, parameters: Any) -> tuple[Any, ...]:
    """Types, shapes and places of a call's tensors: all that is checked of them where nothing is looked at."""
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


def _rules(constraints: Any, labels: Sequence[str] | None, many: int) -> Rules:
    """Which labels may begin, follow one another, end."""
    if isinstance(constraints, Rules):
        rules = constraints
    else:
        if labels is None:
            raise ParameterError("constraints speak of labels: give their names, labels=['O', 'B-PER', ...]")
        parsed = Constraints.parse(constraints)
        if parsed.scheme == "auto":
            raise ParameterError(
                "constraints='auto' reads the scheme off training data: name it, as in 'BIO'"
            )
        rules = parsed.rules([str(label) for label in labels])
    if len(rules.start) != many:
        raise ParameterError(f"constraints are over {len(rules.start)} labels, num_tags is {many}")
    if rules.once is not None:
        raise ParameterError(
            "constraints: `once` is no rule of neighbouring labels, which this layer can keep"
        )
    return rules
