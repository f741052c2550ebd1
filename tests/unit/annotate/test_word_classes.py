"""Word classes that a labelling session learns from its own sentences."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tagwise as tw
from tagwise.apps.annotate import session as sessions
from tagwise.apps.annotate import word_classes
from tagwise.apps.annotate.folder import ProjectSettings
from tagwise.apps.annotate.project import Work
from tagwise.apps.annotate.session import Session
from tagwise.base.exceptions import ModelFileError
from tests.cli.options import invoke

NAMES, PLACES = ["Peter", "Anna", "Mary", "John", "Rosa"], ["Paris", "Rome", "London", "Oslo", "Bern"]
VERBS = ["went", "flew", "drove", "walked", "moved"]
ROWS = [
    ([a, verb, "to", b, "."], ["B-PER", "O", "O", "B-LOC", "O"])
    for a in NAMES
    for b in PLACES
    for verb in VERBS
]
CORPUS = tw.Corpus.from_lists(*map(list, zip(*ROWS)))


@pytest.fixture(autouse=True)
def little_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few sentences be enough text, and 32 classes be few."""
    monkeypatch.setattr(word_classes, "FEWEST_TOKENS", 100)
    learn = tw.WordClasses.learn

    def few(texts: Any, **options: Any) -> Any:
        return learn(texts, **{**options, "classes": [4, 6]})

    monkeypatch.setattr(tw.WordClasses, "learn", staticmethod(few))


def project(folder: Path, **settings: Any) -> Work:
    """Return a new project with unlabelled sentences."""
    work = Work(folder, ProjectSettings(labels=["PER", "LOC"], **settings))
    work.add(CORPUS, "corpus", fresh=True)
    return work


def columns_of(features: Any) -> int:
    """Return the number of word classes that features have."""
    parts = getattr(features, "parts", ())
    return sum(isinstance(part, tw.WordClasses) for part in parts)


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_classes_are_learned_stored_and_used_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new session learns classes and trains with them. The next one reads them, and so does an export."""
    session = Session(project(tmp_path / "work"))
    until(lambda: columns_of(session.learning.features) == 2)
    session.accept(0, [{"begin": 0, "end": 1, "label": "PER"}])
    session.close()
    assert (tmp_path / "work" / word_classes.CLASSES).is_file()

    def refused(*_: Any) -> Any:
        raise AssertionError("classes are learned only once")

    monkeypatch.setattr(sessions, "learn_classes", refused)
    again = Session(Work(tmp_path / "work"))
    assert columns_of(again.learning.features) == 2
    assert again.learning.model is not None
    assert any(column.kind == "classes" for column in again.learning.model.recipe.derived_columns)
    again.close()
    model = tmp_path / "model.tagwise"
    assert invoke("annotate", "--work", tmp_path / "work", "--export", "model", "-o", model).exit_code == 0
    assert any(column.kind == "classes" for column in tw.load(model).model_.recipe.derived_columns)


def test_labelling_goes_on_while_classes_are_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences can be accepted meanwhile, and are part of the training with classes."""
    go_on, begun = threading.Event(), threading.Event()
    learn = sessions.learn_classes

    def slow(*arguments: Any) -> Any:
        begun.set()
        go_on.wait(60)
        return learn(*arguments)

    monkeypatch.setattr(sessions, "learn_classes", slow)
    session = Session(project(tmp_path / "work"))
    assert begun.wait(60)
    session.accept(0, [{"begin": 0, "end": 1, "label": "PER"}])
    assert session.learning.model is not None
    assert not columns_of(session.learning.features)
    go_on.set()
    until(lambda: columns_of(session.learning.features) == 2)
    session.learning.wait()
    session.accept(1, [{"begin": 0, "end": 1, "label": "PER"}])
    assert any(column.kind == "classes" for column in session.learning.model.recipe.derived_columns)
    session.close()


def test_closing_stops_learning_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that ends while it learns stores nothing."""
    learn = sessions.learn_classes
    begun = threading.Event()

    def slow(work: Work, stop: Callable[[], bool]) -> Any:
        begun.set()
        until(stop)
        return learn(work, stop)

    monkeypatch.setattr(sessions, "learn_classes", slow)
    session = Session(project(tmp_path / "work"))
    assert begun.wait(60)
    session.close()
    assert not (tmp_path / "work" / word_classes.CLASSES).exists()


def test_little_text_other_features_and_models_have_no_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Classes need text, and features of the project's own."""
    work = project(tmp_path / "one")
    assert word_classes.can_learn(work)
    model = tw.MIRA(max_iter=1).fit(CORPUS[:3]).model_
    session = Session(work, model=model)
    assert session._class_learner.ident is None
    session.close()
    cities = tmp_path / "cities.txt"
    cities.write_text("Oslo\n", encoding="utf-8")
    other = project(tmp_path / "two", features=f"default+gazetteer:{cities}")
    assert not word_classes.can_learn(other)
    other.close()
    monkeypatch.setattr(word_classes, "FEWEST_TOKENS", 10_000)
    small = project(tmp_path / "three")
    assert not word_classes.can_learn(small)
    small.close()


def test_damaged_classes_are_an_error_with_a_remedy(tmp_path: Path) -> None:
    """A damaged file is named, and so is what to do."""
    work = project(tmp_path / "work")
    path = tmp_path / "work" / word_classes.CLASSES
    path.write_bytes(b"not classes")
    with pytest.raises(ModelFileError, match=r"words\.classes.*Delete the file"):
        Session(work)
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelFileError, match=r"words\.classes"):
        word_classes.stored_features(work)
    work.close()


def test_errors_of_learning_are_shown_and_labelling_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, for example, costs the classes only."""

    def full(*_: Any) -> None:
        raise ModelFileError("words.classes: no space left on device")

    monkeypatch.setattr(tw.WordClasses, "save_sets", staticmethod(full))
    session = Session(project(tmp_path / "work"))
    until(lambda: session.learning.failed is not None)
    assert "no space left" in str(session.learning.failed)
    session.accept(0, [{"begin": 0, "end": 1, "label": "PER"}])
    assert session.learning.model is not None
    assert not columns_of(session.learning.features)
    session.close()
