"""Requests for more memory than available raise an error with amount and limit before anything is allocated.

Each case runs in a process with a system limit, in which allocating before checking would abort.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BEGIN = """
import resource, sys
import numpy as np
import tagwise as tw
from tagwise import _core
from tests.corpora import X, Y

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

def refused(f, *words, kinds=(tw.exceptions.MemoryLimitError,)):
    try:
        f()
    except kinds as error:
        assert all(word in str(error) for word in words), error
        print("refused")
        return
    raise SystemExit("not refused")

def model(labels, length=5):
    data = _core.encode_attributes(_core.Vocabulary(), [[["a"]] * length])
    data = data.with_gold(np.zeros(data.n_tokens, np.uint16))
    layout = _core.Layout.build(data, 1, labels)
    return data, layout
"""

#: Calls that request too much, with a part of their error.
CASES = {
    "tables of label pairs: 20,000 labels": """
refused(lambda: model(20_000), "20000 labels", "GiB", "TAGWISE_MEMORY")
data, layout = model(3)
scorer = _core.Scorer(layout, np.zeros(len(layout), np.float32))
import tempfile
with tempfile.TemporaryDirectory() as folder:
    vocabulary = _core.Vocabulary()
    _core.encode_attributes(vocabulary, [[["a"]]])
    with open(f"{folder}/m", "wb") as out:
        _core.write_model(out, "{}", vocabulary, scorer, {})
    with open(f"{folder}/m", "rb") as file:
        found = _core.ModelFile(file.fileno(), "m")
    for labels in (8_000, 20_000, 65_000):
        refused(lambda: found.scorer(1, labels), f"{labels} by {labels}", "GiB")
""",
    "tables of label pairs: 8,000 labels, in training": """
data, layout = model(8_000)
refused(lambda: _core.Objective(data, layout), "8000 by 8000", "GiB")
refused(lambda: _core.Online(data, layout, _core.Rule("perceptron")), "8000 by 8000", "GiB")
refused(lambda: _core.Svm(data, layout), "8000 by 8000", "GiB")
refused(lambda: _core.Boosting(data, layout), "8000 by 8000", "GiB")
""",
    "cells of history": """
data, layout = model(128, 1000)
terms = _core.LookbackSpec(128, 3, 3)
scorer = _core.Scorer(layout, np.zeros(len(layout), np.float32))
history = _core.HistoryScorer(terms, np.zeros(len(terms), np.float32))
refused(lambda: history.kbest(scorer, data), "128 labels", "1000 tokens", "GiB")
refused(lambda: _core.HistoryOnline(data, layout, terms, _core.Rule("perceptron")), "128 labels", "1000 tokens", "GiB")
""",
    "a beam": """
tagger = tw.Perceptron(max_iter=1).fit(X, Y)
long = [X[0] * 20]
for beam in (10**9, 2**63 - 1):
    refused(lambda: tagger.predict(long, decoder="beam", beam=beam), f"a beam of {beam}", "GiB")
assert tagger.predict(X, decoder="beam", beam=10**9) == tagger.predict(X)  # few paths: a wide beam keeps them all
for beam in (2**63, 2**64, 10**30):
    refused(
        lambda: tagger.predict(long, decoder="beam", beam=beam),
        kinds=(MemoryError, tw.exceptions.ParameterError, ValueError),
    )
""",
    "steps against many paths": """
refused(lambda: tw.MIRA(k=10**6).fit([x * 10 for x in X], [y * 10 for y in Y]), "k=1000000", "GiB")
tw.MIRA(k=10**6, max_iter=1).fit(X, Y)  # few paths each
""",
    "lists of many paths": """
tagger = tw.Perceptron(max_iter=1).fit(X, Y)
refused(lambda: tagger.predict_kbest([X[0] * 20], 10**9), "1000000000 paths", "GiB")
refused(lambda: tagger.predict_kbest([X[0] * 20] * 10**4, 10**5), "100000 paths", "10000 sentences")
assert len(tagger.predict_kbest([X[0]], 10**9)[0]) == 27
""",
    "shards": """
