"""Parameters of the training algorithms: names, types, defaults and help. Strings are parsed as C parses numbers."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tagwise.base.parameters import meant

LARGEST = 2**31 - 1


class Parameter(NamedTuple):
    """Parameter of an algorithm. kind: type of the stored value. shown: type that `get` returns, if different."""

    name: str
    kind: type
    default: Any
    help: str
    shown: type | None = None


_PERIOD = Parameter("period", int, 10, "The duration of iterations to test the stopping criterion.")
_COMMON = (
    Parameter("feature.minfreq", float, 0.0, "The minimum frequency of features."),
    Parameter("feature.possible_states", int, 0, "Force to generate possible state features.", bool),
    Parameter(
        "feature.possible_transitions", int, 0, "Force to generate possible transition features.", bool
    ),
)
_C2 = Parameter("c2", float, 1.0, "Coefficient for L2 regularization.")
_DELTA = (
    "The threshold for the stopping criterion; an {} stops when{}the\n"
    "improvement of the log likelihood over the last ${{period}} iterations is no\ngreater than this threshold."
)
_MOST = Parameter("max_iterations", int, 100, "The maximum number of iterations.")
_LINESEARCH = (
    "The line search algorithm used in L-BFGS updates:\n{   'MoreThuente': More and Thuente's method,\n"
    "    'Backtracking': Backtracking method with regular Wolfe condition,\n"
    "    'StrongBacktracking': Backtracking method with strong Wolfe condition\n}\n"
)
_MEAN = "The stopping criterion (the mean loss)."
ALGORITHMS: dict[str, tuple[Parameter, ...]] = {
    "lbfgs": (
        *_COMMON,
        Parameter("c1", float, 0.0, "Coefficient for L1 regularization."),
        _C2,
        Parameter(
            "max_iterations", int, LARGEST, "The maximum number of iterations for L-BFGS optimization."
        ),
        Parameter(
            "num_memories",
            int,
            6,
            "The number of limited memories for approximating the inverse hessian matrix.",
        ),
        Parameter("epsilon", float, 1e-5, "Epsilon for testing the convergence of the objective."),
        _PERIOD,
        Parameter("delta", float, 1e-5, _DELTA.format("L-BFGS iteration", " ")),
        Parameter("linesearch", str, "MoreThuente", _LINESEARCH),
        Parameter("max_linesearch", int, 20, "The maximum number of trials for the line search algorithm."),
    ),
    "l2sgd": (
        *_COMMON,
        _C2,
        Parameter(
            "max_iterations", int, 1000, "The maximum number of iterations (epochs) for SGD optimization."
        ),
        _PERIOD,
        Parameter(
            "delta", float, 1e-6, _DELTA.format("optimization process", "\n").replace("the\nimp", "the imp")
        ),
        Parameter(
            "calibration.eta", float, 0.1, "The initial value of learning rate (eta) used for calibration."
        ),
        Parameter(
            "calibration.rate", float, 2.0, "The rate of increase/decrease of learning rate for calibration."
        ),
        Parameter("calibration.samples", int, 1000, "The number of instances used for calibration.", float),
        Parameter("calibration.candidates", int, 10, "The number of candidates of learning rate."),
        Parameter(
            "calibration.max_trials",
            int,
            20,
            "The maximum number of trials of learning rates for calibration.",
        ),
    ),
    "ap": (
        *_COMMON,
        _MOST,
        Parameter(
            "epsilon", float, 0.0, "The stopping criterion (the ratio of incorrect label predictions)."
        ),
    ),
    "pa": (
        *_COMMON,
        Parameter(
            "type",
            int,
            1,
            "The strategy for updating feature weights: {\n    0: PA without slack variables,\n"
            "    1: PA type I,\n    2: PA type II\n}.\n",
        ),
        Parameter("c", float, 1.0, "The aggressiveness parameter."),
        Parameter(
            "error_sensitive",
            int,
            1,
            "Consider the number of incorrect labels to the cost function.",
            bool,
        ),
        Parameter(
            "averaging",
            int,
            1,
            "Compute the average of feature weights (similarly to Averaged Perceptron).",
            bool,
        ),
        _MOST,
        Parameter("epsilon", float, 0.0, _MEAN),
    ),
    "arow": (
        *_COMMON,
        Parameter("variance", float, 1.0, "The initial variance of every feature weight."),
        Parameter("gamma", float, 1.0, "Tradeoff parameter."),
        _MOST,
        Parameter("epsilon", float, 0.0, _MEAN),
    ),
}
ALIASES = {"averaged-perceptron": "ap", "passive-aggressive": "pa"}


def _atoi(text: str) -> int:
    found = re.match(r"\s*[+-]?\d+", text)
    return 0 if found is None else (int(found[0]) + 2**31) % 2**32 - 2**31


def _atof(text: str) -> float:
    pattern = r"\s*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)"
    found = re.match(pattern, text, re.IGNORECASE)
    return 0.0 if found is None else float(found[0])


class Parameters:
    """Parameters of one algorithm and their values."""

    def __init__(self, algorithm: str) -> None:
        self.algorithm = algorithm
        self.table = {parameter.name: parameter for parameter in ALGORITHMS[algorithm]}
        self.values: dict[str, Any] = {name: p.default for name, p in self.table.items()}

    def find(self, name: str | bytes) -> Parameter:
        """Return the parameter of this name."""
        name = name.decode() if isinstance(name, bytes) else name
        if name not in self.table:
            raise ValueError(
                f"Parameter not found: {name}{meant(name, self.table)}. The parameters of {self.algorithm} are "
                f"{', '.join(self.table)}"
            )
        return self.table[name]

    def set(self, name: str | bytes, value: Any) -> None:
        """Set a value. Its string is parsed by the rules of C's atoi and atof. Booleans become 1 or 0."""
        parameter = self.find(name)
        if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
            value = int(value)
        text = value.decode() if isinstance(value, bytes) else str(value)
        if parameter.kind is int:
            self.values[parameter.name] = _atoi(text)
        else:
            self.values[parameter.name] = _atof(text) if parameter.kind is float else text

    def get(self, name: str | bytes) -> Any:
        """Return a value as C prints it and the API casts it. Floats have six decimals."""
        parameter = self.find(name)
        value = self.values[parameter.name]
        if parameter.kind is float:
            return float(f"{value:f}")
        return value if parameter.shown is None else parameter.shown(value)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]
