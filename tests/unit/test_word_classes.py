"""Tests of word classes as a feature: input, lookup, display, files, models and invalid arguments."""

from __future__ import annotations

import io
import pickle
import random
import signal
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tagwise as tw
from tagwise.exceptions import CorpusError, ModelFileError, ParameterError, TemplateError
from tagwise.features import resolve
from tagwise.features.class_learning import Sweep

CITIES, DAYS, PEOPLE = ("Rome", "Oslo", "Bonn", "Lund"), ("Monday", "Friday", "Sunday"), ("Ann", "Bob", "Eve")
TEXT = [
    [person, "left", city, "on", day, *(["in", year] if year > "1990" else [year])]
    for person in PEOPLE
    for city in CITIES
    for day in DAYS
    for year in ("1984", "2001")
] + [["Zürich", "of", "x-ray"], ["Geneva", "of", "y-ray"], ["so-so", "of", "USA"]]
GOLD = [["B-PER", "O", "B-LOC", *["O"] * (len(sentence) - 3)] for sentence in TEXT[:-3]]


@pytest.fixture(scope="module")
def classes() -> tw.WordClasses:
    return tw.WordClasses.learn(TEXT, classes=6, min_count=2)


def test_words_of_the_same_contexts_share_a_class(classes: tw.WordClasses) -> None:
    for group in (CITIES, DAYS, PEOPLE):
        assert len({classes[word] for word in group}) == 1
    assert len({classes[group[0]] for group in (CITIES, DAYS, PEOPLE)}) == 3
    assert set(classes.members(classes["Rome"])) == set(CITIES)
    assert classes.members(top=1) in (["0000"], ["in"], ["left"], ["on"])


def test_digits_are_equal_and_unknown_words_have_the_class_of_their_shape(classes: tw.WordClasses) -> None:
    assert classes["1492"] == classes["2001"]
    assert classes["Toledo"] == classes["Köln"]  # Zürich and Geneva are the rare words of the shape Aa
    assert classes["no-no"] == classes["a-b"]
    assert "=" not in classes
    assert classes.get("=") is None
    with pytest.raises(KeyError):
        classes["="]


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_every_kind_of_text_gives_the_same_classes(tmp_path: Path, classes: tw.WordClasses) -> None:
    rows = "".join("".join(f"{word}\tO\n" for word in sentence) + "\n" for sentence in TEXT)
    columns = written(tmp_path, "labelled.tsv", rows)
    lines = written(tmp_path, "tokens.txt", "".join(" ".join(sentence) + "\n" for sentence in TEXT))
    parts = (TEXT[:31], TEXT[31:])
    half = [
        written(tmp_path, f"{i}.txt", "".join(" ".join(s) + "\n" for s in part))
        for i, part in enumerate(parts)
    ]
    kinds: dict[str, Any] = {
        "path": columns,
        "path as text": str(lines),
        "paths": list(map(str, half)),
        "pattern": str(tmp_path / "[01].txt"),
        "patterns": [str(tmp_path / "0*.txt"), str(tmp_path / "1*.txt")],
        "corpus": tw.read(columns),
        "sentences": list(tw.read(columns)),
        "tuples": [tuple(sentence) for sentence in TEXT],
        "iterator": iter(TEXT),
        "corpora": [tw.read(columns)],
        "mappings": [{"word": sentence} for sentence in TEXT],
        "texts": [" ".join(sentence) for sentence in TEXT],
    }
    for kind, texts in kinds.items():
        assert tw.WordClasses.learn(texts, classes=6) == classes, kind


def test_strings_of_a_list_are_all_paths_or_all_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "cats", "a b\na b\n")
    found = tw.WordClasses.learn(["a cat sat", "cats", "a cat"], classes=2, min_count=1)
    assert sorted(found.members()) == ["a", "cat", "cats", "sat"]
    for missing in (["cats", "dogs"], ["dogs.txt"], ["dogs.jsonl.gz"], "*.txt", ["cats", "*.txt"]):
        with pytest.raises(CorpusError, match=r"cannot be opened|no file matches"):
            tw.WordClasses.learn(missing, classes=2, min_count=1)


