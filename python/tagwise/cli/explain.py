"""``tagwise explain``: show which features decide the labels of a sentence."""

from __future__ import annotations

from typing import Any

import rich_click as click

from tagwise.base.exceptions import ParameterError
from tagwise.base.parameters import meant
from tagwise.cli.app import debug_option, show
from tagwise.cli.files import model_columns
from tagwise.cli.help import OUTPUT, Command
from tagwise.cli.models import function_options, load_model
from tagwise.cli.options import COUNT, option
from tagwise.corpus import pretokenized
from tagwise.corpus.sentence import Sentence
from tagwise.corpus.text.tokenizer import Tokenizer


def sentence_of(tagger: Any, text: str) -> Any:
    """Return the tokens of a text, as the model reads them.

    Text whose punctuation stands alone, and text for a model with several columns, is split at spaces. Other text goes
    through the tokenizer.
    """
    names, label = model_columns(tagger)
    columns = [name for name in tagger.model_.recipe.columns if name != label] or ["word"]
    split = len(columns) > 1 or pretokenized.detect(text, [text])
    words = text.split() if split else Tokenizer()(text).tokens
    if not words:
        raise click.BadParameter("the text is empty. Give a sentence", param_hint="TEXT")
    if tagger.model_.recipe.kind == "attributes":
        raise ParameterError(
            "this model was trained on lists of attributes, but a text has tokens. Use it from Python: "
            "tagwise.load(...).explain(sentence)"
        )
    if len(columns) == 1:
        return Sentence({columns[0]: words}) if names else words
    cells = [word.rsplit("/", len(columns) - 1) for word in words]
    short = next((word for word, found in zip(words, cells) if len(found) != len(columns)), None)
    if short is not None:
        raise click.BadParameter(
            f"{short!r}: the model reads the columns {', '.join(columns)}. Write each token as {'/'.join(columns)}",
            param_hint="TEXT",
        )
    return Sentence(dict(zip(columns, map(list, zip(*cells)))))


@click.command(cls=Command)
@click.argument("model", metavar="MODEL")
@click.argument("text", metavar="TEXT")
@option(
    "--token N",
    "Explain only the token at this position, counted from 1.",
    "Question",
    type=COUNT,
    show_default="every token",
)
@option(
    "--against LABEL",
    "With --token, compare the predicted label with this one.",
    "Question",
    show_default="the second best",
)
@option("--top N", "Number of features to show per token.", OUTPUT, type=COUNT, default=5)
@option("--json", "Print all features as JSON.", OUTPUT, name="as_json")
@function_options
@debug_option
def explain(
    model: str,
    text: str,
    token: int | None,
    against: str | None,
    top: int,
    as_json: bool,
    functions: dict[str, Any],
    trust: bool,
) -> None:
    """Show which features decide the labels of a sentence.

    TEXT is a sentence. Each predicted label is compared with the second best one. The
    contributions of the features add up to the difference between the scores of the two label sequences, which for a
    CRF is their log-odds.

    \b
    Examples:
      tagwise explain model.tagwise "Peter flew to London."
      tagwise explain en-ner-demo "Peter flew to London." \\
          --token 4 --against O
    """
    tagger = load_model(model, functions, trust)
    known = dict(zip(tagger.model_.labels, tagger.classes_))  # by their texts
    if against is not None and against not in known:
        raise click.BadParameter(
            f"the model has no label {against!r}{meant(against, known)}. It has: {' '.join(known)}",
            param_hint="--against",
        )
    if against is not None and token is None:
        raise click.UsageError("--against requires --token. Add the position of the token")
    sentence = sentence_of(tagger, text)
    size = len(sentence)
    if token is not None and token > size:
        raise click.BadParameter(
            f"{token}: the text has {size} tokens. Give 1 to {size}", param_hint="--token"
        )
    place = None if token is None else token - 1
    show(tagger.explain(sentence, token=place, against=known.get(against), top=top), as_json=as_json)
