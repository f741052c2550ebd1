"""Named comparisons, read from `presets.toml`: the bundled corpora, tables of papers and our own tables."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from tagwise.apps.compare.learners import NAMES, ComparedLearner, learner_names
from tagwise.apps.compare.plan import HELD_OUT, Cell, plan
from tagwise.apps.compare.published import published_figures
from tagwise.apps.compare.table import HIDDEN, Published

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Preset:
    """A named comparison."""

    name: str
    help: str
    corpora: tuple[str, ...] = ()
    learners: tuple[str | ComparedLearner, ...] = ()  # empty for all learners
    features: tuple[Any, ...] = ()
    pairs: Mapping[str, str] = field(default_factory=dict)  # corpus -> the only feature set for it
    sizes: tuple[int, ...] = ()
    seeds: int = 1
    limits: Mapping[str, int] = field(default_factory=dict)  # corpus -> number of training sentences
    params: Mapping[str, Any] = field(default_factory=dict)
    params_of: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # estimators -> more parameters
    tune: Mapping[str, Mapping[str, Sequence[Any]]] = field(default_factory=dict)
    tune_size: int | None = None
    folds: int = 1
    held: int | None = None  # number of last training sentences to test on instead of the test part
    dev: bool = False
    track: bool = False
    risks: int | None = None
    against: str | None = "crf"
    published: tuple[Published, ...] = ()
    note: str = ""
    hidden: tuple[str, ...] = HIDDEN

    def chosen(self) -> tuple[str | ComparedLearner, ...]:
        """Return the learners of the preset, or all learners if it names none."""
        return self.learners or tuple(learner_names())

    def cells(self, corpora: Sequence[str] | None = None, losses: Sequence[str] = ()) -> list[Cell]:
        """Return the cells to train."""
        cells = plan(
            self.chosen(),
            self.corpora if corpora is None else corpora,
            self.features,
            self.sizes or None,
            self.seeds,
            losses=losses,
            params=self.params,
            params_of={kind: more for kinds, more in self.params_of.items() for kind in kinds.split()},
            tune=self.tune,
            tune_size=self.tune_size,
            folds=self.folds,
            dev=self.dev,
            track=self.track,
            risks=self.risks,
        )
        return [cell for cell in cells if self.pairs.get(cell.corpus, cell.features) == cell.features]

    def with_params(self, params: Mapping[str, Any]) -> Preset:
        """Return the preset with these parameters for all learners that have them, in place of its own."""
        others = {
            kinds: {name: value for name, value in more.items() if name not in params}
            for kinds, more in self.params_of.items()
        }
        return replace(self, params={**self.params, **params}, params_of=others)

    def caption(self) -> str:
        """Describe the limits of the preset and how parameters were chosen."""
        parts = [f"{corpus}: first {n:,} training sentences" for corpus, n in self.limits.items()]
        parts += [f"{name} = {value}" for name, value in self.params.items()]
        parts += [
            f"{kinds.replace(' ', ', ')}: {name} = {value}"
            for kinds, more in self.params_of.items()
            for name, value in more.items()
        ]
        names = dict.fromkeys(spec.split("(")[0].strip() for spec in self.chosen() if isinstance(spec, str))
        for name in names:  # parameters that a name fixes and no column shows
            fixed_by_name = NAMES.get(name, (name, {}))[1].items()
            fixed = [f"{key} = {value}" for key, value in fixed_by_name if key not in ("loss", "features")]
            parts += [f"{name}: {', '.join(fixed)}"] * bool(fixed)
        parts += [f"{learners}: {grid}, {self._tuned_on()}" for grid, learners in self._grids().items()]
        if self.held:
            parts.append(f"tested on the last {self.held:,} training sentences")
        if self.risks:
            parts.append(f"gold paths ranked in lists of {self.risks}")
        if self.track:
            parts.append("dev part scored after every iteration, best iteration kept")
        return "; ".join(parts)

    def _grids(self) -> dict[str, str]:
        """Return the learners of each grid of values to choose from, both as text."""
        out: dict[str, str] = {}
        for kind, values in self.tune.items():
            grid = ", ".join(f"{name} from {', '.join(map(str, v))}" for name, v in values.items())
            out[grid] = f"{out[grid]}, {kind}" if grid in out else kind
        return out

    def _tuned_on(self) -> str:
        """Describe the sentences that values are chosen on."""
        few = f" of the first {self.tune_size:,}" if self.tune_size else ""
        if not self.folds:
            return "on the dev part"
        if self.folds == HELD_OUT:
            return f"by cross-validation in {HELD_OUT} folds{few}"
        repeats = f", in {self.folds} different folds" if self.folds > 1 else ""
        return f"on every fifth training sentence{few}{repeats}"


def _value(value: Any) -> Any:
    """Convert a value of the file: lists become tuples, "none" becomes None."""
    if isinstance(value, list):
        return tuple(map(_value, value))
    if isinstance(value, dict):
        if value.keys() <= {"name", "kind", "params"} and "kind" in value:
            return ComparedLearner(value["name"], value["kind"], _value(value.get("params", {})))
        return {name: _value(each) for name, each in value.items()}
    return None if value == "none" else value


def read_presets(text: str) -> dict[str, Preset]:
    """Read presets from the text of a TOML file."""
    out = {}
    for name, fields in tomllib.loads(text).items():
        preset = Preset(name, **_value(fields))
        names = {learner if isinstance(learner, str) else learner.name for learner in preset.learners}
        out[name] = replace(preset, published=published_figures(name, names))
    return out


PRESETS = read_presets(files("tagwise.apps.compare").joinpath("presets.toml").read_text("utf-8"))