def test_every_parameter_of_learn_matters(classes: tw.WordClasses) -> None:
    def learned(**parameters: Any) -> tw.WordClasses:
        return tw.WordClasses.learn(TEXT, **{"classes": 6, **parameters})

    assert len(learned(classes=4)) == 4
    assert len(learned(classes=None)) == classes.n_words // 2
    assert learned(min_count=1).n_words > classes.n_words
    assert learned(max_iter=0) != classes
    lower = tw.WordClasses.learn([[w.upper() for w in TEXT[0]], *TEXT], classes=6, ignore_case=True)
    assert lower["ROME"] == lower["rome"]
    assert "rome" not in classes.members()
    assert learned(name="mine").template().startswith("mine[-1..1]")
    assert learned(window=0).template().startswith("classes[0]")
    assert learned(n_jobs=1) == classes
    seen: list[Sweep] = []
    learned(callbacks=[seen.append])
    assert [sweep.iteration for sweep in seen] == list(range(1, len(seen) + 1))
    assert all(a.objective <= b.objective for a, b in pairwise(seen))
    assert seen[-1].moved == 0
    cut = tw.WordClasses.learn(
        ["a-b c-d"] * 3, classes=2, tokenizer=lambda text: text.replace("-", " ").split()
    )
    assert sorted(cut.members()) == ["a", "b", "c", "d"]


def test_several_sets_are_those_of_single_calls(classes: tw.WordClasses) -> None:
    both = tw.WordClasses.learn(iter(TEXT), classes=(3, 6))
    assert [part.name for part in both.parts] == ["classes3", "classes6"]
    for n, part in zip((3, 6), both.parts):
        alone = tw.WordClasses.learn(TEXT, classes=n)
        assert part.paths == alone.paths
        assert part.column(TEXT[0]) == alone.column(TEXT[0])
        assert part.template() == f"classes{n}[-1..1]\n"
    rendered = resolve("S1" + both).render(["Rome"])[0]
    assert f"classes6[0]={classes['Rome']}" in rendered
    assert [part.name for part in tw.WordClasses.learn(TEXT, classes="several").parts] == ["classes7"]
    folded = tw.WordClasses.learn(TEXT, classes="several", ignore_case=True)
    assert [part.name for part in folded.parts] == ["classes7lower"]
    for wrong in ((), (3, 3), (3, 1), "ab"):
        with pytest.raises(ParameterError, match="classes"):
            tw.WordClasses.learn(TEXT, classes=wrong)


def test_several_sets_are_of_words_as_they_are_and_in_lower_case(tmp_path: Path) -> None:
    text = [*TEXT, *([word.upper() for word in sentence] for sentence in TEXT[::2])]
    both = tw.WordClasses.learn(iter(text), classes="several")
    cased, folded = both.parts
    assert [cased.ignore_case, folded.ignore_case] == [False, True]
    assert folded.name == f"classes{len(folded)}lower"
    assert tw.Features(cased) == tw.WordClasses.learn(text, classes="several", ignore_case=False)
    assert tw.Features(folded) == tw.WordClasses.learn(text, classes="several", ignore_case=True)
    assert not tw.WordClasses.learn(text, classes=6).ignore_case
    tw.WordClasses.save_sets(both, tmp_path / "w.classes")
    assert tw.WordClasses.load_sets(tmp_path / "w.classes") == both
    renamed = tw.WordClasses.load_sets(tmp_path / "w.classes", name="my").parts
    assert [part.name for part in renamed] == [part.name.replace("classes", "my") for part in both.parts]


def test_cuts_are_attributes(tmp_path: Path) -> None:
    words = {"00": ["a"], "01": ["b"], "1": ["c"]}
    few = tw.WordClasses(words, cuts=(2, 5))
    assert few.template() == "classes[-1..1]\nclasses[-1..1].cut(2)\n"
    few.save(tmp_path / "few.classes")
    assert tw.WordClasses.load(tmp_path / "few.classes") == few != tw.WordClasses(words, cuts=())
    with pytest.raises(ParameterError, match="cuts"):
        tw.WordClasses(words, cuts=(1,))


# --- features ---------------------------------------------------------------------------------------------------


def cut(classes: tw.WordClasses, word: str, n: int) -> str:
    """Return the class of a word after n - 1 splits of the class with the most words."""
    leaves = {path: len(classes.members(path)) for path in classes.paths}
    parts = [""]
    while len(parts) < n:
        open_ = [p for p in parts if sum(path.startswith(p) for path in leaves) > 1]
        if not open_:
            break
        size = {p: sum(n for path, n in leaves.items() if path.startswith(p)) for p in open_}
        largest = min(open_, key=lambda p: (-size[p], p))
        parts = sorted({*parts, largest + "0", largest + "1"} - {largest})
    return next(p for p in parts if classes[word].startswith(p))


