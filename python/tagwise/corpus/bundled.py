"""Named corpora: bundled with the library, or read from a folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tagwise.base.exceptions import CorpusError
from tagwise.base.parameters import meant
from tagwise.corpus.formats import read
from tagwise.corpus.listing import Listing
from tagwise.corpus.sentence import Corpus

DATA_VARIABLE = "TAGWISE_DATA"


@dataclass(frozen=True)
class CorpusInfo:
    """Description of a named corpus.

    Attributes:
        name: Argument of `load_corpus`.
        task: Task and language, in words.
        bundled: Whether the corpus is part of the installed package.
        folder: Folder of its files.
        columns: Columns of its files, in order.
        labels: Columns that can serve as the label. The first one is the default.
        files: Names of the train, dev and test files. Dev is None if the corpus has no dev part.
        licence: Source and licence.

    >>> list_corpora()[0].licence
    'Universal Dependencies English Web Treebank, CC BY-SA 4.0'
    """

    name: str
    task: str
    bundled: bool
    folder: str
    columns: tuple[str, ...]
    labels: tuple[str, ...]
    files: tuple[str, str | None, str]
    licence: str

    def __repr__(self) -> str:
        return f"<CorpusInfo {self.name}: {self.task}>"

    def _cells(self) -> dict[str, str]:
        """Return the cells of a table of corpora by column."""
        bundled = "yes" if self.bundled else "no"
        return {
            "name": self.name,
            "task": self.task,
            "bundled": bundled,
            "columns": " ".join(self.columns),
            "labels": " or ".join(self.labels),
            "licence": self.licence,
        }

    def _repr_html_(self) -> str:
        return Listing([self])._repr_html_()


_CORPORA = {
    info.name: info
    for info in (
        CorpusInfo(
            "ewt-pos",
            "part-of-speech tags of English web text",
            True,
            "ewt-pos",
            ("word", "upos", "xpos"),
            ("xpos", "upos"),
            ("train", "dev", "test"),
            "Universal Dependencies English Web Treebank, CC BY-SA 4.0",
        ),
        CorpusInfo(
            "wnut17-ner",
            "emerging named entities in English user text (IOB2)",
            True,
            "wnut17-ner",
            ("word", "ner"),
            ("ner",),
            ("train", "dev", "test"),
            "W-NUT 2017 shared task, CC BY 4.0",
        ),
        CorpusInfo(
            "conll2000",
            "English chunks (IOB2)",
            False,
            "conll2000",
            ("word", "pos", "chunk"),
            ("chunk",),
            ("train", None, "test"),
            "for measuring only, not bundled",
        ),
        CorpusInfo(
            "conll2002-es",
            "Spanish named entities (IOB2)",
            False,
            "conll2002-es",
            ("word", "pos", "ner"),
            ("ner",),
            ("train", "testa", "testb"),
            "research use only, not bundled",
        ),
        CorpusInfo(
            "conll2003-en",
            "English named entities (IOB1), with documents",
            False,
            "conll2003-en",
            ("word", "pos", "chunk", "ner"),
            ("ner",),
            ("train", "testa", "testb"),
            "research use only, not bundled",
        ),
        CorpusInfo(
            "ptb-sample",
            "part-of-speech tags of a sample of the Penn Treebank",
            False,
            "ptb-sample",
            ("word", "pos"),
            ("pos",),
            ("all", None, "all"),
            "non-commercial use only, not bundled",
        ),
    )
}

_PTB_TRAIN = 3400  # the sample is one file: the first 3,400 sentences are for training, the rest for testing


def list_corpora() -> Listing[CorpusInfo]:
    """List the corpora that `load_corpus` can read.

    Returns:
        A description of each corpus (`CorpusInfo`), bundled corpora first.

    >>> [info.name for info in list_corpora()][:2]
    ['ewt-pos', 'wnut17-ner']
    """
    return Listing(_CORPORA.values())


def _root(info: CorpusInfo, root: str | os.PathLike[str] | None) -> Path:
    if info.bundled:
        return Path(__file__).parent / "data"
    folder_name = root if root is not None else os.environ.get(DATA_VARIABLE)
    if not folder_name:
        raise CorpusError(
            f"corpus {info.name} ({info.licence}) does not come with tagwise. Set the environment variable "
            f"{DATA_VARIABLE} to the folder that contains {info.folder}/, or pass root=..."
        )
    if not os.path.isdir(folder_name):
        name = "root" if root is not None else DATA_VARIABLE
        raise CorpusError(
            f"{name}={os.fspath(folder_name)!r} is not a folder. Give the folder that contains {info.folder}/."
        )
    return Path(folder_name)


def corpus_info(name: str) -> CorpusInfo:
    """Return the description of a corpus. An unknown name raises a CorpusError that lists the corpora."""
    if name not in _CORPORA:
        raise CorpusError(
            f"no corpus is named {name!r}{meant(name, _CORPORA)}. The corpora are {', '.join(_CORPORA)}."
        )
    return _CORPORA[name]


def files_of(name: str, root: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the distinct files of a corpus, in the order train, dev, test."""
    info = corpus_info(name)
    folder = _root(info, root) / info.folder
    return [folder / f"{part}.txt.gz" for part in dict.fromkeys(info.files) if part is not None]


def load_corpus(
    name: str, label: str | None = None, *, root: str | os.PathLike[str] | None = None
) -> tuple[Corpus, Corpus | None, Corpus]:
    """Load the train, dev and test parts of a named corpus.

    Args:
        name: str. ``ewt-pos`` and ``wnut17-ner`` are bundled. ``conll2000``, ``conll2002-es``, ``conll2003-en`` and
            ``ptb-sample`` are read from ``root``.
        label: str or None, default=None. Column to use as the label. None means the corpus's default. Only
            ``ewt-pos`` offers a choice: ``xpos`` (default) or ``upos``. The chosen column is always named ``label``,
            and the other candidate columns are dropped.
        root: path or None, default=None. Folder of the corpora that are not bundled. None means the folder in the
            environment variable TAGWISE_DATA. Ignored for bundled corpora.

    Returns:
        The tuple ``(train, dev, test)`` of `Corpus` objects. ``dev`` is None if the corpus has no dev part.

    Raises:
        CorpusError: The name or the label is unknown, or the files of a corpus that is not bundled are missing.

    >>> train, dev, test = load_corpus("wnut17-ner")
    >>> len(train), train.columns, train.label
    (3394, ('word', 'label'), 'label')
    """
    info = corpus_info(name)
    label = label or info.labels[0]
    if label not in info.labels and label != "label":
        raise CorpusError(
            f"label={label!r}: the corpus {name} has no such label column{meant(label, info.labels)}. "
            f"Use {' or '.join(info.labels)}."
        )
    chosen = info.labels[0] if label == "label" else label
    columns = ["label" if c == chosen else "_" if c in info.labels else c for c in info.columns]
    folder = _root(info, root) / info.folder
    parts: dict[str, Corpus] = {}
    for part in info.files:
        if part is not None and part not in parts:
            path = folder / f"{part}.txt.gz"
            parts[part] = read(path, "conll", columns=columns, separator="\t", comments=False)
    train, dev, test = info.files
    if train == test:
        whole = parts[train]
        return whole[:_PTB_TRAIN], None, whole[_PTB_TRAIN:]
    return parts[train], parts[dev] if dev else None, parts[test]
