"""Conversion from objects of other libraries: pandas, Hugging Face datasets, spaCy, NLTK, conllu.

The module of an object's type identifies the library, so nothing is imported for the check. The corpus contains
tokens and labels, and further columns on request.

>>> corpus_of([[("Paris", "NNP"), ("sleeps", "VBZ")]])
<Corpus: 1 sentences, 2 tokens, columns word, label>
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tagwise.base.exceptions import CorpusError
from tagwise.base.parameters import meant
from tagwise.corpus.columns import LABELS, SENTENCES, TOKENS
from tagwise.corpus.formats import read
from tagwise.corpus.sentence import Corpus, Sentence
from tagwise.corpus.sentence_rows import RowReader, own_names


def root_of(x: Any) -> str:
    """Return the name of the library that defines an object's type."""
    return str(type(x).__module__).partition(".")[0]


def kind_of(X: Any) -> str | None:
    """Return the kind of an object of another library, or None for any other object.

    No data is read, and nothing is imported.

    >>> kind_of([["a", "list"]]) is None
    True
    """
    root = root_of(X)
    if root == "pandas" and hasattr(X, "iloc") and hasattr(X, "columns"):
        return "frame"
    if root == "datasets":
        if isinstance(X, Mapping):
            raise CorpusError(
                f"a {type(X).__name__} has the parts {', '.join(map(str, X))}. "
                f"Choose one: X['{next(iter(X), 'train')}']"
            )
        return "dataset" if hasattr(X, "features") else None
    if root == "spacy" and hasattr(X, "ents"):
        return "document"
    if isinstance(X, (str, bytes, Mapping)) or not hasattr(type(X), "__iter__"):
        return None
    if root == "nltk":
        return "tagged"
    if not isinstance(X, Sequence):
        return None  # taking the first element would consume an iterator
    first = next(iter(X), None)
    if is_row(first):
        return "rows"
    return {"spacy": "documents", "conllu": "conllu", "nltk": "tagged"}.get(root_of(first))


def corpus_of(
    X: Any,
    *,
    sentence: str | None = None,
    token: str | None = None,
    label: str | None = None,
    columns: Sequence[str] = (),
    label_names: Sequence[str] | None = None,
) -> Corpus:
    """Convert an object of another library to a corpus. The library is not imported.

    Args:
        X: object. A pandas DataFrame with one row per token, a Hugging Face dataset with one row per sentence, one
            or more spaCy documents, NLTK's tagged or chunked sentences (lists of tuples of a word and a label), or
            the sentences of conllu, or a list of dicts with one list per column, such as
            ``{"tokens": [...], "ner_tags": [...]}``.
        sentence: str or None, default=None. For a DataFrame: column or index level with the sentence of each row.
            None means the only column with a usual name such as ``sentence_id``.
        token: str or None, default=None. For a DataFrame or a dataset: column of the tokens. None means the only
            column with a usual name such as ``word``.
        label: str or None, default=None. Column of the labels. None means the only column with a usual name such as
            ``ner_tags``. For spaCy documents: a token attribute such as ``tag_``. None means entities.
        columns: sequence of str, default=(). Further columns for features. For spaCy documents: token attributes
            such as ``pos_``. For tuples: names of the values between word and label.
        label_names: sequence of str or None, default=None. For a list of dicts: names of labels that are numbers,
            beginning with the name of 0.

    Returns:
        A `Corpus`. It has labels only if the object has them.

    Raises:
        CorpusError: The object has another type, a column is missing or ambiguous, or a value is missing.

    >>> corpus_of([[("Paris", "NNP", "B-LOC"), ("sleeps", "VBZ", "O")]]).columns
    ('word', 'pos', 'label')
    """
    kind = kind_of(X)
    if kind == "frame":
        return _from_frame(X, sentence, token, label, columns)
    if sentence is not None:
        raise CorpusError(
            f"sentence={sentence!r} names a column of a DataFrame, but X is {type(X).__name__}. "
            "Drop the argument."
        )
    if kind == "dataset":
        return _from_dataset(X, token, label, columns)
    if kind == "rows":
        return _from_rows(X, token, label, columns, label_names)
    if label_names is not None:
        raise CorpusError(
            f"label_names are the names of numbers in a list of dicts, but X is {type(X).__name__}. Drop the argument."
        )
    if token is not None:
        raise CorpusError(
            f"token={token!r} names a column of a table, but X is {type(X).__name__}. Drop the argument."
        )
    if kind in ("document", "documents"):
        return Corpus(list(_from_documents([X] if kind == "document" else X, label, columns)))
    if kind == "conllu":
        text = io.StringIO("".join(tokens.serialize() for tokens in X))
        label = label or "upos"
        names = dict.fromkeys(("word", *columns, label))
        return read(text, "conllu", columns=tuple(names), label=label)
    if kind == "tagged" or is_tagged(X):
        return Corpus(list(_from_tagged(X, columns, label or "label")))
    raise CorpusError(
        f"cannot convert {type(X).__name__} to a corpus. Pass a pandas DataFrame, a Hugging Face dataset, spaCy "
        "documents, NLTK's tagged sentences (lists of pairs of a word and a label), conllu's sentences or a list of "
        "dicts with tokens and labels. Lists of tokens need no conversion for fit and predict."
    )


