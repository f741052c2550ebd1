"""The API of python-crfsuite: calls, errors, logs and files, compared with the original if it is installed."""

from __future__ import annotations

import json
import math
import pickle
import re
import subprocess
import sys
import threading
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from tagwise.base.exceptions import ModelFileError
from tagwise.compat.pycrfsuite import CRFSuiteError, ItemSequence, Tagger, Trainer
from tagwise.compat.pycrfsuite._dumpparser import CRFsuiteDumpParser
from tagwise.compat.pycrfsuite._logparser import TrainLogParser
from tagwise.compat.pycrfsuite.rand import Rand
from tagwise.model.formats import crfsuite

X = [[["a"], ["b"]], [["b"], ["a"]], [["a", "c"]]]
Y = [["X", "Y"], ["Y", "X"], ["X"]]


def trained(path: Path, algorithm: str = "lbfgs", **params: object) -> Tagger:
    trainer = Trainer(algorithm, params, verbose=False)
    for x, y in zip(X, Y):
        trainer.append(x, y)
    trainer.train(str(path))
    tagger = Tagger()
    tagger.open(str(path))
    return tagger


def test_weights_minimise_the_objective(tmp_path: Path) -> None:
    """The gradient of -log P + c2 |w|^2 (not halved), computed over all paths, is 0 at the weights of lbfgs."""
    c2 = 0.3
    trained(tmp_path / "m", c2=c2, epsilon=1e-9, delta=0.0, period=0)
    chain = crfsuite.read((tmp_path / "m").read_bytes())
    node = {(int(c) // 2, int(c) % 2): w for c, w in zip(chain.node.codes, chain.node.weights)}
    edge = {(int(c) // 2, int(c) % 2): w for c, w in zip(chain.edge.codes, chain.edge.weights)}
    number = {name: i for i, name in enumerate(chain.texts)}
    slope_node = {key: 2 * c2 * w for key, w in node.items()}
    slope_edge = {key: 2 * c2 * w for key, w in edge.items()}
    for x, y in zip(X, Y):
        gold = tuple(chain.labels.index(label) for label in y)

        def score(path: tuple[int, ...], x: list[list[str]] = x) -> float:
            total = sum(node.get((number[a], k), 0.0) for k, row in zip(path, x) for a in row if a in number)
            return total + sum(edge.get(pair, 0.0) for pair in pairwise(path))

        paths = list(product(range(2), repeat=len(x)))
        z = sum(math.exp(score(p)) for p in paths)
        for path in paths:
            share = math.exp(score(path)) / z - (path == gold)
            for k, row in zip(path, x):
                for a in row:
                    if (number.get(a, -1), k) in slope_node:
                        slope_node[number[a], k] += share
            for pair in pairwise(path):
                if pair in slope_edge:
                    slope_edge[pair] += share
    assert max(map(abs, [*slope_node.values(), *slope_edge.values()])) < 1e-4


def test_tag_does_not_change_marginals(tmp_path: Path) -> None:
    """Marginals are equal before and after `tag`. Marginals and path probabilities sum to 1."""
    tagger = trained(tmp_path / "m")
    tagger.set([["a"], ["b"]])
    before = tagger.marginal("X", 0)
    tagger.tag()
    assert tagger.marginal("X", 0) == before
    assert tagger.marginal("X", 0) + tagger.marginal(b"Y", 0) == pytest.approx(1.0)
    assert sum(tagger.probability(p) for p in product("XY", repeat=2)) == pytest.approx(1.0)


def test_scores_that_overflow_exp(tmp_path: Path) -> None:
    """Scores in the thousands give valid probabilities."""
    tagger = trained(tmp_path / "m")
    tagger.set([{"a": 1e5}, {"b": -1e5}])
    assert 0.0 <= tagger.marginal("X", 0) <= 1.0
    assert tagger.probability(tagger.tag()) == pytest.approx(1.0)


def test_tagger_errors(tmp_path: Path) -> None:
    """Errors have the types of the original's exceptions, and calls that it accepts raise none."""
    tagger = Tagger()
    for call in (tagger.labels, tagger.tag, lambda: tagger.set([]), lambda: tagger.tag([["a"]])):
        with pytest.raises(ValueError, match="not opened"):
            call()
    for call in (tagger.info, lambda: tagger.dump(str(tmp_path / "d"))):
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(FileNotFoundError):
        tagger.open(str(tmp_path / "none"))
    tagger = trained(tmp_path / "m")
    assert tagger.tag() == []
    assert tagger.probability([]) == 0.0
    tagger.set([["a"]])
    for wrong, error in (
        (lambda: tagger.probability([]), ValueError),
        (lambda: tagger.probability(["Z"]), RuntimeError),
        (lambda: tagger.marginal("X", 1), ValueError),
        (lambda: tagger.marginal("X", -1), ValueError),
        (lambda: tagger.marginal("Z", 0), RuntimeError),
        (lambda: tagger.open_inmemory("lCRF"), TypeError),  # type: ignore[arg-type]
        (lambda: tagger.tag([[{"a": 1}]]), TypeError),
        (lambda: tagger.tag(["a"]), ValueError),
    ):
        with pytest.raises(error):
            wrong()
    data = (tmp_path / "m").read_bytes()
    for bad in (data[:49], data[: len(data) // 2], b"lCRFfoo" * 100):
        with pytest.raises(ModelFileError):
            tagger.open_inmemory(bad)


def test_items() -> None:
    """Items of every kind are flattened. A name that is not valid UTF-8 raises only when it is decoded."""
    given = [
        ["a", "b"],
        {"n": 2, "t": True, "s": "x", "d": {"l": ["p", b"q"]}},
        {b"k": b"v"},
        [],
        {"f": False},
    ]
    assert ItemSequence(given).items() == [
        {"a": 1.0, "b": 1.0},
        {"n": 2.0, "t": 1.0, "s:x": 1.0, "d:l:p": 1.0, "d:l:q": 1.0},
        {"k:v": 1.0},
        {},
        {"f": 0.0},
    ]
    odd = ItemSequence([[b"\xff"]])
    assert repr(odd) == "<ItemSequence of size 1>"
    with pytest.raises(UnicodeDecodeError):
        odd.items()
    for wrong in ("foo", ["foo"], [[{"foo": 1.0}]], [{"a": (1, 2)}], [{"a": None}], [[1]], [["a\0b"]]):
        with pytest.raises((ValueError, TypeError)):
            ItemSequence(wrong)


def test_trainer_errors(tmp_path: Path) -> None:
    """Invalid lengths, labels, values, parameter names and paths raise errors."""
    trainer = Trainer(verbose=False)
    for wrong, error in (
        (lambda: trainer.append([["a"]], []), ValueError),
        (lambda: trainer.append([["a"]], [1]), TypeError),  # type: ignore[list-item]
        (lambda: trainer.append([{"a": math.nan}], ["X"]), ValueError),
        (lambda: trainer.append([{"a": math.inf}], ["X"]), ValueError),
        (lambda: trainer.select("foo"), ValueError),
        (lambda: trainer.set("foo", 1), ValueError),
        (lambda: trainer.get("foo"), ValueError),
        (lambda: trainer.help("foo"), ValueError),
    ):
        with pytest.raises(error):
            wrong()
    trainer.append([["a"]], ["X"])
    with pytest.raises(OSError, match="nowhere"):
        trainer.train(str(tmp_path / "nowhere" / "m"))
    trainer.clear()
    with pytest.raises(ValueError, match="empty"):
        trainer.train(str(tmp_path / "m"))


def test_parameters_are_parsed_as_in_c() -> None:
    """Values follow atoi and atof, including overflow and booleans. Floats are returned with six decimals."""
    trainer = Trainer()
    for given, found in (("7abc", 7), ("abc", 0), (1.9, 1), (2**31, -(2**31)), (None, 0)):
        trainer.set("max_iterations", given)
        assert trainer.get("max_iterations") == found
    trainer.set("c2", "1e-7")
    assert trainer.get("c2") == 0.0
    trainer.set("feature.possible_states", np.bool_(True))
    assert trainer.get("feature.possible_states") is True
    trainer.select("AP")
    assert trainer.params()[3:] == ["max_iterations", "epsilon"]


def test_negative_sums_warn(tmp_path: Path) -> None:
    """Features with negative sums are dropped with a warning, and kept by a negative minfreq."""
    trainer = Trainer(verbose=False)
    trainer.append([{"a": -1.0}, {"b": 1.0}], ["X", "Y"])
    with pytest.warns(RuntimeWarning, match="1 features"):
        trainer.train(str(tmp_path / "m"))
    trainer.set("feature.minfreq", -5)
    trainer.train(str(tmp_path / "n"))
    names = []
    for name in "mn":
        tagger = Tagger()
        tagger.open(str(tmp_path / name))
        names.append(set(tagger.info().attributes))
    assert names == [{"b"}, {"a", "b"}]


def test_training_on_empty_data(tmp_path: Path) -> None:
    """A model without labels can be opened, but cannot tag items."""
    trainer = Trainer(verbose=False)
    trainer.append([], [])
    trainer.train(str(tmp_path / "m"))
    assert (tmp_path / "m").stat().st_size == 4236
    tagger = Tagger()
    tagger.open(str(tmp_path / "m"))
    assert tagger.labels() == []
    assert tagger.tag([]) == []
    with pytest.raises(ValueError, match="no labels"):
        tagger.tag([["a"]])


def test_dump_equals_info(tmp_path: Path) -> None:
    """The parsed text equals the result of `info`."""
    tagger = trained(tmp_path / "m")
    tagger.dump(str(tmp_path / "dump"))
    parser = CRFsuiteDumpParser()
    for line in (tmp_path / "dump").read_text("utf-8").splitlines(keepends=True):
        parser.feed(line)
    assert vars(parser.result) == vars(tagger.info())
    assert parser.result.header["num_features"] == "0"
    assert parser.result.header["off_features"] == "0x30"


def test_log_events(tmp_path: Path) -> None:
    """Held-out instances are scored after every iteration. The parser has all events and can be pickled."""
    events: list[str] = []

    class Listener(Trainer):
        def message(self, message: str) -> None:
            super().message(message)
            if self.logparser is not None and self.logparser.events[-1][0] not in events:
                events.append(self.logparser.events[-1][0])

    trainer = Listener("ap", {"max_iterations": 3}, verbose=False)
    for group in (0, 1):
        for x, y in zip(X, Y):
            trainer.append(x, y, group)
    trainer.train(str(tmp_path / "m"), holdout=1)
    parser = trainer.logparser
    assert isinstance(parser, TrainLogParser)
    wanted = ["start", "featgen_progress", "featgen_end", "prepared", "iteration", "optimization_end", "end"]
    assert events == wanted
    assert parser.featgen_percent == 100
    assert [info["num"] for info in parser.iterations] == [1, 2, 3]
    assert parser.iterations[-1]["item_accuracy_float"] == 1.0
    assert parser.iterations[-1]["scores"]["X"].ref == 3
    assert pickle.loads(pickle.dumps(parser)).iterations == parser.iterations


def test_an_empty_holdout_group(tmp_path: Path) -> None:
    """The accuracy is 0."""
    trainer = Trainer(verbose=False)
    trainer.append(X[0], Y[0])
    trainer.train(str(tmp_path / "m"), holdout=3)
    assert trainer.logparser is not None
    assert trainer.logparser.iterations[0]["item_accuracy"] == 0


def test_exceptions_of_message_propagate(tmp_path: Path) -> None:
    """No file is written."""

    class Bad(Trainer):
        def message(self, message: str) -> None:
            raise KeyError("mine")

    trainer = Bad()
    trainer.append(X[0], Y[0])
    with pytest.raises(KeyError, match="mine"):
        trainer.train(str(tmp_path / "m"))
    assert not (tmp_path / "m").exists()


def test_errors_have_codes() -> None:
    """Codes start at -2^31."""
    error = CRFSuiteError(-(2**31) + 5)
    assert error.code == -2147483643
    assert str(error) == "Overflow"
    assert pickle.loads(pickle.dumps(error)).code == error.code


def test_concurrent_taggers(tmp_path: Path) -> None:
    """Threads with taggers of their own do not affect each other."""
    trained(tmp_path / "m")
    data, found = (tmp_path / "m").read_bytes(), []

    def work() -> None:
        tagger = Tagger()
        tagger.open_inmemory(data)
        found.append([tagger.tag(x) for x in X * 20])

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [Y * 20] * 3


def test_random_numbers_match_glibc() -> None:
    """The stream equals that of a process that has not called srand."""
    stream = Rand()
    assert [stream.next() for _ in range(4)] == [1804289383, 846930886, 1681692777, 1714636915]


# --- comparison with the original ---------------------------------------------------------------------------

SCRIPT = """
import json, random, sys
if sys.argv[1] == "theirs":
    import pycrfsuite
else:
    from tagwise.compat import pycrfsuite
rng = random.Random(3)
pieces = []
class Listener(pycrfsuite.Trainer):
    def message(self, message):
        pieces.append(message)
        super().message(message)
trainer = Listener(sys.argv[2], json.loads(sys.argv[3]), verbose=False)
for i in range(40):
    x, y = [], []
    for _ in range(rng.randint(1, 6)):
        label = rng.randrange(3)
        y.append(f"L{label}")
        name = f"a{(label + rng.choice([0, 0, 0, 1, 2])) % 3}"
        values = {name: rng.choice([1.0, 0.3, 2.5]), "w": str(rng.randrange(12)), "b": rng.random() < 0.5}
        x.append(values if i % 3 == 0 else [name, f"w:{rng.randrange(12)}"])
    trainer.append(x, y, int(i >= 34))
trainer.train(sys.argv[4], holdout=1)
json.dump(pieces, sys.stdout)
"""


def _log(pieces: list[str]) -> list[str]:
    return re.sub(r"(econds required[^:]*): [\d.]+", r"\1: T", "".join(pieces)).splitlines()


@pytest.mark.parametrize(
    ("algorithm", "params"),
    [
        ("ap", {"max_iterations": 4}),
        ("pa", {"max_iterations": 4}),
        ("arow", {"max_iterations": 4}),
        ("l2sgd", {"max_iterations": 4}),
        ("lbfgs", {"c2": 0.1, "feature.possible_transitions": 1}),
        ("lbfgs", {"c1": 0.5, "c2": 0.01}),
    ],
)
def test_training_matches_the_original(algorithm: str, params: dict[str, object], tmp_path: Path) -> None:
    """Log, features and weights match. Each run has its own process, so that its random numbers are not shifted."""
    pytest.importorskip("pycrfsuite")
    chains, logs = [], []
    for whose in ("theirs", "ours"):
        path = str(tmp_path / whose)
        command = [sys.executable, "-c", SCRIPT, whose, algorithm, json.dumps(params), path]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        logs.append(_log(json.loads(done.stdout)))
        chains.append(crfsuite.read(Path(path).read_bytes()))
    theirs, ours = chains
    assert ours.labels == theirs.labels
    assert list(ours.texts) == list(theirs.texts)
    exact = algorithm != "lbfgs"
    for a, b in ((ours.node, theirs.node), (ours.edge, theirs.edge)):
        assert a.codes.tolist() == b.codes.tolist()
        assert np.allclose(a.weights, b.weights, rtol=0.0, atol=1e-12 if exact else 0.05)
    if exact:
        assert logs[1] == logs[0]
        return
    assert [re.sub(r"[\d.]+", "0", line) for line in logs[1][:30]] == [
        re.sub(r"[\d.]+", "0", line) for line in logs[0][:30]
    ]
    losses = [[float(x) for x in re.findall(r"Loss: ([\d.]+)", "\n".join(log))] for log in logs]
    assert losses[1][-1] == pytest.approx(losses[0][-1], rel=1e-5)


def test_tagging_matches_the_original(tmp_path: Path) -> None:
    """The original's tagger opens our files. Tags are equal, including ties, and probabilities to 1e-9."""
    theirs = pytest.importorskip("pycrfsuite")
    for algorithm in ("lbfgs", "ap"):
        ours = trained(tmp_path / "m", algorithm)
        tagger = theirs.Tagger()
        tagger.open(str(tmp_path / "m"))
        assert tagger.labels() == ours.labels()
        for x in [*X, [["unknown"], ["c"]], [["a", "a"], []]]:
            assert ours.tag(x) == tagger.tag(x)
            tagger.set(x)
            for y, t in product("XY", range(len(x))):
                assert ours.marginal(y, t) == pytest.approx(tagger.marginal(y, t), abs=1e-9)
        assert vars(ours.info()) == vars(tagger.info())
