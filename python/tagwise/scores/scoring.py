"""All that decoding asks of a model: labels, scorer, constraints, tag dictionary, labels further back, voters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tagwise.scores.constraints import Constraints, Rules
from tagwise.scores.dictionary import Dictionary
from tagwise.scores.lookback import Lookback
from tagwise.scores.protocols import Scorer
from tagwise.scores.voters import Voters


@dataclass(frozen=True)
class Scoring:
    """How sentences are scored and what their paths may be; it knows attributes by their numbers alone."""

    labels: tuple[str, ...]
    scorer: Scorer
    lookback: Lookback | None = None
    constraints: Constraints | None = None
    dictionary: Dictionary | None = None
    voters: Voters | None = None

    @cached_property
    def rules(self) -> Rules | None:
        """The constraints over the labels."""
        return None if self.constraints is None else self.constraints.rules(self.labels)
