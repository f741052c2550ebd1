"""Trainers, which hold a data set, an algorithm with its parameters, and a log."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from tagwise.base.parameters import meant
from tagwise.base.writing import atomic
from tagwise.compat.pycrfsuite import _logparser
from tagwise.compat.pycrfsuite.data import Instances
from tagwise.compat.pycrfsuite.parameters import ALGORITHMS, ALIASES, Parameters
from tagwise.compat.pycrfsuite.training import Training, serialized


class BaseTrainer:
    """Trainer that collects instances and trains a model on them.

    `__new__` creates a usable object (quiet, lbfgs), since subclasses override `__init__` without calling it.

    Args:
        algorithm: "lbfgs", "l2sgd", "ap", "pa" or "arow".
        params: Parameters by name, see `set`.
        verbose: Print every message of the log.
    """

    verbose: Any = None
    _params: Parameters
    _instances: Instances
    _cleared: bool

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self = super().__new__(cls)
        self._params, self._instances, self._cleared = Parameters("lbfgs"), Instances(), False
        return self

    def __init__(
        self, algorithm: str | None = None, params: Mapping[str, Any] | None = None, verbose: bool = True
    ) -> None:
        if algorithm is not None:
            self.select(algorithm)
        if params is not None:
            self.set_params(params)
        self.verbose = verbose

    def message(self, message: str) -> None:
        """Print a piece of the log. Override this method to receive the pieces."""
        if self.verbose:
            print(message, end="")

    def append(self, xseq: Any, yseq: Iterable[str | bytes], group: int = 0) -> None:
        """Add an instance.

        Args:
            xseq: Features of its items, see `ItemSequence`.
            yseq: One label per item.
            group: Number of the group, which `train` can hold out.
        """
        if isinstance(group, bool) or not hasattr(group, "__index__"):
            raise TypeError(f"expected group to be an int, found {type(group).__name__}")
        self._instances.append(xseq, yseq, group.__index__())
        self._cleared = False

    def select(self, algorithm: str, type: str = "crf1d") -> None:
        """Select an algorithm and reset all parameters to their defaults."""
        name = algorithm.lower()
        name = ALIASES.get(name, name)
        if name not in ALGORITHMS or type != "crf1d":
            hint = "" if name in ALGORITHMS else meant(name, ALGORITHMS)
            raise ValueError(
                f"Bad arguments: algorithm={algorithm!r}{hint}, type={type!r}. Use the type crf1d and one of "
                f"{', '.join(ALGORITHMS)}"
            )
        self._params = Parameters(name)

    def train(self, model: str | bytes | os.PathLike[str], holdout: int = -1) -> None:
        """Train on the instances and write the model.

        Args:
            model: Path of the model file. Nothing is written if it is empty.
            holdout: Group to evaluate on instead of training on it. -1 for none.
        """
        path = os.fsdecode(model)
        if self._cleared:
            raise ValueError("The data set is empty: it was cleared. Append instances before training")
        self._before_train()
        training = Training(self._instances, self._params, holdout, self.message)
        chain = training.run()
        if not path:
            return
        data = serialized(chain, self.message, len(training.texts))
        with atomic(path) as out:
            out.write(data)

    def params(self) -> list[str]:
        """Return the names of the parameters of the selected algorithm."""
        return list(self._params.table)

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Set parameters by name."""
        for key, value in params.items():
            self.set(key, value)

    def get_params(self) -> dict[str, Any]:
        """Return all parameters by name."""
        return {name: self.get(name) for name in self.params()}

    def set(self, name: str | bytes, value: Any) -> None:
        """Set a parameter."""
        self._params.set(name, value)

    def get(self, name: str | bytes) -> Any:
        """Return the value of a parameter."""
        return self._params.get(name)

    def help(self, name: str | bytes) -> str:
        """Return the description of a parameter."""
        return self._params.find(name).help

    def clear(self) -> None:
        """Remove all instances and the numbering of their names."""
        self._instances, self._cleared = Instances(), True

    def _before_train(self) -> None:
        pass


class Trainer(BaseTrainer):
    """Trainer that parses its own log (`logparser`) and calls a method for each event, if `verbose`.

    By default these methods print the log.
    """

    logparser: _logparser.TrainLogParser | None = None

    def _before_train(self) -> None:
        self.logparser = _logparser.TrainLogParser()

    def message(self, message: str) -> None:
        """Feed the parser, and call the method of the event that it detects."""
        if self.logparser is None:
            self._before_train()
        parser = self.logparser
        if parser is None:
            return
        event = parser.feed(message)
        if not self.verbose or event is None:
            return
        log = parser.last_log
        if event == "featgen_progress":
            self.on_featgen_progress(log, parser.featgen_percent)
        elif event == "iteration":
            self.on_iteration(log, parser.last_iteration)
        else:
            getattr(self, f"on_{event}")(log)

    def on_start(self, log: str) -> None:
        """Handle the start of training."""
        print(log, end="")

    def on_featgen_progress(self, log: str, percent: int) -> None:
        """Handle progress of feature generation."""
        print(log, end="")

    def on_featgen_end(self, log: str) -> None:
        """Handle the end of feature generation."""
        print(log, end="")

    def on_prepared(self, log: str) -> None:
        """Handle the start of the first iteration."""
        print(log, end="")

    def on_prepare_error(self, log: str) -> None:
        """Handle an error before the first iteration."""
        print(log, end="")

    def on_iteration(self, log: str, info: Any) -> None:
        """Handle the end of an iteration."""
        print(log, end="")

    def on_optimization_end(self, log: str) -> None:
        """Handle the end of the last iteration."""
        print(log, end="")

    def on_end(self, log: str) -> None:
        """Handle the end of training, after the model was written."""
        print(log, end="")
