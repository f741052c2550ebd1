"""What is chosen by name is declared in the core alone: it takes what it exports; the package has no second list."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.base.parameters import Choice
from tagwise.estimators import LEARNERS

PACKAGE = Path(tw.__file__).parent


def objective(loss: str) -> object:
    """An objective of one sentence."""
    vocabulary = _core.Vocabulary()
    data = _core.encode_attributes(vocabulary, [[["a"], ["b"]]]).with_gold(np.array([0, 1], dtype=np.uint16))
    return _core.Objective(data, _core.Layout.build(data, len(vocabulary), 2), loss=loss)


def boosting(**told: str) -> object:
    """A booster of one sentence."""
    vocabulary = _core.Vocabulary()
    data = _core.encode_attributes(vocabulary, [[["a"], ["b"]]]).with_gold(np.array([0, 1], dtype=np.uint16))
    return _core.Boosting(data, _core.Layout.build(data, len(vocabulary), 2), **told)


def first(pairs: tuple[tuple[str, Any], ...]) -> tuple[str, ...]:
    return tuple(name for name, _ in pairs)


#: What messages call each enumeration, its names, and what takes them.
ENUMERATIONS: dict[str, tuple[tuple[str, ...], Callable[[str], object]]] = {
    "loss": (_core.LOSSES, objective),
    "online learner": (_core.RULES, _core.Rule),
    "cost": (first(_core.COSTS), lambda name: _core.Cost(name, dict(_core.COSTS).get(name, ()))),
    "kernel": (first(_core.KERNELS), _core.Kernel),
    "form": (_core.FORMS, lambda form: _core.Kernel("poly", form=form)),
    "slack": (_core.SLACKS, lambda slack: _core.Margins(slack=slack)),
    "bound": (_core.BOUNDS, _core.Rounds),
    "boosted loss": (_core.BOOSTED, lambda name: boosting(loss=name)),
    "sum over label sequences": (_core.SUMS, lambda name: boosting(over=name)),
}


@pytest.mark.parametrize("what", ENUMERATIONS)
def test_the_core_takes_the_names_that_it_exports(what: str) -> None:
    names, take = ENUMERATIONS[what]
    assert len(set(names)) == len(names) > 1
    for name in names:
        assert take(name) is not None
    with pytest.raises(ValueError, match=f'no {what} "nothing"; there are: {", ".join(names)}'):
        take("nothing")


def test_sequential_losses_are_those_that_go_with_labels_that_occur_once() -> None:
    """The core refuses the others, and says so before training begins."""
    groups = (np.array([0, _core.NO_GROUP], dtype=np.uint32), np.ones((3, 2), dtype=np.bool_))
    vocabulary = _core.Vocabulary()
    data = _core.encode_attributes(vocabulary, [[["a"], ["b"]]]).with_gold(np.array([0, 1], dtype=np.uint16))
    layout = _core.Layout.build(data, len(vocabulary), 2)

    def take(loss: str) -> _core.Objective:
        return _core.Objective(data, layout, loss=loss, limits=_core.Limits(once=groups))

    for loss in _core.SEQUENTIAL_LOSSES:
        assert take(loss) is not None
    others = set(_core.LOSSES) - set(_core.SEQUENTIAL_LOSSES)
    assert len(others) == len(_core.LOSSES) - len(_core.SEQUENTIAL_LOSSES) > 0
    for loss in others:
        with pytest.raises(ValueError, match="occur once"):
            take(loss)


@pytest.mark.parametrize("cost", first(_core.COSTS))
def test_a_cost_takes_as_many_numbers_as_it_says(cost: str) -> None:
    numbers = dict(_core.COSTS)[cost]
    with pytest.raises(
        ValueError, match=f"the cost {cost} takes {len(numbers)} numbers, got {len(numbers) + 1}"
    ):
        _core.Cost(cost, [*numbers, 1.0])


def test_estimators_offer_what_the_core_takes() -> None:
    """Choices that are the core's are all of its names; online learners are called as their rules are."""
    choices = {
        (name, param.name): param.domain.names
        for name, learner in LEARNERS.items()
        for param in learner.PARAMS
        if isinstance(param.domain, Choice)
    }
    assert choices["crf", "loss"] == _core.LOSSES
    assert choices["hmsvm", "slack"] == _core.SLACKS
    assert choices["boosting", "bound"] == _core.BOUNDS
    assert choices["boosting", "over"] == _core.SUMS
    assert choices["boosting", "loss"] == _core.BOOSTED
    assert set(_core.BOOSTED) < set(_core.LOSSES)
    assert choices["hmsvm", "form"] == choices["perceptron", "form"] == _core.FORMS
    assert set(_core.RULES) <= set(LEARNERS)