# --- tables -------------------------------------------------------------------------------------------------


def _column(name: str | None, known: Sequence[Any], common: Sequence[str], role: str) -> Any:
    """Return the given column, or else the only column with one of the `common` names, or None."""
    if name is not None:
        if name not in known:
            names = list(map(str, known))
            raise CorpusError(
                f"no column is named {name!r}{meant(name, names)}. The columns are {', '.join(names)}."
            )
        return name
    found = [column for column in known if str(column).casefold() in common]
    if len(found) > 1:
        raise CorpusError(
            f"several columns may contain the {role}: {', '.join(map(str, found))}. Name one: "
            f"corpus_of(X, {role}=...)"
        )
    return found[0] if found else None


def _required(found: Any, known: Sequence[Any], role: str) -> Any:
    if found is None:
        raise CorpusError(
            f"the column of the {role} cannot be determined. The columns are {', '.join(map(str, known))}. Name one: "
            f"corpus_of(X, {role}=...)"
        )
    return found


def _missing(value: Any) -> bool:
    """Return whether a cell is empty: None, NaN, or the NA and NaT of pandas."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def frame_rows(frame: Any, sentence: str | None = None) -> list[list[int]]:
    """Return the row positions of each sentence of a frame. Sentences are in the order of their first rows.

    A row with an empty cell belongs to the sentence of the row above, as in tables that name each sentence once.
    """
    index = [name for name in getattr(frame.index, "names", ()) if name is not None]
    known = [*frame.columns, *(name for name in index if name not in frame.columns)]
    name = _required(_column(sentence, known, SENTENCES, "sentence"), known, "sentence")
    values = (frame[name] if name in frame.columns else frame.index.get_level_values(name)).tolist()
    rows: dict[Any, list[int]] = {}
    current: Any = None
    for at, value in enumerate(values):
        if not _missing(value):
            current = value
        elif at == 0:
            raise CorpusError(f"column {name!r}: the first row does not name a sentence. Fill it.")
        rows.setdefault(current, []).append(at)
    return list(rows.values())


def _cells(frame: Any, name: Any, role: str) -> list[Any]:
    """Return the cells of a column, none of them empty. Values other than labels are converted to strings."""
    values = frame[name].tolist()
    at = next((i for i, value in enumerate(values) if _missing(value)), None)
    if at is not None:
        raise CorpusError(
            f"row {at} (index {frame.index[at]}): the {role} in column {name!r} is missing. Fill it, or read the file "
            "with keep_default_na=False if words such as NA and null are meant."
        )
    return values if role == "label" else [value if type(value) is str else str(value) for value in values]


def _from_frame(
    frame: Any, sentence: str | None, token: str | None, label: str | None, columns: Sequence[str]
) -> Corpus:
    """Convert a frame with one row per token."""
    known = list(frame.columns)
    rows = frame_rows(frame, sentence)
    word = _required(_column(token, known, TOKENS, "token"), known, "token")
    target = _column(label, known, LABELS, "label")
    if target == word:
        raise CorpusError(
            f"column {word!r} cannot contain both the tokens and the labels. Name another: label=..."
        )
    cells = {word: _cells(frame, word, "token")}
    for name in columns:
        chosen = _column(name, known, (), "token")
        cells[chosen] = _cells(frame, chosen, "value")
    if target is not None and not (label is None and all(map(_missing, frame[target].tolist()))):
        cells.pop(target, None)
        cells[target] = _cells(frame, target, "label")
    else:
        target = None
    names = {name: str(name) for name in cells}
    last = None if target is None else str(target)
    made = [Sentence({names[c]: [x[i] for i in places] for c, x in cells.items()}, last) for places in rows]
    return Corpus(made, columns=tuple(names.values()), label=last)


def to_series(
    frame: Any, labels: Sequence[Sequence[Any]], *, sentence: str | None = None, name: str = "predicted"
) -> Any:
    """Arrange predicted labels as a pandas Series with one label per row of a DataFrame.

    Args:
        frame: DataFrame. The argument of `predict`, with one row per token.
        labels: sequence of sequences of labels. The return value of `predict`: one list per sentence, in the order
            of the first rows of the sentences.
        sentence: str or None, default=None. Column of sentences, as in `corpus_of`.
        name: str, default="predicted". Name of the Series.

    Returns:
        A Series with the index of the DataFrame, ready to be assigned to a new column.

    Raises:
        CorpusError: The number of labels differs from the number of rows, or no column identifies the sentences.
    """
    rows = frame_rows(frame, sentence)
    if len(rows) != len(labels):
        raise CorpusError(
            f"{len(labels)} label sequences for {len(rows)} sentences. Pass the result of predict for this frame."
        )
    out: list[Any] = [None] * len(frame)
    for s, (places, found) in enumerate(zip(rows, labels)):
        if len(places) != len(found):
            raise CorpusError(
                f"sentence {s} has {len(places)} rows, but {len(found)} labels. Give one label per row."
            )
        for at, value in zip(places, found):
            out[at] = value
    import pandas

    return pandas.Series(out, index=frame.index, name=name)


def _names(feature: Any) -> list[str] | None:
    """Return the label names of a dataset's column of integer lists, or None."""
    names = getattr(getattr(feature, "feature", None), "names", None)
    return None if names is None else list(names)


