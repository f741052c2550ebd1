"""Recipes, which turn sentences into attributes. A recipe may learn from training sentences. Model files contain it.

`features.resolve` creates a recipe from a user's specification. Templates (`docs/reference/templates.md`) run natively
over whole corpora. A function is called once per sentence.

>>> recipe = Recipe.of_template("word[-1..0] & word[0].suffix(2)", ["word"])
>>> recipe.render(["The", "dog"])[1]
['word[-1]=The & word[0].suffix(2)=og', 'word[0]=dog & word[0].suffix(2)=og']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tagwise._core import (
    Dataset,
    Template,
    Vocabulary,
    WordSets,
    encode_attributes,
    encode_tokens,
    encode_words,
)
from tagwise.base.domains import is_text
from tagwise.base.exceptions import CorpusError, ParameterError, TemplateError
from tagwise.base.imports import NO_FUNCTIONS, Functions, alias, path_of, require_function
from tagwise.base.parameters import cores
from tagwise.features.compiling import (
    compiled_template,
    derived_names,
    of_sentences,
    part_name,
    with_suggestion,
)
from tagwise.features.derived_columns import DerivedColumn, Features, derived_column_of
from tagwise.features.inputs import Inputs, fields_of
from tagwise.features.patterns import Patterns
from tagwise.features.sets import DEFAULT_COLUMN, is_crfpp
from tagwise.features.union import united
from tagwise.features.vectors import VectorSpec

Function = Callable[[Any], Sequence[Any]]
#: Description in messages.
FUNCTION = "the feature function"


class Tokens(list[Any]):
    """List of tokens with the attribute `tokens` of a Sentence, so that feature functions accept both."""

    @property
    def tokens(self) -> list[Any]:
        """The list itself."""
        return self


def file_columns(recipe: Recipe, X: Any) -> dict[str, Any]:
    """Return the training columns and the label column, for reading files like X. Empty for ready-made attributes."""
    if recipe.kind == "attributes":
        return {}
    inputs = Inputs.of(X)
    if inputs.label is not None and not is_text(inputs.label):
        raise CorpusError(f"the name of the label column, {inputs.label!a}, is not valid Unicode. Rename it.")
    if inputs.all_columns is not None and inputs.label is not None:
        return {"columns": list(inputs.all_columns), "label": inputs.label}
    names = inputs.columns
    label = "label" if "label" not in names else "gold"
    return {"columns": [*names, label], "label": label}


@dataclass(frozen=True)
class Recipe:
    """Conversion of sentences to attributes: a template over columns, a function, a sum, or ready-made attributes.

    Attributes:
        kind: "template", "function", "sum", "attributes" or "patterns" (of another program).
        name: Specification of the user. For patterns, the dialect.
        text: Template or patterns, without the templates of the derived columns.
        columns: Columns of the corpus that the recipe reads.
        token_column: Column that a plain list of tokens represents.
        function: Feature function, or None.
        lists: Frequent texts that the template learned from training sentences. None before learning, and for a
            template without such lists.
        path: Import path of the function in model files, if it differs from the function's own path.
        derived_columns: Gazetteers and regular expressions. Their templates follow the text.
        parts: Parts of a sum.
        dense: Description of the token vectors, or None.
    """

    kind: Literal["template", "function", "sum", "attributes", "patterns"]
    name: str
    text: str = ""
    columns: tuple[str, ...] = ()
    token_column: str = DEFAULT_COLUMN
    function: Function | None = field(default=None, compare=False)
    _compiled: Template | None = field(default=None, compare=False, repr=False)
    lists: tuple[tuple[str, ...], ...] | None = field(default=None, repr=False)
    path: str = field(default="", compare=False, repr=False)
    derived_columns: tuple[DerivedColumn, ...] = ()
    parts: tuple[Recipe, ...] = ()
    dense: VectorSpec | None = None

    @staticmethod
    def of_template(
        text: str, columns: Sequence[str], name: str = "", derived: Sequence[DerivedColumn] = ()
    ) -> Recipe:
        """Return the recipe of a template over columns, the first of which is the token, and derived columns."""
        derived = tuple(dict.fromkeys(derived))
        derived_names(columns, derived)
        try:
            compiled = compiled_template(text, columns, columns[0], derived)
        except TemplateError as error:
            raise TemplateError(with_suggestion(str(error), columns)) from None
        needed = {*compiled.used_columns, *([columns[0]] if derived or not compiled.used_columns else [])}
        used = [column for column in columns if column in needed]
        if used != list(columns):
            compiled = compiled_template(text, used, columns[0], derived)
        return Recipe(
            "template", name or text, text, tuple(used), columns[0], None, compiled, derived_columns=derived
        )

    @staticmethod
    def of_parts(parts: Sequence[Recipe]) -> Recipe:
        """Return the sum of recipes that cannot be merged into one template."""
        columns = tuple(dict.fromkeys(column for part in parts for column in part.columns))
        name = " + ".join(part_name(part.name) for part in parts)
        return Recipe("sum", name, "", columns, parts[0].token_column, parts=tuple(parts))

    @staticmethod
    def of_patterns(dialect: str, text: str, columns: Sequence[str]) -> Recipe:
        """Return the recipe of another program's patterns (`features.patterns`). The text may be empty."""
        found = Patterns.of(dialect, text)
        if found.n_columns > len(columns):
            raise TemplateError(
                f"the patterns use column {found.n_columns - 1}, counted from 0, but there are only {len(columns)} "
                f"columns ({', '.join(columns)}). Name all columns of the file, or change the patterns."
            )
        used = tuple(columns[: max(1, found.n_columns)]) if found.lines else ()
        return Recipe("patterns", dialect, found.text, used, columns[0])

    @property
    def patterns(self) -> Patterns:
        """Parsed patterns of another program."""
        return Patterns.of(self.name, self.text)

    @property
    def template(self) -> Template:
        """Compiled template. Raises a TemplateError if the recipe is not a template."""
        if self._compiled is None:
            raise TemplateError(f"features={self.name!r} are not a template. Use a template or a named set.")
        return self._compiled

    @property
    def has_edges(self) -> bool:
        """Whether the recipe makes edge attributes."""
        if self.kind == "sum":
            return any(part.has_edges for part in self.parts)
        if self.kind == "patterns":
            return self.patterns.has_edges
        return self._compiled is not None and self._compiled.has_edges

    @property
    def functions(self) -> tuple[Function, ...]:
        """Feature functions of the recipe."""
        if self.kind == "sum":
            return tuple(function for part in self.parts for function in part.functions)
        return () if self.function is None else (self.function,)

    @property
    def named_functions(self) -> tuple[str, ...]:
        """Import paths of the feature functions, as written to model files."""
        if self.kind == "sum":
            return tuple(path for part in self.parts for path in part.named_functions)
        return (self.to_json()["function"],) if self.kind == "function" else ()

    @property
    def spec(self) -> Any:
        """Specification that resolves to this recipe, including its data. A string if that is sufficient."""
        if self.kind == "sum":
            return Features(*(part.spec for part in self.parts))
        if self.kind == "function":
            return self.function
        if self.kind == "patterns":
            return self
        if is_crfpp(self.text):
            return self.text
        return (
            Features(*([self.text] if self.text.strip() else []), *self.derived_columns)
            if self.derived_columns
            else self.name
        )

    def readable(self, attribute: str) -> str:
        """Return the text of an attribute for explanations, with values of derived columns in words."""
        for column in (*self.derived_columns, *(c for part in self.parts for c in part.derived_columns)):
            attribute = column.readable(attribute)
        return attribute

    def is_equivalent_to(self, other: Recipe) -> bool:
        """Return whether two recipes make the same attributes, apart from learned lists."""
        return all(
            getattr(self, name) == getattr(other, name)
            for name in ("kind", "text", "columns", "token_column", "function", "derived_columns")
        ) and (
            len(self.parts) == len(other.parts)
            and all(ours.is_equivalent_to(theirs) for ours, theirs in zip(self.parts, other.parts))
        )

    def learned(self, X: Any) -> Recipe:
        """Return the recipe with lists of frequent words (`is_rare`) and vector sizes learned from training sentences.

        Lists and sizes that were learned before do not change.

        >>> recipe = Recipe.of_template("word[0].is_rare(2)?", ["word"]).learned([["a", "b", "a"]])
        >>> recipe.lists, recipe.render(["a", "c"])
        ((('a',),), [[], ['word[0].is_rare(2)?']])
        """
        inputs = Inputs.of(X)
        recipe = self
        if self.dense is None and inputs.vectors is not None:
            recipe = replace(self, dense=VectorSpec.learned(inputs.vectors))
        if self.kind == "sum":
            bare = Inputs(inputs.sentences, inputs.source)  # vectors belong to the sum, not to its parts
            return replace(recipe, parts=tuple(part.learned(bare) for part in self.parts))
        if self._compiled is None or not self._compiled.is_open:
            return recipe
        compiled = self._compiled.learn(self._columns(inputs))
        return replace(recipe, _compiled=compiled, lists=tuple(map(tuple, compiled.lists)))

    def with_vectors(self, data: Dataset, X: Any, vocab: Vocabulary) -> Dataset:
        """Add the vectors of X, if any, to the result of `encode`."""
        vectors = Inputs.of(X).vectors
        if self.dense is None and vectors is None:
            return data
        if vectors is None and self.dense is not None and len(data):
            raise CorpusError(
                f"the model was trained on vectors of {self.dense.size} numbers per token, X has none. Pass arrays, "
                "or tagwise.Vectors.of(X, arrays)."
            )
        if self.dense is None:
            raise CorpusError("X has vectors, but the model was trained without. Pass only the sentences.")
        self.dense.check(vectors or ())
        return self.dense.attached(data, vectors or (), vocab)

    def encode(
        self,
        X: Any,
        vocab: Vocabulary,
        n_jobs: int | None = 1,
        words: WordSets | None = None,
    ) -> Dataset:
        """Encode sentences as a dataset. New attributes are added to a growing vocabulary and dropped by a locked one.

        Args:
            X: Sentences of any kind.
            vocab: Vocabulary to use and to extend.
            n_jobs: Number of threads, None for one per core. The result does not depend on it.
            words: Word sets of a later call of `Inputs.numbers`. Word ids are computed during encoding if possible.
        """
        inputs = Inputs.of(X)
        jobs = cores() if n_jobs is None else max(1, n_jobs)
        if self.kind == "sum":
            own = [Vocabulary() for _ in self.parts]
            made = [(part.encode(inputs, each, jobs), each) for part, each in zip(self.parts, own)]
            return united(made, vocab, jobs)
        if self.kind == "template":
            column = self._word_column(inputs)
            bare = (
                not of_sentences(self.derived_columns)
                and inputs.kind == "tokens"
                and self.columns == (self.token_column,)
            )
            columns = inputs.sentences if bare else self._columns(inputs)
            if words is None or column is None:
                return encode_tokens(self.template, vocab, columns, jobs, bare=bare)
            data, numbers = encode_words(self.template, vocab, columns, words, column, jobs, bare=bare)
            inputs.word_ids.append((words, numbers))
            return data
        if self.kind == "function":
            return encode_attributes(vocab, self._call(inputs), n_jobs=jobs)
        if self.kind == "patterns":
            node, edge = self._patterned(inputs)
            return encode_attributes(vocab, node, edge if self.has_edges else None, n_jobs=jobs)
        if inputs.kind in ("tokens", "columns"):
            raise CorpusError(
                "X contains tokens, but the model was trained on ready-made attributes (one list or dict per token). "
                "Compute the attributes as in training."
            )
        return encode_attributes(vocab, inputs.sentences, n_jobs=jobs)

    def _patterned(self, inputs: Inputs) -> tuple[list[Any], list[Any]]:
        """Return the node and edge attributes of every sentence by the patterns of another program."""
        patterns = self.patterns
        if patterns.lines:
            found = self._columns(inputs)
            return [patterns.node(columns) for columns in found], [
                patterns.edge(columns) for columns in found
            ]
        if inputs.kind in ("tokens", "columns"):
            raise CorpusError(
                "X contains tokens, but the model has no patterns. Give the list of observations for each token."
            )
        node, edge = [], []
        for sentence in inputs.sentences:
            rows = [patterns.split_observations(token, t) for t, token in enumerate(sentence)]
            node.append([row[0] for row in rows])
            edge.append([row[1] for row in rows])
        return node, edge

    def render(self, sentence: Any) -> list[list[str]]:
        """Return the attribute texts of each token of a sentence, for inspection.

        >>> Recipe.of_template("word[0]", ["word"]).render(["a", "b"])
        [['word[0]=a'], ['word[0]=b']]
        """
        if self.kind == "template":
            return self.template.render(self._columns(Inputs.of([sentence]))[0])
        if self.kind == "sum":
            rendered = zip(*(part.render(sentence) for part in self.parts))
            return [list(dict.fromkeys(text for texts in token for text in texts)) for token in rendered]
        vocab, inputs = Vocabulary(), Inputs.of([sentence])
        data = self.learned(inputs).with_vectors(self.encode(inputs, vocab), inputs, vocab)
        ptr, ids, _ = data.node()
        texts = vocab.texts()
        return [[texts[i] for i in ids[ptr[t] : ptr[t + 1]]] for t in range(data.n_tokens)]

    def _columns(self, inputs: Inputs) -> list[tuple[Sequence[str], ...]]:
        """Return the columns of every sentence in the order of the template, including derived columns."""
        found, derived = self._corpus_columns(inputs), of_sentences(self.derived_columns)
        if not derived:
            return found
        token = self.columns.index(self.token_column)
        return [(*columns, *(column.column(columns[token]) for column in derived)) for columns in found]

    def _word_column(self, inputs: Inputs) -> int | None:
        """Return the index of the template column with the words of `Inputs.words`, or None if it is not used."""
        name = self.token_column if inputs.kind == "tokens" else inputs.word_column
        return self.columns.index(name) if name in self.columns else None

    def _corpus_columns(self, inputs: Inputs) -> list[tuple[Sequence[str], ...]]:
        """Return the columns of every sentence, without derived columns."""
        if inputs.kind == "attributes":
            raise CorpusError(
                f"X contains attributes (one list or dict per token), but features {self.name!r} need tokens. "
                "Pass lists of strings or a Corpus."
            )
        if inputs.kind != "columns":
            if self.columns != (self.token_column,):
                raise CorpusError(
                    f"features {self.name!r} need {', '.join(self.columns)}, but X contains only tokens. "
                    "Pass a Corpus, or mappings of column -> values. To label text, train on the columns of tokens "
                    "and labels alone."
                )
            return [(sentence,) for sentence in inputs.sentences]
        sentences = []
        for s, sentence in enumerate(inputs.sentences):
            fields = fields_of(sentence)
            if fields is None:
                raise CorpusError(
                    f"sentence {s} has no columns, unlike the sentences before. Do not mix kinds of sentences."
                ).of_sentence(s)
            try:
                sentences.append(tuple(fields[c] for c in self.columns))
            except KeyError as missing:
                raise CorpusError(
                    f"sentence {s} has no column {missing.args[0]!r}, which the features need. "
                    f"Its columns are {', '.join(map(str, fields))}. Add that column. To label text that has none, "
                    "train on the columns of tokens and labels alone, such as columns=('word', 'label')."
                ).of_sentence(s) from None
        return sentences

    def _call(self, inputs: Inputs) -> list[Sequence[Any]]:
        """Return the attributes of every sentence from the feature function, one entry per token."""
        function = require_function(self.function)
        if function is None:
            raise ParameterError(
                f"the feature function {self.name!r} is not available. Pass the function itself as features."
            )
        rows = []
        for s, sentence in enumerate(inputs.sentences):
            row = function(Tokens(sentence) if isinstance(sentence, (list, tuple)) else sentence)
            if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
                raise CorpusError(
                    f"sentence {s}: {self.name} returned {type(row).__name__}. A feature function takes a sentence and "
                    "returns one list or dict of attributes per token."
                ).of_sentence(s)
            if not isinstance(row, Sequence):
                row = list(row)
            fields = fields_of(sentence)
            length = len(next(iter(fields.values()), ())) if fields is not None else len(sentence)
            if len(row) != length:
                raise CorpusError(
                    f"sentence {s} has {length} tokens, but {self.name} returned attributes for {len(row)}. "
                    "A feature function takes a sentence and returns one list or dict of attributes per token."
                ).of_sentence(s)
            rows.append(row)
        return rows

    def to_json(self) -> dict[str, Any]:
        """Return the JSON for model files. A function is represented by its import path."""
        own = self._own_json()
        return own if self.dense is None else {**own, "vectors": self.dense.to_json()}

    def _own_json(self) -> dict[str, Any]:
        if self.kind == "template":
            data: dict[str, Any] = {
                "kind": "template",
                "name": self.name,
                "template": self.text,
                "columns": list(self.columns),
                "token_column": self.token_column,
            }
            if self.lists is not None:
                data["lists"] = [list(texts) for texts in self.lists]
            if self.derived_columns:
                data["derived_columns"] = [derived.to_json() for derived in self.derived_columns]
            return data
        if self.kind == "sum":
            named: dict[str, Any] = {}
            for path, function in zip(self.named_functions, self.functions):
                if named.setdefault(path, function) != function:
                    raise ParameterError(
                        f"two feature functions are named {path.removeprefix(':')!r}, which a model file cannot tell "
                        "apart. Rename one of them."
                    )
            return {"kind": "sum", "parts": [part.to_json() for part in self.parts]}
        if self.kind == "patterns":
            return {
                "kind": "patterns",
                "dialect": self.name,
                "patterns": self.text,
                "columns": list(self.columns),
                "token_column": self.token_column,
            }
        if self.kind == "function":
            return {
                "kind": "function",
                "function": self.path or path_of(self.function, f"the feature function {self.name}"),
            }
        return {"kind": "attributes"}

    @staticmethod
    def from_json(data: Mapping[str, Any], functions: Functions = NO_FUNCTIONS) -> Recipe:
        """Create a recipe from the result of `to_json`. Functions are looked up in `functions`."""
        if "vectors" in data:
            own = {name: value for name, value in data.items() if name != "vectors"}
            return replace(Recipe.from_json(own, functions), dense=VectorSpec(**data["vectors"]))
        kind = data.get("kind")
        if kind == "template":
            text, name, columns = data["template"], data["name"], tuple(data["columns"])
            lists = data.get("lists")
            derived = tuple(map(derived_column_of, data.get("derived_columns", ())))
            if derived and data["token_column"] not in columns:
                raise TemplateError(
                    f"derived columns need the column {data['token_column']!a}, which is not one of the columns "
                    f"{', '.join(map(ascii, columns))}"
                )
            compiled = compiled_template(text, columns, data["token_column"], derived, lists)
            learned = None if lists is None else tuple(map(tuple, lists))
            return Recipe(
                "template",
                name,
                text,
                columns,
                data["token_column"],
                None,
                compiled,
                learned,
                derived_columns=derived,
            )
        if kind == "sum":
            return Recipe.of_parts([Recipe.from_json(part, functions) for part in data["parts"]])
        if kind == "function":
            path = data["function"]
            function = functions.find(path, FUNCTION)
            return Recipe("function", path.removeprefix(":"), function=function, path=alias(function, path))
        if kind == "patterns":
            columns = tuple(data["columns"])
            recipe = Recipe("patterns", data["dialect"], data["patterns"], columns, data["token_column"])
            if recipe.patterns.n_columns > len(columns):
                raise ParameterError(
                    f"the patterns need {recipe.patterns.n_columns} columns, but the recipe names {len(columns)}"
                )
            return recipe
        if kind == "attributes":
            return Recipe("attributes", "attributes")
        raise ParameterError(
            f"unknown kind of features {kind!r}. The model is from a newer tagwise, or damaged."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        if self.kind == "function":
            more = (self.function, None, None, self.path, (), (), self.dense)
            return (Recipe, (self.kind, self.name, "", (), self.token_column, *more))
        if self.kind == "sum":
            of_sum = (None, None, None, "", (), self.parts, self.dense)
            return (Recipe, (self.kind, self.name, "", self.columns, self.token_column, *of_sum))
        return (Recipe.from_json, (self.to_json(),))
