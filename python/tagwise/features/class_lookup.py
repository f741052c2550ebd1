"""Lookup of the classes of words, of the members of classes, and of the tree of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tagwise._core as _core
from tagwise.base.domains import Flag, is_text
from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import checked
from tagwise.features.class_tree import ClassTree, checked_paths, nearest_paths

#: Number of members that describe a class.
KNOWN = 3


class ClassLookup:
    """Words and shapes of each class by its path, and the class of each word. `WordClasses` describes the arguments."""

    def __init__(
        self,
        words: Mapping[str, Sequence[str]],
        shapes: Mapping[str, Sequence[str]],
        counts: Mapping[str, int],
        name: str,
        ignore_case: bool,
    ) -> None:
        self.ignore_case = checked("ignore_case", ignore_case, Flag())
        self.paths = checked_paths(words, shapes, name)
        self._words = tuple(tuple(words[path]) for path in self.paths)
        self._shapes = tuple(tuple(shapes.get(path, ())) for path in self.paths)
        self._counts = dict(counts)
        for text in (text for listed in (*self._words, *self._shapes) for text in listed):
            if not is_text(text):
                raise ParameterError(f"WordClasses {name}: {text!a:.80} is not a word. Give strings.")
        try:
            self.table = _core.ClassTable(
                list(self.paths),
                list(map(list, self._words)),
                list(map(list, self._shapes)),
                self.ignore_case,
            )
        except ParameterError as error:
            raise ParameterError(f"WordClasses {name}: {error}") from None

    def __len__(self) -> int:
        return len(self.paths)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.get(word) is not None

    def __getitem__(self, word: str) -> str:
        """Return the path of the class of a word. Raise a KeyError if it has none."""
        found = self.get(word)
        if found is None:
            raise KeyError(word)
        return found

    def get(self, word: str) -> str | None:
        """Return the path of the class of a word, or None if it has none.

        Args:
            word: str. The word. An unknown word has the class of its shape.

        Returns:
            A string of 0 and 1.
        """
        number = self.table.get(word) if is_text(word) else None
        return None if number is None else self.paths[number]

    def members(self, prefix: str = "", top: int | None = None) -> list[str]:
        """Return the words of all classes whose paths begin with a prefix, most frequent first.

        Args:
            prefix: str, default="". Path of a class, or the beginning of it.
            top: int or None, default=None. Maximum number of words. None means all.

        Returns:
            The words. Without known frequencies, they are in the order of the classes.
        """
        found = [w for p, words in zip(self.paths, self._words) if p.startswith(prefix) for w in words]
        return sorted(found, key=lambda word: -self._counts.get(word, 0))[:top]

    def nearest(self, word: str, top: int = 5) -> list[str]:
        """Return the paths of the classes that are nearest to the class of a word in the tree.

        Args:
            word: str. The word.
            top: int, default=5. Maximum number of classes.

        Returns:
            Paths by falling length of the prefix that they share with the class of the word, then by frequency.
        """
        own = self[word]
        size = {
            path: sum(self._counts.get(w, 1) for w in words) for path, words in zip(self.paths, self._words)
        }

        return nearest_paths(size, own)[:top]

    def tree(self, depth: int = 4, top: int = 8) -> ClassTree:
        """Return the upper part of the tree, which prints as text and shows as HTML in notebooks.

        Args:
            depth: int, default=4. Depth of the lowest classes to show.
            top: int, default=8. Number of members to show.

        Returns:
            A `ClassTree`.
        """
        return ClassTree(self.paths, self.members, depth, top)

    def describe(self, prefix: str) -> str:
        """Return a name for a class by its best-known members.

        Args:
            prefix: str. Path of a class, or the beginning of it.

        Returns:
            A text such as `class of London, Paris, Tokyo`.
        """
        known = self.members(prefix, KNOWN)
        return f"class of {', '.join(known)}" if known else "class of rare words"

    @property
    def n_words(self) -> int:
        """Number of words."""
        return sum(map(len, self._words))