def test_the_native_column_has_the_class_and_its_cuts(classes: tw.WordClasses) -> None:
    template = "classes[0]\nclasses[0].cut(1..7)\nclasses[-1] & word[0].lower"
    sentence = ["Ann", "left", "=", "Toledo", "1492"]
    rendered = resolve(template + classes).render(sentence)
    for t, word in enumerate(sentence):
        found = dict(text.rsplit("=", 1) for text in rendered[t] if "&" not in text)
        path = classes.get(word)
        assert found.get("classes[0]") == path
        if path is not None:
            for n in range(1, 8):
                assert found[f"classes[0].cut({n})"] == cut(classes, word, n)
    assert f"classes[-1]={classes['Ann']} & word[0].lower=left" in rendered[1]
    assert classes.column(sentence) == [classes.get(word) or "" for word in sentence]


def test_cuts_have_as_many_classes_as_they_say() -> None:
    draw = random.Random(1)
    text = [[f"w{draw.randrange(300) * draw.randrange(2)}" for _ in range(9)] for _ in range(900)]
    text = [["".join(chr(97 + int(c)) for c in word[1:]) for word in sentence] for sentence in text]
    classes = tw.WordClasses.learn(text, classes=40, max_iter=2)
    words = [[word] for word in classes.members()]
    for n in (2, 8, 16, 32):
        recipe = resolve(f"classes[0].cut({n})" + classes)
        texts = {next(a for a in recipe.render(word)[0] if f"cut({n})" in a) for word in words}
        assert len(texts) == n


@pytest.mark.parametrize(
    "name", ["word[0].cut(8)", "classes[0].lower.cut(8)", "classes[0].cut", "classes[0].cut(0)"]
)
def test_a_cut_follows_the_column_of_classes(classes: tw.WordClasses, name: str) -> None:
    with pytest.raises(TemplateError, match="cut"):
        resolve(name + classes)


def test_sums_of_all_kinds_are_equal(tmp_path: Path, classes: tw.WordClasses) -> None:
    classes.save(tmp_path / "words.classes")
    total = "S1" + classes
    assert total == tw.Features("S1") + classes == tw.Features(f"S1+classes:{tmp_path / 'words.classes'}")
    named = tw.Features(f"S1+classes:other={tmp_path / 'words.classes'}")
    assert named.parts[1].name == "other"
    assert resolve(total).render(["Rome"]) == resolve(pickle.loads(pickle.dumps(total))).render(["Rome"])


@pytest.fixture(scope="module")
def tagger(classes: tw.WordClasses) -> tw.CRF:
    return tw.CRF(features="S1" + classes, max_iter=20).fit(TEXT[:-3], GOLD)


def test_unseen_words_get_the_labels_of_their_class(classes: tw.WordClasses) -> None:
    few = [(s, y) for s, y in zip(TEXT, GOLD) if s[0] != "Eve" and s[2] != "Lund"]
    tagger = tw.CRF(features=tw.Features("S1") + classes, max_iter=30).fit(*map(list, zip(*few)))
    assert tagger.predict([["Eve", "left", "Lund"]]) == [["B-PER", "O", "B-LOC"]]


def test_models_carry_their_classes(tmp_path: Path, classes: tw.WordClasses, tagger: tw.CRF) -> None:
    tagger.save(tmp_path / "model.tagwise")
    loaded = tw.load(tmp_path / "model.tagwise")
    new = [["Eve", "met", "Toledo", "1999"]]
    assert loaded.predict(new) == tagger.predict(new)
    assert loaded.features.parts[1] == classes
    loaded.save(tmp_path / "again.tagwise")
    assert (tmp_path / "model.tagwise").read_bytes() == (tmp_path / "again.tagwise").read_bytes()
    assert pickle.loads(pickle.dumps(tagger)).predict(new) == tagger.predict(new)


def test_explanations_name_a_class_by_its_members(classes: tw.WordClasses, tagger: tw.CRF) -> None:
    known = classes.describe(classes["Rome"])
    assert known.startswith("class of ")
    assert set(known.removeprefix("class of ").split(", ")) <= set(CITIES)
    texts = [text for found in tagger.inspect().labels.values() for text, _ in found]
    assert any(f"classes[0]={known}" == text for text in texts)
    assert not any("classes[0]=0" in text or "classes[0]=1" in text for text in texts)
    decision = tagger.explain(["Ann", "left", "Rome"])[2]
    assert any(f"classes[0]={known}" == vote.feature for vote in decision.votes)


