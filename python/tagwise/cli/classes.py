"""``tagwise classes``: learn classes of words from raw text."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import rich_click as click
from rich.console import Console
from rich.filesize import decimal

from tagwise._core import normalized_words
from tagwise.base.progress import TrainingProgress
from tagwise.base.terminal import pair_table, visible
from tagwise.cli.app import debug_option, say
from tagwise.cli.files import (
    PARTS,
    bundled_corpus,
    check_output,
    encoding_option,
    n_jobs_option,
    read_sentences,
)
from tagwise.cli.help import DATA, LEARNER, OUTPUT, Command
from tagwise.cli.options import COUNT, option
from tagwise.corpus.bundled import list_corpora, load_corpus
from tagwise.corpus.formats import FORMATS
from tagwise.features.class_learning import matching
from tagwise.features.derived_columns import Features
from tagwise.features.word_classes import WordClasses

#: Sentences between two updates of the progress line.
EVERY = 10_000
#: Lengths of the prefixes of a path that are shown.
DEPTHS = (2, 4, 6, 8, 12)


def sentences_of(names: Sequence[str], form: str | None, show: Any = None) -> Iterator[Sequence[str]]:
    """Yield the tokens of each sentence of files, patterns of files and bundled corpora.

    `show` is called with the name of each file and the number of sentences read from it so far.
    """
    for name in names:
        for path in matching(name):
            for s, sentence in enumerate(_sentences(path, form)):
                if show is not None and s % EVERY == 0:
                    show(path, s)
                yield sentence.tokens


def _sentences(name: str, form: str | None) -> Iterator[Any]:
    """Yield the sentences of a file or of a bundled corpus, which is read whole if no part is named."""
    if not os.path.exists(name) and name in {info.name for info in list_corpora()}:
        for part in load_corpus(name):
            yield from part or ()
        return
    bundled = bundled_corpus(name, PARTS[0], None)
    yield from bundled if bundled is not None else read_sentences(name, form, None, None)[1]


def learn(
    names: Sequence[str],
    form: str | None,
    console: Console,
    *,
    quiet: bool,
    more: Sequence[Any] = (),
    **options: Any,
) -> Any:
    """Learn classes from files and from the sentences of a corpus, with a progress line."""
    with TrainingProgress(console, "classes", quiet=quiet) as progress:

        def show(path: str, sentences: int) -> None:
            progress.update(0, 1, f"reading {os.path.basename(path)}: {sentences:,} sentences")

        texts = chain((sentence.tokens for sentence in more), sentences_of(names, form, show))
        return WordClasses.learn(texts, callbacks=[progress], **options)


def show_classes(path: str, words: Sequence[str], top: int, *, as_json: bool) -> None:
    """Print the classes of words at several depths with their members and neighbours, or the upper part of the tree."""
    sets = WordClasses.load_sets(path).parts
    if as_json:
        each = [_json_of(found, words, top) for found in sets]
        out = each[0] if len(each) == 1 else {"sets": each}
        click.echo(visible(json.dumps(out, ensure_ascii=False, indent=2), keep="\n"))
        return
    console = Console()
    for found in sets:
        _show(console, found, path, words, top)


def _json_of(found: WordClasses, words: Sequence[str], top: int) -> dict[str, Any]:
    """Return the facts about a set of classes and about words."""
    facts = {"name": found.name, "classes": len(found), "words": found.n_words, **found.facts}
    return {"meta": facts, "words": {word: _word_facts(found, word, top) for word in words}}


def _show(console: Console, found: WordClasses, path: str, words: Sequence[str], top: int) -> None:
    """Print a set of classes."""
    shown = {
        "file": path,
        "name": found.name,
        "classes": f"{len(found):,} of {found.n_words:,} words",
        **found.facts,
    }
    formats = {int: ",", float: ",.1f"}
    console.print(pair_table([(name, format(x, formats.get(type(x), ""))) for name, x in shown.items()]))
    for word in words:
        about = _word_facts(found, word, top)
        if about["path"] is None:
            console.print(
                pair_table([("no class", "the word and its shape are unknown")], title=visible(word))
            )
            continue
        rows = [(prefix, ", ".join(members)) for prefix, members in about["depths"].items()]
        if not about["known"]:
            rows.insert(0, ("unknown word", "it has the class of its shape"))
        console.print(pair_table(rows, title=visible(word)))
        near = [(near, ", ".join(members)) for near, members in about["nearest"].items()]
        console.print(pair_table(near, title="nearest classes"))
    if not words:
        click.echo(visible(str(found.tree(top=top)), keep="\n"))


class Sizes(click.ParamType[Any]):
    """A number of classes, several numbers separated by commas, or `several`."""

    name = "sizes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return an int, a list of int, or the text."""
        if value == "several" or not isinstance(value, str):
            return value
        if not all(part.strip().isdigit() and int(part) >= 2 for part in value.split(",")):
            self.fail(
                f"{value!r}: expected a number from 2 on, such as 500, or 32,256, or several", param, ctx
            )
        numbers = [int(part) for part in value.split(",")]
        return numbers if len(numbers) > 1 else numbers[0]


