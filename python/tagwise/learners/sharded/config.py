"""Configs of algorithms on shards, and the backends that run them.

A config builds the engine that works on some of the shards (`build_engine`). A backend runs all shards, with one engine
in this process (`LocalParts`) or one in each worker of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import tagwise._core as _core
from tagwise.dataset.shards.reader import Shards
from tagwise.learners.sharded.engines import ranges
from tagwise.scores.constraints import Constraints, boundary_support


@dataclass(frozen=True)
class ShardRules:
    """Constraints of label sequences for all shards."""

    constraints: Constraints
    labels: Sequence[str]

    @property
    def once(self) -> bool:
        """Whether there are labels that occur once."""
        return self.constraints.rules(self.labels).once is not None

    def limits(self, data: _core.Dataset) -> _core.Limits:
        """Return the constraints of these sentences in the form of the core."""
        rules = self.constraints.rules(self.labels)
        forbidden = None if rules.pairs.all() else rules.forbidden
        return _core.Limits(forbidden, boundary_support(rules, data.offsets), rules.once)


@dataclass(frozen=True)
class ShardConfig:
    """Common fields of configs. `n_parts` is the number of parts of the shards that are trained in parallel.

    `unit` is the name of the units that workers divide. `changes` has the methods of the engine that change its
    state.
    """

    unit: ClassVar[str] = "parts"
    changes: ClassVar[tuple[str, ...]] = ()

    layout: _core.Layout
    n_parts: int = 1
    min_count: int = 1
    rules: ShardRules | None = None

    def build_engine(self, shards: Shards, numbers: range, memory: int | None = None) -> Any:
        """Return the engine that works on these units within about `memory` bytes."""
        raise NotImplementedError

    def n_units(self, shards: Shards) -> int:
        """Return the number of units of all shards."""
        return len(self.parts(shards))

    def parts(self, shards: Shards) -> list[range]:
        """Return the shards of each part."""
        return ranges(len(shards), self.n_parts)

    def limits(self, data: _core.Dataset) -> _core.Limits | None:
        """Return the constraints of these sentences."""
        return None if self.rules is None else self.rules.limits(data)

    def __reduce__(self) -> tuple[Any, ...]:
        more = {name: value for name, value in vars(self).items() if name != "layout"}
        layout = (self.layout.n_attributes, self.layout.n_labels, self.layout.arrays())
        return _unpickled, (type(self), layout, more)


Config = TypeVar("Config", bound=ShardConfig)


def _unpickled(kind: type[Config], layout: tuple[int, int, Any], more: dict[str, Any]) -> Config:
    return kind(_core.Layout.from_arrays(*layout), **more)


class PartsBackend(Protocol):
    """Interface to the engines of all units, in one process or several."""

    def call(self, method: str, *arguments: Any, **options: Any) -> list[Any]:
        """Call a method of the engines and return the results in the order of their units.

        The only option is `n_jobs`, a number of threads.
        """

    def close(self) -> None:
        """Free the engines."""


#: Function that starts the training of a config on the shards of the backend.
ShardBackend = Callable[[ShardConfig], PartsBackend]


class LocalParts:
    """Backend of this process, in which one engine has all units."""

    def __init__(self, shards: Shards, config: ShardConfig, memory: int | None = None) -> None:
        self.engine = config.build_engine(shards, range(config.n_units(shards)), memory)

    def call(self, method: str, *arguments: Any, **options: Any) -> list[Any]:
        """Call a method of the engine."""
        return [getattr(self.engine, method)(*arguments, **options)]

    def close(self) -> None:
        """Free the engine."""
        del self.engine