def listed(tree: ast.AST) -> Iterator[tuple[int, set[Any]]]:
    """Lines and constants of the tuples, lists, sets and dicts that are written out.

    Those of a type, Literal[...], are none: test_signatures holds them against the tables.
    """
    types = {
        id(x.slice)
        for x in ast.walk(tree)
        if isinstance(x, ast.Subscript)
        and "Literal" in (getattr(x.value, "id", ""), getattr(x.value, "attr", ""))
    }
    for node in ast.walk(tree):
        if id(node) in types:
            continue
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            yield node.lineno, {x.value for x in node.elts if isinstance(x, ast.Constant)}
        elif isinstance(node, ast.Dict):
            yield node.lineno, {x.value for x in node.keys if isinstance(x, ast.Constant)}


def second_lists(source: str) -> Iterator[tuple[int, str]]:
    """Where a source writes an enumeration of the core out; a table of more things, such as colours, is none."""
    wanted: dict[str, set[Any]] = {what: set(names) for what, (names, _) in ENUMERATIONS.items()}
    wanted["lists that are searched"] = set(_core.ONCE_LISTS)
    for line, found in listed(ast.parse(source)):
        for what, names in wanted.items():
            if names <= found and len(found - names) <= 1:
                yield line, what


#: Tables with a row for every name, which have to be written out: the module, the enumeration, and the table's name.
TABLES = (("torch/formulas.py", "loss", "FORMULAS"),)


def test_the_package_has_no_second_list() -> None:
    again = [
        f"{path.relative_to(PACKAGE)}:{line} lists every {what}"
        for path in PACKAGE.rglob("*.py")
        for line, what in second_lists(path.read_text(encoding="utf-8"))
        if (path.relative_to(PACKAGE).as_posix(), what) not in [table[:2] for table in TABLES]
    ]
    assert not again, "\n".join(again)


@pytest.mark.parametrize(("module", "what", "name"), TABLES)
def test_tables_have_a_row_for_every_name(module: str, what: str, name: str) -> None:
    """Read as text, since modules of other packages (torch) need not be installed."""
    tree = ast.parse((PACKAGE / module).read_text(encoding="utf-8"))
    (table,) = (x.value for x in tree.body if isinstance(x, ast.AnnAssign) and ast.unparse(x.target) == name)
    assert isinstance(table, ast.Dict)
    assert {ast.literal_eval(key) for key in table.keys if key is not None} == set(ENUMERATIONS[what][0])


def names_compared(source: str) -> list[str]:
    """Losses that a source tells apart by name: `x.loss == "exp"`, `loss.startswith(...)`; "log" has a fast path."""
    out = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            both = ast.unparse(node.left), *(ast.unparse(x) for x in node.comparators)
            if any(x.endswith("loss") for x in both) and "'log'" not in both:
                out.append(ast.unparse(node))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("loss.startswith"):
            out.append(ast.unparse(node))
    return out


@pytest.mark.parametrize(
    "module", ["linear/objective", "linear/edges", "engines/cuda", "linear/ragged", "linear/backend"]
)
def test_objectives_on_a_device_compare_no_losses(module: str) -> None:
    """An unknown loss would train the last branch."""
    assert not names_compared((PACKAGE / "torch" / f"{module}.py").read_text(encoding="utf-8"))
    assert names_compared('if self.loss == "exp": pass')
    assert names_compared('if loss.startswith("pointwise"): pass')


def test_a_second_list_is_noticed() -> None:
    assert list(second_lists(f"A = 1\nB = {_core.LOSSES[::-1]!r}")) == [(2, "loss")]
    assert list(second_lists('{"linear": (), "rbf": 1, "poly": 2}')) == [(1, "kernel")]
    assert list(second_lists("for k in (16, 128, 1024): pass")) == [(1, "lists that are searched")]
    assert list(second_lists('("function", "poly", "rbf", "linear")')) == [(1, "kernel")]
    assert not list(second_lists('("log", "exp")'))
    assert not list(second_lists(f"def f(loss: Literal[{', '.join(map(repr, _core.LOSSES))}]): pass"))
    assert not list(second_lists(repr(dict.fromkeys(LEARNERS, "a colour"))))
