"""Word classes of a project: learned from all its sentences, labelled or not, and stored in its folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tagwise.apps.annotate.project import Work
from tagwise.base.exceptions import ModelFileError
from tagwise.base.files.regular import open_regular
from tagwise.features.derived_columns import Features
from tagwise.features.resolve import names_files
from tagwise.features.word_classes import WordClasses

CLASSES = "words.classes"
#: Minimum number of tokens to learn from. Classes of less text group few words.
FEWEST_TOKENS = 10_000
_REMEDY = "Delete the file, and the classes are learned again."


class Stopped(Exception):
    """Raised if learning is stopped between two sweeps."""


def stored_features(work: Work) -> Any:
    """Return the features of a project, with its word classes if they have been learned.

    Raises:
        ModelFileError: The file of the classes is damaged, of another version, or not a regular file.
    """
    path = work.folder / CLASSES
    if not path.exists() and not path.is_symlink():
        return work.features
    open_regular(path, None, ModelFileError, _REMEDY, follow=False).close()
    try:
        return Features(work.features) + WordClasses.load_sets(path)
    except ModelFileError as error:
        raise ModelFileError(f"{error} {_REMEDY}") from error


def can_learn(work: Work) -> bool:
    """Return whether a project without classes has enough text for them, and features to which they can be added."""
    if (work.folder / CLASSES).exists() or names_files(work.settings.features):
        return False
    return sum(len(sentence) for sentence in work.sentences) >= FEWEST_TOKENS


def learn_classes(work: Work, stop: Callable[[], bool]) -> Any:
    """Learn classes from the sentences of a project, store them, and return its features with them.

    Raises:
        Stopped: `stop` returned True.
    """

    def check(_: object) -> None:
        if stop():
            raise Stopped

    classes = WordClasses.learn(list(work.sentences), classes="several", n_jobs=1, callbacks=[check])
    check(None)
    WordClasses.save_sets(classes, work.folder / CLASSES)
    return Features(work.features) + classes