def _word_facts(classes: WordClasses, word: str, top: int) -> dict[str, Any]:
    """Return the path of the class of a word, the members of its prefixes, and the nearest classes.

    `known` is False if the class is that of the shape of the word.
    """
    path = classes.get(word)
    if path is None:
        return {"path": None, "known": False, "depths": {}, "nearest": {}}
    lengths = sorted({n for n in DEPTHS if n < len(path)} | {len(path)}, reverse=True)
    return {
        "path": path,
        "known": normalized_words([word], classes.ignore_case)[0] in classes.members(path),
        "depths": {path[:n]: classes.members(path[:n], top) for n in lengths},
        "nearest": {near: classes.members(near, top) for near in classes.nearest(word)},
    }


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="FILES...")
@option(
    "--format FORMAT",
    f"File format: {', '.join(FORMATS)}. Labels are not read.",
    DATA,
    name="form",
    type=click.Choice(FORMATS),
    show_default="by name and content",
)
@encoding_option
@option("--ignore-case", "Treat Apple and apple as one word.", DATA)
@option("-o --output FILE", "File of classes to write.", OUTPUT, required=True)
@option("-q --quiet", "Print no progress and no summary.", OUTPUT)
@option(
    "--classes N",
    "Number of classes. Several numbers (32,256,1000), or several, learn several sets for one file. Several sets are "
    "the best features.",
    LEARNER,
    type=Sizes(),
    show_default="3 times the root of the words, at most 1000",
)
@option(
    "--min-count N",
    "Words that occur less often have the class of their shape.",
    LEARNER,
    type=COUNT,
    default=2,
)
@option(
    "--max-iter N",
    "Maximum number of sweeps over all words.",
    LEARNER,
    type=click.IntRange(min=0),
    default=10,
)
@n_jobs_option
@debug_option
def classes(
    files: tuple[str, ...],
    form: str | None,
    ignore_case: bool,
    output: str,
    quiet: bool,
    classes: int | list[int] | str | None,
    min_count: int,
    max_iter: int,
    n_jobs: int | None,
) -> None:
    """Learn word classes from raw text, as features for tagwise train.

    FILES are texts in any format, patterns, or bundled corpora. Labels are not used. Words that occur in the same
    contexts get the same class, so that a rare word shares the weights of frequent words. Text is read as a stream and
    may be larger than memory.

    \b
    Examples:
      tagwise classes 'raw/*.txt' -o words.classes
      tagwise train train.txt -o model.tagwise \\
          --features default+classes:words.classes
      tagwise classes ewt-pos wnut17-ner -o words.classes
      tagwise inspect words.classes --word London
    """
    begin = time.perf_counter()
    check_output(output)
    found = learn(
        files,
        form,
        Console(stderr=True),
        quiet=quiet,
        classes=classes,
        min_count=min_count,
        max_iter=max_iter,
        ignore_case=ignore_case or None,
        n_jobs=n_jobs,
    )
    sets = found.parts if isinstance(found, Features) else (found,)
    WordClasses.save_sets(sets, output)
    if not quiet:
        facts, numbers = sets[0].facts, ", ".join(f"{len(one):,}" for one in sets)
        sweeps = ", ".join(str(one.facts["sweeps"]) for one in sets)
        say(
            f"learned {numbers} classes of {sets[0].n_words:,} words from {facts['sentences']:,} sentences, "
            f"{facts['tokens']:,} tokens, in {sweeps} sweeps\n"
            f"wrote {output} ({decimal(os.path.getsize(output))}) in {time.perf_counter() - begin:.1f} s. "
            f"Next: tagwise train TRAIN --features default+classes:{output} -o MODEL"
        )