def test_displays(classes: tw.WordClasses) -> None:
    assert repr(classes) == f"<WordClasses classes: {classes.n_words} words in 6 classes>"
    tree = str(classes.tree(depth=20))
    assert all(f"{path}: " in tree for path in classes.paths)
    assert repr(classes.tree(depth=20)) == tree
    assert "Rome" in classes._repr_html_()
    spiteful = tw.WordClasses({"0": ["<b>", "a"], "1": ["&"]})
    assert "&lt;b&gt;" in spiteful._repr_html_()
    assert "<b>" not in spiteful._repr_html_()
    near = classes.nearest("Rome", 3)
    assert len(near) == 3
    assert classes["Rome"] not in near


# --- files ------------------------------------------------------------------------------------------------------


def test_a_file_holds_everything(tmp_path: Path, classes: tw.WordClasses) -> None:
    path = tmp_path / "words.classes"
    classes.save(path)
    loaded = tw.WordClasses.load(path)
    assert loaded == classes
    assert loaded.facts == classes.facts
    assert loaded.members("", 5) == classes.members("", 5)
    assert tw.WordClasses.load(path, name="other", window=2).template().startswith("other[-2..2]")
    loaded.save(tmp_path / "again.classes")
    assert path.read_bytes() == (tmp_path / "again.classes").read_bytes()


def test_several_sets_are_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "words.classes"
    several = tw.WordClasses.learn(TEXT, classes=[3, 6])
    tw.WordClasses.save_sets(several, path)
    assert tw.WordClasses.load_sets(path) == several
    assert [one.facts for one in tw.WordClasses.load_sets(path).parts] == [one.facts for one in several.parts]
    assert tw.Features(f"default+classes:{path}") == "default" + several
    assert [one.name for one in tw.Features(f"classes:my={path}").parts] == ["my3", "my6"]
    with pytest.raises(ModelFileError, match="2 sets of classes"):
        tw.WordClasses.load(path)
    several.parts[0].save(path)
    assert tw.WordClasses.load_sets(path).parts == several.parts[:1]
    assert [one.name for one in tw.Features(f"classes:my={path}").parts] == ["my"]
    for wrong in ((), ("default",)):
        with pytest.raises(ParameterError):
            tw.WordClasses.save_sets(wrong, tmp_path / "none")  # type: ignore[arg-type]
    assert [entry.name for entry in tmp_path.iterdir()] == ["words.classes"]


def test_shards_are_text(tmp_path: Path) -> None:
    corpus = tw.Corpus.from_lists(TEXT[:-3], GOLD)
    tw.write(corpus, tmp_path / "text.conll")
    for name, tokens in (("one", 10_000), ("many", 20)):
        tw.encode(tmp_path / "text.conll", tmp_path / name, shard_tokens=tokens)
    learned = tw.WordClasses.learn(corpus, classes=4)
    shards = tw.Shards(tmp_path / "many")
    assert len(shards) > 3
    assert learned == tw.WordClasses.learn(shards, classes=4)
    assert learned == tw.WordClasses.learn(tw.Shards(tmp_path / "one"), classes=4)
    twice = tw.WordClasses.learn([shards, corpus], classes=4)
    assert twice.facts["tokens"] == 2 * learned.facts["tokens"] == 2 * sum(map(len, corpus))
    tw.encode(tmp_path / "text.conll", tmp_path / "none", features="word[0].lower")
    with pytest.raises(CorpusError, match="do not include each word"):
        tw.WordClasses.learn(tw.Shards(tmp_path / "none"), classes=4)


def test_a_stream_is_never_in_memory_as_a_whole() -> None:
    alive: set[int] = set()
    most = 0

    class Noted(list[str]):
        def __del__(self) -> None:
            alive.discard(id(self))

    def stream() -> Iterator[list[str]]:
        nonlocal most
        for i in range(40_000):
            sentence = Noted(TEXT[i % len(TEXT)])
            alive.add(id(sentence))
            most = max(most, len(alive))
            yield sentence

    found = tw.WordClasses.learn(stream(), classes=6)
    assert found.facts["sentences"] == 40_000
    assert most <= 10_000


def test_every_damaged_byte_is_reported(tmp_path: Path, classes: tw.WordClasses) -> None:
    path = tmp_path / "words.classes"
    classes.save(path)
    good = path.read_bytes()
    draw = random.Random(0)
    for at in sorted(draw.sample(range(len(good)), 60)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x41]) + good[at + 1 :])
        with pytest.raises(ModelFileError, match=r"words\.classes"):
            tw.WordClasses.load(path)
    for length in (0, 7, 40, len(good) // 2, len(good) - 1):
        path.write_bytes(good[:length])
        with pytest.raises(ModelFileError, match=r"words\.classes"):
            tw.WordClasses.load(path)


def test_other_files_and_versions_are_refused(
    tmp_path: Path, classes: tw.WordClasses, tagger: tw.CRF, monkeypatch: pytest.MonkeyPatch
) -> None:
    tagger.save(tmp_path / "model.tagwise")
    (tmp_path / "text").write_text("London\n")
    for name in ("model.tagwise", "text", "none", "."):
        with pytest.raises(ModelFileError):
            tw.WordClasses.load(tmp_path / name)
    monkeypatch.setattr("tagwise.features.class_files.VERSION", 2)
    classes.save(tmp_path / "newer.classes")
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match="version 2 of the format, this tagwise reads 1"):
        tw.WordClasses.load(tmp_path / "newer.classes")


