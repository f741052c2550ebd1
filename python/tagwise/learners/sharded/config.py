"""Training on shards: the config of an algorithm, and the backends that run it.

A config creates the object that works on some of the shards (`hold`). A backend has all shards worked on, by one such
object in this process (`LocalParts`) or by one in each worker of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import tagwise._core as _core
from tagwise.dataset.shards.reader import Shards
from tagwise.learners.sharded.held import ranges
from tagwise.scores.constraints import Constraints, boundary_support


@dataclass(frozen=True)
class ShardRules:
    """Constraints of label sequences, whichever shard they belong to."""

    constraints: Constraints
    labels: Sequence[str]

    @property
    def once(self) -> bool:
        """Whether there are labels that occur once."""
        return self.constraints.rules(self.labels).once is not None

    def limits(self, data: _core.Dataset) -> _core.Limits:
        """The constraints of these sentences, for the core."""
        rules = self.constraints.rules(self.labels)
        forbidden = None if rules.pairs.all() else rules.forbidden
        return _core.Limits(forbidden, boundary_support(rules, data.offsets), rules.once)


@dataclass(frozen=True)
class ShardConfig:
    """The common fields. n_parts: parts of the shards that are trained at the same time.

    unit: name of what workers divide among themselves; changes: methods of the held object that change its state.
    """

    unit: ClassVar[str] = "parts"
    changes: ClassVar[tuple[str, ...]] = ()

    layout: _core.Layout
    n_parts: int = 1
    min_count: int = 1
    rules: ShardRules | None = None

    def hold(self, shards: Shards, numbers: range, memory: int | None = None) -> Any:
        """The object that works on these units, within about `memory` bytes."""
        raise NotImplementedError

    def n_units(self, shards: Shards) -> int:
        """Number of units of all shards."""
        return len(self.parts(shards))

    def parts(self, shards: Shards) -> list[range]:
        """The shards of each part."""
        return ranges(len(shards), self.n_parts)

    def limits(self, data: _core.Dataset) -> _core.Limits | None:
        """The constraints of these sentences."""
        return None if self.rules is None else self.rules.limits(data)

    def __reduce__(self) -> tuple[Any, ...]:
        more = {name: value for name, value in vars(self).items() if name != "layout"}
        layout = (self.layout.n_attributes, self.layout.n_labels, self.layout.arrays())
        return _unpickled, (type(self), layout, more)


Config = TypeVar("Config", bound=ShardConfig)


def _unpickled(kind: type[Config], layout: tuple[int, int, Any], more: dict[str, Any]) -> Config:
    return kind(_core.Layout.from_arrays(*layout), **more)


class PartsBackend(Protocol):
    """All units, worked on in one place or in several."""

    def call(self, method: str, *given: Any, **options: Any) -> list[Any]:
        """Call a method of the held objects: their results, in the order of their units.

        The only option is `n_jobs`, a number of threads.
        """

    def close(self) -> None:
        """Free the held objects."""


#: Starts the training of a config on the shards of the backend.
ShardBackend = Callable[[ShardConfig], PartsBackend]


class LocalParts:
    """The backend of this process: one object holds all units."""

    def __init__(self, shards: Shards, config: ShardConfig, memory: int | None = None) -> None:
        self.held = config.hold(shards, range(config.n_units(shards)), memory)

    def call(self, method: str, *given: Any, **options: Any) -> list[Any]:
        """Call a method of the held object."""
        return [getattr(self.held, method)(*given, **options)]

    def close(self) -> None:
        """Free the held object."""
        del self.held


__all__ = ["LocalParts", "PartsBackend", "ShardBackend", "ShardConfig", "ShardRules"]
