"""Tests that shards equal the corpus: attributes, features and loss agree, with equal bits in any order."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise import _core
from tagwise.dataset.layout import codes_of
from tagwise.learners.sharded.config import LocalParts
from tagwise.learners.sharded.objective import ObjectiveConfig, OverShards
from tagwise.learners.sums import PartialSum, Tree, logarithmic, plain, total_of

CORPUS = tw.load_corpus("wnut17-ner")[0]
SOME = CORPUS[:100]
SETTINGS: dict[str, Any] = {"max_iter": 8, "optimizer": "lbfgs", "l2": 0.3}
#: A feature set, and templates with edge attributes.
FEATURES = {"set": "S2", "edges": "word[-1..1]\nedge: word[0].shape\n"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the corpus to two files, one of them compressed."""
    folder = tmp_path_factory.mktemp("files")
    tw.write(SOME[:45], folder / "a.conll", "conll")
    tw.write(SOME[45:], folder / "b.conll.gz", "conll")
    return folder


def encoded(files: Path, name: str, tokens: int, features: str = "S2") -> tw.Shards:
    return tw.encode(files / "*.conll*", files / name, features=features, shard_tokens=tokens)


@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
@pytest.mark.parametrize("min_count", [1, 3])
def test_attributes_and_features_equal_those_of_the_corpus(
    files: Path, features: str, min_count: int
) -> None:
    tagger = tw.CRF(features=features, min_count=min_count, max_iter=0).fit(SOME)
    for tokens in (10**6, 450):
        shards = encoded(files, f"{len(features)}-{tokens}", tokens, features)
        assert (len(shards) == 1) == (tokens == 10**6)
        assert tuple(shards.labels) == tagger.model_.labels
        assert shards.vocabulary(min_count).texts() == tagger.model_.vocabulary.texts()
        layout = shards.layout(min_count=min_count)
        for ours, theirs in zip(codes_of(layout), codes_of(tagger.model_.scorer.layout)):
            np.testing.assert_array_equal(ours, theirs)
        assert shards.n_tokens == sum(map(len, SOME))


#: One kind at most once per sentence, and rules on neighbours and ends.
RULES = {"once": ["product"], "forbidden": [["B-person", "I-location"], ["I-group", None]]}


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (tw.CRF, {}),
        *((tw.CRF, {"loss": loss}) for loss in _core.LOSSES if loss != "log"),
        (tw.CRF, {"min_count": 2, "start_end": False}),
        (tw.CRF, {"l1": 0.1, "optimizer": "auto"}),
        (tw.CRF, {"class_weight": 4.5}),
        (tw.CRF, {"class_weight": "balanced"}),
        (tw.CRF, {"constraints": "IOB2"}),
        (tw.CRF, {"constraints": RULES}),
        (tw.MEMM, {}),
        (tw.MEMM, {"class_weight": "balanced", "start_end": False, "min_count": 2}),
    ],
)
def test_single_shard_is_bit_identical_to_memory(files: Path, kind: Any, given: dict[str, Any]) -> None:
    settings = {**SETTINGS, **given}
    theirs = kind(features="S2", **settings).fit(SOME)
    ours = tw.fit_shards(kind(**settings), encoded(files, "one", 10**6))
    assert ours.objective_ == theirs.objective_
    assert ours.model_.scorer.weights.tobytes() == theirs.model_.scorer.weights.tobytes()
    assert ours.predict(SOME[:20]) == theirs.predict(SOME[:20])
    assert ours.model_.meta == theirs.model_.meta


@pytest.mark.parametrize("kind", [tw.Perceptron, tw.MIRA])
def test_online_learners_obey_constraints_over_shards(files: Path, kind: Any) -> None:
    """One shard in its own order equals the corpus in memory. A model of many shards keeps the rules too."""
    settings: dict[str, Any] = {"max_iter": 2, "shuffle": False, "constraints": "IOB2"}
    theirs = kind(features="S2", **settings).fit(SOME)
    ours = tw.fit_shards(kind(**settings), encoded(files, "one", 10**6))
    assert ours.model_.scorer.weights.tobytes() == theirs.model_.scorer.weights.tobytes()
    assert ours.model_.constraints == theirs.model_.constraints
    assert tw.fit_shards(kind(**settings), encoded(files, "many", 400)).predict(SOME[:3])


def test_constraint_violations_name_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("a O\nb I-X\n\nc B-X\nd I-X\n", "utf-8")
    shards = tw.encode(tmp_path / "a.conll", tmp_path / "enc", features="S1")
    with pytest.raises(tw.exceptions.TrainingError, match=r"a\.conll:1: "):
        tw.fit_shards(tw.CRF(constraints="IOB2"), shards)
    with pytest.raises(tw.exceptions.ParameterError, match=r"constraints='auto'.*Name the scheme"):
        tw.fit_shards(tw.MIRA(constraints="auto"), shards)


def test_many_shards_have_the_objective_of_the_corpus(files: Path) -> None:
    theirs = tw.CRF(features="S2", l2=0.3, tol=1e-6).fit(SOME)
    shards = encoded(files, "many", 400)
    ours = tw.fit_shards(tw.CRF(l2=0.3, tol=1e-6), shards)
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=1e-4)
    scored = tw.fit_shards(tw.CRF(l2=0.3, max_iter=20), shards, dev=SOME[:30])
    best = scored.history_[scored.best_iteration_ - 1]["dev_score"]
    assert best == scored.evaluate(SOME[:30]).f1 > 0.0