def _from_dataset(X: Any, token: str | None, label: str | None, columns: Sequence[str]) -> Corpus:
    """Convert a Hugging Face dataset with one row per sentence.

    Labels are integers with names (ClassLabel), strings or plain integers.
    """
    features = X.features or {}
    known = list(features) or list(next(iter(X), {}))
    word = _required(_column(token, known, TOKENS, "token"), known, "token")
    named = [name for name in known if _names(features.get(name)) is not None]
    target = _column(label, known, LABELS, "label")
    if target is None and len(named) == 1:
        target = named[0]
    wanted = list(dict.fromkeys([word, *columns, *([] if target is None else [target])]))
    for name in columns:
        _column(name, known, (), "token")
    read = {name: _names(features.get(name)) for name in wanted}
    made = []
    for s, row in enumerate(X):
        fields = {name: _values(row[name], names, s, name) for name, names in read.items()}
        made.append(Sentence(fields, target))
    return Corpus(made, columns=tuple(wanted), label=target)


def _values(values: Any, names: list[str] | None, s: int, column: str) -> list[Any]:
    """Return the values of one column in one row, with integers replaced by their names if they have names."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise CorpusError(
            f"sentence {s}, column {column!r}: {type(values).__name__}, expected a list with one value per token. "
            "Split texts into tokens first."
        )
    found = list(values)
    if names is None:
        return found
    for t, number in enumerate(found):
        if type(number) is not str and not 0 <= number < len(names):
            raise CorpusError(
                f"sentence {s}, token {t}, column {column!r}: {number!r} is not the number of a label. The "
                f"{len(names)} labels are numbered from 0. Remove tokens that are marked as ignored."
            )
    return [number if type(number) is str else names[number] for number in found]


# --- documents ----------------------------------------------------------------------------------------------


def sentences_of(document: Any) -> list[Any]:
    """Return the sentences of a spaCy document, or the whole document if it has no sentence boundaries."""
    return list(document.sents) if document.has_annotation("SENT_START") else [document]


def _entity(token: Any) -> str:
    return f"{token.ent_iob_}-{token.ent_type_}" if token.ent_iob_ in ("B", "I") else "O"


def _from_documents(
    documents: Iterable[Any], label: str | None, columns: Sequence[str]
) -> Iterator[Sentence]:
    """Convert spaCy documents. Entities are the default labels if all documents have entity annotations."""
    documents = list(documents)
    entities = label is None and all(document.has_annotation("ENT_IOB") for document in documents)
    read: dict[str, Callable[[Any], str]] = {"word": lambda token: str(token.text)}
    for name in (*columns, *([label] if label else [])):
        read[name.rstrip("_")] = lambda token, name=name: str(getattr(token, name))  # type: ignore[misc]
    if entities:
        read["label"] = _entity
    target = "label" if entities else label.rstrip("_") if label else None
    for document in documents:
        for i, tokens in enumerate(sentences_of(document)):
            fields = {name: [of(token) for token in tokens] for name, of in read.items()}
            yield Sentence(fields, target, doc="" if i == 0 else None)


# --- rows ---------------------------------------------------------------------------------------------------


def is_row(value: Any) -> bool:
    """Return whether a value is a mapping with a list of tokens, and a list of labels or no other list.

    >>> is_row({"tokens": ["a"], "ner_tags": [0]}), is_row({"word": ["a"], "pos": ["DT"]}), is_row({"a": 1.0})
    (True, False, False)
    """
    if not isinstance(value, Mapping):
        return False
    tokens = next((value[key] for key in ("tokens", "words") if key in value), None)
    others = [str(key).casefold() for key, v in value.items() if isinstance(v, list) and v is not tokens]
    return isinstance(tokens, list) and (not others or any(key in LABELS for key in others))


def _from_rows(
    X: Iterable[Any],
    token: str | None,
    label: str | None,
    columns: Sequence[str],
    label_names: Sequence[str] | None,
) -> Corpus:
    """Convert a list of dicts with one row per sentence."""
    if token is not None:
        X = [{**{k: v for k, v in row.items() if k != token}, "tokens": row.get(token)} for row in X]
    rows = RowReader(
        "X", None, own_names(None, label or "label")[1], label_names, call="tagwise.corpus.corpus_of(X, "
    )
    found = []
    for i, row in enumerate(X):
        if not isinstance(row, Mapping):
            raise CorpusError(
                f"row {i} is {type(row).__name__}, expected a dict with tokens and labels as in row 0"
            )
        sentence = rows.sentence(i + 1, row)
        kept = {"word", *columns, *([] if sentence.label is None else [sentence.label])}
        missing = next((name for name in columns if name not in sentence.fields), None)
        if missing is not None:
            raise CorpusError(
                f"no column is named {missing!r}{meant(missing, sentence.fields)}. The columns are "
                f"{', '.join(sentence.fields)}."
            )
        fields = {name: values for name, values in sentence.fields.items() if name in kept}
        found.append(Sentence(fields, sentence.label, doc=sentence.doc, meta=sentence.meta))
    return Corpus(found)


# --- lists --------------------------------------------------------------------------------------------------


def is_tagged(X: Any) -> bool:
    """Return whether X is a list of lists of tuples of strings, such as (word, label)."""
    if not isinstance(X, (list, tuple)):
        return False
    first = next((sentence[0] for sentence in X if isinstance(sentence, (list, tuple)) and sentence), None)
    return isinstance(first, tuple) and len(first) > 1 and all(isinstance(part, str) for part in first)


def _leaves(tree: Any) -> Iterator[tuple[str, ...]]:
    """Yield the tokens of a chunked sentence of NLTK with their labels. Chunks are the subtrees of the root."""
    for child in tree:
        if hasattr(child, "leaves"):
            for i, leaf in enumerate(child.leaves()):
                yield (*_texts(leaf), f"{'I' if i else 'B'}-{child.label()}")
        else:
            yield (*_texts(child), "O")


def _texts(leaf: Any) -> tuple[str, ...]:
    return (leaf,) if isinstance(leaf, str) else tuple(leaf)


def _from_tagged(X: Iterable[Any], columns: Sequence[str], label: str) -> Iterator[Sentence]:
    """Convert tuples of a word, further values named by `columns`, and a label."""
    read = [list(_leaves(s)) if hasattr(s, "leaves") else list(s) for s in X]
    width = next((len(rows[0]) for rows in read if rows and isinstance(rows[0], tuple)), 2)
    common = ("pos", *(f"column{i}" for i in range(2, width)))[: max(0, width - 2)]
    names = ("word", *(columns or common), label)
    if len(names) != width and width > 1:
        raise CorpusError(
            f"columns={list(columns)!r}: a token has {width} values, so name the {width - 2} between the word and the "
            "label"
        )
    for s, rows in enumerate(read):
        for t, row in enumerate(rows):
            if not isinstance(row, tuple) or len(row) != len(names):
                raise CorpusError(
                    f"sentence {s}, token {t}: {row!r:.60}, expected a tuple of {len(names)}: {', '.join(names)}"
                )
        yield Sentence({name: [row[i] for row in rows] for i, name in enumerate(names)}, label)