data, layout = model(500, 5000)
many = _core.encode_attributes(_core.Vocabulary(), [[["a"]]] * 5000).with_gold(np.zeros(5000, np.uint16))
rule, epochs = _core.Rule("perceptron"), _core.Epochs(shards=10**9)
refused(lambda: _core.Online(many, layout, rule, epochs=epochs), "shards", "GiB")
""",
    "rules of a template": """
template = _core.Template("\\n".join(f"word[{i}..{i + 9_000}]" for i in (-10_000, -999)), ["word"])
refused(lambda: _core.encode_tokens(template, _core.Vocabulary(), [[["a"] * 100]] * 200), "attributes", "GiB")
""",
}


def test_errors_give_the_amount_and_the_limit() -> None:
    code = "".join(f"print({name!r}, file=sys.stderr)\n{case}" for name, case in CASES.items())
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + code],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TAGWISE_MEMORY": "1", "RUST_BACKTRACE": "0", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-2000:])
    assert done.stdout.count("refused") >= len(CASES)


def test_memory_limit_can_be_raised() -> None:
    """One table under two limits."""
    code = """
data, layout = model(2_500)
try:
    _core.Scorer(layout, np.zeros(len(layout), np.float32))
except MemoryError as error:
    print("refused")
"""
    found = []
    for limit in ("0.1", "1"):
        done = subprocess.run(
            [sys.executable, "-c", BEGIN + code],
            capture_output=True,
            text=True,
            timeout=600,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "TAGWISE_MEMORY": limit, "OPENBLAS_NUM_THREADS": "1"},
        )
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.strip())
    assert found == ["refused", ""]


#: Training on a corpus in memory under a system limit, which may take effect at any allocation.
IN_MEMORY = """
import resource
import tagwise as tw

def used():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData:"))

train = tw.load_corpus("ewt-pos")[0][:3000]
tw.CRF(features="S1", max_iter=1).fit(train[:10])  # what is loaded when it is needed first
most = int(sys.argv[1]) << 20
resource.setrlimit(resource.RLIMIT_DATA, (used() + most,) * 2)
try:
    tw.CRF(max_iter=2, optimizer="lbfgs", n_jobs=1).fit(train)
    print("done")
except MemoryError as error:
    print("refused", error)
"""


def test_corpus_beyond_the_limit_is_an_error_not_an_abort() -> None:
    """A limit that is too small gives an error that names the data. With a larger limit training completes."""
    found = []
    for most in (8, 400):
        done = subprocess.run(
            [sys.executable, "-c", "import sys\n" + IN_MEMORY, str(most)],
            capture_output=True,
            text=True,
            timeout=600,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
        )
        assert done.returncode == 0, (most, done.returncode, done.stderr[-2000:])
        found.append(done.stdout.split()[0])
    assert found == ["refused", "done"]


#: 20 million attributes of tokens (80 MB) with 60 MB left.
LABELLED = """
import sys, resource
import numpy as np
from tagwise import _core

def used():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData:"))

n, each = 400_000, 50
gold = (np.arange(n) % 3).astype(np.uint16)
ids = (np.arange(n * each, dtype=np.uint32) * np.uint32(2654435761)) % np.uint32(1000)
rows = (np.arange(n + 1, dtype=np.uint64) * each, ids, np.zeros(0, np.float32))
data = _core.Dataset.from_arrays(np.arange(0, n + 1, 10, dtype=np.uint64), np.zeros(0, np.uint16), rows)
resource.setrlimit(resource.RLIMIT_DATA, (used() + (60 << 20),) * 2)
labelled = data.with_gold(gold)
assert labelled.gold.tolist() == gold.tolist() and len(data.gold) == 0 and labelled.n_attributes == n * each
try:
    _core.Layout.build(labelled, 1000, 3)
except MemoryError as error:
    print("refused", error)
"""


def test_labels_share_attribute_rows_and_layouts_claim_memory() -> None:
    """Labelling a dataset shares its attribute rows, and a layout claims the additional memory it needs."""
    done = subprocess.run(
        [sys.executable, "-c", LABELLED],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    assert "refused the labels that 400000 tokens' attributes occur with would take" in done.stdout
    assert "train on shards" in done.stdout