def test_a_failed_save_leaves_the_old_file(
    tmp_path: Path, classes: tw.WordClasses, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "words.classes"
    classes.save(path)
    before = path.read_bytes()
    monkeypatch.setattr("tagwise.features.class_files.write_arrays", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        classes.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["words.classes"]


# --- invalid input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [[], [[]], iter(()), [""], [[], []]])
def test_texts_without_tokens_are_refused(texts: Any) -> None:
    with pytest.raises(CorpusError, match="no tokens"):
        tw.WordClasses.learn(texts)


def test_too_few_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="too little for classes"):
        tw.WordClasses.learn([["a", "a"]], classes=2)
    with pytest.raises(ParameterError, match=r"classes=1000: the text has .* 3 words"):
        tw.WordClasses.learn([["a", "b", "c"]] * 2, classes=1000)
    for name in ("none.txt", "."):
        with pytest.raises(CorpusError):
            tw.WordClasses.learn(tmp_path / name)
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 40)
    with pytest.raises(CorpusError, match="binary"):
        tw.WordClasses.learn(tmp_path / "binary")


@pytest.mark.parametrize(
    "texts", [3, None, b"text", {"a": 1}, [3], [[3]], [["a", None]], [b"a"], [["\ud800"]]]
)
def test_objects_that_are_not_texts_are_refused(texts: Any) -> None:
    with pytest.raises(CorpusError):
        tw.WordClasses.learn(texts, classes=2, min_count=1)


@pytest.mark.parametrize(
    "parameters",
    [
        {"classes": 1},
        {"classes": 2.5},
        {"min_count": 0},
        {"max_iter": -1},
        {"n_jobs": 0},
        {"name": "a b"},
        {"window": 11},
        {"ignore_case": "no"},
    ],
)
def test_parameters_outside_their_domain_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        tw.WordClasses.learn(TEXT, **{"classes": 2, **parameters})


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"0": ["a"]},
        {"0": ["a"], "01": ["b"]},
        {"a": ["a"], "1": ["b"]},
        {"0": ["a"], "1": ["a"]},
        {"0": [1], "1": []},
    ],
)
def test_trees_that_are_not_trees_are_refused(words: Any) -> None:
    with pytest.raises(ParameterError):
        tw.WordClasses(words)


def test_a_million_distinct_words_are_counted_quickly() -> None:
    words = [
        [
            f"{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676 % 26)}x{chr(0x4E00 + i // 17576)}"
            for i in range(b, b + 1000)
        ]
        for b in range(0, 1_000_000, 1000)
    ]
    begin = time.process_time()
    with pytest.raises(CorpusError, match="0 words that occur at least 2 times"):
        tw.WordClasses.learn(words)
    frequent = tw.WordClasses.learn([*words, *TEXT], classes=6)
    assert frequent["Rome"] == frequent["Oslo"]
    assert time.process_time() - begin < 20


def test_ctrl_c_ends_learning_soon() -> None:
    """After at most a fifth of a second of processor time, long before the sweep of many seconds ends."""
    draw = np.random.default_rng(0)
    names = np.array(["".join(chr(97 + int(c)) for c in str(i)) for i in range(20001)], dtype=object)
    words = names[np.minimum(draw.zipf(1.2, size=(20000, 20)), 20000)].tolist()  # seconds of learning
    stopped: list[float] = []

    def sweep(_: Sweep) -> None:
        if not stopped:
            stopped.append(0.0)
            timer = threading.Timer(
                0.05, lambda: (stopped.append(time.process_time()), signal.raise_signal(signal.SIGINT))
            )
            timer.start()

    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell in the background has it ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            tw.WordClasses.learn(words, classes=1000, min_count=1, n_jobs=1, callbacks=[sweep])
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.process_time() - stopped[1] < 0.2  # a busy machine takes longer by the clock


def test_open_files_are_refused_with_a_message() -> None:
    with pytest.raises(CorpusError):
        tw.WordClasses.learn(io.BytesIO(b"a b"), classes=2)