def test_models_do_not_depend_on_threads_or_checkpoints(files: Path) -> None:
    """Models are equal with one thread or two, and after an interruption and a resume."""
    shards = encoded(files, "many", 400)
    whole = tw.fit_shards(tw.CRF(**SETTINGS), shards)
    alone = tw.fit_shards(tw.CRF(**SETTINGS, n_jobs=1), tw.Shards(shards.path, memory=1))
    kept = tw.Checkpoint(files / "run.checkpoint", every=2)
    tw.fit_shards(tw.CRF(**SETTINGS), shards, checkpoint=kept, callbacks=[lambda e: e.iteration == 5])
    again = tw.fit_shards(
        tw.CRF(**SETTINGS), shards, checkpoint=tw.Checkpoint(kept.path, every=2, resume=True)
    )
    for tagger in (alone, again):
        assert tagger.objective_ == whole.objective_
        assert tagger.model_.scorer.weights.tobytes() == whole.model_.scorer.weights.tobytes()
    other = encoded(files, "other", 700)
    with pytest.raises(tw.exceptions.TrainingError, match="training sentences"):
        tw.fit_shards(tw.CRF(**SETTINGS), other, checkpoint=tw.Checkpoint(kept.path, resume=True))


def test_paged_arrays_are_bit_identical_to_memory(tmp_path: Path) -> None:
    """If memory is short, large arrays are stored in files and read back unchanged."""
    tw.write(CORPUS[:600], tmp_path / "a.conll", "conll")
    shards = tw.encode(tmp_path / "a.conll", tmp_path / "enc", shard_tokens=6_500)
    assert len(shards) == 2
    config = ObjectiveConfig(shards.layout())
    w = np.random.default_rng(1).normal(size=len(config.layout))
    found = []
    for memory in (None, 1):
        parts = LocalParts(shards, config, memory)
        assert (parts.engine.paged > 1 << 20) == (memory is not None)
        objective = OverShards(parts)
        for n_jobs in (1, 2):
            gradient = np.empty(len(w))
            found.append((objective.value(w, gradient, n_jobs), gradient.tobytes()))
    assert len(set(found)) == 1
    assert not list(shards.path.glob("*.pages"))


# --- the tree -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("add", [plain, logarithmic])
def test_partial_sums_of_any_workers_are_bit_identical(add: Any) -> None:
    """Single shards, or sums of neighbouring shards by any workers, give the same bits."""
    random = np.random.default_rng(0)
    shards = [(float(random.normal()), float(k), random.normal(size=5)) for k in range(9)]

    def parts(numbers: range) -> list[PartialSum]:
        return [PartialSum(k, 0, shards[k][0], shards[k][1], shards[k][2].copy()) for k in numbers]

    for n in range(1, 10):
        expected = total_of(parts(range(n)), add)
        for some in range(n):
            for cuts in combinations(range(1, n), some):
                sums = []
                for begin, end in pairwise((0, *cuts, n)):
                    worker = Tree(add)
                    for part in parts(range(begin, end)):
                        worker.push(part)
                    sums += worker.parts
                found = total_of(sums, add)
                assert (found.value, found.largest) == (expected.value, expected.largest)
                assert found.gradient.tobytes() == expected.gradient.tobytes()


def test_tree_sums_values_and_logarithms() -> None:
    """The tree adds sums, or logarithms of sums with the matching gradient."""
    values, slopes = [0.3, -1.0, 2.0, 0.7, 1.1], np.random.default_rng(2).normal(size=(5, 3))
    parts = [PartialSum(k, 0, values[k], 0.0, slopes[k].copy()) for k in range(5)]
    assert total_of(parts, plain).value == pytest.approx(sum(values))
    parts = [PartialSum(k, 0, values[k], 0.0, slopes[k].copy()) for k in range(5)]
    total, shares = total_of(parts, logarithmic), np.exp(values)
    assert total.value == pytest.approx(np.log(shares.sum()))
    np.testing.assert_allclose(total.gradient, shares @ slopes / shares.sum())


def test_shard_objective_satisfies_the_protocol(files: Path) -> None:
    """An objective of shards equals that of the whole corpus, also its logarithm for the exponential loss."""
    shards = encoded(files, "many", 400)
    whole = encoded(files, "one", 10**6)
    for loss in ("log", "exp"):
        config = ObjectiveConfig(shards.layout(), loss=loss)
        ours, theirs = (
            OverShards(LocalParts(shards, config)),
            _core.Objective(whole.dataset(0), whole.layout(), loss=loss),
        )
        w = np.full(len(config.layout), 0.01)
        one, other = np.empty(len(w)), np.empty(len(w))
        for name in ("value", "log_value")[: 1 + (loss == "exp")]:
            found, expected = getattr(ours, name)(w, one), getattr(theirs, name)(w, other)
            assert found == pytest.approx(expected, rel=1e-5)
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4 * np.abs(other).max())
