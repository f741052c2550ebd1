"""Word classes: words that occur in the same contexts share a class, learned from text without labels.

>>> text = [["in", city, "on", day] for city in ("Rome", "Oslo", "Bonn") for day in ("Monday", "Friday")]
>>> classes = WordClasses.learn(text, classes=3)
>>> classes["Rome"] == classes["Oslo"], classes["Rome"] == classes["Monday"]
(True, False)
>>> classes.members(classes["Friday"])
['Friday', 'Monday']
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, overload

from tagwise.base.domains import Flag, Integer, ListOf
from tagwise.base.exceptions import ModelFileError, ParameterError, TemplateError
from tagwise.base.parameters import checked, cores
from tagwise.base.progress import checked_callbacks, logger, progress
from tagwise.corpus.text.tokenizer import Tokenizes
from tagwise.features import class_files, class_learning
from tagwise.features.class_learning import MOST_CLASSES, Sweep
from tagwise.features.class_lookup import ClassLookup
from tagwise.features.derived_columns import DerivedColumn, Features

#: Numbers of classes of the cuts of the tree that are attributes, in addition to the class itself.
CUTS = (8, 16, 32, 64, 128, 256, 512)


class WordClasses(ClassLookup, DerivedColumn):
    """Classes of words as a feature. The path of a class is a string of 0 and 1, and its prefixes are coarser classes.

    Use `WordClasses.learn` to learn classes from text, `WordClasses.from_vectors` to cluster word vectors, and
    `WordClasses.load` to read a file. Words are looked up with every digit replaced by 0. An unknown word has the class
    of its shape (`Aa`, `A`, `a-a`, ...), which is learned from rare words. If no rare word had that shape, it has none.

    Args:
        words: mapping of str -> sequence of str. Words of each class by its path, most frequent words first.
        shapes: mapping of str -> sequence of str, default={}. Shapes of unknown words by the path of their class.
        counts: mapping of str -> int, default={}. Frequencies of words, for display.
        name: str, default="classes". Name of the column and of its attributes. Several sets need several names.
        window: int, default=1. Also add attributes of the neighbours at most this many tokens away (0 to 10).
        cuts: sequence of int, default=(8, 16, 32, 64, 128, 256, 512). Cuts of the tree into that many classes, which
            are attributes in addition to the class itself. Use () if several sets of classes are features together.
        ignore_case: bool, default=False. Whether words are looked up in lower case.
        facts: mapping, default={}. Facts about learning, which files keep.

    Attributes:
        name: Name of the column.
        window: Window of the attributes.
        cuts: Cuts of the tree that are attributes.
        ignore_case: Whether case is ignored.
        paths: Paths of all classes, in lexicographic order.
        facts: Facts about learning: tokens, sentences, distinct_words, min_count, sweeps, objective.

    Raises:
        ParameterError: A path is not a string of 0 and 1 or is a prefix of another one, or a word is in two classes.

    >>> classes = WordClasses({"0": ["the", "a"], "10": ["dog", "cat"], "11": ["barks"]})
    >>> classes, classes["cat"], classes.members("1")
    (<WordClasses classes: 5 words in 3 classes>, '10', ['dog', 'cat', 'barks'])
    """

    kind = "classes"

    def __init__(
        self,
        words: Mapping[str, Sequence[str]],
        *,
        shapes: Mapping[str, Sequence[str]] | None = None,
        counts: Mapping[str, int] | None = None,
        name: str = "classes",
        window: int = 1,
        cuts: Sequence[int] = CUTS,
        ignore_case: bool = False,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self._check(name, window)
        self.cuts = tuple(checked("cuts", list(cuts), ListOf(Integer(2, MOST_CLASSES))))
        self.facts = dict(facts or {})
        super().__init__(words, shapes or {}, counts or {}, name, ignore_case)

    @overload
    @staticmethod
    def learn(
        texts: Any,
        *,
        classes: int | None = None,
        min_count: int = 2,
        max_iter: int = 10,
        ignore_case: bool | None = None,
        name: str = "classes",
        window: int = 1,
        tokenizer: Tokenizes | None = None,
        callbacks: Iterable[Callable[[Sweep], Any]] = (),
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> WordClasses: ...
    @overload
    @staticmethod
    def learn(
        texts: Any,
        *,
        classes: Sequence[int] | str,
        min_count: int = 2,
        max_iter: int = 10,
        ignore_case: bool | None = None,
        name: str = "classes",
        window: int = 1,
        tokenizer: Tokenizes | None = None,
        callbacks: Iterable[Callable[[Sweep], Any]] = (),
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> Features: ...
    @staticmethod
    def learn(
        texts: Any,
        *,
        classes: int | Sequence[int] | str | None = None,
        min_count: int = 2,
        max_iter: int = 10,
        ignore_case: bool | None = None,
        name: str = "classes",
        window: int = 1,
        tokenizer: Tokenizes | None = None,
        callbacks: Iterable[Callable[[Sweep], Any]] = (),
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> WordClasses | Features:
        """Learn classes from text. Labels are not used, so the text of training and test data may be part of it.

        Words that occur next to the same classes are put into the same class: the class bigram model of Brown et al.
        (1992), maximised by exchange. The result does not depend on the number of threads.

        Args:
            texts: path, Corpus, Shards or iterable. Path of a file in any format or a pattern such as ``raw/*.txt``, a
                corpus, shards of `encode`, or an iterable of these, raw texts, sentences or lists of tokens. Sentences
                are counted in a stream, so that a text may be larger than memory. If the first string of an iterable
                names a file, all strings are paths, else all are raw texts.
            classes: int, sequence of int, "several" or None, default=None. Number of classes. None means three times
                the square root of the number of words, at most 1,000. A sequence learns several sets of classes, which
                are better features together than one. "several" means those of (32, 64, 128, 256, 512, 1000) that
                leave at least ten words per class, for words as they are and for words in lower case.
            min_count: int, default=2. Rarer words have the class of their shape. Raise it for very large texts.
            max_iter: int, default=10. Maximum number of sweeps over all words. Learning ends earlier when a sweep moves
                less than one word in a thousand.
            ignore_case: bool or None, default=None. Whether `Apple` and `apple` are one word. Set it for text without
                regular capitals. None means False, and both for "several" if some words differ in case only.
            name: str, default="classes". Name of the column and of its attributes. Several sets have the number of
                their classes after it, and `lower` if they ignore case.
            window: int, default=1. Also add attributes of the neighbours at most this many tokens away (0 to 10).
            tokenizer: Tokenizer, callable or None, default=None. Tokenizer of raw texts in a list. None means
                ``Tokenizer()``.
            callbacks: iterable of callables, default=(). Functions that are called with a `Sweep` after each sweep.
            n_jobs: int or None, default=None. Number of threads. None uses all cores.
            verbose: int, default=0. 1 shows a progress line on a terminal or in a notebook and logs every sweep to the
                logger ``tagwise``.

        Returns:
            The classes, or the `Features` that are the sum of several sets of classes.

        Raises:
            CorpusError: A text cannot be read, or there are fewer than two words.
            ParameterError: A parameter is not valid, or there are fewer words than classes.

        >>> WordClasses.learn([["a", "dog", "barks"], ["a", "cat", "barks"]], classes=2, min_count=1)
        <WordClasses classes: 4 words in 2 classes>
        """
        sizes = class_learning.checked_sizes(classes)
        min_count, max_iter = (
            checked("min_count", min_count, Integer(1)),
            checked("max_iter", max_iter, Integer(0)),
        )
        verbose, functions = checked("verbose", verbose, Integer(0)), checked_callbacks(callbacks)
        jobs = cores() if n_jobs is None else checked("n_jobs", n_jobs, Integer(1))
        ignore_case = checked("ignore_case", ignore_case, Flag(optional=True))
        cases = (False, True) if ignore_case is None and sizes == "several" else (bool(ignore_case),)
        counted = class_learning.count(texts, cases, tokenizer)
        several, learned = sizes == "several" or isinstance(sizes, list), list[WordClasses]()
        with progress("classes", verbose) as line:
            functions += [_log] * bool(verbose) + ([] if line is None else [line])
            for case, counts in counted.items():
                for n in class_learning.listed_sizes(sizes, counts.n_frequent(min_count)):
                    found = class_learning.learn(counts, n, min_count, max_iter, jobs, functions)
                    learned.append(
                        WordClasses(
                            **vars(found),
                            name=_set_name(name, len(found.words), case) if several else name,
                            window=window,
                            cuts=() if several else CUTS,
                            ignore_case=case,
                        )
                    )
        return Features(*learned) if several else learned[0]

    @staticmethod
    def from_vectors(
        source: Any,
        words: Sequence[str] | None = None,
        *,
        classes: int | None = None,
        max_iter: int = 20,
        ignore_case: bool = False,
        name: str = "classes",
        window: int = 1,
        random_state: int = 0,
    ) -> WordClasses:
        """Cluster word vectors: k-means on vectors of length 1, and a tree of the clusters by Ward's criterion.

        Args:
            source: path, mapping or array. File of word2vec or GloVe (text, or binary `.bin`), which may be compressed,
                a mapping of words to vectors, or an array [V, D] or its file `.npy` with ``words``. More frequent words
                come first.
            words: sequence of str or None, default=None. Words of the rows of an array.
            classes: int or None, default=None. Number of classes. None means three times the square root of the number
                of words, at most 1,000.
            max_iter: int, default=20. Maximum number of iterations of k-means.
            ignore_case: bool, default=False. Whether to look words up in lower case. Set it for uncased vectors.
            name: str, default="classes". Name of the column and of its attributes.
            window: int, default=1. Also add attributes of the neighbours at most this many tokens away (0 to 10).
            random_state: int, default=0. Seed of the initial centres.

        Returns:
            The classes. Words that are equal after normalization have the class of the first of them.

        Raises:
            CorpusError: A file cannot be read, or vectors are not finite numbers of one length.
            ParameterError: A parameter is not valid, or there are fewer words than classes.

        >>> WordClasses.from_vectors({"a": [0, 1], "the": [0, 2], "dog": [1, 0]}, classes=2)["a"]
        '0'
        """
        from tagwise.features import class_vectors

        n_classes = checked("classes", classes, Integer(2, MOST_CLASSES, optional=True))
        max_iter, seed = (
            checked("max_iter", max_iter, Integer(1)),
            checked("random_state", random_state, Integer(0)),
        )
        ignore_case = checked("ignore_case", ignore_case, Flag())
        found, values = class_vectors.read(source, words)
        found, values = class_vectors.distinct(found, values, ignore_case)
        members, facts = class_vectors.clustered(found, values, n_classes, max_iter, seed)
        return WordClasses(members, name=name, window=window, ignore_case=ignore_case, facts=facts)

    @staticmethod
    def load(
        path: str | os.PathLike[str], *, name: str | None = None, window: int | None = None
    ) -> WordClasses:
        """Read classes from a file of `save`.

        Args:
            path: str or path. The file.
            name: str or None, default=None. Other name of the column. None means the name in the file.
            window: int or None, default=None. Other window. None means the window in the file.

        Returns:
            The classes.

        Raises:
            ModelFileError: The file cannot be read, is damaged, of another version, not a file of classes, or has
                several sets of them.

        >>> WordClasses({"0": ["a"], "1": ["b"]}).save("two.classes")
        >>> WordClasses.load("two.classes")["b"]
        '1'
        """
        found = class_files.read(path)
        if len(found) > 1:
            raise ModelFileError(
                f"{os.fspath(path)}: the file has {len(found)} sets of classes. Use WordClasses.load_sets."
            )
        return _of_file(found[0], name, window)

    @staticmethod
    def load_sets(path: str | os.PathLike[str], *, name: str | None = None) -> Features:
        """Read all sets of classes of a file of `save_sets` or `save`.

        Args:
            path: str or path. The file.
            name: str or None, default=None. Other name of the columns. Several sets have the number of their classes
                after it, and `lower` if they ignore case. None means the names in the file.

        Returns:
            The sum of the sets.

        Raises:
            ModelFileError: The file cannot be read, is damaged, of another version, or not a file of classes.
        """
        found = class_files.read(path)
        several = name is not None and len(found) > 1
        names = [_set_name(name, len(one.words), one.ignore_case) if several else name for one in found]
        return Features(*(_of_file(one, own, None) for one, own in zip(found, names)))

    @staticmethod
    def save_sets(sets: Features | Sequence[WordClasses], path: str | os.PathLike[str]) -> None:
        """Write several sets of classes to one file. It appears complete or not at all.

        Args:
            sets: Features or sequence of WordClasses. The sets, such as the result of ``learn(classes="several")``.
            path: str or path. The file. An existing file is replaced.

        Raises:
            ParameterError: A part is not a set of classes, or there are none.
            ModelFileError: The file cannot be written.

        >>> sets = [WordClasses({"0": ["a"], "1": [end]}, name=end) for end in "xy"]
        >>> WordClasses.save_sets(sets, "sets.classes")
        >>> [one.name for one in WordClasses.load_sets("sets.classes").parts]
        ['x', 'y']
        """
        parts = sets.parts if isinstance(sets, Features) else tuple(sets)
        for part in parts:
            if not isinstance(part, WordClasses):
                raise ParameterError(f"{part!r:.60} is not a set of word classes. Give WordClasses only.")
        if not parts:
            raise ParameterError("save_sets: no classes. Give at least one set.")
        class_files.write(path, [part._content() for part in parts])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the classes to a file. It appears complete or not at all.

        Args:
            path: str or path. The file. An existing file is replaced.

        Raises:
            ModelFileError: The file cannot be written.
        """
        class_files.write(path, [self._content()])

    def _content(self) -> class_files.ClassSet:
        """Return the classes as they are in a file."""
        return class_files.ClassSet(
            dict(zip(self.paths, map(list, self._words))),
            dict(zip(self.paths, map(list, self._shapes))),
            self._counts,
            self.name,
            self.window,
            list(self.cuts),
            self.ignore_case,
            self.facts,
        )

    def readable(self, attribute: str) -> str:
        """Return the text of an attribute for explanations, with classes named by their best-known members.

        Args:
            attribute: str. Text of an attribute, such as `classes[0].cut(32)=0110`.

        Returns:
            The text with `class of London, Paris, Tokyo` in place of the path.
        """
        value = rf"\b({re.escape(self.name)}\[-?\d+\](?:\.(?:cut|prefix)\(\d+\))?=)([01]+)(?= & |$)"
        return re.sub(value, lambda found: found[1] + self.describe(found[2]), attribute)

    def column(self, tokens: Sequence[Any]) -> list[str]:
        """Return the path of the class of each token.

        Args:
            tokens: sequence of str. Tokens of a sentence.

        Returns:
            Paths, and an empty string for words without a class.
        """
        return [self.get(token) or "" for token in tokens]

    def template(self) -> str:
        """Return the template that reads the column.

        Returns:
            Lines of the template language: the class of each token of the window, in the tree and in cuts of it.
        """
        at, cuts = f"{self.name}[{self._offsets()}]", [n for n in self.cuts if n < len(self.paths)]
        return f"{at}\n" + (f"{at}.cut({','.join(map(str, cuts))})\n" if cuts else "")

    def to_json(self) -> dict[str, Any]:
        """Return the complete definition, for model files.

        Returns:
            A dict of plain values.
        """
        return {
            "kind": self.kind,
            "name": self.name,
            "window": self.window,
            "cuts": list(self.cuts),
            "ignore_case": self.ignore_case,
            "paths": list(self.paths),
            "words": list(map(list, self._words)),
            "shapes": list(map(list, self._shapes)),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> WordClasses:
        """Create classes from the result of `to_json`."""
        paths = data["paths"]
        if not len(paths) == len(data["words"]) == len(data["shapes"]):
            raise ParameterError(
                f"classes {data['name']}: {len(paths)} paths need as many lists of words and shapes"
            )
        return cls(
            dict(zip(paths, data["words"])),
            shapes=dict(zip(paths, data["shapes"])),
            name=data["name"],
            window=data["window"],
            cuts=data["cuts"],
            ignore_case=data["ignore_case"],
        )

    @classmethod
    def spelled(cls, piece: str, name: str | None, rest: str) -> Features:
        """Return the classes of `classes:FILE` or `classes:NAME=FILE`, one set or several."""
        if not rest:
            raise TemplateError(f"{piece!r}: expected classes:FILE or classes:NAME=FILE")
        return cls.load_sets(rest, name=name)

    def __repr__(self) -> str:
        return f"<WordClasses {self.name}: {self.n_words:,} words in {len(self.paths):,} classes>"

    def _repr_html_(self) -> str:
        """Return the representation for notebooks: the summary and the upper part of the tree."""
        return self.tree()._repr_html_()


def _set_name(name: str | None, n: int, ignore_case: bool) -> str:
    """Return the name of one of several sets of classes."""
    return f"{name}{n}{'lower' if ignore_case else ''}"


def _of_file(found: class_files.ClassSet, name: str | None, window: int | None) -> WordClasses:
    """Return a set of classes of a file, with another name or window if given."""
    changed = {key: value for key, value in (("name", name), ("window", window)) if value is not None}
    return WordClasses(**{**vars(found), **changed})


def _log(sweep: Sweep) -> None:
    logger.info("sweep %d: objective %.4f, %d words moved", sweep.iteration, sweep.objective, sweep.moved)
