"""Parts of a model that decoding uses: labels, scorer, constraints, tag dictionary, lookback, voters."""

from __future__ import annotations

from dataclasses import dataclass

from tagwise.base.cached import cached
from tagwise.scores.constraints import Constraints, Rules
from tagwise.scores.dictionary import TagDictionary
from tagwise.scores.lookback import LookbackWeights
from tagwise.scores.protocols import Scorer
from tagwise.scores.voters import Voters


@dataclass(frozen=True)
class Scoring:
    """Scores of sentences and constraints on their paths. Attributes are numbers here."""

    labels: tuple[str, ...]
    scorer: Scorer
    lookback: LookbackWeights | None = None
    constraints: Constraints | None = None
    dictionary: TagDictionary | None = None
    voters: Voters | None = None

    @property
    @cached
    def rules(self) -> Rules | None:
        """Constraints over the labels, or None."""
        return None if self.constraints is None else self.constraints.rules(self.labels)
